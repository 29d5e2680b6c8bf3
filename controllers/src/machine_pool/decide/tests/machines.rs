//! What is handed down to Machines, by example.

use std::sync::Arc;

use capasg_api::{
    ASGMachinePoolStatus,
    capi::{MachineDeletion, MachinePool},
    pool::LaunchTemplateStatus,
};
use capasg_cloud::{LifecycleState, Write};
use chrono::TimeDelta;
use serde_json::json;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::decide::machines::creation;
use crate::machine_pool::decide::rollout::outdated;
use crate::machine_pool::decide::testing::{Stage, facts, kubernetes, now};
use crate::machine_pool::model::launch_record::LaunchRecord;
use crate::machine_pool::model::provider_ids::provider_id_list;
use crate::machine_pool::model::{Blocker, Ec2Answer, GroupView, OutdatedReason, Step};

fn limits(drain: Option<i32>, detach: Option<i32>, deletion: Option<i32>) -> MachineDeletion {
    MachineDeletion {
        node_drain_timeout_seconds: drain,
        node_volume_detach_timeout_seconds: detach,
        node_deletion_timeout_seconds: deletion,
    }
}

#[test]
fn d14_timeouts_are_copied_to_machines_that_differ_or_are_deleted() {
    let mut stage = Stage::new(3);
    stage.desired.timeouts = Some(limits(Some(60), Some(30), Some(20)));
    stage.instance("i-1").machine.as_mut().unwrap().timeouts = limits(Some(60), Some(30), Some(20));
    stage.draining("i-2");
    assert_eq!(kubernetes(&stage.plan()), ["timeouts p-i-2", "timeouts p-i-3"]);
}

#[test]
fn d14_a_removed_timeout_is_removed_except_the_default_of_core() {
    let mut stage = Stage::new(1);
    stage.instance("i-1").machine.as_mut().unwrap().timeouts = limits(Some(60), None, Some(10));
    let plan = stage.plan();
    let [Step::Kubernetes(KubeWrite::PatchMachineTimeouts { deletion, .. })] =
        &plan.steps().collect::<Vec<_>>()[..]
    else {
        panic!("{plan:?}")
    };
    assert_eq!(*deletion, limits(None, None, Some(10)));
    stage.instance("i-1").machine.as_mut().unwrap().timeouts = *deletion;
    assert!(stage.plan().is_empty(), "once is enough");
}

#[test]
fn d14_without_a_machine_pool_machines_keep_what_they_have() {
    let mut stage = Stage::new(1);
    stage.instance("i-1").machine.as_mut().unwrap().timeouts = limits(Some(60), None, None);
    stage.desired.timeouts = None;
    assert!(stage.plan().is_empty());
}

#[test]
fn d14_a_paused_machine_is_not_changed() {
    let mut stage = Stage::new(1);
    stage.desired.timeouts = Some(limits(Some(60), None, None));
    stage.instance("i-1").asg_machine.as_mut().unwrap().paused = true;
    assert!(stage.plan().is_empty());
}

#[test]
fn b1_a_terminating_instance_without_observed_asg_machine_stays_listed() {
    let mut stage = Stage::new(2);
    let before = provider_id_list(&stage.observed, &[], &stage.memory);
    assert_eq!(before.len(), 2);
    stage.lifecycle("i-1", LifecycleState::Terminating);
    let instance = stage.instance("i-1");
    (instance.asg_machine, instance.machine) = (None, None);
    assert_eq!(provider_id_list(&stage.observed, &before, &stage.memory), before, "it is there still");
    assert_eq!(provider_id_list(&stage.observed, &[], &stage.memory).len(), 1, "it is not taken in again");
    stage.memory.sightings.listed_mut().insert("i-1".to_owned(), ("eu-west-1a".to_owned(), now()));
    assert_eq!(
        provider_id_list(&stage.observed, &[], &stage.memory),
        before,
        "it was live a moment ago, so the list that the cache shows is older than ours"
    );
    stage.memory.sightings.released_mut().insert("i-1".to_owned(), now());
    assert_eq!(
        provider_id_list(&stage.observed, &before, &stage.memory).len(),
        1,
        "it is known to be terminated"
    );
}

/// Its ASGMachine was created while it terminated: a live listing shows it, the cache that is read next does not yet.
#[test]
fn b1_an_asg_machine_of_a_terminating_instance_keeps_it_listed() {
    let mut stage = Stage::new(2);
    stage.lifecycle("i-1", LifecycleState::TerminatingWait);
    stage.observe(now());
    let listed = provider_id_list(&stage.observed, &[], &stage.memory);
    let instance = stage.instance("i-1");
    (instance.asg_machine, instance.machine) = (None, None);
    assert_eq!(provider_id_list(&stage.observed, &[], &stage.memory), listed);
}

/// The watch of ASGMachines stalls, and another actor detaches the instance: only its Machine is observed.
#[test]
fn b1_a_detached_instance_without_observed_asg_machine_stays_listed() {
    let mut stage = Stage::new(2);
    let before = provider_id_list(&stage.observed, &[], &stage.memory);
    stage.draining("i-2");
    let instance = stage.observed.instances.remove("i-2").unwrap();
    assert_eq!(provider_id_list(&stage.observed, &before, &stage.memory).len(), 1, "its Machine is deleted");
    stage.observed.unmatched_machines.extend(instance.machine);
    assert_eq!(provider_id_list(&stage.observed, &before, &stage.memory), before);
    stage.memory.sightings.released_mut().insert("i-2".to_owned(), now());
    assert_eq!(provider_id_list(&stage.observed, &before, &stage.memory).len(), 1, "it was released");
}

/// Another actor detached it while it was drained: otherwise it would run unnoticed.
#[test]
fn b1_a_drained_detached_instance_is_kept_until_it_is_terminated() {
    let mut stage = Stage::new(2);
    stage.drained("i-2").instance("i-2").listed = None;
    stage.memory.sightings.terminating_mut().insert("i-2".to_owned(), now() - chrono::TimeDelta::minutes(10));
    let answer = |runs| Some(Ec2Answer { facts: Some(facts("i-2", runs)), as_of: now() });
    stage.instance("i-2").ec2 = answer(true);
    let plan = stage.plan();
    assert!(kubernetes(&plan).is_empty(), "{plan:?}");
    assert_eq!(plan.blocker, Some(Blocker::Detached { instances: vec!["i-2".to_owned()] }));
    assert!(plan.requeue_after.is_some(), "nothing else reports its termination");
    stage.instance("i-2").ec2 = answer(false);
    assert_eq!(kubernetes(&stage.plan()), ["release p-i-2"]);
}

/// AWS accepted the termination of an instance that another actor detaches: once EC2 has described it as running, the answer
/// proves nothing any more.
#[test]
fn d13_a_detached_instance_is_not_terminated_by_an_accepted_call() {
    let mut stage = Stage::new(2);
    stage.observe(now());
    stage.drained("i-2").instance("i-2").listed = None;
    let accepted = now() - TimeDelta::minutes(10);
    stage.memory.terminations.accepted_mut().insert("i-2".to_owned(), accepted);
    assert_eq!(kubernetes(&stage.plan()), ["release p-i-2"]);
    stage.instance("i-2").ec2 = Some(Ec2Answer { facts: Some(facts("i-2", true)), as_of: now() });
    let plan = stage.plan();
    assert_eq!(plan.blocker, Some(Blocker::Detached { instances: vec!["i-2".to_owned()] }));
    stage.memory.decide(&stage.observed, &plan, now());
    // A pause is long enough for the facts to be forgotten.
    stage.instance("i-2").ec2 = None;
    assert!(kubernetes(&stage.plan()).is_empty());
}

/// The poll after a read shows an older state, which is used until the next.
#[test]
fn b1_an_older_view_removes_nothing_from_the_list() {
    let mut stage = Stage::new(2);
    stage.observe(now());
    let before = provider_id_list(&stage.observed, &[], &stage.memory);
    let removed = stage.observed.instances.remove("i-2").unwrap();
    assert!(removed.listed.is_some());
    for seconds in [1, 10, 60] {
        stage.observe(now() + TimeDelta::seconds(seconds));
        assert_eq!(provider_id_list(&stage.observed, &before, &stage.memory), before, "{seconds} s");
    }
    if let GroupView::Present { as_of, .. } = &mut stage.observed.group {
        *as_of = now() + TimeDelta::seconds(60);
    }
    stage.observe(now() + TimeDelta::seconds(70));
    assert_eq!(provider_id_list(&stage.observed, &before, &stage.memory).len(), 1, "a view of long after");
}

/// What the plan records on the ASGMachine of an instance.
fn recorded(stage: &Stage, id: &str) -> String {
    let steps = creation::create(&stage.input(), None).steps;
    let record = steps.into_iter().find_map(|step| match step {
        Step::Kubernetes(KubeWrite::AnnotateDesiredState { machine, record, .. })
            if machine.name == format!("p-{id}") =>
        {
            Some(record)
        }
        _ => None,
    });
    record.unwrap()
}

/// Nobody removed its type from the spec, as long as the spec names the types that it named when the pool found the instance.
#[test]
fn h3_an_attached_instance_of_another_type_is_outdated_once_the_types_change() {
    let mut stage = Stage::new(2);
    let listed = stage.instance("i-1").listed.as_mut().unwrap();
    (listed.template, listed.instance_type) = (None, Some("c5.large".into()));
    let recorded = recorded(&stage, "i-1");
    let of_earlier_release = recorded.split_once(" types=").unwrap().0.to_owned();
    let reason = |stage: &mut Stage, record: &str, types: &[&str]| {
        stage.instance("i-1").asg_machine.as_mut().unwrap().launch_record = LaunchRecord::parse(record);
        stage.desired.instance_types = types.iter().map(|kind| (*kind).to_owned()).collect();
        outdated::outdated(&stage.desired, &stage.observed, now()).reason("i-1")
    };
    for (types, expected) in [
        (&["m7i.large"][..], None),
        (&["m7i.large", "m6i.large"][..], Some(OutdatedReason::TypeRemoved)),
        (&["m7i.large", "c5.large"][..], None),
    ] {
        assert_eq!(reason(&mut stage, &recorded, types), expected, "{types:?}");
        assert_eq!(reason(&mut stage, &of_earlier_release, types), None, "{types:?}");
    }
}

/// Another actor deletes the launch template when AWS has just launched i-2 from it, and the spec changes: i-2 is as outdated
/// as i-1, whose ASGMachine records the version.
#[test]
fn h3_an_instance_is_recorded_as_one_that_was_launched_from_the_same_deleted_version() {
    let mut stage = Stage::new(3);
    let recorded = |stage: &Stage, id: &str| LaunchRecord::parse(&recorded(stage, id)).unwrap();
    let before = recorded(&stage, "i-1");
    assert!(matches!(before, LaunchRecord::Launched(_)), "{before:?}");
    stage.new_image();
    for id in ["i-1", "i-2"] {
        stage.instance(id).listed.as_mut().unwrap().template = Some(("lt-deleted".to_owned(), 1));
    }
    let found = recorded(&stage, "i-2");
    assert!(matches!(&found, LaunchRecord::Found { stamp, .. } if stamp != before.stamp()), "{found:?}");
    stage.instance("i-1").asg_machine.as_mut().unwrap().launch_record = Some(before.clone());
    assert_eq!(recorded(&stage, "i-2"), before);
    stage.instance("i-2").listed.as_mut().unwrap().template = Some(("lt-deleted".to_owned(), 2));
    assert!(matches!(recorded(&stage, "i-2"), LaunchRecord::Found { .. }), "another version");
    // No other instance has a record.
    let reported = LaunchTemplateStatus {
        id: "lt-deleted".to_owned(),
        version: 2,
        content_hash: Some(before.stamp().content.clone()),
        rollout_hash: Some(before.stamp().rollout.clone()),
    };
    let status = ASGMachinePoolStatus { launch_template: Some(reported), ..ASGMachinePoolStatus::default() };
    Arc::make_mut(&mut stage.objects.pool).status = Some(status);
    let LaunchRecord::Launched(stamp) = recorded(&stage, "i-2") else { panic!("it is reported") };
    assert!(stamp.outdated_under(found.stamp()));
}

/// AWS terminates i-1, which never had an ASGMachine; a lifecycle hook has held it for this long.
fn held_without_machine(seconds: i64, runs: bool) -> Stage {
    let mut stage = Stage::new(2);
    let owner: MachinePool = serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachinePool",
        "metadata": { "name": "p", "namespace": "ns" },
        "spec": { "clusterName": "c", "template": { "spec": { "clusterName": "c", "infrastructureRef": {} } } },
    }))
    .unwrap();
    stage.objects.machine_pool = Some(Arc::new(owner));
    stage.objects.cluster_name = Some("c".to_owned());
    stage.lifecycle("i-1", LifecycleState::TerminatingWait);
    let instance = stage.instance("i-1");
    (instance.asg_machine, instance.machine) = (None, None);
    instance.ec2 = Some(Ec2Answer { facts: Some(facts("i-1", runs)), as_of: now() });
    let since = now() - TimeDelta::seconds(seconds);
    stage.memory.sightings.terminating_mut().insert("i-1".to_owned(), since);
    stage
}

fn creates(stage: &Stage) -> bool {
    let steps = creation::create(&stage.input(), None).steps;
    steps.iter().any(|step| matches!(step, Step::Kubernetes(KubeWrite::CreateAsgMachine(_))))
}

/// Another hook may hold an instance for hours after it is terminated.
#[test]
fn d4_a_terminated_instance_that_a_hook_holds_gets_no_asg_machine() {
    let created = |runs| creates(&held_without_machine(60, runs));
    assert!(created(true), "its Node can be drained");
    assert!(!created(false), "it would be created again after each release");
}

/// `DescribeInstances` fails: otherwise the instance would terminate with its Pods.
#[test]
fn d4_an_instance_that_ec2_does_not_describe_is_drained() {
    let held = |seconds| {
        let mut stage = held_without_machine(seconds, true);
        stage.instance("i-1").ec2 = None;
        stage
    };
    let created = |seconds| creates(&held(seconds));
    assert!(!created(29), "EC2 may answer yet");
    assert!(created(30));
    let drained = |seconds| {
        let mut stage = held(seconds);
        let whole = Stage::new(2).instance("i-1").clone();
        let instance = stage.instance("i-1");
        (instance.asg_machine, instance.machine) = (whole.asg_machine, whole.machine);
        let plan = stage.plan();
        assert!(plan.needs.facts.contains("i-1"), "its drain ends early if it has terminated");
        kubernetes(&plan).iter().any(|write| write == "delete p-i-1")
    };
    assert!(!drained(29));
    assert!(drained(30));
}

#[test]
fn d4_an_asg_machine_that_cannot_be_created_is_waited_for_no_longer_than_a_drain() {
    let completes = |seconds| {
        let plan = held_without_machine(seconds, true).plan();
        plan.writes().any(|write| matches!(write, Write::CompleteLifecycleAction { .. }))
    };
    assert!(!completes(3599));
    assert!(completes(3600));
}

/// A poll may show the termination after a minute.
#[test]
fn d11_a_short_drain_limit_leaves_core_time_to_create_the_machine() {
    let completes = |seconds| {
        let mut stage = held_without_machine(seconds, true);
        stage.desired.drain_limit = TimeDelta::seconds(5);
        stage.plan().writes().any(|write| matches!(write, Write::CompleteLifecycleAction { .. }))
    };
    assert!(!completes(119));
    assert!(completes(120));
}

/// The heartbeats of the hook may be further apart, and nothing else wakes the pool.
#[test]
fn d11_the_wait_for_core_is_requeued_when_it_ends() {
    for has_asg_machine in [true, false] {
        let mut stage = held_without_machine(110, true);
        stage.desired.drain_limit = TimeDelta::seconds(5);
        if has_asg_machine {
            stage.instance("i-1").asg_machine = Stage::new(2).instance("i-1").asg_machine.take();
        }
        let plan = stage.plan();
        assert!(!plan.writes().any(|write| matches!(write, Write::CompleteLifecycleAction { .. })));
        assert_eq!(plan.requeue_after, Some(TimeDelta::seconds(10)), "has_asg_machine: {has_asg_machine}");
    }
}
