//! How calls that fail are held, retried and reported, by example.

use std::collections::BTreeSet;

use capasg_cloud::{GroupChange, TemplateRef};

use super::*;
use crate::machine_pool::decide::testing::{Stage, desired};

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

fn pin() -> Write {
    let template = TemplateRef { id: "lt-1".to_owned(), version: Some(2) };
    let launch = desired(1).settings.with_template(template).launch;
    let change = GroupChange { launch: Some(launch), ..GroupChange::default() };
    Write::UpdateGroup { group: "g".to_owned(), change: Box::new(change) }
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
    for class in [ErrorClass::Transient, ErrorClass::Throttled, ErrorClass::Conflict, ErrorClass::NotFound] {
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
    let pin = pin();
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
fn what_aws_rejects_stays_reported_while_the_previous_content_is_launched() {
    let at = |seconds| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
    let (mut failed, pin, observed) = (FailedCalls::default(), pin(), Stage::new(1).observed);
    let rejects = |failed: &FailedCalls, key: &str, seconds| {
        failed.rejects_launch_content(|| key.to_owned(), at(seconds))
    };
    failed.add(&pin, &error(ErrorClass::Invalid), Some("key"), at(0));
    assert!(rejects(&failed, "key", 29) && !rejects(&failed, "other key", 29));
    failed.set_launches_previous(true);
    failed.keep(std::iter::empty(), &observed, at(1));
    assert!(!failed.holds(&pin, "key", at(1)), "it has another version");
    failed.clear(&pin);
    assert!(failed.about(CallTopic::Group).is_some() && rejects(&failed, "key", 29));
    assert_eq!(failed.next_try(at(1)), Some(TimeDelta::seconds(29)));
    assert!(!rejects(&failed, "key", 30), "the retry is due");
    failed.set_launches_previous(false);
    assert!(failed.holds(&pin, "key", at(29)));
    failed.keep(std::iter::empty(), &observed, at(31));
    assert!(failed.about(CallTopic::Group).is_none(), "it is not planned any more");
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
