//! One reconcile of a `HelmChartProxy`: its `HelmReleaseProxies` follow it (X2).

use std::collections::BTreeSet;

use capasg_api::{capi::pause_state, conditions::Finding, names::FIELD_MANAGER};
use chrono::{DateTime, Utc};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;

use super::{Context, Next, ObjectKey, RETRY, ReconcileError, archive, chart_status, observe, selection};
use crate::{
    HelmChartProxy, HelmReleaseProxy,
    decide::{Chart, FanOut, Selected, Step, dependencies, fan_out, installed_first, not_ready, selects},
    kinds::conditions::{SPECS_UP_TO_DATE, reasons},
    names,
};

/// Reconciles an object.
///
/// # Errors
/// If the management cluster cannot be read or written, or the program for values fails.
pub async fn reconcile_chart(
    context: &Context,
    key: &ObjectKey,
    now: DateTime<Utc>,
) -> Result<Next, ReconcileError> {
    let read = |what| move |source| ReconcileError::Read { what, source };
    let api: Api<HelmChartProxy> = Api::namespaced(context.client.clone(), &key.namespace);
    let Some(proxy) = api.get_opt(&key.name).await.map_err(read("the HelmChartProxy"))? else {
        context.forget_archive(key);
        return Ok(Next::Never);
    };
    let is_deleting = proxy.metadata.deletion_timestamp.is_some();
    let has_finalizer = proxy.finalizers().iter().any(|finalizer| finalizer == names::CHART_FINALIZER);
    if is_deleting && !has_finalizer {
        return Ok(Next::Never);
    }
    if pause_state(None, proxy.annotations()).is_paused() {
        return Ok(Next::Later);
    }
    if !is_deleting && !has_finalizer {
        finalizer(context, &proxy, true).await?;
        return Ok(Next::Now);
    }
    match plan(context, key, &proxy).await {
        Ok(planned) => carry_out(context, key, &proxy, planned, now).await,
        Err(error) => {
            chart_status::report_failure(context, &proxy, &error, now).await;
            Err(error)
        }
    }
}

/// What follows, and from what.
struct Planned {
    known: Vec<HelmReleaseProxy>,
    fan_out: FanOut,
    /// Whether values could not be rendered for now.
    is_retried: bool,
}

async fn plan(context: &Context, key: &ObjectKey, proxy: &HelmChartProxy) -> Result<Planned, ReconcileError> {
    let releases: Api<HelmReleaseProxy> = Api::namespaced(context.client.clone(), &key.namespace);
    let known = releases_of(&releases, &key.name).await?;
    // A deletion depends on neither templates nor archives.
    if proxy.metadata.deletion_timestamp.is_some() {
        let fan_out = fan_out(proxy, &Chart::InRepository, &[], &known);
        return Ok(Planned { known, fan_out, is_retried: false });
    }
    let selection = selection::of(context, proxy).await?;
    if let Some(selection) = &selection {
        selection.keep(context, proxy).await?;
    }
    let chart = archive::of(context, proxy).await?;
    let Some(selection) = selection else {
        return Ok(Planned { known, fan_out: not_selected(proxy), is_retried: false });
    };
    let mut selected = selection.clusters;
    order(context, proxy, &mut selected, &known).await?;
    let fan_out = fan_out(proxy, &chart, &selected, &known);
    Ok(Planned { known, fan_out, is_retried: selection.is_retried })
}

/// Carries out what is planned, and reports it.
async fn carry_out(
    context: &Context,
    key: &ObjectKey,
    proxy: &HelmChartProxy,
    planned: Planned,
    now: DateTime<Utc>,
) -> Result<Next, ReconcileError> {
    let Planned { known, mut fan_out, is_retried } = planned;
    let releases: Api<HelmReleaseProxy> = Api::namespaced(context.client.clone(), &key.namespace);
    // One object that is rejected does not hold up those of other Clusters.
    let mut failed: Vec<ReconcileError> = Vec::new();
    for step in &fan_out.steps {
        failed.extend(write(&releases, &known, step).await.err());
    }
    // One that lasts is reported before others.
    failed.sort_by_key(|error| !error.is_lasting());
    let failed = failed.into_iter().next();
    if let Some(finding) = failed.as_ref().and_then(chart_status::failure) {
        fan_out.condition = finding;
    }
    let proxy = chart_status::report(context, proxy, &fan_out, &known, now).await?;
    if let Some(error) = failed {
        return Err(error);
    }
    if fan_out.is_released {
        finalizer(context, &proxy, false).await?;
        return Ok(Next::Never);
    }
    Ok(match (fan_out.steps.is_empty(), is_retried) {
        (false, _) => Next::Now,
        (true, true) => Next::At(now + RETRY),
        (true, false) => Next::Later,
    })
}

/// The `HelmReleaseProxies` of a `HelmChartProxy`.
pub(super) async fn releases_of(
    api: &Api<HelmReleaseProxy>,
    proxy: &str,
) -> Result<Vec<HelmReleaseProxy>, ReconcileError> {
    let of_proxy = ListParams::default().labels(&format!("{}={proxy}", names::CHART_PROXY_LABEL));
    let listed = api.list(&of_proxy).await;
    Ok(listed.map_err(|source| ReconcileError::Read { what: "HelmReleaseProxies", source })?.items)
}

/// Determines which others are not ready on which Clusters: those that this one depends on and, on a Cluster that has no
/// release of this one, those that are installed first.
pub(super) async fn order(
    context: &Context,
    proxy: &HelmChartProxy,
    selected: &mut [Selected],
    known: &[HelmReleaseProxy],
) -> Result<(), ReconcileError> {
    if selected.is_empty() {
        return Ok(());
    }
    let namespace = proxy.namespace().unwrap_or_default();
    let charts = observe::charts(context, &namespace).await?;
    let (dependencies, first) = (dependencies(proxy), installed_first(proxy, &charts));
    let api: Api<HelmReleaseProxy> = Api::namespaced(context.client.clone(), &namespace);
    let mut releases = Vec::new();
    let names: BTreeSet<String> =
        first.iter().map(|chart| chart.name_any()).chain(dependencies.iter().cloned()).collect();
    for name in &names {
        releases.extend(releases_of(&api, name).await?);
    }
    for cluster in selected {
        let is_new = !known.iter().any(|release| release.spec.cluster_ref.name == cluster.name);
        let before = first.iter().filter(|chart| is_new && selects(chart, &cluster.labels));
        let mut others = dependencies.clone();
        others.extend(before.map(|chart| chart.name_any()));
        cluster.waits_for = not_ready(&others, &cluster.name, &releases);
    }
    Ok(())
}

fn not_selected(proxy: &HelmChartProxy) -> FanOut {
    let message = "spec.clusterSelector is not valid; check its operators and values";
    FanOut {
        steps: Vec::new(),
        matching: proxy.status.clone().unwrap_or_default().matching_clusters,
        condition: Finding::new(SPECS_UP_TO_DATE, false, reasons::CLUSTER_SELECTION_FAILED, message),
        is_released: false,
    }
}

async fn write(
    api: &Api<HelmReleaseProxy>,
    known: &[HelmReleaseProxy],
    step: &Step,
) -> Result<(), ReconcileError> {
    let find = |name: &str| known.iter().find(|release| release.name_any() == name);
    let written = match step {
        // An object that exists with this name is the same, which a cache did not show.
        Step::Create(release) => match api.create(&PostParams::default(), release).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            created => created.map(drop),
        },
        Step::Update(changed) => {
            api.replace(&changed.name_any(), &PostParams::default(), changed).await.map(drop)
        }
        Step::Delete { name, .. } => {
            let uid = find(name).and_then(ResourceExt::uid);
            let same = Preconditions { uid, resource_version: None };
            let parameters = DeleteParams { preconditions: Some(same), ..DeleteParams::default() };
            match api.delete(name, &parameters).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
                deleted => deleted.map(drop),
            }
        }
    };
    written.map_err(|source| ReconcileError::Write { what: "a HelmReleaseProxy", source })
}

async fn finalizer(context: &Context, proxy: &HelmChartProxy, is_set: bool) -> Result<(), ReconcileError> {
    let mut all = proxy.finalizers().to_vec();
    all.retain(|finalizer| finalizer != names::CHART_FINALIZER);
    if is_set {
        all.push(names::CHART_FINALIZER.to_owned());
    }
    let version = &proxy.metadata.resource_version;
    let patch = json!({"metadata": {"finalizers": all, "resourceVersion": version}});
    let api: Api<HelmChartProxy> =
        Api::namespaced(context.client.clone(), &proxy.namespace().unwrap_or_default());
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let written = api.patch(&proxy.name_any(), &parameters, &Patch::Merge(patch)).await;
    written
        .map(drop)
        .map_err(|source| ReconcileError::Write { what: "the finalizer of the HelmChartProxy", source })
}
