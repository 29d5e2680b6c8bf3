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

impl FailedCalls {
    /// Whether a call must not be tried now.
    #[must_use]
    pub fn holds(&self, write: &Write, retry_key: &str, now: DateTime<Utc>) -> bool {
        // Terminations have another interval, by the annotation on the ASGMachine.
        let paced = matches!(write, Write::TerminateInstances { .. });
        let held = |failed: &FailedCall| {
            failed
                .retry
                .as_ref()
                .is_some_and(|(failures, key)| key == retry_key && failures.wait(now).is_some())
        };
        !paced && CallSubject::of(write).iter().any(|subject| self.calls.get(subject).is_some_and(held))
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
        let failed = CallSubject::of(write).into_iter().filter_map(|subject| self.calls.get(&subject));
        let repeated = failed.filter(|failed| failed.count >= PACED_FAILS && !failed.is_rejected);
        repeated.filter_map(|failed| remaining(failed.at + PACED_REPEAT, now, PACED_REPEAT)).max()
    }

    /// Whether an event about a failure at `now` is due: AWS rejects the call with another message than before, or the call, or
    /// calls of its kind about any instance, have failed for long enough.
    #[must_use]
    pub fn is_new(&self, write: &Write, error: &CloudError, is_rejected: bool, now: DateTime<Utc>) -> bool {
        let subjects = CallSubject::of(write);
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
        let subject = CallSubject { kind: CallKind::TerminateInstances, instance: Some(instance.to_owned()) };
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
        for subject in CallSubject::of(write) {
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
        for subject in CallSubject::of(write) {
            self.calls.remove(&subject);
            self.of_kinds.remove(&subject.kind);
        }
    }

    /// Forgets the failures of calls that are not needed any more: calls about the group that are not planned, and
    /// calls about instances that are terminated, or that AWS terminates now. Calls about instances are made at
    /// intervals, so that a plan without them proves nothing.
    pub(super) fn keep<'a>(&mut self, planned: impl Iterator<Item = &'a Write>, observed: &Observed) {
        let kinds: BTreeSet<CallKind> = planned.map(CallKind::of).collect();
        self.calls.retain(|subject, _| match &subject.instance {
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
mod tests {
    use std::collections::BTreeSet;

    use capasg_cloud::{GroupChange, TemplateRef};

    use super::*;
    use crate::machine_pool::decide::testing::desired;

    fn heartbeat(instance: &str) -> Write {
        Write::RecordLifecycleActionHeartbeat {
            group: "g".to_owned(),
            hook: "asg-drain".to_owned(),
            instance: instance.to_owned(),
        }
    }

    fn terminate(instances: &[&str]) -> Write {
        let instances: BTreeSet<String> = instances.iter().map(|id| (*id).to_owned()).collect();
        Write::TerminateInstances { group: "g".to_owned(), instances, decrement: true }
    }

    fn error(class: ErrorClass) -> CloudError {
        let mut error = CloudError::answered("Api", 400, "ValidationError", "no");
        error.class = class;
        error
    }

    #[test]
    fn a_rejected_heartbeat_holds_that_of_no_other_instance() {
        let now = DateTime::UNIX_EPOCH;
        let mut failed = FailedCalls::default();
        failed.add(&heartbeat("i-1"), &error(ErrorClass::Invalid), Some("key"), now);
        assert!(failed.holds(&heartbeat("i-1"), "key", now));
        assert!(!failed.holds(&heartbeat("i-1"), "other key", now), "a user changed something");
        assert!(!failed.holds(&heartbeat("i-2"), "key", now));
    }

    #[test]
    fn what_fails_for_two_minutes_is_reported_whatever_the_error_is() {
        let begin = DateTime::UNIX_EPOCH;
        for class in
            [ErrorClass::Transient, ErrorClass::Throttled, ErrorClass::Conflict, ErrorClass::NotFound]
        {
            let (mut failed, error) = (FailedCalls::default(), error(class));
            for (seconds, reported) in [(0, false), (60, false), (119, false), (120, true), (180, true)] {
                let now = begin + TimeDelta::seconds(seconds);
                let is_new = failed.is_new(&terminate(&["i-1"]), &error, false, now);
                assert_eq!(is_new, seconds == 120, "one event, after {seconds} s");
                failed.add(&terminate(&["i-1"]), &error, None, now);
                assert_eq!(failed.about(CallTopic::Scaling).is_some(), reported, "{class:?}, {seconds} s");
            }
            failed.clear(&terminate(&["i-1"]));
            assert!(failed.about(CallTopic::Scaling).is_none());
        }
    }

    /// A drain takes less time: no call fails for long about the same instance.
    #[test]
    fn calls_that_fail_one_after_another_are_reported_whichever_instances_they_are_about() {
        let begin = DateTime::UNIX_EPOCH;
        let error = error(ErrorClass::Transient);
        let events = |times: &[i64]| {
            let mut failed = FailedCalls::default();
            let event = |(index, seconds): (usize, &i64)| {
                let (now, write) = (begin + TimeDelta::seconds(*seconds), heartbeat(&format!("i-{index}")));
                let is_new = failed.is_new(&write, &error, false, now);
                failed.add(&write, &error, None, now);
                is_new.then_some(*seconds)
            };
            let events: Vec<i64> = times.iter().enumerate().filter_map(event).collect();
            (events, failed)
        };
        let (seen, mut failed) = events(&[0, 60, 119, 120, 120, 200]);
        assert_eq!(seen, [120], "one event");
        assert!(failed.about(CallTopic::Group).is_some());
        let now = begin + TimeDelta::seconds(201);
        failed.clear(&heartbeat("i-9"));
        failed.calls.clear();
        failed.add(&heartbeat("i-10"), &error, None, now);
        assert!(failed.about(CallTopic::Group).is_none(), "one succeeded in between");

        let (seen, failed) = events(&[0, 60, 181]);
        assert!(seen.is_empty() && failed.about(CallTopic::Group).is_none(), "they are failures apart");
    }

    #[test]
    fn a_version_or_capacity_that_fails_again_is_written_once_a_minute_while_no_view_settles() {
        let begin = DateTime::UNIX_EPOCH;
        let at = |seconds| begin + TimeDelta::seconds(seconds);
        let template = TemplateRef { id: "lt-1".to_owned(), version: Some(2) };
        let launch = desired(1).settings.with_template(template).launch;
        let change = GroupChange { launch: Some(launch), ..GroupChange::default() };
        let pin = Write::UpdateGroup { group: "g".to_owned(), change: Box::new(change) };
        let increase = Write::SetDesiredCapacity { group: "g".to_owned(), desired: 3 };
        let (mut failed, error) = (FailedCalls::default(), error(ErrorClass::Transient));
        for write in [&pin, &increase] {
            failed.add(write, &error, None, at(0));
            assert!(failed.paces(write, at(1)).is_none(), "a single failure is repeated soon");
            failed.add(write, &error, None, at(1));
            assert_eq!(failed.paces(write, at(60)), Some(TimeDelta::seconds(1)));
            assert!(failed.paces(write, at(61)).is_none());
            failed.clear(write);
            assert!(failed.paces(write, at(2)).is_none());
        }
        for _ in 0..3 {
            failed.add(&terminate(&["i-1"]), &error, None, at(0));
        }
        assert!(failed.paces(&terminate(&["i-1"]), at(1)).is_none(), "it waits for a settled view itself");
        for _ in 0..3 {
            failed.add(&pin, &self::error(ErrorClass::Invalid), Some("key"), at(0));
        }
        assert!(failed.paces(&pin, at(1)).is_none(), "what a user corrected is tried at once");
    }

    #[test]
    fn a_batch_is_taken_apart_when_one_is_not_found_or_it_fails_again() {
        let now = DateTime::UNIX_EPOCH;
        let batch = terminate(&["i-1", "i-2"]);
        for (class, times, alone) in [
            (ErrorClass::NotFound, 1, true),
            (ErrorClass::Transient, 1, false),
            (ErrorClass::Transient, 2, true),
            (ErrorClass::Conflict, 2, true),
        ] {
            let mut failed = FailedCalls::default();
            for _ in 0..times {
                failed.add(&batch, &error(class), None, now);
            }
            assert_eq!(failed.terminates_alone("i-2"), alone, "{class:?} {times} times");
            assert!(!failed.terminates_alone("i-3"));
            failed.clear(&terminate(&["i-2"]));
            assert!(!failed.terminates_alone("i-2"));
        }
        let mut failed = FailedCalls::default();
        for _ in 0..3 {
            failed.add(&batch, &CloudError::timed_out("TerminateInstances", "no answer"), None, now);
        }
        assert!(!failed.terminates_alone("i-2"), "two calls would take twice as long");
    }
}
