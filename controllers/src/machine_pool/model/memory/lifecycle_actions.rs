//! The lifecycle actions that our hook holds: when each was completed or extended, and the hook's heartbeat time-out.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::machine_pool::model::Observed;

/// Our answers to the hook, which AWS does not report.
#[derive(Debug, Clone, Default)]
pub struct LifecycleActions {
    /// The heartbeat time-out of our hook as it was last read or written, in seconds.
    heartbeat_timeout: Option<i32>,
    /// When an instance's lifecycle action was last completed.
    completed: BTreeMap<String, DateTime<Utc>>,
    /// When an instance's lifecycle action was last extended by a heartbeat.
    extended: BTreeMap<String, DateTime<Utc>>,
}

impl LifecycleActions {
    /// The heartbeat time-out of our hook as it was last read or written, in seconds.
    #[must_use]
    pub fn heartbeat_timeout(&self) -> Option<i32> {
        self.heartbeat_timeout
    }

    /// When an instance's lifecycle action was last completed.
    #[must_use]
    pub fn completed_at(&self, id: &str) -> Option<DateTime<Utc>> {
        self.completed.get(id).copied()
    }

    /// When an instance's lifecycle action was last extended by a heartbeat.
    #[must_use]
    pub fn extended_at(&self, id: &str) -> Option<DateTime<Utc>> {
        self.extended.get(id).copied()
    }

    /// Records the instances and the hook as they are observed now.
    pub(super) fn observe(&mut self, observed: &Observed) {
        let known = |id: &String| observed.instances.contains_key(id);
        self.completed.retain(|id, _| known(id));
        self.extended.retain(|id, _| known(id));
        if let Some(hook) = observed.hook.present() {
            self.set_heartbeat_timeout(hook.heartbeat_timeout);
        }
    }

    /// Records that our hook has this heartbeat time-out, in seconds. For instances that are held already, another one
    /// applies from their next heartbeat on, which is due then.
    pub(super) fn set_heartbeat_timeout(&mut self, seconds: i32) {
        if self.heartbeat_timeout.replace(seconds) != Some(seconds) {
            self.extended.clear();
        }
    }

    /// Records that a lifecycle action was completed.
    pub(super) fn complete(&mut self, id: &str, now: DateTime<Utc>) {
        self.completed.insert(id.to_owned(), now);
    }

    /// Records that a lifecycle action was extended.
    pub(super) fn extend(&mut self, id: &str, now: DateTime<Utc>) {
        self.extended.insert(id.to_owned(), now);
    }
}

#[cfg(test)]
impl LifecycleActions {
    /// The heartbeat time-out, for a test to set.
    pub fn heartbeat_timeout_mut(&mut self) -> &mut Option<i32> {
        &mut self.heartbeat_timeout
    }

    /// What was completed, for a test to set.
    pub fn completed_mut(&mut self) -> &mut BTreeMap<String, DateTime<Utc>> {
        &mut self.completed
    }

    /// What was extended, for a test to set.
    pub fn extended_mut(&mut self) -> &mut BTreeMap<String, DateTime<Utc>> {
        &mut self.extended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer to the change of our hook is lost, or another actor changes it: a read shows it.
    // Pains: P51
    #[test]
    fn another_heartbeat_timeout_makes_the_next_heartbeat_due() {
        let mut actions = LifecycleActions::default();
        actions.extend("i-2", DateTime::UNIX_EPOCH);
        actions.set_heartbeat_timeout(60);
        actions.extend("i-2", DateTime::UNIX_EPOCH);
        actions.set_heartbeat_timeout(60);
        assert!(actions.extended_at("i-2").is_some(), "nothing changed");
        actions.set_heartbeat_timeout(7_200);
        assert!(actions.extended_at("i-2").is_none());
    }
}
