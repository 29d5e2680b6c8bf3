//! The calls to AWS that fail: rejected ones are tried again after a growing delay, or at once when a user changes
//! something; every one that has failed for some time is reported.

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::{CloudError, ErrorClass, LaunchBlocker, LifecycleState, Write};
use chrono::{DateTime, TimeDelta, Utc};

use crate::backoff::{Failures, PERMANENT, remaining};
use crate::machine_pool::model::Observed;
use crate::machine_pool::model::call_kind::{CallKind, CallSubject, CallTopic};

/// A call that has failed for this long is reported, whatever the error is.
const REPORTED_AFTER: TimeDelta = TimeDelta::minutes(2);
/// A batch that failed this often in a row is taken apart, whatever the error is; where no answer arrives in time, several
/// calls would only take longer.
const BATCH_FAILS: u32 = 2;
/// A call that does not wait for a settled view is paced when it has failed this often in a row.
const PACED_FAILS: u32 = 2;
/// While it is paced, it is repeated on a settled view, or after this long if other calls leave none.
const PACED_REPEAT: TimeDelta = TimeDelta::seconds(60);

/// The last failure of each call that has not succeeded since.
#[derive(Debug, Clone, Default)]
pub struct FailedCalls {
    calls: BTreeMap<CallSubject, FailedCall>,
    /// The failures of calls about instances, by kind: each instance may be gone before calls about it have failed for long.
    of_kinds: BTreeMap<CallKind, Streak>,
    /// Whether the last plan brings the previous content of the launch template to the group.
    launches_previous: bool,
}

/// Calls of a kind that fail one after another, whichever instance they are about.
#[derive(Debug, Clone, Copy)]
struct Streak {
    since: DateTime<Utc>,
    at: DateTime<Utc>,
}

impl Streak {
    /// With a failure at `now`, after which no other counts unless it follows soon. The clock may have been set back.
    fn with(before: Option<&Self>, now: DateTime<Utc>) -> Self {
        let continued = before.filter(|before| before.since <= now && now - before.at <= REPORTED_AFTER);
        Self { since: continued.map_or(now, |before| before.since), at: now }
    }

    fn is_lasting(&self) -> bool {
        self.at - self.since >= REPORTED_AFTER
    }
}

/// A call that fails.
#[derive(Debug, Clone)]
pub struct FailedCall {
    /// The last error.
    pub error: CloudError,
    /// Whether AWS rejects it, so that only a user's action or time changes it.
    pub is_rejected: bool,
    since: DateTime<Utc>,
    at: DateTime<Utc>,
    count: u32,
    is_lasting: bool,
    retry: Option<(Failures, String)>,
}

impl FailedCall {
    /// Whether AWS rejects the call, and its retry is not due.
    fn waits(&self, now: DateTime<Utc>) -> bool {
        self.retry.as_ref().is_some_and(|(failures, _)| failures.wait(now).is_some())
    }
}

impl FailedCalls {
    /// What a call of the last plan is about.
    fn subjects(&self, write: &Write) -> Vec<CallSubject> {
        let mut subjects = CallSubject::of(write);
        for subject in &mut subjects {
            subject.is_previous = self.launches_previous && subject.kind.is_of_launch_content();
        }
        subjects
    }

    /// Whether AWS rejects the content of the launch template that the spec has, and neither is a retry due nor has a user
    /// changed something. `retry_key` makes the hash of what a user can change.
    #[must_use]
    pub fn rejects_launch_content(&self, retry_key: impl FnOnce() -> String, now: DateTime<Utc>) -> bool {
        let of_spec = self.calls.iter().filter(|(subject, failed)| {
            subject.kind.is_of_launch_content() && !subject.is_previous && failed.waits(now)
        });
        let keys: Vec<&String> =
            of_spec.filter_map(|(_, failed)| failed.retry.as_ref().map(|(_, key)| key)).collect();
        !keys.is_empty() && keys.contains(&&retry_key())
    }

    /// Whether a call must not be tried now.
    #[must_use]
    pub fn holds(&self, write: &Write, retry_key: &str, now: DateTime<Utc>) -> bool {
        // Terminations have another interval, by the annotation on the ASGMachine.
        let paced = matches!(write, Write::TerminateInstances { .. });
        let held = |failed: &FailedCall| {
            failed.waits(now) && failed.retry.as_ref().is_some_and(|(_, key)| key == retry_key)
        };
        !paced && self.subjects(write).iter().any(|subject| self.calls.get(subject).is_some_and(held))
    }

    /// How long a call that fails repeatedly must not be repeated on a view that is not settled: after each attempt no view
    /// is settled until it can no longer take effect, and terminations and lifecycle actions wait for a settled view. Only a
    /// change of the launch template version and an increase of desired capacity do not wait for one by themselves. One
    /// that AWS rejects has its own delay.
    #[must_use]
    pub fn paces(&self, write: &Write, now: DateTime<Utc>) -> Option<TimeDelta> {
        if !matches!(CallKind::of(write), CallKind::UpdateLaunch | CallKind::UpdateCapacity) {
            return None;
        }
        let failed = self.subjects(write).into_iter().filter_map(|subject| self.calls.get(&subject));
        let repeated = failed.filter(|failed| failed.count >= PACED_FAILS && !failed.is_rejected);
        repeated.filter_map(|failed| remaining(failed.at + PACED_REPEAT, now, PACED_REPEAT)).max()
    }

    /// Whether an event about a failure at `now` is due: AWS rejects the call with another message than before, or the call, or
    /// calls of its kind about any instance, have failed for long enough.
    #[must_use]
    pub fn is_new(&self, write: &Write, error: &CloudError, is_rejected: bool, now: DateTime<Utc>) -> bool {
        let subjects = self.subjects(write);
        if is_rejected {
            return subjects.iter().any(|subject| {
                let before = self.calls.get(subject);
                before.is_none_or(|before| !before.is_rejected || before.error.message != error.message)
            });
        }
        subjects.iter().any(|subject| {
            let (own, of_kind) = (self.calls.get(subject), self.of_kinds.get(&subject.kind));
            let was_lasting =
                own.is_some_and(|own| own.is_lasting) || of_kind.is_some_and(Streak::is_lasting);
            !was_lasting && self.is_lasting(subject, now)
        })
    }

    /// Whether a call that fails at `now` has failed for long enough to be reported, or calls of its kind about any instance have.
    fn is_lasting(&self, subject: &CallSubject, now: DateTime<Utc>) -> bool {
        let own = self.calls.get(subject).is_some_and(|own| now - own.since >= REPORTED_AFTER);
        own || Streak::with(self.of_kinds.get(&subject.kind), now).is_lasting()
    }

    /// The first call about this that AWS rejects, or that has failed for long enough to be reported.
    #[must_use]
    pub fn about(&self, topic: CallTopic) -> Option<(&CallSubject, &FailedCall)> {
        self.all_about(topic).next()
    }

    fn all_about(&self, topic: CallTopic) -> impl Iterator<Item = (&CallSubject, &FailedCall)> {
        self.calls.iter().filter(move |(subject, failed)| {
            subject.kind.topic() == topic && (failed.is_rejected || failed.is_lasting)
        })
    }

    /// The operations about this that fail in addition to the first, with AWS's codes, as the end of a message.
    #[must_use]
    pub fn in_addition(&self, topic: CallTopic) -> String {
        let first = self.about(topic).map(|(_, failed)| failed.error.api);
        let others = self.all_about(topic).filter(|(_, failed)| Some(failed.error.api) != first);
        let others: BTreeSet<String> =
            others.map(|(_, failed)| format!("{} ({})", failed.error.api, failed.error.code)).collect();
        if others.is_empty() {
            return String::new();
        }
        let others: Vec<String> = others.into_iter().collect();
        format!(" Other calls that fail: {}.", others.join(", "))
    }

    /// Whether AWS rejects a call since the image cannot be launched, in the words of EC2.
    #[must_use]
    pub fn names_image(&self) -> bool {
        let is_image = |failed: &FailedCall| {
            LaunchBlocker::of_answer(&failed.error.message) == Some(LaunchBlocker::Image)
        };
        self.calls.values().any(|failed| failed.is_rejected && is_image(failed))
    }

    /// Whether the termination of an instance must be requested alone: AWS rejects a batch as a whole, so that one
    /// instance would delay the others.
    #[must_use]
    pub fn terminates_alone(&self, instance: &str) -> bool {
        let kind = CallKind::TerminateInstances;
        let subject = CallSubject { kind, instance: Some(instance.to_owned()), is_previous: false };
        self.calls.get(&subject).is_some_and(|failed| {
            failed.is_rejected
                || failed.error.class == ErrorClass::NotFound
                || failed.count >= BATCH_FAILS && !failed.error.is_timeout()
        })
    }

    /// How long until the next try of a rejected call is due. A call that fails otherwise is retried with the backoff
    /// of the pool.
    #[must_use]
    pub fn next_try(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let rejected = self.calls.values().filter_map(|failed| failed.retry.as_ref());
        // One that is due but was not planned waits for a view to settle.
        rejected.map(|(failures, _)| failures.wait(now).unwrap_or(TimeDelta::seconds(1))).min()
    }

    /// Records that a call failed. `retry_key` is the hash of what a user can change, if AWS rejected it.
    pub(super) fn add(
        &mut self,
        write: &Write,
        error: &CloudError,
        retry_key: Option<&str>,
        now: DateTime<Utc>,
    ) {
        for subject in self.subjects(write) {
            let before = self.calls.get(&subject);
            let retry = retry_key.map(|key| {
                let same = before.and_then(|b| b.retry.as_ref()).filter(|(_, of)| of == key).map(|(f, _)| f);
                (Failures::after(same, PERMANENT, now), key.to_owned())
            });
            let failed = FailedCall {
                error: error.clone(),
                is_rejected: retry_key.is_some(),
                // The clock may have been set back since.
                since: before.map_or(now, |before| before.since.min(now)),
                at: now,
                count: before.map_or(0, |before| before.count).saturating_add(1),
                is_lasting: self.is_lasting(&subject, now),
                retry,
            };
            if subject.instance.is_some() {
                let streak = Streak::with(self.of_kinds.get(&subject.kind), now);
                self.of_kinds.insert(subject.kind, streak);
            }
            self.calls.insert(subject, failed);
        }
    }

    /// Records that a call succeeded.
    pub(super) fn clear(&mut self, write: &Write) {
        for subject in self.subjects(write) {
            self.calls.remove(&subject);
            self.of_kinds.remove(&subject.kind);
        }
    }

    /// Records which content of the launch template the plan brings to the group.
    pub(super) fn set_launches_previous(&mut self, launches_previous: bool) {
        self.launches_previous = launches_previous;
    }

    /// Forgets the failures of calls that are not needed any more: calls about the group that are not planned, and
    /// calls about instances that are terminated, or that AWS terminates now. Calls about instances are made at
    /// intervals, so that a plan without them proves nothing. Nor does one with the other content of the launch template.
    pub(super) fn keep<'a>(
        &mut self,
        planned: impl Iterator<Item = &'a Write>,
        observed: &Observed,
        now: DateTime<Utc>,
    ) {
        let kinds: BTreeSet<CallKind> = planned.map(CallKind::of).collect();
        let launches_previous = self.launches_previous;
        let is_other = |subject: &CallSubject| {
            subject.kind.is_of_launch_content() && subject.is_previous != launches_previous
        };
        self.calls.retain(|subject, failed| match &subject.instance {
            None if is_other(subject) => {
                failed.waits(now) && (launches_previous || kinds.contains(&subject.kind))
            }
            // A version is created before the group is pinned to it: the rejection of the one before stays reported.
            None if subject.kind.is_of_launch_content() => {
                kinds.iter().any(|kind| kind.is_of_launch_content())
            }
            None => kinds.contains(&subject.kind),
            Some(id) => {
                let instance = observed.instances.get(id);
                let lifecycle = instance.and_then(|instance| instance.lifecycle());
                lifecycle.is_some_and(|state| match subject.kind {
                    CallKind::TerminateInstances => !state.is_terminating(),
                    _ => *state == LifecycleState::TerminatingWait,
                })
            }
        });
    }
}

#[cfg(test)]
impl FailedCalls {
    /// A call failed, for a test to record.
    pub fn fail(&mut self, write: &Write, error: &CloudError, now: DateTime<Utc>) {
        self.add(write, error, None, now);
    }
}

#[cfg(test)]
#[path = "failed_calls_tests.rs"]
mod tests;
