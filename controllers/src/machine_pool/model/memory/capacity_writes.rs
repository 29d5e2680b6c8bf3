//! Desired capacity as this process wrote it: reads of AWS may not show that yet.

use capasg_cloud::Write;
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::call_kind::CallKind;
use crate::machine_pool::model::read_lag::{reads_behind, unless_set_back};

/// What is remembered of desired capacity: what AWS was requested to make it, and what it became.
#[derive(Debug, Clone, Default)]
pub struct CapacityWrites {
    /// What AWS was last requested to make it, whether it answered or not, and when.
    requested: Option<(i32, DateTime<Utc>)>,
    /// When AWS was last requested to change it or the bounds, which may change it as well.
    requested_at: Option<DateTime<Utc>>,
    /// What it became by the last write, and when.
    left: Option<(i32, DateTime<Utc>)>,
    /// What it was last set to, or was as a settled view showed it since.
    set_to: Option<i32>,
}

impl CapacityWrites {
    /// Records that a change was requested, whatever AWS answered.
    pub(super) fn requested(&mut self, write: &Write, now: DateTime<Utc>) {
        self.requested = write.desired_capacity().map(|desired| (desired, now)).or(self.requested);
        let decrements = matches!(write, Write::TerminateInstances { decrement: true, .. });
        if decrements || CallKind::of(write) == CallKind::UpdateCapacity {
            self.requested_at = Some(now);
        }
    }

    /// Records that AWS answered that it made a change.
    pub(super) fn made(&mut self, write: &Write, now: DateTime<Utc>) {
        self.left = self.left_by(write, now).map(|left| (left, now)).or(self.left);
        self.set_to = write.desired_capacity().or(self.set_to);
    }

    /// Records that a settled view, read at `as_of`, shows this desired capacity. A read soon after a write may return an
    /// older value.
    pub(super) fn shown(&mut self, desired: i32, as_of: DateTime<Utc>) {
        if self.reads_behind(as_of).is_none() {
            self.set_to = Some(desired);
        }
    }

    /// What it is after a write that changes it.
    fn left_by(&self, write: &Write, now: DateTime<Utc>) -> Option<i32> {
        let Write::TerminateInstances { instances, decrement: true, .. } = write else {
            return write.desired_capacity();
        };
        let before = self.set_to?;
        let known = self.recently_left(now).map_or(before, |left| left.min(before));
        Some(known - i32::try_from(instances.len()).unwrap_or(0))
    }

    /// Desired capacity after our last write, while reads of AWS may still return an older value. Callers use the
    /// smaller of this and the value read, so that no decrement is made twice. At worst, an instance is replaced
    /// unnecessarily.
    #[must_use]
    pub fn recently_left(&self, now: DateTime<Utc>) -> Option<i32> {
        self.left.filter(|(_, at)| reads_behind(*at, now).is_some()).map(|(left, _)| left)
    }

    /// The desired capacity that this process last requested, and when. Reads may show neither it nor the launches that
    /// follow.
    #[must_use]
    pub fn last_requested(&self) -> Option<(i32, DateTime<Utc>)> {
        self.requested
    }

    /// For how much longer reads may not show our last write, whether AWS answered it or not.
    #[must_use]
    pub fn reads_behind(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        self.requested_at.and_then(|at| reads_behind(unless_set_back(at, now)?, now))
    }

    /// Whether desired capacity may be at least this number, by our last write, whether AWS answered it or not, or a
    /// later settled view. `true` if none is known.
    #[must_use]
    pub fn may_be_at_least(&self, desired: i32, now: DateTime<Utc>) -> bool {
        let requested = self.requested.filter(|(_, at)| reads_behind(*at, now).is_some());
        self.set_to.is_none_or(|set_to| set_to >= desired)
            || requested.is_some_and(|(requested, _)| requested >= desired)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::machine_pool::decide::testing::set_desired;

    fn terminate(instances: &[&str]) -> Write {
        let instances: BTreeSet<String> = instances.iter().map(|id| (*id).to_owned()).collect();
        Write::TerminateInstances { group: "g".to_owned(), instances, decrement: true }
    }

    #[test]
    fn d10_each_decrement_counts_from_the_one_before_that_no_read_shows() {
        let now = DateTime::UNIX_EPOCH;
        let mut writes = CapacityWrites::default();
        writes.made(&terminate(&["i-1"]), now);
        assert_eq!(writes.recently_left(now), None, "what it shrank from is not known");
        writes.shown(5, now);
        writes.made(&terminate(&["i-1"]), now);
        assert_eq!(writes.recently_left(now), Some(4));
        writes.made(&terminate(&["i-2", "i-3"]), now + TimeDelta::seconds(1));
        assert_eq!(writes.recently_left(now + TimeDelta::seconds(15)), Some(2));
        assert_eq!(writes.recently_left(now + TimeDelta::seconds(16)), None, "every read shows it");
    }

    #[test]
    fn d10_a_call_without_an_answer_was_requested_and_not_made() {
        let now = DateTime::UNIX_EPOCH;
        let mut writes = CapacityWrites::default();
        assert!(writes.may_be_at_least(9, now), "a process that wrote nothing yet");
        writes.requested(&set_desired(7), now);
        writes.requested(&terminate(&["i-1"]), now + TimeDelta::seconds(1));
        assert_eq!(writes.last_requested(), Some((7, now)), "a termination requests no number");
        assert_eq!(writes.recently_left(now), None);
        writes.made(&set_desired(7), now);
        assert!(writes.may_be_at_least(7, now) && !writes.may_be_at_least(8, now));
        writes.requested(&set_desired(8), now);
        assert!(writes.may_be_at_least(8, now), "AWS may have made it");
        assert!(!writes.may_be_at_least(8, now + TimeDelta::minutes(1)));
    }

    #[test]
    fn d10_a_read_that_may_not_show_our_last_write_is_not_what_it_became() {
        let now = DateTime::UNIX_EPOCH;
        let mut writes = CapacityWrites::default();
        let write = set_desired(7);
        writes.requested(&write, now);
        writes.made(&write, now);
        writes.shown(3, now + TimeDelta::seconds(14));
        assert!(writes.may_be_at_least(7, now + TimeDelta::minutes(1)));
        writes.shown(3, now + TimeDelta::seconds(15));
        assert!(!writes.may_be_at_least(7, now + TimeDelta::minutes(1)));
    }
}
