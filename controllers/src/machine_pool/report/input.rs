//! What a report is made of.

use capasg_api::{conditions::Finding, pool::RolloutStatus};
use capasg_cloud::{CloudError, InstanceTypes, QueueState};
use chrono::{DateTime, Utc};

use crate::machine_pool::model::other_tags::OtherTags;
use crate::machine_pool::model::ownership::template_not_owned;
use crate::machine_pool::model::{Blocker, Desired, Observed, Plan, PoolMemory, PoolObjects, References};
use crate::machine_pool::report::nodes::Nodes;

/// Everything that a report is made of.
pub struct Input<'a> {
    /// The pool and the Kubernetes objects around it.
    pub objects: &'a PoolObjects,
    /// The desired state; `None` while it is not known.
    pub desired: Option<&'a Desired>,
    /// The facts; `None` while AWS was not read.
    pub observed: Option<&'a Observed>,
    /// The plan.
    pub plan: &'a Plan,
    /// What `status.rollout` reports.
    pub rollout_status: Option<RolloutStatus>,
    /// What the references of the spec resolved to.
    pub references: &'a References,
    /// The instance types of the spec as AWS describes them; `None` while they were not read.
    pub types: Option<&'a InstanceTypes>,
    /// Whether AWS events of the region are received; `None` while that is not known.
    pub queue: Option<QueueState>,
    /// What observe found missing, one finding per condition.
    pub findings: Vec<Finding>,
    /// The time.
    pub now: DateTime<Utc>,
    /// The last failure to reach AWS.
    pub unreachable: Option<CloudError>,
}

impl Input<'_> {
    /// Whether `spec.changePolicy` is `Preview`, and the pool is not being deleted.
    #[must_use]
    pub fn previews(&self) -> bool {
        self.desired.is_some_and(|desired| desired.previews) && !self.objects.is_deleting()
    }

    /// Whether the group of the pool's name is not owned by the pool. Then its facts are not reported.
    #[must_use]
    pub fn is_not_owned(&self) -> bool {
        self.plan.blocker.as_ref().is_some_and(Blocker::is_not_owned)
    }

    /// The facts, if the pool owns a group.
    #[must_use]
    pub fn owned(&self) -> Option<&Observed> {
        self.observed.filter(|observed| observed.group.present().is_some() && !self.is_not_owned())
    }

    /// The Nodes of the pool's instances; `None` while there is no group of the pool.
    #[must_use]
    pub fn nodes(&self, memory: &PoolMemory) -> Option<Nodes> {
        let (observed, desired) = self.owned().zip(self.desired)?;
        Some(Nodes::of(self.objects, desired, observed, self.plan, memory, self.now))
    }

    /// The launch template of the pool's name, if the pool does not own it.
    #[must_use]
    pub fn template_not_owned(&self) -> Option<OtherTags> {
        let (desired, observed) = self.desired.zip(self.observed)?;
        template_not_owned(desired, observed)
    }
}
