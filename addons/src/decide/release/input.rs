//! What a decision is made from.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value};

use super::drift::Drift;
use crate::{HelmReleaseProxySpec, helm::Release, names};

/// What is requested of one release.
#[derive(Debug, Clone)]
pub struct Desired<'a> {
    /// The spec.
    pub spec: &'a HelmReleaseProxySpec,
    /// What identifies the request, such as the generation and `newest`: after a failure, a change of it is tried at once.
    pub request: &'a str,
    /// The values, as Helm reads them.
    pub values: &'a Map<String, Value>,
    /// The newest version of the chart that the spec allows, if it was read from the repository.
    pub newest: Option<&'a str>,
    /// The digest of the archive that the chart is in, if it is not in a repository.
    pub archive: Option<&'a str>,
    /// When the object was created: in a move, after an operation of the management cluster that it was in before.
    pub created_at: Option<DateTime<Utc>>,
    /// The ID that was recorded for the release.
    pub id: Option<&'a str>,
    /// Whether the object says that the release was installed.
    pub is_installed: bool,
    /// The version of the application that the object says.
    pub app_version: Option<&'a str>,
    /// Whether the release stays in the Cluster when the object is deleted.
    pub is_orphaned: bool,
    /// Whether nothing may be changed: the Cluster or the object is paused, or is being moved.
    pub is_paused: bool,
    /// Whether the Cluster is being deleted.
    pub cluster_deletion: ClusterDeletion,
    /// Since when the object is being deleted.
    pub deleted_at: Option<DateTime<Utc>>,
    /// The `HelmReleaseProxy` that the release of this name belongs to, if it is another one.
    pub claimed_by: Option<&'a str>,
    /// The `HelmReleaseProxies` whose releases are uninstalled before this one, if it is being deleted.
    pub uninstalled_first: &'a [String],
    /// The objects of the Cluster that are waited for once the release is uninstalled, by kind and name.
    pub remaining: &'a [String],
    /// What is requested and known of drift, if it is requested.
    pub drift: Option<&'a Drift>,
    /// How long an operation of another actor may be in progress.
    pub operation_limit: TimeDelta,
    /// The ID and the name for a release that has none: the same until they are recorded.
    pub fresh: &'a Fresh,
}

/// Whether a Cluster is being deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClusterDeletion {
    /// It is not.
    #[default]
    NotRequested,
    /// It is, whatever happens to the release.
    Requested,
    /// It is, and the `HelmChartProxy` asks that the release is uninstalled before.
    AfterRelease,
}

/// What is recorded for a release that has neither an ID nor a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fresh {
    /// A random ID: a label value.
    pub id: String,
    /// A generated name.
    pub name: String,
}

/// What was observed of the Cluster and the release.
#[derive(Debug, Clone, PartialEq)]
pub enum Cluster {
    /// The Cluster does not exist.
    Missing,
    /// Its control plane has not accepted requests yet.
    NotInitialized,
    /// Its kubeconfig, or what the repository requires, does not exist or is rejected.
    NoAccess {
        /// The reason of the condition `ClusterAvailable`, one of [`crate::kinds::conditions::reasons`].
        reason: &'static str,
        /// The message.
        message: String,
    },
    /// Its API server does not respond.
    Unreachable {
        /// Since when.
        since: DateTime<Utc>,
    },
    /// Its API server responds, but nothing can be done.
    Blocked {
        /// The reason of the condition `HelmReleaseReady`, one of [`crate::kinds::conditions::reasons`].
        reason: &'static str,
        /// The message.
        message: String,
    },
    /// Its API server responds.
    Reachable(Option<Found>),
}

impl Cluster {
    /// The release, if it was found.
    pub(crate) fn found(&self) -> Option<&Found> {
        match self {
            Self::Reachable(found) => found.as_ref(),
            _ => None,
        }
    }

    /// Whether no event announces the end of what holds up the release: an API server that does not respond, or a Secret of the
    /// repository.
    pub(crate) fn is_retried(&self) -> bool {
        matches!(self, Self::NoAccess { .. } | Self::Unreachable { .. } | Self::Blocked { .. })
    }

    /// For how long the API server has not responded. Each attempt takes a worker for seconds: the longer, the fewer there are.
    pub(crate) fn unreachable_for(&self, now: DateTime<Utc>) -> TimeDelta {
        match self {
            Self::Unreachable { since } => now - *since,
            _ => TimeDelta::zero(),
        }
    }
}

/// A release that exists.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its current revision.
    pub release: Release,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// When the current revision was created.
    pub created_at: DateTime<Utc>,
}

impl Found {
    /// Whether the current revision is of an operation of ours: a manual upgrade inherits the label of the revision before.
    /// Ours ends with the manager, so that one which left the revision pending is no longer in progress.
    pub(super) fn is_of_our_operation(&self) -> bool {
        self.labels.get(names::RELEASE_REVISION).is_some_and(|it| *it == self.release.revision.to_string())
    }
}
