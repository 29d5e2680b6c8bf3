//! The wish: what a pool should be, with every default and reference resolved.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::{
    ASGMachinePoolSpec,
    capi::{MachineDeletion, MachinePool},
    pool::{PendingChange, ReplicaLimits, ResolvedDisruption, ResolvedInstanceRefresh, ResolvedRollout},
};
use capasg_cloud::{GroupSettings, GroupTag, LaunchTemplateData, LifecycleHook, MixedInstances};
use chrono::TimeDelta;

use crate::ObjectKey;
use crate::machine_pool::model::stamp::Stamp;

/// What the pool should be, with every default and reference resolved.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which holds or does not")]
pub struct Desired {
    /// The pool, for writes to it.
    pub pool: ObjectKey,
    /// Name of the Auto Scaling group.
    pub group: String,
    /// Name of the launch template.
    pub template: String,
    /// The random id that says which object owns group and template.
    pub owner_id: String,
    /// The wished number of instances, within the limits of the spec.
    pub replicas: i32,
    /// Who wishes it.
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
    /// The terminate hook; `None` removes ours.
    pub hook: Option<LifecycleHook>,
    /// The launch template's content, or why it cannot be told yet.
    pub launch: DesiredLaunch,
    /// How outdated instances are replaced, and how many may be added or missing meanwhile.
    pub rollout: ResolvedRollout,
    /// How AWS replaces them, where it does.
    pub refresh: ResolvedInstanceRefresh,
    /// Whether the bootstrap data change by themselves, as those with a token do.
    pub rotates: bool,
    /// The pool's annotation `retry`: a new value lets a stopped rollout go on.
    pub retry: Option<String>,
    /// What is not rolled out any further: the pool's annotation `rollout-stopped`.
    pub stopped: Option<String>,
    /// When and how many instances may be disrupted for reasons of ours.
    pub disruption: ResolvedDisruption,
    /// How long a Node must be ready to count as available (`minReadySeconds` of the `MachinePool`).
    pub min_ready: TimeDelta,
    /// Whether Machines that a `MachineHealthCheck` marks are replaced (D15).
    pub remediate: bool,
    /// Whether Spot instances are replaced as soon as EC2 recommends it.
    pub rebalance: bool,
    /// The `MachinePool`'s limits on how Machines go (D14); `None` once it is gone.
    pub timeouts: Option<MachineDeletion>,
    /// How long a drain may take.
    pub drain_limit: TimeDelta,
    /// Which instances end first among equals.
    pub scale_in_order: ScaleInOrder,
    /// Whether differences are only shown.
    pub previews: bool,
    /// Whether a group of our name that the pool did not make becomes its own.
    pub adopts: bool,
    /// What the pool's status shows of changes to come, as a cache has it.
    pub shown: Vec<PendingChange>,
    /// Hash of the user data as they are sent, tokens included; empty while they are not known.
    pub user_data_hash: String,
    /// What happens to the cloud side when the pool is deleted.
    pub orphan_on_deletion: bool,
    /// Whether Machines are drained when the pool is deleted.
    pub drain_on_deletion: bool,
    /// `spec.providerID`: the ARN of the group once it was created.
    pub provider_id: Option<String>,
}

/// Who says how many instances there are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplicaOwner {
    /// The `MachinePool` (G1).
    #[default]
    MachinePool,
    /// Somebody else, through the group's desired capacity within these bounds (G2).
    External(Bounds),
    /// Somebody else, as soon as it was reported: until then nothing is sized, and bounds keep it as it is.
    Announced,
    /// Somebody else, as soon as what was begun for the `MachinePool` is finished.
    Awaited,
    /// The `MachinePool` again, as soon as its replicas are what the group has.
    Returning,
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
    /// Object uid.
    pub uid: String,
    /// A concurrent change makes a write to it a conflict.
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
    /// `NewInstancesProtectedFromScaleIn`: the group never picks.
    pub protect_new_instances: bool,
}

/// The launch template's content.
#[derive(Debug, Clone)]
pub enum DesiredLaunch {
    /// Everything is known; without the user data if only its digest was needed so far.
    Known {
        /// The content; the user data is empty unless `has_user_data`.
        data: Box<LaunchTemplateData>,
        /// The hashes of the content.
        stamp: Stamp,
        /// Whether `data` holds the user data, so that it can be sent.
        has_user_data: bool,
    },
    /// Something is missing (bootstrap data, image, a reference): what exists is kept running.
    Unknown,
}

/// Which instance ends first among equals.
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
        }
    }
}

/// The replicas wished by the MachinePool, kept within the limits of the spec.
#[must_use]
pub fn replicas(spec: &ASGMachinePoolSpec, owner: &MachinePool) -> (i32, ReplicaLimits) {
    let limits = spec.limits(Some(owner));
    let capped = limits.max.map_or(owner.replicas(), |max| owner.replicas().min(max));
    (capped.max(limits.min), limits)
}
