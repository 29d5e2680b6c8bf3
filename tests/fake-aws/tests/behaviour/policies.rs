//! Policies: what each call asks, and what a service answers if no statement allows it.

use capasg_fake_aws::{Credentials, Denial, LogFilter, Role, Service, Tree};
use serde_json::{Value, json};

use crate::kit::{Kit, data, group, named};

const USER: &str = "arn:aws:iam::123456789012:user/simulated";
const OWNER: &str = "asg.infrastructure.cluster.x-k8s.io/owner-id";

fn allow(statement: &Value) -> Value {
    let mut statement = statement.clone();
    statement["Effect"] = "Allow".into();
    statement
}

impl Kit {
    fn allows(&self, statements: &[Value]) {
        let statements: Vec<Value> = statements.iter().map(allow).collect();
        let policy = json!({"Version": "2012-10-17", "Statement": statements});
        self.simulator.set_policies(USER, &[policy]).unwrap();
    }

    /// What was denied last.
    fn denied(&self) -> (String, String) {
        let log = self.simulator.log(&LogFilter::default().denied());
        let Denial { action, resource, is_explicit, .. } =
            log.last().and_then(|last| last.denied.clone()).unwrap();
        assert!(!is_explicit);
        (action, resource)
    }

    fn code(&self, service: Service, action: &str, params: Tree) -> (u16, String) {
        let error = self.simulator.call(&self.scope, service, action, params).unwrap_err();
        (error.status, error.code)
    }
}

fn tag(key: &str, value: &str) -> Tree {
    Tree::new().with("Key", key).with("Value", value)
}

fn template_with_tags(tags: &[(&str, &str)]) -> Tree {
    let tags: Vec<Tree> = tags.iter().map(|(key, value)| tag(key, value)).collect();
    let specification = Tree::new().with("ResourceType", "launch-template").with("Tags", tags);
    Tree::new()
        .with("LaunchTemplateName", "own")
        .with("LaunchTemplateData", data())
        .with("TagSpecifications", vec![specification])
}

#[test]
fn each_service_denies_in_its_own_words() {
    let kit = Kit::with_template();
    let url = kit.simulator.put_queue(&kit.scope, "events");
    kit.allows(&[json!({"Action": "iam:PassRole", "Resource": "*"})]);
    let cases = [
        (Service::AutoScaling, "DescribeTags", Tree::new(), 403, "AccessDenied", "*"),
        (Service::Ec2, "DescribeSubnets", Tree::new(), 403, "UnauthorizedOperation", "*"),
        (
            Service::Sqs,
            "DeleteMessageBatch",
            Tree::new().with("QueueUrl", url),
            403,
            "AccessDenied",
            "arn:aws:sqs:eu-west-1:123456789012:events",
        ),
        (
            Service::Ssm,
            "GetParameter",
            Tree::new().with("Name", "/images/node/v1.36"),
            400,
            "AccessDeniedException",
            "arn:aws:ssm:eu-west-1:123456789012:parameter/images/node/v1.36",
        ),
        (
            Service::Sts,
            "AssumeRole",
            Tree::new().with("RoleArn", "arn:aws:iam::111122223333:role/a").with("RoleSessionName", "s1"),
            403,
            "AccessDenied",
            "arn:aws:iam::111122223333:role/a",
        ),
        (
            Service::ServiceQuotas,
            "GetServiceQuota",
            Tree::new().with("ServiceCode", "ec2").with("QuotaCode", "x"),
            400,
            "AccessDeniedException",
            "*",
        ),
    ];
    for (service, action, params, status, code, resource) in cases {
        assert_eq!(kit.code(service, action, params), (status, code.to_owned()), "{action}");
        assert_eq!(
            kit.denied(),
            (format!("{}:{}", service.as_str(), action.trim_end_matches("Batch")), resource.to_owned())
        );
    }
    let name = Tree::new().with("Name", "/aws/service/eks/x");
    kit.code(Service::Ssm, "GetParameter", name);
    assert_eq!(kit.denied().1, "arn:aws:ssm:eu-west-1::parameter/aws/service/eks/x", "public: of no account");
    let words =
        kit.try_autoscaling("SetDesiredCapacity", named("a").with("DesiredCapacity", 1)).unwrap_err().message;
    assert_eq!(
        words,
        "User: arn:aws:iam::123456789012:user/simulated is not authorized to perform: autoscaling:SetDesiredCapacity \
         on resource: arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:*:autoScalingGroupName/a because no \
         identity-based policy allows the autoscaling:SetDesiredCapacity action"
    );
    kit.simulator.call(&kit.scope, Service::Sts, "GetCallerIdentity", Tree::new()).unwrap();
    kit.simulator.set_policies(USER, &[]).unwrap();
    kit.ec2("DescribeSubnets", Tree::new());
}

#[test]
fn a_deny_is_told_as_one() {
    let kit = Kit::new();
    kit.simulator.record_asked();
    let policy = json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": "*", "Resource": "*"},
        {"Effect": "Deny", "Action": "ec2:Describe*", "Resource": "*"},
    ]});
    kit.simulator.set_policies(USER, &[policy]).unwrap();
    let error = kit.try_ec2("DescribeSubnets", Tree::new()).unwrap_err();
    assert!(error.message.contains("with an explicit deny in an identity-based policy"), "{error}");
    assert!(kit.simulator.log(&LogFilter::default().denied())[0].denied.as_ref().unwrap().is_explicit);
    kit.autoscaling("DescribeTags", Tree::new());
    assert_eq!(kit.simulator.asked(USER).len(), 2);
}

#[test]
fn tags_of_a_request_and_of_a_group_count() {
    let kit = Kit::with_template();
    let own = json!({"Null": {format!("aws:ResourceTag/{OWNER}"): "false"}});
    kit.allows(&[
        json!({"Action": "autoscaling:CreateAutoScalingGroup", "Resource": "*",
            "Condition": {"StringEquals": {format!("aws:RequestTag/{OWNER}"): "x"}}}),
        json!({"Action": ["autoscaling:UpdateAutoScalingGroup", "autoscaling:CreateOrUpdateTags"], "Resource": "*",
            "Condition": own}),
        json!({"Action": ["ec2:RunInstances", "iam:*"], "Resource": "*"}),
    ]);
    let with = |name: &str, value: &str| {
        let tag = tag(OWNER, value).with("ResourceId", name).with("ResourceType", "auto-scaling-group");
        group(name, 0).with("Tags", vec![tag])
    };
    assert_eq!(kit.code(Service::AutoScaling, "CreateAutoScalingGroup", group("a", 0)).0, 403);
    assert_eq!(kit.code(Service::AutoScaling, "CreateAutoScalingGroup", with("a", "y")).0, 403);
    kit.autoscaling("CreateAutoScalingGroup", with("a", "x"));
    kit.autoscaling("UpdateAutoScalingGroup", named("a").with("MaxSize", 3));
    kit.simulator.set_policies(USER, &[]).unwrap();
    kit.autoscaling("CreateAutoScalingGroup", group("other", 0));
    kit.allows(&[json!({"Action": "autoscaling:*", "Resource": "*", "Condition": own})]);
    assert_eq!(
        kit.code(Service::AutoScaling, "UpdateAutoScalingGroup", named("other").with("MaxSize", 3)).0,
        403
    );
    let (action, resource) = kit.denied();
    assert_eq!(action, "autoscaling:UpdateAutoScalingGroup");
    assert!(resource.ends_with(":autoScalingGroupName/other") && !resource.contains('*'), "{resource}");
    let tags = |name: &str| {
        let tag = tag(OWNER, "x").with("ResourceId", name).with("ResourceType", "auto-scaling-group");
        Tree::new().with("Tags", vec![tag])
    };
    kit.autoscaling("CreateOrUpdateTags", tags("a"));
    assert_eq!(kit.code(Service::AutoScaling, "CreateOrUpdateTags", tags("other")).0, 403);
}

#[test]
fn a_group_asks_what_a_launch_from_its_template_asks() {
    let kit = Kit::with_template();
    let mut statements = vec![json!({"Action": "autoscaling:*", "Resource": "*"})];
    let create = || {
        kit.try_autoscaling("CreateAutoScalingGroup", group("pool", 0))
            .map_err(|error| (error.status, error.code, error.message))
    };
    let id = kit.ec2("DescribeLaunchTemplates", Tree::new()).items_of("LaunchTemplates")[0]
        .text_of("LaunchTemplateId")
        .unwrap()
        .to_owned();
    let template = format!("arn:aws:ec2:eu-west-1:123456789012:launch-template/{id}");
    let account = "arn:aws:ec2:eu-west-1:123456789012";
    kit.allows(&statements);
    let error = create().unwrap_err();
    assert_eq!(error.0, 403);
    assert!(
        error.2.starts_with("The default Service-Linked Role for Auto Scaling could not be created."),
        "{error:?}"
    );
    let role = "arn:aws:iam::123456789012:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling";
    assert_eq!(kit.denied(), ("iam:CreateServiceLinkedRole".to_owned(), role.to_owned()));
    statements.push(json!({"Action": "iam:CreateServiceLinkedRole", "Resource": role,
        "Condition": {"StringEquals": {"iam:AWSServiceName": "autoscaling.amazonaws.com"}}}));
    let image = "arn:aws:ec2:eu-west-1::image/ami-0a1b2c3d";
    for resource in [
        template.as_str(),
        image,
        &format!("{account}:instance/*"),
        &format!("{account}:volume/*"),
        &format!("{account}:network-interface/*"),
    ] {
        kit.allows(&statements);
        let error = create().unwrap_err();
        assert_eq!((error.0, error.1.as_str()), (403, "AccessDenied"));
        assert_eq!(error.2, format!("You are not authorized to use launch template: {id}"));
        assert_eq!(kit.denied(), ("ec2:RunInstances".to_owned(), resource.to_owned()));
        statements.push(json!({"Action": "ec2:RunInstances", "Resource": resource,
            "Condition": {"ArnLike": {"ec2:LaunchTemplate": template}}}));
    }
    let others = ["subnet", "security-group", "key-pair"].map(|kind| format!("{account}:{kind}/*"));
    statements.push(json!({"Action": "ec2:RunInstances", "Resource": others}));
    statements.push(json!({"Action": "iam:PassRole", "Resource": "arn:aws:iam::123456789012:role/nodes"}));
    kit.allows(&statements);
    create().unwrap();
    // Neither the role of the first group nor the template is asked for again.
    statements.retain(|statement| statement["Action"] == "autoscaling:*");
    kit.allows(&statements);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("MaxSize", 3));
    let template = Tree::new().with("LaunchTemplateName", "nodes").with("Version", "1");
    let update = named("pool").with("LaunchTemplate", template);
    assert_eq!(kit.code(Service::AutoScaling, "UpdateAutoScalingGroup", update).0, 403);
}

#[test]
fn a_profile_passes_its_role_and_tags_are_made_with_the_launch() {
    let kit = Kit::new();
    kit.simulator.put_profile_role("123456789012", "nodes", "arn:aws:iam::123456789012:role/other-name");
    let tags = Tree::new().with("ResourceType", "instance").with("Tags", vec![tag("team", "blue")]);
    let data = data()
        .with("IamInstanceProfile", Tree::new().with("Name", "nodes"))
        .with("TagSpecifications", vec![tags]);
    kit.template("nodes", data);
    let mut statements = vec![
        json!({"Action": ["autoscaling:*", "ec2:RunInstances", "iam:CreateServiceLinkedRole"], "Resource": "*"}),
    ];
    let create = || kit.try_autoscaling("CreateAutoScalingGroup", group("pool", 0));
    kit.allows(&statements);
    create().unwrap_err();
    assert_eq!(
        kit.denied(),
        ("ec2:CreateTags".to_owned(), "arn:aws:ec2:eu-west-1:123456789012:instance/*".to_owned())
    );
    statements.push(json!({"Action": "ec2:CreateTags", "Resource": "*", "Condition": {
        "StringEquals": {"ec2:CreateAction": "RunInstances", "aws:RequestTag/team": "blue"},
        "ForAllValues:StringEquals": {"aws:TagKeys": ["team"]},
    }}));
    kit.allows(&statements);
    create().unwrap_err();
    let role = "arn:aws:iam::123456789012:role/other-name";
    assert_eq!(kit.denied(), ("iam:PassRole".to_owned(), role.to_owned()));
    statements.push(json!({"Action": "iam:PassRole", "Resource": role,
        "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}}));
    kit.allows(&statements);
    create().unwrap();
}

#[test]
fn the_tags_of_a_launch_template_are_made_with_it() {
    let kit = Kit::new();
    let create = json!({"Action": "ec2:CreateLaunchTemplate", "Resource": "arn:aws:ec2:*:*:launch-template/*",
        "Condition": {"Null": {format!("aws:RequestTag/{OWNER}"): "false"}}});
    kit.allows(std::slice::from_ref(&create));
    let params = || template_with_tags(&[(OWNER, "x")]);
    assert_eq!(kit.code(Service::Ec2, "CreateLaunchTemplate", template_with_tags(&[("a", "b")])).0, 403);
    assert_eq!(kit.denied().0, "ec2:CreateLaunchTemplate");
    assert_eq!(kit.code(Service::Ec2, "CreateLaunchTemplate", params()).0, 403);
    assert_eq!(kit.denied().0, "ec2:CreateTags");
    let tags = json!({"Action": "ec2:CreateTags", "Resource": "arn:aws:ec2:*:*:launch-template/*",
        "Condition": {"StringEquals": {"ec2:CreateAction": "CreateLaunchTemplate"}}});
    let own = json!({"Action": "ec2:CreateLaunchTemplateVersion", "Resource": "*",
        "Condition": {"StringEquals": {format!("ec2:ResourceTag/{OWNER}"): "x"}}});
    kit.allows(&[create, tags, own]);
    kit.ec2("CreateLaunchTemplate", params());
    let version = Tree::new().with("LaunchTemplateName", "own").with("LaunchTemplateData", data());
    kit.ec2("CreateLaunchTemplateVersion", version);
    let delete = Tree::new().with("LaunchTemplateName", "own");
    assert_eq!(kit.code(Service::Ec2, "DeleteLaunchTemplate", delete).0, 403);
    // Not by itself, only with the template.
    let id = kit.simulator.dump(None)[0].templates[0].id.clone();
    let later = Tree::new().with("Resources", vec![id]).with("Tags", vec![tag("a", "b")]);
    assert_eq!(kit.code(Service::Ec2, "CreateTags", later).0, 403);
}

#[test]
fn policies_of_a_role_hold_for_its_sessions_and_trust_policies_for_who_assumes_it() {
    let kit = Kit::new();
    let role = "arn:aws:iam::111122223333:role/pools";
    let trust = |condition: Value| {
        json!({"Version": "2012-10-17", "Statement": [{
            "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:root"}, "Action": "sts:AssumeRole",
            "Condition": condition,
        }]})
    };
    let own = trust(json!({"StringEquals": {"sts:ExternalId": "blue"}}));
    kit.simulator.put_role(Role::with_trust_policy(role, &own).unwrap());
    let ask =
        |id: &str| Tree::new().with("RoleArn", role).with("RoleSessionName", "s1").with("ExternalId", id);
    assert_eq!(kit.code(Service::Sts, "AssumeRole", ask("red")).0, 403);
    let reply = kit.simulator.call(&kit.scope, Service::Sts, "AssumeRole", ask("blue")).unwrap();
    let tags = ask("blue").with("Tags", vec![tag("team", "blue")]);
    assert_eq!(kit.code(Service::Sts, "AssumeRole", tags).0, 403, "sts:TagSession is another action");
    let session = Credentials::of_reply(&reply).unwrap();
    let policy = json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": "ec2:DescribeSubnets", "Resource": "*",
            "Condition": {"StringEquals": {"aws:RequestedRegion": "eu-west-1"}}},
    ]});
    kit.simulator.set_policies(role, &[policy]).unwrap();
    let subnets =
        |region: &str| kit.simulator.call_as(&session, region, Service::Ec2, "DescribeSubnets", Tree::new());
    subnets("eu-west-1").unwrap();
    assert_eq!(subnets("eu-west-2").unwrap_err().status, 403);
    kit.ec2("DescribeSubnets", Tree::new());
    assert!(Role::with_trust_policy(role, &json!({"Version": "2012-10-17", "Statement": {}})).is_err());
}
