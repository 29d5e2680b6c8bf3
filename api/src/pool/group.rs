//! What is said of the Auto Scaling group itself; all but its name changes in place.

use std::collections::BTreeSet;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::ASGMachinePoolSpec;
use crate::values::string_enum;

string_enum! {
    /// What tells AWS that an instance is unhealthy. `EC2` always counts.
    pub enum HealthCheckType {
        /// The instance's own status checks.
        Ec2 = "EC2",
        /// The checks of attached load balancers and target groups.
        Elb = "ELB",
        /// The state of attached volumes.
        Ebs = "EBS",
        /// The checks of attached VPC Lattice target groups.
        VpcLattice = "VPC_LATTICE",
    }
}

string_enum! {
    /// What the group does by itself, as AWS names it.
    pub enum ScalingProcess {
        /// Launching instances.
        Launch = "Launch",
        /// Ending instances.
        Terminate = "Terminate",
        /// Adding instances to load balancers.
        AddToLoadBalancer = "AddToLoadBalancer",
        /// Reacting to alarms.
        AlarmNotification = "AlarmNotification",
        /// Moving instances between zones.
        AzRebalance = "AZRebalance",
        /// Checking instances.
        HealthCheck = "HealthCheck",
        /// Refreshing instances.
        InstanceRefresh = "InstanceRefresh",
        /// Replacing unhealthy instances.
        ReplaceUnhealthy = "ReplaceUnhealthy",
        /// Scheduled actions.
        ScheduledActions = "ScheduledActions",
    }
}

/// The Auto Scaling group itself, in AWS's own members. Its settings change in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The group's name in AWS. Default: derived from namespace, cluster and pool. Fixed once the pool exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^[!-9;-~]+$"))]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("spec.group.name: cannot be changed; create another pool"))]
    pub name: Option<String>,

    /// What tells AWS that an instance is unhealthy: `EC2` (always counts), `ELB`, `EBS`, `VPC_LATTICE`. Default
    /// `EC2`. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub health_check_types: Option<Vec<HealthCheckType>>,

    /// Seconds after launch in which failed health checks are ignored. Default 300. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 7200))]
    pub health_check_grace_period_seconds: Option<i32>,

    /// Processes of the group that are kept suspended: `Launch`, `Terminate`, `AddToLoadBalancer`, `AlarmNotification`,
    /// `AZRebalance`, `HealthCheck`, `InstanceRefresh`, `ReplaceUnhealthy`, `ScheduledActions`. Default
    /// `AZRebalance`, since it ends instances that nobody chose. An empty list suspends none. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 9))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub suspended_processes: Option<Vec<ScalingProcess>>,

    /// Seconds that simple scaling of others waits between two steps. Default 300. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub default_cooldown_seconds: Option<i32>,

    /// Seconds after which a new instance counts in the group's metrics and refreshes. Default: none, as AWS does.
    /// Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub default_instance_warmup_seconds: Option<i32>,
}

impl ASGMachinePoolSpec {
    /// The name that the user gave the group, if any.
    #[must_use]
    pub fn group_name(&self) -> Option<&str> {
        self.group.as_ref()?.name.as_deref()
    }

    /// What counts as unhealthy, EC2's own checks always among it.
    #[must_use]
    pub fn health_check_types(&self) -> BTreeSet<HealthCheckType> {
        let asked =
            self.group.as_ref().and_then(|group| group.health_check_types.as_deref()).unwrap_or_default();
        asked.iter().copied().chain([HealthCheckType::Ec2]).collect()
    }

    /// Seconds in which failed health checks of a new instance are ignored; 300 unless set.
    #[must_use]
    pub fn health_check_grace_period_seconds(&self) -> i32 {
        self.group.as_ref().and_then(|group| group.health_check_grace_period_seconds).unwrap_or(300)
    }

    /// The processes to keep suspended; `AZRebalance` unless the user gives a list, which may be empty.
    #[must_use]
    pub fn suspended_processes(&self) -> BTreeSet<ScalingProcess> {
        match self.group.as_ref().and_then(|group| group.suspended_processes.as_ref()) {
            Some(list) => list.iter().copied().collect(),
            None => BTreeSet::from([ScalingProcess::AzRebalance]),
        }
    }

    /// Seconds between two steps of simple scaling; 300 unless set.
    #[must_use]
    pub fn default_cooldown_seconds(&self) -> i32 {
        self.group.as_ref().and_then(|group| group.default_cooldown_seconds).unwrap_or(300)
    }

    /// Seconds until a new instance counts; `None` is AWS's own default, which is written as −1 to clear an old value.
    #[must_use]
    pub fn default_instance_warmup_seconds(&self) -> Option<i32> {
        self.group.as_ref()?.default_instance_warmup_seconds
    }
}
