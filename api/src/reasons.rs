//! Every reason that a condition of ours can have (I5), under the condition that uses it.
//!
//! Reasons are `CamelCase`. Where no more is known, a condition uses its own type while it is `True`, and that type with
//! the prefix `Not` while it is `False`, as Cluster API's own conditions do.
//!
//! The controller reads the reasons marked *Read back* from the status of an `ASGMachine` or an `ASGMachinePool`, which
//! an earlier release may have written: these strings never change.

/// All conditions: the controller has not determined the status yet.
pub const NOT_YET_REPORTED: &str = "NotYetReported";
/// All conditions: the controller failed to determine the status; the message holds the error.
pub const INTERNAL_ERROR: &str = "InternalError";

/// `Ready`, the summary.
pub mod ready {
    /// No condition reports an issue, and none is unknown.
    pub const READY: &str = "Ready";
    /// At least one condition reports an issue.
    pub const NOT_READY: &str = "NotReady";
    /// No condition reports an issue, and at least one is unknown.
    pub const READY_UNKNOWN: &str = "ReadyUnknown";
}

/// `CloudReachable` of a pool.
pub mod cloud_reachable {
    /// AWS responds.
    pub const CLOUD_REACHABLE: &str = "CloudReachable";
    /// A call to AWS failed for another reason than throttling or access.
    pub const CLOUD_NOT_REACHABLE: &str = "NotCloudReachable";
    /// AWS rejects the credentials, or they belong to another account than the group.
    pub const ACCESS_DENIED: &str = "AccessDenied";
    /// AWS throttles the calls.
    pub const THROTTLED: &str = "Throttled";
}

/// `LaunchTemplateReady` of a pool.
pub mod launch_template_ready {
    /// The group uses a version of the pool's launch template, and no call about it fails.
    pub const LAUNCH_TEMPLATE_READY: &str = "LaunchTemplateReady";
    /// The launch template does not exist, or the group does not use a version of it.
    pub const LAUNCH_TEMPLATE_NOT_READY: &str = "NotLaunchTemplateReady";
    /// The Cluster's infrastructure is not provisioned.
    pub const WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY: &str = "WaitingForClusterInfrastructureReady";
    /// The bootstrap data does not exist yet.
    pub const WAITING_FOR_BOOTSTRAP_DATA: &str = "WaitingForBootstrapData";
    /// The bootstrap data exceeds the 16 KiB that EC2 accepts as user data, even when compressed (H6).
    pub const BOOTSTRAP_DATA_TOO_LARGE: &str = "BootstrapDataTooLarge";
    /// The image or the SSM parameter does not exist, or the parameter holds no image ID.
    pub const IMAGE_NOT_FOUND: &str = "ImageNotFound";
    /// The image has another architecture than an instance type of spec.instanceTypes.
    pub const IMAGE_ARCHITECTURE_MISMATCH: &str = "ImageArchitectureMismatch";
    /// A security group does not exist.
    pub const SECURITY_GROUP_NOT_FOUND: &str = "SecurityGroupNotFound";
    /// A security group is in another VPC than the subnets, and not associated with theirs.
    pub const SECURITY_GROUP_IN_ANOTHER_VPC: &str = "SecurityGroupInAnotherVPC";
    /// The instance profile is in another account than the pool.
    pub const INSTANCE_PROFILE_IN_ANOTHER_ACCOUNT: &str = "InstanceProfileInAnotherAccount";
    /// AWS rejected the launch template.
    pub const REJECTED: &str = "Rejected";
    /// A call about the launch template has failed for 2 minutes.
    pub const CALL_FAILED: &str = "CallFailed";
}

/// `GroupReady` of a pool.
pub mod group_ready {
    /// The group exists, and no call about it fails.
    pub const GROUP_READY: &str = "GroupReady";
    /// The group does not exist, is being deleted, or has detached instances that still run.
    pub const GROUP_NOT_READY: &str = "NotGroupReady";
    /// A subnet does not exist, or no subnet is in the MachinePool's failure domains.
    pub const SUBNET_NOT_FOUND: &str = "SubnetNotFound";
    /// spec.subnets selects subnets of several VPCs.
    pub const SUBNETS_IN_SEVERAL_VPCS: &str = "SubnetsInSeveralVPCs";
    /// The region does not offer an instance type of spec.instanceTypes.
    pub const INSTANCE_TYPE_NOT_FOUND: &str = "InstanceTypeNotFound";
    /// The group of that name has another owner ID, or none.
    pub const GROUP_NOT_OWNED: &str = "GroupNotOwned";
    /// The pool is about to adopt the group of that name.
    pub const ADOPTING: &str = "Adopting";
    /// The pool cannot adopt the group of that name as it is.
    pub const ADOPTION_BLOCKED: &str = "AdoptionBlocked";
    /// AWS rejected the group.
    pub const REJECTED: &str = "Rejected";
    /// A call about the group has failed for 2 minutes.
    pub const CALL_FAILED: &str = "CallFailed";
    /// AWS accepts a call about the group repeatedly, but the group does not show the change.
    pub const CHANGE_WITHOUT_EFFECT: &str = "ChangeWithoutEffect";
}

/// `EventQueueReady` of a pool.
pub mod event_queue_ready {
    /// Messages of the event queue of the region are received.
    pub const EVENT_QUEUE_READY: &str = "EventQueueReady";
    /// Nothing in the spec requires an event queue.
    pub const NOT_REQUIRED: &str = "NotRequired";
    /// spec.rebalanceRecommendationPolicy is Replace, and the manager has no event queue for the region.
    pub const NO_EVENT_QUEUE: &str = "NoEventQueue";
    /// spec.rebalanceRecommendationPolicy is Replace, and messages of the event queue of the region cannot be
    /// received or deleted.
    pub const EVENT_QUEUE_UNAVAILABLE: &str = "EventQueueUnavailable";
}

/// `ScalingHealthy` of a pool.
pub mod scaling_healthy {
    /// Launches succeed, or none is needed.
    pub const SCALING_HEALTHY: &str = "ScalingHealthy";
    /// AWS has no capacity for the instance type.
    pub const INSUFFICIENT_CAPACITY: &str = "InsufficientCapacity";
    /// The account's quota is exceeded.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// The subnets have no free addresses.
    pub const NO_FREE_ADDRESSES: &str = "NoFreeAddresses";
    /// The image was deleted, or is incompatible with the instance type.
    pub const IMAGE_UNUSABLE: &str = "ImageUnusable";
    /// The encryption key or the SSH key cannot be used.
    pub const KEY_UNUSABLE: &str = "KeyUnusable";
    /// The instance profile or the service role cannot be used.
    pub const ROLE_UNUSABLE: &str = "RoleUnusable";
    /// AWS suspended a process after failed launches, or another actor suspended the process `Launch`.
    pub const PROCESSES_SUSPENDED: &str = "ProcessesSuspended";
    /// A launch failed for another reason.
    pub const LAUNCH_FAILED: &str = "LaunchFailed";
    /// AWS rejected a call about capacity or a termination.
    pub const REJECTED: &str = "Rejected";
    /// A call about capacity or a termination has failed for 2 minutes.
    pub const CALL_FAILED: &str = "CallFailed";
    /// AWS accepts a change of capacity repeatedly, but the group does not show it.
    pub const CHANGE_WITHOUT_EFFECT: &str = "ChangeWithoutEffect";
    /// The MachinePool's replicas are below spec.minSize or above spec.maxSize.
    pub const REPLICAS_OUT_OF_BOUNDS: &str = "ReplicasOutOfBounds";
}

/// `Deleting` of both kinds.
pub mod deleting {
    /// The object is not being deleted.
    pub const NOT_DELETING: &str = "NotDeleting";
    /// The object is being deleted.
    pub const DELETING: &str = "Deleting";
    /// The deletion waits until Machines and ASGMachines are deleted.
    pub const DRAINING_MACHINES: &str = "DrainingMachines";
    /// The deletion waits until the group is deleted.
    pub const DELETING_GROUP: &str = "DeletingGroup";
    /// The deletion waits until the lifecycle hook is deleted; the group is kept (deletionPolicy Orphan).
    pub const DELETING_LIFECYCLE_HOOK: &str = "DeletingLifecycleHook";
    /// The deletion waits until the launch template is deleted.
    pub const DELETING_LAUNCH_TEMPLATE: &str = "DeletingLaunchTemplate";
    /// Everything is deleted, and the finalizer is about to be removed.
    pub const DELETION_COMPLETED: &str = "DeletionCompleted";
}

/// `UpToDate` of both kinds.
pub mod up_to_date {
    /// The instances match the current spec.
    pub const UP_TO_DATE: &str = "UpToDate";
    /// Instances were launched from an older spec.
    pub const NOT_UP_TO_DATE: &str = "NotUpToDate";
    /// Pool: outdated instances wait until a user deletes their Machines.
    pub const WAITING_FOR_DELETION: &str = "WaitingForDeletion";
    /// Pool: outdated instances wait until a window of spec.disruption opens.
    pub const WAITING_FOR_WINDOW: &str = "WaitingForWindow";
    /// Pool: an instance refresh does not support spec.disruption.windows if the bootstrap data contains a bootstrap
    /// token or is not from kubeadm.
    pub const WINDOWS_NOT_SUPPORTED: &str = "WindowsNotSupported";
    /// Pool: spec.rollout.mode is Paused.
    pub const ROLLOUT_PAUSED: &str = "RolloutPaused";
    /// Pool: no new instance became available within the progress deadline, and the rollout stopped.
    pub const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    /// Pool: an instance refresh failed, was cancelled or had no effect, and the rollout stopped.
    pub const INSTANCE_REFRESH_FAILED: &str = "InstanceRefreshFailed";
    /// Pool: new instances were launched from another launch template version than the group is pinned to, and the rollout
    /// stopped. Read back.
    pub const UNEXPECTED_LAUNCH_TEMPLATE_VERSION: &str = "UnexpectedLaunchTemplateVersion";
    /// Pool: AWS rolled back an instance refresh.
    pub const ROLLED_BACK: &str = "RolledBack";
    /// The launch template version of instances is not known: it was deleted, or another actor created it just now.
    pub const VERSION_UNKNOWN: &str = "VersionUnknown";
    /// The image changed.
    pub const IMAGE_CHANGED: &str = "ImageChanged";
    /// Another part of the launch template changed.
    pub const TEMPLATE_CHANGED: &str = "TemplateChanged";
    /// The instance was launched before its group was adopted.
    pub const ADOPTED: &str = "Adopted";
    /// The instance's type is no longer in spec.instanceTypes.
    pub const INSTANCE_TYPE_REMOVED: &str = "InstanceTypeRemoved";
    /// A user requested the replacement by annotation.
    pub const REPLACE_REQUESTED: &str = "ReplaceRequested";
    /// EC2 recommends replacing the Spot instance. Read back.
    pub const REBALANCE_RECOMMENDED: &str = "RebalanceRecommended";
    /// AWS has scheduled the retirement or the stop of the instance. Read back.
    pub const RETIREMENT_SCHEDULED: &str = "RetirementScheduled";
    /// The instance is replaced to restore the balance of the Availability Zones.
    pub const ZONE_IMBALANCE: &str = "ZoneImbalance";
    /// The instance was launched before spec.rollout.after.
    pub const LAUNCHED_BEFORE: &str = "LaunchedBefore";
    /// The instance is older than spec.rollout.maxInstanceLifetimeSeconds.
    pub const LIFETIME_EXCEEDED: &str = "LifetimeExceeded";
}

/// `RollingOut` of a pool.
pub mod rolling_out {
    /// Outdated instances are being replaced.
    pub const ROLLING_OUT: &str = "RollingOut";
    /// No outdated instance is being replaced.
    pub const NOT_ROLLING_OUT: &str = "NotRollingOut";
}

/// `ScalingUp` of a pool.
pub mod scaling_up {
    /// The pool has fewer instances than desired.
    pub const SCALING_UP: &str = "ScalingUp";
    /// The pool has at least as many instances as desired.
    pub const NOT_SCALING_UP: &str = "NotScalingUp";
}

/// `ScalingDown` of a pool.
pub mod scaling_down {
    /// The pool has more instances than desired.
    pub const SCALING_DOWN: &str = "ScalingDown";
    /// The pool has at most as many instances as desired.
    pub const NOT_SCALING_DOWN: &str = "NotScalingDown";
}

/// `Remediating` of a pool.
pub mod remediating {
    /// Unhealthy Machines are being replaced.
    pub const REMEDIATING: &str = "Remediating";
    /// No unhealthy Machine is being replaced.
    pub const NOT_REMEDIATING: &str = "NotRemediating";
}

/// `Paused` of both kinds, with core's own reasons (F2).
pub mod paused {
    /// The object is paused.
    pub const PAUSED: &str = "Paused";
    /// The object is not paused.
    pub const NOT_PAUSED: &str = "NotPaused";
}

/// `Reconciling` of a pool.
pub mod reconciling {
    /// The controller or AWS brings the pool to its spec.
    pub const RECONCILING: &str = "Reconciling";
    /// The pool is as its spec, or waits.
    pub const NOT_RECONCILING: &str = "NotReconciling";
}

/// `Stalled` of a pool.
pub mod stalled {
    /// Something remains as it is until a user changes the spec or something in AWS.
    pub const STALLED: &str = "Stalled";
    /// Nothing waits for a user.
    pub const NOT_STALLED: &str = "NotStalled";
}

/// `Drifted` of a pool.
pub mod drifted {
    /// Another actor changed AWS, which is not corrected because spec.changePolicy is Preview.
    pub const DRIFTED: &str = "Drifted";
    /// AWS does not differ from the spec.
    pub const NOT_DRIFTED: &str = "NotDrifted";
    /// AWS differs from the spec only by changes of the spec that spec.changePolicy Preview holds.
    pub const PREVIEWING: &str = "Previewing";
    /// Another actor changed AWS, and the controller is correcting it.
    pub const CORRECTING: &str = "Correcting";
}

/// `InstanceReady` of an instance.
pub mod instance_ready {
    /// The instance has started, is healthy, is in its group and is not terminating.
    pub const INSTANCE_READY: &str = "InstanceReady";
    /// The instance is starting.
    pub const PENDING: &str = "Pending";
    /// The Auto Scaling group reports the instance as unhealthy.
    pub const UNHEALTHY: &str = "Unhealthy";
    /// The instance is terminating.
    pub const TERMINATING: &str = "Terminating";
    /// The instance is not in its Auto Scaling group any more.
    pub const NOT_IN_GROUP: &str = "NotInGroup";
}

/// `TerminationPending` of an instance. All reasons of the status `True` but the first are read back.
pub mod termination_pending {
    /// AWS is terminating the instance, and the cause is unknown.
    pub const TERMINATION_PENDING: &str = "TerminationPending";
    /// AWS is not terminating the instance.
    pub const NOT_TERMINATION_PENDING: &str = "NotTerminationPending";
    /// EC2 interrupts the Spot instance.
    pub const SPOT_INTERRUPTION: &str = "SpotInterruption";
    /// The group replaces the instance since it is unhealthy.
    pub const HEALTH_REPLACEMENT: &str = "HealthReplacement";
    /// The group moves capacity between zones, or reduces it.
    pub const REBALANCE: &str = "Rebalance";
    /// An instance refresh replaces the instance.
    pub const INSTANCE_REFRESH: &str = "InstanceRefresh";
    /// Another actor requested the termination in AWS.
    pub const REQUESTED_IN_AWS: &str = "RequestedInAWS";
}
