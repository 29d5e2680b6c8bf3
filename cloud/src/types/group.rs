//! Auto Scaling groups: what a describe returns, and what create and update send.

use std::collections::{BTreeMap, BTreeSet};

use crate::Instance;

/// A group as `DescribeAutoScalingGroups` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The group's name.
    pub name: String,
    /// `AutoScalingGroupARN`: fixes account, region and name.
    pub arn: String,
    /// Bounds and desired capacity.
    pub capacity: Capacity,
    /// The settings that the provider manages.
    pub settings: GroupSettings,
    /// The zones in use.
    pub zones: BTreeSet<String>,
    /// Set only while the group is being deleted; any value counts (the text is not documented).
    pub status: Option<String>,
    /// Suspended processes with AWS's reason.
    pub suspended_processes: BTreeMap<String, String>,
    /// Tags by key.
    pub tags: BTreeMap<String, GroupTag>,
    /// Instances sorted by id, terminating ones included.
    pub instances: Vec<Instance>,
}

/// What AWS writes where a call suspended a process; anything else is AWS's own doing.
const SUSPENDED_BY_CALL: &str = "User suspended";

impl Group {
    /// The processes that AWS itself suspended, those in `desired` left out.
    #[must_use]
    pub fn suspended_by_aws(&self, desired: &BTreeSet<String>) -> BTreeSet<String> {
        let own =
            self.suspended_processes.iter().filter(|(_, reason)| !reason.starts_with(SUSPENDED_BY_CALL));
        own.map(|(name, _)| name).filter(|name| !desired.contains(*name)).cloned().collect()
    }

    /// Whether AWS launches an instance before it terminates the one that it replaces (Amazon EC2 Auto Scaling User Guide,
    /// "Capacity Rebalancing", "Instance maintenance policies" and "Rebalancing activities"): the group has more instances
    /// than its desired capacity meanwhile, and launches another if the new one is terminated.
    #[must_use]
    pub fn launches_before_terminating(&self) -> bool {
        self.settings.capacity_rebalance
            || self.settings.maintenance_policy.is_some_and(|policy| policy.max_healthy_percentage > 100)
            || !self.suspended_processes.contains_key("AZRebalance")
    }

    /// Whether the group is being deleted: AWS rejects every change then.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.status.is_some()
    }

    /// The account in the group's ARN.
    #[must_use]
    pub fn account(&self) -> Option<&str> {
        self.arn.split(':').nth(4)
    }
}

/// Bounds and desired capacity, in instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// `MinSize`.
    pub min: i32,
    /// `MaxSize`.
    pub max: i32,
    /// `DesiredCapacity`.
    pub desired: i32,
}

/// The members of create and update that the provider manages, bounds apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSettings {
    /// What the group launches.
    pub launch: Launch,
    /// `VPCZoneIdentifier`.
    pub subnets: BTreeSet<String>,
    /// `HealthCheckType`, as [`health_checks`] reads it: with `EC2`, which cannot be disabled.
    pub health_check_types: BTreeSet<String>,
    /// `HealthCheckGracePeriod`, in seconds.
    pub health_check_grace_period: i32,
    /// `DefaultCooldown`, in seconds.
    pub default_cooldown: i32,
    /// `DefaultInstanceWarmup`, in seconds; none is sent as -1 on update.
    pub default_instance_warmup: Option<i32>,
    /// `NewInstancesProtectedFromScaleIn`.
    pub protect_new_instances: bool,
    /// `CapacityRebalance`: AWS replaces Spot instances at risk, and launches before it terminates.
    pub capacity_rebalance: bool,
    /// `InstanceMaintenancePolicy`: with more than 100 %, AWS launches before it terminates.
    pub maintenance_policy: Option<MaintenancePolicy>,
    /// Whether AWS retains an instance whose termination hook is abandoned (`InstanceLifecyclePolicy` with the retention
    /// trigger `TerminateHookAbandon`).
    pub retains_abandoned: bool,
}

/// The percentages of an instance maintenance policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaintenancePolicy {
    /// `MinHealthyPercentage`, 0 to 100.
    pub min_healthy_percentage: i32,
    /// `MaxHealthyPercentage`, 100 to 200.
    pub max_healthy_percentage: i32,
}

impl MaintenancePolicy {
    /// What removes the policy of a group (`UpdateAutoScalingGroup`).
    pub const NONE: Self = Self { min_healthy_percentage: -1, max_healthy_percentage: -1 };
}

/// The check that every group has.
const EC2_CHECK: &str = "EC2";

/// The health checks of a `HealthCheckType`, `EC2` always among them: AWS may return it or leave it out, whatever was sent.
#[must_use]
pub fn health_checks(value: &str) -> BTreeSet<String> {
    let named = value.split(',').map(str::trim).filter(|check| !check.is_empty());
    named.chain([EC2_CHECK]).map(str::to_owned).collect()
}

/// The `HealthCheckType` to send: the checks besides `EC2`, or `EC2` alone, which is how an update removes the others.
#[must_use]
pub fn health_check_type(checks: &BTreeSet<String>) -> String {
    let others: Vec<&str> = checks.iter().map(String::as_str).filter(|check| *check != EC2_CHECK).collect();
    if others.is_empty() { EC2_CHECK.to_owned() } else { others.join(",") }
}

/// What a group launches: a template version, and types and purchase options where there is a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The pinned template version.
    pub template: TemplateRef,
    /// `MixedInstancesPolicy`; without it the template's own instance type is launched.
    pub mixed: Option<MixedInstances>,
}

/// A launch template and a version of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateRef {
    /// `LaunchTemplateId`.
    pub id: String,
    /// A number; `None` if the group names `$Latest`, `$Default` or nothing that the provider wrote.
    pub version: Option<i64>,
}

/// The part of a mixed instances policy that the provider manages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MixedInstances {
    /// `Overrides[].InstanceType`, in order of preference.
    pub instance_types: Vec<String>,
    /// The other members that overrides have, such as `LaunchTemplateSpecification` and `WeightedCapacity`. Writes send
    /// overrides without them, which removes them from the group.
    pub other_members: BTreeSet<String>,
    /// `InstancesDistribution`.
    pub distribution: InstancesDistribution,
}

impl MixedInstances {
    /// The same policy, as a write sends it.
    #[must_use]
    pub fn without_other_members(&self) -> Self {
        Self { other_members: BTreeSet::new(), ..self.clone() }
    }
}

/// `InstancesDistribution`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstancesDistribution {
    /// `OnDemandBaseCapacity`, in instances.
    pub on_demand_base_capacity: i32,
    /// `OnDemandPercentageAboveBaseCapacity`, 0 to 100.
    pub on_demand_percentage_above_base_capacity: i32,
    /// `OnDemandAllocationStrategy`.
    pub on_demand_allocation_strategy: String,
    /// `SpotAllocationStrategy`.
    pub spot_allocation_strategy: String,
    /// `SpotMaxPrice`, a decimal; none means the on-demand price (sent as the empty string on update).
    pub spot_max_price: Option<String>,
}

/// A tag of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupTag {
    /// The value.
    pub value: String,
    /// `PropagateAtLaunch`: concerns later launches only.
    pub propagate: bool,
}

/// What `CreateAutoScalingGroup` sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateGroup {
    /// The group's name.
    pub name: String,
    /// Bounds and desired capacity.
    pub capacity: Capacity,
    /// The settings.
    pub settings: GroupSettings,
    /// Tags by key.
    pub tags: BTreeMap<String, GroupTag>,
    /// Hooks that exist before the first launch (`LifecycleHookSpecificationList`).
    pub hooks: Vec<LifecycleHook>,
}

/// What `UpdateAutoScalingGroup` sends: only members that are `Some`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupChange {
    /// `LaunchTemplate` or `MixedInstancesPolicy`.
    pub launch: Option<Launch>,
    /// `VPCZoneIdentifier`.
    pub subnets: Option<BTreeSet<String>>,
    /// `HealthCheckType`, as in [`GroupSettings`].
    pub health_check_types: Option<BTreeSet<String>>,
    /// `HealthCheckGracePeriod`, in seconds.
    pub health_check_grace_period: Option<i32>,
    /// `DefaultCooldown`, in seconds.
    pub default_cooldown: Option<i32>,
    /// `DefaultInstanceWarmup`, in seconds; -1 clears it.
    pub default_instance_warmup: Option<i32>,
    /// `NewInstancesProtectedFromScaleIn`.
    pub protect_new_instances: Option<bool>,
    /// `CapacityRebalance`.
    pub capacity_rebalance: Option<bool>,
    /// `InstanceMaintenancePolicy`; [`MaintenancePolicy::NONE`] removes it.
    pub maintenance_policy: Option<MaintenancePolicy>,
    /// `InstanceLifecyclePolicy`, its retention trigger `TerminateHookAbandon`: `retain` or `terminate`.
    pub retains_abandoned: Option<bool>,
    /// `MinSize`.
    pub min: Option<i32>,
    /// `MaxSize`.
    pub max: Option<i32>,
    /// `DesiredCapacity`; always sent together with bounds while Cluster API owns replicas (`UpdateAutoScalingGroup`).
    pub desired: Option<i32>,
}

impl GroupChange {
    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A lifecycle hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifecycleHook {
    /// The hook's name.
    pub name: String,
    /// `LifecycleTransition`, for example `autoscaling:EC2_INSTANCE_TERMINATING`.
    pub transition: String,
    /// `HeartbeatTimeout`, 30 to 7200 seconds.
    pub heartbeat_timeout: i32,
    /// `DefaultResult`: `CONTINUE` or `ABANDON`.
    pub default_result: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_checks_are_the_same_with_and_without_ec2() {
        for answer in ["EC2,ELB", "ELB", "ELB, EC2", "ELB,"] {
            let read = health_checks(answer);
            assert_eq!(read, BTreeSet::from(["EC2".to_owned(), "ELB".to_owned()]), "{answer}");
            assert_eq!(health_check_type(&read), "ELB", "{answer}");
        }
        for answer in ["EC2", ""] {
            let read = health_checks(answer);
            assert_eq!(read, BTreeSet::from(["EC2".to_owned()]), "{answer}");
            assert_eq!(health_check_type(&read), "EC2", "{answer}");
        }
        assert_eq!(health_check_type(&BTreeSet::new()), "EC2");
    }
}
