//! The calls that AWS rejects: each kind is tried again after a growing delay, or at once when a user changes
//! something.

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::{CloudError, Write};
use chrono::{DateTime, TimeDelta, Utc};

use crate::backoff::{Failures, PERMANENT};
use crate::machine_pool::model::call_kind::{CallKind, CallTopic};

/// The last rejection of each kind of call.
#[derive(Debug, Clone, Default)]
pub struct RejectedCalls(BTreeMap<CallKind, Rejection>);

#[derive(Debug, Clone)]
struct Rejection {
    error: CloudError,
    failures: Failures,
    retry_key: String,
}

impl RejectedCalls {
    /// Whether a call must not be tried now.
    #[must_use]
    pub fn holds(&self, write: &Write, retry_key: &str, now: DateTime<Utc>) -> bool {
        // Terminations have another interval, by the annotation on the ASGMachine.
        let paced = matches!(write, Write::TerminateInstances { .. });
        !paced
            && self.0.get(&CallKind::of(write)).is_some_and(|rejection| {
                rejection.retry_key == retry_key && rejection.failures.wait(now).is_some()
            })
    }

    /// Whether AWS rejects a call with another message than before, so that an event is due.
    #[must_use]
    pub fn is_new(&self, write: &Write, error: &CloudError) -> bool {
        self.0.get(&CallKind::of(write)).is_none_or(|before| before.error.message != error.message)
    }

    /// The rejection of a call about this.
    #[must_use]
    pub fn about(&self, topic: CallTopic) -> Option<&CloudError> {
        self.0.iter().find(|(kind, _)| kind.topic() == topic).map(|(_, rejection)| &rejection.error)
    }

    /// How long until the next try is due.
    #[must_use]
    pub fn next_try(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        // One that is due but was not planned waits for a view to settle.
        self.0.values().map(|r| r.failures.wait(now).unwrap_or(TimeDelta::seconds(1))).min()
    }

    /// A call was rejected.
    pub(super) fn add(&mut self, write: &Write, error: CloudError, retry_key: &str, now: DateTime<Utc>) {
        let kind = CallKind::of(write);
        let same_try = self.0.get(&kind).filter(|b| b.retry_key == retry_key).map(|b| &b.failures);
        let failures = Failures::after(same_try, PERMANENT, now);
        self.0.insert(kind, Rejection { error, failures, retry_key: retry_key.to_owned() });
    }

    /// A call of this kind was accepted.
    pub(super) fn clear(&mut self, write: &Write) {
        self.0.remove(&CallKind::of(write));
    }

    /// Forgets the rejections of calls that are not planned any more.
    pub(super) fn keep_planned<'a>(&mut self, planned: impl Iterator<Item = &'a Write>) {
        let kinds: BTreeSet<CallKind> = planned.map(CallKind::of).collect();
        self.0.retain(|known, _| kinds.contains(known));
    }
}
