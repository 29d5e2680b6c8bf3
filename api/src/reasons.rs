//! Every reason that a condition of ours can have (I5), under the condition that uses it.
//!
//! Reasons are `CamelCase`. Where no more is known, a condition uses its own type while it is `True`, and that type with
//! the prefix `Not` while it is `False`, as Cluster API's own conditions do.
//!
//! `docs/reference/conditions.md` is generated from these comments: the first paragraph is the meaning of a reason, and one that
//! begins with `Remedy:` what a user does about it.
//!
//! The controller reads the reasons marked *Read back* from the status of an `ASGMachine` or an `ASGMachinePool`, which
//! an earlier release may have written: these strings never change.

/// All conditions: the controller has not determined the status yet.
pub const NOT_YET_REPORTED: &str = "NotYetReported";
/// All conditions: the controller failed to determine the status; the message holds the error.
///
/// Remedy: read the error in the message and `CloudReachable`; the controller retries.
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
    ///
    /// Remedy: check the network of the manager to the endpoints of AWS, `AWS_ENDPOINT_URL` and proxies; the controller
    /// retries.
    pub const CLOUD_NOT_REACHABLE: &str = "NotCloudReachable";
    /// AWS rejects the credentials, or they belong to another account than the group.
    ///
    /// Remedy: compare the role of the manager with docs/iam-policy.json, its trust policy with
    /// docs/users/aws-account.md, and the account with the one in `spec.providerID`; a service control policy or a
    /// permissions boundary may deny the call too.
    pub const ACCESS_DENIED: &str = "AccessDenied";
    /// The identity that the pool uses does not exist.
    ///
    /// Remedy: correct `spec.identityRef` of the pool, or of the infrastructure object of the Cluster (docs/users/identities.md).
    pub const IDENTITY_NOT_FOUND: &str = "IdentityNotFound";
    /// The identity that the pool uses does not allow its namespace.
    ///
    /// Remedy: an operator adds the namespace to `spec.allowedNamespaces` of the identity, or the pool uses another one
    /// (docs/users/identities.md).
    pub const IDENTITY_NOT_ALLOWED: &str = "IdentityNotAllowed";
    /// Several identities are the default of the namespace.
    ///
    /// Remedy: an operator sets `selectionPolicy: Default` of one of them, or the pool names one in `spec.identityRef`
    /// (docs/users/identities.md).
    pub const IDENTITY_AMBIGUOUS: &str = "IdentityAmbiguous";
    /// The identity that the pool uses has no credentials: its Secret or its role is missing or incomplete.
    ///
    /// Remedy: an operator corrects what the message names (docs/users/identities.md).
    pub const IDENTITY_NOT_USABLE: &str = "IdentityNotUsable";
    /// A guard of the namespace does not allow what the pool uses, or the pool would exceed a limit.
    ///
    /// Remedy: an operator changes the ASGGuard that the message names, or the pool uses what it allows
    /// (docs/users/guards.md).
    pub const NOT_ALLOWED: &str = "NotAllowed";
    /// AWS throttles the calls.
    ///
    /// Remedy: none; the calls are repeated more slowly. If it persists, find the other clients of the account in
    /// CloudTrail, or configure an event queue (docs/users/events.md).
    pub const THROTTLED: &str = "Throttled";
}

/// `Ready` of an identity; its other reasons are those of `CloudReachable` of a pool.
pub mod identity_ready {
    /// AWS accepts the credentials.
    pub const IDENTITY_READY: &str = "IdentityReady";
    /// The credentials were not checked yet.
    ///
    /// Remedy: none; they are checked once a pool uses them.
    pub const NOT_CHECKED: &str = "NotChecked";
    /// AWS rejects the credentials.
    ///
    /// Remedy: correct the role, its trust policy or the Secret that the identity names (docs/users/identities.md).
    pub const ACCESS_DENIED: &str = "AccessDenied";
}

/// `LaunchTemplateReady` of a pool.
pub mod launch_template_ready {
    /// The group uses a version of the pool's launch template, and no call about it fails.
    pub const LAUNCH_TEMPLATE_READY: &str = "LaunchTemplateReady";
    /// The launch template does not exist, or the group does not use a version of it.
    ///
    /// Remedy: wait; if it persists, read the message, and whether another actor changes the group.
    pub const LAUNCH_TEMPLATE_NOT_READY: &str = "NotLaunchTemplateReady";
    /// A guard of the namespace does not allow what the pool uses, or the pool would exceed a limit.
    ///
    /// Remedy: an operator changes the ASGGuard that the message names, or the pool uses what it allows
    /// (docs/users/guards.md).
    pub const NOT_ALLOWED: &str = "NotAllowed";
    /// The Cluster's infrastructure is not provisioned.
    ///
    /// Remedy: read the conditions of the Cluster and of its infrastructure object.
    pub const WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY: &str = "WaitingForClusterInfrastructureReady";
    /// The bootstrap data does not exist yet.
    ///
    /// Remedy: read the conditions of the MachinePool and of its bootstrap config; the object that `bootstrap.configRef`
    /// names must exist, and the control plane must be initialized.
    pub const WAITING_FOR_BOOTSTRAP_DATA: &str = "WaitingForBootstrapData";
    /// The bootstrap data exceeds the 16 KiB that EC2 accepts as user data, even when compressed (H6).
    ///
    /// Remedy: reduce the data that the message names: put files into the image, or download them at boot. The kubeadm
    /// provider renders an edit with its next token, and only while all nodes have joined; while nodes are missing, set
    /// another KubeadmConfig in `bootstrap.configRef` of the MachinePool and remove `bootstrap.dataSecretName` in the
    /// same edit.
    /// See docs/users/bootstrap-data.md.
    pub const BOOTSTRAP_DATA_TOO_LARGE: &str = "BootstrapDataTooLarge";
    /// The bootstrap data is compressed, and the image boots Windows, on which nothing decompresses user data.
    ///
    /// Remedy: store the data that the message names uncompressed. See docs/users/bootstrap-data.md.
    pub const BOOTSTRAP_DATA_COMPRESSED: &str = "BootstrapDataCompressed";
    /// The image or the SSM parameter does not exist, or the parameter holds no image ID.
    ///
    /// Remedy: correct `spec.machine.image`; the image must exist in the region of the pool and be shared with its
    /// account. See docs/users/images.md.
    pub const IMAGE_NOT_FOUND: &str = "ImageNotFound";
    /// The image has another architecture than an instance type of spec.instanceTypes.
    ///
    /// Remedy: use an image of the architecture of the types, or types of the architecture of the image.
    pub const IMAGE_ARCHITECTURE_MISMATCH: &str = "ImageArchitectureMismatch";
    /// A security group does not exist.
    ///
    /// Remedy: correct `spec.machine.securityGroups`, or create or tag the group in the VPC of the pool.
    pub const SECURITY_GROUP_NOT_FOUND: &str = "SecurityGroupNotFound";
    /// A security group is in another VPC than the subnets, and not associated with theirs.
    ///
    /// Remedy: select subnets and security groups of one VPC.
    pub const SECURITY_GROUP_IN_ANOTHER_VPC: &str = "SecurityGroupInAnotherVPC";
    /// spec.machine.securityGroups selects more security groups than a network interface takes.
    ///
    /// Remedy: narrow `spec.machine.securityGroups`: name groups by ID, or use tags that fewer groups have.
    pub const TOO_MANY_SECURITY_GROUPS: &str = "TooManySecurityGroups";
    /// A volume of the spec is smaller than the snapshot that it is created from.
    ///
    /// Remedy: set `sizeGiB` to the size in the message or more.
    pub const VOLUME_TOO_SMALL: &str = "VolumeTooSmall";
    /// A volume in `spec.machine.dataVolumes` has the device name of the root device, or a device name that may denote the
    /// same device as a volume of the image.
    ///
    /// Remedy: use `spec.machine.rootVolume` for the root volume, the exact device name to override a volume of the image,
    /// or another one for a volume of its own. See docs/users/images.md.
    pub const DEVICE_NAME_CONFLICT: &str = "DeviceNameConflict";
    /// No volume has the device name in `spec.machine.ephemeralStorageDeviceName`.
    ///
    /// Remedy: correct the field, or remove it for the root volume.
    pub const VOLUME_NOT_FOUND: &str = "VolumeNotFound";
    /// The instance profile is in another account than the pool.
    ///
    /// Remedy: use an instance profile of the account, or the credentials of the other account.
    pub const INSTANCE_PROFILE_IN_ANOTHER_ACCOUNT: &str = "InstanceProfileInAnotherAccount";
    /// AWS rejected the launch template.
    ///
    /// Remedy: correct what the message of AWS names; after a correction in AWS alone, set another value of
    /// `spec.retryToken`.
    pub const REJECTED: &str = "Rejected";
    /// A call about the launch template has failed for 2 minutes.
    ///
    /// Remedy: read the error in the message; the controller retries.
    pub const CALL_FAILED: &str = "CallFailed";
}

/// `GroupReady` of a pool.
pub mod group_ready {
    /// The group exists, and no call about it fails.
    pub const GROUP_READY: &str = "GroupReady";
    /// The group does not exist, is being deleted, or has detached instances that still run.
    ///
    /// Remedy: wait; if the message names detached or retained instances, attach or terminate them
    /// (docs/users/terminations.md).
    pub const GROUP_NOT_READY: &str = "NotGroupReady";
    /// No MachinePool refers to the pool, which has a group with instances: `infrastructureRef` of its MachinePool was
    /// changed, or the MachinePool was deleted.
    ///
    /// Remedy: delete the ASGMachinePool, which drains and terminates its instances, or let a MachinePool refer to it. If
    /// one does, remove the owner reference that the message names. To rename the MachinePool of a running pool, let the old
    /// one refer to no pool: Cluster API deletes the Nodes of instances that a MachinePool lists no more, and it lists
    /// those of the pool that it refers to.
    pub const NO_MACHINE_POOL: &str = "NoMachinePool";
    /// A guard of the namespace does not allow what the pool uses, or the pool would exceed a limit.
    ///
    /// Remedy: an operator changes the ASGGuard that the message names, or the pool uses what it allows
    /// (docs/users/guards.md).
    pub const NOT_ALLOWED: &str = "NotAllowed";
    /// A subnet does not exist, or no subnet is in the MachinePool's failure domains.
    ///
    /// Remedy: correct `spec.subnets` or `failureDomains` of the MachinePool, or tag a subnet; check that the region and
    /// the account of the credentials are those of the subnets.
    pub const SUBNET_NOT_FOUND: &str = "SubnetNotFound";
    /// spec.subnets selects subnets of several VPCs.
    ///
    /// Remedy: change `spec.subnets` so that it selects subnets of one VPC, for example with a tag of the cluster or with
    /// IDs.
    pub const SUBNETS_IN_SEVERAL_VPCS: &str = "SubnetsInSeveralVPCs";
    /// The region does not offer an instance type of spec.instanceTypes.
    ///
    /// Remedy: correct `spec.instanceTypes`.
    pub const INSTANCE_TYPE_NOT_FOUND: &str = "InstanceTypeNotFound";
    /// The tags of the group of that name do not identify this pool.
    ///
    /// Remedy: another pool or another management cluster owns the group, or a user created it. Choose another name in
    /// `spec.group.name`, delete the group if it is not used, or adopt it (docs/users/adoption.md). If the pool created the
    /// group and another actor changed its tags, set the tags that the message names: the owner ID of the annotation
    /// `asg.infrastructure.cluster.x-k8s.io/owner-id`, and namespace, Cluster and name of the pool.
    pub const GROUP_NOT_OWNED: &str = "GroupNotOwned";
    /// The pool is about to adopt the group of that name.
    ///
    /// Remedy: none; with `changePolicy: Preview` set `Apply` to adopt it (docs/users/adoption.md).
    pub const ADOPTING: &str = "Adopting";
    /// The pool cannot adopt the group of that name as it is.
    ///
    /// Remedy: remove the blocker that the message names (docs/users/adoption.md).
    pub const ADOPTION_BLOCKED: &str = "AdoptionBlocked";
    /// AWS rejected the group.
    ///
    /// Remedy: correct what the message of AWS names; after a correction in AWS alone, set another value of
    /// `spec.retryToken`.
    pub const REJECTED: &str = "Rejected";
    /// Calls about the group, or about its instances one after another, have failed for 2 minutes.
    ///
    /// Remedy: read the error in the message; the controller retries.
    pub const CALL_FAILED: &str = "CallFailed";
    /// AWS accepts a call about the group repeatedly, but the group does not show the change.
    ///
    /// Remedy: another actor reverts the change, or AWS stores another value than the spec has. Find the other actor in
    /// CloudTrail, or write the value that AWS shows into the spec.
    pub const CHANGE_WITHOUT_EFFECT: &str = "ChangeWithoutEffect";
}

/// `EventQueueReady` of a pool.
pub mod event_queue_ready {
    /// Messages of the event queue of the region are received.
    pub const EVENT_QUEUE_READY: &str = "EventQueueReady";
    /// Nothing in the spec requires an event queue, and none is configured, or no instance is a Spot instance.
    pub const NOT_REQUIRED: &str = "NotRequired";
    /// spec.rebalanceRecommendationPolicy is Replace, and the manager has no event queue for the region.
    ///
    /// Remedy: configure an event queue (docs/users/events.md), or set `spec.rebalanceRecommendationPolicy: Ignore`.
    pub const NO_EVENT_QUEUE: &str = "NoEventQueue";
    /// Messages of the event queue of the region cannot be received or deleted, and the pool has Spot instances, or
    /// spec.rebalanceRecommendationPolicy is Replace.
    ///
    /// Remedy: check that the queue exists in the region and account, and the permissions of the statement `TakeEvents`
    /// (docs/users/iam.md).
    pub const EVENT_QUEUE_UNAVAILABLE: &str = "EventQueueUnavailable";
}

/// `ScalingHealthy` of a pool.
pub mod scaling_healthy {
    /// Launches succeed, or none is needed.
    pub const SCALING_HEALTHY: &str = "ScalingHealthy";
    /// AWS has no capacity for the instance type.
    ///
    /// Remedy: add entries to `spec.instanceTypes`, add subnets in other zones, or wait; for Spot instances, raise or
    /// remove `spotMaxPrice`.
    pub const INSUFFICIENT_CAPACITY: &str = "InsufficientCapacity";
    /// The account's quota is exceeded.
    ///
    /// Remedy: request an increase in Service Quotas, usually for vCPUs, or reduce the replicas.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// The subnets have no free addresses.
    ///
    /// Remedy: add a subnet to `spec.subnets`, or release addresses.
    pub const NO_FREE_ADDRESSES: &str = "NoFreeAddresses";
    /// The image was deleted, or is incompatible with the instance type.
    ///
    /// Remedy: change `spec.machine.image`: the image must exist, be shared with the account, and have the architecture
    /// of the instance types.
    pub const IMAGE_UNUSABLE: &str = "ImageUnusable";
    /// The encryption key or the SSH key cannot be used.
    ///
    /// Remedy: grant the service-linked role of Auto Scaling the use of the KMS key (docs/users/aws-account.md), or
    /// correct `sshKeyName`.
    pub const KEY_UNUSABLE: &str = "KeyUnusable";
    /// The instance profile or the service role cannot be used.
    ///
    /// Remedy: correct `spec.machine.iamInstanceProfile`, or the permission `iam:PassRole` (docs/users/iam.md).
    pub const ROLE_UNUSABLE: &str = "RoleUnusable";
    /// AWS suspended a process after failed launches, or another actor suspended the process `Launch`.
    ///
    /// Remedy: correct the cause of the failed launches, then set another value of `spec.retryToken`; a process that a
    /// user suspended is resumed in AWS.
    pub const PROCESSES_SUSPENDED: &str = "ProcessesSuspended";
    /// A launch failed for another reason.
    ///
    /// Remedy: read the message of AWS.
    pub const LAUNCH_FAILED: &str = "LaunchFailed";
    /// AWS rejected a call about capacity or a termination.
    ///
    /// Remedy: correct what the message of AWS names; after a correction in AWS alone, set another value of
    /// `spec.retryToken`.
    pub const REJECTED: &str = "Rejected";
    /// Calls about capacity, or about terminations one after another, have failed for 2 minutes.
    ///
    /// Remedy: read the error in the message; the controller retries.
    pub const CALL_FAILED: &str = "CallFailed";
    /// AWS accepts a change of capacity repeatedly, but the group does not show it.
    ///
    /// Remedy: find the actor that reverts the change in CloudTrail.
    pub const CHANGE_WITHOUT_EFFECT: &str = "ChangeWithoutEffect";
    /// The MachinePool's replicas are below spec.minSize or above spec.maxSize.
    ///
    /// Remedy: change the replicas, or `spec.minSize` and `spec.maxSize`; keep the bounds of an autoscaler within them
    /// (docs/users/autoscaling.md).
    pub const REPLICAS_OUT_OF_BOUNDS: &str = "ReplicasOutOfBounds";
}

/// `NodesReady` of a pool. Those that a `MachineHealthCheck` has as well are called as there.
pub mod nodes_ready {
    /// As many Nodes as desired are ready, and every instance in service that is not being removed has a ready Node.
    pub const NODES_READY: &str = "NodesReady";
    /// Nodes are not ready for less than spec.nodeStartupTimeoutSeconds, their instances are being replaced, or instances
    /// are not in service yet.
    ///
    /// Remedy: wait; nodes take a minute or two after the launch.
    pub const WAITING_FOR_NODES: &str = "WaitingForNodes";
    /// Instances have not joined the cluster within spec.nodeStartupTimeoutSeconds.
    ///
    /// Remedy: `capasg why asgmachinepool/<name>` names what to check: security groups, image, token, instance profile.
    /// See docs/users/troubleshooting.md.
    pub const NODE_STARTUP_TIMEOUT: &str = "NodeStartupTimeout";
    /// The Nodes of instances were deleted, and did not join again within spec.nodeStartupTimeoutSeconds.
    ///
    /// Remedy: delete the Machine of the instance, so that it is replaced.
    pub const NODE_DELETED: &str = "NodeDeleted";
    /// Nodes have not been ready for spec.nodeStartupTimeoutSeconds.
    ///
    /// Remedy: `kubectl describe node` in the workload cluster; often the network plugin is missing. See
    /// docs/users/troubleshooting.md.
    pub const NODE_NOT_READY: &str = "NodeNotReady";
    /// Machines have not been ready for spec.nodeStartupTimeoutSeconds, although their Nodes are.
    ///
    /// Remedy: `kubectl describe machine`.
    pub const MACHINE_NOT_READY: &str = "MachineNotReady";
    /// The API server has rejected a write about Machines, ASGMachines or the pool for minutes: an admission policy, a webhook or
    /// a quota. The message has its words.
    ///
    /// Remedy: allow the write that the message names, or raise the quota; the controller repeats it.
    pub const WRITE_REJECTED: &str = "WriteRejected";
    /// Cluster API does not know whether Nodes are ready: the control plane is not initialized, or the API server of
    /// the workload cluster does not answer.
    ///
    /// Remedy: check that the API server of the workload cluster can be reached from core Cluster API.
    pub const NODES_READY_UNKNOWN: &str = "NodesReadyUnknown";
}

/// `Deleting` of both kinds.
pub mod deleting {
    /// The object is not being deleted.
    pub const NOT_DELETING: &str = "NotDeleting";
    /// The object is being deleted.
    pub const DELETING: &str = "Deleting";
    /// The deletion waits until Machines and ASGMachines are deleted.
    ///
    /// Remedy: `kubectl describe machine` of the Machine that the message names: a PodDisruptionBudget or a volume may
    /// block its drain; `nodeDrainTimeoutSeconds` of the MachinePool limits it.
    pub const DRAINING_MACHINES: &str = "DrainingMachines";
    /// The deletion waits until the group is deleted.
    ///
    /// Remedy: none; AWS terminates the instances. If AWS is unreachable, see docs/users/troubleshooting.md.
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
    ///
    /// Remedy: none; `RollingOut` says what the rollout waits for.
    pub const NOT_UP_TO_DATE: &str = "NotUpToDate";
    /// Pool: outdated instances wait until a user deletes their Machines.
    ///
    /// Remedy: delete the Machines, or use another strategy (docs/users/rollouts.md).
    pub const WAITING_FOR_DELETION: &str = "WaitingForDeletion";
    /// Pool: outdated instances wait until a window of spec.disruption opens.
    ///
    /// Remedy: wait, or edit `spec.disruption.windows`.
    pub const WAITING_FOR_WINDOW: &str = "WaitingForWindow";
    /// Pool: an instance refresh does not support spec.disruption.windows if the bootstrap data contains a bootstrap
    /// token or is not from kubeadm.
    ///
    /// Remedy: remove the windows, or use the rolling update (docs/users/instance-refresh.md).
    pub const WINDOWS_NOT_SUPPORTED: &str = "WindowsNotSupported";
    /// Pool: spec.rollout.mode is Paused.
    ///
    /// Remedy: set `spec.rollout.mode: Automatic`.
    pub const ROLLOUT_PAUSED: &str = "RolloutPaused";
    /// Pool: no new instance became available within the progress deadline, and the rollout stopped.
    ///
    /// Remedy: read `ScalingHealthy` if AWS launches no instance, and the conditions of the Machines if their nodes do
    /// not join. Correct the spec, or remove the annotation that the message names (docs/users/rollouts.md).
    pub const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    /// Pool: an instance refresh failed, was cancelled or had no effect, and the rollout stopped.
    ///
    /// Remedy: read the reason of AWS; correct the spec, or remove the annotation that the message names
    /// (docs/users/instance-refresh.md).
    pub const INSTANCE_REFRESH_FAILED: &str = "InstanceRefreshFailed";
    /// Pool: new instances were launched from another launch template version than the group is pinned to, and the rollout
    /// stopped. Read back.
    ///
    /// Remedy: find the actor that changes the group or its instances in CloudTrail, then remove the annotation that the
    /// message names.
    pub const UNEXPECTED_LAUNCH_TEMPLATE_VERSION: &str = "UnexpectedLaunchTemplateVersion";
    /// Pool: AWS rolled back an instance refresh.
    ///
    /// Remedy: read the reason of AWS; correct the spec, or remove the annotation that the message names
    /// (docs/users/instance-refresh.md).
    pub const ROLLED_BACK: &str = "RolledBack";
    /// The launch template version of instances is not known: it was deleted, or another actor created it just now.
    ///
    /// Remedy: correct the error in `CloudReachable`; replace instances of a deleted version with the annotation
    /// `asg.infrastructure.cluster.x-k8s.io/replace`.
    pub const VERSION_UNKNOWN: &str = "VersionUnknown";
    /// Instances were launched from another launch template than that of the pool, or from none: another actor attached
    /// them, or the launch template was deleted before an ASGMachine recorded what they were launched for. They are outdated
    /// at the next change of the desired state.
    ///
    /// Remedy: none; to replace an instance before, set the annotation `asg.infrastructure.cluster.x-k8s.io/replace` of
    /// its ASGMachine.
    pub const OTHER_LAUNCH_TEMPLATE: &str = "OtherLaunchTemplate";
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
    /// The pool has fewer instances with a ready Node than desired.
    ///
    /// Remedy: none; if it persists, read `ScalingHealthy`.
    pub const SCALING_UP: &str = "ScalingUp";
    /// The pool has at least as many instances with a ready Node as desired.
    pub const NOT_SCALING_UP: &str = "NotScalingUp";
    /// The pool has as many instances as desired, and Cluster API does not know whether their Nodes are ready.
    pub const NODES_READY_UNKNOWN: &str = "NodesReadyUnknown";
}

/// `ScalingDown` of a pool.
pub mod scaling_down {
    /// The pool has more instances than desired.
    ///
    /// Remedy: none; if it persists, read the conditions of the Machines that are being deleted.
    pub const SCALING_DOWN: &str = "ScalingDown";
    /// The pool has at most as many instances as desired.
    pub const NOT_SCALING_DOWN: &str = "NotScalingDown";
}

/// `Remediating` of a pool.
pub mod remediating {
    /// Unhealthy Machines are being replaced.
    ///
    /// Remedy: none; read why the MachineHealthCheck reports the Machines.
    pub const REMEDIATING: &str = "Remediating";
    /// No unhealthy Machine is being replaced.
    pub const NOT_REMEDIATING: &str = "NotRemediating";
}

/// `Paused` of both kinds, with core's own reasons (F2).
pub mod paused {
    /// The object is paused.
    ///
    /// Remedy: end the pause of the object that the message names (docs/users/operations.md).
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
    ///
    /// Remedy: see the conditions that the message lists.
    pub const STALLED: &str = "Stalled";
    /// Nothing waits for a user.
    pub const NOT_STALLED: &str = "NotStalled";
}

/// `Drifted` of a pool.
pub mod drifted {
    /// Another actor changed AWS, which is not corrected because spec.changePolicy is Preview.
    ///
    /// Remedy: write the change into the spec, or set `spec.changePolicy: Apply` to revert it (docs/users/drift.md).
    pub const DRIFTED: &str = "Drifted";
    /// AWS does not differ from the spec.
    pub const NOT_DRIFTED: &str = "NotDrifted";
    /// AWS differs from the spec only by changes of the spec that spec.changePolicy Preview holds.
    ///
    /// Remedy: set `spec.changePolicy: Apply` to make the changes (docs/users/drift.md).
    pub const PREVIEWING: &str = "Previewing";
    /// Another actor changed AWS, and the controller is correcting it.
    ///
    /// Remedy: write the change into the spec if it is to stay (docs/users/drift.md).
    pub const CORRECTING: &str = "Correcting";
}

/// `InstanceReady` of an instance.
pub mod instance_ready {
    /// The instance has started, is healthy, is in its group and is not terminating.
    pub const INSTANCE_READY: &str = "InstanceReady";
    /// The instance is starting.
    pub const PENDING: &str = "Pending";
    /// The Auto Scaling group reports the instance as unhealthy.
    ///
    /// Remedy: none; the group replaces the instance.
    pub const UNHEALTHY: &str = "Unhealthy";
    /// The instance is terminating.
    pub const TERMINATING: &str = "Terminating";
    /// The instance is not in its Auto Scaling group any more.
    ///
    /// Remedy: attach the instance again, or terminate it (docs/users/terminations.md).
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
