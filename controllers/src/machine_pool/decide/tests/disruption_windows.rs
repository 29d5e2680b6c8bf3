//! Pauses, windows and the budget for all disruptions, by example.

use capasg_api::{
    ASGMachinePoolSpec,
    pool::{ResolvedDisruption, RolloutMode, RolloutWait},
};
use capasg_cloud::{HealthStatus, LifecycleState};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::machine_pool::decide::testing::{Stage, cloud, facts, kubernetes, terminations};
use crate::machine_pool::model::memory::record::{Entry, Report};
use crate::machine_pool::model::{Ec2Answer, Known, RolloutPhase};

/// The clock of a stage shows Friday 2027-01-15T08:00:00Z.
fn disruption(value: &Value) -> ResolvedDisruption {
    let spec = ASGMachinePoolSpec {
        disruption: Some(serde_json::from_value(value.clone()).unwrap()),
        ..ASGMachinePoolSpec::default()
    };
    spec.disruption(3)
}

fn window(schedule: &str) -> ResolvedDisruption {
    disruption(&json!({ "windows": [{ "schedule": schedule, "durationSeconds": 3600 }] }))
}

#[test]
fn p54_a_paused_rollout_disrupts_no_available_node() {
    let mut stage = Stage::new(3);
    stage.new_image().desired.rollout.mode = RolloutMode::Paused;
    let plan = stage.plan();
    assert!(plan.is_empty(), "{plan:?}");
    assert_eq!(plan.rollout, Some(RolloutPhase::Paused { draining: Vec::new() }));
    let mut stage = Stage::surged();
    stage.desired.rollout.mode = RolloutMode::Paused;
    assert!(stage.plan().is_empty(), "the surge has joined: {:?}", stage.plan());
    stage.draining("i-1");
    assert!(kubernetes(&stage.plan()).is_empty(), "what drains was the surge");
    stage.drained("i-1");
    assert_eq!(terminations(&stage.plan()), [(vec!["i-1"], true)], "it continues, and is not replaced");
}

#[test]
fn w27_p54_nothing_starts_before_a_window_opens() {
    let mut stage = Stage::new(3);
    stage.new_image().desired.disruption = window("0 22 * * *");
    let plan = stage.plan();
    assert!(plan.is_empty(), "{plan:?}");
    assert_eq!(plan.requeue_after, Some(TimeDelta::hours(14)));
    let status = plan.rollout_status.unwrap();
    assert_eq!(status.waiting_for, Some(RolloutWait::Window));
    assert_eq!(status.next_window, Some(stage.clock + TimeDelta::hours(14)));
    assert_eq!(status.started_at, None);
    stage.clock += TimeDelta::hours(14);
    let plan = stage.plan();
    assert_eq!(cloud(&plan).len(), 1, "the surge");
    assert_eq!(plan.rollout_status.unwrap().started_at, Some(stage.clock));
}

#[test]
fn p54_after_a_window_instances_that_have_not_joined_are_removed() {
    let mut stage = Stage::surged();
    stage.desired.disruption = window("30 7 * * *");
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"]);
    assert_eq!(stage.plan().requeue_after, Some(TimeDelta::minutes(30)), "when it closes");
    stage.clock += TimeDelta::minutes(30);
    assert!(stage.plan().is_empty(), "nothing available is deleted: {:?}", stage.plan());
    stage.instance("i-4").machine.as_mut().unwrap().has_node = false;
    assert_eq!(
        kubernetes(&stage.plan()),
        ["annotate p-i-4", "delete p-i-4"],
        "what has not joined is deleted first"
    );
}

/// A new leader whose first read of the launch template fails knows of the rollout from the status.
#[test]
fn a_launch_template_that_cannot_be_read_removes_no_surge() {
    let mut stage = Stage::surged();
    stage.desired.disruption = window("0 22 * * *");
    let reported = stage.plan().rollout_status.unwrap();
    stage.observed.template = Known::Unread(None);
    let scale_in = ["annotate p-i-3", "delete p-i-3"];
    assert_eq!(kubernetes(&stage.plan()), scale_in, "no rollout is known");
    let report = Report::Status {
        provisioned: None,
        rollout: Some(&reported),
        rolling_out: true,
        nodes: None,
        external: false,
    };
    stage.memory.record(Entry::Reported(report), stage.clock);
    assert!(stage.plan().is_empty(), "{:?}", stage.plan());
    stage.desired.replicas = 2;
    assert_eq!(kubernetes(&stage.plan()), scale_in, "one more than the surge");
}

#[test]
fn a_window_that_cannot_be_read_never_opens() {
    let mut stage = Stage::surged();
    stage.desired.disruption = window("0 25 * * *");
    assert!(matches!(stage.plan().rollout, Some(RolloutPhase::Closed { next: None, .. })));
}

#[test]
fn windows_delay_neither_scale_in_nor_remediation() {
    let mut stage = Stage::new(3);
    stage.desired.disruption = window("0 22 * * *");
    stage.instance("i-2").machine.as_mut().unwrap().needs_remediation = true;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-2"]);
    stage.instance("i-2").machine.as_mut().unwrap().needs_remediation = false;
    stage.desired.replicas = 2;
    assert_eq!(kubernetes(&stage.plan()), ["annotate p-i-1", "delete p-i-1"]);
}

/// Its drain begins by the same decision: the surge that makes up for it is no reason for another.
#[test]
fn a_termination_by_aws_counts_from_the_decision_to_drain() {
    let mut stage = Stage::surged();
    stage.desired.disruption = disruption(&json!({ "maxDisrupted": 1 }));
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"], "a surge of one is there");
    stage.lifecycle("i-2", LifecycleState::TerminatingWait);
    stage.instance("i-2").ec2 = Some(Ec2Answer { facts: Some(facts("i-2", true)), as_of: stage.clock });
    stage.group().capacity.desired = 3;
    stage.group().capacity.max = 3;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-2"]);
}

#[test]
fn one_budget_holds_for_all_reasons_together() {
    let mut stage = Stage::new(5);
    stage.new_image();
    stage.desired.rollout.max_unavailable = 4;
    stage.desired.disruption = disruption(&json!({ "maxDisrupted": 2 }));
    stage.group().capacity.desired = 6;
    stage.group().capacity.max = 6;
    // A rollout may take two.
    assert_eq!(kubernetes(&stage.plan()).len(), 2);
    // One that drains for whatever reason counts.
    stage.draining("i-1");
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-3"]);
    // So does one that is terminated and not replaced yet.
    stage.observed.instances.remove("i-1");
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-3"]);
    // Remediation has what is left, and a rollout nothing more.
    stage.instance("i-3").machine.as_mut().unwrap().needs_remediation = true;
    stage.instance("i-4").machine.as_mut().unwrap().needs_remediation = true;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-3"]);
    stage.draining("i-3");
    assert!(kubernetes(&stage.plan()).is_empty());
}

#[test]
fn an_instance_that_never_joined_does_not_wait() {
    let mut stage = Stage::new(3);
    stage.new_image();
    stage.desired.rollout.max_unavailable = 3;
    stage.desired.disruption = disruption(&json!({ "maxDisrupted": 1 }));
    stage.desired.rollout.max_surge = 0;
    stage.draining("i-1");
    let machine = stage.instance("i-3").machine.as_mut().unwrap();
    (machine.has_node, machine.ready) = (false, false);
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-3"]);
}

#[test]
fn a_scale_in_annotates_and_deletes_victims_within_the_budget() {
    let mut stage = Stage::new(6);
    stage.desired.replicas = 2;
    stage.desired.disruption = disruption(&json!({ "maxDisrupted": 2 }));
    let steps = kubernetes(&stage.plan());
    assert_eq!(steps, ["annotate p-i-1", "annotate p-i-2", "delete p-i-1", "delete p-i-2"]);
}

#[test]
fn a_victim_with_do_not_disrupt_that_never_joined_waits_for_the_others() {
    let mut stage = Stage::new(4);
    stage.desired.replicas = 0;
    stage.desired.disruption = disruption(&json!({ "maxDisrupted": 2 }));
    let keep = stage.instance("i-1");
    keep.asg_machine.as_mut().unwrap().do_not_disrupt = true;
    let machine = keep.machine.as_mut().unwrap();
    (machine.has_node, machine.ready) = (false, false);
    assert_eq!(
        kubernetes(&stage.plan()),
        ["annotate p-i-2", "annotate p-i-3", "delete p-i-2", "delete p-i-3"]
    );
    // It does not wait for the budget once no other is left.
    for other in ["i-2", "i-3", "i-4"] {
        stage.draining(other);
    }
    assert_eq!(kubernetes(&stage.plan()), ["annotate p-i-1", "delete p-i-1"]);
}

#[test]
fn a_window_may_allow_fewer_than_the_pool() {
    let mut stage = Stage::new(5);
    stage.new_image();
    stage.desired.rollout.max_surge = 0;
    stage.desired.rollout.max_unavailable = 4;
    stage.desired.disruption = disruption(&json!({
        "maxDisrupted": 3,
        "windows": [{ "schedule": "30 7 * * *", "durationSeconds": 3600, "maxDisrupted": 1 }],
    }));
    assert_eq!(kubernetes(&stage.plan()).len(), 1);
}

#[test]
fn the_dead_never_wait() {
    let mut stage = Stage::new(3);
    stage.desired.disruption = disruption(&json!({
        "maxDisrupted": 1, "windows": [{ "schedule": "0 22 * * *", "durationSeconds": 900 }],
    }));
    stage.draining("i-1");
    stage.instance("i-2").listed.as_mut().unwrap().health = HealthStatus::Unhealthy;
    stage.lifecycle("i-2", capasg_cloud::LifecycleState::TerminatingWait);
    stage.instance("i-2").ec2 = Some(crate::machine_pool::model::Ec2Answer {
        facts: Some(crate::machine_pool::decide::testing::facts("i-2", false)),
        as_of: stage.clock,
    });
    let steps = kubernetes(&stage.plan());
    assert!(steps.contains(&"delete p-i-2".to_owned()), "{steps:?}");
}
