//! Suspended processes.

use crate::kit::{Kit, named};

fn suspend(kit: &Kit, process: &str) {
    kit.autoscaling("SuspendProcesses", named("pool").with("ScalingProcesses", vec![process]));
}

fn resume(kit: &Kit, process: &str) {
    kit.autoscaling("ResumeProcesses", named("pool").with("ScalingProcesses", vec![process]));
}

#[test]
fn no_launch_while_launch_is_suspended() {
    let kit = Kit::with_group(1);
    suspend(&kit, "Launch");
    kit.set_desired(2);
    kit.settle();
    assert_eq!(kit.states("pool").len(), 1);
    resume(&kit, "Launch");
    kit.settle();
    assert_eq!(kit.states("pool").len(), 2);
}

#[test]
fn with_launch_suspended_unhealthy_instances_still_terminate() {
    let kit = Kit::with_group(1);
    suspend(&kit, "Launch");
    kit.simulator.kill(&kit.scope, &kit.ids("pool")[0]);
    kit.settle();
    assert_eq!(kit.states("pool").len(), 0);
}

#[test]
fn with_terminate_suspended_only_terminations_by_id_work() {
    let kit = Kit::with_group(3);
    suspend(&kit, "Terminate");
    kit.set_desired(2);
    kit.settle();
    assert_eq!(kit.states("pool").len(), 3);
    kit.end(&kit.ids("pool")[0], true).unwrap();
    kit.settle();
    assert_eq!(kit.states("pool").len(), 2);
    resume(&kit, "Terminate");
    kit.settle();
    assert_eq!(kit.states("pool").len(), 1);
}

#[test]
fn with_terminate_suspended_unhealthy_instances_stay() {
    let kit = Kit::with_group(1);
    suspend(&kit, "Terminate");
    let id = kit.ids("pool").remove(0);
    kit.simulator.kill(&kit.scope, &id);
    kit.settle();
    assert_eq!(kit.ids("pool"), [id]);
}

#[test]
fn suspensions_are_shown_and_all_can_go_at_once() {
    let kit = Kit::with_group(0);
    suspend(&kit, "AZRebalance");
    let group = kit.describe("pool").unwrap();
    assert_eq!(group.items_of("SuspendedProcesses")[0].text_of("ProcessName"), Some("AZRebalance"));
    kit.autoscaling("SuspendProcesses", named("pool"));
    assert_eq!(kit.describe("pool").unwrap().items_of("SuspendedProcesses").len(), 9);
    kit.autoscaling("ResumeProcesses", named("pool"));
    assert_eq!(kit.describe("pool").unwrap().items_of("SuspendedProcesses").len(), 0);
}

#[test]
fn an_unknown_process_is_rejected() {
    let kit = Kit::with_group(0);
    let (code, _) = kit.refused("SuspendProcesses", named("pool").with("ScalingProcesses", vec!["Sleep"]));
    assert_eq!(code, "ValidationError");
}
