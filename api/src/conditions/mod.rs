//! Conditions of our kinds: their types, how one is set, and the `Ready` summary by core's rules (I2).

mod paused;
mod progress;
mod state;
mod status;
mod summary;
mod types;

use std::{borrow::Cow, cmp::Ordering};

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

pub use paused::paused;
pub use progress::{pool_summary, set_progress};
pub use state::ConditionState;
pub use status::{Status, get, is_true};
pub use summary::{Summary, summarize};
pub use types::{
    CLOUD_REACHABLE, DELETING, DRIFTED, EVENT_QUEUE_READY, GROUP_READY, INSTANCE_READY,
    LAUNCH_TEMPLATE_READY, MACHINE, MACHINE_SUMMARY, NODES_READY, PAUSED, POOL, POOL_SUMMARY, READY,
    RECONCILING, REMEDIATING, ROLLING_OUT, SCALING_DOWN, SCALING_HEALTHY, SCALING_UP, STALLED,
    TERMINATION_PENDING, UP_TO_DATE, is_negative,
};

use crate::{fit, time::to_kubernetes};

/// The maximum length of a message that the API server accepts.
const MAX_MESSAGE_LENGTH: usize = 32_768;

/// The content of a condition before it is set: without times and generations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// One of the types of this module.
    pub type_: &'static str,
    /// The status.
    pub status: Status,
    /// One of [`crate::reasons`].
    pub reason: &'static str,
    /// What is wrong and what to do; the same facts always give the same message (I4).
    pub message: Cow<'static, str>,
}

impl Finding {
    /// A condition with a message.
    #[must_use]
    pub fn new(
        type_: &'static str,
        status: impl Into<Status>,
        reason: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { type_, status: status.into(), reason, message: message.into() }
    }

    /// A condition without a message.
    #[must_use]
    pub fn plain(type_: &'static str, status: impl Into<Status>, reason: &'static str) -> Self {
        Self::new(type_, status, reason, "")
    }

    /// A condition whose status is not determined yet.
    #[must_use]
    pub fn not_yet_reported(type_: &'static str) -> Self {
        Self::new(type_, Status::Unknown, crate::reasons::NOT_YET_REPORTED, summary::NOT_YET_REPORTED_MESSAGE)
    }
}

/// Sets a finding in an object's conditions; `generation` is that of the object, `now` the current time.
///
/// `lastTransitionTime` changes only with the status (I4). Conditions are in core's order: `Ready` first, `Deleting` and
/// `Paused` last, the others by name. A message that is longer than the API server accepts is truncated.
pub fn set(conditions: &mut Vec<Condition>, finding: Finding, generation: i64, now: DateTime<Utc>) {
    let status = finding.status.as_str();
    let message = fit::text(finding.message.into_owned(), MAX_MESSAGE_LENGTH);
    if let Some(condition) = conditions.iter_mut().find(|condition| condition.type_ == finding.type_) {
        if condition.status != status {
            condition.last_transition_time = to_kubernetes(now);
        }
        status.clone_into(&mut condition.status);
        finding.reason.clone_into(&mut condition.reason);
        condition.message = message;
        condition.observed_generation = Some(generation);
    } else {
        conditions.push(Condition {
            type_: finding.type_.to_owned(),
            status: status.to_owned(),
            reason: finding.reason.to_owned(),
            message,
            last_transition_time: to_kubernetes(now),
            observed_generation: Some(generation),
        });
    }
    conditions.sort_by(|a, b| order(&a.type_, &b.type_));
}

/// Sets the `Ready` summary of an object from its conditions (I2).
pub fn set_ready(conditions: &mut Vec<Condition>, of: &[&str], generation: i64, now: DateTime<Utc>) {
    let summary = summarize(conditions, of);
    set(conditions, Finding::new(READY, summary.status, summary.reason, summary.message), generation, now);
}

/// Adds an unknown condition for each missing type, so that all exist from the first reconcile on (I3).
pub fn complete(
    conditions: &mut Vec<Condition>,
    types: &[&'static str],
    generation: i64,
    now: DateTime<Utc>,
) {
    for type_ in types {
        if get(conditions, type_).is_none() {
            set(conditions, Finding::not_yet_reported(type_), generation, now);
        }
    }
}

fn order(a: &str, b: &str) -> Ordering {
    let rank = |type_: &str| match type_ {
        READY => 0,
        DELETING => 2,
        PAUSED => 3,
        _ => 1,
    };
    rank(a).cmp(&rank(b)).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{capi::PauseState, reasons, time::from_kubernetes};

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 500_000_000).unwrap()
    }

    // Rules: I4
    #[test]
    fn transition_time_changes_only_with_the_status() {
        let mut conditions = Vec::new();
        set(&mut conditions, Finding::plain(GROUP_READY, true, reasons::group_ready::GROUP_READY), 1, at(10));
        let first = conditions.clone();
        set(&mut conditions, Finding::plain(GROUP_READY, true, reasons::group_ready::GROUP_READY), 1, at(20));
        assert_eq!(conditions, first, "nothing new, so nothing to write");

        set(
            &mut conditions,
            Finding::new(GROUP_READY, true, reasons::group_ready::GROUP_READY, "more"),
            2,
            at(30),
        );
        let condition = get(&conditions, GROUP_READY).unwrap();
        assert_eq!(from_kubernetes(&condition.last_transition_time).timestamp(), 10);
        assert_eq!((condition.observed_generation, condition.message.as_str()), (Some(2), "more"));

        set(&mut conditions, Finding::plain(GROUP_READY, false, reasons::group_ready::REJECTED), 2, at(40));
        let condition = get(&conditions, GROUP_READY).unwrap();
        assert_eq!(from_kubernetes(&condition.last_transition_time).timestamp(), 40);
    }

    // Rules: I3
    #[test]
    fn a_first_reconcile_reports_every_condition() {
        let mut conditions = Vec::new();
        complete(&mut conditions, POOL, 1, at(0));
        set_ready(&mut conditions, POOL_SUMMARY, 1, at(0));
        let types: Vec<&str> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(
            types,
            [
                READY,
                CLOUD_REACHABLE,
                DRIFTED,
                EVENT_QUEUE_READY,
                GROUP_READY,
                LAUNCH_TEMPLATE_READY,
                NODES_READY,
                RECONCILING,
                REMEDIATING,
                ROLLING_OUT,
                SCALING_DOWN,
                SCALING_HEALTHY,
                SCALING_UP,
                STALLED,
                UP_TO_DATE,
                DELETING,
                PAUSED
            ]
        );
        let ready = get(&conditions, READY).unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("Unknown", "ReadyUnknown"));
    }

    #[test]
    fn a_message_that_is_too_long_is_cut_between_characters() {
        let mut conditions = Vec::new();
        let message = "é".repeat(MAX_MESSAGE_LENGTH);
        set(
            &mut conditions,
            Finding::new(GROUP_READY, false, reasons::group_ready::REJECTED, message),
            1,
            at(0),
        );
        let message = &get(&conditions, GROUP_READY).unwrap().message;
        assert!(
            message.len() <= MAX_MESSAGE_LENGTH
                && message.ends_with(" more characters")
                && message.contains("é … and ")
        );
    }

    // Rules: F2
    #[test]
    fn paused_reads_as_core_writes_it() {
        let both = PauseState { cluster: true, annotation: true, delete_for_move: false };
        let finding = paused(both, "ASGMachinePool");
        assert_eq!((finding.status, finding.reason), (Status::True, "Paused"));
        assert_eq!(
            finding.message,
            "Cluster spec.paused is set to true, ASGMachinePool has the cluster.x-k8s.io/paused annotation"
        );
        let finding = paused(PauseState::default(), "ASGMachinePool");
        assert_eq!(
            (finding.status, finding.reason, finding.message.as_ref()),
            (Status::False, "NotPaused", "")
        );
    }

    #[test]
    fn summaries_leave_out_what_is_normal_in_a_running_pool() {
        for type_ in [ROLLING_OUT, SCALING_UP, SCALING_DOWN, UP_TO_DATE, PAUSED, READY] {
            assert!(!POOL_SUMMARY.contains(&type_));
        }
        assert!(POOL_SUMMARY.iter().all(|type_| POOL.contains(type_)));
        assert!(MACHINE_SUMMARY.iter().all(|type_| MACHINE.contains(type_)));
    }
}
