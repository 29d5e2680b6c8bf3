//! The types of the conditions, and which of them `Ready` summarizes.

/// Both kinds: nothing is wrong with the pool or the instance.
///
/// The summary of the conditions in [`POOL_SUMMARY`] or [`MACHINE_SUMMARY`].
pub const READY: &str = "Ready";
/// Pool: AWS responds, and the credentials belong to the account of the group.
pub const CLOUD_REACHABLE: &str = "CloudReachable";
/// Pool: the group uses a version of the pool's launch template, and no call about it fails.
pub const LAUNCH_TEMPLATE_READY: &str = "LaunchTemplateReady";
/// Pool: the Auto Scaling group exists, and no call about it fails.
pub const GROUP_READY: &str = "GroupReady";
/// Pool: the AWS events that the spec depends on are received.
pub const EVENT_QUEUE_READY: &str = "EventQueueReady";
/// Pool: launches succeed, or none is needed.
pub const SCALING_HEALTHY: &str = "ScalingHealthy";
/// Pool: as many Nodes as desired are ready, and every instance in service has a ready Node.
pub const NODES_READY: &str = "NodesReady";
/// Both kinds, negative: the object is being deleted.
pub const DELETING: &str = "Deleting";
/// Both kinds: the instances match the current spec.
pub const UP_TO_DATE: &str = "UpToDate";
/// Pool, negative: outdated instances are being replaced.
pub const ROLLING_OUT: &str = "RollingOut";
/// Pool, negative: the pool has fewer instances with a ready Node than desired.
pub const SCALING_UP: &str = "ScalingUp";
/// Pool, negative: the pool has more instances than desired.
pub const SCALING_DOWN: &str = "ScalingDown";
/// Pool, negative: unhealthy Machines are being replaced.
pub const REMEDIATING: &str = "Remediating";
/// Both kinds, negative: the object is paused.
pub const PAUSED: &str = "Paused";
/// Pool, negative: the pool is not as its spec, and the controller or AWS works on it. Follows the kstatus convention.
pub const RECONCILING: &str = "Reconciling";
/// Pool, negative: something remains as it is until a user acts. Follows the kstatus convention.
pub const STALLED: &str = "Stalled";
/// Pool, negative: AWS differs from the spec.
pub const DRIFTED: &str = "Drifted";
/// Instance: it has started, is healthy, is in its group and is not terminating.
pub const INSTANCE_READY: &str = "InstanceReady";
/// Instance, negative: AWS is terminating it.
pub const TERMINATION_PENDING: &str = "TerminationPending";

/// All conditions of an `ASGMachinePool`, set from its first reconcile on (I3).
pub const POOL: &[&str] = &[
    READY,
    CLOUD_REACHABLE,
    LAUNCH_TEMPLATE_READY,
    GROUP_READY,
    SCALING_HEALTHY,
    NODES_READY,
    EVENT_QUEUE_READY,
    UP_TO_DATE,
    ROLLING_OUT,
    SCALING_UP,
    SCALING_DOWN,
    REMEDIATING,
    DRIFTED,
    RECONCILING,
    STALLED,
    DELETING,
    PAUSED,
];
/// The conditions that `Ready` of a pool always summarizes, the most relevant first; a pool with a rollout in progress is
/// ready.
pub const POOL_SUMMARY: &[&str] =
    &[DELETING, CLOUD_REACHABLE, LAUNCH_TEMPLATE_READY, GROUP_READY, SCALING_HEALTHY];
/// All conditions of an `ASGMachine`, set from its first reconcile on (I3).
pub const MACHINE: &[&str] = &[READY, INSTANCE_READY, UP_TO_DATE, TERMINATION_PENDING, DELETING, PAUSED];
/// The conditions that `Ready` of an instance summarizes, the most relevant first.
pub const MACHINE_SUMMARY: &[&str] = &[DELETING, INSTANCE_READY];

/// Whether a condition has negative polarity: its normal status is `False`.
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
            | RECONCILING
            | STALLED
            | TERMINATION_PENDING
    )
}
