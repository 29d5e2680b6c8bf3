//! The input of decide.

use chrono::{DateTime, Utc};

use crate::ObjectKey;
use crate::machine_pool::model::revision::revision;
use crate::machine_pool::model::stopped_rollout::stops;
use crate::machine_pool::model::{Desired, Facts, Observed, PoolMemory, PoolObjects, ReplicaOwner};

/// The input of decide: everything that decisions depend on.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The pool and the Kubernetes objects around it.
    pub objects: &'a PoolObjects,
    /// The desired state.
    pub desired: &'a Desired,
    /// The facts.
    pub observed: &'a Observed,
    /// What this process remembers of the pool.
    pub memory: &'a PoolMemory,
    /// The time.
    pub now: DateTime<Utc>,
}

impl<'a> Input<'a> {
    /// The input for a pool in a state with facts.
    #[must_use]
    pub fn of(
        objects: &'a PoolObjects,
        facts: &'a Facts,
        memory: &'a PoolMemory,
        now: DateTime<Utc>,
    ) -> Self {
        Self { objects, desired: &facts.desired, observed: &facts.observed, memory, now }
    }

    /// When an instance was first observed as terminating or missing.
    #[must_use]
    pub fn first_seen(&self, id: &str) -> DateTime<Utc> {
        self.memory.sightings.terminating_since(id).unwrap_or(self.now)
    }

    /// The key of a Machine or ASGMachine of the pool.
    #[must_use]
    pub fn key(&self, name: &str) -> ObjectKey {
        self.objects.key.sibling(name)
    }

    /// Whether the view of the group is recent enough to lower capacity or to choose instances. If another actor
    /// manages the replicas, only a read for this decision is: a recent write of theirs must not be reverted (G2).
    #[must_use]
    pub fn fresh_group(&self) -> bool {
        match self.desired.owner {
            ReplicaOwner::MachinePool => self.observed.fresh_group,
            _ => self.observed.group_was_read,
        }
    }

    /// Whether the rollout is stopped: by the annotation of the pool, or by one that was just written and not read back
    /// yet.
    #[must_use]
    pub fn is_rollout_stopped(&self) -> bool {
        let Some(revision) = revision(self.desired, self.observed) else { return false };
        [self.desired.stopped.as_ref(), self.memory.rollout.stopped()]
            .into_iter()
            .flatten()
            .any(|stopped| stops(stopped, &revision))
    }
}
