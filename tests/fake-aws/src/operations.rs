//! Every operation of the simulator: whether it changes anything, which parameters it knows, who carries it out.

use crate::{
    ApiError, Service, Tree,
    autoscaling::{
        activities, capacity, describe, ends, groups, health, hook_actions, hooks, processes, protection,
        refresh_calls, standby, tags,
    },
    ec2,
    iam::{self, Asked, Iam},
    region::{Region, View},
    service_quotas, sqs, ssm,
};

/// Who carries an operation out.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// Sees a view that may lag; changes nothing.
    Read(fn(&View<'_>, &Tree) -> Result<Tree, ApiError>),
    /// Changes the scope.
    Write(fn(&mut Region, &Tree) -> Result<Tree, ApiError>),
    /// Takes messages out of a queue: changes nothing else, and counts as no mutation of the cloud.
    Queue(fn(&mut Region, &Tree) -> Result<Tree, ApiError>),
    /// Asks who somebody is, or gives credentials: no scope's matter, and no mutation of the cloud.
    Identity(fn(&mut Iam, &Asked<'_>, &Tree) -> Result<Tree, ApiError>),
}

/// An operation that the simulator knows.
pub struct Operation {
    /// The API it belongs to.
    pub service: Service,
    /// Its name.
    pub action: &'static str,
    /// The parameters it knows, as paths into the request; what lies below a path is known too.
    /// A parameter of the service model that no path covers is refused, so that none is dropped silently.
    pub accepts: &'static [&'static str],
    pub(crate) handler: Handler,
}

impl Operation {
    /// Whether the operation changes something in the cloud.
    #[must_use]
    pub fn is_mutation(&self) -> bool {
        matches!(self.handler, Handler::Write(_))
    }
}

const fn read(
    service: Service,
    action: &'static str,
    accepts: &'static [&'static str],
    handler: fn(&View<'_>, &Tree) -> Result<Tree, ApiError>,
) -> Operation {
    Operation { service, action, accepts, handler: Handler::Read(handler) }
}

const fn write(
    service: Service,
    action: &'static str,
    accepts: &'static [&'static str],
    handler: fn(&mut Region, &Tree) -> Result<Tree, ApiError>,
) -> Operation {
    Operation { service, action, accepts, handler: Handler::Write(handler) }
}

const fn queue(
    action: &'static str,
    accepts: &'static [&'static str],
    handler: fn(&mut Region, &Tree) -> Result<Tree, ApiError>,
) -> Operation {
    Operation { service: Service::Sqs, action, accepts, handler: Handler::Queue(handler) }
}

const fn identity(
    action: &'static str,
    accepts: &'static [&'static str],
    handler: fn(&mut Iam, &Asked<'_>, &Tree) -> Result<Tree, ApiError>,
) -> Operation {
    Operation { service: Service::Sts, action, accepts, handler: Handler::Identity(handler) }
}

use Service::{AutoScaling, Ec2, ServiceQuotas, Ssm};

static OPERATIONS: &[Operation] = &[
    write(
        AutoScaling,
        "CreateAutoScalingGroup",
        &[
            "AutoScalingGroupName",
            "AvailabilityZoneDistribution",
            "CapacityRebalance",
            "CapacityReservationSpecification",
            "Context",
            "DefaultCooldown",
            "DefaultInstanceWarmup",
            "DeletionProtection",
            "DesiredCapacity",
            "DesiredCapacityType",
            "HealthCheckGracePeriod",
            "HealthCheckType",
            "InstanceLifecyclePolicy",
            "InstanceMaintenancePolicy",
            "LaunchTemplate",
            "LifecycleHookSpecificationList",
            "MaxInstanceLifetime",
            "MaxSize",
            "MinSize",
            "MixedInstancesPolicy.InstancesDistribution",
            "MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification",
            "MixedInstancesPolicy.LaunchTemplate.Overrides.InstanceType",
            "MixedInstancesPolicy.LaunchTemplate.Overrides.LaunchTemplateSpecification",
            "MixedInstancesPolicy.LaunchTemplate.Overrides.WeightedCapacity",
            "NewInstancesProtectedFromScaleIn",
            "PlacementGroup",
            "Tags",
            "TerminationPolicies",
            "VPCZoneIdentifier",
        ],
        groups::create,
    ),
    write(
        AutoScaling,
        "UpdateAutoScalingGroup",
        &[
            "AutoScalingGroupName",
            "AvailabilityZoneDistribution",
            "CapacityRebalance",
            "CapacityReservationSpecification",
            "Context",
            "DefaultCooldown",
            "DefaultInstanceWarmup",
            "DeletionProtection",
            "DesiredCapacity",
            "DesiredCapacityType",
            "HealthCheckGracePeriod",
            "HealthCheckType",
            "InstanceLifecyclePolicy",
            "InstanceMaintenancePolicy",
            "LaunchTemplate",
            "MaxInstanceLifetime",
            "MaxSize",
            "MinSize",
            "MixedInstancesPolicy.InstancesDistribution",
            "MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification",
            "MixedInstancesPolicy.LaunchTemplate.Overrides.InstanceType",
            "MixedInstancesPolicy.LaunchTemplate.Overrides.LaunchTemplateSpecification",
            "MixedInstancesPolicy.LaunchTemplate.Overrides.WeightedCapacity",
            "NewInstancesProtectedFromScaleIn",
            "PlacementGroup",
            "TerminationPolicies",
            "VPCZoneIdentifier",
        ],
        groups::update,
    ),
    write(AutoScaling, "DeleteAutoScalingGroup", &["AutoScalingGroupName", "ForceDelete"], groups::delete),
    read(
        AutoScaling,
        "DescribeAutoScalingGroups",
        &["AutoScalingGroupNames", "Filters", "IncludeInstances", "MaxRecords", "NextToken"],
        describe::groups,
    ),
    read(
        AutoScaling,
        "DescribeAutoScalingInstances",
        &["InstanceIds", "MaxRecords", "NextToken"],
        describe::instances,
    ),
    read(
        AutoScaling,
        "DescribeInstanceRefreshes",
        &["AutoScalingGroupName", "InstanceRefreshIds", "MaxRecords", "NextToken"],
        refresh_calls::describe,
    ),
    write(
        AutoScaling,
        "StartInstanceRefresh",
        &[
            "AutoScalingGroupName",
            "DesiredConfiguration.LaunchTemplate",
            "DesiredConfiguration.MixedInstancesPolicy.InstancesDistribution",
            "DesiredConfiguration.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification",
            "DesiredConfiguration.MixedInstancesPolicy.LaunchTemplate.Overrides.InstanceType",
            "DesiredConfiguration.MixedInstancesPolicy.LaunchTemplate.Overrides.LaunchTemplateSpecification",
            "Preferences",
            "Strategy",
        ],
        refresh_calls::start,
    ),
    write(
        AutoScaling,
        "CancelInstanceRefresh",
        &["AutoScalingGroupName", "WaitForTransitioningInstances"],
        refresh_calls::cancel,
    ),
    write(AutoScaling, "RollbackInstanceRefresh", &["AutoScalingGroupName"], refresh_calls::rollback),
    read(
        AutoScaling,
        "DescribeScalingActivities",
        &["ActivityIds", "AutoScalingGroupName", "MaxRecords", "NextToken"],
        activities::describe,
    ),
    write(
        AutoScaling,
        "SetDesiredCapacity",
        &["AutoScalingGroupName", "DesiredCapacity", "HonorCooldown"],
        capacity::set_desired,
    ),
    write(
        AutoScaling,
        "TerminateInstanceInAutoScalingGroup",
        &["AutoScalingGroupName", "InstanceId", "InstanceIds", "ShouldDecrementDesiredCapacity"],
        ends::terminate,
    ),
    write(AutoScaling, "CreateOrUpdateTags", &["Tags"], tags::put),
    write(AutoScaling, "DeleteTags", &["Tags"], tags::delete),
    read(AutoScaling, "DescribeTags", &["Filters", "MaxRecords", "NextToken"], tags::describe),
    write(
        AutoScaling,
        "SetInstanceProtection",
        &["AutoScalingGroupName", "InstanceIds", "ProtectedFromScaleIn"],
        protection::set,
    ),
    write(
        AutoScaling,
        "SetInstanceHealth",
        &["HealthStatus", "InstanceId", "ShouldRespectGracePeriod"],
        health::set,
    ),
    write(AutoScaling, "SuspendProcesses", &["AutoScalingGroupName", "ScalingProcesses"], processes::suspend),
    write(AutoScaling, "ResumeProcesses", &["AutoScalingGroupName", "ScalingProcesses"], processes::resume),
    write(
        AutoScaling,
        "PutLifecycleHook",
        &[
            "AutoScalingGroupName",
            "DefaultResult",
            "HeartbeatTimeout",
            "LifecycleHookName",
            "LifecycleTransition",
            "NotificationMetadata",
            "NotificationTargetARN",
            "RoleARN",
        ],
        hooks::put,
    ),
    read(
        AutoScaling,
        "DescribeLifecycleHooks",
        &["AutoScalingGroupName", "LifecycleHookNames"],
        hooks::describe,
    ),
    write(
        AutoScaling,
        "DeleteLifecycleHook",
        &["AutoScalingGroupName", "LifecycleHookName"],
        hook_actions::delete,
    ),
    write(
        AutoScaling,
        "CompleteLifecycleAction",
        &[
            "AutoScalingGroupName",
            "InstanceId",
            "LifecycleActionResult",
            "LifecycleActionToken",
            "LifecycleHookName",
        ],
        hook_actions::complete,
    ),
    write(
        AutoScaling,
        "RecordLifecycleActionHeartbeat",
        &["AutoScalingGroupName", "InstanceId", "LifecycleActionToken", "LifecycleHookName"],
        hook_actions::heartbeat,
    ),
    write(AutoScaling, "AttachInstances", &["AutoScalingGroupName", "InstanceIds"], standby::attach),
    write(
        AutoScaling,
        "DetachInstances",
        &["AutoScalingGroupName", "InstanceIds", "ShouldDecrementDesiredCapacity"],
        standby::detach,
    ),
    write(
        AutoScaling,
        "EnterStandby",
        &["AutoScalingGroupName", "InstanceIds", "ShouldDecrementDesiredCapacity"],
        standby::enter,
    ),
    write(AutoScaling, "ExitStandby", &["AutoScalingGroupName", "InstanceIds"], standby::exit),
    write(
        Ec2,
        "CreateLaunchTemplate",
        &[
            "ClientToken",
            "DryRun",
            "LaunchTemplateData",
            "LaunchTemplateName",
            "TagSpecifications",
            "VersionDescription",
        ],
        ec2::templates::create,
    ),
    write(
        Ec2,
        "CreateLaunchTemplateVersion",
        &[
            "ClientToken",
            "DryRun",
            "LaunchTemplateData",
            "LaunchTemplateId",
            "LaunchTemplateName",
            "SourceVersion",
            "VersionDescription",
        ],
        ec2::create_version,
    ),
    write(
        Ec2,
        "ModifyLaunchTemplate",
        &["ClientToken", "DefaultVersion", "DryRun", "LaunchTemplateId", "LaunchTemplateName"],
        ec2::templates::modify,
    ),
    write(
        Ec2,
        "DeleteLaunchTemplate",
        &["DryRun", "LaunchTemplateId", "LaunchTemplateName"],
        ec2::templates::delete,
    ),
    write(
        Ec2,
        "DeleteLaunchTemplateVersions",
        &["DryRun", "LaunchTemplateId", "LaunchTemplateName", "Versions"],
        ec2::delete_versions,
    ),
    read(
        Ec2,
        "DescribeLaunchTemplates",
        &["DryRun", "Filters", "LaunchTemplateIds", "LaunchTemplateNames", "MaxResults", "NextToken"],
        ec2::templates::describe,
    ),
    read(
        Ec2,
        "DescribeLaunchTemplateVersions",
        &[
            "DryRun",
            "LaunchTemplateId",
            "LaunchTemplateName",
            "MaxResults",
            "MaxVersion",
            "MinVersion",
            "NextToken",
            "ResolveAlias",
            "Versions",
        ],
        ec2::describe_versions,
    ),
    read(
        Ec2,
        "DescribeInstances",
        &["DryRun", "Filters", "InstanceIds", "MaxResults", "NextToken"],
        ec2::instances::describe,
    ),
    read(
        Ec2,
        "DescribeInstanceStatus",
        &["DryRun", "Filters", "IncludeAllInstances", "InstanceIds", "MaxResults", "NextToken"],
        ec2::describe_status,
    ),
    read(Ec2, "GetConsoleOutput", &["DryRun", "InstanceId", "Latest"], ec2::console::output),
    read(Ec2, "DescribeInstanceAttribute", &["Attribute", "DryRun", "InstanceId"], ec2::console::attribute),
    write(Ec2, "TerminateInstances", &["DryRun", "InstanceIds"], ec2::instances::terminate),
    write(Ec2, "CreateTags", &["DryRun", "Resources", "Tags"], ec2::tags::create),
    write(Ec2, "DeleteTags", &["DryRun", "Resources", "Tags"], ec2::tags::delete),
    read(Ec2, "DescribeVpcs", &["DryRun", "Filters", "MaxResults", "NextToken", "VpcIds"], ec2::vpcs),
    read(
        Ec2,
        "DescribeSubnets",
        &["DryRun", "Filters", "MaxResults", "NextToken", "SubnetIds"],
        ec2::subnets,
    ),
    read(
        Ec2,
        "DescribeSecurityGroups",
        &["DryRun", "Filters", "GroupIds", "GroupNames", "MaxResults", "NextToken"],
        ec2::security_groups,
    ),
    read(
        Ec2,
        "DescribeSecurityGroupVpcAssociations",
        &["DryRun", "Filters", "MaxResults", "NextToken"],
        ec2::security_group_vpc_associations,
    ),
    read(
        Ec2,
        "DescribeImages",
        &["DryRun", "Filters", "ImageIds", "IncludeDeprecated", "MaxResults", "NextToken"],
        ec2::images,
    ),
    read(
        Ec2,
        "DescribeSnapshots",
        &["DryRun", "Filters", "MaxResults", "NextToken", "SnapshotIds"],
        ec2::snapshots,
    ),
    read(
        Ec2,
        "DescribeInstanceTypes",
        &["DryRun", "Filters", "InstanceTypes", "MaxResults", "NextToken"],
        ec2::instance_types,
    ),
    read(
        Ec2,
        "DescribeInstanceTypeOfferings",
        &["DryRun", "Filters", "LocationType", "MaxResults", "NextToken"],
        ec2::instance_type_offerings,
    ),
    queue("DeleteMessage", &["QueueUrl", "ReceiptHandle"], sqs::delete),
    queue("DeleteMessageBatch", &["Entries", "QueueUrl"], sqs::delete_batch),
    queue("GetQueueAttributes", &["AttributeNames", "QueueUrl"], sqs::attributes),
    queue("GetQueueUrl", &["QueueName"], sqs::url),
    queue(
        "ReceiveMessage",
        &[
            "MaxNumberOfMessages",
            "MessageSystemAttributeNames",
            "QueueUrl",
            "VisibilityTimeout",
            "WaitTimeSeconds",
        ],
        sqs::receive,
    ),
    queue("SendMessage", &["MessageBody", "QueueUrl"], sqs::send),
    read(ServiceQuotas, "GetServiceQuota", &["QuotaCode", "ServiceCode"], service_quotas::get),
    read(Ssm, "GetParameter", &["Name", "WithDecryption"], ssm::get_parameter),
    read(Ssm, "GetParameters", &["Names", "WithDecryption"], ssm::get_parameters),
    identity(
        "AssumeRole",
        &[
            "DurationSeconds",
            "ExternalId",
            "Policy",
            "RoleArn",
            "RoleSessionName",
            "Tags",
            "TransitiveTagKeys",
        ],
        iam::assume_role,
    ),
    identity(
        "AssumeRoleWithWebIdentity",
        &["DurationSeconds", "Policy", "RoleArn", "RoleSessionName", "WebIdentityToken"],
        iam::with_web_identity,
    ),
    identity("GetCallerIdentity", &[], iam::caller_identity),
];

/// Every operation, for tests that compare them with the service model.
#[must_use]
pub fn operations() -> &'static [Operation] {
    OPERATIONS
}

/// The operation of that name.
pub(crate) fn find(service: Service, action: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.service == service && operation.action == action)
}

/// Refuses parameters that AWS has and the simulator does not know.
pub(crate) fn check_known(operation: &Operation, params: &Tree) -> Result<(), ApiError> {
    known(operation, params, "")
}

fn known(operation: &Operation, tree: &Tree, path: &str) -> Result<(), ApiError> {
    match tree {
        Tree::List(items) => items.iter().try_for_each(|item| known(operation, item, path)),
        Tree::Map(members) => members.iter().try_for_each(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if operation.accepts.contains(&path.as_str()) {
                return Ok(());
            }
            let below = format!("{path}.");
            if operation.accepts.iter().any(|accepted| accepted.starts_with(&below)) {
                return known(operation, value, &path);
            }
            Err(ApiError::unsupported(&format!("parameter {path} of {}", operation.action)))
        }),
        Tree::Text(_) => Ok(()),
    }
}
