//! Stopped machines, and replacements that serve before the replaced instance ends.

use capasg_fake_aws::Tree;

use crate::kit::{Kit, data, named};

fn unhealthy(kit: &Kit, id: &str) {
    let params = Tree::new().with("InstanceId", id).with("HealthStatus", "Unhealthy");
    kit.autoscaling("SetInstanceHealth", params.with("ShouldRespectGracePeriod", false));
}

fn policy(kit: &Kit, least: i64, most: i64) {
    let percentages = Tree::new().with("MinHealthyPercentage", least).with("MaxHealthyPercentage", most);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("InstanceMaintenancePolicy", percentages));
}

fn running(kit: &Kit) -> usize {
    kit.machines().iter().filter(|one| one.at("State.Name").and_then(Tree::text) == Some("running")).count()
}

#[test]
fn a_stopped_instance_is_unhealthy_and_replaced() {
    let kit = Kit::with_group(2);
    let ids = kit.ids("pool");
    kit.protect(&ids, true);
    assert!(kit.simulator.stop(&kit.scope, &ids[0]));
    assert_eq!(kit.machine(&ids[0]).as_deref(), Some("stopping"));
    assert_eq!(kit.state(&ids[0]).as_deref(), Some("InService"), "the group does not know yet");
    kit.settle();
    assert_eq!(kit.machine(&ids[0]).as_deref(), Some("terminated"));
    assert_eq!(kit.states("pool"), ["InService", "InService"]);
}

#[test]
fn a_stopped_instance_stays_while_health_checks_are_suspended() {
    let kit = Kit::with_group(1);
    let id = kit.ids("pool").remove(0);
    let process = || named("pool").with("ScalingProcesses", vec!["HealthCheck"]);
    kit.autoscaling("SuspendProcesses", process());
    assert!(kit.simulator.stop(&kit.scope, &id));
    kit.settle();
    assert_eq!(kit.machine(&id).as_deref(), Some("stopped"));
    assert_eq!(kit.state(&id).as_deref(), Some("InService"));
    kit.autoscaling("ResumeProcesses", process());
    kit.settle();
    assert_eq!(kit.machine(&id).as_deref(), Some("terminated"));
    assert_ne!(kit.ids("pool"), [id]);
}

#[test]
fn a_policy_above_a_hundred_percent_launches_before_it_ends() {
    let kit = Kit::with_group(2);
    policy(&kit, 100, 110);
    let ids = kit.ids("pool");
    unhealthy(&kit, &ids[0]);
    kit.seconds(15);
    assert_eq!(kit.instances("pool").len(), 3, "one more than desired");
    assert_eq!(kit.state(&ids[0]).as_deref(), Some("InService"), "until its replacement serves");
    kit.settle();
    assert_eq!(kit.state(&ids[0]), None);
    assert_eq!((kit.desired("pool"), running(&kit)), (2, 2));
    policy(&kit, -1, -1);
    let ids = kit.ids("pool");
    unhealthy(&kit, &ids[0]);
    kit.seconds(8);
    assert_ne!(kit.state(&ids[0]).as_deref(), Some("InService"), "at once without a policy");
}

#[test]
fn a_dead_machine_is_not_waited_for_and_a_recovered_one_stays() {
    let kit = Kit::with_group(2);
    policy(&kit, 100, 200);
    let ids = kit.ids("pool");
    kit.protect(&ids, true);
    unhealthy(&kit, &ids[0]);
    kit.seconds(8);
    let well = Tree::new().with("InstanceId", &ids[0]).with("HealthStatus", "Healthy");
    kit.autoscaling("SetInstanceHealth", well);
    kit.settle();
    assert_eq!(kit.state(&ids[0]).as_deref(), Some("InService"));
    assert_eq!(kit.instances("pool").len(), 2, "the surplus one went");
    assert!(kit.simulator.kill(&kit.scope, &ids[1]));
    kit.seconds(17);
    assert_ne!(kit.state(&ids[1]).as_deref(), Some("InService"));
}

#[test]
fn capacity_rebalance_replaces_a_spot_instance_after_its_replacement_serves() {
    let kit = Kit::new();
    let market = Tree::new().with("MarketType", "spot");
    kit.template("nodes", data().with("InstanceMarketOptions", market));
    kit.autoscaling("CreateAutoScalingGroup", crate::kit::group("pool", 1));
    kit.settle();
    let id = kit.ids("pool").remove(0);
    assert!(kit.simulator.recommend(&kit.scope, &id));
    kit.settle();
    assert_eq!(kit.ids("pool").first(), Some(&id), "without rebalancing it is news alone");
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("CapacityRebalance", true));
    assert!(kit.simulator.recommend(&kit.scope, &id));
    kit.seconds(10);
    assert_eq!(kit.instances("pool").len(), 2);
    assert_eq!(kit.state(&id).as_deref(), Some("InService"));
    kit.settle();
    assert_eq!(kit.state(&id), None);
    assert_eq!(kit.states("pool"), ["InService"]);
}

#[test]
fn an_instance_that_returns_from_standby_is_not_replaced_for_what_was_before() {
    let kit = Kit::new();
    let market = Tree::new().with("MarketType", "spot");
    kit.template("nodes", data().with("InstanceMarketOptions", market));
    kit.autoscaling("CreateAutoScalingGroup", crate::kit::group("pool", 2).with("CapacityRebalance", true));
    kit.settle();
    let id = kit.ids("pool").remove(0);
    assert!(kit.simulator.recommend(&kit.scope, &id));
    kit.seconds(10);
    assert_eq!(kit.instances("pool").len(), 3);
    let one = || named("pool").with("InstanceIds", vec![id.clone()]);
    kit.autoscaling("EnterStandby", one().with("ShouldDecrementDesiredCapacity", true));
    kit.settle();
    kit.autoscaling("ExitStandby", one());
    kit.settle();
    assert_eq!(kit.states("pool"), ["InService", "InService"]);
}
