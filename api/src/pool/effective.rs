//! `status.effective`: the values that apply, for each field of the spec that has a default.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{
    ASGMachinePoolSpec, AdoptionPolicy, ChangePolicy, DeletionPolicy, HealthCheckType, ImageUpdatePolicy,
    OnRefreshFailure, RebalanceRecommendationPolicy, RemediationPolicy, ResolvedDrain,
    ResolvedInstancesDistribution, ResolvedMetadataOptions, ResolvedVolume, RolloutMode, RolloutType,
    ScaleInOrder, ScalingProcess, StandbyInstances, VolumeEncryption, VolumeOnTermination, VolumeType,
    ZoneRebalancePolicy,
};
use crate::capi::MachinePool;

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

/// Reads what this version knows; `None` for what another version wrote with other members. The next status has it anew,
/// and a pool that cannot be read is never reconciled.
pub(super) fn known<'de, D>(deserializer: D) -> Result<Option<Box<EffectiveSettings>>, D::Error>
where
    D: Deserializer<'de>,
{
    let value = Option::<serde_json::Value>::deserialize(deserializer)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}

impl ASGMachinePoolSpec {
    /// The values that apply to a pool with this number of replicas and this owner.
    #[must_use]
    pub fn effective(&self, owner: Option<&MachinePool>, replicas: i32) -> EffectiveSettings {
        let limits = self.limits(owner);
        EffectiveSettings {
            min_size: limits.min,
            max_size: limits.max,
            scale_in_order: self.scale_in_order(),
            instances_distribution: self.is_mixed().then(|| self.instances_distribution()),
            machine: self.effective_machine(),
            rollout: self.effective_rollout(owner, replicas),
            disruption: EffectiveDisruption { max_disrupted: self.max_disrupted(replicas) },
            drain: self.drain(owner.and_then(MachinePool::node_drain_timeout_seconds)),
            rebalance_recommendation_policy: self.rebalance_recommendation_policy(),
            zone_rebalance_policy: self.zone_rebalance_policy(),
            group: EffectiveGroup {
                health_check_types: self.health_check_types().into_iter().collect(),
                health_check_grace_period_seconds: self.health_check_grace_period_seconds(),
                suspended_processes: self.suspended_processes().into_iter().collect(),
                default_cooldown_seconds: self.default_cooldown_seconds(),
            },
            remediation_policy: self.remediation_policy(),
            change_policy: self.change_policy(),
            adoption_policy: self.adoption_policy(),
            deletion_policy: self.deletion_policy(),
        }
    }

    fn effective_machine(&self) -> EffectiveMachine {
        let machine = &self.machine;
        EffectiveMachine {
            image: EffectiveImage { update_policy: machine.image.update_policy() },
            root_volume: EffectiveVolume::of(&machine.root_volume()),
            data_volumes: machine.data_volumes().iter().map(EffectiveVolume::of).collect(),
            metadata_options: machine.metadata_options(),
        }
    }

    fn effective_rollout(&self, owner: Option<&MachinePool>, replicas: i32) -> EffectiveRollout {
        let rollout = self.rollout(replicas);
        // Another actor that manages the replicas sets the desired capacity, which a surge would change.
        let is_external = owner.is_some_and(|owner| owner.replicas_managed_by().is_some());
        let rolling_update = if is_external {
            EffectiveRollingUpdate { max_surge: 0, max_unavailable: rollout.max_unavailable.max(1) }
        } else {
            EffectiveRollingUpdate { max_surge: rollout.max_surge, max_unavailable: rollout.max_unavailable }
        };
        let refresh = (rollout.type_ == RolloutType::InstanceRefresh).then(|| self.instance_refresh());
        let instance_refresh = refresh.map(|refresh| EffectiveInstanceRefresh {
            min_healthy_percentage: refresh.min_healthy_percentage,
            standby_instances: refresh.standby_instances,
            on_failure: refresh.on_failure,
        });
        EffectiveRollout {
            mode: rollout.mode,
            progress_deadline_seconds: rollout.progress_deadline.num_seconds(),
            strategy: EffectiveStrategy { type_: rollout.type_, rolling_update, instance_refresh },
        }
    }
}

impl EffectiveVolume {
    fn of(volume: &ResolvedVolume) -> Self {
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{ASGMachinePoolSpec, ASGMachinePoolStatus, capi::MachinePool};

    fn spec(rest: &Value) -> ASGMachinePoolSpec {
        let mut spec = json!({
            "region": "eu-west-1",
            "subnets": [],
            "instanceTypes": [{ "type": "m7i.large" }],
            "machine": { "image": { "id": "ami-1" }, "securityGroups": [] },
        });
        for (name, value) in rest.as_object().unwrap() {
            spec[name] = value.clone();
        }
        serde_json::from_value(spec).unwrap()
    }

    fn owner(annotations: &Value, deletion: &Value) -> MachinePool {
        let template =
            json!({ "spec": { "clusterName": "prod", "deletion": deletion, "infrastructureRef": {} } });
        serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "MachinePool",
            "metadata": { "name": "workers", "annotations": annotations },
            "spec": { "clusterName": "prod", "template": template },
        }))
        .unwrap()
    }

    fn at<'a>(effective: &'a Value, path: &str) -> &'a Value {
        path.split('.').fold(effective, |value, name| &value[name])
    }

    #[test]
    fn what_another_version_wrote_is_no_error() {
        let mut status = json!({"replicas": 3, "effective": spec(&json!({})).effective(None, 3)});
        let read = |status: &Value| serde_json::from_value::<ASGMachinePoolStatus>(status.clone()).unwrap();
        assert!(read(&status).effective.is_some());
        status["effective"]["changePolicy"] = json!("OfTheFuture");
        assert!(read(&status).effective.is_none() && read(&status).replicas == 3);
        status["effective"] = Value::Null;
        assert!(read(&status).effective.is_none());
    }

    #[test]
    fn percentages_are_numbers_for_the_replicas() {
        let spec = spec(&json!({
            "rollout": { "strategy": { "rollingUpdate": { "maxSurge": "34%", "maxUnavailable": "34%" } } },
            "disruption": { "maxDisrupted": "25%" },
        }));
        for (replicas, surge, unavailable, disrupted) in [(10, 4, 3, 2), (3, 2, 1, 1), (0, 0, 1, 1)] {
            let effective = serde_json::to_value(spec.effective(None, replicas)).unwrap();
            assert_eq!(*at(&effective, "rollout.strategy.rollingUpdate.maxSurge"), surge, "{replicas}");
            assert_eq!(*at(&effective, "rollout.strategy.rollingUpdate.maxUnavailable"), unavailable);
            assert_eq!(*at(&effective, "disruption.maxDisrupted"), disrupted, "{replicas}");
        }
    }

    #[test]
    fn what_the_machine_pool_sets_applies() {
        let spec = spec(&json!({ "minSize": 2 }));
        let annotations = json!({
            "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "1",
            "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "9",
            "cluster.x-k8s.io/replicas-managed-by": "autoscaler",
        });
        let owner = owner(&annotations, &json!({ "nodeDrainTimeoutSeconds": 900 }));
        let effective = serde_json::to_value(spec.effective(Some(&owner), 5)).unwrap();
        for (path, value) in [
            ("minSize", 2),
            ("maxSize", 9),
            ("drain.timeoutSeconds", 900),
            ("rollout.strategy.rollingUpdate.maxSurge", 0),
            ("rollout.strategy.rollingUpdate.maxUnavailable", 1),
        ] {
            assert_eq!(*at(&effective, path), value, "{path}");
        }
    }

    #[test]
    fn what_does_not_apply_is_absent() {
        let effective = serde_json::to_value(spec(&json!({})).effective(None, 5)).unwrap();
        for path in [
            "maxSize",
            "instancesDistribution",
            "disruption.maxDisrupted",
            "rollout.strategy.instanceRefresh",
        ] {
            assert_eq!(*at(&effective, path), Value::Null, "{path}");
        }
    }

    #[test]
    fn a_short_window_shortens_the_progress_deadline() {
        let windows = json!([{ "schedule": "0 2 * * *", "durationSeconds": 900 }]);
        let effective = spec(&json!({ "disruption": { "windows": windows } })).effective(None, 5);
        assert_eq!(effective.rollout.progress_deadline_seconds, 450);
    }
}
