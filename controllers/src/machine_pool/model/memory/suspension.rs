//! The processes that AWS suspended by itself: they stay suspended until a user changes something after that was
//! observed.

use crate::machine_pool::model::{Desired, Observed};

/// The hash of what a user can change, now and when AWS was first observed to have suspended processes.
#[derive(Debug, Clone, Default)]
pub struct Suspension {
    /// Hash of what a user can change about the pool, bootstrap data and replicas apart.
    desired_key: String,
    /// What that hash and `spec.retryToken` were when processes were first seen suspended.
    first_seen: Option<(String, Option<String>)>,
}

impl Suspension {
    /// Whether a user changed something since the processes were first seen suspended. In a preview, where edits wait,
    /// `spec.retryToken` alone counts.
    #[must_use]
    pub fn is_to_be_resumed(&self, desired: &Desired) -> bool {
        self.first_seen.as_ref().is_some_and(|(key, retry)| {
            if desired.previews { *retry != desired.retry } else { *key != self.desired_key }
        })
    }

    /// Records the hash of all inputs that a user can edit.
    pub(super) fn set_desired_key(&mut self, key: &str) {
        key.clone_into(&mut self.desired_key);
    }

    /// Records the group as it is observed now; only a settled view counts.
    pub(super) fn observe(&mut self, desired: &Desired, observed: &Observed) {
        let Some(group) = observed.group.present().filter(|_| observed.group.is_settled()) else { return };
        if group.suspended_by_aws(&desired.suspended_processes).is_empty() {
            self.first_seen = None;
        } else {
            let (key, retry) = (&self.desired_key, &desired.retry);
            self.first_seen.get_or_insert_with(|| (key.clone(), retry.clone()));
        }
    }
}

#[cfg(test)]
impl Suspension {
    /// The hash of what a user can change, for a test to set.
    pub fn desired_key_mut(&mut self) -> &mut String {
        &mut self.desired_key
    }

    /// The hash at that time, for a test to set.
    pub fn first_seen_mut(&mut self) -> &mut Option<(String, Option<String>)> {
        &mut self.first_seen
    }
}
