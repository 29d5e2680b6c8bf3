//! The comparison of the resources of a release with those in the workload cluster, when it is due.

use std::time::{Duration, Instant};

use capasg_api::conditions::{DRIFTED, Status, get};
use chrono::{DateTime, Utc};
use kube::ResourceExt as _;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::{Context, context::Remembered, events, observe::Observed};
use crate::{
    HelmReleaseProxy,
    decide::release::{Cluster, Drift, DriftFindings, DriftSettings},
    drift::compare,
    helm::ReleaseState,
    preview::documents,
};

/// How long a comparison may take.
const LIMIT: Duration = Duration::from_mins(2);

/// What is requested, and what is remembered; none without the annotation.
pub(super) fn of(
    object: &HelmReleaseProxy,
    remembered: &mut Remembered,
    now: DateTime<Utc>,
) -> Option<Drift> {
    let settings = DriftSettings::of(object.annotations()).transpose()?;
    // The condition is of another process if this one has compared nothing yet.
    if condition(object).is_some() {
        remembered.drift.started(rand::random(), now);
    }
    Some(Drift { settings, memory: remembered.drift.clone() })
}

/// Compares if it is due, and returns whether it did. The release is as requested, and no operation is in progress.
pub(super) async fn check(
    context: &Context,
    object: &HelmReleaseProxy,
    observed: &Observed,
    drift: &mut Drift,
    now: DateTime<Utc>,
) -> bool {
    let (Cluster::Reachable(Some(found)), Ok(settings)) = (&observed.cluster, &drift.settings) else {
        return false;
    };
    let revision = found.release.revision;
    let is_comparable = found.release.state == ReleaseState::Deployed
        && object.metadata.deletion_timestamp.is_none()
        && !object.spec.reconcile_strategy.is_install_once();
    if !is_comparable || !drift.memory.is_due(revision, now) {
        return false;
    }
    let started = Instant::now();
    let findings = match timeout(LIMIT, findings(context, observed, revision, settings)).await {
        Ok(Ok(findings)) => findings,
        Ok(Err(why)) => not_compared(why),
        Err(_) => not_compared(format!("the comparison took more than {} s", LIMIT.as_secs())),
    };
    let outcome = match (findings.drifted.is_empty(), findings.unchecked.is_empty()) {
        (true, true) => "ok",
        (true, false) => "NotCompared",
        (false, _) => "ResourcesChanged",
    };
    context.observer.operated("check-drift", outcome, started.elapsed());
    drift.memory.checked(revision, findings, rand::random(), now);
    if let Some(finding) = drift.condition(revision)
        && finding.status == Status::True
        && condition(object).is_none_or(|known| known != finding.message)
    {
        events::publish_drift(context, object, &finding.message).await;
    }
    true
}

/// The message of the condition.
fn condition(object: &HelmReleaseProxy) -> Option<&str> {
    let conditions = &object.status.as_ref()?.conditions;
    get(conditions, DRIFTED).map(|condition| condition.message.as_str())
}

fn not_compared(why: String) -> DriftFindings {
    DriftFindings { drifted: Vec::new(), unchecked: vec![why] }
}

async fn findings(
    context: &Context,
    observed: &Observed,
    revision: i64,
    settings: &DriftSettings,
) -> Result<DriftFindings, String> {
    let (Some(workload), Some(key)) = (&observed.workload, &observed.key) else {
        return Err("the Cluster is not available".to_owned());
    };
    let manifest = workload.manifest(key, revision).await.map_err(|error| error.to_string())?;
    let resources = parsed(context, &manifest).await?;
    Ok(compare(workload.client(), key.namespace.as_str(), &resources, settings).await)
}

/// The resources of a manifest, read as Helm reads them.
pub(super) async fn parsed(context: &Context, manifest: &str) -> Result<Vec<Map<String, Value>>, String> {
    let documents = documents(manifest);
    let texts: Vec<&str> = documents.iter().map(String::as_str).collect();
    let parsed = context.values.parse(&texts).await.map_err(|error| error.to_string())?;
    let unreadable = |_| "a resource of the chart is not YAML of a map".to_owned();
    parsed.into_iter().map(|one| one.map_err(unreadable)).collect()
}
