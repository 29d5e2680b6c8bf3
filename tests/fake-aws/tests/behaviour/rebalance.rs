//! Zones that drift apart are balanced, unless that is suspended or protection forbids it.

use std::collections::BTreeMap;

use crate::kit::{Kit, named, texts};

fn zones(kit: &Kit) -> Vec<usize> {
    let mut zones =
        BTreeMap::from(["eu-west-1a", "eu-west-1b", "eu-west-1c"].map(|zone| (zone.to_owned(), 0)));
    for zone in texts(&kit.instances("pool"), "AvailabilityZone") {
        *zones.entry(zone).or_default() += 1;
    }
    zones.into_values().collect()
}

/// A group of four, two in zone a and b each: both instances of zone c were ended exactly.
fn lopsided(kit: &Kit) {
    for instance in kit.instances("pool") {
        if instance.text_of("AvailabilityZone") == Some("eu-west-1c") {
            kit.end(instance.text_of("InstanceId").unwrap(), true).unwrap();
        }
    }
    kit.seconds(30);
    assert_eq!(zones(kit), [2, 2, 0]);
}

#[test]
fn rebalancing_launches_before_it_terminates() {
    let kit = Kit::with_group(6);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("MaxSize", 6));
    lopsided(&kit);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("MaxSize", 4));
    kit.seconds(63);
    let mut states = kit.states("pool");
    states.sort();
    assert_eq!(
        states,
        ["InService", "InService", "InService", "InService", "Pending"],
        "above MaxSize for a while"
    );
    kit.seconds(15);
    assert_eq!(kit.desired("pool"), 4);
    kit.settle();
    let mut spread = zones(&kit);
    spread.sort_unstable();
    assert_eq!(spread, [1, 1, 2]);
}

#[test]
fn with_az_rebalance_suspended_nothing_moves() {
    let kit = Kit::with_group(6);
    kit.autoscaling("SuspendProcesses", named("pool").with("ScalingProcesses", vec!["AZRebalance"]));
    lopsided(&kit);
    let before = kit.ids("pool");
    kit.seconds(600);
    assert_eq!(kit.ids("pool"), before);
}

#[test]
fn protected_instances_are_not_moved() {
    let kit = Kit::with_group(6);
    kit.protect(&kit.ids("pool"), true);
    lopsided(&kit);
    let before = kit.ids("pool");
    kit.seconds(600);
    assert_eq!(kit.ids("pool"), before);
}
