//! The policies of the manager and of the Runtime Extension, statement by statement.

use std::collections::BTreeSet;

use capasg_api::names::tags;
use serde_json::{Map, Value, json};

use super::usage::{Usage, Used};

/// The API calls that change a group of a pool.
const GROUP_ACTIONS: [&str; 16] = [
    "autoscaling:CancelInstanceRefresh",
    "autoscaling:CompleteLifecycleAction",
    "autoscaling:CreateOrUpdateTags",
    "autoscaling:DeleteAutoScalingGroup",
    "autoscaling:DeleteLifecycleHook",
    "autoscaling:DeleteTags",
    "autoscaling:PutLifecycleHook",
    "autoscaling:RecordLifecycleActionHeartbeat",
    "autoscaling:ResumeProcesses",
    "autoscaling:RollbackInstanceRefresh",
    "autoscaling:SetDesiredCapacity",
    "autoscaling:SetInstanceProtection",
    "autoscaling:StartInstanceRefresh",
    "autoscaling:SuspendProcesses",
    "autoscaling:TerminateInstanceInAutoScalingGroup",
    "autoscaling:UpdateAutoScalingGroup",
];

/// A name or an ARN of a group, whatever its id.
const GROUPS: &str = "autoScalingGroup:*:autoScalingGroupName/*";

/// The policy of the manager.
#[must_use]
pub fn manager(usage: &Usage) -> Value {
    let mut statements = vec![read(
        usage,
        &[
            "autoscaling:DescribeAutoScalingGroups",
            "autoscaling:DescribeInstanceRefreshes",
            "autoscaling:DescribeLifecycleHooks",
            "autoscaling:DescribeScalingActivities",
            "ec2:DescribeImages",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstances",
            "ec2:DescribeLaunchTemplateVersions",
            "ec2:DescribeLaunchTemplates",
            "ec2:DescribeSecurityGroupVpcAssociations",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSnapshots",
            "ec2:DescribeSubnets",
        ],
    )];
    statements.extend(take_events(usage));
    statements.extend(read_parameters(usage));
    statements.extend(groups(usage));
    statements.extend(launch_templates(usage));
    statements.extend(launches(usage));
    statements.extend(pass_roles(usage));
    statements.push(first_use(usage));
    statements.extend(assume_roles(usage));
    policy(&statements)
}

/// The policy of the Runtime Extension.
#[must_use]
pub fn extension(usage: &Usage) -> Value {
    let mut statements = vec![read(
        usage,
        &[
            "ec2:DescribeImages",
            "ec2:DescribeInstanceTypeOfferings",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstances",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "servicequotas:GetServiceQuota",
        ],
    )];
    statements.extend(read_parameters(usage));
    statements.extend(assume_roles(usage));
    policy(&statements)
}

fn policy(statements: &[Value]) -> Value {
    json!({ "Version": "2012-10-17", "Statement": statements })
}

fn allow(sid: &str, actions: &[&str], resources: &[String], condition: Condition) -> Value {
    let mut statement =
        json!({ "Sid": sid, "Effect": "Allow", "Action": actions, "Resource": one_or_all(resources) });
    if !condition.0.is_empty() {
        statement["Condition"] = Value::Object(condition.0);
    }
    statement
}

/// A list of one is printed as its element.
fn one_or_all(values: &[String]) -> Value {
    match values {
        [one] => json!(one),
        all => json!(all),
    }
}

/// The conditions of a statement.
#[derive(Default)]
struct Condition(Map<String, Value>);

impl Condition {
    /// What every statement on regional resources requires.
    fn regional(usage: &Usage) -> Self {
        Self::default().with_regions(usage.several_regions())
    }

    fn with_regions(self, regions: Option<&BTreeSet<String>>) -> Self {
        let Some(regions) = regions else { return self };
        let regions: Vec<String> = regions.iter().cloned().collect();
        self.with("StringEquals", "aws:RequestedRegion", one_or_all(&regions))
    }

    fn with(mut self, operator: &str, key: &str, value: Value) -> Self {
        let keys = self.0.entry(operator).or_insert_with(|| json!({}));
        keys[key] = value;
        self
    }

    /// The tags of a pool in the request (`aws:RequestTag`) or at the resource (`aws:ResourceTag`).
    fn with_tags(self, usage: &Usage, at: &str) -> Self {
        let own = self.with("Null", &format!("{at}/{}", tags::OWNER_ID), json!("false"));
        if usage.namespaces.is_empty() {
            return own;
        }
        let namespaces: Vec<String> = usage.namespaces.iter().cloned().collect();
        own.with("StringEquals", &format!("{at}/{}", tags::NAMESPACE), one_or_all(&namespaces))
    }
}

/// AWS does not support resource-level permissions for these.
fn read(usage: &Usage, actions: &[&str]) -> Value {
    let regions = (!usage.regions.is_empty()).then_some(&usage.regions);
    allow("Read", actions, &["*".to_owned()], Condition::default().with_regions(regions))
}

fn take_events(usage: &Usage) -> Option<Value> {
    let arns: Vec<String> = match &usage.queues {
        Used::Any => vec![usage.arn("sqs", "capasg*")],
        Used::Only(queues) => queues.iter().filter_map(|queue| queue_arn(usage, queue)).collect(),
    };
    let actions = ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"];
    (!arns.is_empty()).then(|| allow("TakeEvents", &actions, &arns, Condition::regional(usage)))
}

/// The ARN of a queue by its name, URL (`https://sqs.<region>.amazonaws.com/<account>/<name>`) or ARN.
fn queue_arn(usage: &Usage, queue: &str) -> Option<String> {
    if queue.starts_with("arn:") {
        return Some(queue.to_owned());
    }
    let Some((_, rest)) = queue.split_once("://") else { return Some(usage.arn("sqs", queue)) };
    let mut parts = rest.split('/').skip(1);
    let (account, name) = (parts.next()?, parts.next()?);
    Some(usage.arn_of("sqs", account, name))
}

fn read_parameters(usage: &Usage) -> Option<Value> {
    let arns: Vec<String> = match &usage.parameters {
        Used::Any => vec![usage.arn("ssm", "parameter/*")],
        Used::Only(parameters) => parameters.iter().map(|name| parameter_arn(usage, name)).collect(),
    };
    let condition = Condition::regional(usage);
    (!arns.is_empty()).then(|| allow("ReadImageParameters", &["ssm:GetParameter"], &arns, condition))
}

/// The ARN of a parameter by its name or ARN. A public parameter (`/aws/service/...`) is of no account.
fn parameter_arn(usage: &Usage, name: &str) -> String {
    // The version of Kubernetes is not known in advance.
    let name = name.replace("{version}", "*").replace("{minor}", "*");
    if name.starts_with("arn:") {
        return name;
    }
    let path = name.trim_start_matches('/');
    let resource = format!("parameter/{path}");
    if path.starts_with("aws/service/") {
        usage.arn_of("ssm", "", &resource)
    } else {
        usage.arn("ssm", &resource)
    }
}

fn groups(usage: &Usage) -> Vec<Value> {
    let groups = [usage.arn("autoscaling", GROUPS)];
    let (request, resource) = ("aws:RequestTag", "aws:ResourceTag");
    let mut statements = vec![
        allow(
            "CreateGroups",
            &["autoscaling:CreateAutoScalingGroup"],
            &groups,
            Condition::regional(usage).with_tags(usage, request),
        ),
        allow("ManageGroups", &GROUP_ACTIONS, &groups, Condition::regional(usage).with_tags(usage, resource)),
    ];
    if usage.adopts {
        let unowned = format!("{resource}/{}", tags::OWNER_ID);
        let condition =
            Condition::regional(usage).with("Null", &unowned, json!("true")).with_tags(usage, request);
        statements.push(allow("AdoptGroups", &["autoscaling:CreateOrUpdateTags"], &groups, condition));
    }
    statements
}

fn launch_templates(usage: &Usage) -> [Value; 3] {
    let templates = [usage.arn("ec2", "launch-template/*")];
    let created = || Condition::regional(usage).with_tags(usage, "aws:RequestTag");
    [
        allow("CreateLaunchTemplates", &["ec2:CreateLaunchTemplate"], &templates, created()),
        allow(
            "TagLaunchTemplates",
            &["ec2:CreateTags"],
            &templates,
            created().with("StringEquals", "ec2:CreateAction", json!("CreateLaunchTemplate")),
        ),
        allow(
            "ManageLaunchTemplates",
            &[
                "ec2:CreateLaunchTemplateVersion",
                "ec2:DeleteLaunchTemplate",
                "ec2:DeleteLaunchTemplateVersions",
            ],
            &templates,
            Condition::regional(usage).with_tags(usage, "aws:ResourceTag"),
        ),
    ]
}

/// What AWS checks when a group is created or updated with a launch template: that the caller could launch from it.
fn launches(usage: &Usage) -> [Value; 3] {
    let templates = [usage.arn("ec2", "launch-template/*")];
    let launched = ["instance/*", "volume/*", "network-interface/*", "spot-instances-request/*"]
        .map(|kind| usage.arn("ec2", kind));
    let mut used = launched.to_vec();
    let own = ["key-pair/*", "security-group/*", "subnet/*"];
    used.extend(own.map(|kind| usage.arn("ec2", kind)));
    used.extend(["image/*", "snapshot/*"].map(|kind| usage.arn_of("ec2", "", kind)));
    let from_template =
        Condition::regional(usage).with("ArnLike", "ec2:LaunchTemplate", one_or_all(&templates));
    [
        allow(
            "LaunchFromTemplates",
            &["ec2:RunInstances"],
            &templates,
            Condition::regional(usage).with_tags(usage, "aws:ResourceTag"),
        ),
        allow("LaunchThroughGroups", &["ec2:RunInstances"], &used, from_template),
        allow(
            "TagInstances",
            &["ec2:CreateTags"],
            &launched,
            Condition::regional(usage).with_tags(usage, "aws:RequestTag").with(
                "StringEquals",
                "ec2:CreateAction",
                json!("RunInstances"),
            ),
        ),
    ]
}

fn pass_roles(usage: &Usage) -> Option<Value> {
    let services: Vec<String> = match usage.partition() {
        "aws-cn" => vec!["ec2.amazonaws.com.cn".to_owned()],
        "*" => vec!["ec2.amazonaws.com".to_owned(), "ec2.amazonaws.com.cn".to_owned()],
        _ => vec!["ec2.amazonaws.com".to_owned()],
    };
    let arns: Vec<String> = usage.roles.iter().map(|role| usage.role_arn(role)).collect();
    let condition = Condition::default().with("StringEquals", "iam:PassedToService", one_or_all(&services));
    (!arns.is_empty()).then(|| allow("PassInstanceProfileRoles", &["iam:PassRole"], &arns, condition))
}

fn first_use(usage: &Usage) -> Value {
    let services = ["autoscaling.amazonaws.com", "spot.amazonaws.com"];
    let roles = ["AWSServiceRoleForAutoScaling", "AWSServiceRoleForEC2Spot"];
    let arns: Vec<String> = services
        .iter()
        .zip(roles)
        .map(|(service, role)| usage.role_arn(&format!("aws-service-role/{service}/{role}")))
        .collect();
    let condition = Condition::default().with("StringEquals", "iam:AWSServiceName", json!(services));
    allow("FirstUseOfGroupsAndSpot", &["iam:CreateServiceLinkedRole"], &arns, condition)
}

fn assume_roles(usage: &Usage) -> Option<Value> {
    let arns: Vec<String> = usage.identities.iter().map(|identity| identity.role.clone()).collect();
    let actions = ["sts:AssumeRole", "sts:TagSession"];
    (!arns.is_empty()).then(|| allow("AssumeRolesOfIdentities", &actions, &arns, Condition::default()))
}
