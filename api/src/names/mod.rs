//! Every label, annotation, finalizer, tag and event reason of ours, and every label and annotation of Cluster API's that
//! we read or write.

pub mod addons;
mod derived;
mod label;
mod list;
mod object;

pub use derived::{aws_name, hash, machine_name, provider_id};
pub use label::must_format_value;
pub use list::listed;
pub use object::{is_namespace_name, is_object_name};

/// The prefix of our annotations and tags.
pub const PREFIX: &str = "asg.infrastructure.cluster.x-k8s.io";
/// The field manager of all our writes; never `capi-topology` (J3).
pub const FIELD_MANAGER: &str = "capasg";
/// Our hook on `EC2_INSTANCE_TERMINATING`.
pub const TERMINATE_HOOK: &str = "asg-drain";

/// Labels.
pub mod labels {
    /// The Cluster that an object belongs to; core sets it on pools, we set it on `ASGMachine`s (D3).
    pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
    /// The `MachinePool` that an instance belongs to, as [`super::must_format_value`] of its name (D3).
    pub const POOL_NAME: &str = "cluster.x-k8s.io/pool-name";
    /// Which manager reconciles the object, if several managers share a cluster (C5).
    pub const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";
    /// On a CRD: the versions that fulfil the contract (A3).
    pub const CONTRACT: &str = "cluster.x-k8s.io/v1beta2";
    /// On every object that clusterctl installs.
    pub const PROVIDER: &str = "cluster.x-k8s.io/provider";

    /// The labels by which core finds the `ASGMachine`s of a `MachinePool` (D3).
    #[must_use]
    pub fn of_machine(cluster: &str, machine_pool: &str) -> std::collections::BTreeMap<String, String> {
        [(CLUSTER_NAME, cluster.to_owned()), (POOL_NAME, super::must_format_value(machine_pool))]
            .map(|(key, value)| (key.to_owned(), value))
            .into()
    }
}

/// Annotations.
pub mod annotations {
    /// Core's: the object is paused, whatever the value.
    pub const PAUSED: &str = "cluster.x-k8s.io/paused";
    /// clusterctl's: the object is deleted because it was moved; nothing it stands for may be deleted (M3).
    pub const DELETE_FOR_MOVE: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
    /// clusterctl's: do not move the object yet (F5).
    pub const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
    /// Core's, on a Machine: it is deleted first. We set it on a scale-in victim; it survives a move (D8).
    pub const DELETE_MACHINE: &str = "cluster.x-k8s.io/delete-machine";
    /// Core's, on a `MachinePool`: another actor manages replicas, unless the value is `false` (G2).
    pub const REPLICAS_MANAGED_BY: &str = "cluster.x-k8s.io/replicas-managed-by";
    /// The autoscaler's lower bound on a `MachinePool` (G3).
    pub const AUTOSCALER_MIN_SIZE: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
    /// The autoscaler's upper bound on a `MachinePool` (G3).
    pub const AUTOSCALER_MAX_SIZE: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
    /// Core's, on a Machine: its Node is not drained. We set it where the instance is terminated already.
    pub const EXCLUDE_NODE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";

    /// On a pool: the random owner ID, written before the first AWS resource is created; also a tag of these resources.
    pub const OWNER_ID: &str = "asg.infrastructure.cluster.x-k8s.io/owner-id";
    /// On a pool: no call that creates or changes a resource in AWS was made for it yet. Set with the owner ID, and
    /// removed before the first such call. A pool without it may have resources in AWS.
    pub const NOTHING_CREATED: &str = "asg.infrastructure.cluster.x-k8s.io/nothing-created";
    /// On a pool: the rollout hash whose rollout is stopped.
    pub const ROLLOUT_STOPPED: &str = "asg.infrastructure.cluster.x-k8s.io/rollout-stopped";
    /// On an `ASGMachine`: the instance is to be replaced.
    pub const REPLACE: &str = "asg.infrastructure.cluster.x-k8s.io/replace";
    /// On an `ASGMachine`: the instance is chosen last for a disruption.
    pub const DO_NOT_DISRUPT: &str = "asg.infrastructure.cluster.x-k8s.io/do-not-disrupt";
    /// On an `ASGMachine`: when the controller last requested the termination of the instance, RFC 3339.
    pub const END_REQUESTED_AT: &str = "asg.infrastructure.cluster.x-k8s.io/end-requested-at";
    /// On an `ASGMachine`: hashes of the desired state that its instance was launched for (`launched ...`). If it was
    /// launched from no launch template of the pool: of that at the time when the pool found it (`found ...`).
    pub const DESIRED_STATE: &str = "asg.infrastructure.cluster.x-k8s.io/desired-state";
    /// On a Cluster: `true` blocks its deletion.
    pub const DELETION_PROTECTION: &str = "asg.infrastructure.cluster.x-k8s.io/deletion-protection";

    /// Whether a value of [`DELETION_PROTECTION`] protects. One with a typing mistake does, too.
    #[must_use]
    pub fn protects(value: Option<&str>) -> bool {
        !matches!(value.map(str::trim), None | Some("false"))
    }
}

/// Finalizers.
pub mod finalizers {
    /// On a pool, from before the first AWS resource is created until all of them are deleted (C6).
    pub const POOL: &str = "infrastructure.cluster.x-k8s.io/asgmachinepool";
    /// On an `ASGMachine`, until its instance is terminated (D10).
    pub const MACHINE: &str = "infrastructure.cluster.x-k8s.io/asgmachine";
    /// Core's, on a Machine from its first reconcile until its Node is drained and its ASGMachine is deleted (D7).
    pub const CORE_MACHINE: &str = "machine.cluster.x-k8s.io";
}

/// Tags that we set in AWS.
pub mod tags {
    use std::collections::BTreeMap;

    /// Ownership, with the three tags below: a resource on which one of them is missing or different is not owned.
    pub const OWNER_ID: &str = "asg.infrastructure.cluster.x-k8s.io/owner-id";
    /// On an adopted group: the launch templates that its instances were launched from before the adoption.
    pub const ADOPTED_FROM: &str = "asg.infrastructure.cluster.x-k8s.io/adopted-from";
    /// The pool's namespace. Unlike the owner ID, which is an annotation, a user cannot choose it for an object.
    pub const NAMESPACE: &str = "asg.infrastructure.cluster.x-k8s.io/namespace";
    /// The pool's Cluster.
    pub const CLUSTER: &str = "asg.infrastructure.cluster.x-k8s.io/cluster";
    /// The pool's name.
    pub const POOL: &str = "asg.infrastructure.cluster.x-k8s.io/pool";
    /// On a group that no pool owns: who may adopt it, `<namespace>/<pool>` or `<namespace>/*`. Set by an administrator of the
    /// AWS account.
    pub const ADOPTABLE_BY: &str = "asg.infrastructure.cluster.x-k8s.io/adoptable-by";
    /// The tags that identify the pool that owns a group or a launch template.
    pub const IDENTITY: [&str; 4] = [OWNER_ID, NAMESPACE, CLUSTER, POOL];
    /// The name that the AWS console shows.
    pub const NAME: &str = "Name";
    /// The longest value that AWS accepts, in characters.
    const MAX_VALUE_LENGTH: usize = 256;

    /// The key that AWS's cloud controller requires on every instance of a cluster.
    #[must_use]
    pub fn cloud_provider(cluster: &str) -> String {
        format!("kubernetes.io/cluster/{cluster}")
    }

    /// All tags of a pool: ours override the user's, except `Name`, which a user may set.
    #[must_use]
    pub fn of_pool(
        user: &BTreeMap<String, String>,
        owner_id: &str,
        namespace: &str,
        cluster: &str,
        pool: &str,
    ) -> BTreeMap<String, String> {
        let value = |text: &str| text.chars().take(MAX_VALUE_LENGTH).collect::<String>();
        let mut tags = BTreeMap::from([(NAME.to_owned(), value(&format!("{cluster}-{pool}")))]);
        tags.extend(user.clone());
        tags.extend([
            (OWNER_ID.to_owned(), value(owner_id)),
            (NAMESPACE.to_owned(), value(namespace)),
            (CLUSTER.to_owned(), value(cluster)),
            (POOL.to_owned(), value(pool)),
            (cloud_provider(cluster), "owned".to_owned()),
        ]);
        tags
    }
}

/// Reasons of events. Each names, in the past tense, what was done or what was observed; those that end in `NotOwned`
/// name a state that blocks the pool.
pub mod events {
    /// The Auto Scaling group was created.
    pub const GROUP_CREATED: &str = "GroupCreated";
    /// The pool is about to adopt an existing group.
    pub const ADOPTION_STARTED: &str = "AdoptionStarted";
    /// The pool adopted an existing group.
    pub const GROUP_ADOPTED: &str = "GroupAdopted";
    /// Warning: the pool cannot adopt an existing group as it is.
    pub const ADOPTION_BLOCKED: &str = "AdoptionBlocked";
    /// The group was updated.
    pub const GROUP_UPDATED: &str = "GroupUpdated";
    /// The deletion of the group was requested.
    pub const GROUP_DELETION_REQUESTED: &str = "GroupDeletionRequested";
    /// The launch template was created.
    pub const LAUNCH_TEMPLATE_CREATED: &str = "LaunchTemplateCreated";
    /// A version of the launch template was created.
    pub const LAUNCH_TEMPLATE_VERSION_CREATED: &str = "LaunchTemplateVersionCreated";
    /// The desired capacity was raised.
    pub const SCALED_UP: &str = "ScaledUp";
    /// A Machine was chosen as a victim of a scale-in, before its Node is drained.
    pub const SCALE_IN_STARTED: &str = "ScaleInStarted";
    /// The deletion of a Machine was requested so that its instance is replaced.
    pub const MACHINE_REPLACEMENT_STARTED: &str = "MachineReplacementStarted";
    /// The replacement of outdated instances started.
    pub const ROLLOUT_STARTED: &str = "RolloutStarted";
    /// All instances are up to date.
    pub const ROLLOUT_COMPLETED: &str = "RolloutCompleted";
    /// Warning: the rollout stopped: no new instance became available in time, an instance refresh failed, or new
    /// instances use another launch template version.
    pub const ROLLOUT_STOPPED: &str = "RolloutStopped";
    /// Warning: AWS rolled back an instance refresh that failed.
    pub const ROLLOUT_ROLLED_BACK: &str = "RolloutRolledBack";
    /// An instance refresh was started.
    pub const INSTANCE_REFRESH_STARTED: &str = "InstanceRefreshStarted";
    /// The cancellation of an instance refresh was requested.
    pub const INSTANCE_REFRESH_CANCELLATION_REQUESTED: &str = "InstanceRefreshCancellationRequested";
    /// The rollback of an instance refresh was requested.
    pub const INSTANCE_REFRESH_ROLLBACK_REQUESTED: &str = "InstanceRefreshRollbackRequested";
    /// A change that another actor made in AWS was corrected.
    pub const DRIFT_CORRECTED: &str = "DriftCorrected";
    /// The termination of an instance was requested.
    pub const INSTANCE_TERMINATION_REQUESTED: &str = "InstanceTerminationRequested";
    /// An instance is terminated.
    pub const INSTANCE_TERMINATED: &str = "InstanceTerminated";
    /// An instance is no longer managed, and the controller did not terminate it.
    pub const INSTANCE_RELEASED: &str = "InstanceReleased";
    /// Warning: a launch failed.
    pub const LAUNCH_FAILED: &str = "LaunchFailed";
    /// Warning: AWS rejected a call, or it cannot be sent.
    pub const CALL_REJECTED: &str = "CallRejected";
    /// Warning: a call to AWS has failed for 2 minutes, or calls about instances one after another.
    pub const CALL_FAILED: &str = "CallFailed";
    /// Warning: AWS accepts a call repeatedly, but the group does not show the change.
    pub const CHANGE_WITHOUT_EFFECT: &str = "ChangeWithoutEffect";
    /// Warning: a drain exceeded its timeout.
    pub const DRAIN_TIMED_OUT: &str = "DrainTimedOut";
    /// Warning: instances in service had no ready Node for longer than `spec.nodeStartupTimeoutSeconds`.
    pub const NODES_NOT_READY: &str = "NodesNotReady";
    /// Warning: the tags of the group that identify its pool are missing or name another pool, or the group is in another
    /// account.
    pub const GROUP_NOT_OWNED: &str = "GroupNotOwned";
    /// Warning: the tags of the launch template that identify its pool are missing or name another pool.
    pub const LAUNCH_TEMPLATE_NOT_OWNED: &str = "LaunchTemplateNotOwned";
}
