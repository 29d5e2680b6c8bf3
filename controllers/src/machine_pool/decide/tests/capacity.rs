//! Capacity and victims by example.

use capasg_api::pool::RolloutType;
use capasg_cloud::{Capacity, GroupChange, LifecycleState, Write};
use chrono::TimeDelta;

use crate::machine_pool::decide::testing::{Stage, cloud, kubernetes, now, set_desired, terminations};
use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::{Bounds, ReplicaOwner, ScaleInOrder};
use crate::names::SCALE_IN_VALUE;

fn capacity(min: i32, max: i32, desired: i32) -> Write {
    let change =
        GroupChange { min: Some(min), max: Some(max), desired: Some(desired), ..GroupChange::default() };
    Write::UpdateGroup { group: "g".into(), change: Box::new(change) }
}

#[test]
fn a_settled_pool_needs_nothing() {
    let plan = Stage::new(3).plan();
    assert!(plan.is_empty(), "{plan:?}");
    assert!(plan.needs.is_empty(), "{:?}", plan.needs);
    assert!(!plan.in_transition);
}

#[test]
fn g1_up_sends_bounds_and_desired_in_one_call() {
    let mut stage = Stage::new(3);
    stage.desired.replicas = 5;
    assert_eq!(cloud(&stage.plan()), [&capacity(0, 5, 5)]);
}

/// `ExitStandby` raises desired capacity, and is rejected beyond MaxSize.
#[test]
fn p43_max_size_includes_instances_in_standby() {
    let mut stage = Stage::new(3);
    stage.lifecycle("i-2", LifecycleState::Standby);
    stage.group().capacity.desired = 2;
    assert_eq!(cloud(&stage.plan()), [&capacity(0, 4, 3)], "also before another serves in its place");
}

#[test]
fn an_increase_needs_no_settled_view_unless_more_was_written_since() {
    let mut stage = Stage::new(3);
    stage.desired.replicas = 4;
    stage.observe(now());
    stage.unsettled();
    assert_eq!(cloud(&stage.plan()), [&capacity(0, 4, 4)]);
    stage.made(&set_desired(5), now());
    assert!(cloud(&stage.plan()).is_empty(), "5 was written since: 4 would be a way down");
}

#[test]
fn only_an_increase_is_decided_by_an_unsettled_view() {
    let mut stage = Stage::new(3);
    stage.drained("i-1").unsettled();
    stage.desired.replicas = 1;
    stage.desired.settings.default_cooldown = 10;
    let plan = stage.plan();
    assert!(plan.is_empty(), "{plan:?}");
    assert!(plan.in_transition);
}

#[test]
fn d7_a_scale_in_annotates_and_deletes_machines_and_terminates_nothing() {
    let mut stage = Stage::new(5);
    stage.desired.replicas = 3;
    let plan = stage.plan();
    // i-1 and i-2 are the oldest of the zones with two instances.
    assert_eq!(kubernetes(&plan), ["annotate p-i-1", "annotate p-i-2", "delete p-i-1", "delete p-i-2"]);
    assert!(cloud(&plan).is_empty(), "desired capacity stays until a drained instance is terminated");
}

#[test]
fn victims_are_chosen_from_a_live_list_only() {
    let mut stage = Stage::new(3);
    stage.desired.replicas = 2;
    stage.observed.live_machines = false;
    let plan = stage.plan();
    assert!(plan.is_empty());
    assert!(plan.needs.live_machines);
}

#[test]
fn no_more_victims_are_chosen_than_a_fresh_read_shows_surplus() {
    let mut stage = Stage::new(3);
    stage.desired.replicas = 2;
    stage.observed.fresh_group = false;
    let plan = stage.plan();
    assert!(
        plan.is_empty() && plan.needs.fresh_group,
        "another actor may have put one into standby: {plan:?}"
    );
}

/// An instance maintenance policy, or capacity rebalancing, until it is corrected.
#[test]
fn a_surplus_that_aws_launched_is_left_to_aws_at_first() {
    let mut stage = Stage::new(4);
    stage.desired.replicas = 3;
    stage.group().capacity.desired = 3;
    stage.instance("i-4").machine.as_mut().unwrap().has_node = false;
    let minutes = |minutes| now() - TimeDelta::minutes(minutes);
    stage.observe(minutes(9));
    let plan = stage.plan();
    assert!(kubernetes(&plan).is_empty(), "AWS terminates the instance that it replaces: {plan:?}");
    assert_eq!(plan.requeue_after, Some(TimeDelta::minutes(1)));
    stage.desired.replicas = 5;
    assert_eq!(cloud(&stage.plan()), [&capacity(0, 5, 5)], "it holds up no scale-out");
    stage.desired.replicas = 3;

    stage.desired.owner = ReplicaOwner::External(Bounds { min: 0, max: 9 });
    assert!(!kubernetes(&stage.plan()).is_empty(), "another actor lowered desired capacity");
    stage.desired.owner = ReplicaOwner::MachinePool;

    stage.memory = PoolMemory::default();
    stage.observe(minutes(10));
    assert_eq!(kubernetes(&stage.plan()), ["annotate p-i-4", "delete p-i-4"], "AWS did not");
}

#[test]
fn d8_annotated_machines_are_chosen_first() {
    let mut stage = Stage::new(4);
    stage.desired.replicas = 3;
    stage.instance("i-3").machine.as_mut().unwrap().delete_annotation = Some("2026-01-01".into());
    stage.instance("i-4").machine.as_mut().unwrap().has_node = false;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-3"], "the annotation of a user is kept");
}

#[test]
fn victims_are_chosen_in_the_documented_order() {
    let first = |change: &dyn Fn(&mut Stage)| {
        let mut stage = Stage::new(6);
        stage.desired.replicas = 5;
        // Else the one too many would be the surge of a rollout.
        stage.desired.rollout.type_ = RolloutType::OnDelete;
        change(&mut stage);
        kubernetes(&stage.plan()).pop().unwrap()
    };
    assert_eq!(first(&|_| ()), "delete p-i-1", "the oldest");
    assert_eq!(first(&|s| s.desired.scale_in_order = ScaleInOrder::Newest), "delete p-i-6");
    let ready = |s: &mut Stage, id: &str| s.instance(id).machine.as_mut().unwrap().ready = false;
    assert_eq!(first(&|s| ready(s, "i-4")), "delete p-i-4", "failing");
    let outdated = |s: &mut Stage| {
        s.instance("i-5").listed.as_mut().unwrap().instance_type = Some("t3.large".into());
    };
    assert_eq!(first(&outdated), "delete p-i-5", "outdated");
    assert_eq!(first(&|s| (outdated(s), ready(s, "i-4")).1), "delete p-i-4", "failing before outdated");
    let crowded = |s: &mut Stage| s.instance("i-3").listed.as_mut().unwrap().zone = "b".into();
    assert_eq!(first(&crowded), "delete p-i-2", "the oldest of the zone with most");
}

#[test]
fn d9_a_victim_without_a_machine_is_waited_for() {
    let mut stage = Stage::new(3);
    stage.desired.replicas = 2;
    stage.instance("i-2").machine = None;
    let plan = stage.plan();
    assert!(plan.is_empty(), "it never joined, so it is chosen: {plan:?}");
}

#[test]
fn an_instance_that_is_being_deleted_counts() {
    let mut stage = Stage::new(5);
    stage.draining("i-5");
    stage.desired.replicas = 4;
    assert!(kubernetes(&stage.plan()).is_empty());
    stage.desired.replicas = 3;
    assert_eq!(kubernetes(&stage.plan()), ["annotate p-i-1", "delete p-i-1"]);
}

#[test]
fn only_our_annotation_is_removed_when_replicas_increase_again() {
    let mut stage = Stage::new(3);
    stage.instance("i-1").machine.as_mut().unwrap().delete_annotation = Some(SCALE_IN_VALUE.into());
    stage.instance("i-2").machine.as_mut().unwrap().delete_annotation = Some("true".into());
    assert_eq!(kubernetes(&stage.plan()), ["unannotate p-i-1"]);
}

#[test]
fn missing_launches_are_given_up_before_anything_is_terminated() {
    // Desired 5, three launched, replicas lowered to 3.
    let mut stage = Stage::new(3);
    stage.group().capacity = Capacity { min: 0, max: 5, desired: 5 };
    stage.observe(now() - TimeDelta::seconds(14));
    let plan = stage.plan();
    assert!(
        plan.is_empty() && plan.requeue_after == Some(TimeDelta::seconds(1)),
        "they may run by now: {plan:?}"
    );
    stage.clock += TimeDelta::seconds(1);
    let plan = stage.plan();
    assert_eq!(cloud(&plan), [&capacity(0, 3, 3)]);
    assert!(kubernetes(&plan).is_empty());
    // Lowered to 2: first to what runs, and only then is a victim chosen.
    stage.desired.replicas = 2;
    let plan = stage.plan();
    assert_eq!(cloud(&plan), [&capacity(0, 3, 3)]);
    assert!(kubernetes(&plan).is_empty());
}

#[test]
fn a_launch_is_followed_until_it_is_in_service() {
    let mut stage = Stage::new(3);
    stage.lifecycle("i-3", LifecycleState::Pending);
    assert!(stage.plan().in_transition);
}

#[test]
fn f4_a_paused_machine_is_not_changed() {
    let mut stage = Stage::new(3);
    stage.drained("i-1");
    stage.instance("i-1").asg_machine.as_mut().unwrap().paused = true;
    assert!(terminations(&stage.plan()).is_empty());
    stage.instance("i-2").asg_machine.as_mut().unwrap().paused = true;
    stage.desired.replicas = 1;
    assert_eq!(
        kubernetes(&stage.plan()),
        ["annotate p-i-3", "delete p-i-3"],
        "i-1 is being deleted already, i-2 is not chosen"
    );
}

#[test]
fn desired_is_lowered_on_a_fresh_view_only() {
    let mut stage = Stage::new(3);
    stage.group().capacity = Capacity { min: 0, max: 5, desired: 5 };
    stage.observe(now() - TimeDelta::seconds(15));
    stage.observed.fresh_group = false;
    let plan = stage.plan();
    assert!(plan.needs.fresh_group, "what was in flight at the last poll may run by now");
    assert!(cloud(&plan).is_empty());
}

#[test]
fn surplus_instances_are_drained_and_terminated() {
    // Another actor lowered desired capacity while all were protected.
    let mut stage = Stage::new(5);
    stage.group().capacity = Capacity { min: 0, max: 5, desired: 3 };
    stage.desired.replicas = 3;
    assert_eq!(
        kubernetes(&stage.plan()),
        ["annotate p-i-1", "annotate p-i-2", "delete p-i-1", "delete p-i-2"]
    );
    stage.drained("i-1").drained("i-2");
    assert_eq!(
        terminations(&stage.plan()),
        [(vec!["i-1", "i-2"], false)],
        "desired capacity is correct already"
    );
}

/// Another actor may end a standby at the same time, which increases desired capacity.
#[test]
fn wider_bounds_are_sent_without_desired_capacity() {
    let mut stage = Stage::new(2);
    stage.lifecycle("i-2", LifecycleState::Standby);
    stage.desired.replicas = 1;
    stage.group().capacity = Capacity { min: 0, max: 1, desired: 1 };
    let change = |stage: &Stage| match cloud(&stage.plan())[..] {
        [Write::UpdateGroup { change, .. }] => (change.min, change.max, change.desired),
        ref others => panic!("{others:?}"),
    };
    assert_eq!(change(&stage), (Some(0), Some(2), None));
    stage.group().capacity.max = 3;
    assert_eq!(change(&stage), (Some(0), Some(2), Some(1)), "less room: AWS moves desired capacity into it");
    stage.observed.fresh_group = false;
    let plan = stage.plan();
    assert!(plan.needs.fresh_group && plan.is_empty(), "{plan:?}");
}

/// AWS shows an increase late: what is requested in the meantime is less than what runs by then.
#[test]
fn d10_an_increase_that_no_read_shows_is_not_lowered() {
    let mut stage = Stage::new(2);
    stage.desired.replicas = 3;
    stage.lost(&set_desired(4), now() - TimeDelta::seconds(12));
    let plan = stage.plan();
    assert!(plan.is_empty() && plan.requeue_after == Some(TimeDelta::seconds(3)), "{plan:?}");
    stage.lost(&set_desired(4), now() - TimeDelta::seconds(15));
    assert_eq!(cloud(&stage.plan()).len(), 1, "another actor lowered it");
    stage.clock = now() + TimeDelta::seconds(20);
    stage.lost(&set_desired(4), now() - TimeDelta::seconds(12));
    assert!(stage.plan().needs.fresh_group, "a view of before");
    stage.clock = now();
    stage.lost(&set_desired(2), now());
    assert_eq!(cloud(&stage.plan()).len(), 1);
}

/// What a raise launched shows as late as the raise does.
#[test]
fn d10_an_increase_is_not_reverted_before_a_read_shows_its_launches() {
    let mut stage = Stage::new(3);
    stage.group().capacity = Capacity { min: 0, max: 4, desired: 4 };
    stage.observe(now() - TimeDelta::seconds(15));
    stage.lost(&set_desired(4), now() - TimeDelta::seconds(2));
    let plan = stage.plan();
    assert!(plan.is_empty() && plan.requeue_after == Some(TimeDelta::seconds(13)), "{plan:?}");
    stage.lost(&set_desired(4), now() - TimeDelta::seconds(15));
    assert_eq!(cloud(&stage.plan()).len(), 1);
    *stage.memory.began_mut() = Some(now() - TimeDelta::seconds(2));
    assert!(stage.plan().is_empty(), "the previous leader may have increased it");
}
