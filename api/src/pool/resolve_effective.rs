//! Resolves the values that apply to a pool (`status.effective`) from its spec, its replicas and its owner.

use super::{
    ASGMachinePoolSpec, EffectiveDisruption, EffectiveGroup, EffectiveImage, EffectiveInstanceRefresh,
    EffectiveMachine, EffectiveRollingUpdate, EffectiveRollout, EffectiveSettings, EffectiveStrategy,
    EffectiveVolume, RolloutType,
};
use crate::capi::MachinePool;

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
            node_startup_timeout_seconds: self.node_startup_timeout_seconds(),
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
