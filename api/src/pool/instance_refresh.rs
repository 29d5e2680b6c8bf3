//! `spec.rollout.strategy.instanceRefresh`: how AWS itself replaces outdated instances.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::ASGMachinePoolSpec;
use crate::values::string_enum;

string_enum! {
    /// What an instance refresh does about instances in standby.
    pub enum StandbyInstances {
        /// They are ended.
        Terminate = "Terminate",
        /// They stay as they are.
        Ignore = "Ignore",
        /// They are waited for; after one hour the refresh fails.
        Wait = "Wait",
    }
}

string_enum! {
    /// What becomes of an instance refresh that fails.
    pub enum OnRefreshFailure {
        /// It ends where it is.
        Stop = "Stop",
        /// AWS takes back what it replaced.
        RollBack = "RollBack",
    }
}

/// Preferences of instance refreshes. They are sent when a refresh starts: a change concerns the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.maxHealthyPercentage) || self.maxHealthyPercentage - (has(self.minHealthyPercentage) ? self.minHealthyPercentage : 90) <= 100")
        .message("spec.rollout.strategy.instanceRefresh: maxHealthyPercentage must be at most 100 above minHealthyPercentage (90 if unset)")
        .field_path(".maxHealthyPercentage"),
    validation = Rule::new("!has(self.checkpointPercentages) || (self.checkpointPercentages.isSorted() && self.checkpointPercentages.all(one, self.checkpointPercentages.exists_one(other, other == one)))")
        .message("spec.rollout.strategy.instanceRefresh.checkpointPercentages: must ascend, each once")
        .field_path(".checkpointPercentages"),
    validation = Rule::new("!has(self.checkpointPercentages) || self.checkpointPercentages[size(self.checkpointPercentages) - 1] == 100")
        .message("spec.rollout.strategy.instanceRefresh.checkpointPercentages: the last must be 100, or some instances would never be replaced")
        .field_path(".checkpointPercentages"),
    validation = Rule::new("!has(self.checkpointDelaySeconds) || has(self.checkpointPercentages)")
        .message("spec.rollout.strategy.instanceRefresh.checkpointDelaySeconds: only with checkpointPercentages; add them or remove it")
        .field_path(".checkpointDelaySeconds")
)]
pub struct InstanceRefresh {
    /// How many percent of the replicas stay in service and healthy meanwhile, as far as AWS can replace any then;
    /// `spec.disruption.maxDisrupted` raises it. Default 90. Changed in place, for the next refresh; one under way that
    /// takes more away at once than `maxDisrupted` allows by now is cancelled, and another follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub min_healthy_percentage: Option<i32>,

    /// How many percent of the replicas may run at once. If it is set, also to 100, new instances are launched before
    /// others end where `minHealthyPercentage` leaves no room. Default: none, others end first. Changed in
    /// place, for the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 200))]
    pub max_healthy_percentage: Option<i32>,

    /// Seconds that AWS waits after a new instance is in service before it replaces more. Default: the group's
    /// (`spec.group.defaultInstanceWarmupSeconds`, else its health check grace period). Changed in place, for
    /// the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub instance_warmup_seconds: Option<i32>,

    /// Percentages of the instances after which AWS waits, ascending, the last 100. Default: no wait. Changed in place,
    /// for the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20), inner(range(min = 1, max = 100)))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub checkpoint_percentages: Option<Vec<i32>>,

    /// How long, in seconds, AWS waits at each checkpoint. Default 3600, as AWS does. Changed in place, for
    /// the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 172_800))]
    pub checkpoint_delay_seconds: Option<i32>,

    /// How long, in seconds, AWS waits at the end before it calls the refresh successful. Default 0. Changed in place,
    /// for the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 172_800))]
    pub bake_time_seconds: Option<i32>,

    /// Names of alarms of `CloudWatch`: one that goes into the state ALARM fails the refresh. Default: none. Changed in
    /// place, for the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10), inner(length(min = 1, max = 255)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub alarms: Option<Vec<String>>,

    /// What becomes of instances in standby: `Terminate`, `Ignore`, or `Wait` (the refresh fails after one hour). Default
    /// `Wait`. Changed in place, for the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby_instances: Option<StandbyInstances>,

    /// `Stop`: a refresh that fails ends where it is. `RollBack`: AWS replaces what it replaced once more, from what the
    /// group launched before; only with bootstrap data that does not rotate, else the condition `RollingOut` says that it
    /// is not available. Default `Stop`. Changed in place, for the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnRefreshFailure>,
}

/// [`InstanceRefresh`] with our own defaults filled in; those of AWS stay away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedInstanceRefresh {
    /// Percent of the replicas that stay in service.
    pub min_healthy_percentage: i32,
    /// Percent of the replicas that may run at once.
    pub max_healthy_percentage: Option<i32>,
    /// Seconds.
    pub instance_warmup_seconds: Option<i32>,
    /// Ascending percentages.
    pub checkpoint_percentages: Vec<i32>,
    /// Seconds; none without checkpoints.
    pub checkpoint_delay_seconds: Option<i32>,
    /// Seconds.
    pub bake_time_seconds: Option<i32>,
    /// Names of alarms.
    pub alarms: Vec<String>,
    /// What becomes of instances in standby.
    pub standby_instances: StandbyInstances,
    /// What becomes of a refresh that fails.
    pub on_failure: OnRefreshFailure,
}

impl Default for ResolvedInstanceRefresh {
    /// That of a spec that says nothing.
    fn default() -> Self {
        InstanceRefresh::default().resolved()
    }
}

impl InstanceRefresh {
    fn resolved(self) -> ResolvedInstanceRefresh {
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

impl ASGMachinePoolSpec {
    /// The preferences of instance refreshes with every default of ours filled in.
    #[must_use]
    pub fn instance_refresh(&self) -> ResolvedInstanceRefresh {
        let strategy = self.rollout.as_ref().and_then(|rollout| rollout.strategy.as_ref());
        strategy.and_then(|strategy| strategy.instance_refresh.clone()).unwrap_or_default().resolved()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let wanted = InstanceRefresh {
                checkpoint_percentages,
                checkpoint_delay_seconds: Some(5),
                ..InstanceRefresh::default()
            };
            wanted.resolved().checkpoint_delay_seconds
        };
        assert_eq!(of(Some(vec![50, 100])), Some(5));
        assert_eq!(of(None), None);
    }
}
