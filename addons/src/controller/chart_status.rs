//! The status of a `HelmChartProxy`.

use capasg_api::{
    conditions::{self, Finding},
    names::{FIELD_MANAGER, listed},
};
use chrono::{DateTime, Utc};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::{Context, ReconcileError};
use crate::{
    HelmChartProxy, HelmReleaseProxy,
    decide::FanOut,
    kinds::{
        HelmChartProxyStatus,
        conditions::{RELEASES_READY, SPECS_UP_TO_DATE, reasons, set_ready},
    },
};

/// Whether all releases are ready.
fn releases_ready(releases: &[HelmReleaseProxy]) -> Finding {
    let is_ready = |release: &&HelmReleaseProxy| {
        let status = release.status.as_ref();
        status.is_some_and(|status| conditions::is_true(&status.conditions, conditions::READY))
    };
    let names: Vec<String> =
        releases.iter().filter(|release| !is_ready(release)).map(ResourceExt::name_any).collect();
    if names.is_empty() {
        let reason = if releases.is_empty() { reasons::RELEASE_READY } else { reasons::INFO_REPORTED };
        return Finding::plain(RELEASES_READY, true, reason);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let message = format!("HelmReleaseProxies are not ready: {}; see their conditions", listed(&names));
    Finding::new(RELEASES_READY, false, reasons::ISSUES_REPORTED, message)
}

/// The condition for an error that lasts. What the next attempt corrects is not reported.
pub(super) fn failure(error: &ReconcileError) -> Option<Finding> {
    let reason = match error {
        ReconcileError::Write { .. } => reasons::RELEASE_PROXY_CREATION_FAILED,
        _ => reasons::CLUSTER_SELECTION_FAILED,
    };
    error.is_lasting().then(|| Finding::new(SPECS_UP_TO_DATE, false, reason, error.to_string()))
}

/// Reports why nothing follows from the `HelmChartProxy`.
pub(super) async fn report_failure(
    context: &Context,
    proxy: &HelmChartProxy,
    error: &ReconcileError,
    now: DateTime<Utc>,
) {
    let Some(finding) = failure(error) else { return };
    let generation = proxy.metadata.generation.unwrap_or_default();
    let mut status = proxy.status.clone().unwrap_or_default();
    conditions::set(&mut status.conditions, finding, generation, now);
    set_ready(&mut status.conditions, &[SPECS_UP_TO_DATE, RELEASES_READY], generation, now);
    status.observed_generation = Some(generation);
    if let Err(error) = write(context, proxy, status).await {
        tracing::debug!(%error, "the failure of a reconcile cannot be reported");
    }
}

/// Writes the status if it changes, and returns the object with the resource version that it has then.
pub(super) async fn report(
    context: &Context,
    proxy: &HelmChartProxy,
    fan_out: &FanOut,
    releases: &[HelmReleaseProxy],
    now: DateTime<Utc>,
) -> Result<HelmChartProxy, ReconcileError> {
    let generation = proxy.metadata.generation.unwrap_or_default();
    let mut conditions = proxy.status.clone().unwrap_or_default().conditions;
    conditions::set(&mut conditions, fan_out.condition.clone(), generation, now);
    conditions::set(&mut conditions, releases_ready(releases), generation, now);
    set_ready(&mut conditions, &[SPECS_UP_TO_DATE, RELEASES_READY], generation, now);
    let new = HelmChartProxyStatus {
        conditions,
        matching_clusters: fan_out.matching.clone(),
        observed_generation: Some(generation),
    };
    write(context, proxy, new).await
}

async fn write(
    context: &Context,
    proxy: &HelmChartProxy,
    new: HelmChartProxyStatus,
) -> Result<HelmChartProxy, ReconcileError> {
    if proxy.status.as_ref() == Some(&new) {
        return Ok(proxy.clone());
    }
    let api: Api<HelmChartProxy> =
        Api::namespaced(context.client.clone(), &proxy.namespace().unwrap_or_default());
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let written =
        api.patch_status(&proxy.name_any(), &parameters, &Patch::Merge(json!({"status": new}))).await;
    written.map_err(|source| ReconcileError::Write { what: "the status of the HelmChartProxy", source })
}
