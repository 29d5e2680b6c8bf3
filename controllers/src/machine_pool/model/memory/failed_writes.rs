//! The writes to the API server that fail: one that has failed for some time is reported. A quota, an admission policy or a
//! webhook may reject a write for as long as a user does nothing.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use crate::kubernetes::{KubeError, KubeWrite};

/// A write that has failed for this long is reported.
const REPORTED_AFTER: TimeDelta = TimeDelta::minutes(2);
/// One that was not repeated for this long is not required any more.
const FORGOTTEN_AFTER: TimeDelta = TimeDelta::minutes(30);

/// The last failure of each write that has not succeeded since, by what it is about.
#[derive(Debug, Clone, Default)]
pub struct FailedWrites(BTreeMap<String, FailedWrite>);

#[derive(Debug, Clone)]
struct FailedWrite {
    error: String,
    since: DateTime<Utc>,
    at: DateTime<Utc>,
}

impl FailedWrites {
    /// The error of the first write that has failed for some time, and how many others have.
    #[must_use]
    pub fn lasting(&self) -> Option<(&str, usize)> {
        let mut lasting = self.0.values().filter(|failed| failed.at - failed.since >= REPORTED_AFTER);
        let first = lasting.next()?;
        Some((&first.error, lasting.count()))
    }

    /// Records a failure. An object that was modified or deleted meanwhile is none: the next reconcile reads it.
    pub(super) fn fail(&mut self, write: &KubeWrite, error: &KubeError, now: DateTime<Utc>) {
        if matches!(error, KubeError::Conflict { .. } | KubeError::NotFound { .. }) {
            return;
        }
        self.0.retain(|_, failed| now - failed.at < FORGOTTEN_AFTER);
        let failed = self.0.entry(write.what()).or_insert_with(|| FailedWrite {
            error: String::new(),
            since: now,
            at: now,
        });
        (failed.error, failed.at) = (error.to_string(), now);
    }

    /// Records that a write succeeded.
    pub(super) fn succeed(&mut self, write: &KubeWrite) {
        self.0.remove(&write.what());
    }

    /// Forgets writes that were not repeated for long.
    pub(super) fn observe(&mut self, now: DateTime<Utc>) {
        self.0.retain(|_, failed| now - failed.at < FORGOTTEN_AFTER);
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
    fn what_is_not_repeated_is_forgotten_and_a_conflict_is_no_failure() {
        let mut failed = FailedWrites::default();
        failed.fail(&write("a"), &denied(), at(0));
        failed.fail(&write("a"), &denied(), at(300));
        failed.observe(at(300 + 1_799));
        assert!(failed.lasting().is_some());
        failed.observe(at(300 + 1_800));
        assert_eq!(failed.lasting(), None);
        let conflict = KubeError::Conflict { what: String::new() };
        failed.fail(&write("a"), &conflict, at(0));
        failed.fail(&write("a"), &conflict, at(300));
        assert_eq!(failed.lasting(), None);
    }
}
