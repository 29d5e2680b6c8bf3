//! What was seen of capacity.

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::Write;
use capasg_fake_aws::Change;
use chrono::{DateTime, TimeDelta, Utc};

/// What was seen of capacity.
#[derive(Default)]
pub(crate) struct Seen {
    /// Instances by which a call of ours shrank their group.
    pub(crate) shrunk_by: BTreeSet<String>,
    /// When an instance was launched.
    pub(crate) launched: BTreeMap<String, DateTime<Utc>>,
    /// Instances that were in service.
    pub(crate) served: BTreeSet<String>,
    /// When a group chose an instance that had not served, in place of one that was just launched.
    pub(crate) chosen: Vec<DateTime<Utc>>,
    /// Calls of ours that may lower desired capacity, with the replicas that were asked for when they were sent.
    pub(crate) sent: Vec<Sent>,
    /// When the reconcile began that lowered desired capacity last, and when its call landed.
    pub(crate) lowered: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// Instances that a group launched although it had as many as desired: before the end of others. By group.
    pub(crate) surplus: BTreeMap<String, BTreeSet<String>>,
    /// The bounds of each group after the last call that named it.
    pub(crate) bounds: BTreeMap<String, (i64, i64)>,
    /// When somebody else let an instance be chosen.
    pub(crate) unprotected: BTreeMap<String, DateTime<Utc>>,
}

/// A call of ours that may lower desired capacity.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) at: DateTime<Utc>,
    /// When its reconcile began: what it was decided on may have been read then. Between that and the call are writes to
    /// the API server, one for each instance, and each may be slow.
    pub(crate) decided: DateTime<Utc>,
    pub(crate) write: Write,
    /// The replicas that were asked for.
    pub(crate) asked: i64,
}

impl Seen {
    /// Whether the group chose this instance for the sake of one that it launched beyond desired capacity: itself, or one
    /// in whose place it chose another that was never in service. Each counts once.
    pub(crate) fn takes_surplus(&mut self, group: &str, id: &str) -> bool {
        if self.served.contains(id) {
            return false;
        }
        let Some(surplus) = self.surplus.get_mut(group) else { return false };
        surplus.retain(|one| !self.served.contains(one));
        surplus.remove(id) || surplus.pop_first().is_some()
    }

    /// Whether the group launched one beyond desired capacity, for whose sake it may choose any. Each counts once.
    pub(crate) fn takes_any_surplus(&mut self, group: &str, counted: &[String]) -> bool {
        let Some(surplus) = self.surplus.get_mut(group) else { return false };
        surplus.retain(|one| counted.contains(one));
        surplus.pop_first().is_some()
    }
}

/// From the read that a decision is made on to the group's answer to it.
pub(crate) const DECIDED: TimeDelta = TimeDelta::seconds(5);

/// A call lands no later than this after it was sent (`Failure::Late`).
pub(crate) const LANDED: TimeDelta = TimeDelta::seconds(20);

/// Whoever else changed the size: the group answers it for this long.
pub(crate) const ANSWERED: TimeDelta = TimeDelta::minutes(5);

impl Seen {
    /// A call landed that lowered desired capacity. Tells the fewest replicas that were asked for when it was sent.
    pub(crate) fn landed(&mut self, change: &Change, after: i64, at: DateTime<Utc>) -> Option<i64> {
        self.sent.retain(|sent| at - sent.at <= LANDED);
        let is_this = |write: &Write| match write {
            Write::SetDesiredCapacity { desired, .. } => i64::from(*desired) == after,
            Write::UpdateGroup { change, .. } => {
                change.desired.or(change.max).is_some_and(|size| i64::from(size) == after)
            }
            Write::TerminateInstances { instances, .. } => {
                change.instances.iter().any(|id| instances.contains(id))
            }
            _ => false,
        };
        let sent = self.sent.iter().filter(|sent| sent.write.api() == change.action && is_this(&sent.write));
        let (decided, asked): (Vec<_>, Vec<_>) = sent.map(|sent| (sent.decided, sent.asked)).unzip();
        // A call that lands at once is kept after it has landed.
        self.lowered = Some((decided.into_iter().min().unwrap_or(at), at));
        asked.into_iter().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surplus_launch_excuses_one_choice_of_an_instance_that_never_served() {
        let mut seen = Seen::default();
        let surplus = ["i-1", "i-2", "i-3"].map(str::to_owned);
        seen.surplus.insert("g".to_owned(), surplus.into());
        seen.served.extend(["i-2".to_owned(), "i-9".to_owned()]);
        assert!(!seen.takes_surplus("other", "i-1"), "another group's");
        assert!(!seen.takes_surplus("g", "i-9"), "it served");
        assert!(seen.takes_surplus("g", "i-3"), "itself");
        assert!(seen.takes_surplus("g", "i-8"), "in the place of i-1");
        assert!(!seen.takes_surplus("g", "i-7"), "i-2 serves, and the others are used up");
    }
}
