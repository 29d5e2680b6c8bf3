//! How launch failures are reported: condition `ScalingHealthy`, `status.lastLaunchFailure` and the event. Pure.

use capasg_api::{
    conditions::{Finding, SCALING_HEALTHY, Status},
    fit,
    pool::LaunchFailureStatus,
    reasons::{INTERNAL_ERROR, scaling_healthy},
    time::to_kubernetes,
};
use capasg_cloud::{ErrorClass, Group, LaunchBlocker};

use crate::machine_pool::model::call_kind::CallTopic;
use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::memory::launch_watch::Blocked;
use crate::machine_pool::model::{ReplicaOwner, counted, instances, is_or_are, replicas};
use crate::machine_pool::report::input::Input;
use crate::machine_pool::report::text::failures_message;

/// Names at most this many places in a message.
const PLACES: usize = 6;
/// The longest message that the status holds.
const MAX_MESSAGE: usize = 1024;

/// The reason of `ScalingHealthy` for a blocker, which is also the label of the metric.
#[must_use]
pub fn reason(blocker: LaunchBlocker) -> &'static str {
    match blocker {
        LaunchBlocker::Capacity | LaunchBlocker::SpotPrice => scaling_healthy::INSUFFICIENT_CAPACITY,
        LaunchBlocker::Quota => scaling_healthy::QUOTA_EXCEEDED,
        LaunchBlocker::Addresses => scaling_healthy::NO_FREE_ADDRESSES,
        LaunchBlocker::Image => scaling_healthy::IMAGE_UNUSABLE,
        LaunchBlocker::Key | LaunchBlocker::Encryption => scaling_healthy::KEY_UNUSABLE,
        LaunchBlocker::Role | LaunchBlocker::SpotRole => scaling_healthy::ROLE_UNUSABLE,
        LaunchBlocker::SecurityGroup
        | LaunchBlocker::TypeInZone
        | LaunchBlocker::Hook
        | LaunchBlocker::Template
        | LaunchBlocker::Unknown => scaling_healthy::LAUNCH_FAILED,
    }
}

/// AWS's message with the types and zones that it concerns, and what to do.
#[must_use]
pub fn message(blocked: &Blocked) -> String {
    let mut places: Vec<String> = blocked
        .places
        .iter()
        .filter_map(|place| match (&place.instance_type, &place.zone) {
            (Some(kind), Some(zone)) => Some(format!("{kind} in {zone}")),
            (Some(one), None) | (None, Some(one)) => Some(one.clone()),
            (None, None) => None,
        })
        .collect();
    let more = places.len().saturating_sub(PLACES);
    places.truncate(PLACES);
    if more > 0 {
        places.push(format!("{more} more"));
    }
    let places = if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) };
    format!("AWS reports \"{}\"{places}. {}.", blocked.message, blocked.blocker.advice())
}

/// `status.lastLaunchFailure` while something prevents launches.
#[must_use]
pub fn last_failure(blocked: &Blocked) -> LaunchFailureStatus {
    LaunchFailureStatus {
        reason: reason(blocked.blocker).to_owned(),
        message: fit::text(blocked.message.clone(), MAX_MESSAGE),
        instance_type: blocked.first.instance_type.clone(),
        availability_zone: blocked.first.zone.clone(),
        time: to_kubernetes(blocked.since),
    }
}

/// Whether instances can be launched, and if not, why and what to do.
#[must_use]
pub fn scaling_healthy(input: &Input<'_>, memory: &PoolMemory) -> Finding {
    let no = |reason, message| Finding::new(SCALING_HEALTHY, false, reason, message);
    if let Some((failed, message)) = failures_message(memory, CallTopic::Scaling) {
        let reason = match failed.error.class {
            _ if !failed.is_rejected => scaling_healthy::CALL_FAILED,
            ErrorClass::Quota => scaling_healthy::QUOTA_EXCEEDED,
            ErrorClass::Capacity => scaling_healthy::INSUFFICIENT_CAPACITY,
            _ => scaling_healthy::REJECTED,
        };
        return no(reason, message);
    }
    if let Some(message) = memory.recent_writes.without_effect(CallTopic::Scaling) {
        return no(scaling_healthy::CHANGE_WITHOUT_EFFECT, message);
    }
    let Some((observed, group)) = input.observed.and_then(|o| o.group.present().map(|group| (o, group)))
    else {
        return Finding::not_yet_reported(SCALING_HEALTHY);
    };
    let healthy = || Finding::plain(SCALING_HEALTHY, true, scaling_healthy::SCALING_HEALTHY);
    if input.objects.is_deleting() {
        return healthy();
    }
    let blocked = memory.launches.blocked();
    if let Some(message) = suspended(input, group, blocked) {
        return no(scaling_healthy::PROCESSES_SUSPENDED, message);
    }
    let in_service = instances::in_service_count(observed);
    let counts = format!(
        "{in_service} of {} {} in service",
        counted(group.capacity.desired, "instance"),
        is_or_are(in_service)
    );
    if let Some(blocked) = blocked {
        return no(reason(blocked.blocker), format!("{counts}; {}", message(blocked)));
    }
    if let Some(error) = memory.launches.unread() {
        let message =
            format!("{counts}; the cause is unknown because the scaling activities cannot be read: {error}");
        return Finding::new(SCALING_HEALTHY, Status::Unknown, INTERNAL_ERROR, message);
    }
    out_of_bounds(input).unwrap_or_else(healthy)
}

/// The replicas that the MachinePool requests and those that the limits of the spec leave, if they differ.
fn out_of_bounds(input: &Input<'_>) -> Option<Finding> {
    let owner = input.objects.machine_pool.as_ref()?;
    let (kept, limits) = replicas(&input.objects.pool.spec, owner);
    // The group's bounds restrict the other actor's desired capacity to the limits.
    let is_bound = input.desired.is_some_and(|desired| {
        matches!(desired.owner, ReplicaOwner::External(_) | ReplicaOwner::ExternalUnreported)
    });
    if is_bound || limits.contain(owner.replicas()) {
        return None;
    }
    let min = limits.min;
    let is_not = match limits.max {
        Some(max) => format!("not between minSize {min} and maxSize {max}"),
        None => format!("less than minSize {min}"),
    };
    let message = format!(
        "the MachinePool requests {}, which is {is_not}. The controller uses {kept}. Change spec.replicas of \
         the MachinePool, or the limits.",
        counted(owner.replicas(), "replica")
    );
    Some(Finding::new(SCALING_HEALTHY, false, scaling_healthy::REPLICAS_OUT_OF_BOUNDS, message))
}

/// Processes that the spec does not suspend, and how to resume them.
fn suspended(input: &Input<'_>, group: &Group, blocked: Option<&Blocked>) -> Option<String> {
    let desired = &input.desired?.suspended_processes;
    let by_aws = group.suspended_by_aws(desired);
    if let Some(why) = by_aws.first().and_then(|name| group.suspended_processes.get(name)) {
        let names: Vec<&str> = by_aws.iter().map(String::as_str).collect();
        let cause = blocked.map(|blocked| format!(" {}", message(blocked))).unwrap_or_default();
        // In a preview, an edit waits.
        let edit = if input.previews() { "" } else { "edit the spec or " };
        return Some(format!(
            "AWS suspended {} because launches failed for a day: {why}.{cause} Correct the cause, then \
             {edit}set spec.retryToken to a new value. The controller then resumes the processes.",
            names.join(", ")
        ));
    }
    let why = group.suspended_processes.get("Launch").filter(|_| !desired.contains("Launch"))?;
    Some(format!(
        "process Launch is suspended: {why}. Resume it in AWS so that the group can scale up, or add it to \
         spec.group.suspendedProcesses to keep it suspended."
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use capasg_api::time::from_kubernetes;
    use chrono::DateTime;

    use super::*;
    use crate::machine_pool::model::memory::launch_watch::Place;

    fn blocked(zones: &[&str]) -> Blocked {
        let place = |zone: &&str| Place {
            instance_type: Some("m7i.large".to_owned()),
            zone: Some((*zone).to_owned()),
        };
        let places: BTreeSet<Place> = zones.iter().map(place).collect();
        Blocked {
            message_at: DateTime::UNIX_EPOCH,
            blocker: LaunchBlocker::Capacity,
            message: "We have none.".to_owned(),
            first: places.first().cloned().unwrap_or_default(),
            places,
            since: DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
        }
    }

    #[test]
    fn p46_a_message_of_aws_comes_with_the_place_and_what_to_do() {
        assert_eq!(
            message(&blocked(&["eu-west-1b", "eu-west-1a"])),
            "AWS reports \"We have none.\" (m7i.large in eu-west-1a, m7i.large in eu-west-1b). Add an \
             instance type or a subnet, or wait for capacity."
        );
        assert_eq!(
            message(&blocked(&[])),
            "AWS reports \"We have none.\". Add an instance type or a subnet, or wait for capacity."
        );
        let zones: Vec<String> = (0..9).map(|zone| format!("z-{zone}")).collect();
        let zones: Vec<&str> = zones.iter().map(String::as_str).collect();
        assert!(message(&blocked(&zones)).contains("z-5, 3 more)"));
    }

    #[test]
    fn p46_the_last_failure_names_the_first_place() {
        let last = last_failure(&blocked(&["eu-west-1b", "eu-west-1a"]));
        assert_eq!(last.reason, "InsufficientCapacity");
        assert_eq!(last.availability_zone.as_deref(), Some("eu-west-1a"));
        assert_eq!(from_kubernetes(&last.time).timestamp(), 1_700_000_000);
        let mut long = blocked(&[]);
        long.message = "x".repeat(5_000);
        let message = last_failure(&long).message;
        assert!(message.len() <= MAX_MESSAGE && message.ends_with(" more characters"), "{message}");
    }
}
