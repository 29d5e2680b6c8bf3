//! `spec.rollout.strategy.instanceRefresh`: how AWS replaces outdated instances.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::values::string_enum;

string_enum! {
    /// What an instance refresh does with instances in standby.
    pub enum StandbyInstances {
        /// It terminates them.
        Terminate = "Terminate",
        /// It leaves them unchanged.
        Ignore = "Ignore",
        /// It waits for them, and fails after one hour.
        Wait = "Wait",
    }
}

string_enum! {
    /// What happens when an instance refresh fails.
    pub enum OnRefreshFailure {
        /// The refresh stops.
        Stop = "Stop",
        /// AWS rolls the refresh back.
        RollBack = "RollBack",
    }
}

/// Preferences of instance refreshes. They are sent when a refresh starts; a change applies to the next refresh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.maxHealthyPercentage) || self.maxHealthyPercentage - (has(self.minHealthyPercentage) ? self.minHealthyPercentage : 90) <= 100")
        .message("spec.rollout.strategy.instanceRefresh: maxHealthyPercentage must not exceed minHealthyPercentage (default 90) by more than 100")
        .field_path(".maxHealthyPercentage"),
    validation = Rule::new("!has(self.checkpointPercentages) || (self.checkpointPercentages.isSorted() && self.checkpointPercentages.all(one, self.checkpointPercentages.exists_one(other, other == one)))")
        .message("spec.rollout.strategy.instanceRefresh.checkpointPercentages: must be in ascending order without duplicates")
        .field_path(".checkpointPercentages"),
    validation = Rule::new("!has(self.checkpointPercentages) || self.checkpointPercentages[size(self.checkpointPercentages) - 1] == 100")
        .message("spec.rollout.strategy.instanceRefresh.checkpointPercentages: the last percentage must be 100, so that all instances are replaced")
        .field_path(".checkpointPercentages"),
    validation = Rule::new("!has(self.checkpointDelaySeconds) || has(self.checkpointPercentages)")
        .message("spec.rollout.strategy.instanceRefresh.checkpointDelaySeconds: requires checkpointPercentages; set them or remove it")
        .field_path(".checkpointDelaySeconds")
)]
pub struct InstanceRefresh {
    /// Minimum percentage of the replicas that AWS keeps in service and healthy during a refresh. AWS always replaces
    /// at least one instance at a time, even if fewer than this percentage remain. The controller sends a higher
    /// percentage if spec.disruption.maxDisrupted allows fewer disruptions. Defaults to 90. Changes apply in place, to
    /// the next refresh; the controller cancels a refresh in progress that disrupts more instances than maxDisrupted
    /// allows, and starts another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub min_healthy_percentage: Option<i32>,

    /// Maximum number of instances during a refresh, as a percentage of the replicas. If it is set, even to 100, AWS
    /// launches new instances before it terminates others whenever `minHealthyPercentage` does not allow a termination.
    /// Defaults to none: AWS terminates instances first. Changes apply in place, to the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 200))]
    pub max_healthy_percentage: Option<i32>,

    /// Number of seconds that AWS waits after a new instance is in service before it replaces more. Defaults to
    /// `spec.group.defaultInstanceWarmupSeconds`, or to the health check grace period if that is not set. Changes apply
    /// in place, to the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub instance_warmup_seconds: Option<i32>,

    /// Percentages of the instances at which AWS waits, in ascending order; the last one is 100. Defaults to none.
    /// Changes apply in place, to the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20), inner(range(min = 1, max = 100)))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub checkpoint_percentages: Option<Vec<i32>>,

    /// Number of seconds that AWS waits at each checkpoint. Defaults to 3600, as in AWS. Changes apply in place, to the
    /// next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 172_800))]
    pub checkpoint_delay_seconds: Option<i32>,

    /// Number of seconds that AWS waits at the end before the refresh is successful. Defaults to 0. Changes apply in
    /// place, to the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 172_800))]
    pub bake_time_seconds: Option<i32>,

    /// Names of `CloudWatch` alarms. The refresh fails if one of them enters the state ALARM. Defaults to none.
    /// Changes apply in place, to the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10), inner(length(min = 1, max = 255)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub alarms: Option<Vec<String>>,

    /// What the refresh does with instances in standby: `Terminate`, `Ignore`, or `Wait` (wait until they return to
    /// service; the refresh fails after one hour). Defaults to `Wait`. Changes apply in place, to the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby_instances: Option<StandbyInstances>,

    /// What happens when a refresh fails. `Stop` stops it. With `RollBack`, AWS rolls back to the previous
    /// configuration of the group and replaces the new instances. `RollBack` has no effect if the bootstrap data
    /// contains a bootstrap token, or if its provider is not kubeadm; the condition `RollingOut` then reports this.
    /// Defaults to `Stop`. Changes apply in place, to the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnRefreshFailure>,
}

/// [`InstanceRefresh`] with our own defaults filled in. Where AWS has a default, the field stays absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedInstanceRefresh {
    /// Percentage of the replicas that stay in service.
    pub min_healthy_percentage: i32,
    /// Maximum number of instances, as a percentage of the replicas.
    pub max_healthy_percentage: Option<i32>,
    /// Seconds.
    pub instance_warmup_seconds: Option<i32>,
    /// Percentages in ascending order.
    pub checkpoint_percentages: Vec<i32>,
    /// Seconds; `None` without checkpoints.
    pub checkpoint_delay_seconds: Option<i32>,
    /// Seconds.
    pub bake_time_seconds: Option<i32>,
    /// Names of alarms.
    pub alarms: Vec<String>,
    /// What the refresh does with instances in standby.
    pub standby_instances: StandbyInstances,
    /// What happens when the refresh fails.
    pub on_failure: OnRefreshFailure,
}

impl Default for ResolvedInstanceRefresh {
    /// The preferences of a spec that sets none.
    fn default() -> Self {
        InstanceRefresh::default().resolved()
    }
}

impl InstanceRefresh {
    pub(super) fn resolved(self) -> ResolvedInstanceRefresh {
        ResolvedInstanceRefresh {
            min_healthy_percentage: self.min_healthy_percentage.unwrap_or(90),
            max_healthy_percentage: self.max_healthy_percentage,
            instance_warmup_seconds: self.instance_warmup_seconds,
            checkpoint_delay_seconds: self
                .checkpoint_delay_seconds
                .filter(|_| self.checkpoint_percentages.is_some()),
            checkpoint_percentages: self.checkpoint_percentages.unwrap_or_default(),
            bake_time_seconds: self.bake_time_seconds,
            alarms: self.alarms.unwrap_or_default(),
            standby_instances: self.standby_instances.unwrap_or(StandbyInstances::Wait),
            on_failure: self.on_failure.unwrap_or(OnRefreshFailure::Stop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ASGMachinePoolSpec;

    #[test]
    fn a_spec_that_says_nothing_waits_for_standby_and_keeps_nine_of_ten() {
        let resolved = ASGMachinePoolSpec::default().instance_refresh();
        assert_eq!(resolved, ResolvedInstanceRefresh::default());
        assert_eq!(resolved.min_healthy_percentage, 90);
        assert_eq!(resolved.standby_instances, StandbyInstances::Wait);
        assert_eq!(resolved.on_failure, OnRefreshFailure::Stop);
        assert_eq!(resolved.max_healthy_percentage, None, "100 is another thing than none");
    }

    #[test]
    fn a_delay_goes_with_its_checkpoints_alone() {
        let of = |checkpoint_percentages| {
            let preferences = InstanceRefresh {
                checkpoint_percentages,
                checkpoint_delay_seconds: Some(5),
                ..InstanceRefresh::default()
            };
            preferences.resolved().checkpoint_delay_seconds
        };
        assert_eq!(of(Some(vec![50, 100])), Some(5));
        assert_eq!(of(None), None);
    }
}
