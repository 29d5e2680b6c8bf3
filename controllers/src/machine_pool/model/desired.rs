//! The desired state of a pool, with every default and reference resolved.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::{
    ASGMachinePoolSpec,
    capi::{MachineDeletion, MachinePool},
    pool::{PendingChange, ReplicaLimits, ResolvedDisruption, ResolvedInstanceRefresh, ResolvedRollout},
};
use capasg_cloud::{
    GroupSettings, GroupTag, LaunchTemplateData, LifecycleHook, MaintenancePolicy, MixedInstances, UserData,
};
use chrono::TimeDelta;

use crate::ObjectKey;
use crate::machine_pool::model::stamp::Stamp;

/// The desired state of a pool, with every default and reference resolved.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which holds or does not")]
pub struct Desired {
    /// The pool, for writes to it.
    pub pool: ObjectKey,
    /// Name of the Auto Scaling group.
    pub group: String,
    /// Name of the launch template.
    pub template: String,
    /// The random ID of the object that owns group and template.
    pub owner_id: String,
    /// The desired number of instances, within the limits of the spec.
    pub replicas: i32,
    /// The most replicas by the guards of the namespace, if they allow fewer than requested. A group that has more keeps
    /// them.
    pub ceiling: Option<i32>,
    /// Who manages the replicas.
    pub owner: ReplicaOwner,
    /// The `MachinePool`, for writes to it.
    pub machine_pool: Option<MachinePoolRef>,
    /// Settings of the group; the pinned template version is filled in by decide.
    pub settings: DesiredSettings,
    /// The instance types allowed; an instance of another type is outdated.
    pub instance_types: Vec<String>,
    /// Tags of the group by key.
    pub tags: BTreeMap<String, GroupTag>,
    /// Processes that stay suspended.
    pub suspended_processes: BTreeSet<String>,
    /// Our lifecycle hook for terminations; `None` removes it.
    pub hook: Option<LifecycleHook>,
    /// The launch template's content, if it is known.
    pub launch: DesiredLaunch,
    /// How outdated instances are replaced, with `maxSurge` and `maxUnavailable`.
    pub rollout: ResolvedRollout,
    /// The preferences of instance refreshes.
    pub refresh: ResolvedInstanceRefresh,
    /// Whether the bootstrap data change by themselves, as those with a bootstrap token do.
    pub rotates: bool,
    /// `spec.retryToken`: a new value continues a stopped rollout.
    pub retry: Option<String>,
    /// The pool's annotation `rollout-stopped` ([`stopped_rollout`](super::stopped_rollout)).
    pub stopped: Option<String>,
    /// When, and how many instances this controller may disrupt.
    pub disruption: ResolvedDisruption,
    /// How long a Node must be ready to count as available (`minReadySeconds` of the `MachinePool`).
    pub min_ready: TimeDelta,
    /// Whether Machines that a `MachineHealthCheck` finds unhealthy are replaced (D15).
    pub remediate: bool,
    /// Whether Spot instances are replaced after a rebalance recommendation.
    pub rebalance: bool,
    /// Whether an instance is replaced to restore the balance of the zones.
    pub balances_zones: bool,
    /// The `MachinePool`'s timeouts for the deletion of Machines (D14); `None` once the `MachinePool` is deleted.
    pub timeouts: Option<MachineDeletion>,
    /// How long a drain may take.
    pub drain_limit: TimeDelta,
    /// Which of several equal instances is terminated first.
    pub scale_in_order: ScaleInOrder,
    /// Whether `spec.changePolicy` is `Preview`.
    pub previews: bool,
    /// Whether an existing group of the pool's name is adopted.
    pub adopts: bool,
    /// Why a guard of the namespace denies the adoption, if one does or none allows it.
    pub adoption_denied: Option<String>,
    /// `status.pendingChanges` of the pool, as the cache has it.
    pub shown: Vec<PendingChange>,
    /// The bootstrap data of new instances, whatever else is known; `None` while there is none.
    pub bootstrap: Option<DesiredBootstrap>,
    /// Whether the group and its instances are kept when the pool is deleted (`deletionPolicy: Orphan`).
    pub orphan_on_deletion: bool,
    /// Whether Machines are drained when the pool is deleted.
    pub drain_on_deletion: bool,
    /// `spec.providerID`: the ARN of the group once it was created.
    pub provider_id: Option<String>,
}

/// The bootstrap data of new instances.
#[derive(Debug, Clone)]
pub struct DesiredBootstrap {
    /// The data; empty if only their digest was required so far.
    pub user_data: UserData,
    /// Whether `user_data` has the data.
    pub is_read: bool,
    /// Hash of the data as they are sent, tokens included.
    pub content: String,
    /// Hash of the data with tokens masked.
    pub data: String,
}

/// Who manages the replicas of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplicaOwner {
    /// The `MachinePool` (G1).
    #[default]
    MachinePool,
    /// Another actor, by the group's desired capacity within these bounds (G2).
    External(Bounds),
    /// Hand-over to another actor: waits until the status reports it; capacity and bounds are not changed.
    ExternalUnreported,
    /// Hand-over to another actor: waits until scaling for the `MachinePool` is complete.
    ExternalPending,
    /// Hand-over back to the `MachinePool`: waits until its replicas equal the group's desired capacity.
    MachinePoolPending,
}

/// Bounds of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// `MinSize`.
    pub min: i32,
    /// `MaxSize`.
    pub max: i32,
}

/// A `MachinePool` as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachinePoolRef {
    /// Object name.
    pub name: String,
    /// Object UID.
    pub uid: String,
    /// The resource version that was read: after a concurrent change a write is a conflict.
    pub resource_version: String,
    /// Its replicas.
    pub replicas: i32,
}

/// Settings of the group without the template version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredSettings {
    /// `MixedInstancesPolicy` without its template.
    pub mixed: Option<MixedInstances>,
    /// `VPCZoneIdentifier`.
    pub subnets: BTreeSet<String>,
    /// `HealthCheckType`.
    pub health_check_types: BTreeSet<String>,
    /// `HealthCheckGracePeriod`, in seconds.
    pub health_check_grace_period: i32,
    /// `DefaultCooldown`, in seconds.
    pub default_cooldown: i32,
    /// `DefaultInstanceWarmup`, in seconds.
    pub default_instance_warmup: Option<i32>,
    /// `NewInstancesProtectedFromScaleIn`: the group chooses no victims itself.
    pub protect_new_instances: bool,
    /// `CapacityRebalance`: always off, unless a preview keeps it. AWS would launch before it terminates, and terminate
    /// what it launched last.
    pub capacity_rebalance: bool,
    /// `InstanceMaintenancePolicy`: always none, unless a preview keeps it.
    pub maintenance_policy: Option<MaintenancePolicy>,
    /// `InstanceLifecyclePolicy`.
    pub retains_abandoned: bool,
}

/// The launch template's content.
#[derive(Debug, Clone)]
pub enum DesiredLaunch {
    /// Everything is known; without the user data if only their digest was required so far.
    Known {
        /// The content; the user data is empty unless `has_user_data`.
        data: Box<LaunchTemplateData>,
        /// The hashes of the content.
        stamp: Stamp,
        /// Whether `data` holds the user data, so that a version can be created.
        has_user_data: bool,
    },
    /// Something is missing (bootstrap data, image, a reference): existing instances keep running.
    Unknown,
}

/// Which of several equal instances is terminated first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScaleInOrder {
    /// The oldest first.
    #[default]
    Oldest,
    /// The newest first.
    Newest,
}

impl DesiredSettings {
    /// The settings with the template version filled in.
    #[must_use]
    pub fn with_template(&self, template: capasg_cloud::TemplateRef) -> GroupSettings {
        GroupSettings {
            launch: capasg_cloud::Launch { template, mixed: self.mixed.clone() },
            subnets: self.subnets.clone(),
            health_check_types: self.health_check_types.clone(),
            health_check_grace_period: self.health_check_grace_period,
            default_cooldown: self.default_cooldown,
            default_instance_warmup: self.default_instance_warmup,
            protect_new_instances: self.protect_new_instances,
            capacity_rebalance: self.capacity_rebalance,
            maintenance_policy: self.maintenance_policy,
            retains_abandoned: self.retains_abandoned,
        }
    }
}

/// The replicas of the MachinePool, restricted to the limits of the spec.
#[must_use]
pub fn replicas(spec: &ASGMachinePoolSpec, owner: &MachinePool) -> (i32, ReplicaLimits) {
    let limits = spec.limits(Some(owner));
    let capped = limits.max.map_or(owner.replicas(), |max| owner.replicas().min(max));
    (capped.max(limits.min), limits)
}
