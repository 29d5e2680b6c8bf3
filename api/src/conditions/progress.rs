//! `Reconciling` and `Stalled`, as kstatus (`sigs.k8s.io/cli-utils`) reads them: tools that apply objects wait until
//! neither is `True`. Both summarize other conditions, so that they change only together with these.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    CLOUD_REACHABLE, DELETING, DRIFTED, Finding, GROUP_READY, LAUNCH_TEMPLATE_READY, NODES_READY, PAUSED,
    POOL_SUMMARY, RECONCILING, REMEDIATING, ROLLING_OUT, SCALING_DOWN, SCALING_HEALTHY, SCALING_UP, STALLED,
    UP_TO_DATE, get, is_true, set, summary::bullets,
};
use crate::reasons::{
    NOT_YET_REPORTED, cloud_reachable, drifted, group_ready, launch_template_ready, nodes_ready, reconciling,
    scaling_healthy, stalled, up_to_date,
};

/// The conditions that may stall a pool, the most relevant first.
const MAY_STALL: [&str; 6] =
    [CLOUD_REACHABLE, LAUNCH_TEMPLATE_READY, GROUP_READY, SCALING_HEALTHY, NODES_READY, UP_TO_DATE];
/// The conditions that show progress of a pool, the most relevant first.
const MAY_PROGRESS: [&str; 12] = [
    DELETING,
    CLOUD_REACHABLE,
    LAUNCH_TEMPLATE_READY,
    GROUP_READY,
    SCALING_HEALTHY,
    NODES_READY,
    UP_TO_DATE,
    ROLLING_OUT,
    REMEDIATING,
    SCALING_UP,
    SCALING_DOWN,
    DRIFTED,
];

/// The conditions that `Ready` of a pool summarizes: those of [`POOL_SUMMARY`], `NodesReady` if instances have had no ready
/// Node for longer than `spec.nodeStartupTimeoutSeconds`, and `UpToDate` if the rollout is stopped until a user acts.
#[must_use]
pub fn pool_summary(conditions: &[Condition]) -> Vec<&'static str> {
    let stalled = [NODES_READY, UP_TO_DATE].into_iter().filter(|type_| stalls(conditions, type_));
    POOL_SUMMARY.iter().copied().chain(stalled).collect()
}

/// Sets `Reconciling` and `Stalled` of a pool from its other conditions. At most one of them is `True`, and neither is
/// while the pool is paused.
///
/// `Stalled` is `True` if something remains as it is until a user changes the spec or something in AWS. `Reconciling` is
/// `True` while the controller or AWS brings the pool to its spec. What waits as the spec demands (for a window, in a
/// preview, for a user who deletes Machines) is neither.
pub fn set_progress(conditions: &mut Vec<Condition>, generation: i64, now: DateTime<Utc>) {
    let paused = is_true(conditions, PAUSED);
    let those = |all: &[&'static str], holds: fn(&[Condition], &str) -> bool| -> Vec<&'static str> {
        all.iter().copied().filter(|type_| !paused && holds(conditions, type_)).collect()
    };
    let stalling = those(&MAY_STALL, stalls);
    let progressing = if stalling.is_empty() { those(&MAY_PROGRESS, progresses) } else { Vec::new() };
    let summary = |type_, of: &[&str], yes, no| {
        if of.is_empty() {
            Finding::plain(type_, false, no)
        } else {
            Finding::new(type_, true, yes, bullets(conditions, of))
        }
    };
    let findings = [
        summary(RECONCILING, &progressing, reconciling::RECONCILING, reconciling::NOT_RECONCILING),
        summary(STALLED, &stalling, stalled::STALLED, stalled::NOT_STALLED),
    ];
    for finding in findings {
        set(conditions, finding, generation, now);
    }
}

/// Whether a condition reports what remains as it is until a user acts.
fn stalls(conditions: &[Condition], type_: &str) -> bool {
    let reasons: &[&str] = match type_ {
        CLOUD_REACHABLE => &[cloud_reachable::ACCESS_DENIED],
        LAUNCH_TEMPLATE_READY => &[
            launch_template_ready::BOOTSTRAP_DATA_TOO_LARGE,
            launch_template_ready::BOOTSTRAP_DATA_COMPRESSED,
            launch_template_ready::IMAGE_NOT_FOUND,
            launch_template_ready::IMAGE_ARCHITECTURE_MISMATCH,
            launch_template_ready::SECURITY_GROUP_NOT_FOUND,
            launch_template_ready::SECURITY_GROUP_IN_ANOTHER_VPC,
            launch_template_ready::INSTANCE_PROFILE_IN_ANOTHER_ACCOUNT,
            launch_template_ready::REJECTED,
        ],
        GROUP_READY => &[
            group_ready::SUBNET_NOT_FOUND,
            group_ready::SUBNETS_IN_SEVERAL_VPCS,
            group_ready::INSTANCE_TYPE_NOT_FOUND,
            group_ready::GROUP_NOT_OWNED,
            group_ready::ADOPTION_BLOCKED,
            group_ready::REJECTED,
        ],
        // AWS may have capacity again at any time; an unknown cause may pass as well.
        SCALING_HEALTHY => &[
            scaling_healthy::QUOTA_EXCEEDED,
            scaling_healthy::NO_FREE_ADDRESSES,
            scaling_healthy::IMAGE_UNUSABLE,
            scaling_healthy::KEY_UNUSABLE,
            scaling_healthy::ROLE_UNUSABLE,
            scaling_healthy::REJECTED,
            scaling_healthy::PROCESSES_SUSPENDED,
            scaling_healthy::REPLICAS_OUT_OF_BOUNDS,
        ],
        NODES_READY => &[
            nodes_ready::NODE_STARTUP_TIMEOUT,
            nodes_ready::NODE_DELETED,
            nodes_ready::NODE_NOT_READY,
            nodes_ready::MACHINE_NOT_READY,
            nodes_ready::WRITE_REJECTED,
        ],
        UP_TO_DATE => &[
            up_to_date::PROGRESS_DEADLINE_EXCEEDED,
            up_to_date::INSTANCE_REFRESH_FAILED,
            up_to_date::UNEXPECTED_LAUNCH_TEMPLATE_VERSION,
            up_to_date::ROLLED_BACK,
            up_to_date::WINDOWS_NOT_SUPPORTED,
        ],
        _ => &[],
    };
    has(conditions, type_, "False", reasons)
}

/// Whether a condition reports what the controller or AWS works on.
fn progresses(conditions: &[Condition], type_: &str) -> bool {
    let reason = |wanted: &str| get(conditions, type_).is_some_and(|condition| condition.reason == wanted);
    match type_ {
        DRIFTED => is_true(conditions, DRIFTED) && reason(drifted::CORRECTING),
        UP_TO_DATE => has(conditions, UP_TO_DATE, "False", &[up_to_date::NOT_UP_TO_DATE]),
        // Without a group there are no Nodes, and another condition reports why.
        NODES_READY if reason(NOT_YET_REPORTED) => false,
        // In a preview, neither is created.
        LAUNCH_TEMPLATE_READY if reason(launch_template_ready::LAUNCH_TEMPLATE_NOT_READY) => {
            !previews(conditions)
        }
        GROUP_READY if reason(group_ready::GROUP_NOT_READY) || reason(group_ready::ADOPTING) => {
            !previews(conditions)
        }
        type_ if super::is_negative(type_) => is_true(conditions, type_),
        type_ => !is_true(conditions, type_),
    }
}

/// Whether changes wait for the end of a preview.
fn previews(conditions: &[Condition]) -> bool {
    has(conditions, DRIFTED, "True", &[drifted::PREVIEWING, drifted::DRIFTED])
}

fn has(conditions: &[Condition], type_: &str, status: &str, reasons: &[&str]) -> bool {
    get(conditions, type_)
        .is_some_and(|condition| condition.status == status && reasons.contains(&condition.reason.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::{POOL, Status, complete, set_ready};
    use crate::reasons::{deleting, rolling_out, scaling_up};

    fn healthy() -> Vec<Condition> {
        let mut conditions = Vec::new();
        for type_ in POOL.iter().filter(|type_| **type_ != RECONCILING && **type_ != STALLED) {
            let normal = !crate::conditions::is_negative(type_);
            with(&mut conditions, type_, normal, "Normal");
        }
        conditions
    }

    fn with(conditions: &mut Vec<Condition>, type_: &'static str, status: bool, reason: &'static str) {
        set(conditions, Finding::new(type_, status, reason, format!("why {type_}")), 1, DateTime::UNIX_EPOCH);
    }

    /// The statuses of `Reconciling` and `Stalled`, and the message of the one that is `True`.
    fn progress(conditions: &mut Vec<Condition>) -> (bool, bool, String) {
        set_progress(conditions, 1, DateTime::UNIX_EPOCH);
        let message = [RECONCILING, STALLED].map(|type_| get(conditions, type_).unwrap().message.clone());
        (is_true(conditions, RECONCILING), is_true(conditions, STALLED), message.concat())
    }

    fn after(type_: &'static str, status: bool, reason: &'static str) -> (bool, bool, String) {
        let mut conditions = healthy();
        with(&mut conditions, type_, status, reason);
        progress(&mut conditions)
    }

    #[test]
    fn a_pool_at_rest_neither_reconciles_nor_stalls() {
        assert_eq!(progress(&mut healthy()), (false, false, String::new()));
        for (type_, status, reason) in [
            (UP_TO_DATE, false, up_to_date::WAITING_FOR_WINDOW),
            (UP_TO_DATE, false, up_to_date::WAITING_FOR_DELETION),
            (UP_TO_DATE, false, up_to_date::ROLLOUT_PAUSED),
            (DRIFTED, true, drifted::PREVIEWING),
        ] {
            assert_eq!(after(type_, status, reason), (false, false, String::new()), "{reason}");
        }
    }

    #[test]
    fn a_pool_that_changes_reconciles() {
        for (type_, status, reason) in [
            (ROLLING_OUT, true, rolling_out::ROLLING_OUT),
            (SCALING_UP, true, scaling_up::SCALING_UP),
            (DELETING, true, deleting::DRAINING_MACHINES),
            (DRIFTED, true, drifted::CORRECTING),
            (UP_TO_DATE, false, up_to_date::NOT_UP_TO_DATE),
            (GROUP_READY, false, group_ready::GROUP_NOT_READY),
            (SCALING_HEALTHY, false, scaling_healthy::INSUFFICIENT_CAPACITY),
            (CLOUD_REACHABLE, false, cloud_reachable::THROTTLED),
            (NODES_READY, false, nodes_ready::WAITING_FOR_NODES),
        ] {
            let expected = (true, false, format!("* {type_}: why {type_}"));
            assert_eq!(after(type_, status, reason), expected, "{reason}");
        }
        let mut new = Vec::new();
        complete(&mut new, POOL, 1, DateTime::UNIX_EPOCH);
        assert!(progress(&mut new).0, "nothing is known yet");
    }

    #[test]
    fn what_only_a_user_can_change_stalls_a_pool() {
        for (type_, reason) in [
            (CLOUD_REACHABLE, cloud_reachable::ACCESS_DENIED),
            (LAUNCH_TEMPLATE_READY, launch_template_ready::IMAGE_NOT_FOUND),
            (GROUP_READY, group_ready::REJECTED),
            (SCALING_HEALTHY, scaling_healthy::QUOTA_EXCEEDED),
            (SCALING_HEALTHY, scaling_healthy::REJECTED),
            (NODES_READY, nodes_ready::NODE_STARTUP_TIMEOUT),
            (NODES_READY, nodes_ready::NODE_DELETED),
            (NODES_READY, nodes_ready::NODE_NOT_READY),
            (NODES_READY, nodes_ready::MACHINE_NOT_READY),
            (UP_TO_DATE, up_to_date::PROGRESS_DEADLINE_EXCEEDED),
            (UP_TO_DATE, up_to_date::INSTANCE_REFRESH_FAILED),
        ] {
            let expected = (false, true, format!("* {type_}: why {type_}"));
            assert_eq!(after(type_, false, reason), expected, "{reason}");
        }
        let mut both = healthy();
        with(&mut both, GROUP_READY, false, group_ready::REJECTED);
        with(&mut both, ROLLING_OUT, true, rolling_out::ROLLING_OUT);
        assert_eq!(progress(&mut both), (false, true, "* GroupReady: why GroupReady".to_owned()), "not both");
        with(&mut both, PAUSED, true, crate::reasons::paused::PAUSED);
        assert_eq!(progress(&mut both), (false, false, String::new()), "a pause is neither");
    }

    #[test]
    fn a_preview_does_not_reconcile_what_it_does_not_create() {
        let mut conditions = healthy();
        with(&mut conditions, GROUP_READY, false, group_ready::GROUP_NOT_READY);
        with(&mut conditions, DRIFTED, true, drifted::PREVIEWING);
        assert_eq!(progress(&mut conditions), (false, false, String::new()));
    }

    #[test]
    fn a_pool_with_a_stopped_rollout_is_not_ready() {
        for (reason, ready) in [
            (up_to_date::PROGRESS_DEADLINE_EXCEEDED, Status::False),
            (up_to_date::INSTANCE_REFRESH_FAILED, Status::False),
            (up_to_date::ROLLED_BACK, Status::False),
            (up_to_date::WINDOWS_NOT_SUPPORTED, Status::False),
            (up_to_date::NOT_UP_TO_DATE, Status::True),
            (up_to_date::WAITING_FOR_WINDOW, Status::True),
        ] {
            let mut conditions = healthy();
            with(&mut conditions, UP_TO_DATE, false, reason);
            let of = pool_summary(&conditions);
            set_ready(&mut conditions, &of, 1, DateTime::UNIX_EPOCH);
            let found = get(&conditions, crate::conditions::READY).unwrap();
            assert_eq!(found.status, ready.as_str(), "{reason}");
            assert_eq!(found.message.contains("* UpToDate: why UpToDate"), ready == Status::False);
        }
    }
}
