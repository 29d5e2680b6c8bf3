//! Settings of a spec with every default filled in.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::changes::{AdoptionPolicy, ChangePolicy};
use super::group::{HealthCheckType, ScalingProcess};
use super::instance_refresh::ResolvedInstanceRefresh;
use super::lifecycle::{
    DeletionPolicy, OnCloudTermination, OnPoolDeletion, RebalanceRecommendationPolicy, ResolvedDrain,
    ZoneRebalancePolicy,
};
use super::opening::ResolvedDisruption;
use super::rollout::{
    PROGRESS_DEADLINE_SECONDS, RemediationPolicy, ResolvedRollout, RolloutMode, RolloutType, Rounding, count,
    instant,
};
use super::spec::ASGMachinePoolSpec;
use super::window::Window;

/// `spec.nodeStartupTimeoutSeconds` unless set, as in Cluster API's MachineHealthCheck.
const NODE_STARTUP_TIMEOUT_SECONDS: i32 = 600;

impl ASGMachinePoolSpec {
    /// Whether changes are made or only reported; `Apply` unless set.
    #[must_use]
    pub fn change_policy(&self) -> ChangePolicy {
        self.change_policy.unwrap_or(ChangePolicy::Apply)
    }

    /// Whether the pool adopts a group that it did not create; `Ignore` unless set.
    #[must_use]
    pub fn adoption_policy(&self) -> AdoptionPolicy {
        self.adoption_policy.unwrap_or(AdoptionPolicy::Ignore)
    }

    /// When, and how many at once, instances of a pool with this number of replicas may be disrupted.
    #[must_use]
    pub fn disruption(&self, replicas: i32) -> ResolvedDisruption {
        let Some(disruption) = &self.disruption else { return ResolvedDisruption::default() };
        let mut resolved = ResolvedDisruption {
            max_disrupted: self.max_disrupted(replicas),
            ..ResolvedDisruption::default()
        };
        for (index, window) in disruption.windows.iter().enumerate() {
            match Window::new(window) {
                Ok(read) => resolved
                    .windows
                    .push((read, window.max_disrupted.as_ref().map(|most| at_least_one(most, replicas)))),
                Err(error) => resolved.invalid_windows.push((index, error)),
            }
        }
        resolved
    }

    /// How many instances of a pool with this number of replicas may be disrupted at once; `None` is no limit.
    pub(super) fn max_disrupted(&self, replicas: i32) -> Option<i32> {
        let most = self.disruption.as_ref()?.max_disrupted.as_ref()?;
        Some(at_least_one(most, replicas))
    }

    /// The name of the group that the spec sets, if any.
    #[must_use]
    pub fn group_name(&self) -> Option<&str> {
        self.group.as_ref()?.name.as_deref()
    }

    /// The health checks that apply, `EC2` included.
    #[must_use]
    pub fn health_check_types(&self) -> BTreeSet<HealthCheckType> {
        let set =
            self.group.as_ref().and_then(|group| group.health_check_types.as_deref()).unwrap_or_default();
        set.iter().copied().chain([HealthCheckType::Ec2]).collect()
    }

    /// Seconds during which failed health checks of a new instance are ignored; 300 unless set.
    #[must_use]
    pub fn health_check_grace_period_seconds(&self) -> i32 {
        self.group.as_ref().and_then(|group| group.health_check_grace_period_seconds).unwrap_or(300)
    }

    /// The processes to keep suspended; `AZRebalance` unless the spec has a list, which may be empty.
    #[must_use]
    pub fn suspended_processes(&self) -> BTreeSet<ScalingProcess> {
        match self.group.as_ref().and_then(|group| group.suspended_processes.as_ref()) {
            Some(list) => list.iter().copied().collect(),
            None => BTreeSet::from([ScalingProcess::AzRebalance]),
        }
    }

    /// Seconds between two activities of simple scaling; 300 unless set.
    #[must_use]
    pub fn default_cooldown_seconds(&self) -> i32 {
        self.group.as_ref().and_then(|group| group.default_cooldown_seconds).unwrap_or(300)
    }

    /// Seconds until a new instance counts; `None` is AWS's default, which is written as −1 to clear a previous value.
    #[must_use]
    pub fn default_instance_warmup_seconds(&self) -> Option<i32> {
        self.group.as_ref()?.default_instance_warmup_seconds
    }

    /// The preferences of instance refreshes, with every default of ours filled in.
    #[must_use]
    pub fn instance_refresh(&self) -> ResolvedInstanceRefresh {
        let strategy = self.rollout.as_ref().and_then(|rollout| rollout.strategy.as_ref());
        strategy.and_then(|strategy| strategy.instance_refresh.clone()).unwrap_or_default().resolved()
    }

    /// How nodes are drained, with every default filled in.
    ///
    /// `core` is `nodeDrainTimeoutSeconds` of the owner `MachinePool`, whose 0 is no limit; the shorter limit applies.
    #[must_use]
    pub fn drain(&self, core: Option<i32>) -> ResolvedDrain {
        let drain = self.drain.clone().unwrap_or_default();
        let own = drain.timeout_seconds.unwrap_or(3600);
        ResolvedDrain {
            on_cloud_termination: drain.on_cloud_termination.unwrap_or(OnCloudTermination::Drain),
            on_pool_deletion: drain.on_pool_deletion.unwrap_or(OnPoolDeletion::Drain),
            timeout_seconds: core.filter(|seconds| *seconds > 0).map_or(own, |seconds| seconds.min(own)),
        }
    }

    /// What happens to a Spot instance that EC2 recommends replacing; `Ignore` unless set.
    #[must_use]
    pub fn rebalance_recommendation_policy(&self) -> RebalanceRecommendationPolicy {
        self.rebalance_recommendation_policy.unwrap_or(RebalanceRecommendationPolicy::Ignore)
    }

    /// How long an instance in service may have no ready node, in seconds; 600 unless set, and 0 for no limit.
    #[must_use]
    pub fn node_startup_timeout_seconds(&self) -> i32 {
        self.node_startup_timeout_seconds.unwrap_or(NODE_STARTUP_TIMEOUT_SECONDS)
    }

    /// What happens while zones are out of balance; `Ignore` unless set.
    #[must_use]
    pub fn zone_rebalance_policy(&self) -> ZoneRebalancePolicy {
        self.zone_rebalance_policy.unwrap_or(ZoneRebalancePolicy::Ignore)
    }

    /// What happens to the resources in AWS when the pool is deleted; `Delete` unless set.
    #[must_use]
    pub fn deletion_policy(&self) -> DeletionPolicy {
        self.deletion_policy.unwrap_or(DeletionPolicy::Delete)
    }

    /// How outdated instances of a pool with this number of replicas are replaced, with every default filled in.
    ///
    /// Percentages refer to the replicas; the surge is rounded up and the unavailable replicas are rounded down. If
    /// both are 0, one replica may be unavailable, as in a Deployment.
    #[must_use]
    pub fn rollout(&self, replicas: i32) -> ResolvedRollout {
        let rollout = self.rollout.clone().unwrap_or_default();
        let strategy = rollout.strategy.unwrap_or_default();
        let budget = strategy.rolling_update.unwrap_or_default();
        let max_surge = budget.max_surge.map_or(1, |surge| count(&surge, replicas, Rounding::Up));
        let max_unavailable = budget.max_unavailable.map_or(0, |some| count(&some, replicas, Rounding::Down));
        let seconds = |seconds: i32| TimeDelta::seconds(i64::from(seconds));
        let rollout = ResolvedRollout {
            type_: strategy.type_.unwrap_or(RolloutType::RollingUpdate),
            max_surge,
            max_unavailable,
            mode: rollout.mode.unwrap_or(RolloutMode::Automatic),
            after: rollout.after.as_deref().and_then(instant),
            max_instance_lifetime: rollout.max_instance_lifetime_seconds.map(seconds),
            progress_deadline: self.progress_deadline(rollout.progress_deadline_seconds),
        };
        rollout.with_surge_up_to(max_surge)
    }

    /// At most half of the shortest window, so that a rollout that fails in each window exceeds its deadline too.
    fn progress_deadline(&self, seconds: Option<i32>) -> TimeDelta {
        let windows = self.disruption.iter().flat_map(|disruption| &disruption.windows);
        let shortest = windows.map(|window| window.duration_seconds / 2).min();
        let seconds = seconds.unwrap_or(PROGRESS_DEADLINE_SECONDS);
        TimeDelta::seconds(i64::from(shortest.map_or(seconds, |limit| limit.min(seconds))))
    }

    /// What happens to a Machine that a `MachineHealthCheck` reports as unhealthy; `Replace` unless set (D15).
    #[must_use]
    pub fn remediation_policy(&self) -> RemediationPolicy {
        self.remediation_policy.unwrap_or(RemediationPolicy::Replace)
    }
}

/// A limit on disruptions: rounded down to at least 1, so that a percentage of few replicas blocks nothing for ever.
fn at_least_one(most: &IntOrString, replicas: i32) -> i32 {
    count(most, replicas, Rounding::Down).max(1)
}
