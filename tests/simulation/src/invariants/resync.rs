//! Nothing that a pool needs waits for the periodic resync.

use capasg_controllers::ObjectKey;

use super::seen::limits::{UNSEEN, UNSEEN_WITH_EVENTS};
use super::state::Invariants;
use crate::{Entry, Port};

/// The calls that change capacity, instances or an instance refresh.
const CALLS: [&str; 5] = [
    "SetDesiredCapacity",
    "TerminateInstanceInAutoScalingGroup",
    "CompleteLifecycleAction",
    "StartInstanceRefresh",
    "CancelInstanceRefresh",
];

impl Invariants {
    /// A reconcile that only the periodic resync causes changes neither capacity nor instances: what makes that necessary
    /// wakes the pool, or is due at a time that is known. Not checked where a watch is about to wake the pool, or where
    /// others wrote during the reconcile: of all that was `written` to the API server, not all is among what it `made`.
    ///
    /// Exempt: somebody else changed the size of the group since the last poll, and none has shown that (docs/users/limits.md,
    /// "By design"): the reconcile read the group itself.
    pub(crate) fn nothing_waits_for_the_resync(
        &self,
        pool: &ObjectKey,
        made: &[Entry],
        written: u64,
        has_events: bool,
    ) {
        let own = made.iter().filter(|entry| entry.changed && matches!(entry.port, Port::Kubernetes)).count();
        if written > u64::try_from(own).unwrap_or(u64::MAX) {
            return;
        }
        let waited = |entry: &&Entry| {
            entry.changed
                && match entry.port {
                    Port::Cloud => {
                        CALLS.iter().any(|call| entry.what.starts_with(call)) || resizes(&entry.what)
                    }
                    Port::Kubernetes => entry.what.starts_with("deleting Machine"),
                }
        };
        let Some(entry) = made.iter().find(waited) else { return };
        let mut inner = self.inner();
        let unseen = if has_events { UNSEEN_WITH_EVENTS } else { UNSEEN };
        let group = inner.pools.iter().find(|own| own.key == *pool).map(|own| own.group.clone());
        let others = group.and_then(|group| inner.exempt.last_write_of_others(&group));
        if others.is_none_or(|then| entry.at - then > unseen) {
            inner.breaks(entry.at, "nothing_waits_for_the_resync", entry.what.clone());
        }
    }
}

/// Whether it is a call of `UpdateAutoScalingGroup` that changes the bounds or desired capacity.
fn resizes(what: &str) -> bool {
    what.starts_with("UpdateAutoScalingGroup") && !what.ends_with("min=None max=None desired=None")
}
