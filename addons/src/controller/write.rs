//! Writes to a `HelmReleaseProxy`. Each names the resource version that was read, so that it fails if another actor has
//! changed the object; the status alone is written without it.

use capasg_api::{
    conditions,
    names::{FIELD_MANAGER, addons::NEXT_KUBERNETES_VERSION},
};
use chrono::{DateTime, Utc};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::ReconcileError;
use crate::{
    HelmReleaseProxy,
    decide::release::{Cluster, Decision},
    kinds::{
        HelmReleaseProxyStatus,
        conditions::{CLUSTER_AVAILABLE, RELEASE_READY, set_ready},
    },
    names,
};

fn api(client: &Client, object: &HelmReleaseProxy) -> Api<HelmReleaseProxy> {
    Api::namespaced(client.clone(), &object.namespace().unwrap_or_default())
}

/// The status after a decision.
fn status(
    object: &HelmReleaseProxy,
    cluster: &Cluster,
    decision: &Decision,
    now: DateTime<Utc>,
) -> HelmReleaseProxyStatus {
    let generation = object.metadata.generation.unwrap_or_default();
    let mut status = object.status.clone().unwrap_or_default();
    for finding in &decision.conditions {
        conditions::set(&mut status.conditions, finding.clone(), generation, now);
    }
    set_ready(&mut status.conditions, &[CLUSTER_AVAILABLE, RELEASE_READY], generation, now);
    if !object.annotations().contains_key(names::DRIFT) {
        status.conditions.retain(|condition| condition.type_ != conditions::DRIFTED);
    }
    // With InstallOnce, others may change the release once it is installed: the status stays that of the installation (X1).
    let is_left = object.spec.reconcile_strategy.is_install_once() && object.is_installed();
    if let (Cluster::Reachable(found), false) = (cluster, is_left) {
        status.status = found.as_ref().map(|found| found.release.state.as_str().to_owned());
        status.revision = found.as_ref().map(|found| found.release.revision);
    }
    status.observed_generation = Some(generation);
    status
}

/// Writes the status if it changes, and returns the object with the resource version that it has then.
pub(super) async fn report(
    client: &Client,
    object: &HelmReleaseProxy,
    cluster: &Cluster,
    decision: &Decision,
    now: DateTime<Utc>,
) -> Result<HelmReleaseProxy, ReconcileError> {
    let new = status(object, cluster, decision, now);
    if object.status.as_ref() == Some(&new) {
        return Ok(object.clone());
    }
    let mut patch = json!({"status": new});
    // The Runtime Extension writes it, perhaps since the object was read.
    if let Some(status) = patch["status"].as_object_mut() {
        status.remove(NEXT_KUBERNETES_VERSION);
    }
    // A merge patch removes only what it names.
    for field in ["status", "revision"] {
        if patch["status"].get(field).is_none() {
            patch["status"][field] = Value::Null;
        }
    }
    let (name, parameters) = (object.name_any(), parameters());
    let written = api(client, object).patch_status(&name, &parameters, &Patch::Merge(patch)).await;
    written.map_err(|source| ReconcileError::Write { what: "the status", source })
}

fn parameters() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// Records the ID, and the name if it is generated. Returns the object with them.
pub(super) async fn record(
    client: &Client,
    object: &HelmReleaseProxy,
    id: &str,
    name: Option<&str>,
) -> Result<HelmReleaseProxy, ReconcileError> {
    let mut patch = json!({"metadata": {"annotations": {names::RELEASE_ID: id}}});
    if let Some(name) = name {
        patch["metadata"]["annotations"][names::RELEASE_NAME_GENERATED] = json!("true");
        patch["spec"] = json!({"releaseName": name});
    }
    change(client, object, "the ID of the release", patch).await
}

/// Records that the release was installed, and the version of the application in its chart. Returns the object with that.
pub(super) async fn record_installed(
    client: &Client,
    object: &HelmReleaseProxy,
    cluster: &Cluster,
) -> Result<HelmReleaseProxy, ReconcileError> {
    let app_version = cluster.found().map(|found| found.release.chart.shown_app_version());
    let app_version = app_version.filter(|version| !version.is_empty());
    let annotations = json!({names::RELEASE_INSTALLED: "true", names::APP_VERSION: app_version});
    let patch = json!({"metadata": {"annotations": annotations}});
    change(client, object, "the record of the installation", patch).await
}

/// Adds or removes the finalizer.
pub(super) async fn finalizer(
    client: &Client,
    object: &HelmReleaseProxy,
    is_set: bool,
) -> Result<(), ReconcileError> {
    let mut all = object.finalizers().to_vec();
    all.retain(|finalizer| finalizer != names::RELEASE_FINALIZER);
    if is_set {
        all.push(names::RELEASE_FINALIZER.to_owned());
    }
    change(client, object, "the finalizer", json!({"metadata": {"finalizers": all}})).await.map(drop)
}

async fn change(
    client: &Client,
    object: &HelmReleaseProxy,
    what: &'static str,
    mut patch: Value,
) -> Result<HelmReleaseProxy, ReconcileError> {
    patch["metadata"]["resourceVersion"] = json!(object.metadata.resource_version);
    let written = api(client, object).patch(&object.name_any(), &parameters(), &Patch::Merge(patch)).await;
    written.map_err(|source| ReconcileError::Write { what, source })
}
