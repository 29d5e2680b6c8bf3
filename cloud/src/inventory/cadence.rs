//! How often the inventory reads, and how long it keeps what it read.

use std::time::Duration;

/// `DescribeAutoScalingGroups` takes this many names with `MaxRecords` 100.
pub(super) const GROUPS_PER_CALL: usize = 100;

/// The inventory's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cadence {
    /// How often every group is read, unless there are so many that this takes longer. Default 18 s.
    pub idle: Duration,
    /// How much longer it takes for each call, of 100 groups at most. Default 1.8 s, so that up to 1,000 groups are read
    /// every 18 s, with a small share of the rate that AWS allows for reads.
    pub idle_for_each_call: Duration,
    /// How often every group is read, however many there are. Default 60 s.
    pub longest_idle: Duration,
    /// The same while events show what changes. Default 5 min; groups that change without events stay at
    /// [`Self::idle`].
    pub idle_with_events: Duration,
    /// How often groups in transition are read. Default 5 s.
    pub transition: Duration,
    /// How long hooks and launch templates are kept, spread by a tenth each way. Default 1 h.
    pub audit: Duration,
    /// How long a requested read waits for others to share the call. Default 50 ms.
    pub coalesce: Duration,
    /// The shortest interval between first reads of groups: pools begin to observe them one after another when the manager
    /// starts. Default 1 s.
    pub first_reads: Duration,
    /// How long subnets, security groups and parameters are kept. Default 10 min.
    pub lookup: Duration,
    /// How long the credentials' account and images are kept. Default 1 h.
    pub constant: Duration,
    /// How long an instance type is kept. It never changes, but AWS may begin or cease to offer it in a region:
    /// default 24 h, and [`Self::lookup`] for one that the region does not offer.
    pub instance_type: Duration,
    /// How long an error, or an answer that misses what was requested, is kept: a fixed fault is seen after this. Default
    /// 2 s.
    pub negative: Duration,
    /// How long a write whose answer was lost may still arrive at AWS after its timeout. Default 10 s.
    pub in_flight: Duration,
    /// When a listing that missed an existing group is repeated, first and later. Default 1 s and 5 s.
    pub absence_recheck: (Duration, Duration),
    /// The longest backoff of polls that fail; it begins with 1 s and doubles. Default 60 s.
    pub longest_backoff: Duration,
    /// How long facts of EC2 instances that no group lists are kept after they were requested. Default 10 min.
    pub unlisted_facts: Duration,
}

impl Default for Cadence {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            idle: seconds(18),
            idle_for_each_call: Duration::from_millis(1_800),
            longest_idle: seconds(60),
            idle_with_events: seconds(300),
            transition: seconds(5),
            audit: seconds(3600),
            coalesce: Duration::from_millis(50),
            first_reads: seconds(1),
            lookup: seconds(600),
            constant: seconds(3600),
            instance_type: seconds(86400),
            negative: seconds(2),
            in_flight: seconds(10),
            absence_recheck: (seconds(1), seconds(5)),
            longest_backoff: seconds(60),
            unlisted_facts: seconds(600),
        }
    }
}

impl Cadence {
    /// How often every one of that many groups is read without events.
    #[must_use]
    pub fn idle_with(&self, groups: usize) -> Duration {
        let calls = u32::try_from(groups.div_ceil(GROUPS_PER_CALL)).unwrap_or(u32::MAX);
        self.idle_for_each_call.saturating_mul(calls).min(self.longest_idle).max(self.idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_groups_are_read_less_often_but_each_minute_at_least() {
        let every = |groups| Cadence::default().idle_with(groups).as_millis();
        assert_eq!([0, 1, 100, 1_000].map(every), [18_000; 4]);
        assert_eq!([1_001, 2_000, 3_300, 10_000].map(every), [19_800, 36_000, 59_400, 60_000]);
    }
}
