//! What was seen of calls to AWS that failed.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

/// The longest wait before a call that failed is repeated (docs/contributors/architecture.md, "From a change to a call": 15 min after
/// AWS rejected it, else the backoff of the pool, at most a minute), and what a call may take until it is given up.
const AFTER_REJECTION: TimeDelta = TimeDelta::minutes(15);
const AFTER_FAILURE: TimeDelta = TimeDelta::minutes(3);

/// Failures of one operation that came one after another.
#[derive(Clone, Copy)]
struct Streak {
    first: DateTime<Utc>,
    last: DateTime<Utc>,
}

/// How each operation failed lately, by whether it was rejected.
#[derive(Default)]
pub(crate) struct Seen(BTreeMap<(&'static str, bool), Streak>);

impl Seen {
    pub(crate) fn failed(&mut self, api: &'static str, is_rejected: bool, at: DateTime<Utc>) {
        let streak = self.0.entry((api, is_rejected)).or_insert(Streak { first: at, last: at });
        // Nobody waits longer than this between two tries, so that an earlier failure was another one.
        if at - streak.last > AFTER_REJECTION * 2 {
            streak.first = at;
        }
        streak.last = at;
    }

    /// The moment at which a failure of one of these operations holds up nothing any more. The waits after a rejection
    /// double: the next one is no longer than the time since the first, and the first wait.
    pub(crate) fn over(&self, apis: &[&str]) -> Option<DateTime<Utc>> {
        let ends =
            self.0.iter().filter(|((api, _), _)| apis.contains(api)).map(|((_, is_rejected), streak)| {
                let wait = if *is_rejected { streak.last - streak.first } else { TimeDelta::zero() };
                streak.last + (wait + AFTER_FAILURE).min(AFTER_REJECTION)
            });
        ends.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rejection_holds_up_for_minutes_and_later_ones_for_longer() {
        let (mut seen, begin) = (Seen::default(), DateTime::UNIX_EPOCH);
        let minutes = |count| begin + TimeDelta::minutes(count);
        seen.failed("A", true, begin);
        assert_eq!(seen.over(&["A"]), Some(minutes(3)));
        assert_eq!(seen.over(&["B"]), None);
        seen.failed("A", true, minutes(2));
        assert_eq!(seen.over(&["A"]), Some(minutes(7)));
        seen.failed("A", true, minutes(20));
        assert_eq!(seen.over(&["A"]), Some(minutes(35)), "15 min at most");
        seen.failed("A", false, minutes(40));
        assert_eq!(seen.over(&["A"]), Some(minutes(43)), "the backoff of the pool is short");
        seen.failed("A", true, minutes(90));
        assert_eq!(seen.over(&["A"]), Some(minutes(93)), "another rejection");
    }
}
