//! The rolling update by example.

use std::sync::Arc;

use capasg_api::capi::{NodeReport, NodeState};
use capasg_api::pool::{ResolvedRollout, RolloutType, RolloutWait};
use capasg_cloud::{
    Capacity, HealthStatus, LaunchTemplateData, LaunchTemplateVersion, LifecycleState, Write,
};
use chrono::TimeDelta;

use crate::machine_pool::decide::testing::{
    Stage, cloud, data, kubernetes, mixed, now, stamp, terminations, version,
};
use crate::machine_pool::model::{
    Bounds, DesiredLaunch, Known, ObservedTemplate, ReplicaOwner, RolloutPhase, StopCause,
};

fn budget(max_surge: i32, max_unavailable: i32) -> ResolvedRollout {
    ResolvedRollout { max_surge, max_unavailable, ..ResolvedRollout::default() }
}

/// The desired capacities that a plan sets.
fn sizes(stage: &Stage) -> Vec<i32> {
    let plan = stage.plan();
    cloud(&plan)
        .into_iter()
        .filter_map(|write| match write {
            Write::SetDesiredCapacity { desired, .. } => Some(*desired),
            Write::UpdateGroup { change, .. } => change.desired,
            _ => None,
        })
        .collect()
}

#[test]
fn h3_a_rollout_begins_with_its_surge() {
    let mut stage = Stage::new(3);
    stage.new_image();
    let plan = stage.plan();
    assert_eq!(sizes(&stage), [4]);
    assert!(kubernetes(&plan).is_empty(), "nothing is deleted before the surge exists");
    assert!(plan.in_transition);
}

#[test]
fn h3_an_outdated_machine_is_deleted_once_a_new_one_is_available() {
    let mut stage = Stage::surged();
    stage.instance("i-4").machine.as_mut().unwrap().has_node = false;
    assert!(kubernetes(&stage.plan()).is_empty());
    stage.instance("i-4").machine.as_mut().unwrap().has_node = true;
    assert_eq!(
        kubernetes(&stage.plan()),
        ["delete p-i-1"],
        "the oldest, without the annotation of a scale-in"
    );
    stage.draining("i-1");
    assert!(kubernetes(&stage.plan()).is_empty(), "one at a time");
    assert!(sizes(&stage).is_empty());
    stage.drained("i-1");
    assert_eq!(terminations(&stage.plan()), [(vec!["i-1"], false)], "the group launches the next one");
}

#[test]
fn h3_the_surge_is_removed_with_the_last_outdated_instance() {
    let mut stage = Stage::surged();
    for id in ["i-1", "i-2"] {
        stage.observed.instances.remove(id);
        stage.add(&format!("{id}0"), 2);
    }
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-3"]);
    stage.draining("i-3");
    assert!(stage.plan().is_empty(), "no victim is chosen alongside the one that is being deleted");
    stage.drained("i-3");
    assert_eq!(terminations(&stage.plan()), [(vec!["i-3"], true)]);
}

#[test]
fn h3_without_surge_one_is_deleted_first() {
    let mut stage = Stage::new(3);
    stage.new_image().desired.rollout = budget(0, 1);
    assert!(sizes(&stage).is_empty());
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"]);
    stage.drained("i-1");
    assert_eq!(terminations(&stage.plan()), [(vec!["i-1"], false)]);
}

/// An outdated instance that fails and is kept by do-not-disrupt takes the place of no other that fails.
#[test]
fn h3_what_do_not_disrupt_keeps_does_not_stop_a_rollout() {
    let mut stage = Stage::new(3);
    stage.new_image().desired.rollout = budget(0, 1);
    for id in ["i-1", "i-2"] {
        stage.instance(id).machine.as_mut().unwrap().ready = false;
    }
    stage.instance("i-1").asg_machine.as_mut().unwrap().do_not_disrupt = true;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-2"]);
}

/// The Node of an instance that do-not-disrupt keeps never joined.
fn shielded_unjoined(stage: &mut Stage, id: &str) {
    let instance = stage.instance(id);
    instance.asg_machine.as_mut().unwrap().do_not_disrupt = true;
    let machine = instance.machine.as_mut().unwrap();
    (machine.has_node, machine.ready) = (false, false);
    machine.created_at = Some(now() - TimeDelta::minutes(10));
    machine.node = NodeReport { state: NodeState::NotJoined, since: None };
}

/// One that is kept by do-not-disrupt and whose Node never joined does not take the surge without end: nothing runs on it.
#[test]
fn h3_an_instance_that_never_joined_is_replaced_if_no_other_can_be() {
    let mut stage = Stage::surged();
    shielded_unjoined(&mut stage, "i-1");
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"]);
    stage.instance("i-1").machine.as_mut().unwrap().node.state = NodeState::Unknown;
    assert!(kubernetes(&stage.plan()).is_empty(), "its Node may exist");
    shielded_unjoined(&mut stage, "i-1");
    stage.instance("i-1").machine.as_mut().unwrap().created_at = Some(now() - TimeDelta::minutes(9));
    let plan = stage.plan();
    assert!(kubernetes(&plan).is_empty(), "it may join");
    assert_eq!(plan.requeue_after, Some(TimeDelta::minutes(1)));
    shielded_unjoined(&mut stage, "i-1");
    // AWS terminates another one, whose Node drains.
    stage.add("i-0", 1);
    stage.lifecycle("i-0", LifecycleState::TerminatingWait);
    assert!(
        !kubernetes(&stage.plan()).contains(&"delete p-i-1".to_owned()),
        "another one can be after the drain"
    );
    stage.observed.instances.remove("i-0");
    stage.desired.rollout = budget(2, 0);
    stage.group().capacity = Capacity { min: 0, max: 5, desired: 5 };
    assert!(kubernetes(&stage.plan()).is_empty(), "another one can be, once a new one is launched");
    stage.add("i-5", 2).machine.as_mut().unwrap().ready = false;
    assert!(kubernetes(&stage.plan()).is_empty(), "once it is ready");
    stage.instance("i-5").machine.as_mut().unwrap().ready = true;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-2"]);
    stage.draining("i-2");
    assert!(kubernetes(&stage.plan()).is_empty(), "once that is replaced");
}

#[test]
fn h3_those_that_never_joined_are_replaced_one_at_a_time_if_no_other_can_be() {
    let mut stage = Stage::new(6);
    stage.new_image().desired.rollout = budget(2, 0);
    for id in ["i-7", "i-8"] {
        stage.add(id, 2);
    }
    stage.group().capacity = Capacity { min: 0, max: 8, desired: 8 };
    shielded_unjoined(&mut stage, "i-1");
    shielded_unjoined(&mut stage, "i-2");
    assert_eq!(kubernetes(&stage.plan()).len(), 1);
}

/// It is missing as a replica, so that it takes the disruption budget from all others.
#[test]
fn h3_an_instance_that_never_joined_is_replaced_if_it_takes_the_budget() {
    for fails in [false, true] {
        let mut stage = Stage::new(4);
        stage.new_image().desired.rollout = budget(0, 2);
        stage.desired.disruption.max_disrupted = Some(1);
        shielded_unjoined(&mut stage, "i-1");
        stage.instance("i-2").machine.as_mut().unwrap().ready = !fails;
        assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"]);
    }
}

/// What keeps an outdated instance that is not available is reported while no other can be replaced.
#[test]
fn h3_a_rollout_that_waits_for_what_is_kept_names_it() {
    let kept = |stage: &Stage| {
        let plan = stage.plan();
        assert!(kubernetes(&plan).is_empty(), "{plan:?}");
        let waiting_for = plan.rollout_status.as_ref().and_then(|status| status.waiting_for);
        match plan.rollout {
            Some(RolloutPhase::Rolling { kept, .. }) => (kept, waiting_for),
            other => panic!("{other:?}"),
        }
    };
    let waits = |id: &str| (vec![id.to_owned()], Some(RolloutWait::UnavailableInstances));
    let mut stage = Stage::surged();
    stage.instance("i-1").machine.as_mut().unwrap().ready = false;
    stage.instance("i-1").asg_machine.as_mut().unwrap().do_not_disrupt = true;
    assert_eq!(kept(&stage), waits("i-1"), "its Node may be ready again");
    stage.desired.rollout = budget(2, 0);
    stage.desired.min_ready = TimeDelta::seconds(60);
    stage.add("i-5", 2).machine.as_mut().unwrap().ready_since = Some(now());
    stage.group().capacity = Capacity { min: 0, max: 5, desired: 5 };
    assert_eq!(kept(&stage).0, Vec::<String>::new(), "another one can be replaced in a minute");
    let mut stage = Stage::surged();
    stage.instance("i-1").machine.as_mut().unwrap().ready = false;
    stage.instance("i-1").asg_machine.as_mut().unwrap().paused = true;
    assert_eq!(kept(&stage), waits("i-1"));
    stage.draining("i-1");
    assert_eq!(kept(&stage), waits("i-1"), "a user deleted its Machine");
    let mut stage = Stage::surged();
    stage.instance("i-1").machine = None;
    assert_eq!(kept(&stage), waits("i-1"));
    let mut stage = Stage::new(3);
    stage.new_image().desired.rollout = budget(0, 1);
    stage.desired.disruption.max_disrupted = Some(1);
    shielded_unjoined(&mut stage, "i-1");
    stage.instance("i-1").asg_machine.as_mut().unwrap().paused = true;
    assert_eq!(kept(&stage), waits("i-1"), "and not for the budget that it takes");
}

/// Users choose what is replaced; what they did not choose and fails blocks what they chose.
#[test]
fn h3_what_on_delete_does_not_replace_is_named_if_it_blocks_the_rollout() {
    let mut stage = Stage::new(2);
    stage.new_image().desired.rollout.type_ = RolloutType::OnDelete;
    stage.add("i-3", 2);
    stage.group().capacity = Capacity { min: 0, max: 3, desired: 3 };
    stage.instance("i-1").machine.as_mut().unwrap().ready = false;
    stage.instance("i-2").asg_machine.as_mut().unwrap().replace_requested = true;
    let plan = stage.plan();
    assert!(kubernetes(&plan).is_empty(), "{plan:?}");
    let Some(RolloutPhase::Rolling { kept, .. }) = plan.rollout else { panic!("{:?}", plan.rollout) };
    assert_eq!(kept, ["i-1"]);
}

#[test]
fn h3_what_is_unavailable_already_counts_against_the_budget() {
    let mut stage = Stage::new(4);
    stage.new_image().desired.rollout = budget(0, 2);
    stage.draining("i-1");
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-2"]);
    stage.instance("i-4").machine.as_mut().unwrap().ready = false;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-4"], "what does not work anyway is replaced first");
    stage.draining("i-2");
    assert!(kubernetes(&stage.plan()).is_empty());
}

#[test]
fn h3_new_instances_that_fail_stop_the_rollout() {
    let mut stage = Stage::surged();
    stage.desired.rollout = budget(1, 1);
    stage.instance("i-4").machine.as_mut().unwrap().ready = false;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"], "within the budget");
    stage.observed.instances.remove("i-1");
    let failing = stage.add("i-5", 2).machine.as_mut().unwrap();
    (failing.has_node, failing.ready) = (false, false);
    let plan = stage.plan();
    assert!(plan.is_empty(), "{plan:?}");
    let starting = vec!["i-4".to_owned(), "i-5".to_owned()];
    let rolling = RolloutPhase::Rolling {
        draining: Vec::new(),
        starting,
        awaits_new: true,
        out_of_budget: false,
        kept: Vec::new(),
    };
    assert_eq!(plan.rollout, Some(rolling));
}

#[test]
fn h3_a_new_instance_counts_once_it_was_ready_for_long_enough() {
    let mut stage = Stage::surged();
    stage.desired.min_ready = TimeDelta::seconds(60);
    stage.instance("i-4").machine.as_mut().unwrap().ready_since = Some(now() - TimeDelta::seconds(45));
    let plan = stage.plan();
    assert!(kubernetes(&plan).is_empty());
    assert_eq!(plan.requeue_after, Some(TimeDelta::seconds(15)));
    stage.instance("i-4").machine.as_mut().unwrap().ready_since = Some(now() - TimeDelta::seconds(60));
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"]);
}

#[test]
fn h3_a_desired_state_is_rolled_out_after_ten_seconds() {
    let mut stage = Stage::new(3);
    stage.new_image().desired_for(9);
    let plan = stage.plan();
    assert!(plan.is_empty(), "{plan:?}");
    assert_eq!(plan.requeue_after, Some(TimeDelta::seconds(1)));
    assert_eq!(plan.rollout, Some(RolloutPhase::Settling));
    *stage.memory.rollout.desired_mut() = None;
    assert!(stage.plan().is_empty(), "a new leader waits again");
    stage.desired_for(10);
    assert_eq!(sizes(&stage), [4]);
}

#[test]
fn h3_a_change_in_the_middle_keeps_the_surge_and_outdates_what_is_new() {
    let mut stage = Stage::surged();
    let third = stamp("3");
    if let DesiredLaunch::Known { stamp, .. } = &mut stage.desired.launch {
        *stamp = third.clone();
    }
    stage.desired_for(0);
    let plan = stage.plan();
    assert!(kubernetes(&plan).is_empty() && sizes(&stage).is_empty(), "{plan:?}");
    assert!(matches!(cloud(&plan)[..], [Write::CreateLaunchTemplateVersion { .. }]));
    if let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template {
        versions.insert(3, version(3, &third));
    }
    stage.group().settings.launch.template.version = Some(3);
    stage.desired_for(10);
    let outdated = crate::machine_pool::decide::rollout::outdated::outdated(
        &stage.desired,
        &stage.observed,
        stage.clock,
    );
    assert_eq!(outdated.count(), 4);
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"], "what is left is enough");
    stage.instance("i-4").machine.as_mut().unwrap().ready = false;
    assert_eq!(
        kubernetes(&stage.plan()),
        ["delete p-i-4"],
        "the failure of the last change is deleted first"
    );
}

#[test]
fn h3_nothing_is_replaced_by_what_is_not_desired() {
    let mut stage = Stage::surged();
    // The version is there, but the group is not pinned to it yet.
    stage.group().settings.launch.template.version = Some(1);
    stage.desired_for(20);
    assert!(kubernetes(&stage.plan()).is_empty());
    assert!(sizes(&stage).is_empty(), "nor grown, nor shrunk");
    // The desired state is unknown.
    let mut stage = Stage::surged();
    stage.desired.launch = DesiredLaunch::Unknown;
    let plan = stage.plan();
    assert!(plan.is_empty(), "{plan:?}");
    assert_eq!(plan.rollout, Some(RolloutPhase::Held));
}

/// The surge was launched from an older version, and core has not created its Machine: an instance that AWS reports as
/// unhealthy, whose Node may work, is not deleted in its place.
#[test]
fn h3_an_outdated_arrival_makes_no_room_for_another_deletion() {
    let mut stage = Stage::surged();
    stage.instance("i-1").listed.as_mut().unwrap().health = HealthStatus::Unhealthy;
    let arrival = stage.instance("i-4");
    arrival.listed.as_mut().unwrap().template = Some(("lt-1".into(), 1));
    let machine = arrival.machine.take();
    assert!(kubernetes(&stage.plan()).is_empty());
    let arrival = stage.instance("i-4");
    arrival.machine = machine;
    let machine = arrival.machine.as_mut().unwrap();
    (machine.has_node, machine.ready) = (false, false);
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-4"], "it is replaced first");
}

#[test]
fn h3_a_desired_state_that_aws_rejects_removes_the_surge() {
    let mut stage = Stage::surged();
    if let DesiredLaunch::Known { stamp: desired, .. } = &mut stage.desired.launch {
        *desired = stamp("3");
    }
    stage.desired_for(59);
    assert!(kubernetes(&stage.plan()).is_empty());
    stage.desired_for(60);
    let plan = stage.plan();
    assert_eq!(kubernetes(&plan), ["annotate p-i-3", "delete p-i-3"]);
    assert_eq!(plan.rollout, Some(RolloutPhase::Rejected));
}

#[test]
fn h3_a_reverted_change_removes_the_surge() {
    let mut stage = Stage::surged();
    if let DesiredLaunch::Known { data, stamp: desired, .. } = &mut stage.desired.launch {
        data.image_id = "ami-1".into();
        *desired = stamp("1");
    }
    stage.group().settings.launch.template.version = Some(1);
    stage.desired_for(10);
    // The only instance of the new image is the outdated one now.
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-4"]);
    stage.drained("i-4");
    assert_eq!(terminations(&stage.plan()), [(vec!["i-4"], true)]);
}

#[test]
fn h3_scaling_in_the_middle_counts_from_the_new_replicas() {
    let mut stage = Stage::surged();
    stage.desired.replicas = 5;
    assert_eq!(sizes(&stage), [6]);
    stage.desired.replicas = 1;
    let plan = stage.plan();
    assert_eq!(kubernetes(&plan), ["annotate p-i-1", "annotate p-i-3", "delete p-i-1", "delete p-i-3"]);
    stage.desired.replicas = 0;
    assert_eq!(stage.plan().target, Some(0), "a pool of none has no surge");
}

#[test]
fn h3_a_paused_or_missing_machine_is_not_replaced() {
    let mut stage = Stage::surged();
    stage.instance("i-1").asg_machine.as_mut().unwrap().paused = true;
    stage.instance("i-2").machine = None;
    stage.instance("i-3").asg_machine.as_mut().unwrap().paused = true;
    assert!(kubernetes(&stage.plan()).is_empty(), "D9: i-2 waits for core");
    assert_eq!(stage.plan().target, Some(4));
    stage.instance("i-2").asg_machine.as_mut().unwrap().paused = true;
    assert_eq!(stage.plan().target, Some(3), "nothing is to be replaced now");
}

#[test]
fn h3_on_delete_replaces_nothing_by_itself() {
    let mut stage = Stage::new(3);
    stage.new_image().desired.rollout.type_ = RolloutType::OnDelete;
    let plan = stage.plan();
    assert!(plan.is_empty(), "{plan:?}");
    assert_eq!(plan.rollout, Some(RolloutPhase::OnDelete));
    stage.drained("i-2");
    assert_eq!(terminations(&stage.plan()), [(vec!["i-2"], false)]);
}

#[test]
fn h3_a_removed_type_is_rolled_out() {
    let mut stage = Stage::new(3);
    stage
        .lifecycle("i-3", LifecycleState::InService)
        .instance("i-3")
        .listed
        .as_mut()
        .unwrap()
        .instance_type = Some("t3.large".into());
    assert_eq!(sizes(&stage), [4]);
}

#[test]
fn h3_there_is_no_surge_while_the_group_launches_something_else() {
    let mut stage = Stage::new(3);
    stage.new_image().desired.settings.mixed = Some(mixed(&[]));
    assert!(sizes(&stage).is_empty(), "it would have to be replaced again");
    assert_eq!(stage.plan().rollout, Some(RolloutPhase::Held));
}

#[test]
fn h3_surplus_is_terminated_while_the_desired_state_is_unknown() {
    let mut stage = Stage::new(3);
    stage.new_image().desired.launch = DesiredLaunch::Unknown;
    stage.desired.replicas = 2;
    assert_eq!(kubernetes(&stage.plan()).last().map(String::as_str), Some("delete p-i-1"));
    let mut stage = Stage::surged();
    stage.desired.launch = DesiredLaunch::Unknown;
    assert!(stage.plan().is_empty(), "a surge that is up to date is kept");
}

#[test]
fn h3_deletions_need_a_live_list() {
    let mut stage = Stage::surged();
    stage.observed.live_machines = false;
    let plan = stage.plan();
    assert!(plan.is_empty() && plan.needs.live_machines);
}

#[test]
fn h3_a_new_machine_that_a_user_deletes_is_replaced() {
    let mut stage = Stage::surged();
    stage.draining("i-1").drained("i-4");
    assert_eq!(terminations(&stage.plan()), [(vec!["i-4"], false)]);
}

#[test]
fn g2_h3_an_externally_managed_pool_rolls_out_without_surge() {
    let mut stage = Stage::new(3);
    stage.new_image().desired.owner = ReplicaOwner::External(Bounds { min: 0, max: 3 });
    assert!(sizes(&stage).is_empty(), "desired capacity is theirs");
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"]);
    stage.drained("i-1");
    assert_eq!(terminations(&stage.plan()), [(vec!["i-1"], false)]);
    for passing in
        [ReplicaOwner::ExternalUnreported, ReplicaOwner::ExternalPending, ReplicaOwner::MachinePoolPending]
    {
        let mut stage = Stage::new(3);
        stage.new_image().desired.owner = passing;
        assert!(kubernetes(&stage.plan()).is_empty(), "{passing:?}");
    }
}

/// Two instances are outdated on arrival with a surge of one, and the annotation that stops the rollout cannot be written.
#[test]
fn w8_a_stop_whose_record_failed_is_tried_again() {
    let mut stage = Stage::surged();
    stage.memory.decide(&stage.observed, &stage.plan(), now());
    for id in ["i-5", "i-6"] {
        stage.add(id, 1);
    }
    for attempt in 1..=3 {
        let plan = stage.plan();
        let first = kubernetes(&plan).into_iter().next();
        assert_eq!(first.as_deref(), Some("stopping the rollout of ASGMachinePool ns/p"), "{attempt}");
        assert!(matches!(
            plan.rollout,
            Some(RolloutPhase::Stopped { cause: StopCause::OutdatedOnArrival, .. })
        ));
        stage.memory.decide(&stage.observed, &plan, now());
    }
}

/// Another actor pins the group to a version of its own, and AWS launches instances from it until that is corrected.
#[test]
fn w8_instances_of_a_version_that_another_actor_pinned_stop_no_rollout() {
    let mut stage = Stage::surged();
    stage.memory.decide(&stage.observed, &stage.plan(), now());
    add_foreign(&mut stage, 9, |data| data.image_id = "ami-9".into());
    stage.group().settings.launch.template.version = Some(9);
    stage.add("i-5", 9);
    stage.memory.decide(&stage.observed, &stage.plan(), now());
    // The version is corrected. One more was launched before.
    stage.group().settings.launch.template.version = Some(2);
    stage.clock += TimeDelta::seconds(10);
    stage.add("i-6", 9);
    for minutes in [0, 5] {
        let plan = stage.plan();
        assert!(!matches!(plan.rollout, Some(RolloutPhase::Stopped { .. })), "{:?}", plan.rollout);
        stage.memory.decide(&stage.observed, &plan, now());
        stage.clock += TimeDelta::minutes(minutes);
    }
    // Later AWS launches the desired version: others are unexpected.
    for id in ["i-7", "i-8"] {
        stage.add(id, 9);
    }
    let stopped = stage.plan().rollout;
    assert!(matches!(stopped, Some(RolloutPhase::Stopped { cause: StopCause::OutdatedOnArrival, .. })));
}

/// A version that another actor created, with the desired content but for an edit.
fn add_foreign(stage: &mut Stage, number: i64, edit: impl FnOnce(&mut LaunchTemplateData)) {
    let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template else { return };
    let mut content = data().without_user_data();
    edit(&mut content);
    let image_id = Some(content.image_id.clone());
    let content = Some(Arc::new(content));
    versions.insert(
        number,
        LaunchTemplateVersion { description: None, image_id, content, ..version(number, &stamp("1")) },
    );
}

/// The spec selects security groups by tags, and another one got the tags since version 1.
#[test]
fn instances_of_a_foreign_version_with_the_security_groups_of_an_up_to_date_one_are_up_to_date() {
    let groups = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let mut stage = Stage::new(3);
    if let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template {
        let content =
            LaunchTemplateData { security_group_ids: groups(&["sg-1"]), ..data().without_user_data() };
        versions.get_mut(&1).unwrap().content = Some(Arc::new(content));
    }
    if let DesiredLaunch::Known { data, .. } = &mut stage.desired.launch {
        data.security_group_ids = groups(&["sg-1", "sg-2"]);
    }
    add_foreign(&mut stage, 8, |data| data.security_group_ids = groups(&["sg-1"]));
    add_foreign(&mut stage, 9, |data| data.security_group_ids = groups(&["sg-9"]));
    for (id, version) in [("i-2", 8), ("i-3", 9)] {
        stage.instance(id).listed.as_mut().unwrap().template = Some(("lt-1".into(), version));
    }
    let plan = stage.plan();
    let outdated: Vec<bool> = ["i-1", "i-2", "i-3"].iter().map(|id| plan.outdated.is_outdated(id)).collect();
    assert_eq!(outdated, [false, false, true]);
}

/// AWS launched a replacement, and is about to terminate the instance that it replaces.
#[test]
fn h3_a_surplus_that_is_left_to_aws_is_no_room_for_a_rollout() {
    let mut stage = Stage::new(3);
    stage.new_image().add("i-4", 2);
    stage.desired.rollout = budget(1, 0);
    stage.group().capacity = capasg_cloud::Capacity { min: 0, max: 4, desired: 4 };
    assert_eq!(kubernetes(&stage.plan()).len(), 1, "the surge is room");
    stage.add("i-5", 2);
    stage.observe(now());
    stage.desired_for(3600);
    let plan = stage.plan();
    assert!(kubernetes(&plan).is_empty(), "{:?}", kubernetes(&plan));
}

/// The surge is launched at once; as many are replaced at a time as new ones are available.
#[test]
fn h3_a_surge_above_one_replaces_as_many_as_are_available() {
    for (surge, unavailable) in [(2, 0), (3, 0), (2, 1), (5, 0)] {
        let mut stage = Stage::new(5);
        stage.new_image();
        stage.desired.rollout = budget(surge, unavailable);
        assert_eq!(sizes(&stage), [5 + surge], "the whole surge at once");
        stage.group().capacity = capasg_cloud::Capacity { min: 0, max: 5 + surge, desired: 5 + surge };
        for number in 0..surge {
            let new = stage.add(&format!("i-n{number}"), 2).machine.as_mut().unwrap();
            new.has_node = false;
        }
        for joined in 0..=surge {
            let deletions = kubernetes(&stage.plan());
            let deletions: Vec<&String> =
                deletions.iter().filter(|write| write.starts_with("delete")).collect();
            let expected = usize::try_from((joined + unavailable).min(5)).unwrap();
            assert_eq!(deletions.len(), expected, "{joined} of {surge} joined, {unavailable}: {deletions:?}");
            if joined < surge {
                stage.instance(&format!("i-n{joined}")).machine.as_mut().unwrap().has_node = true;
            }
        }
    }
}

/// Fewer are left to be replaced than the surge allows: the rest of it is given back by decrements.
#[test]
fn h3_a_surge_above_one_shrinks_with_what_is_left_to_replace() {
    let mut stage = Stage::new(3);
    stage.new_image();
    stage.desired.rollout = budget(2, 0);
    stage.group().capacity = capasg_cloud::Capacity { min: 0, max: 5, desired: 5 };
    for id in ["i-4", "i-5"] {
        stage.add(id, 2);
    }
    stage.drained("i-1").drained("i-2");
    let plan = stage.plan();
    let ended = terminations(&plan);
    assert_eq!(ended, [(vec!["i-1"], true), (vec!["i-2"], false)], "one is left, so a surge of one");
    // AWS launched one for i-2.
    for id in ["i-1", "i-2"] {
        stage.observed.instances.remove(id);
    }
    stage.add("i-6", 2);
    stage.group().capacity = capasg_cloud::Capacity { min: 0, max: 5, desired: 4 };
    stage.drained("i-3");
    assert_eq!(terminations(&stage.plan()), [(vec!["i-3"], true)], "the last of the surge");
}
