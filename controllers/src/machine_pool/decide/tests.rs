//! The rules of decide by example; the names tell the rule (contract.md section 8, design section 4).

use std::collections::BTreeSet;

use capasg_cloud::{Capacity, GroupChange, LifecycleState, Write};
use chrono::TimeDelta;

use super::testing::{Stage, cloud, ends, facts, kubernetes, now, stamp, version};
use crate::machine_pool::state::{GroupView, LaunchWish, MemberFacts, Obstacle, ScaleInOrder, TemplateView};
use crate::names::SCALE_IN_MARK;

fn capacity(min: i32, max: i32, desired: i32) -> Write {
    let change =
        GroupChange { min: Some(min), max: Some(max), desired: Some(desired), ..GroupChange::default() };
    Write::UpdateGroup { group: "g".into(), change: Box::new(change) }
}

#[test]
fn a_settled_pool_needs_nothing() {
    let plan = Stage::new(3).plan();
    assert!(plan.steps.is_empty(), "{:?}", plan.steps);
    assert!(plan.needs.is_empty(), "{:?}", plan.needs);
    assert!(!plan.in_transition);
}

#[test]
fn g1_up_sends_bounds_and_desired_in_one_call() {
    let mut stage = Stage::new(3);
    stage.desired.replicas = 5;
    assert_eq!(cloud(&stage.plan()), [&capacity(0, 5, 5)]);
}

#[test]
fn up_needs_no_settled_view_unless_we_wrote_more_since() {
    let mut stage = Stage::new(3);
    stage.desired.replicas = 4;
    stage.memory.desired_written = Some(3);
    stage.unsettled();
    assert_eq!(cloud(&stage.plan()), [&capacity(0, 4, 4)]);
    stage.memory.desired_written = Some(5);
    assert!(cloud(&stage.plan()).is_empty(), "5 was written since: 4 would be a way down");
}

#[test]
fn nothing_but_growth_is_decided_on_an_unsettled_view() {
    let mut stage = Stage::new(3);
    stage.drained("i-1").unsettled();
    stage.desired.replicas = 1;
    stage.desired.settings.default_cooldown = 10;
    let plan = stage.plan();
    assert!(plan.steps.is_empty(), "{:?}", plan.steps);
    assert!(plan.in_transition);
}

#[test]
fn d7_down_marks_and_deletes_machines_and_ends_nothing_itself() {
    let mut stage = Stage::new(5);
    stage.desired.replicas = 3;
    let plan = stage.plan();
    // i-1 and i-2 are the oldest of the zones with two instances.
    assert_eq!(kubernetes(&plan), ["mark p-i-1", "mark p-i-2", "delete p-i-1", "delete p-i-2"]);
    assert!(cloud(&plan).is_empty(), "desired stays until a drained instance is ended");
}

#[test]
fn victims_are_chosen_from_a_live_list_only() {
    let mut stage = Stage::new(3);
    stage.desired.replicas = 2;
    stage.observed.live_machines = false;
    let plan = stage.plan();
    assert!(plan.steps.is_empty());
    assert!(plan.needs.live_machines);
}

#[test]
fn d8_annotated_machines_go_before_all_others() {
    let mut stage = Stage::new(4);
    stage.desired.replicas = 3;
    stage.member("i-3").machine.as_mut().unwrap().delete_mark = Some("2026-01-01".into());
    stage.member("i-4").machine.as_mut().unwrap().has_node = false;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-3"], "the mark of a person is kept as it is");
}

#[test]
fn victims_go_in_the_stated_order() {
    let first = |change: &dyn Fn(&mut Stage)| {
        let mut stage = Stage::new(6);
        stage.desired.replicas = 5;
        change(&mut stage);
        kubernetes(&stage.plan()).pop().unwrap()
    };
    assert_eq!(first(&|_| ()), "delete p-i-1", "the oldest");
    assert_eq!(first(&|s| s.desired.scale_in_order = ScaleInOrder::Newest), "delete p-i-6");
    let ready = |s: &mut Stage, id: &str| s.member(id).machine.as_mut().unwrap().ready = false;
    assert_eq!(first(&|s| ready(s, "i-4")), "delete p-i-4", "failing");
    let outdated = |s: &mut Stage| {
        s.member("i-5").instance.as_mut().unwrap().instance_type = Some("t3.large".into());
    };
    assert_eq!(first(&outdated), "delete p-i-5", "outdated");
    assert_eq!(first(&|s| (outdated(s), ready(s, "i-4")).1), "delete p-i-4", "failing before outdated");
    let crowded = |s: &mut Stage| s.member("i-3").instance.as_mut().unwrap().zone = "b".into();
    assert_eq!(first(&crowded), "delete p-i-2", "the oldest of the zone with most");
}

#[test]
fn d9_a_victim_without_a_machine_is_waited_for() {
    let mut stage = Stage::new(3);
    stage.desired.replicas = 2;
    stage.member("i-2").machine = None;
    let plan = stage.plan();
    assert!(plan.steps.is_empty(), "it never joined, so it is the one to go: {:?}", plan.steps);
}

#[test]
fn an_instance_already_leaving_counts() {
    let mut stage = Stage::new(5);
    stage.draining("i-5");
    stage.desired.replicas = 4;
    assert!(kubernetes(&stage.plan()).is_empty());
    stage.desired.replicas = 3;
    assert_eq!(kubernetes(&stage.plan()), ["mark p-i-1", "delete p-i-1"]);
}

#[test]
fn our_mark_is_taken_off_when_replicas_rise_again_but_never_a_persons() {
    let mut stage = Stage::new(3);
    stage.member("i-1").machine.as_mut().unwrap().delete_mark = Some(SCALE_IN_MARK.into());
    stage.member("i-2").machine.as_mut().unwrap().delete_mark = Some("true".into());
    assert_eq!(kubernetes(&stage.plan()), ["unmark p-i-1"]);
}

#[test]
fn launches_that_never_happened_are_given_up_before_anything_ends() {
    // Desired 5, three launched, replicas lowered to 3.
    let mut stage = Stage::new(3);
    stage.group().capacity = Capacity { min: 0, max: 5, desired: 5 };
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
fn d10_the_first_ends_shrink_desired_and_the_rest_is_replaced() {
    let mut stage = Stage::new(5);
    stage.drained("i-1").drained("i-2").drained("i-3");
    stage.desired.replicas = 4;
    let plan = stage.plan();
    assert_eq!(ends(&plan), [(vec!["i-1"], true), (vec!["i-2", "i-3"], false)]);
    let marks: Vec<String> = kubernetes(&plan).into_iter().filter(|w| w.starts_with("ending")).collect();
    assert_eq!(marks, ["ending p-i-1", "ending p-i-2", "ending p-i-3"], "marked before the calls");
}

#[test]
fn an_end_is_not_undone_by_the_bounds_of_the_view_before_it() {
    // The first of three ends has been answered: desired is 4 and MaxSize still 5.
    let mut stage = Stage::new(5);
    stage.drained("i-1").lifecycle("i-1", LifecycleState::TerminatingWait).drained("i-2").drained("i-3");
    stage.group().capacity = Capacity { min: 0, max: 5, desired: 4 };
    stage.desired.replicas = 2;
    let plan = stage.plan();
    assert_eq!(ends(&plan), [(vec!["i-2", "i-3"], true)]);
    let capacity =
        |write: &&Write| matches!(write, Write::UpdateGroup { .. } | Write::SetDesiredCapacity { .. });
    assert_eq!(cloud(&plan).iter().copied().find(capacity), None);
}

#[test]
fn a_launch_is_followed_until_it_is_in_service() {
    let mut stage = Stage::new(3);
    stage.lifecycle("i-3", LifecycleState::Pending);
    assert!(stage.plan().in_transition);
}

#[test]
fn a_users_delete_is_replaced_beside_a_scale_in_that_is_not() {
    let mut stage = Stage::new(3);
    stage.drained("i-2");
    assert_eq!(ends(&stage.plan()), [(vec!["i-2"], false)]);
}

#[test]
fn an_end_needs_a_fresh_read_and_is_not_repeated_within_60_s() {
    let mut stage = Stage::new(3);
    stage.drained("i-1");
    stage.observed.fresh_group = false;
    let plan = stage.plan();
    assert!(plan.needs.fresh_group && ends(&plan).is_empty());
    stage.observed.fresh_group = true;
    let asked = |seconds| Some(now() - TimeDelta::seconds(seconds));
    stage.member("i-1").asg_machine.as_mut().unwrap().end_requested_at = asked(59);
    let plan = stage.plan();
    assert!(ends(&plan).is_empty());
    assert_eq!(plan.look_again, Some(TimeDelta::seconds(1)));
    stage.member("i-1").asg_machine.as_mut().unwrap().end_requested_at = asked(60);
    assert_eq!(ends(&stage.plan()).len(), 1);
    stage.memory.end_requested.insert("i-1".into(), now());
    assert!(ends(&stage.plan()).is_empty(), "a cache that lags does not show the mark yet");
}

#[test]
fn ends_of_many_go_together_in_hundreds() {
    let mut stage = Stage::new(250);
    for n in 1..=250 {
        stage.drained(&format!("i-{n}"));
    }
    stage.desired.replicas = 0;
    let sizes: Vec<usize> = ends(&stage.plan()).iter().map(|(ids, _)| ids.len()).collect();
    assert_eq!(sizes, [100, 100, 50]);
}

#[test]
fn our_own_end_is_completed_once_the_hook_holds_it() {
    let mut stage = Stage::new(3);
    stage.drained("i-1").lifecycle("i-1", LifecycleState::Terminating);
    stage.desired.replicas = 2;
    stage.group().capacity.desired = 2;
    stage.group().capacity.max = 2;
    assert!(cloud(&stage.plan()).is_empty());
    stage.lifecycle("i-1", LifecycleState::TerminatingWait);
    let plan = stage.plan();
    let complete = Write::CompleteLifecycleAction {
        group: "g".into(),
        hook: "asg-drain".into(),
        instance: "i-1".into(),
    };
    assert_eq!(cloud(&plan), [&complete]);
    stage.memory.completed.insert("i-1".into(), now());
    assert!(cloud(&stage.plan()).is_empty());
}

#[test]
fn an_end_that_the_cloud_starts_is_drained_held_and_then_completed() {
    let mut stage = Stage::new(3);
    stage.lifecycle("i-2", LifecycleState::TerminatingWait);
    let plan = stage.plan();
    assert_eq!(plan.needs.facts, BTreeSet::from(["i-2".to_owned()]), "does the machine still run?");
    let running = MemberFacts { facts: Some(facts("i-2", true)), as_of: now() };
    stage.member("i-2").facts = Some(running);
    let plan = stage.plan();
    assert!(kubernetes(&plan).contains(&"delete p-i-2".to_owned()));
    assert!(cloud(&plan).iter().any(|w| matches!(w, Write::RecordLifecycleActionHeartbeat { .. })));
    assert!(!cloud(&plan).iter().any(|w| matches!(w, Write::CompleteLifecycleAction { .. })));
    stage.drained("i-2");
    assert!(cloud(&stage.plan()).iter().any(|w| matches!(w, Write::CompleteLifecycleAction { .. })));
}

#[test]
fn a_dead_machine_is_not_drained_and_its_hook_is_completed_at_once() {
    let mut stage = Stage::new(3);
    stage.lifecycle("i-2", LifecycleState::TerminatingWait);
    stage.member("i-2").facts = Some(MemberFacts { facts: None, as_of: now() });
    let plan = stage.plan();
    assert_eq!(kubernetes(&plan), ["exclude p-i-2", "delete p-i-2"]);
    assert!(cloud(&plan).iter().any(|w| matches!(w, Write::CompleteLifecycleAction { .. })));
}

#[test]
fn a_drain_past_its_limit_is_not_held_any_longer() {
    let mut stage = Stage::new(3);
    stage.draining("i-2").lifecycle("i-2", LifecycleState::TerminatingWait);
    stage.desired.drain_limit = TimeDelta::seconds(10);
    stage.member("i-2").facts = Some(MemberFacts { facts: Some(facts("i-2", true)), as_of: now() });
    assert!(cloud(&stage.plan()).iter().any(|w| matches!(w, Write::CompleteLifecycleAction { .. })));
}

#[test]
fn d11_a_vanished_instance_is_asked_for_before_its_machine_goes() {
    let mut stage = Stage::new(3);
    stage.member("i-3").instance = None;
    stage.group().capacity.desired = 3;
    let plan = stage.plan();
    assert!(plan.needs.facts.contains("i-3"));
    assert!(kubernetes(&plan).is_empty());
    stage.member("i-3").facts = Some(MemberFacts { facts: None, as_of: now() });
    assert_eq!(kubernetes(&stage.plan()), ["exclude p-i-3", "delete p-i-3"]);
    stage.drained("i-3");
    assert_eq!(kubernetes(&stage.plan()), ["release p-i-3"]);
}

#[test]
fn a_detached_instance_keeps_its_machine() {
    let mut stage = Stage::new(3);
    stage.member("i-3").instance = None;
    stage.group().capacity = Capacity { min: 0, max: 3, desired: 2 };
    stage.desired.replicas = 2;
    stage.member("i-3").facts = Some(MemberFacts { facts: Some(facts("i-3", true)), as_of: now() });
    let plan = stage.plan();
    assert!(kubernetes(&plan).is_empty());
    assert_eq!(plan.obstacle, Some(Obstacle::Detached { instances: vec!["i-3".into()] }));
}

#[test]
fn h2_a_rotation_makes_a_version_and_outdates_nothing() {
    let mut stage = Stage::new(3);
    let mut rotated = stamp("1");
    rotated.content = stamp("2").content;
    if let LaunchWish::Known { stamp, .. } = &mut stage.desired.launch {
        *stamp = rotated.clone();
    }
    let plan = stage.plan();
    assert!(matches!(cloud(&plan)[..], [Write::CreateLaunchTemplateVersion { .. }]), "{:?}", plan.steps);
    if let TemplateView::Present { versions, .. } = &mut stage.observed.template {
        versions.insert(2, version(2, &rotated));
    }
    let plan = stage.plan();
    assert!(
        matches!(cloud(&plan)[..], [Write::UpdateGroup { change, .. }] if change.launch.is_some()),
        "pinned by number"
    );
    assert_eq!(super::rollout::outdated(&stage.desired, &stage.observed).count(), 0);
}

#[test]
fn old_versions_are_pruned_in_one_call_and_never_one_in_use() {
    let mut stage = Stage::new(3);
    if let TemplateView::Present { versions, .. } = &mut stage.observed.template {
        versions.extend((2..=12).map(|n| (n, version(n, &stamp(&n.to_string())))));
    }
    stage.member("i-2").instance.as_mut().unwrap().template = Some(("lt-1".into(), 5));
    let plan = stage.plan();
    let Some(Write::DeleteLaunchTemplateVersions { versions, .. }) = cloud(&plan).pop() else {
        panic!("{:?}", plan.steps)
    };
    assert_eq!(*versions, BTreeSet::from([2, 3, 4, 6, 7, 8, 9]));
}

#[test]
fn a_foreign_group_is_left_alone() {
    let mut stage = Stage::new(3);
    stage.group().tags.clear();
    stage.desired.replicas = 9;
    let plan = stage.plan();
    assert!(plan.steps.is_empty());
    assert_eq!(plan.obstacle, Some(Obstacle::ForeignGroup { found: None }));
}

#[test]
fn wrong_credentials_do_not_look_like_a_vanished_group() {
    let mut stage = Stage::new(3);
    stage.observed.group = GroupView::Absent { as_of: now(), settled: true };
    assert!(stage.plan().needs.account);
    stage.observed.account = Some("210987654321".into());
    let plan = stage.plan();
    assert!(plan.steps.is_empty());
    assert!(matches!(plan.obstacle, Some(Obstacle::WrongAccount { .. })));
}

#[test]
fn a_group_deleted_outside_is_made_again_only_once_its_machines_are_gone() {
    let mut stage = Stage::new(2);
    stage.observed.group = GroupView::Absent { as_of: now(), settled: true };
    stage.observed.account = Some("123456789012".into());
    for id in ["i-1", "i-2"] {
        stage.member(id).instance = None;
        stage.memory.first_seen.insert(id.into(), now());
    }
    assert_eq!(stage.plan().needs.facts.len(), 2);
    for id in ["i-1", "i-2"] {
        stage.member(id).facts = Some(MemberFacts { facts: Some(facts(id, id == "i-1")), as_of: now() });
    }
    let plan = stage.plan();
    assert!(plan.steps.is_empty());
    assert!(matches!(plan.obstacle, Some(Obstacle::GroupGoneInstancesRun { .. })));
    stage.member("i-1").facts = Some(MemberFacts { facts: None, as_of: now() });
    assert!(cloud(&stage.plan()).iter().any(|w| matches!(w, Write::CreateGroup(_))));
}

#[test]
fn f4_a_paused_machine_is_left_alone() {
    let mut stage = Stage::new(3);
    stage.drained("i-1");
    stage.member("i-1").asg_machine.as_mut().unwrap().paused = true;
    assert!(ends(&stage.plan()).is_empty());
    stage.member("i-2").asg_machine.as_mut().unwrap().paused = true;
    stage.desired.replicas = 1;
    assert_eq!(
        kubernetes(&stage.plan()),
        ["mark p-i-3", "delete p-i-3"],
        "i-1 leaves already, i-2 is not chosen"
    );
}

#[test]
fn desired_is_lowered_on_a_fresh_view_only() {
    let mut stage = Stage::new(3);
    stage.group().capacity = Capacity { min: 0, max: 5, desired: 5 };
    stage.observed.fresh_group = false;
    let plan = stage.plan();
    assert!(plan.needs.fresh_group, "what was in flight at the last poll may run by now");
    assert!(cloud(&plan).is_empty());
}

#[test]
fn what_lives_beyond_desired_is_drained_and_ended() {
    // Somebody lowered desired in AWS while all were protected.
    let mut stage = Stage::new(5);
    stage.group().capacity = Capacity { min: 0, max: 5, desired: 3 };
    stage.desired.replicas = 3;
    assert_eq!(kubernetes(&stage.plan()), ["mark p-i-1", "mark p-i-2", "delete p-i-1", "delete p-i-2"]);
    stage.drained("i-1").drained("i-2");
    assert_eq!(ends(&stage.plan()), [(vec!["i-1", "i-2"], false)], "desired is right already");
}

#[test]
fn a_mark_from_the_future_holds_an_end_no_longer_than_one_from_now() {
    let mut stage = Stage::new(3);
    stage.drained("i-1");
    let mark = Some(now() + TimeDelta::hours(5));
    stage.member("i-1").asg_machine.as_mut().unwrap().end_requested_at = mark;
    assert_eq!(stage.plan().look_again, Some(TimeDelta::seconds(60)));
}

#[test]
fn after_a_refusal_each_end_goes_alone() {
    let mut stage = Stage::new(3);
    stage.drained("i-1").drained("i-2");
    stage.memory.ends_refused = true;
    assert_eq!(ends(&stage.plan()), [(vec!["i-1"], false), (vec!["i-2"], false)]);
}
