//! What hooks need of the outside: a reader of Kubernetes objects, a publisher of events, and an observer for metrics.

use std::time::Duration;

use async_trait::async_trait;
use capasg_api::{ASGMachinePool, names::addons::Phase};
use serde_json::Value;
use thiserror::Error;

use crate::{
    blocks::Record,
    protocol::{Cluster, ClusterKey, Hook},
};

/// The objects could not be read. The cause is only logged: errors of the API server may differ between two calls, and
/// messages of hooks must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{kind} cannot be read")]
pub struct ReadError {
    /// The plural of the kind.
    pub kind: &'static str,
}

/// Reads Kubernetes objects. Gates only read.
#[async_trait]
pub trait Kubernetes: Send + Sync {
    /// The Cluster that a request claims to be for, as the API server has it; `None` if there is none of the same namespace,
    /// name and UID.
    ///
    /// # Errors
    /// If it cannot be read.
    async fn cluster(&self, claimed: &Cluster) -> Result<Option<Cluster>, ReadError>;

    /// The pools of a Cluster, sorted by name; none if the kind is not installed.
    ///
    /// # Errors
    /// If they cannot be read.
    async fn pools(&self, cluster: &ClusterKey) -> Result<PoolList, ReadError>;

    /// The Machines of a Cluster, sorted by name.
    ///
    /// # Errors
    /// If they cannot be read.
    async fn machines(&self, cluster: &ClusterKey) -> Result<Vec<MachineFacts>, ReadError>;

    /// The `HelmChartProxies` that select a Cluster and ask for a phase, sorted by name; none if the kind is not installed.
    ///
    /// # Errors
    /// If they cannot be read.
    async fn addons(&self, cluster: &ClusterKey, phase: Phase) -> Result<Vec<AddonFacts>, ReadError>;

    /// An object of a topology; `None` if there is none, or if its kind is not installed.
    ///
    /// # Errors
    /// If it cannot be read.
    async fn object(&self, kind: Kind, namespace: &str, name: &str) -> Result<Option<Value>, ReadError>;

    /// The record of what blocks a Cluster; `None` if there is none, or if this version of the extension cannot read it.
    ///
    /// # Errors
    /// If the event that holds it cannot be read.
    async fn record(&self, cluster: &ClusterKey) -> Result<Option<Record>, ReadError>;
}

/// The pools of a Cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PoolList {
    /// Those that this version of the extension can decode.
    pub pools: Vec<ASGMachinePool>,
    /// The names of the others: another version of CAPASG wrote them.
    pub undecoded: Vec<String>,
}

impl From<Vec<ASGMachinePool>> for PoolList {
    fn from(pools: Vec<ASGMachinePool>) -> Self {
        Self { pools, undecoded: Vec::new() }
    }
}

/// A kind of which single objects are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The class of a topology.
    ClusterClass,
    /// The template of pools of a class.
    PoolTemplate,
    /// The template of the `AWSCluster` of a class.
    ClusterTemplate,
    /// The template of the `AWSManagedControlPlane` of a class.
    ControlPlaneTemplate,
}

/// What hooks read of a Machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// The name.
    pub name: String,
    /// Whether the Machine belongs to the control plane.
    pub control_plane: bool,
    /// Whether an `ASGMachine` represents its instance.
    pub of_pool: bool,
    /// Whether the Machine is being deleted.
    pub deleting: bool,
    /// The version that the kubelet reports (`status.nodeInfo.kubeletVersion`).
    pub kubelet_version: Option<String>,
}

/// What hooks read of a `HelmChartProxy` that asks for a phase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddonFacts {
    /// The name.
    pub name: String,
    /// The reason of its condition `HelmReleaseProxySpecsUpToDate`; empty without one.
    pub reason: String,
    /// Its release on the Cluster, if there is one.
    pub release: Option<ReleaseFacts>,
}

/// What hooks read of a `HelmReleaseProxy`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReleaseFacts {
    /// The name.
    pub name: String,
    /// Whether the release is ready for its current spec.
    pub is_ready: bool,
    /// The reason of its condition `HelmReleaseReady`; empty without one.
    pub reason: String,
    /// The Kubernetes version that its spec is for.
    pub kubernetes_version: Option<String>,
    /// The version that was requested last.
    pub next: Option<String>,
    /// Which objects with resources in the cloud remain although the release is uninstalled, in words.
    pub remaining: Option<String>,
}

/// A request to the add-on provider: to change a release for the next step of the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseRequest {
    /// The namespace of the `HelmReleaseProxy`.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The Kubernetes version of the step.
    pub next: String,
}

/// An event about a Cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The Cluster.
    pub cluster: ClusterKey,
    /// The hook.
    pub hook: Hook,
    /// One of [`crate::names::events`].
    pub reason: &'static str,
    /// The text.
    pub message: String,
    /// Whether it is a warning.
    pub warning: bool,
    /// Whether it reports a change, and is published although the same event was published shortly before.
    pub is_change: bool,
}

impl Notice {
    /// An event that is no warning.
    #[must_use]
    pub const fn new(cluster: ClusterKey, hook: Hook, reason: &'static str, message: String) -> Self {
        Self { cluster, hook, reason, message, warning: false, is_change: false }
    }

    /// The same as a warning if `warning` is set.
    #[must_use]
    pub fn warning(self, warning: bool) -> Self {
        Self { warning, ..self }
    }

    /// The same as the report of a change if `is_change` is set.
    #[must_use]
    pub fn of_change(self, is_change: bool) -> Self {
        Self { is_change, ..self }
    }
}

/// Writes events and requests, in the background: no answer waits for it.
pub trait Journal: Send + Sync {
    /// Publishes an event.
    fn publish(&self, notice: Notice);

    /// Writes the record of a Cluster.
    fn record(&self, cluster: &ClusterKey, record: &Record);

    /// Writes a request about a Cluster. One that is lost is written at the next call of the hook.
    fn request(&self, cluster: &ClusterKey, request: ReleaseRequest);
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The call succeeded, and does not block.
    Success,
    /// The hook blocks.
    Blocked,
    /// The call failed.
    Failure,
    /// The annotation skipped the hook.
    Skipped,
    /// The settings are invalid.
    InvalidSettings,
    /// The answer was not ready in time.
    NotReady,
    /// The handler panicked.
    Panicked,
}

impl Outcome {
    /// The value of the label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::Blocked => "Blocked",
            Self::Failure => "Failure",
            Self::Skipped => "Skipped",
            Self::InvalidSettings => "InvalidSettings",
            Self::NotReady => "NotReady",
            Self::Panicked => "Panicked",
        }
    }
}

/// Receives what metrics count.
pub trait Observer: Send + Sync {
    /// A call was answered.
    fn called(&self, hook: Hook, outcome: Outcome, took: Duration);

    /// A block reached its deadline.
    fn timed_out(&self, hook: Hook);
}
