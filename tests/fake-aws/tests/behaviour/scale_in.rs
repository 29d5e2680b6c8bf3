//! The group's own choice of victims, and what protection and bounds do to it.

use std::collections::BTreeSet;

use capasg_fake_aws::Tree;

use crate::kit::{Kit, group, named, texts};

#[test]
fn a_lower_desired_capacity_terminates_unprotected_instances() {
    let kit = Kit::with_group(3);
    let ids = kit.ids("pool");
    kit.protect(&ids[..2], true);
    kit.set_desired(1);
    kit.settle();
    assert_eq!(kit.ids("pool"), ids[..2], "one ended, then nobody was left to end");
    assert_eq!(kit.desired("pool"), 1);
}

#[test]
fn with_all_protected_none_terminates_and_desired_stays_low() {
    let kit = Kit::with_group(2);
    kit.protect(&kit.ids("pool"), true);
    kit.set_desired(0);
    kit.settle();
    assert_eq!(kit.states("pool"), ["InService"; 2]);
    assert_eq!(kit.desired("pool"), 0);
    let words =
        "Could not scale to desired capacity because all remaining instances are protected from scale in.";
    let told = kit.activities("pool");
    assert_eq!(told.iter().filter(|one| one.text_of("StatusMessage") == Some(words)).count(), 1, "told once");
    kit.protect(&kit.ids("pool"), false);
    kit.settle();
    assert_eq!(kit.states("pool"), [""; 0], "the scale-in goes on when protection goes");
}

#[test]
fn scale_in_protection_begins_in_service() {
    let kit = Kit::with_template();
    kit.autoscaling(
        "CreateAutoScalingGroup",
        group("pool", 2).with("NewInstancesProtectedFromScaleIn", true),
    );
    kit.seconds(5);
    assert_eq!(kit.states("pool"), ["Pending"; 2]);
    kit.set_desired(1);
    kit.settle();
    assert_eq!(kit.states("pool"), ["InService"]);
    kit.set_desired(0);
    kit.settle();
    assert_eq!(kit.states("pool"), ["InService"], "now it is protected");
}

#[test]
fn a_lower_desired_capacity_withdraws_pending_launches() {
    let kit = Kit::with_group(1);
    kit.set_desired(3);
    kit.seconds(1);
    kit.set_desired(1);
    kit.settle();
    assert_eq!(kit.machines().len(), 1);
}

#[test]
fn the_zone_with_most_instances_shrinks_first() {
    let kit = Kit::with_group(4);
    let count = |zone: &str| {
        texts(&kit.instances("pool"), "AvailabilityZone").iter().filter(|own| own.as_str() == zone).count()
    };
    let fullest =
        ["eu-west-1a", "eu-west-1b", "eu-west-1c"].into_iter().max_by_key(|zone| count(zone)).unwrap();
    assert_eq!(count(fullest), 2);
    kit.set_desired(3);
    kit.settle();
    assert_eq!(count(fullest), 1);
}

#[test]
fn unhealthy_instances_terminate_first_outside_the_policy() {
    let kit = Kit::with_group(3);
    kit.autoscaling("SuspendProcesses", named("pool").with("ScalingProcesses", vec!["ReplaceUnhealthy"]));
    let ill = kit.ids("pool").remove(2);
    kit.autoscaling(
        "SetInstanceHealth",
        Tree::new().with("InstanceId", &ill).with("HealthStatus", "Unhealthy"),
    );
    kit.set_desired(2);
    kit.settle();
    assert!(!kit.ids("pool").contains(&ill));
}

#[test]
fn newest_instance_policy_terminates_the_newest() {
    let kit = Kit::with_template();
    let params = group("pool", 1).with("TerminationPolicies", vec!["NewestInstance"]);
    kit.autoscaling("CreateAutoScalingGroup", params.with("VPCZoneIdentifier", "subnet-0a1b2c3d"));
    kit.settle();
    let old: BTreeSet<String> = kit.ids("pool").into_iter().collect();
    kit.set_desired(3);
    kit.settle();
    kit.set_desired(1);
    kit.settle();
    assert_eq!(kit.ids("pool").into_iter().collect::<BTreeSet<_>>(), old);
}

#[test]
fn set_desired_capacity_must_keep_the_bounds() {
    let kit = Kit::with_group(2);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("MinSize", 1).with("MaxSize", 2));
    let set =
        |desired: i64| kit.refused("SetDesiredCapacity", named("pool").with("DesiredCapacity", desired)).1;
    assert_eq!(set(3), "New SetDesiredCapacity value 3 is above max value 2 for the AutoScalingGroup.");
    assert_eq!(set(0), "New SetDesiredCapacity value 0 is below min value 1 for the AutoScalingGroup.");
    assert_eq!(kit.desired("pool"), 2);
}

#[test]
fn a_cooldown_blocks_only_calls_that_honor_it() {
    let kit = Kit::with_group(1);
    let set = named("pool").with("DesiredCapacity", 2);
    let (code, _) = kit.refused("SetDesiredCapacity", set.clone().with("HonorCooldown", true));
    assert_eq!(code, "ScalingActivityInProgress");
    kit.autoscaling("SetDesiredCapacity", set.clone());
    kit.seconds(600);
    kit.autoscaling("SetDesiredCapacity", set.with("HonorCooldown", true));
}
