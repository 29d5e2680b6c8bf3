//! The conditions of a `HelmReleaseProxy`, with the types and reasons of Cluster API's add-on provider for Helm (X1).

use capasg_api::{conditions::Finding, names::listed};
use chrono::{DateTime, SecondsFormat, Utc};

use super::{
    backoff::Memory,
    change::Change,
    input::{Cluster, ClusterDeletion, Desired},
    step::{Removal, Step, Wait},
};
use crate::kinds::conditions::{CLUSTER_AVAILABLE, RELEASE_READY, reasons};

/// The conditions.
pub(super) fn conditions(
    desired: &Desired<'_>,
    cluster: &Cluster,
    memory: &Memory,
    step: &Step,
) -> Vec<Finding> {
    let mut all = vec![available(cluster), ready(desired, cluster, memory, step)];
    if let (Some(drift), Cluster::Reachable(Some(found))) = (desired.drift, cluster) {
        all.extend(drift.condition(found.release.revision));
    }
    all
}

fn available(cluster: &Cluster) -> Finding {
    let not = |reason, message: String| Finding::new(CLUSTER_AVAILABLE, false, reason, message);
    match cluster {
        Cluster::Missing => not(reasons::GET_CLUSTER_FAILED, "the Cluster does not exist".to_owned()),
        Cluster::NotInitialized => not(
            reasons::CONTROL_PLANE_NOT_AVAILABLE,
            "the control plane of the Cluster is not initialized yet".to_owned(),
        ),
        Cluster::NoAccess { reason, message } => not(reason, message.clone()),
        Cluster::Unreachable { since, .. } => {
            let message = format!("the API server of the Cluster has not responded since {}", time(*since));
            not(reasons::CLUSTER_UNREACHABLE, message)
        }
        Cluster::Reachable(_) | Cluster::Blocked { .. } => {
            Finding::plain(CLUSTER_AVAILABLE, true, reasons::CLUSTER_AVAILABLE)
        }
    }
}

fn ready(desired: &Desired<'_>, cluster: &Cluster, memory: &Memory, step: &Step) -> Finding {
    let not = |reason, message: String| Finding::new(RELEASE_READY, false, reason, message);
    let is_deleting = desired.deleted_at.is_some();
    if let (Cluster::Blocked { reason, message }, false) = (cluster, is_deleting) {
        return not(reason, message.clone());
    }
    match step {
        Step::Nothing | Step::RecordInstalled => Finding::plain(RELEASE_READY, true, reasons::RELEASE_READY),
        Step::Release => not(reasons::RELEASE_DELETED, left(desired, cluster).unwrap_or_default()),
        Step::Uninstall(Removal::Deleted) => {
            not(reasons::RELEASE_PENDING, "the release is being uninstalled".to_owned())
        }
        Step::Uninstall(Removal::OtherChart) => {
            not(reasons::RELEASE_PENDING, "the release of another chart is uninstalled first".to_owned())
        }
        Step::Uninstall(Removal::Interrupted) => {
            not(reasons::RELEASE_PENDING, "an interrupted uninstallation is completed first".to_owned())
        }
        Step::Record { .. } | Step::Install { .. } => {
            not(reasons::PREPARING, "the release is being installed".to_owned())
        }
        Step::Upgrade(change) => not(reasons::RELEASE_PENDING, upgrade(change)),
        Step::MarkFailed { revision } => not(
            reasons::RELEASE_PENDING,
            format!("the operation on revision {revision} was interrupted; it is repeated"),
        ),
        Step::Reject(conflict) => not(reasons::INSTALL_OR_UPGRADE_FAILED, conflict.to_string()),
        Step::Wait(Wait::Operation(until)) => {
            let message = format!(
                "another actor's operation on the release is in progress, until {} at most",
                time(*until)
            );
            not(reasons::RELEASE_PENDING, message)
        }
        Step::Wait(Wait::Unreachable(until)) => {
            let message = format!(
                "the release cannot be uninstalled now; it is left in the cluster after {}",
                time(*until)
            );
            not(reasons::DELETION_FAILED, message)
        }
        Step::Wait(Wait::Dependents(until)) => {
            let first: Vec<&str> = desired.uninstalled_first.iter().map(String::as_str).collect();
            let message = format!(
                "releases that depend on this one are uninstalled first, until {} at most: {}",
                time(*until),
                listed(&first)
            );
            not(reasons::RELEASE_PENDING, message)
        }
        Step::Wait(Wait::Remaining(_)) => not(reasons::CLOUD_RESOURCES_REMAIN, remaining(desired)),
        Step::Wait(Wait::Backoff(_)) => {
            let reason =
                if is_deleting { reasons::DELETION_FAILED } else { reasons::INSTALL_OR_UPGRADE_FAILED };
            let failure = memory.failure(desired.request);
            not(reason, failure.map_or_else(String::new, |(class, message)| format!("{class}: {message}")))
        }
        Step::Wait(Wait::Cluster) => not(
            reasons::PREPARING,
            "the release waits for the Cluster; see the condition ClusterAvailable".to_owned(),
        ),
    }
}

/// What is left of a release whose object is deleted, if anything is.
fn left(desired: &Desired<'_>, cluster: &Cluster) -> Option<String> {
    if desired.id.is_none() && !desired.is_installed || desired.claimed_by.is_some() {
        return None;
    }
    match cluster {
        Cluster::NotInitialized
        | Cluster::NoAccess { .. }
        | Cluster::Blocked { .. }
        | Cluster::Unreachable { .. } => {
            Some("the release is left in the cluster, which could not be reached".to_owned())
        }
        Cluster::Reachable(Some(_))
            if desired.is_orphaned && desired.cluster_deletion != ClusterDeletion::AfterRelease =>
        {
            Some("the release is left in the cluster, as the deletion policy requests".to_owned())
        }
        Cluster::Missing | Cluster::Reachable(_) => {
            (!desired.remaining.is_empty()).then(|| remaining(desired))
        }
    }
}

/// Without times: the Runtime Extension repeats it.
fn remaining(desired: &Desired<'_>) -> String {
    let names: Vec<&str> = desired.remaining.iter().map(String::as_str).collect();
    format!("objects of the Cluster that have resources in the cloud remain: {}", listed(&names))
}

fn upgrade(change: &Change) -> String {
    match change {
        Change::Failed => "the last operation failed; the release is being upgraded".to_owned(),
        Change::Version { from, to } => format!("the release is being upgraded from version {from} to {to}"),
        Change::Values => "the release is being upgraded: its values differ".to_owned(),
        Change::Archive => "the release is being upgraded: its chart archive differs".to_owned(),
        Change::Options => "the release is being upgraded: its options differ".to_owned(),
        Change::Drift => "the release is being upgraded: another actor changed its resources".to_owned(),
        Change::TakenOver => "the release is being upgraded: it is taken over".to_owned(),
    }
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}
