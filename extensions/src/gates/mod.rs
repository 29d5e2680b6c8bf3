//! What hooks consult before a step of a Cluster's lifecycle: gates, which only read, and what users decided.

mod addons;
mod aws;
mod identity;
mod policies;
mod pools;
#[cfg(test)]
mod tests;
mod verify;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

pub use self::{addons::Addons, policies::policies, pools::Pools};
pub(crate) use self::{aws::missing_images, identity::identity_of};
use crate::{
    blocks::Cause,
    lookups::Lookups,
    ports::{Kubernetes, ReadError, ReleaseRequest},
    protocol::{Cluster, ClusterKey, Hook, UpgradeSteps},
    settings::Settings,
};

/// A step of a Cluster's lifecycle, which a hook precedes or follows.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The hook.
    pub hook: Hook,
    /// The Cluster as the request has it.
    pub cluster: &'a Cluster,
    /// Namespace, name and UID of the Cluster.
    pub key: &'a ClusterKey,
    /// The version of the step; empty where there is none.
    pub version: &'a str,
    /// The steps that follow.
    pub following: UpgradeSteps<'a>,
    /// The settings.
    pub settings: &'a Settings,
    /// Whether the API server has the Cluster as it is here.
    pub is_confirmed: bool,
    /// The time of the call.
    pub now: DateTime<Utc>,
}

impl Step<'_> {
    /// The version of the next step of the control plane, or of its last one after it. `BeforeClusterUpgrade` has the version
    /// of the whole upgrade.
    #[must_use]
    pub fn control_plane_version(&self) -> &str {
        let first = self.following.control_plane.first().filter(|_| self.hook == Hook::BeforeClusterUpgrade);
        first.map_or(self.version, |step| step.version.as_str())
    }
}

/// What gates read.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// Objects of the management cluster.
    pub kubernetes: &'a dyn Kubernetes,
    /// AWS; `None` without access to it.
    pub lookups: Option<&'a Lookups>,
}

/// A reason not to continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// The cause.
    pub cause: Cause,
    /// What blocks, in words that depend on facts alone.
    pub message: String,
}

/// What a gate found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Whether the Cluster has objects of the gate. A Cluster that concerns no gate is never delayed.
    pub concerned: bool,
    /// What blocks.
    pub blockers: Vec<Blocker>,
    /// What was verified after a step, if nothing blocks: "all nodes of" these report the version.
    pub verified: Vec<&'static str>,
    /// What users should know although it does not block: the reason and the text of an event.
    pub notes: Vec<(&'static str, String)>,
    /// What the manager of the objects has to know, once nothing else blocks.
    pub requests: Vec<ReleaseRequest>,
}

/// Objects that a step may have to wait for. The manager of the objects acts; a gate only reads.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Checks the objects of a Cluster. A kind that is not installed is no gate.
    ///
    /// # Errors
    /// If the objects cannot be read.
    async fn check(&self, step: &Step<'_>, sources: Sources<'_>) -> Result<Findings, ReadError>;

    /// What counts if the objects are not read: `why` is the same in each call, and for users.
    fn unread(&self, step: &Step<'_>, why: String) -> Findings;
}
