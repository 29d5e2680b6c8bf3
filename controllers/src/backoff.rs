//! Delays between attempts, per object and per kind of failure. The role that the crate `backoff` would have; it is
//! unmaintained (RUSTSEC-2025-0012), so the curve comes from `backon`.

use std::{collections::BTreeMap, time::Duration};

use backon::{BackoffBuilder, ExponentialBuilder};
use chrono::{DateTime, TimeDelta, Utc};

/// An exponential backoff with a first and a longest delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Curve {
    /// The first delay.
    pub first: Duration,
    /// The longest delay.
    pub longest: Duration,
}

/// A transient fault: requeue soon.
pub const TRANSIENT: Curve = Curve { first: Duration::from_secs(1), longest: Duration::from_mins(1) };
/// A write that conflicted with another actor's: the cache catches up at once.
pub const CONFLICT: Curve = Curve { first: Duration::from_millis(100), longest: Duration::from_secs(10) };
/// Another operation on the same resource is in progress in AWS.
pub const IN_PROGRESS: Curve = Curve { first: Duration::from_secs(2), longest: Duration::from_secs(30) };
/// What only a user (or time, measured in minutes) can fix.
pub const PERMANENT: Curve = Curve { first: Duration::from_secs(30), longest: Duration::from_mins(15) };

impl Curve {
    /// The delay after `failures` failures in a row, 1 for the first.
    #[must_use]
    pub fn delay(self, failures: u32) -> Duration {
        let tries = usize::try_from(failures.clamp(1, 32)).unwrap_or(1);
        ExponentialBuilder::default()
            .with_factor(2.0)
            .with_min_delay(self.first)
            .with_max_delay(self.longest)
            .without_max_times()
            .build()
            .nth(tries - 1)
            .unwrap_or(self.longest)
            .min(self.longest)
    }

    /// The same as a difference of two times.
    #[must_use]
    pub fn time_delta(self, failures: u32) -> TimeDelta {
        difference(self.delay(failures))
    }
}

fn difference(delay: Duration) -> TimeDelta {
    TimeDelta::from_std(delay).unwrap_or(TimeDelta::MAX)
}

/// The failures of one thing in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures {
    count: u32,
    until: DateTime<Utc>,
}

impl Failures {
    /// Adds a failure at `now`. One that comes before the last delay has passed does not lengthen it: spurious wakes
    /// would make the delay grow without an attempt in between. A failure that is retried sooner than the last one ends
    /// its delay.
    #[must_use]
    pub fn after(previous: Option<&Self>, curve: Curve, now: DateTime<Utc>) -> Self {
        let is_kept = |wait| wait <= difference(curve.longest);
        match previous {
            Some(previous) if previous.wait(now).is_some_and(is_kept) => previous.clone(),
            _ => {
                let count = previous.map_or(1, |p| p.count.saturating_add(1));
                Self { count, until: now + curve.time_delta(count) }
            }
        }
    }

    /// How long to wait from `now` on; `None` once the delay has passed.
    #[must_use]
    pub fn wait(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        remaining(self.until, now, difference(PERMANENT.longest))
    }
}

/// How old the `now` of a decision may be when its calls are made.
pub const DECISION: TimeDelta = TimeDelta::minutes(5);

/// How long until a moment; `None` once it has passed. Much more than `longest` is left only if the clock was set back: then
/// nobody waits for it.
#[must_use]
pub fn remaining(until: DateTime<Utc>, now: DateTime<Utc>, longest: TimeDelta) -> Option<TimeDelta> {
    Some(until - now).filter(|wait| *wait > TimeDelta::zero() && *wait <= longest + DECISION)
}

/// The operations on one object that fail. Each has a backoff of its own: one that AWS has rejected for long must not
/// delay the retry of another.
#[derive(Debug, Default)]
pub struct FailedOperations(BTreeMap<&'static str, Failures>);

impl FailedOperations {
    /// Records what one attempt met: these operations failed at `now`, and no others. Returns when to attempt again; `None`
    /// if nothing failed.
    pub fn record(
        &mut self,
        failed: impl IntoIterator<Item = (&'static str, Curve)>,
        now: DateTime<Utc>,
    ) -> Option<TimeDelta> {
        let before = std::mem::take(&mut self.0);
        for (operation, curve) in failed {
            self.0.insert(operation, Failures::after(before.get(operation), curve, now));
        }
        self.0.values().map(|failures| failures.wait(now).unwrap_or(TimeDelta::zero())).min()
    }

    /// Whether the last attempt met no failure.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let seconds: Vec<u64> = (1..=8).map(|n| PERMANENT.delay(n).as_secs()).collect();
        assert_eq!(seconds, [30, 60, 120, 240, 480, 900, 900, 900]);
        assert_eq!(TRANSIENT.delay(1), Duration::from_secs(1));
        assert_eq!(TRANSIENT.delay(u32::MAX), Duration::from_mins(1));
    }

    #[test]
    fn a_delay_does_not_grow_when_the_clock_is_set_back() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::hours(1);
        let first = Failures::after(None, TRANSIENT, now);
        assert_eq!(first.wait(DateTime::UNIX_EPOCH), None);
        let second = Failures::after(Some(&first), TRANSIENT, DateTime::UNIX_EPOCH);
        assert_eq!(second.wait(DateTime::UNIX_EPOCH), Some(TimeDelta::seconds(2)));
    }

    #[test]
    fn a_failure_that_is_retried_sooner_ends_a_longer_delay() {
        let now = DateTime::UNIX_EPOCH;
        let mut rejected = Failures::after(None, PERMANENT, now);
        for minutes in [1, 3, 7] {
            rejected = Failures::after(Some(&rejected), PERMANENT, now + TimeDelta::minutes(minutes));
        }
        let later = now + TimeDelta::minutes(8);
        assert_eq!(rejected.wait(later), Some(TimeDelta::minutes(3)));
        let transient = Failures::after(Some(&rejected), TRANSIENT, later);
        assert_eq!(transient.wait(later), Some(TimeDelta::seconds(16)));
        assert_eq!(Failures::after(Some(&rejected), PERMANENT, later), rejected);
    }

    #[test]
    fn a_rejected_operation_does_not_delay_the_retry_of_another() {
        let (mut failed, mut now) = (FailedOperations::default(), DateTime::UNIX_EPOCH);
        let hooks = ("DescribeLifecycleHooks", PERMANENT);
        for seconds in [30, 60, 120, 240] {
            let wait = failed.record([hooks], now).unwrap();
            assert_eq!(wait, TimeDelta::seconds(seconds));
            now += wait;
        }
        let images = ("DescribeImages", PERMANENT);
        assert_eq!(failed.record([hooks, images], now), Some(TimeDelta::seconds(30)));
        assert_eq!(failed.record([hooks], now), Some(TimeDelta::seconds(480)), "it answers now");
        assert_eq!(failed.record([], now), None);
        assert!(failed.is_empty());
        assert_eq!(failed.record([hooks], now), Some(TimeDelta::seconds(30)));
    }

    #[test]
    fn a_failure_before_the_delay_is_over_does_not_count() {
        let now = DateTime::UNIX_EPOCH;
        let first = Failures::after(None, PERMANENT, now);
        let spurious = Failures::after(Some(&first), PERMANENT, now + TimeDelta::seconds(1));
        assert_eq!(spurious, first);
        let second = Failures::after(Some(&first), PERMANENT, now + TimeDelta::seconds(30));
        assert_eq!(second.wait(now + TimeDelta::seconds(30)), Some(TimeDelta::seconds(60)));
    }
}
