//! Every label, annotation, finalizer, tag and event of ours, and every one of Cluster API's that we read or write.

mod derived;
mod label;

pub use derived::{aws_name, machine_name, provider_id};
pub use label::must_format_value;

/// The prefix of our annotations and tags.
pub const PREFIX: &str = "asg.infrastructure.cluster.x-k8s.io";
/// The field manager of all our writes; never `capi-topology` (J3).
pub const FIELD_MANAGER: &str = "capasg";
/// Our hook on `EC2_INSTANCE_TERMINATING`.
pub const TERMINATE_HOOK: &str = "asg-drain";

/// Labels.
pub mod labels {
    /// The Cluster that an object belongs to; core puts it on pools, we on instances (D3).
    pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
    /// The `MachinePool` that an instance belongs to, as [`super::must_format_value`] of its name (D3).
    pub const POOL_NAME: &str = "cluster.x-k8s.io/pool-name";
    /// Which manager looks after the object, if several share a cluster (C5).
    pub const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";
    /// On a CRD: the versions that serve the contract (A3).
    pub const CONTRACT: &str = "cluster.x-k8s.io/v1beta2";
    /// On whatever clusterctl installs.
    pub const PROVIDER: &str = "cluster.x-k8s.io/provider";

    /// The labels that make core see an instance of a `MachinePool` (D3).
    #[must_use]
    pub fn of_machine(cluster: &str, machine_pool: &str) -> std::collections::BTreeMap<String, String> {
        [(CLUSTER_NAME, cluster.to_owned()), (POOL_NAME, super::must_format_value(machine_pool))]
            .map(|(key, value)| (key.to_owned(), value))
            .into()
    }
}

/// Annotations.
pub mod annotations {
    /// Core's: leave the object alone, whatever the value.
    pub const PAUSED: &str = "cluster.x-k8s.io/paused";
    /// clusterctl's: the object goes because it moved; leave everything alone (M3).
    pub const DELETE_FOR_MOVE: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
    /// clusterctl's: do not move the object yet (F5).
    pub const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
    /// Core's, on a Machine: it goes first. Ours on a chosen victim, durable over a move (D8).
    pub const DELETE_MACHINE: &str = "cluster.x-k8s.io/delete-machine";
    /// Core's, on a `MachinePool`: somebody else manages replicas, unless the value is `false` (G2).
    pub const REPLICAS_MANAGED_BY: &str = "cluster.x-k8s.io/replicas-managed-by";
    /// The autoscaler's lower bound on a `MachinePool` (G3).
    pub const AUTOSCALER_MIN_SIZE: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
    /// The autoscaler's upper bound on a `MachinePool` (G3).
    pub const AUTOSCALER_MAX_SIZE: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
    /// Core's, on a Machine: its Node is not drained; for machines that are already gone.
    pub const EXCLUDE_NODE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
    /// Core's, on an object of a dry run by the topology controller (J2).
    pub const TOPOLOGY_DRY_RUN: &str = "topology.cluster.x-k8s.io/dry-run";

    /// On a pool: the random owner ID, written before the first create; also a tag of what is created.
    pub const OWNER_ID: &str = "asg.infrastructure.cluster.x-k8s.io/owner-id";
    /// On a pool: a new value makes everything that AWS refused be tried again at once.
    pub const RETRY: &str = "asg.infrastructure.cluster.x-k8s.io/retry";
    /// On a pool: the rollout hash that is not rolled out any further.
    pub const ROLLOUT_STOPPED: &str = "asg.infrastructure.cluster.x-k8s.io/rollout-stopped";
    /// On an instance: replace it.
    pub const REPLACE: &str = "asg.infrastructure.cluster.x-k8s.io/replace";
    /// On an instance: choose it last.
    pub const DO_NOT_DISRUPT: &str = "asg.infrastructure.cluster.x-k8s.io/do-not-disrupt";
    /// On an instance: when AWS was last asked to end it, RFC 3339.
    pub const END_REQUESTED_AT: &str = "asg.infrastructure.cluster.x-k8s.io/end-requested-at";
}

/// Finalizers.
pub mod finalizers {
    /// On a pool, from before the first create until everything is gone in AWS (C6).
    pub const POOL: &str = "infrastructure.cluster.x-k8s.io/asgmachinepool";
    /// On an instance, until it is ended (D10).
    pub const MACHINE: &str = "infrastructure.cluster.x-k8s.io/asgmachine";
}

/// Tags that we set in AWS.
pub mod tags {
    use std::collections::BTreeMap;

    /// Ownership: another value is somebody else's.
    pub const OWNER_ID: &str = "asg.infrastructure.cluster.x-k8s.io/owner-id";
    /// On an adopted group: the launch templates that its instances were launched from until then.
    pub const ADOPTED_FROM: &str = "asg.infrastructure.cluster.x-k8s.io/adopted-from";
    /// The pool's namespace, for people.
    pub const NAMESPACE: &str = "asg.infrastructure.cluster.x-k8s.io/namespace";
    /// The pool's Cluster, for people.
    pub const CLUSTER: &str = "asg.infrastructure.cluster.x-k8s.io/cluster";
    /// The pool's name, for people.
    pub const POOL: &str = "asg.infrastructure.cluster.x-k8s.io/pool";
    /// What consoles show.
    pub const NAME: &str = "Name";
    /// The longest value that AWS takes.
    const MAX_VALUE_LENGTH: usize = 256;

    /// The key that AWS's cloud controller needs on every instance of a cluster.
    #[must_use]
    pub fn cloud_provider(cluster: &str) -> String {
        format!("kubernetes.io/cluster/{cluster}")
    }

    /// All tags of a pool: its own on top of the user's, except `Name`, which a user may choose.
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

/// Reasons of events, each for a write to the cloud or something that people want to know at once.
pub mod events {
    /// The group was created.
    pub const GROUP_CREATED: &str = "GroupCreated";
    /// A group that exists is about to become the pool's.
    pub const ADOPTING_GROUP: &str = "AdoptingGroup";
    /// A group that existed became the pool's.
    pub const GROUP_ADOPTED: &str = "GroupAdopted";
    /// Warning: a group that exists cannot become the pool's as it is.
    pub const ADOPTION_REFUSED: &str = "AdoptionRefused";
    /// The group was changed.
    pub const GROUP_UPDATED: &str = "GroupUpdated";
    /// The group was deleted.
    pub const GROUP_DELETED: &str = "GroupDeleted";
    /// The launch template was created.
    pub const LAUNCH_TEMPLATE_CREATED: &str = "LaunchTemplateCreated";
    /// The launch template has a new version.
    pub const LAUNCH_TEMPLATE_UPDATED: &str = "LaunchTemplateUpdated";
    /// The desired capacity was raised.
    pub const SCALED_UP: &str = "ScaledUp";
    /// Machines were chosen to go.
    pub const SCALING_DOWN: &str = "ScalingDown";
    /// A Machine is deleted so that its instance is replaced.
    pub const REPLACING_MACHINE: &str = "ReplacingMachine";
    /// Instances became outdated.
    pub const ROLLOUT_STARTED: &str = "RolloutStarted";
    /// None is outdated any more.
    pub const ROLLOUT_COMPLETED: &str = "RolloutCompleted";
    /// Warning: no new instance became available in time.
    pub const ROLLOUT_STALLED: &str = "RolloutStalled";
    /// Warning: AWS took back what an instance refresh had replaced.
    pub const ROLLOUT_ROLLED_BACK: &str = "RolloutRolledBack";
    /// AWS was asked to replace outdated instances in an instance refresh.
    pub const INSTANCE_REFRESH_STARTED: &str = "InstanceRefreshStarted";
    /// AWS was asked to cancel an instance refresh, or to roll it back.
    pub const INSTANCE_REFRESH_ENDING: &str = "InstanceRefreshEnding";
    /// Something that was changed in AWS was put right.
    pub const DRIFT_CORRECTED: &str = "DriftCorrected";
    /// AWS was asked to end an instance.
    pub const INSTANCE_ENDING: &str = "InstanceEnding";
    /// An instance is gone.
    pub const INSTANCE_ENDED: &str = "InstanceEnded";
    /// Warning: a launch failed.
    pub const LAUNCH_FAILED: &str = "LaunchFailed";
    /// Warning: AWS refused a call.
    pub const CALL_REJECTED: &str = "CallRejected";
    /// Warning: a drain took too long.
    pub const DRAIN_TIMED_OUT: &str = "DrainTimedOut";
    /// Warning: the group belongs to somebody else.
    pub const GROUP_NOT_OWNED: &str = "GroupNotOwned";
}
