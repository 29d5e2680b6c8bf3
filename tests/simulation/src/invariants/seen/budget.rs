//! What was seen of disruptions.

use std::collections::{BTreeMap, BTreeSet};

use capasg_controllers::ObjectKey;
use chrono::{DateTime, Utc};

/// What was seen of disruptions.
#[derive(Default)]
pub(crate) struct Seen {
    /// When an instance began to end: when its group began to terminate it, which may be long after it shut down.
    pub(crate) lost: BTreeMap<String, DateTime<Utc>>,
    /// When somebody else took an instance out of its group, into standby or for good.
    pub(crate) taken: BTreeMap<String, DateTime<Utc>>,
    /// When somebody else put an instance back into its group.
    pub(crate) returned: BTreeMap<String, DateTime<Utc>>,
    /// Machines that we deleted.
    pub(crate) deleted: BTreeMap<String, DateTime<Utc>>,
    /// Machines that we marked to go while rollouts were held.
    pub(crate) marked_held: BTreeSet<String>,
    /// When each Machine was last seen available.
    pub(crate) available: BTreeMap<String, DateTime<Utc>>,
}

impl Seen {
    /// Its group begins to terminate an instance. It counts until then, although it may have shut down before (Auto
    /// Scaling User Guide, "Suspend and resume Amazon EC2 Auto Scaling processes": `ReplaceUnhealthy`).
    pub(crate) fn terminates(&mut self, id: &str, at: DateTime<Utc>) {
        self.lost.insert(id.to_owned(), at);
    }

    /// An instance shuts down.
    pub(crate) fn shut_down(&mut self, id: &str, at: DateTime<Utc>) {
        self.lost.entry(id.to_owned()).or_insert(at);
    }

    pub(crate) fn taken(&mut self, instances: &[String], at: DateTime<Utc>) {
        self.taken.extend(instances.iter().map(|id| (id.clone(), at)));
    }

    /// Whether somebody else took an instance out of its group at this time or later.
    pub(crate) fn taken_since(&self, id: &str, since: DateTime<Utc>) -> bool {
        self.taken.get(id).is_some_and(|at| *at >= since)
    }

    pub(crate) fn returned(&mut self, instances: &[String], at: DateTime<Utc>) {
        self.returned.extend(instances.iter().map(|id| (id.clone(), at)));
    }

    /// Whether somebody else put an instance back into its group at this time or later.
    pub(crate) fn returned_since(&self, id: &str, since: DateTime<Utc>) -> bool {
        self.returned.get(id).is_some_and(|at| *at >= since)
    }

    /// Whether somebody else took an instance out of its group.
    pub(crate) fn has_taken(&self, id: &str) -> bool {
        self.taken.contains_key(id)
    }

    /// Whether an instance began to end at this time or later.
    pub(crate) fn lost_since(&self, id: &str, since: DateTime<Utc>) -> bool {
        self.lost.get(id).is_some_and(|at| *at >= since)
    }

    /// Whether we deleted a Machine.
    pub(crate) fn has_deleted(&self, machine: &str) -> bool {
        self.deleted.contains_key(machine)
    }

    pub(crate) fn deleted(&mut self, machine: &ObjectKey, at: DateTime<Utc>) {
        self.deleted.insert(machine.name.clone(), at);
    }
}
