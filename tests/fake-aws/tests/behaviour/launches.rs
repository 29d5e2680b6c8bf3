//! Launches: the way to `InService`, where and what is launched, and what is said when nothing can be.

use std::collections::BTreeMap;

use capasg_fake_aws::Tree;

use crate::kit::{Kit, USER_DATA, data, group, named, nodes, texts};

#[test]
fn a_launch_goes_from_pending_to_in_service() {
    let kit = Kit::with_template();
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 1));
    assert_eq!(kit.states("pool"), [""; 0]);
    kit.seconds(2);
    assert_eq!(kit.states("pool"), ["Pending"]);
    assert_eq!(kit.machine(&kit.ids("pool")[0]).as_deref(), Some("pending"));
    assert_eq!(kit.activities("pool")[0].text_of("StatusCode"), Some("PreInService"));
    kit.seconds(15);
    assert_eq!(kit.states("pool"), ["InService"]);
    assert_eq!(kit.machine(&kit.ids("pool")[0]).as_deref(), Some("running"));
    let activity = &kit.activities("pool")[0];
    assert_eq!(activity.text_of("StatusCode"), Some("Successful"));
    assert!(activity.text_of("Description").unwrap().starts_with("Launching a new EC2 instance: i-"));
}

#[test]
fn launches_spread_over_the_zones_with_fewest_instances() {
    let kit = Kit::with_group(6);
    let mut zones = BTreeMap::new();
    for zone in texts(&kit.instances("pool"), "AvailabilityZone") {
        *zones.entry(zone).or_insert(0) += 1;
    }
    let even = [("eu-west-1a", 2), ("eu-west-1b", 2), ("eu-west-1c", 2)];
    assert_eq!(zones, even.map(|(zone, count)| (zone.to_owned(), count)).into());
}

#[test]
fn an_instance_shows_the_real_version_it_came_from() {
    let kit = Kit::with_template();
    let latest = Tree::new().with("LaunchTemplateName", "nodes").with("Version", "$Latest");
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 1).with("LaunchTemplate", latest));
    kit.settle();
    assert_eq!(kit.describe("pool").unwrap().at("LaunchTemplate.Version").unwrap().text(), Some("$Latest"));
    assert_eq!(kit.instances("pool")[0].at("LaunchTemplate.Version").unwrap().text(), Some("1"));
    let version = Tree::new().with("LaunchTemplateName", "nodes").with("LaunchTemplateData", data());
    kit.ec2("CreateLaunchTemplateVersion", version);
    kit.set_desired(2);
    kit.settle();
    let mut versions: Vec<_> =
        kit.instances("pool").iter().map(|one| one.at("LaunchTemplate.Version").unwrap().clone()).collect();
    versions.sort_by_key(|version| version.text().map(str::to_owned));
    assert_eq!(versions, [Tree::from("1"), Tree::from("2")]);
}

#[test]
fn an_instance_keeps_the_user_data_of_its_version() {
    let kit = Kit::with_group(1);
    let version = Tree::new()
        .with("LaunchTemplateName", "nodes")
        .with("LaunchTemplateData", data().with("UserData", "bmV3"));
    kit.ec2("CreateLaunchTemplateVersion", version);
    let second = Tree::new().with("LaunchTemplateName", "nodes").with("Version", "2");
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("LaunchTemplate", second));
    let dump = kit.simulator.dump(None).remove(0);
    assert_eq!(
        dump.instances[0].user_data.as_deref(),
        Some(USER_DATA),
        "a new template concerns new instances"
    );
    kit.set_desired(2);
    kit.settle();
    let all = kit.simulator.dump(None).remove(0).instances;
    assert_eq!(all.iter().filter(|one| one.user_data.as_deref() == Some("bmV3")).count(), 1);
}

#[test]
fn tags_reach_instances_if_they_propagate_and_the_groups_win() {
    let kit = Kit::new();
    let tags = vec![
        Tree::new().with("Key", "a").with("Value", "template"),
        Tree::new().with("Key", "t").with("Value", "1"),
    ];
    let specification = Tree::new().with("ResourceType", "instance").with("Tags", tags);
    kit.template("nodes", data().with("TagSpecifications", vec![specification]));
    let tag = |key: &str, propagate: bool| {
        Tree::new().with("Key", key).with("Value", "group").with("PropagateAtLaunch", propagate)
    };
    kit.autoscaling(
        "CreateAutoScalingGroup",
        group("pool", 1).with("Tags", vec![tag("a", true), tag("b", false)]),
    );
    kit.settle();
    let tags = kit.simulator.dump(None).remove(0).instances.remove(0).tags;
    assert_eq!(tags["a"], "group");
    assert_eq!(tags["t"], "1");
    assert_eq!(tags.get("b"), None);
    assert_eq!(tags["aws:autoscaling:groupName"], "pool");
}

fn policy(types: &[&str]) -> Tree {
    let overrides = Tree::list(types.iter().map(|kind| Tree::new().with("InstanceType", *kind)));
    let template = Tree::new().with("LaunchTemplateSpecification", nodes()).with("Overrides", overrides);
    Tree::new().with("LaunchTemplate", template)
}

fn mixed(size: usize, policy: Tree) -> Tree {
    let mut params = Tree::new();
    for (name, value) in group("pool", size).members().filter(|(name, _)| *name != "LaunchTemplate") {
        params.set(name, value.clone());
    }
    params.with("MixedInstancesPolicy", policy)
}

#[test]
fn instance_types_follow_the_policys_order_while_capacity_lasts() {
    let kit = Kit::with_template();
    kit.simulator.set_capacity(&kit.scope, "m7i.large", "*", Some(2));
    kit.autoscaling("CreateAutoScalingGroup", mixed(3, policy(&["m7i.large", "m6i.large"])));
    kit.settle();
    let mut types = texts(&kit.instances("pool"), "InstanceType");
    types.sort();
    assert_eq!(types, ["m6i.large", "m7i.large", "m7i.large"]);
}

#[test]
fn a_policy_splits_on_demand_and_spot() {
    let kit = Kit::with_template();
    let distribution =
        Tree::new().with("OnDemandBaseCapacity", 1).with("OnDemandPercentageAboveBaseCapacity", 0);
    let policy = policy(&["m7i.large"]).with("InstancesDistribution", distribution);
    kit.autoscaling("CreateAutoScalingGroup", mixed(3, policy));
    kit.settle();
    let markets: Vec<_> =
        kit.simulator.dump(None)[0].instances.iter().map(|one| one.market.clone()).collect();
    assert_eq!(markets.iter().filter(|market| *market == "spot").count(), 2);
    let shown = kit.describe("pool").unwrap();
    let shown = shown.at("MixedInstancesPolicy.InstancesDistribution").unwrap();
    assert_eq!(shown.text_of("SpotAllocationStrategy"), Some("lowest-price"), "defaults are filled in");
    assert_eq!(shown.number_of("SpotInstancePools"), Some(2));
}

#[test]
fn without_capacity_the_activity_fails_and_desired_stays() {
    let kit = Kit::with_template();
    kit.simulator.set_capacity(&kit.scope, "m7i.large", "*", Some(0));
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 1));
    kit.seconds(3);
    let activity = &kit.activities("pool")[0];
    assert_eq!(activity.text_of("StatusCode"), Some("Failed"));
    let words = activity.text_of("StatusMessage").unwrap();
    assert!(words.starts_with("We currently do not have sufficient m7i.large capacity in the Availability Zone you requested (eu-west-1a)"), "{words}");
    assert!(words.ends_with("Launching EC2 instance failed."), "{words}");
    assert_eq!(kit.desired("pool"), 1);
    kit.simulator.set_capacity(&kit.scope, "m7i.large", "*", None);
    kit.settle();
    assert_eq!(kit.states("pool"), ["InService"], "the launch is tried again");
}

#[test]
fn failed_launches_are_retried_with_growing_delay() {
    let kit = Kit::with_template();
    kit.simulator.set_capacity(&kit.scope, "*", "*", Some(0));
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 1));
    kit.seconds(100);
    let early = kit.activities("pool").len();
    kit.seconds(1000);
    let late = kit.activities("pool").len() - early;
    assert_eq!(early, 3, "after 2, 17 and 47 seconds");
    assert_eq!(late, 5, "after 107 and 227 seconds, then every 300: {late}");
}

#[test]
fn a_policys_failure_names_the_market() {
    let kit = Kit::with_template();
    kit.simulator.set_capacity(&kit.scope, "*", "*", Some(0));
    kit.autoscaling("CreateAutoScalingGroup", mixed(1, policy(&["m7i.large"])));
    kit.seconds(3);
    let words = kit.activities("pool")[0].text_of("StatusMessage").unwrap().to_owned();
    assert!(
        words.starts_with("Could not launch On-Demand Instances. InsufficientInstanceCapacity - "),
        "{words}"
    );
}

#[test]
fn an_exceeded_quota_and_a_full_subnet_are_reported() {
    let kit = Kit::with_template();
    kit.change_settings(|settings| settings.vcpu_limit = Some(2));
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 2));
    kit.seconds(3);
    let failed =
        kit.activities("pool").into_iter().find(|one| one.text_of("StatusCode") == Some("Failed")).unwrap();
    let words = failed.text_of("StatusMessage").unwrap();
    assert!(
        words.starts_with("You have requested more vCPU capacity than your current vCPU limit of 2"),
        "{words}"
    );

    let kit = Kit::with_template();
    let subnet = capasg_fake_aws::ec2::Subnet {
        id: "subnet-0f0f0f0f".to_owned(),
        vpc: "vpc-0a1b2c3d".to_owned(),
        zone: "eu-west-1a".to_owned(),
        cidr: "10.0.64.0/28".to_owned(),
        addresses: 1,
        tags: BTreeMap::new(),
    };
    kit.simulator.put_subnet(&kit.scope, subnet);
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 2).with("VPCZoneIdentifier", "subnet-0f0f0f0f"));
    kit.seconds(3);
    let failed =
        kit.activities("pool").into_iter().find(|one| one.text_of("StatusCode") == Some("Failed")).unwrap();
    assert!(
        failed
            .text_of("StatusMessage")
            .unwrap()
            .contains("not enough free addresses in subnet 'subnet-0f0f0f0f'")
    );
}

#[test]
fn a_group_validates_what_its_launch_template_names() {
    let cases = [
        ("ImageId", Tree::from("ami-0fffffff"), "The image id '[ami-0fffffff]' does not exist"),
        ("InstanceType", Tree::from("m5.medium"), "Invalid value 'm5.medium' for InstanceType."),
        ("KeyName", Tree::from("nobody"), "The key pair 'nobody' does not exist"),
        ("SecurityGroupIds", Tree::list(["sg-0fffffff"]), "The security group 'sg-0fffffff' does not exist"),
        (
            "IamInstanceProfile",
            Tree::new().with("Name", "x"),
            "Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
        ),
    ];
    for (name, value, words) in cases {
        let kit = Kit::with_group(0);
        kit.template("wrong", data().with(name, value));
        let wrong = Tree::new().with("LaunchTemplateName", "wrong").with("Version", "1");
        let expected = (
            "ValidationError".to_owned(),
            format!("You must use a valid fully-formed launch template. {words}"),
        );
        let create = group("other", 1).with("LaunchTemplate", wrong.clone());
        assert_eq!(kit.refused("CreateAutoScalingGroup", create), expected);
        assert_eq!(
            kit.refused("UpdateAutoScalingGroup", named("pool").with("LaunchTemplate", wrong)),
            expected
        );
        assert!(kit.describe("other").is_none());
    }
}

#[test]
fn an_image_deregistered_later_fails_the_launch() {
    let kit = Kit::with_group(1);
    kit.simulator.remove_image(&kit.scope, "ami-0a1b2c3d");
    kit.set_desired(2);
    kit.seconds(3);
    let failed =
        kit.activities("pool").into_iter().find(|one| one.text_of("StatusCode") == Some("Failed")).unwrap();
    assert_eq!(
        failed.text_of("StatusMessage"),
        Some("The AMI ID ami-0a1b2c3d does not exist. Launching EC2 instance failed.")
    );
    assert_eq!(kit.states("pool").len(), 1);
}

#[test]
fn an_image_may_be_named_by_a_parameter() {
    let kit = Kit::new();
    kit.template("nodes", data().with("ImageId", "resolve:ssm:/images/node/v1.36.3"));
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 1));
    kit.settle();
    assert_eq!(kit.machines()[0].text_of("ImageId"), Some("ami-0a1b2c3d"));
}

#[test]
fn a_failed_launch_names_the_zone_and_a_policys_the_code() {
    let kit = Kit::with_template();
    kit.change_settings(|settings| settings.vcpu_limit = Some(0));
    kit.autoscaling("CreateAutoScalingGroup", mixed(1, policy(&["m7i.large"])));
    kit.seconds(3);
    let failed = kit.activities("pool").remove(0);
    assert!(
        failed
            .text_of("StatusMessage")
            .unwrap()
            .starts_with("Could not launch On-Demand Instances. VcpuLimitExceeded - ")
    );
    assert!(failed.text_of("Details").unwrap().contains("\"Availability Zone\":\"eu-west-1a\""));
}

#[test]
fn instances_that_stop_at_once_leave_a_cancelled_launch() {
    let kit = Kit::with_template();
    kit.change_settings(|settings| settings.launches_die = true);
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 1));
    kit.seconds(18);
    let launch = kit
        .activities("pool")
        .into_iter()
        .find(|one| one.text_of("Description").unwrap().starts_with("Launching"))
        .unwrap();
    assert_eq!(launch.text_of("StatusCode"), Some("Cancelled"));
    assert!(
        launch.text_of("StatusMessage").unwrap().contains("Client.InternalError: Client error on launch.")
    );
    kit.seconds(600);
    assert!(kit.activities("pool").len() < 30, "launches wait longer and longer");
    kit.change_settings(|settings| settings.launches_die = false);
    kit.seconds(600);
    assert_eq!(kit.states("pool"), ["InService"]);
}

#[test]
fn after_a_day_of_failures_the_group_suspends_its_launches() {
    let kit = Kit::with_template();
    kit.simulator.set_capacity(&kit.scope, "*", "*", Some(0));
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 1));
    kit.seconds(86_000);
    assert!(kit.describe("pool").unwrap().items_of("SuspendedProcesses").is_empty());
    kit.seconds(1_000);
    let suspended = kit.describe("pool").unwrap().items_of("SuspendedProcesses").to_vec();
    assert_eq!(texts(&suspended, "ProcessName"), ["Launch"]);
    assert!(!suspended[0].text_of("SuspensionReason").unwrap().starts_with("User suspended"));
    let tried = kit.activities("pool").len();
    kit.simulator.set_capacity(&kit.scope, "*", "*", None);
    kit.seconds(1_000);
    assert_eq!(kit.activities("pool").len(), tried, "nothing is tried");
    kit.autoscaling("ResumeProcesses", named("pool").with("ScalingProcesses", Tree::list(["Launch"])));
    kit.settle();
    assert_eq!(kit.states("pool"), ["InService"]);
}
