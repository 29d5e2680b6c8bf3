//! Every reason that a condition of ours can give (I5), under the condition that gives it.
//!
//! Beside these, each condition has its plain pair: its own type when it holds and `Not…` when it does not.

/// Common to all: nothing was found out yet.
pub const NOT_YET_REPORTED: &str = "NotYetReported";
/// Common to all: finding out failed on our side; the message has the error.
pub const INTERNAL_ERROR: &str = "InternalError";

/// `Ready`, the summary.
pub mod ready {
    /// No issue, nothing unknown.
    pub const READY: &str = "Ready";
    /// At least one issue.
    pub const NOT_READY: &str = "NotReady";
    /// No issue, something unknown.
    pub const READY_UNKNOWN: &str = "ReadyUnknown";
}

/// `CloudReachable` of a pool.
pub mod cloud_reachable {
    /// AWS answers.
    pub const CLOUD_REACHABLE: &str = "CloudReachable";
    /// AWS does not answer.
    pub const CLOUD_NOT_REACHABLE: &str = "NotCloudReachable";
    /// AWS refuses our credentials, or they belong to another account than the group.
    pub const ACCESS_DENIED: &str = "AccessDenied";
    /// AWS tells us to slow down.
    pub const THROTTLED: &str = "Throttled";
}

/// `LaunchTemplateReady` of a pool.
pub mod launch_template_ready {
    /// The group's template version holds what the spec says.
    pub const LAUNCH_TEMPLATE_READY: &str = "LaunchTemplateReady";
    /// It does not yet.
    pub const LAUNCH_TEMPLATE_NOT_READY: &str = "NotLaunchTemplateReady";
    /// The Cluster's infrastructure is not provisioned.
    pub const WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY: &str = "WaitingForClusterInfrastructureReady";
    /// There is no bootstrap data yet.
    pub const WAITING_FOR_BOOTSTRAP_DATA: &str = "WaitingForBootstrapData";
    /// The bootstrap data exceeds AWS's 16 KiB, also compressed (H6).
    pub const BOOTSTRAP_DATA_TOO_LARGE: &str = "BootstrapDataTooLarge";
    /// There is no such region.
    pub const REGION_UNKNOWN: &str = "RegionUnknown";
    /// There is no such image or parameter.
    pub const IMAGE_NOT_FOUND: &str = "ImageNotFound";
    /// There is no such security group.
    pub const SECURITY_GROUP_NOT_FOUND: &str = "SecurityGroupNotFound";
    /// AWS refused the template.
    pub const REJECTED: &str = "Rejected";
}

/// `GroupReady` of a pool.
pub mod group_ready {
    /// The group is as the spec says.
    pub const GROUP_READY: &str = "GroupReady";
    /// It is not yet.
    pub const GROUP_NOT_READY: &str = "NotGroupReady";
    /// There is no such subnet, or none is left in the MachinePool's failure domains.
    pub const SUBNET_NOT_FOUND: &str = "SubnetNotFound";
    /// The region does not offer an instance type of spec.instanceTypes.
    pub const INSTANCE_TYPE_NOT_FOUND: &str = "InstanceTypeNotFound";
    /// The group of that name belongs to somebody else.
    pub const GROUP_NOT_OWNED: &str = "GroupNotOwned";
    /// The group of that name is about to become the pool's.
    pub const ADOPTING: &str = "Adopting";
    /// The group of that name cannot become the pool's as it is.
    pub const ADOPTION_REFUSED: &str = "AdoptionRefused";
    /// The MachinePool asks for fewer or more replicas than spec.minSize and spec.maxSize allow.
    pub const REPLICAS_OUT_OF_BOUNDS: &str = "ReplicasOutOfBounds";
    /// AWS refused the group.
    pub const REJECTED: &str = "Rejected";
}

/// `ScalingHealthy` of a pool.
pub mod scaling_healthy {
    /// Launches succeed, or none is needed.
    pub const SCALING_HEALTHY: &str = "ScalingHealthy";
    /// Launches fail.
    pub const SCALING_NOT_HEALTHY: &str = "NotScalingHealthy";
    /// AWS has no such machine to give.
    pub const INSUFFICIENT_CAPACITY: &str = "InsufficientCapacity";
    /// The account's quota is used up.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// The subnets are full.
    pub const NO_FREE_ADDRESSES: &str = "NoFreeAddresses";
    /// The image is gone or does not fit the type.
    pub const IMAGE_UNUSABLE: &str = "ImageUnusable";
    /// The encryption or SSH key cannot be used.
    pub const KEY_UNUSABLE: &str = "KeyUnusable";
    /// The instance profile or service role cannot be used.
    pub const ROLE_UNUSABLE: &str = "RoleUnusable";
    /// Launching or ending is suspended, by somebody or by AWS itself.
    pub const PROCESSES_SUSPENDED: &str = "ProcessesSuspended";
    /// A launch failed for another reason.
    pub const LAUNCH_FAILED: &str = "LaunchFailed";
}

/// `Deleting` of both kinds.
pub mod deleting {
    /// Not being deleted.
    pub const NOT_DELETING: &str = "NotDeleting";
    /// Being deleted.
    pub const DELETING: &str = "Deleting";
    /// Waiting for Machines to be drained and gone.
    pub const DRAINING_MACHINES: &str = "DrainingMachines";
    /// Waiting for the group to be gone.
    pub const DELETING_GROUP: &str = "DeletingGroup";
    /// Waiting for the launch template to be gone.
    pub const DELETING_LAUNCH_TEMPLATE: &str = "DeletingLaunchTemplate";
    /// Everything is gone; the finalizer is about to be.
    pub const DELETION_COMPLETED: &str = "DeletionCompleted";
}

/// `UpToDate` of both kinds.
pub mod up_to_date {
    /// Made from the current spec.
    pub const UP_TO_DATE: &str = "UpToDate";
    /// Made from an older one.
    pub const NOT_UP_TO_DATE: &str = "NotUpToDate";
    /// It cannot be told.
    pub const UP_TO_DATE_UNKNOWN: &str = "UpToDateUnknown";
    /// Pool: outdated instances wait until somebody deletes their Machines.
    pub const WAITING_FOR_DELETE: &str = "WaitingForDelete";
    /// Pool: outdated instances wait until a window of spec.disruption opens.
    pub const WAITING_FOR_WINDOW: &str = "WaitingForWindow";
    /// Pool: spec.rollout.mode is Paused.
    pub const ROLLOUT_PAUSED: &str = "RolloutPaused";
    /// Pool: no new instance became available in time, so the rollout stopped.
    pub const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    /// Pool: AWS took back what an instance refresh had replaced.
    pub const ROLLED_BACK: &str = "RolledBack";
    /// The image changed.
    pub const IMAGE_CHANGED: &str = "ImageChanged";
    /// Something else in the launch template changed.
    pub const TEMPLATE_CHANGED: &str = "TemplateChanged";
    /// The instance ran when its group was adopted.
    pub const ADOPTED: &str = "Adopted";
    /// The instance's type is no longer in the spec.
    pub const TYPE_REMOVED: &str = "TypeRemoved";
    /// Replacement was asked for by annotation.
    pub const REPLACE_REQUESTED: &str = "ReplaceRequested";
    /// EC2 recommends to replace the Spot instance.
    pub const REBALANCE_RECOMMENDED: &str = "RebalanceRecommended";
    /// AWS will retire or stop the machine.
    pub const RETIREMENT_SCHEDULED: &str = "RetirementScheduled";
    /// The instance was launched before spec.rollout.after.
    pub const LAUNCHED_BEFORE: &str = "LaunchedBefore";
    /// The instance is older than spec.rollout.maxInstanceLifetimeSeconds.
    pub const LIFETIME_EXCEEDED: &str = "LifetimeExceeded";
}

/// `RollingOut` of a pool.
pub mod rolling_out {
    /// Outdated instances are being replaced.
    pub const ROLLING_OUT: &str = "RollingOut";
    /// None is.
    pub const NOT_ROLLING_OUT: &str = "NotRollingOut";
}

/// `ScalingUp` of a pool.
pub mod scaling_up {
    /// Fewer instances than asked for.
    pub const SCALING_UP: &str = "ScalingUp";
    /// As many, or more.
    pub const NOT_SCALING_UP: &str = "NotScalingUp";
}

/// `ScalingDown` of a pool.
pub mod scaling_down {
    /// More instances than asked for.
    pub const SCALING_DOWN: &str = "ScalingDown";
    /// As many, or fewer.
    pub const NOT_SCALING_DOWN: &str = "NotScalingDown";
}

/// `Remediating` of a pool.
pub mod remediating {
    /// Unhealthy Machines are being replaced.
    pub const REMEDIATING: &str = "Remediating";
    /// None is.
    pub const NOT_REMEDIATING: &str = "NotRemediating";
}

/// `Paused` of both kinds, in core's words (F2).
pub mod paused {
    /// Left alone.
    pub const PAUSED: &str = "Paused";
    /// Looked after.
    pub const NOT_PAUSED: &str = "NotPaused";
}

/// `Drifted` of a pool.
pub mod drifted {
    /// AWS differs from the spec.
    pub const DRIFTED: &str = "Drifted";
    /// It does not.
    pub const NOT_DRIFTED: &str = "NotDrifted";
    /// It is only shown, as changePolicy says.
    pub const PREVIEWING: &str = "Previewing";
    /// It is being put right.
    pub const CORRECTING: &str = "Correcting";
}

/// `InstanceReady` of an instance.
pub mod instance_ready {
    /// In service and healthy.
    pub const INSTANCE_READY: &str = "InstanceReady";
    /// Not in service.
    pub const INSTANCE_NOT_READY: &str = "NotInstanceReady";
    /// Still starting.
    pub const PENDING: &str = "Pending";
    /// The group finds it unhealthy.
    pub const UNHEALTHY: &str = "Unhealthy";
    /// It is ended or about to be.
    pub const ENDED: &str = "Ended";
}

/// `TerminationPending` of an instance.
pub mod termination_pending {
    /// AWS is ending the instance.
    pub const TERMINATION_PENDING: &str = "TerminationPending";
    /// It is not.
    pub const NOT_TERMINATION_PENDING: &str = "NotTerminationPending";
    /// AWS takes the Spot instance back.
    pub const SPOT_INTERRUPTION: &str = "SpotInterruption";
    /// The group replaces it as unhealthy.
    pub const HEALTH_REPLACEMENT: &str = "HealthReplacement";
    /// The group moves capacity.
    pub const REBALANCE: &str = "Rebalance";
    /// An instance refresh replaces it.
    pub const INSTANCE_REFRESH: &str = "InstanceRefresh";
    /// Somebody asked AWS for its end.
    pub const REQUESTED_IN_AWS: &str = "RequestedInAWS";
}
