//! Groups: created, updated, deleted, and what is refused.

use capasg_fake_aws::Tree;

use crate::kit::{Kit, group, named, nodes};

#[test]
fn a_duplicate_group_is_rejected() {
    let kit = Kit::with_group(0);
    let (code, words) = kit.refused("CreateAutoScalingGroup", group("pool", 1));
    assert_eq!(code, "AlreadyExists");
    assert_eq!(
        words,
        "AutoScalingGroup by this name already exists - A group with the name pool already exists"
    );
    assert_eq!(kit.desired("pool"), 0);
}

#[test]
fn an_unknown_subnet_is_rejected_with_awss_message() {
    let kit = Kit::with_template();
    let params = group("pool", 1).with("VPCZoneIdentifier", "subnet-0a1b2c3d, subnet-0fffffff");
    let expected =
        ("ValidationError".to_owned(), "The subnet ID 'subnet-0fffffff' does not exist".to_owned());
    assert_eq!(kit.refused("CreateAutoScalingGroup", params), expected);
    kit.change_settings(|settings| settings.accept_any_id = true);
    let params = group("pool", 1).with("VPCZoneIdentifier", "subnet-0a1b2c3d, subnet-0fffffff");
    kit.autoscaling("CreateAutoScalingGroup", params);
    kit.settle();
    assert_eq!(kit.states("pool"), ["InService"]);
}

#[test]
fn group_names_are_validated() {
    let kit = Kit::with_template();
    for name in ["a b", "a:b", "", &"x".repeat(256)] {
        assert_eq!(kit.refused("CreateAutoScalingGroup", group(name, 0)).0, "ValidationError", "{name}");
    }
    kit.autoscaling("CreateAutoScalingGroup", group(&"x".repeat(255), 0));
}

#[test]
fn desired_capacity_must_lie_within_the_bounds() {
    let kit = Kit::with_template();
    let (_, words) = kit.refused("CreateAutoScalingGroup", group("pool", 15));
    assert_eq!(words, "Desired capacity:15 must be between the specified min size:0 and max size:10");
    let (_, words) = kit.refused("CreateAutoScalingGroup", group("pool", 1).with("MinSize", 11));
    assert!(words.contains("must be greater than or equal to min bound, 11"), "{words}");
    let (_, words) = kit
        .refused("CreateAutoScalingGroup", named("pool").with("MinSize", 1).with("LaunchTemplate", nodes()));
    assert!(words.contains("'maxSize' failed to satisfy constraint: Member must not be null"), "{words}");
}

#[test]
fn desired_capacity_defaults_to_the_minimum() {
    let kit = Kit::with_template();
    let params = named("pool")
        .with("MinSize", 2)
        .with("MaxSize", 3)
        .with("LaunchTemplate", nodes())
        .with("VPCZoneIdentifier", "subnet-0a1b2c3d");
    kit.autoscaling("CreateAutoScalingGroup", params);
    assert_eq!(kit.desired("pool"), 2);
}

#[test]
fn new_bounds_move_desired_capacity() {
    let kit = Kit::with_group(4);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("MaxSize", 3));
    assert_eq!(kit.desired("pool"), 3);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("MinSize", 2).with("MaxSize", 8));
    assert_eq!(kit.desired("pool"), 3);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("MinSize", 5));
    assert_eq!(kit.desired("pool"), 5);
    let outside = named("pool").with("DesiredCapacity", 9);
    assert_eq!(kit.refused("UpdateAutoScalingGroup", outside).0, "ValidationError");
}

#[test]
fn launch_template_and_policy_replace_each_other() {
    let kit = Kit::with_group(1);
    let template = Tree::new()
        .with("LaunchTemplateSpecification", nodes())
        .with("Overrides", vec![Tree::new().with("InstanceType", "m6i.large")]);
    let policy = Tree::new().with("LaunchTemplate", template);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("MixedInstancesPolicy", policy.clone()));
    let shown = kit.describe("pool").unwrap();
    assert_eq!(shown.get("LaunchTemplate"), None);
    let overrides = shown.at("MixedInstancesPolicy.LaunchTemplate.Overrides").unwrap();
    assert_eq!(overrides.items()[0].text_of("InstanceType"), Some("m6i.large"));
    let specification = shown.at("MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification").unwrap();
    assert!(
        specification.text_of("LaunchTemplateId").is_some()
            && specification.text_of("LaunchTemplateName").is_some()
    );
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("LaunchTemplate", nodes()));
    let shown = kit.describe("pool").unwrap();
    assert_eq!(shown.get("MixedInstancesPolicy"), None);
    let both = named("pool").with("LaunchTemplate", nodes()).with("MixedInstancesPolicy", policy);
    assert_eq!(kit.refused("UpdateAutoScalingGroup", both).0, "ValidationError");
}

#[test]
fn a_group_needs_a_template_that_exists() {
    let kit = Kit::with_template();
    let missing = Tree::new().with("LaunchTemplateName", "none").with("Version", "1");
    let (_, words) = kit.refused("CreateAutoScalingGroup", group("pool", 0).with("LaunchTemplate", missing));
    assert!(words.contains("with template name none, does not exist"), "{words}");
    let version = Tree::new().with("LaunchTemplateName", "nodes").with("Version", "7");
    let (_, words) = kit.refused("CreateAutoScalingGroup", group("pool", 0).with("LaunchTemplate", version));
    assert!(words.contains("Could not find the specified version 7"), "{words}");
}

#[test]
fn attributes_stay_until_they_are_cleared() {
    let kit = Kit::with_group(0);
    let set = named("pool")
        .with("DefaultInstanceWarmup", 60)
        .with("MaxInstanceLifetime", 86_400)
        .with("DefaultCooldown", 10);
    kit.autoscaling("UpdateAutoScalingGroup", set);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("CapacityRebalance", true));
    let shown = kit.describe("pool").unwrap();
    assert_eq!(shown.number_of("DefaultInstanceWarmup"), Some(60));
    assert_eq!(shown.number_of("DefaultCooldown"), Some(10));
    assert_eq!(shown.flag_of("CapacityRebalance"), Some(true));
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("PlacementGroup", "near"));
    assert_eq!(kit.describe("pool").unwrap().text_of("PlacementGroup"), Some("near"));
    let clear = named("pool")
        .with("DefaultInstanceWarmup", -1)
        .with("MaxInstanceLifetime", 0)
        .with("PlacementGroup", "");
    kit.autoscaling("UpdateAutoScalingGroup", clear);
    let shown = kit.describe("pool").unwrap();
    assert_eq!(shown.get("DefaultInstanceWarmup"), None);
    assert_eq!(shown.get("MaxInstanceLifetime"), None);
    assert_eq!(shown.get("PlacementGroup"), None);
    let (_, words) = kit.refused("UpdateAutoScalingGroup", named("pool").with("MaxInstanceLifetime", 60));
    assert!(words.contains("86400"), "{words}");
}

#[test]
fn a_write_to_a_missing_group_is_an_error() {
    let kit = Kit::with_template();
    for (action, params) in [
        ("UpdateAutoScalingGroup", named("none")),
        ("DeleteAutoScalingGroup", named("none")),
        ("SetDesiredCapacity", named("none").with("DesiredCapacity", 1)),
        ("SuspendProcesses", named("none")),
        ("DescribeLifecycleHooks", named("none")),
        ("DescribeScalingActivities", named("none")),
    ] {
        let expected = "AutoScalingGroup name not found - AutoScalingGroup 'none' not found";
        assert_eq!(
            kit.refused(action, params),
            ("ValidationError".to_owned(), expected.to_owned()),
            "{action}"
        );
    }
    assert!(kit.describe("none").is_none(), "a describe is an empty list");
}

#[test]
fn a_group_with_instances_is_not_deleted_without_force() {
    let kit = Kit::with_group(1);
    assert_eq!(kit.refused("DeleteAutoScalingGroup", named("pool")).0, "ResourceInUse");
    kit.end(&kit.ids("pool")[0], true).unwrap();
    assert_eq!(kit.refused("DeleteAutoScalingGroup", named("pool")).0, "ScalingActivityInProgress");
    kit.settle();
    kit.autoscaling("DeleteAutoScalingGroup", named("pool"));
    kit.settle();
    assert!(kit.describe("pool").is_none());
}

#[test]
fn a_forced_deletion_terminates_all_without_hooks() {
    let kit = Kit::with_group(3);
    let hook = named("pool")
        .with("LifecycleHookName", "drain")
        .with("LifecycleTransition", "autoscaling:EC2_INSTANCE_TERMINATING");
    kit.autoscaling("PutLifecycleHook", hook);
    let held = kit.ids("pool").remove(0);
    kit.end(&held, true).unwrap();
    kit.seconds(5);
    assert_eq!(kit.state(&held).as_deref(), Some("Terminating:Wait"));
    kit.autoscaling("DeleteAutoScalingGroup", named("pool").with("ForceDelete", true));
    let shown = kit.describe("pool").unwrap();
    assert_eq!(shown.text_of("Status"), Some("Delete in progress"));
    let sizes = ["MinSize", "MaxSize", "DesiredCapacity"].map(|name| shown.number_of(name));
    assert_eq!(sizes, [Some(0); 3]);
    kit.settle();
    assert!(kit.describe("pool").is_none());
    assert!(kit.machines().iter().all(|one| one.at("State.Name").unwrap().text() == Some("terminated")));
    kit.ec2("DeleteLaunchTemplate", Tree::new().with("LaunchTemplateName", "nodes"));
    assert_eq!(kit.simulator.leftovers(Some("eu-west-1")), [""; 0]);
}

#[test]
fn a_group_that_is_being_deleted_rejects_writes() {
    let kit = Kit::with_group(1);
    let id = kit.ids("pool").remove(0);
    kit.autoscaling("DeleteAutoScalingGroup", named("pool").with("ForceDelete", true));
    let words = "The AutoScaling group may not be modified while it is pending delete";
    assert_eq!(kit.refused("UpdateAutoScalingGroup", named("pool")).1, words);
    assert_eq!(kit.refused("SetDesiredCapacity", named("pool").with("DesiredCapacity", 0)).1, words);
    assert_eq!(kit.end(&id, true).unwrap_err().message, words);
    assert_eq!(
        kit.refused("SuspendProcesses", named("pool")).1,
        "Processes may not be suspended while the AutoScaling group is pending delete"
    );
    let (code, words) = kit.refused("CreateAutoScalingGroup", group("pool", 1));
    assert_eq!(code, "AlreadyExists");
    assert!(words.contains("is pending delete"), "{words}");
}

#[test]
fn deletion_protection_blocks_and_changes_nothing() {
    let kit = Kit::with_group(1);
    kit.autoscaling(
        "UpdateAutoScalingGroup",
        named("pool").with("DeletionProtection", "prevent-force-deletion"),
    );
    let force = named("pool").with("ForceDelete", true);
    assert_eq!(kit.refused("DeleteAutoScalingGroup", force.clone()).0, "ValidationError");
    assert_eq!(kit.states("pool"), ["InService"]);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("DeletionProtection", "none"));
    kit.autoscaling("DeleteAutoScalingGroup", force);
}

#[test]
fn the_quota_of_groups_is_enforced() {
    let kit = Kit::with_template();
    kit.change_settings(|settings| settings.max_groups = 1);
    kit.autoscaling("CreateAutoScalingGroup", group("one", 0));
    assert_eq!(kit.refused("CreateAutoScalingGroup", group("two", 0)).0, "LimitExceeded");
}

#[test]
fn a_maintenance_policy_has_both_bounds_at_most_100_apart() {
    let kit = Kit::with_group(0);
    let policy = |low: i64, high: i64| {
        let policy = Tree::new().with("MinHealthyPercentage", low).with("MaxHealthyPercentage", high);
        named("pool").with("InstanceMaintenancePolicy", policy)
    };
    kit.autoscaling("UpdateAutoScalingGroup", policy(50, 150));
    assert!(kit.describe("pool").unwrap().get("InstanceMaintenancePolicy").is_some());
    for (low, high) in [(50, 151), (101, 150), (50, 99), (-1, 100)] {
        assert_eq!(
            kit.refused("UpdateAutoScalingGroup", policy(low, high)).0,
            "ValidationError",
            "{low} {high}"
        );
    }
    kit.autoscaling("UpdateAutoScalingGroup", policy(-1, -1));
    assert!(kit.describe("pool").unwrap().get("InstanceMaintenancePolicy").is_none());
}

#[test]
fn a_describe_can_leave_the_instances_out() {
    let kit = Kit::with_group(2);
    let params = Tree::new().with("IncludeInstances", false);
    let reply = kit.autoscaling("DescribeAutoScalingGroups", params);
    assert_eq!(reply.items_of("AutoScalingGroups")[0].items_of("Instances").len(), 0);
}
