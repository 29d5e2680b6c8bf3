//! The simulator's own tables against the facts of the official service model.

use std::collections::BTreeSet;

use capasg_fake_aws::{
    Service, Tree,
    facts::{ServiceFacts, Shape, check_output},
    operations, protocol,
};

use crate::kit::{Kit, data, group, named};

/// Whether a path of member names leads somewhere in the model; lists are walked through.
fn leads(facts: &ServiceFacts, structure: &str, path: &str) -> bool {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let Some(member) = facts.member(structure, name) else { return false };
    let Some(rest) = rest else { return true };
    match member.shape {
        Shape::Structure(inner) => leads(facts, inner, rest),
        Shape::List { item, .. } => match facts.shape(item) {
            Shape::Structure(inner) => leads(facts, inner, rest),
            _ => false,
        },
        _ => false,
    }
}

#[test]
fn operations_are_those_of_the_service_model() {
    for service in Service::ALL {
        let facts = ServiceFacts::of(service);
        let own: Vec<&str> =
            operations().iter().filter(|own| own.service == service).map(|own| own.action).collect();
        for action in &own {
            assert!(facts.operations.contains_key(*action), "{action} is not in the model");
        }
        for action in facts.operations.keys() {
            assert!(own.contains(&action.as_str()), "{action} is in the facts and not simulated");
        }
    }
}

#[test]
fn every_accepted_parameter_is_in_the_service_model() {
    for operation in operations() {
        let facts = ServiceFacts::of(operation.service);
        let input = &facts.operations[operation.action].input;
        for path in operation.accepts {
            assert!(leads(facts, input, path), "{} does not have {path}", operation.action);
        }
    }
}

#[test]
fn every_required_parameter_is_accepted() {
    for operation in operations() {
        let facts = ServiceFacts::of(operation.service);
        for required in facts.required(&facts.operations[operation.action].input) {
            let known = operation.accepts.iter().any(|path| path.split('.').next() == Some(required));
            assert!(known, "{} needs {required}", operation.action);
        }
    }
}

#[test]
fn reads_and_mutations_are_distinguished_by_name() {
    for operation in operations() {
        // What is taken out of a queue is nothing of the cloud, nor are credentials.
        let reads = [Service::Sqs, Service::Sts].contains(&operation.service)
            || operation.action.starts_with("Describe")
            || operation.action.starts_with("Get");
        assert_eq!(operation.is_mutation(), !reads, "{}", operation.action);
    }
}

/// One call of every operation, in an order in which each is answered.
fn story(kit: &Kit) -> Vec<(Service, &'static str, Tree)> {
    use Service::{AutoScaling, Ec2};
    let id = kit.ids("pool").remove(0);
    let other = kit.ids("pool").remove(1);
    let one = |id: &str| named("pool").with("InstanceIds", vec![id]);
    let nodes = || Tree::new().with("LaunchTemplateName", "nodes");
    let tag =
        Tree::new().with("ResourceId", "pool").with("ResourceType", "auto-scaling-group").with("Key", "k");
    let hook = || named("pool").with("LifecycleHookName", "drain");
    let transition = "autoscaling:EC2_INSTANCE_TERMINATING";
    let pair = Tree::new()
        .with("Resources", vec![&id])
        .with("Tags", vec![Tree::new().with("Key", "k").with("Value", "v")]);
    let health = Tree::new().with("InstanceId", &id).with("HealthStatus", "Healthy");
    let end = Tree::new().with("InstanceId", &other).with("ShouldDecrementDesiredCapacity", true);
    let desired = Tree::new()
        .with("LaunchTemplate", Tree::new().with("LaunchTemplateName", "nodes").with("Version", "2"));
    let preferences = Tree::new()
        .with("MinHealthyPercentage", 90)
        .with("BakeTime", 600)
        .with("CheckpointPercentages", vec![50, 100])
        .with("AlarmSpecification", Tree::new().with("Alarms", vec!["errors"]));
    let refresh = named("second").with("DesiredConfiguration", desired).with("Preferences", preferences);
    let of_ec2 = vec![
        (
            Ec2,
            "CreateLaunchTemplate",
            Tree::new().with("LaunchTemplateName", "other").with("LaunchTemplateData", data()),
        ),
        (
            Ec2,
            "CreateLaunchTemplateVersion",
            nodes().with("LaunchTemplateData", data()).with("VersionDescription", "d"),
        ),
        (Ec2, "ModifyLaunchTemplate", nodes().with("DefaultVersion", "2")),
        (Ec2, "DescribeLaunchTemplates", Tree::new()),
        (Ec2, "DescribeLaunchTemplateVersions", nodes()),
        (Ec2, "DeleteLaunchTemplateVersions", nodes().with("Versions", vec!["1", "2", "9"])),
        (Ec2, "CreateTags", pair.clone()),
        (Ec2, "DeleteTags", pair),
        (Ec2, "DescribeVpcs", Tree::new()),
        (Ec2, "DescribeSubnets", Tree::new()),
        (Ec2, "DescribeSecurityGroups", Tree::new()),
        (Ec2, "DescribeSecurityGroupVpcAssociations", Tree::new()),
        (Ec2, "DescribeImages", Tree::new()),
        (Ec2, "DescribeSnapshots", Tree::new()),
        (Ec2, "DescribeInstanceTypes", Tree::new()),
        (Ec2, "DescribeInstanceTypeOfferings", Tree::new()),
        (Ec2, "DescribeInstances", Tree::new()),
        (Ec2, "DescribeInstanceStatus", Tree::new()),
        (Ec2, "GetConsoleOutput", Tree::new().with("InstanceId", &id).with("Latest", true)),
        (Ec2, "DescribeInstanceAttribute", Tree::new().with("InstanceId", &id).with("Attribute", "userData")),
        (
            AutoScaling,
            "CreateAutoScalingGroup",
            group("second", 0).with("LaunchTemplate", nodes().with("Version", "2")),
        ),
        (AutoScaling, "UpdateAutoScalingGroup", named("pool").with("DefaultInstanceWarmup", 10)),
        (AutoScaling, "CreateOrUpdateTags", Tree::new().with("Tags", vec![tag.clone()])),
        (AutoScaling, "DescribeTags", Tree::new()),
        (AutoScaling, "DeleteTags", Tree::new().with("Tags", vec![tag])),
        (AutoScaling, "SuspendProcesses", named("pool")),
        (AutoScaling, "PutLifecycleHook", hook().with("LifecycleTransition", transition)),
        (AutoScaling, "DescribeLifecycleHooks", named("pool")),
        (AutoScaling, "DescribeAutoScalingGroups", Tree::new()),
        (AutoScaling, "ResumeProcesses", named("pool")),
        (AutoScaling, "DescribeAutoScalingInstances", Tree::new()),
        (AutoScaling, "StartInstanceRefresh", refresh.clone()),
        (AutoScaling, "RollbackInstanceRefresh", named("second")),
        (AutoScaling, "DescribeInstanceRefreshes", named("second")),
        (AutoScaling, "StartInstanceRefresh", refresh),
        (AutoScaling, "CancelInstanceRefresh", named("second").with("WaitForTransitioningInstances", false)),
        (AutoScaling, "SetInstanceProtection", one(&id).with("ProtectedFromScaleIn", true)),
        (AutoScaling, "SetInstanceHealth", health),
        (AutoScaling, "EnterStandby", one(&id).with("ShouldDecrementDesiredCapacity", true)),
        (AutoScaling, "TerminateInstanceInAutoScalingGroup", end),
        (AutoScaling, "RecordLifecycleActionHeartbeat", hook().with("InstanceId", &other)),
        (
            AutoScaling,
            "CompleteLifecycleAction",
            hook().with("InstanceId", &other).with("LifecycleActionResult", "CONTINUE"),
        ),
        (AutoScaling, "ExitStandby", one(&id)),
        (AutoScaling, "DetachInstances", one(&id).with("ShouldDecrementDesiredCapacity", false)),
        (AutoScaling, "AttachInstances", one(&id)),
        (AutoScaling, "SetDesiredCapacity", named("pool").with("DesiredCapacity", 1)),
        (AutoScaling, "DescribeScalingActivities", named("pool")),
        (AutoScaling, "DeleteLifecycleHook", hook()),
        (Ec2, "TerminateInstances", Tree::new().with("InstanceIds", vec![&id])),
        (AutoScaling, "DeleteAutoScalingGroup", named("pool").with("ForceDelete", true)),
        (Ec2, "DeleteLaunchTemplate", Tree::new().with("LaunchTemplateName", "other")),
    ];
    of_other_services(kit).into_iter().chain(of_ec2).collect()
}

fn of_other_services(kit: &Kit) -> Vec<(Service, &'static str, Tree)> {
    use Service::{ServiceQuotas, Sqs, Ssm, Sts};
    let url = kit.simulator.put_queue(&kit.scope, "events");
    let queue = || Tree::new().with("QueueUrl", &url);
    let role =
        || Tree::new().with("RoleArn", "arn:aws:iam::111122223333:role/r").with("RoleSessionName", "s1");
    let receipt = Tree::new().with("Id", "0").with("ReceiptHandle", "r");
    vec![
        (Sqs, "GetQueueUrl", Tree::new().with("QueueName", "events")),
        (Sqs, "SendMessage", queue().with("MessageBody", "{}")),
        (Sqs, "GetQueueAttributes", queue()),
        (Sqs, "ReceiveMessage", queue().with("MessageSystemAttributeNames", vec!["All"])),
        (Sqs, "DeleteMessage", queue().with("ReceiptHandle", "r")),
        (Sqs, "DeleteMessageBatch", queue().with("Entries", vec![receipt])),
        (Sts, "GetCallerIdentity", Tree::new()),
        (Sts, "AssumeRole", role()),
        // {"sub":"system:serviceaccount:a:b"}
        (
            Sts,
            "AssumeRoleWithWebIdentity",
            role().with("WebIdentityToken", "e30.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6YTpiIn0.c2ln"),
        ),
        (
            ServiceQuotas,
            "GetServiceQuota",
            Tree::new().with("ServiceCode", "ec2").with("QuotaCode", "L-1216C47A"),
        ),
        (Ssm, "GetParameter", Tree::new().with("Name", "/images/node/v1.36.3")),
        (Ssm, "GetParameters", Tree::new().with("Names", vec!["/images/node/v1.36.3", "/none"])),
    ]
}

#[test]
fn replies_have_the_members_of_the_service_model() {
    let kit = Kit::with_group(2);
    kit.simulator.set_any_role(true);
    let mut answered = BTreeSet::new();
    for (service, action, params) in story(&kit) {
        let reply = kit.simulator.call(&kit.scope, service, action, params);
        let reply = reply.unwrap_or_else(|error| panic!("{action}: {error}"));
        match &ServiceFacts::of(service).operations[action].output {
            Some(output) => check_output(service, output, &reply).unwrap(),
            None => assert_eq!(reply, Tree::new(), "{action}"),
        }
        if service.speaks_json() {
            protocol::json_reply(service, action, &reply).unwrap();
        } else {
            protocol::xml_reply(service, action, &reply, "id").unwrap();
        }
        kit.seconds(5);
        answered.insert((service, action));
    }
    let all: BTreeSet<_> = operations().iter().map(|own| (own.service, own.action)).collect();
    assert_eq!(answered, all, "every operation is in the story");
}
