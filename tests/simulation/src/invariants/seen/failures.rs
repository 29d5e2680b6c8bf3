//! What was seen of calls to AWS that failed.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

/// The longest wait before a call that failed is repeated (docs/architecture.md, "From a change to a call": 15 min after
/// AWS rejected it, else the backoff of the pool, at most a minute), and what a call may take until it is given up.
const AFTER_REJECTION: TimeDelta = TimeDelta::minutes(15);
const AFTER_FAILURE: TimeDelta = TimeDelta::minutes(3);

/// When each operation failed last, by whether it was rejected.
#[derive(Default)]
pub(crate) struct Seen(BTreeMap<(&'static str, bool), DateTime<Utc>>);

impl Seen {
    pub(crate) fn failed(&mut self, api: &'static str, is_rejected: bool, at: DateTime<Utc>) {
        self.0.insert((api, is_rejected), at);
    }

    /// When one of these operations failed last.
    pub(crate) fn last(&self, apis: &[&str]) -> Option<DateTime<Utc>> {
        self.0.iter().filter(|((api, _), _)| apis.contains(api)).map(|(_, at)| *at).max()
    }

    /// The moment at which a failure of one of these operations holds up nothing any more.
    pub(crate) fn over(&self, apis: &[&str]) -> Option<DateTime<Utc>> {
        let ends =
            self.0.iter().filter(|((api, _), _)| apis.contains(api)).map(|((_, is_rejected), at)| {
                *at + if *is_rejected { AFTER_REJECTION } else { AFTER_FAILURE }
            });
        ends.max()
    }
}
