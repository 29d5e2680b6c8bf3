//! Ends out of band, health reports and replacements.

use capasg_fake_aws::Tree;

use crate::kit::{Kit, group, named};

const TERMINATING: &str = "autoscaling:EC2_INSTANCE_TERMINATING";

fn drain_hook(kit: &Kit) {
    let params = named("pool").with("LifecycleHookName", "drain").with("LifecycleTransition", TERMINATING);
    kit.autoscaling("PutLifecycleHook", params);
}

fn report(id: &str, health: &str) -> Tree {
    Tree::new().with("InstanceId", id).with("HealthStatus", health)
}

#[test]
fn an_instance_terminated_in_ec2_is_replaced_while_its_hook_waits() {
    let kit = Kit::with_group(2);
    drain_hook(&kit);
    let ids = kit.ids("pool");
    kit.protect(&ids, true);
    kit.ec2("TerminateInstances", Tree::new().with("InstanceIds", vec![&ids[0]]));
    assert_eq!(kit.machine(&ids[0]).as_deref(), Some("shutting-down"));
    assert_eq!(kit.state(&ids[0]).as_deref(), Some("InService"), "the group does not know yet");
    kit.seconds(60);
    assert_eq!(kit.machine(&ids[0]).as_deref(), Some("terminated"));
    assert_eq!(
        kit.state(&ids[0]).as_deref(),
        Some("Terminating:Wait"),
        "the record waits, the machine is gone"
    );
    assert_eq!(
        kit.states("pool").iter().filter(|state| *state == "InService").count(),
        2,
        "replaced meanwhile"
    );
    let complete = named("pool")
        .with("LifecycleHookName", "drain")
        .with("InstanceId", &ids[0])
        .with("LifecycleActionResult", "CONTINUE");
    kit.autoscaling("CompleteLifecycleAction", complete);
    kit.seconds(5);
    assert_eq!(kit.state(&ids[0]), None);
}

#[test]
fn a_record_held_for_hours_outlives_the_instance_in_ec2() {
    let kit = Kit::with_group(1);
    let params = named("pool")
        .with("LifecycleHookName", "drain")
        .with("LifecycleTransition", TERMINATING)
        .with("HeartbeatTimeout", 7200);
    kit.autoscaling("PutLifecycleHook", params);
    let id = kit.ids("pool").remove(0);
    assert!(kit.simulator.kill(&kit.scope, &id));
    kit.seconds(6_000);
    assert_eq!(kit.state(&id).as_deref(), Some("Terminating:Wait"));
    kit.seconds(2_000);
    assert_eq!(kit.state(&id), None);
    kit.seconds(4_000);
    assert_eq!(kit.machine(&id), None);
}

#[test]
fn a_spot_interruption_warning_comes_two_minutes_ahead() {
    let kit = Kit::with_group(1);
    let id = kit.ids("pool").remove(0);
    assert!(kit.simulator.interrupt(&kit.scope, &id));
    kit.seconds(119);
    assert_eq!(kit.machine(&id).as_deref(), Some("running"));
    kit.seconds(2);
    assert_eq!(kit.machine(&id).as_deref(), Some("shutting-down"));
    kit.settle();
    assert_eq!(kit.states("pool"), ["InService"]);
    assert_ne!(kit.ids("pool")[0], id);
}

#[test]
fn an_instance_set_unhealthy_is_replaced_despite_protection() {
    let kit = Kit::with_group(1);
    let id = kit.ids("pool").remove(0);
    kit.protect(std::slice::from_ref(&id), true);
    kit.autoscaling("SetInstanceHealth", report(&id, "Unhealthy"));
    assert_eq!(kit.instances("pool")[0].text_of("HealthStatus"), Some("Unhealthy"));
    kit.settle();
    assert_ne!(kit.ids("pool"), [id]);
    assert_eq!(kit.states("pool"), ["InService"]);
}

#[test]
fn the_grace_period_covers_set_health_unless_it_says_otherwise() {
    let kit = Kit::with_template();
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 1).with("HealthCheckGracePeriod", 600));
    kit.settle();
    let id = kit.ids("pool").remove(0);
    kit.autoscaling("SetInstanceHealth", report(&id, "Unhealthy"));
    kit.settle();
    assert_eq!(kit.ids("pool"), std::slice::from_ref(&id), "no effect, no error");
    kit.autoscaling("SetInstanceHealth", report(&id, "Unhealthy").with("ShouldRespectGracePeriod", false));
    kit.settle();
    assert_ne!(kit.ids("pool"), [id]);
}

#[test]
fn a_stopped_instance_is_unhealthy_even_in_the_grace_period() {
    let kit = Kit::with_template();
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 1).with("HealthCheckGracePeriod", 6000));
    kit.settle();
    let id = kit.ids("pool").remove(0);
    kit.simulator.kill(&kit.scope, &id);
    kit.settle();
    assert_ne!(kit.ids("pool"), [id]);
}

#[test]
fn an_impaired_instance_is_replaced_after_the_grace_period() {
    let kit = Kit::with_template();
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 1).with("HealthCheckGracePeriod", 600));
    kit.settle();
    let id = kit.ids("pool").remove(0);
    assert!(kit.simulator.impair(&kit.scope, &id, true));
    let status = kit.ec2("DescribeInstanceStatus", Tree::new());
    let status = status.items_of("InstanceStatuses")[0].at("InstanceStatus.Status").unwrap().clone();
    assert_eq!(status.text(), Some("impaired"));
    kit.seconds(300);
    assert_eq!(kit.ids("pool"), std::slice::from_ref(&id), "grace");
    kit.seconds(600);
    assert_ne!(kit.ids("pool"), [id]);
}

#[test]
fn with_replace_unhealthy_suspended_health_is_set_only() {
    let kit = Kit::with_group(1);
    let id = kit.ids("pool").remove(0);
    let processes = named("pool").with("ScalingProcesses", vec!["ReplaceUnhealthy"]);
    kit.autoscaling("SuspendProcesses", processes.clone());
    kit.autoscaling("SetInstanceHealth", report(&id, "Unhealthy"));
    kit.settle();
    assert_eq!(kit.ids("pool"), std::slice::from_ref(&id));
    assert_eq!(kit.instances("pool")[0].text_of("HealthStatus"), Some("Unhealthy"));
    kit.autoscaling("ResumeProcesses", processes);
    kit.settle();
    assert_ne!(kit.ids("pool"), [id]);
}

#[test]
fn with_health_check_suspended_nothing_is_noticed() {
    let kit = Kit::with_group(1);
    let id = kit.ids("pool").remove(0);
    let processes = named("pool").with("ScalingProcesses", vec!["HealthCheck"]);
    kit.autoscaling("SuspendProcesses", processes.clone());
    kit.simulator.kill(&kit.scope, &id);
    kit.settle();
    assert_eq!(kit.instances("pool")[0].text_of("HealthStatus"), Some("Healthy"));
    kit.autoscaling("ResumeProcesses", processes);
    kit.settle();
    assert_ne!(kit.ids("pool"), [id]);
}

#[test]
fn set_instance_health_is_validated() {
    let kit = Kit::with_group(1);
    let id = kit.ids("pool").remove(0);
    assert_eq!(kit.refused("SetInstanceHealth", report(&id, "Ill")).0, "ValidationError");
    let (_, words) = kit.refused("SetInstanceHealth", report("i-00000000000000000", "Healthy"));
    assert!(words.starts_with("Instance Id not found"));
}
