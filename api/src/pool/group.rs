//! `spec.group`: settings of the Auto Scaling group. All but its name change in place.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::values::string_enum;

string_enum! {
    /// The checks by which AWS determines that an instance is unhealthy. `EC2` always applies.
    pub enum HealthCheckType {
        /// EC2 status checks.
        Ec2 = "EC2",
        /// Health checks of attached load balancers and target groups.
        Elb = "ELB",
        /// Status checks of attached EBS volumes.
        Ebs = "EBS",
        /// Health checks of attached VPC Lattice target groups.
        VpcLattice = "VPC_LATTICE",
    }
}

string_enum! {
    /// The processes of an Auto Scaling group, as AWS names them.
    pub enum ScalingProcess {
        /// Launches instances.
        Launch = "Launch",
        /// Terminates instances.
        Terminate = "Terminate",
        /// Adds instances to load balancers.
        AddToLoadBalancer = "AddToLoadBalancer",
        /// Accepts notifications from alarms.
        AlarmNotification = "AlarmNotification",
        /// Balances the instances between the zones.
        AzRebalance = "AZRebalance",
        /// Checks the health of instances.
        HealthCheck = "HealthCheck",
        /// Replaces instances in an instance refresh.
        InstanceRefresh = "InstanceRefresh",
        /// Replaces unhealthy instances.
        ReplaceUnhealthy = "ReplaceUnhealthy",
        /// Performs scheduled actions.
        ScheduledActions = "ScheduledActions",
    }
}

/// Settings of the Auto Scaling group, with AWS's own fields. All but the name change in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Name of the Auto Scaling group. Defaults to a name that is derived from namespace, Cluster and pool. Immutable
    /// once the pool exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^[!-9;-~]+$"))]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("spec.group.name: cannot be changed; create another pool"))]
    pub name: Option<String>,

    /// Checks by which AWS determines that an instance is unhealthy: `EC2`, `ELB`, `EBS` or `VPC_LATTICE`. `EC2` always
    /// applies. Defaults to `EC2`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub health_check_types: Option<Vec<HealthCheckType>>,

    /// Number of seconds after a launch during which AWS ignores failed health checks of the instance. Defaults to 300.
    /// Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 7200))]
    pub health_check_grace_period_seconds: Option<i32>,

    /// Processes of the group that the controller keeps suspended: `Launch`, `Terminate`, `AddToLoadBalancer`,
    /// `AlarmNotification`, `AZRebalance`, `HealthCheck`, `InstanceRefresh`, `ReplaceUnhealthy` or `ScheduledActions`.
    /// Defaults to `AZRebalance` because it terminates instances that the controller did not choose. An empty list
    /// suspends none. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 9))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub suspended_processes: Option<Vec<ScalingProcess>>,

    /// Number of seconds that simple scaling policies wait between two scaling activities. Defaults to 300. Changes
    /// apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub default_cooldown_seconds: Option<i32>,

    /// Number of seconds after a new instance enters service until the group's metrics and instance refreshes include
    /// it. Defaults to none, as in AWS. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub default_instance_warmup_seconds: Option<i32>,
}
