//! The writes that the API server rejects: one that is rejected for some time is reported. A quota, an admission policy or a
//! webhook rejects a write for as long as a user does nothing.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use crate::kubernetes::{KubeError, KubeWrite};

/// A write that is rejected for this long is reported.
const REPORTED_AFTER: TimeDelta = TimeDelta::minutes(2);

/// The last rejection of each write that has not succeeded since, by what it is about.
#[derive(Debug, Clone, Default)]
pub struct FailedWrites {
    /// Those of plans.
    planned: BTreeMap<String, FailedWrite>,
    /// Those of the last report.
    reported: BTreeMap<String, FailedWrite>,
}

#[derive(Debug, Clone)]
struct FailedWrite {
    error: String,
    since: DateTime<Utc>,
    at: DateTime<Utc>,
}

impl FailedWrite {
    fn after(before: Option<&Self>, error: &KubeError, now: DateTime<Utc>) -> Self {
        // The clock may have been set back since.
        let since = before.map_or(now, |before| before.since.min(now));
        Self { error: error.to_string(), since, at: now }
    }
}

impl FailedWrites {
    /// The error of the first write that is rejected for some time, and how many others are.
    #[must_use]
    pub fn lasting(&self) -> Option<(&str, usize)> {
        let all = self.planned.values().chain(self.reported.values());
        let mut lasting = all.filter(|failed| failed.at - failed.since >= REPORTED_AFTER);
        let first = lasting.next()?;
        Some((&first.error, lasting.count()))
    }

    /// Records the answer to a write that was not made. An object that was modified or deleted meanwhile is read by the next
    /// reconcile, and an API server that does not answer has no condition.
    pub(super) fn fail(&mut self, write: &KubeWrite, error: &KubeError, now: DateTime<Utc>) {
        if !error.is_rejection() {
            self.succeed(write);
            return;
        }
        let what = write.what();
        let failed = FailedWrite::after(self.planned.get(&what), error, now);
        self.planned.insert(what, failed);
    }

    /// Records the writes of a report that were rejected.
    pub(super) fn report(&mut self, rejected: &[(KubeWrite, KubeError)], now: DateTime<Utc>) {
        let before = std::mem::take(&mut self.reported);
        self.reported.extend(rejected.iter().map(|(write, error)| {
            let what = write.what();
            let failed = FailedWrite::after(before.get(&what), error, now);
            (what, failed)
        }));
    }

    /// Records that a write succeeded.
    pub(super) fn succeed(&mut self, write: &KubeWrite) {
        self.planned.remove(&write.what());
    }

    /// Forgets writes that are not planned any more.
    pub(super) fn keep<'a>(&mut self, planned: impl Iterator<Item = &'a KubeWrite>) {
        if self.planned.is_empty() {
            return;
        }
        let planned: BTreeSet<String> = planned.map(KubeWrite::what).collect();
        self.planned.retain(|what, _| planned.contains(what));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObjectKey;

    fn write(name: &str) -> KubeWrite {
        KubeWrite::DeleteAsgMachine { machine: ObjectKey::new("default", name), uid: String::new() }
    }

    fn denied() -> KubeError {
        KubeError::Rejected { what: "deleting".to_owned(), message: "denied by policy".to_owned() }
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    #[test]
    fn a_write_that_fails_for_two_minutes_is_reported_until_it_succeeds() {
        let mut failed = FailedWrites::default();
        for (seconds, is_reported) in [(0, false), (60, false), (120, true)] {
            failed.fail(&write("a"), &denied(), at(seconds));
            assert_eq!(failed.lasting().is_some(), is_reported, "{seconds}");
        }
        failed.fail(&write("b"), &denied(), at(120));
        assert_eq!(failed.lasting(), Some(("deleting: denied by policy", 0)));
        failed.succeed(&write("a"));
        assert_eq!(failed.lasting(), None);
    }

    #[test]
    fn a_write_of_reports_that_fails_for_two_minutes_is_reported_until_it_succeeds() {
        let mut failed = FailedWrites::default();
        // The clock is set back by an hour in between.
        for (seconds, is_reported) in [(3600, false), (0, false), (60, false), (120, true)] {
            failed.report(&[(write("a"), denied())], at(seconds));
            assert_eq!(failed.lasting().is_some(), is_reported, "{seconds}");
            failed.keep([].iter());
        }
        failed.report(&[], at(180));
        assert_eq!(failed.lasting(), None);
    }

    #[test]
    fn what_is_not_planned_any_more_is_forgotten_and_a_conflict_is_no_rejection() {
        let mut failed = FailedWrites::default();
        for name in ["a", "b"] {
            failed.fail(&write(name), &denied(), at(0));
            failed.fail(&write(name), &denied(), at(300));
        }
        failed.keep([write("b")].iter());
        assert_eq!(failed.lasting(), Some(("deleting: denied by policy", 0)));
        failed.fail(&write("b"), &KubeError::NotFound { what: String::new() }, at(400));
        assert_eq!(failed.lasting(), None);
    }
}
