//! What a decision about one release requires.

use capasg_api::{
    capi,
    names::{addons::Phase, hash, labels},
    time::from_kubernetes,
};
use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt as _, api::ListParams};
use serde_json::{Map, Value};

use super::{
    Context, ReconcileError,
    context::Remembered,
    release_values,
    source::{self, NoSource, Place},
};
use crate::{
    HelmChartProxy, HelmReleaseProxy,
    decide::{
        asks_for, is_orphaned,
        release::{Cluster, ClusterDeletion, Desired, Fresh, claimed_by},
        uninstalled_first,
    },
    engine::Workload,
    helm::{InvalidName, Namespace, ReleaseKey, ReleaseName, ReleaseState, TimeLimit},
    kinds::conditions::reasons,
    kubeconfig::Kubeconfig,
    names,
};

/// What was observed.
pub(super) struct Observed {
    pub cluster: Cluster,
    pub claimed_by: Option<String>,
    /// The `HelmReleaseProxies` whose releases are uninstalled before this one.
    pub uninstalled_first: Vec<String>,
    /// Whether the Cluster is being deleted.
    pub cluster_deletion: ClusterDeletion,
    /// Whether the release stays in the Cluster when the object is deleted.
    pub is_orphaned: bool,
    /// The objects of the Cluster that are waited for once the release is uninstalled.
    pub remaining: Vec<String>,
    pub values: Map<String, Value>,
    /// The newest version of the chart, if the release follows it.
    pub newest: Option<String>,
    /// What a step requires, if nothing of it is missing.
    pub workload: Option<Workload>,
    pub key: Option<ReleaseKey>,
    pub source: Option<Place>,
}

impl Observed {
    /// Reads again whether another object has the release.
    pub(super) async fn claim(
        &mut self,
        context: &Context,
        object: &HelmReleaseProxy,
    ) -> Result<(), ReconcileError> {
        self.claimed_by = claimed_by(object, &others(context, object).await?);
        Ok(())
    }

    /// What identifies the request. Changes of objects with values do not change the generation.
    pub(super) fn request(&self, object: &HelmReleaseProxy) -> String {
        let generation = object.metadata.generation.unwrap_or_default();
        let newest = self.newest.as_deref().unwrap_or_default();
        let values = hash(&serde_json::to_string(&self.values).unwrap_or_default());
        format!("{generation} {newest} {values}")
    }

    /// What is requested of the release, without drift.
    pub(super) fn desired<'a>(
        &'a self,
        object: &'a HelmReleaseProxy,
        request: &'a str,
        fresh: &'a Fresh,
    ) -> Desired<'a> {
        Desired {
            spec: &object.spec,
            request,
            values: &self.values,
            newest: self.newest.as_deref(),
            archive: self.source.as_ref().and_then(Place::digest),
            created_at: object.creation_timestamp().as_ref().map(from_kubernetes),
            id: object.annotations().get(names::RELEASE_ID).map(String::as_str),
            is_installed: object.is_installed(),
            app_version: object.annotations().get(names::APP_VERSION).map(String::as_str),
            is_orphaned: self.is_orphaned,
            is_paused: false,
            cluster_deletion: self.cluster_deletion,
            deleted_at: object.metadata.deletion_timestamp.as_ref().map(from_kubernetes),
            claimed_by: self.claimed_by.as_deref(),
            uninstalled_first: &self.uninstalled_first,
            remaining: &self.remaining,
            drift: None,
            operation_limit: operation_limit(object),
            fresh,
        }
    }
}

/// How long an operation of another actor with the same options may be in progress.
fn operation_limit(object: &HelmReleaseProxy) -> TimeDelta {
    let options = object.spec.options.clone().unwrap_or_default();
    let limit =
        TimeLimit::parse(options.timeout()).map(|limit| limit.until_stopped(options.atomic == Some(true)));
    limit.ok().and_then(|limit| TimeDelta::from_std(limit).ok()).unwrap_or(TimeDelta::hours(1))
}

/// Observes the Cluster, what the spec refers to, and the release.
pub(super) async fn observe(
    context: &Context,
    object: &HelmReleaseProxy,
    cluster: Option<&capi::Cluster>,
    remembered: &mut Remembered,
    now: DateTime<Utc>,
) -> Result<Observed, ReconcileError> {
    let others = others(context, object).await?;
    // The deletion of an object depends on them.
    let charts = match object.metadata.deletion_timestamp {
        Some(_) => charts(context, &object.namespace().unwrap_or_default()).await?,
        None => Vec::new(),
    };
    let own = object.labels().get(names::CHART_PROXY_LABEL);
    let own = charts.iter().find(|chart| Some(&chart.name_any()) == own);
    let asks = own.is_some_and(|chart| asks_for(chart, Phase::BeforeClusterDelete));
    let cluster_deletion = match (cluster.is_some_and(capi::Cluster::is_deleting), asks) {
        (true, true) => ClusterDeletion::AfterRelease,
        (true, false) => ClusterDeletion::Requested,
        (false, _) => ClusterDeletion::NotRequested,
    };
    let mut observed = Observed {
        cluster: Cluster::Missing,
        claimed_by: claimed_by(object, &others),
        uninstalled_first: uninstalled_first(object, &charts, &others, now),
        cluster_deletion,
        is_orphaned: own.zip(cluster).is_some_and(|(chart, cluster)| is_orphaned(chart, cluster.labels())),
        remaining: Vec::new(),
        values: Map::new(),
        newest: None,
        workload: None,
        key: None,
        source: None,
    };
    let Some(cluster) = cluster else { return Ok(observed) };
    if !cluster.is_control_plane_initialized() {
        observed.cluster = Cluster::NotInitialized;
        return Ok(observed);
    }
    // What is left unchanged requires nothing.
    let is_left = object.spec.reconcile_strategy.is_install_once() && object.is_installed();
    if object.metadata.deletion_timestamp.is_none()
        && !is_left
        && let Some(problem) = requirements(context, object, &mut observed).await?
    {
        observed.cluster = problem;
        return Ok(observed);
    }
    observed.cluster = release(context, object, &mut observed, remembered, now).await?;
    if cluster_deletion == ClusterDeletion::AfterRelease && is_uninstalled(&observed.cluster) {
        let volumes = own.and_then(|chart| chart.annotations().get(names::WAIT_FOR_VOLUMES));
        if let Some(workload) = &observed.workload {
            let volumes = volumes.is_some_and(|value| value == "true");
            observed.remaining = remaining(workload, volumes, &uninstalled_themselves(object, &others)).await;
        }
    }
    // Without a release, the installation finds the newest version.
    if let (Cluster::Reachable(Some(_)), Some(Place::Repository(source))) =
        (&observed.cluster, &observed.source)
        && !object.spec.reconcile_strategy.is_install_once()
    {
        observed.newest = context.newest.of(&context.helm, source, now).await;
    }
    Ok(observed)
}

/// The source and the values; or what is wrong with them.
async fn requirements(
    context: &Context,
    object: &HelmReleaseProxy,
    observed: &mut Observed,
) -> Result<Option<Cluster>, ReconcileError> {
    match source::of(context, object).await? {
        Ok(source) => observed.source = Some(source),
        Err(NoSource::Invalid(invalid)) => return Ok(Some(blocked(&invalid))),
        Err(NoSource::Secret { reason, message }) => return Ok(Some(Cluster::NoAccess { reason, message })),
    }
    match release_values::of(context, object).await? {
        Ok(values) => observed.values = values,
        Err(message) => {
            return Ok(Some(Cluster::Blocked { reason: reasons::INSTALL_OR_UPGRADE_FAILED, message }));
        }
    }
    Ok(None)
}

async fn release(
    context: &Context,
    object: &HelmReleaseProxy,
    observed: &mut Observed,
    remembered: &mut Remembered,
    now: DateTime<Utc>,
) -> Result<Cluster, ReconcileError> {
    let no_access = |message: String| Cluster::NoAccess { reason: reasons::GET_KUBECONFIG_FAILED, message };
    let name = format!("{}-kubeconfig", object.spec.cluster_ref.name);
    let api: Api<Secret> = Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default());
    let secret = api.get_opt(&name).await;
    let secret =
        secret.map_err(|source| ReconcileError::Read { what: "the Secret with the kubeconfig", source })?;
    let Some(secret) = secret else { return Ok(no_access(format!("Secret {name} does not exist"))) };
    let value = secret.data.unwrap_or_default().remove("value").unwrap_or_default();
    let kubeconfig = match Kubeconfig::parse(&String::from_utf8_lossy(&value.0)) {
        Ok(kubeconfig) => kubeconfig,
        Err(error) => return Ok(no_access(error.to_string())),
    };
    let key = match key(object, &remembered.fresh.name) {
        Ok(key) => key,
        Err(invalid) => return Ok(blocked(&invalid)),
    };
    let workload = match Workload::connect(kubeconfig).await {
        Ok(workload) => workload,
        Err(error) => return Ok(no_access(error.to_string())),
    };
    let found = workload.find(&key).await;
    (observed.workload, observed.key) = (Some(workload), Some(key));
    Ok(match found {
        Ok(found) => {
            remembered.unreachable_since = None;
            Cluster::Reachable(found)
        }
        Err(error) if error.is_unreachable() => {
            Cluster::Unreachable { since: *remembered.unreachable_since.get_or_insert(now) }
        }
        Err(error) => Cluster::Blocked { reason: reasons::RELEASE_GET_FAILED, message: error.to_string() },
    })
}

fn is_uninstalled(cluster: &Cluster) -> bool {
    match cluster {
        Cluster::Reachable(found) => {
            found.as_ref().is_none_or(|found| found.release.state == ReleaseState::Uninstalled)
        }
        _ => false,
    }
}

/// The releases of other objects that are being deleted, which wait for their own objects: if this one did so too, and one of
/// them waited for this one, neither would end.
fn uninstalled_themselves(object: &HelmReleaseProxy, others: &[HelmReleaseProxy]) -> Vec<ReleaseKey> {
    let others = others
        .iter()
        .filter(|other| other.metadata.deletion_timestamp.is_some() && other.name_any() != object.name_any());
    // Without a name, nothing was installed.
    others.filter_map(|other| key(other, "").ok()).collect()
}

/// Which objects of the Cluster have resources in the cloud. If they cannot be read, they are waited for as well.
async fn remaining(workload: &Workload, volumes: bool, other: &[ReleaseKey]) -> Vec<String> {
    workload.with_cloud_resources(volumes, other).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the objects that have resources in the cloud are not known");
        vec!["unknown, since Services and PersistentVolumes cannot be listed".to_owned()]
    })
}

/// The release; until a generated name is recorded, the one that will be.
fn key(object: &HelmReleaseProxy, generated: &str) -> Result<ReleaseKey, InvalidName> {
    let name = Some(object.spec.release_name.as_str()).filter(|name| !name.is_empty()).unwrap_or(generated);
    Ok(ReleaseKey {
        namespace: Namespace::parse(&object.spec.release_namespace)?,
        name: ReleaseName::parse(name)?,
    })
}

fn blocked(invalid: &InvalidName) -> Cluster {
    Cluster::Blocked { reason: reasons::INSTALL_OR_UPGRADE_FAILED, message: invalid.to_string() }
}

/// The `HelmReleaseProxies` of the same Cluster.
async fn others(
    context: &Context,
    object: &HelmReleaseProxy,
) -> Result<Vec<HelmReleaseProxy>, ReconcileError> {
    let api: Api<HelmReleaseProxy> =
        Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default());
    let of_cluster = format!("{}={}", labels::CLUSTER_NAME, object.spec.cluster_ref.name);
    let listed = api.list(&ListParams::default().labels(&of_cluster)).await;
    Ok(listed.map_err(|source| ReconcileError::Read { what: "HelmReleaseProxies", source })?.items)
}

/// The `HelmChartProxies` of a namespace.
pub(super) async fn charts(
    context: &Context,
    namespace: &str,
) -> Result<Vec<HelmChartProxy>, ReconcileError> {
    let api: Api<HelmChartProxy> = Api::namespaced(context.client.clone(), namespace);
    let listed = api.list(&ListParams::default()).await;
    Ok(listed.map_err(|source| ReconcileError::Read { what: "HelmChartProxies", source })?.items)
}
