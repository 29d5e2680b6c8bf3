//! Conditions of our kinds: their types, how one is set, and the `Ready` summary by core's rules (contract section 4).

mod paused;
mod summary;

use std::{borrow::Cow, cmp::Ordering};

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

pub use paused::paused;
pub use summary::{Summary, summarize};

use crate::time::to_kubernetes;

/// Sums the starred ones of api.md; see [`POOL_SUMMARY`] and [`MACHINE_SUMMARY`].
pub const READY: &str = "Ready";
/// Pool: AWS answers, with credentials of the right account.
pub const CLOUD_REACHABLE: &str = "CloudReachable";
/// Pool: the group's launch template version holds what the spec says.
pub const LAUNCH_TEMPLATE_READY: &str = "LaunchTemplateReady";
/// Pool: the Auto Scaling group exists and is as the spec says.
pub const GROUP_READY: &str = "GroupReady";
/// Pool: instances can be launched.
pub const SCALING_HEALTHY: &str = "ScalingHealthy";
/// Both kinds, negative: the object is being deleted.
pub const DELETING: &str = "Deleting";
/// Both kinds: made from the current spec.
pub const UP_TO_DATE: &str = "UpToDate";
/// Pool, negative: outdated instances are being replaced.
pub const ROLLING_OUT: &str = "RollingOut";
/// Pool, negative: fewer instances than asked for.
pub const SCALING_UP: &str = "ScalingUp";
/// Pool, negative: more instances than asked for.
pub const SCALING_DOWN: &str = "ScalingDown";
/// Pool, negative: unhealthy Machines are being replaced.
pub const REMEDIATING: &str = "Remediating";
/// Both kinds, negative: the object is left alone.
pub const PAUSED: &str = "Paused";
/// Pool, negative: AWS differs from the spec.
pub const DRIFTED: &str = "Drifted";
/// Instance: in service and healthy.
pub const INSTANCE_READY: &str = "InstanceReady";
/// Instance, negative: AWS is ending it.
pub const TERMINATION_PENDING: &str = "TerminationPending";

/// All conditions of an `ASGMachinePool`, set from its first reconcile on (I3).
pub const POOL: &[&str] = &[
    READY,
    CLOUD_REACHABLE,
    LAUNCH_TEMPLATE_READY,
    GROUP_READY,
    SCALING_HEALTHY,
    UP_TO_DATE,
    ROLLING_OUT,
    SCALING_UP,
    SCALING_DOWN,
    REMEDIATING,
    DRIFTED,
    DELETING,
    PAUSED,
];
/// What `Ready` of a pool sums, the most relevant first; a pool in mid-rollout is ready.
pub const POOL_SUMMARY: &[&str] =
    &[DELETING, CLOUD_REACHABLE, LAUNCH_TEMPLATE_READY, GROUP_READY, SCALING_HEALTHY];
/// All conditions of an `ASGMachine`, set from its first reconcile on (I3).
pub const MACHINE: &[&str] = &[READY, INSTANCE_READY, UP_TO_DATE, TERMINATION_PENDING, DELETING, PAUSED];
/// What `Ready` of an instance sums, the most relevant first.
pub const MACHINE_SUMMARY: &[&str] = &[DELETING, INSTANCE_READY];

/// The longest message that the API server takes.
const MAX_MESSAGE_LENGTH: usize = 32_768;

/// What a condition says of its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It holds.
    True,
    /// It does not.
    False,
    /// It cannot be told.
    Unknown,
}

impl Status {
    /// The status as Kubernetes writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Reads a status; anything but `True` and `False` is unknown, as core takes it.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

impl From<bool> for Status {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// A condition as decided, before it is set: no times, no generations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// One of the types above.
    pub type_: &'static str,
    /// What holds.
    pub status: Status,
    /// One of [`crate::reasons`].
    pub reason: &'static str,
    /// What is wrong and what to do next; the same facts always give the same words (I4).
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

    /// A condition that needs no words.
    #[must_use]
    pub fn plain(type_: &'static str, status: impl Into<Status>, reason: &'static str) -> Self {
        Self::new(type_, status, reason, "")
    }

    /// A condition that was not looked at yet.
    #[must_use]
    pub fn not_yet_reported(type_: &'static str) -> Self {
        Self::new(type_, Status::Unknown, crate::reasons::NOT_YET_REPORTED, summary::NOT_YET_REPORTED_MESSAGE)
    }
}

/// Whether a condition is normal when it is `False`.
#[must_use]
pub fn is_negative(type_: &str) -> bool {
    matches!(
        type_,
        DELETING
            | PAUSED
            | ROLLING_OUT
            | SCALING_UP
            | SCALING_DOWN
            | REMEDIATING
            | DRIFTED
            | TERMINATION_PENDING
    )
}

/// The condition of a type, if it is set.
#[must_use]
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether a condition is set and `True`.
#[must_use]
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == Status::True.as_str())
}

/// Puts a finding among an object's conditions; `generation` is the object's, `now` the clock's.
///
/// `lastTransitionTime` changes only with the status (I4). Conditions stand in core's order: `Ready` first, `Deleting`
/// and `Paused` last, the rest by name. A message longer than the API server takes is cut.
pub fn set(conditions: &mut Vec<Condition>, finding: Finding, generation: i64, now: DateTime<Utc>) {
    let status = finding.status.as_str();
    let message = cut(finding.message.into_owned());
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

/// Sets the `Ready` summary of an object from the conditions it has (I2).
pub fn set_ready(conditions: &mut Vec<Condition>, of: &[&str], generation: i64, now: DateTime<Utc>) {
    let summary = summarize(conditions, of);
    set(conditions, Finding::new(READY, summary.status, summary.reason, summary.message), generation, now);
}

/// Adds an unknown condition for each type that is missing, so that all are there from the first reconcile (I3).
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

/// Cuts at a character boundary; the API server counts characters, so bytes are on the safe side.
fn cut(mut message: String) -> String {
    const MARK: &str = " …";
    if message.len() > MAX_MESSAGE_LENGTH {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_LENGTH - MARK.len()));
        message.push_str(MARK);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{capi::PauseState, reasons, time::from_kubernetes};

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 500_000_000).unwrap()
    }

    #[test]
    fn i4_transition_time_changes_only_with_the_status() {
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

    #[test]
    fn i3_a_first_reconcile_reports_every_condition() {
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
                GROUP_READY,
                LAUNCH_TEMPLATE_READY,
                REMEDIATING,
                ROLLING_OUT,
                SCALING_DOWN,
                SCALING_HEALTHY,
                SCALING_UP,
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
        assert!(message.len() <= MAX_MESSAGE_LENGTH && message.ends_with("é …"));
    }

    #[test]
    fn f2_paused_reads_as_core_writes_it() {
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
