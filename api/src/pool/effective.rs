//! `status.effective`: the values that apply, for each field of the spec that has a default.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AdoptionPolicy, ChangePolicy, DeletionPolicy, HealthCheckType, ImageUpdatePolicy, OnRefreshFailure,
    RebalanceRecommendationPolicy, RemediationPolicy, ResolvedDrain, ResolvedInstancesDistribution,
    ResolvedMetadataOptions, ResolvedVolume, RolloutMode, RolloutType, ScaleInOrder, ScalingProcess,
    StandbyInstances, VolumeEncryption, VolumeOnTermination, VolumeType, ZoneRebalancePolicy,
};

/// The values that apply: those of the spec, or the defaults. Each field has the path of its field in the spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveSettings {
    /// Minimum number of replicas, from the spec or from the annotation of the MachinePool.
    pub min_size: i32,

    /// Maximum number of replicas, from the spec or from the annotation of the MachinePool. Absent if there is no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size: Option<i32>,

    /// Which instances are chosen first for a scale-in.
    pub scale_in_order: ScaleInOrder,

    /// Distribution of the instances between On-Demand and Spot. Absent if the pool has one instance type and no
    /// distribution: all its instances are On-Demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances_distribution: Option<ResolvedInstancesDistribution>,

    /// Template of each instance.
    pub machine: EffectiveMachine,

    /// How outdated instances are replaced.
    pub rollout: EffectiveRollout,

    /// How many instances the controller may disrupt at the same time.
    pub disruption: EffectiveDisruption,

    /// How nodes are drained before their instances terminate.
    pub drain: ResolvedDrain,

    /// What happens to a Spot instance that EC2 recommends replacing.
    pub rebalance_recommendation_policy: RebalanceRecommendationPolicy,

    /// What happens while the Availability Zones are out of balance.
    pub zone_rebalance_policy: ZoneRebalancePolicy,

    /// Settings of the Auto Scaling group.
    pub group: EffectiveGroup,

    /// What happens to a Machine that a `MachineHealthCheck` reports as unhealthy.
    pub remediation_policy: RemediationPolicy,

    /// Maximum time in seconds for an instance in service to have a ready node; 0 is no limit.
    pub node_startup_timeout_seconds: i32,

    /// What happens to a difference between the spec and AWS.
    pub change_policy: ChangePolicy,

    /// What happens to an existing Auto Scaling group that the pool did not create.
    pub adoption_policy: AdoptionPolicy,

    /// What happens to the resources in AWS when the pool is deleted.
    pub deletion_policy: DeletionPolicy,
}

/// Template of each instance, as far as its fields have defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveMachine {
    /// Image of the instances.
    pub image: EffectiveImage,

    /// Root volume of each instance.
    pub root_volume: EffectiveVolume,

    /// Additional volumes of each instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 27))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub data_volumes: Vec<EffectiveVolume>,

    /// Options of the instance metadata service.
    pub metadata_options: ResolvedMetadataOptions,
}

/// Image of the instances, as far as its fields have defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveImage {
    /// What happens when the SSM parameter holds another image than before.
    pub update_policy: ImageUpdatePolicy,
}

/// Volume of each instance, as far as its fields have defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveVolume {
    /// Device name of the volume. Absent for the root volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub device_name: Option<String>,

    /// Type of the EBS volume.
    #[serde(rename = "type")]
    pub type_: VolumeType,

    /// Encryption of the volume.
    pub encryption: VolumeEncryption,

    /// What happens to the volume when its instance terminates.
    pub on_termination: VolumeOnTermination,
}

/// How outdated instances are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveRollout {
    /// Whether outdated instances are replaced.
    pub mode: RolloutMode,

    /// Maximum time in seconds for a rollout to make progress, at most half of the shortest window.
    pub progress_deadline_seconds: i64,

    /// Strategy by which outdated instances are replaced.
    pub strategy: EffectiveStrategy,
}

/// Strategy by which outdated instances are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveStrategy {
    /// Type of the strategy.
    #[serde(rename = "type")]
    pub type_: RolloutType,

    /// Limits for the instances that the controller replaces, with any type of strategy.
    pub rolling_update: EffectiveRollingUpdate,

    /// Parameters of an instance refresh. Absent with another type of strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_refresh: Option<EffectiveInstanceRefresh>,
}

/// Limits for the instances that the controller replaces, as numbers for the current replicas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveRollingUpdate {
    /// Maximum number of instances above the replicas. 0 if another actor manages the replicas.
    pub max_surge: i32,

    /// Maximum number of replicas that may be unavailable. At least 1 if maxSurge is 0.
    pub max_unavailable: i32,
}

/// Parameters of an instance refresh, as far as they have defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveInstanceRefresh {
    /// Minimum percentage of the replicas that AWS keeps in service. The controller sends a higher one if
    /// disruption.maxDisrupted requires it.
    pub min_healthy_percentage: i32,

    /// What the refresh does with instances in standby.
    pub standby_instances: StandbyInstances,

    /// What happens when a refresh fails.
    pub on_failure: OnRefreshFailure,
}

/// How many instances the controller may disrupt at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveDisruption {
    /// Maximum number of instances that may be disrupted at the same time, as a number for the current replicas. Absent
    /// if there is no limit beyond those of the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_disrupted: Option<i32>,
}

/// Settings of the Auto Scaling group, as far as they have defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveGroup {
    /// Checks by which AWS determines that an instance is unhealthy, sorted.
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub health_check_types: Vec<HealthCheckType>,

    /// Number of seconds for which failed health checks of a new instance are ignored.
    pub health_check_grace_period_seconds: i32,

    /// Processes that the controller keeps suspended, sorted.
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub suspended_processes: Vec<ScalingProcess>,

    /// Number of seconds between two activities of simple scaling.
    pub default_cooldown_seconds: i32,
}

impl EffectiveVolume {
    pub(super) fn of(volume: &ResolvedVolume) -> Self {
        let settings = &volume.settings;
        Self {
            device_name: volume.device_name.clone(),
            type_: settings.volume_type,
            encryption: match settings.encrypted {
                Some(true) => VolumeEncryption::Encrypted,
                _ => VolumeEncryption::AccountDefault,
            },
            on_termination: if settings.delete_on_termination {
                VolumeOnTermination::Delete
            } else {
                VolumeOnTermination::Retain
            },
        }
    }
}
