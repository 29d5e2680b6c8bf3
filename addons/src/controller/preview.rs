//! What a `HelmChartProxy` would change: the controllers' reads and decisions, without a write.

use capasg_api::{
    capi::{self, pause_state},
    time::to_kubernetes,
};
use chrono::{DateTime, TimeDelta, Utc};
use kube::{Api, ResourceExt as _};
use serde_json::Map;

use super::{
    Context, ObjectKey, ReconcileError, archive,
    chart_proxy::{order, releases_of},
    context::Remembered,
    drift::parsed,
    observe::{Observed, observe},
    release_values, selection,
};
use crate::{
    HelmChartProxy, HelmReleaseProxy,
    decide::{
        Step, is_orphaned,
        release::{Found, Memory, Step as Operation, decide_operation},
    },
    engine::Request,
    helm::Labels,
    preview::{ClusterPreview, Outcome, Planned, Preview, ResourceDifference, describe, plan, resources},
};

/// How long an object that would be deleted counts as being deleted: no other one is expected to follow.
const DELETED: TimeDelta = TimeDelta::minutes(1);

/// What would change if this were the object: on which Clusters, and with `with_manifests` in which resources.
///
/// # Errors
/// If the management cluster cannot be read, or the program for values fails.
pub async fn preview(
    context: &Context,
    proxy: &HelmChartProxy,
    with_manifests: bool,
    now: DateTime<Utc>,
) -> Result<Preview, ReconcileError> {
    let namespace = proxy.namespace().unwrap_or_default();
    let mut preview =
        Preview { proxy: format!("{namespace}/{}", proxy.name_any()), note: None, clusters: Vec::new() };
    if pause_state(None, proxy.annotations()).is_paused() {
        preview.note = Some("it is paused: nothing happens until that ends".to_owned());
    }
    let Some(selection) = selection::of(context, proxy).await? else {
        preview.note = Some("spec.clusterSelector is not valid: nothing happens".to_owned());
        return Ok(preview);
    };
    let mut selected = selection.clusters;
    let releases: Api<HelmReleaseProxy> = Api::namespaced(context.client.clone(), &namespace);
    let known = releases_of(&releases, &proxy.name_any()).await?;
    order(context, proxy, &mut selected, &known).await?;
    let chart = archive::of(context, proxy).await?;
    for planned in plan(proxy, &chart, &selected, &known).clusters {
        preview.clusters.push(of_cluster(context, proxy, &planned, with_manifests, now).await?);
    }
    Ok(preview)
}

/// The object as it would be.
fn object(planned: &Planned, now: DateTime<Utc>) -> Option<HelmReleaseProxy> {
    match planned.step.as_ref()? {
        Step::Create(object) | Step::Update(object) => Some((**object).clone()),
        Step::Delete { .. } => {
            let mut object = planned.known.clone()?;
            object.metadata.deletion_timestamp = Some(to_kubernetes(now - DELETED));
            Some(object)
        }
    }
}

async fn of_cluster(
    context: &Context,
    proxy: &HelmChartProxy,
    planned: &Planned,
    with_manifests: bool,
    now: DateTime<Utc>,
) -> Result<ClusterPreview, ReconcileError> {
    let Some(object) = object(planned, now) else { return Ok(describe(planned, None)) };
    let namespace = object.namespace().unwrap_or_default();
    let clusters: Api<capi::Cluster> = Api::namespaced(context.client.clone(), &namespace);
    let cluster = clusters.get_opt(&object.spec.cluster_ref.name).await;
    let cluster = cluster.map_err(|source| ReconcileError::Read { what: "the Cluster", source })?;
    let key = ObjectKey::new(&namespace, object.name_any());
    let mut remembered: Remembered = context.remembered(&key, &object.spec.chart_name);
    let mut observed = observe(context, &object, cluster.as_ref(), &mut remembered, now).await?;
    // The object in the management cluster may have another selector, or another policy.
    observed.is_orphaned = cluster.as_ref().is_some_and(|cluster| is_orphaned(proxy, cluster.labels()));
    let desired = observed.desired(&object, "", &remembered.fresh);
    let decision = decide_operation(&desired, &observed.cluster, &Memory::default(), now);
    let found = observed.cluster.found();
    let known = match &planned.known {
        Some(known) if found.is_none() => release_values::of(context, known).await?.unwrap_or_default(),
        _ => Map::new(),
    };
    let before = found.map_or(&known, |found: &Found| &found.release.values);
    let after = release_values::of(context, planned.successor.as_ref().unwrap_or(&object)).await?;
    // What is wrong with them is in the condition.
    let after = after.unwrap_or_else(|_| before.clone());
    let outcome = Outcome {
        object: &object,
        decision: &decision,
        found,
        before,
        after: &after,
        newest: observed.newest.as_deref(),
    };
    let mut described = describe(planned, Some(&outcome));
    if with_manifests && matches!(decision.step, Operation::Install { .. } | Operation::Upgrade(_)) {
        described.resources = Some(compare(context, &object, &observed).await);
    }
    Ok(described)
}

/// How the resources of a release would differ; or why that is not known.
async fn compare(
    context: &Context,
    object: &HelmReleaseProxy,
    observed: &Observed,
) -> Result<Vec<ResourceDifference>, String> {
    let (Some(workload), Some(key), Some(place)) = (&observed.workload, &observed.key, &observed.source)
    else {
        return Err("the Cluster or the chart is not available".to_owned());
    };
    let namespace = object.namespace().unwrap_or_default();
    let source = place.chart(context, &namespace).await.map_err(|(_, message)| message)?;
    let options = object.spec.options.clone().unwrap_or_default();
    let request = Request {
        source: Some(&source),
        options: &options,
        values: &observed.values,
        labels: &Labels::new(),
    };
    let manifests = workload.manifests(&context.helm, key, &request).await;
    let (before, after) = manifests.map_err(|error| error.to_string())?;
    Ok(resources(&parsed(context, &before).await?, &parsed(context, &after).await?))
}
