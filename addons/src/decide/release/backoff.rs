//! When an operation that failed is tried again, for each release on its own.

use chrono::{DateTime, TimeDelta, Utc};

/// The delay after the first failure; it doubles with each.
const FIRST: TimeDelta = TimeDelta::seconds(15);
/// The longest delay.
const LONGEST: TimeDelta = TimeDelta::minutes(15);

/// What is remembered of a release between reconciles. Losing it means that an operation is tried again at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    failures: u32,
    failed_at: Option<DateTime<Utc>>,
    /// What was requested when it failed.
    of: String,
    failure: Option<(&'static str, String)>,
}

impl Memory {
    /// Remembers a failure of an operation. `of` identifies what was requested, such as generation and newest version; a
    /// change of it is tried at once.
    pub fn failed(&mut self, of: &str, reason: &'static str, message: String, now: DateTime<Utc>) {
        if self.of != of {
            *self = Self { of: of.to_owned(), ..Self::default() };
        }
        self.failures = self.failures.saturating_add(1);
        self.failed_at = Some(now);
        self.failure = Some((reason, message));
    }

    /// Forgets failures.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// The reason and the message of the last failure, if it was one of this request.
    #[must_use]
    pub fn failure(&self, of: &str) -> Option<(&'static str, &str)> {
        let (reason, message) = self.failure.as_ref().filter(|_| self.of == of)?;
        Some((reason, message))
    }

    /// Until when the next attempt waits.
    #[must_use]
    pub fn waits_until(&self, of: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let failed_at = self.failed_at.filter(|_| self.of == of)?;
        let doublings = self.failures.saturating_sub(1).min(16);
        let delay = FIRST.checked_mul(1 << doublings).map_or(LONGEST, |delay| delay.min(LONGEST));
        let until = failed_at + delay;
        // A clock that was set back does not extend the delay.
        (now < until && now >= failed_at).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn delays_double_up_to_a_quarter_of_an_hour() {
        let mut memory = Memory::default();
        assert_eq!(memory.waits_until("a", at(0)), None);
        for delay in [15, 30, 60, 120, 240, 480, 900, 900] {
            memory.failed("a", "ChartNotFound", "no such chart".to_owned(), at(0));
            assert_eq!(memory.waits_until("a", at(delay - 1)), Some(at(delay)));
            assert_eq!(memory.waits_until("a", at(delay)), None);
        }
        for _ in 0..100 {
            memory.failed("a", "ChartNotFound", String::new(), at(0));
        }
        assert_eq!(memory.waits_until("a", at(1)), Some(at(900)));
    }

    #[test]
    fn a_change_is_tried_at_once() {
        let mut memory = Memory::default();
        memory.failed("1", "ChartNotFound", "no such chart".to_owned(), at(0));
        memory.failed("1", "ChartNotFound", "no such chart".to_owned(), at(0));
        assert_eq!(memory.failure("1"), Some(("ChartNotFound", "no such chart")));
        assert_eq!((memory.waits_until("2", at(1)), memory.failure("2")), (None, None));
        memory.failed("2", "Stopped", String::new(), at(10));
        assert_eq!(memory.waits_until("2", at(10)), Some(at(25)), "the delay begins again");
        memory.succeeded();
        assert_eq!(memory, Memory::default());
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_extend_the_delay() {
        let mut memory = Memory::default();
        memory.failed("1", "Stopped", String::new(), at(10_000));
        assert_eq!(memory.waits_until("1", at(0)), None);
    }
}
