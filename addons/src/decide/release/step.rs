//! What a decision is.

use capasg_api::conditions::Finding;
use chrono::{DateTime, Utc};

use super::{change::Change, ownership::Conflict};

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing: the release is as requested, or nothing may be changed.
    Nothing,
    /// Nothing yet.
    Wait(Wait),
    /// Records ID and name on the `HelmReleaseProxy`.
    Record {
        /// The ID.
        id: String,
        /// The generated name, if the spec has none.
        name: Option<String>,
    },
    /// Records that the release was installed.
    RecordInstalled,
    /// Installs the release. `replaces` is set if the history of an uninstalled release remains.
    Install {
        /// Whether a history remains.
        replaces: bool,
    },
    /// Upgrades the release.
    Upgrade(Change),
    /// Sets the state of the current revision to failed: an operation on it was interrupted.
    MarkFailed {
        /// The revision.
        revision: i64,
    },
    /// Uninstalls the release.
    Uninstall(Removal),
    /// Removes the finalizer.
    Release,
    /// Leaves the release of another actor unchanged.
    Reject(Conflict),
}

impl Step {
    /// The operation on the release, for logs and metrics; empty if there is none.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Install { .. } => "install",
            Self::Upgrade(_) => "upgrade",
            Self::Uninstall(_) => "uninstall",
            Self::MarkFailed { .. } => "mark-failed",
            Self::Nothing
            | Self::Wait(_)
            | Self::Record { .. }
            | Self::RecordInstalled
            | Self::Release
            | Self::Reject(_) => "",
        }
    }
}

/// Why nothing is done yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until the Cluster changes.
    Cluster,
    /// Until this time: the last attempt failed.
    Backoff(DateTime<Utc>),
    /// Until this time at most: an operation of another actor is in progress.
    Operation(DateTime<Utc>),
    /// Until this time at most: the API server does not respond, and the object is being deleted.
    Unreachable(DateTime<Utc>),
    /// Until this time at most: releases that depend on this one are uninstalled first.
    Dependents(DateTime<Utc>),
    /// Until this time at most: objects of the Cluster have resources in the cloud.
    Remaining(DateTime<Utc>),
}

/// Why a release is uninstalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// The `HelmReleaseProxy` is being deleted.
    Deleted,
    /// The release has another chart. It is installed again.
    OtherChart,
    /// An uninstallation was interrupted. It is completed first.
    Interrupted,
}

/// A decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What is done.
    pub step: Step,
    /// The conditions `ClusterAvailable`, `HelmReleaseReady`, and `Drifted` if it is known; none in a pause.
    pub conditions: Vec<Finding>,
}
