//! Remediation by example.

use capasg_cloud::LifecycleState;
use chrono::TimeDelta;

use crate::machine_pool::decide::testing::{Stage, kubernetes, terminations};

fn set_unhealthy(stage: &mut Stage, id: &str) {
    let machine = stage.instance(id).machine.as_mut().unwrap();
    machine.needs_remediation = true;
    machine.ready = false;
}

#[test]
fn d15_an_unhealthy_machine_of_a_pool_of_one_is_replaced() {
    let mut stage = Stage::new(1);
    set_unhealthy(&mut stage, "i-1");
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"]);
    stage.drained("i-1");
    assert_eq!(terminations(&stage.plan()), [(vec!["i-1"], false)], "the group launches another");
}

#[test]
fn d15_machines_are_replaced_one_by_one_unless_more_may_be_unavailable() {
    let mut stage = Stage::new(5);
    for id in ["i-1", "i-2", "i-3"] {
        set_unhealthy(&mut stage, id);
    }
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"]);
    stage.draining("i-1");
    assert!(kubernetes(&stage.plan()).is_empty(), "one is being deleted already");
    stage.desired.rollout.max_unavailable = 2;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-2"]);
}

#[test]
fn d15_a_replacement_that_has_not_joined_delays_the_next_one() {
    let mut stage = Stage::new(3);
    set_unhealthy(&mut stage, "i-1");
    stage.lifecycle("i-3", LifecycleState::Pending).instance("i-3").machine.as_mut().unwrap().has_node =
        false;
    assert!(kubernetes(&stage.plan()).is_empty());
    // A new one that is unhealthy itself is replaced, and not waited for.
    set_unhealthy(&mut stage, "i-3");
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-3"], "what never joined is deleted first");
}

/// With AWS events polls are minutes apart, and an event about a termination may be lost.
#[test]
fn d15_instances_are_not_chosen_by_an_old_view() {
    let mut stage = Stage::new(3);
    set_unhealthy(&mut stage, "i-1");
    stage.clock += TimeDelta::seconds(15);
    stage.observed.fresh_group = false;
    let plan = stage.plan();
    assert!(plan.needs.fresh_group && kubernetes(&plan).is_empty(), "{plan:?}");
}

#[test]
fn d15_missing_instances_delay_remediation() {
    let mut stage = Stage::new(3);
    stage.observed.instances.remove("i-3");
    set_unhealthy(&mut stage, "i-1");
    assert!(kubernetes(&stage.plan()).is_empty(), "a replacement could not be launched either");
}

#[test]
fn d15_ignored_and_paused_machines_are_not_replaced() {
    let mut stage = Stage::new(3);
    set_unhealthy(&mut stage, "i-1");
    stage.desired.remediate = false;
    assert!(stage.plan().is_empty());
    stage.desired.remediate = true;
    stage.instance("i-1").machine.as_mut().unwrap().paused = true;
    assert!(stage.plan().is_empty(), "core would not delete a paused Machine");
    stage.instance("i-1").machine.as_mut().unwrap().paused = false;
    stage.instance("i-1").asg_machine.as_mut().unwrap().paused = true;
    assert!(stage.plan().is_empty());
}

#[test]
fn d15_victims_are_deleted_from_a_live_list_only() {
    let mut stage = Stage::new(3);
    set_unhealthy(&mut stage, "i-1");
    stage.observed.live_machines = false;
    let plan = stage.plan();
    assert!(plan.is_empty() && plan.needs.live_machines);
}

#[test]
fn d8_d15_an_unhealthy_machine_is_the_victim_of_a_scale_in() {
    let mut stage = Stage::new(3);
    set_unhealthy(&mut stage, "i-3");
    stage.desired.replicas = 2;
    assert_eq!(kubernetes(&stage.plan()), ["annotate p-i-3", "delete p-i-3"]);
}

#[test]
fn d15_an_outdated_machine_that_is_unhealthy_is_replaced_within_one_budget() {
    let mut stage = Stage::new(3);
    stage.new_image().add("i-4", 2);
    stage.group().capacity.desired = 4;
    stage.group().capacity.max = 4;
    set_unhealthy(&mut stage, "i-2");
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-2"], "not another one for the rollout");
}

#[test]
fn d15_a_surge_that_never_launches_or_joins_delays_nothing() {
    let mut stage = Stage::new(3);
    stage.new_image();
    stage.group().capacity.desired = 4;
    set_unhealthy(&mut stage, "i-1");
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"], "the surge was not launched");
    stage.add("i-4", 2).machine.as_mut().unwrap().has_node = false;
    stage.instance("i-4").machine.as_mut().unwrap().ready = false;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"], "the surge does not join");
}
