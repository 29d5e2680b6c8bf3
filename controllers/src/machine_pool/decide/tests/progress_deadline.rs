//! What is outdated by age or on request, the progress deadline, and what the status says of it.

use capasg_api::pool::{RolloutType, RolloutWait};
use capasg_cloud::Capacity;
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::decide::rollout::outdated;
use crate::machine_pool::decide::testing::{Stage, facts, kubernetes, now};
use crate::machine_pool::model::OutdatedReason;
use crate::machine_pool::model::revision::revision;
use crate::machine_pool::model::{Ec2Answer, Plan, RolloutPhase, StopCause};

fn outdated(stage: &Stage, id: &str) -> Option<OutdatedReason> {
    outdated::outdated(&stage.desired, &stage.observed, stage.clock).reason(id)
}

fn launched(stage: &mut Stage, id: &str, at: DateTime<Utc>) {
    let mut found = facts(id, true);
    found.launched_at = Some(at);
    stage.instance(id).ec2 = Some(Ec2Answer { facts: Some(found), as_of: now() });
}

/// Three outdated instances and a new one that never joins, and what the status said when that began.
fn stuck() -> Stage {
    let mut stage = Stage::surged();
    let machine = stage.instance("i-4").machine.as_mut().unwrap();
    (machine.has_node, machine.ready) = (false, false);
    *stage.memory.rollout.reported_mut() = stage.plan().rollout_status;
    stage
}

fn wait(plan: &Plan) -> Option<(RolloutWait, DateTime<Utc>)> {
    let status = plan.rollout_status.as_ref()?;
    status.waiting_for.zip(status.waiting_since)
}

#[test]
fn p54_with_on_delete_a_replacement_request_outdates() {
    let mut stage = Stage::new(3);
    stage.instance("i-2").asg_machine.as_mut().unwrap().replace_requested = true;
    assert_eq!(outdated(&stage, "i-2"), Some(OutdatedReason::ReplaceRequested));
    assert_eq!(outdated(&stage, "i-1"), None);
    stage.desired.rollout.max_surge = 0;
    stage.desired.rollout.max_unavailable = 1;
    stage.desired.rollout.type_ = RolloutType::OnDelete;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-2"]);
    stage.new_image();
    assert_eq!(outdated(&stage, "i-2"), Some(OutdatedReason::ReplaceRequested), "the others wait for users");
    assert_eq!(outdated(&stage, "i-1"), Some(OutdatedReason::ImageChanged));
    stage.desired.rollout.type_ = RolloutType::RollingUpdate;
    assert_eq!(outdated(&stage, "i-2"), Some(OutdatedReason::ImageChanged), "its version comes first");
}

#[test]
fn p54_with_on_delete_a_replacement_request_is_followed() {
    let mut stage = Stage::new(3);
    stage.new_image();
    stage.desired.rollout.type_ = RolloutType::OnDelete;
    (stage.desired.rollout.max_surge, stage.desired.rollout.max_unavailable) = (0, 1);
    assert!(kubernetes(&stage.plan()).iter().all(|write| !write.starts_with("delete")));
    stage.instance("i-2").asg_machine.as_mut().unwrap().replace_requested = true;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-2"]);
}

#[test]
fn p54_after_counts_once_it_has_passed_and_only_for_what_was_launched_before() {
    let mut stage = Stage::new(3);
    launched(&mut stage, "i-1", now() - TimeDelta::hours(2));
    launched(&mut stage, "i-2", now() + TimeDelta::seconds(5));
    stage.desired.rollout.after = Some(now() + TimeDelta::seconds(1));
    assert_eq!(outdated(&stage, "i-1"), None);
    assert_eq!(stage.plan().requeue_after, Some(TimeDelta::seconds(1)));
    stage.clock += TimeDelta::seconds(10);
    assert_eq!(outdated(&stage, "i-1"), Some(OutdatedReason::LaunchedBefore));
    assert_eq!(outdated(&stage, "i-2"), None);
    assert_eq!(outdated(&stage, "i-3"), None, "when it was launched is not known");
    // A new leader knows what EC2 described before. The ASGMachine may have been created much later.
    let own = stage.instance("i-3").asg_machine.as_mut().unwrap();
    (own.created_at, own.launched_at) = (Some(now() + TimeDelta::minutes(4)), Some(now()));
    assert_eq!(outdated(&stage, "i-3"), Some(OutdatedReason::LaunchedBefore));
}

#[test]
fn lifetimes_of_instances_launched_together_end_over_a_tenth() {
    let mut stage = Stage::new(6);
    let lifetime = TimeDelta::days(10);
    stage.desired.rollout.max_instance_lifetime = Some(lifetime);
    let mut lifetimes = Vec::new();
    for n in 1..=6 {
        launched(&mut stage, &format!("i-{n}"), now());
    }
    for hours in 0..=240 {
        stage.clock = now() + TimeDelta::hours(hours);
        let old = outdated::outdated(&stage.desired, &stage.observed, stage.clock).count();
        lifetimes.extend(std::iter::repeat_n(hours, old - lifetimes.len()));
    }
    assert_eq!(lifetimes.len(), 6, "all at the limit: {lifetimes:?}");
    assert!(lifetimes.iter().all(|hours| *hours >= 216), "none before nine tenths: {lifetimes:?}");
    let different: std::collections::BTreeSet<i64> = lifetimes.iter().copied().collect();
    assert!(different.len() > 3, "not together: {lifetimes:?}");
}

#[test]
fn p54_an_instance_with_do_not_disrupt_is_replaced_last() {
    let mut stage = Stage::new(2);
    stage.new_image();
    stage.desired.rollout.max_surge = 0;
    stage.desired.rollout.max_unavailable = 1;
    stage.instance("i-1").asg_machine.as_mut().unwrap().do_not_disrupt = true;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-2"], "though i-1 is older");
    stage.observed.instances.remove("i-2");
    stage.add("i-3", 2);
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1"], "put off, not exempt");
    let mut stage = Stage::new(2);
    stage.instance("i-1").asg_machine.as_mut().unwrap().do_not_disrupt = true;
    stage.desired.replicas = 1;
    assert_eq!(kubernetes(&stage.plan()), ["annotate p-i-2", "delete p-i-2"], "in a scale-in, too");
}

#[test]
fn p54_delete_machine_overrides_do_not_disrupt_in_a_rollout() {
    let mut stage = Stage::new(2);
    stage.new_image();
    stage.desired.rollout.max_surge = 0;
    stage.desired.rollout.max_unavailable = 2;
    for id in ["i-1", "i-2"] {
        stage.instance(id).asg_machine.as_mut().unwrap().do_not_disrupt = true;
    }
    stage.instance("i-2").machine.as_mut().unwrap().delete_annotation = Some("user".to_owned());
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-2"], "the other one is replaced after it");
}

#[test]
fn w8_w26_a_rollout_without_progress_is_stopped_by_an_annotation() {
    let mut stage = stuck();
    let began = stage.clock;
    assert_eq!(wait(&stage.plan()), Some((RolloutWait::NewInstances, began)));
    stage.clock += TimeDelta::seconds(1799);
    let plan = stage.plan();
    assert!(plan.is_empty(), "{plan:?}");
    assert_eq!(plan.requeue_after, Some(TimeDelta::seconds(1)));
    assert_eq!(wait(&plan), Some((RolloutWait::NewInstances, began)), "the same twice says the same");
    stage.clock += TimeDelta::seconds(1);
    let plan = stage.plan();
    let stopped = ["stopping the rollout of ASGMachinePool ns/p", "annotate p-i-4", "delete p-i-4"];
    assert_eq!(kubernetes(&plan), stopped, "the annotation first, then what never joined");
    assert_eq!(
        plan.rollout,
        Some(RolloutPhase::Stopped {
            draining: Vec::new(),
            reason: "no new instance became available for 1800 s".to_owned(),
            cause: StopCause::ProgressDeadline
        })
    );
    assert_eq!(plan.rollout_status.as_ref().unwrap().waiting_for, Some(RolloutWait::Correction));
    // An annotation that is written but not read back counts, and so does one that another leader wrote.
    stage.observed.instances.remove("i-4");
    stage.group().capacity = Capacity { min: 0, max: 3, desired: 3 };
    let revision = revision(&stage.desired, &stage.observed);
    for (seen, written) in [(None, revision.clone()), (revision.clone(), None)] {
        *stage.memory.rollout.reported_mut() = None;
        (stage.desired.stopped, *stage.memory.rollout.stopped_mut()) = (seen, written);
        let plan = stage.plan();
        assert!(plan.is_empty(), "{plan:?}");
        assert!(matches!(plan.rollout, Some(RolloutPhase::Stopped { .. })));
    }
}

#[test]
fn a_stopped_rollout_continues_after_an_edit_or_without_its_annotation() {
    let mut stage = Stage::new(3);
    stage.new_image();
    stage.desired.stopped = revision(&stage.desired, &stage.observed);
    assert!(stage.plan().is_empty());
    stage.desired.instance_types.push("m6i.large".into());
    stage.desired_for(3600);
    let go_on = "resuming the rollout of ASGMachinePool ns/p";
    assert_eq!(kubernetes(&stage.plan()), [go_on]);
    assert_eq!(stage.plan().target, Some(4), "the surge");
    stage.desired.stopped = None;
    assert_eq!(kubernetes(&stage.plan()), Vec::<String>::new());
    // It is also removed if nothing is outdated any more, once everything is known.
    let mut stage = Stage::new(3);
    stage.desired.stopped = revision(&stage.desired, &stage.observed);
    for id in ["i-1", "i-2"] {
        launched(&mut stage, id, now());
    }
    assert_eq!(kubernetes(&stage.plan()), Vec::<String>::new(), "how old i-3 is");
    launched(&mut stage, "i-3", now());
    stage.instance("i-3").asg_machine.as_mut().unwrap().paused = true;
    assert_eq!(kubernetes(&stage.plan()), Vec::<String>::new(), "a paused one may be what is left");
    stage.instance("i-3").asg_machine.as_mut().unwrap().paused = false;
    assert_eq!(kubernetes(&stage.plan()), [go_on]);
}

#[test]
fn a_rotated_token_leaves_a_stopped_rollout_stopped() {
    let mut stage = Stage::new(3);
    stage.new_image();
    stage.desired.stopped = revision(&stage.desired, &stage.observed);
    if let crate::machine_pool::model::DesiredLaunch::Known { stamp, .. } = &mut stage.desired.launch {
        stamp.content = "0123456789abcdef".into();
    }
    let plan = stage.plan();
    assert!(!kubernetes(&plan).iter().any(|step| step.contains("rollout")), "{plan:?}");
    assert!(matches!(plan.rollout, Some(RolloutPhase::Stopped { .. })));
}

#[test]
fn progress_restarts_the_deadline() {
    let mut stage = stuck();
    let later = now() + TimeDelta::minutes(29);
    stage.clock = later;
    // An outdated one was deleted.
    stage.observed.instances.remove("i-1");
    assert_eq!(wait(&stage.plan()), Some((RolloutWait::NewInstances, later)));
    // A pause in between.
    let mut stage = stuck();
    stage.desired.rollout.mode = capasg_api::pool::RolloutMode::Paused;
    *stage.memory.rollout.reported_mut() = stage.plan().rollout_status;
    assert_eq!(stage.memory.rollout.reported().unwrap().waiting_for, Some(RolloutWait::Resume));
    stage.desired.rollout.mode = capasg_api::pool::RolloutMode::Automatic;
    stage.clock = later;
    assert_eq!(wait(&stage.plan()), Some((RolloutWait::NewInstances, later)));
    assert_eq!(stage.plan().rollout_status.unwrap().started_at, Some(now()), "it is the same rollout");
}

#[test]
fn a_surge_that_is_not_launched_is_given_up_if_replicas_may_be_missing() {
    let mut stage = Stage::new(3);
    stage.new_image().desired.rollout.max_unavailable = 1;
    stage.group().capacity = Capacity { min: 0, max: 4, desired: 4 };
    stage.observe(now());
    let plan = stage.plan();
    assert_eq!(plan.target, Some(4), "it is waited for");
    assert_eq!(plan.requeue_after, Some(TimeDelta::minutes(5)), "nothing else may wake the pool");
    let later = now() + TimeDelta::minutes(5);
    stage.observe(later);
    stage.clock = later;
    assert_eq!(stage.plan().target, Some(3));
    stage.group().capacity = Capacity { min: 0, max: 3, desired: 3 };
    stage.observe(later);
    assert_eq!(stage.plan().target, Some(3), "it is not requested repeatedly");
    let plan = stage.plan();
    assert_eq!(kubernetes(&plan), ["delete p-i-1"], "one is deleted first");
    let deadline = stage.desired.rollout.progress_deadline;
    assert!(plan.requeue_after.is_some_and(|after| after <= deadline), "{:?}", plan.requeue_after);
    stage.clock += deadline;
    assert_eq!(stage.plan().target, Some(4), "it is tried again");
}

#[test]
fn time_in_which_nothing_could_happen_is_no_waiting() {
    let mut stage = stuck();
    let began = stage.clock;
    stage.clock += TimeDelta::minutes(40);
    let before = stage.memory.clone();
    stage.memory.observe_pause();
    let plan = stage.plan();
    assert_eq!(wait(&plan), Some((RolloutWait::NewInstances, stage.clock)), "a pause");
    stage.memory = before;
    assert_eq!(plan.rollout_status.unwrap().started_at, Some(began), "it is the same rollout");

    stage.memory.observe_unreachable(true);
    assert!(!matches!(stage.plan().rollout, Some(RolloutPhase::Stopped { .. })), "what is there is not seen");
    stage.memory.observe_unreachable(false);
    assert_eq!(wait(&stage.plan()), Some((RolloutWait::NewInstances, stage.clock)), "AWS answers again");
}

/// Otherwise the deadline would requeue the pool at once, again and again.
#[test]
fn a_passed_deadline_requeues_nothing_while_aws_is_unreachable() {
    let mut stage = stuck();
    stage.memory.observe_unreachable(true);
    stage.clock += stage.desired.rollout.progress_deadline + TimeDelta::minutes(10);
    let plan = stage.plan();
    assert!(plan.is_empty(), "{plan:?}");
    assert!(
        plan.requeue_after.is_none_or(|after| after >= TimeDelta::seconds(1)),
        "{:?}",
        plan.requeue_after
    );
}
