//! Ends by example: our own, and those that the cloud starts.

use std::collections::BTreeSet;

use capasg_api::capi::MachineDeletion;
use capasg_cloud::{Capacity, CloudError, Group, LifecycleState, MaintenancePolicy, Write};
use chrono::TimeDelta;

use crate::machine_pool::decide::testing::{Stage, cloud, facts, kubernetes, now, set_desired, terminations};
use crate::machine_pool::model::{Blocker, Ec2Answer};

#[test]
fn d10_the_first_terminations_decrement_and_the_rest_is_replaced() {
    let mut stage = Stage::new(5);
    stage.drained("i-1").drained("i-2").drained("i-3");
    stage.desired.replicas = 4;
    let plan = stage.plan();
    assert_eq!(terminations(&plan), [(vec!["i-1"], true), (vec!["i-2", "i-3"], false)]);
    let annotations: Vec<String> =
        kubernetes(&plan).into_iter().filter(|w| w.starts_with("terminating")).collect();
    assert_eq!(
        annotations,
        ["terminating p-i-1", "terminating p-i-2", "terminating p-i-3"],
        "annotated before the calls"
    );
}

/// The group would choose one itself after a decrement.
#[test]
fn d10_instances_beyond_desired_capacity_are_terminated_first_without_a_decrement() {
    let stage = || {
        let mut stage = Stage::new(5);
        stage.drained("i-1").drained("i-2").drained("i-3");
        stage.group().capacity = Capacity { min: 0, max: 5, desired: 4 };
        stage.desired.replicas = 3;
        stage
    };
    let expected = [(vec!["i-1"], false), (vec!["i-2"], true), (vec!["i-3"], false)];
    assert_eq!(terminations(&stage().plan()), expected);
    // Without a decrement the group would launch another one, again and again.
    let launches_first: [fn(&mut Group); 3] = [
        |group| group.settings.capacity_rebalance = true,
        |group| {
            group.settings.maintenance_policy =
                Some(MaintenancePolicy { min_healthy_percentage: 100, max_healthy_percentage: 110 });
        },
        |group| group.suspended_processes.clear(),
    ];
    for edit in launches_first {
        let mut stage = stage();
        edit(stage.group());
        assert_eq!(terminations(&stage.plan()), [(vec!["i-1"], true), (vec!["i-2", "i-3"], false)]);
    }
}

#[test]
fn a_termination_is_not_reverted_by_bounds_of_an_older_view() {
    // The first of three terminations was answered: desired is 4 and MaxSize still 5.
    let mut stage = Stage::new(5);
    stage.drained("i-1").lifecycle("i-1", LifecycleState::TerminatingWait).drained("i-2").drained("i-3");
    stage.group().capacity = Capacity { min: 0, max: 5, desired: 4 };
    stage.desired.replicas = 2;
    let plan = stage.plan();
    assert_eq!(terminations(&plan), [(vec!["i-2", "i-3"], true)]);
    let capacity =
        |write: &&Write| matches!(write, Write::UpdateGroup { .. } | Write::SetDesiredCapacity { .. });
    assert_eq!(cloud(&plan).iter().copied().find(capacity), None);
}

#[test]
fn a_deletion_by_a_user_is_replaced_during_a_scale_in() {
    let mut stage = Stage::new(3);
    stage.drained("i-2");
    assert_eq!(terminations(&stage.plan()), [(vec!["i-2"], false)]);
}

#[test]
fn a_termination_needs_a_fresh_read_and_is_not_repeated_within_60_s() {
    let mut stage = Stage::new(3);
    stage.drained("i-1");
    stage.observed.fresh_group = false;
    let plan = stage.plan();
    assert!(plan.needs.fresh_group && terminations(&plan).is_empty());
    stage.observed.fresh_group = true;
    let requested = |seconds| Some(now() - TimeDelta::seconds(seconds));
    stage.instance("i-1").asg_machine.as_mut().unwrap().termination_requested_at = requested(59);
    let plan = stage.plan();
    assert!(terminations(&plan).is_empty());
    assert_eq!(plan.requeue_after, Some(TimeDelta::seconds(1)));
    stage.instance("i-1").asg_machine.as_mut().unwrap().termination_requested_at = requested(60);
    assert_eq!(terminations(&stage.plan()).len(), 1);
    stage.memory.terminations.requested_mut().insert("i-1".into(), now());
    assert!(terminations(&stage.plan()).is_empty(), "a cache that lags does not show the annotation yet");
}

#[test]
fn p50_terminations_are_requested_in_batches_of_a_hundred() {
    let mut stage = Stage::new(250);
    for n in 1..=250 {
        stage.drained(&format!("i-{n}"));
    }
    stage.desired.replicas = 0;
    let sizes: Vec<usize> = terminations(&stage.plan()).iter().map(|(ids, _)| ids.len()).collect();
    assert_eq!(sizes, [100, 100, 50]);
}

#[test]
fn a_termination_that_we_requested_is_completed_once_held() {
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
    stage.memory.lifecycle_actions.completed_mut().insert("i-1".into(), now());
    assert!(cloud(&stage.plan()).is_empty());
}

#[test]
fn p51_a_termination_by_aws_is_held_drained_and_completed() {
    let mut stage = Stage::new(3);
    stage.lifecycle("i-2", LifecycleState::TerminatingWait);
    let plan = stage.plan();
    assert_eq!(plan.needs.facts, BTreeSet::from(["i-2".to_owned()]), "does the machine still run?");
    let running = Ec2Answer { facts: Some(facts("i-2", true)), as_of: now() };
    stage.instance("i-2").ec2 = Some(running);
    let plan = stage.plan();
    assert!(kubernetes(&plan).contains(&"delete p-i-2".to_owned()));
    assert!(cloud(&plan).iter().any(|w| matches!(w, Write::RecordLifecycleActionHeartbeat { .. })));
    assert!(!cloud(&plan).iter().any(|w| matches!(w, Write::CompleteLifecycleAction { .. })));
    stage.drained("i-2");
    assert!(cloud(&stage.plan()).iter().any(|w| matches!(w, Write::CompleteLifecycleAction { .. })));
}

#[test]
fn a_terminated_instance_is_not_drained_and_its_hook_is_completed() {
    let mut stage = Stage::new(3);
    stage.lifecycle("i-2", LifecycleState::TerminatingWait);
    stage.instance("i-2").ec2 = Some(Ec2Answer { facts: None, as_of: now() });
    let plan = stage.plan();
    assert_eq!(kubernetes(&plan), ["exclude p-i-2", "delete p-i-2"]);
    assert!(cloud(&plan).iter().any(|w| matches!(w, Write::CompleteLifecycleAction { .. })));
}

/// An instance that our hook holds, with a drain that has taken 30 seconds and a limit in seconds.
fn held_drain(limit: i64) -> Stage {
    let mut stage = Stage::new(3);
    stage.draining("i-2").lifecycle("i-2", LifecycleState::TerminatingWait);
    stage.desired.drain_limit = TimeDelta::seconds(limit);
    stage.instance("i-2").ec2 = Some(Ec2Answer { facts: Some(facts("i-2", true)), as_of: now() });
    stage
}

#[test]
fn a_drain_past_its_limit_is_not_held_any_longer() {
    let stage = held_drain(10);
    assert!(cloud(&stage.plan()).iter().any(|w| matches!(w, Write::CompleteLifecycleAction { .. })));
}

/// The heartbeats may be further apart.
#[test]
fn p51_a_drain_is_requeued_when_its_limit_passes() {
    let stage = held_drain(40);
    let plan = stage.plan();
    assert!(!cloud(&plan).iter().any(|w| matches!(w, Write::CompleteLifecycleAction { .. })));
    assert_eq!(plan.requeue_after, Some(TimeDelta::seconds(10)));
}

#[test]
fn d14_p51_core_is_given_time_to_give_up_a_drain_by_its_own_limit() {
    // A drain that has taken 30 seconds, by a limit that passed this many seconds ago.
    let completes = |ago: i32| {
        let core = 30 - ago;
        let mut stage = held_drain(i64::from(core));
        stage.desired.timeouts =
            Some(MachineDeletion { node_drain_timeout_seconds: Some(core), ..MachineDeletion::default() });
        cloud(&stage.plan()).iter().any(|w| matches!(w, Write::CompleteLifecycleAction { .. }))
    };
    assert!(!completes(0) && !completes(29), "core gives up by itself");
    assert!(completes(30), "unless it does not");
}

#[test]
fn d11_ec2_is_read_before_the_machine_of_a_missing_instance_is_deleted() {
    let mut stage = Stage::new(3);
    stage.instance("i-3").listed = None;
    stage.group().capacity.desired = 3;
    let plan = stage.plan();
    assert!(plan.needs.facts.contains("i-3"));
    assert!(kubernetes(&plan).is_empty());
    stage.instance("i-3").ec2 = Some(Ec2Answer { facts: None, as_of: now() });
    assert_eq!(kubernetes(&stage.plan()), ["exclude p-i-3", "delete p-i-3"]);
    stage.drained("i-3");
    assert_eq!(kubernetes(&stage.plan()), ["release p-i-3"]);
}

#[test]
fn a_detached_instance_keeps_its_machine() {
    let mut stage = Stage::new(3);
    stage.instance("i-3").listed = None;
    stage.group().capacity = Capacity { min: 0, max: 3, desired: 2 };
    stage.desired.replicas = 2;
    stage.instance("i-3").ec2 = Some(Ec2Answer { facts: Some(facts("i-3", true)), as_of: now() });
    let plan = stage.plan();
    assert!(kubernetes(&plan).is_empty());
    assert_eq!(plan.blocker, Some(Blocker::Detached { instances: vec!["i-3".into()] }));
}

#[test]
fn an_annotation_from_the_future_counts_as_now() {
    let mut stage = Stage::new(3);
    stage.drained("i-1");
    let annotation = Some(now() + TimeDelta::hours(5));
    stage.instance("i-1").asg_machine.as_mut().unwrap().termination_requested_at = annotation;
    assert_eq!(stage.plan().requeue_after, Some(TimeDelta::seconds(60)));
}

#[test]
fn after_a_failure_each_termination_of_the_batch_is_requested_alone() {
    let mut stage = Stage::new(4);
    stage.drained("i-1").drained("i-2").drained("i-3").drained("i-4");
    let batch = Write::TerminateInstances {
        group: "g".to_owned(),
        instances: BTreeSet::from(["i-1".to_owned(), "i-2".to_owned()]),
        decrement: false,
    };
    let not_found = CloudError::answered("Api", 400, "ValidationError", "Instance Id not found");
    stage.memory.failed_calls.fail(&batch, &not_found, now());
    let expected = [(vec!["i-3", "i-4"], false), (vec!["i-1"], false), (vec!["i-2"], false)];
    assert_eq!(terminations(&stage.plan()), expected);
}

/// A read that is behind our own decrement must not decrement it again.
#[test]
fn d10_a_read_that_lags_behind_our_write_decrements_nothing_twice() {
    for (seconds, decrement) in [(2, false), (60, true)] {
        let mut stage = Stage::new(3);
        stage.desired.replicas = 2;
        stage.drained("i-1");
        stage.observed.fresh_group = true;
        stage.made(&set_desired(2), now() - TimeDelta::seconds(seconds));
        assert_eq!(terminations(&stage.plan()), [(vec!["i-1"], decrement)], "{seconds} s after the write");
    }
}

#[test]
fn d11_a_cache_does_not_prove_that_there_is_no_machine_to_drain() {
    let mut stage = Stage::new(1);
    stage.lifecycle("i-1", LifecycleState::TerminatingWait);
    let running = Ec2Answer { facts: Some(facts("i-1", true)), as_of: now() };
    let instance = stage.instance("i-1");
    (instance.machine, instance.ec2) = (None, Some(running));
    stage.observed.live_machines = false;
    let plan = stage.plan();
    assert!(plan.needs.live_machines, "a list is required first: {plan:?}");
    assert!(!kubernetes(&plan).iter().any(|write| write.starts_with("delete")), "{plan:?}");
    stage.observed.live_machines = true;
    assert!(kubernetes(&stage.plan()).contains(&"delete ASGMachine p-i-1".to_owned()));
}

/// The previous leader may have lowered it just now: a read may not show it yet.
#[test]
fn d10_a_new_leader_decrements_only_once_reads_show_earlier_writes() {
    let mut stage = Stage::new(3);
    stage.desired.replicas = 2;
    stage.drained("i-1");
    *stage.memory.began_mut() = Some(now() - TimeDelta::seconds(4));
    let plan = stage.plan();
    assert!(
        terminations(&plan).is_empty() && !kubernetes(&plan).contains(&"terminating p-i-1".to_owned()),
        "{plan:?}"
    );
    assert_eq!(plan.requeue_after, Some(TimeDelta::seconds(11)));
    stage.desired.replicas = 3;
    assert_eq!(terminations(&stage.plan()), [(vec!["i-1"], false)], "a replacement decrements nothing");
    stage.desired.replicas = 2;
    *stage.memory.began_mut() = Some(now() - TimeDelta::seconds(15));
    assert_eq!(terminations(&stage.plan()), [(vec!["i-1"], true)]);
}

/// The time-out of what is held is the hook's at its last heartbeat, whatever the spec says by now.
#[test]
fn p51_heartbeats_follow_the_hook_in_aws() {
    let waits = |known: Option<i32>, seconds: i64| {
        let mut stage = Stage::new(3);
        stage.draining("i-2").lifecycle("i-2", LifecycleState::TerminatingWait);
        stage.instance("i-2").ec2 = Some(Ec2Answer { facts: Some(facts("i-2", true)), as_of: now() });
        *stage.memory.lifecycle_actions.heartbeat_timeout_mut() = known;
        stage
            .memory
            .lifecycle_actions
            .extended_mut()
            .insert("i-2".to_owned(), now() - TimeDelta::seconds(seconds));
        !cloud(&stage.plan()).iter().any(|w| matches!(w, Write::RecordLifecycleActionHeartbeat { .. }))
    };
    assert!(waits(None, 1_799) && !waits(None, 1_800));
    assert!(waits(Some(60), 29) && !waits(Some(60), 30), "one hour is desired, the hook has a minute");
    assert!(!waits(Some(7_200), 1_800), "the desired timeout is shorter");
}

/// Another actor may have detached it between our annotation and our call.
#[test]
fn b1_an_annotation_alone_does_not_prove_a_termination() {
    let mut stage = Stage::new(3);
    stage.drained("i-3");
    stage.instance("i-3").listed = None;
    let long_ago = now() - TimeDelta::minutes(2);
    stage.instance("i-3").asg_machine.as_mut().unwrap().termination_requested_at = Some(long_ago);
    stage.memory.sightings.terminating_mut().insert("i-3".to_owned(), long_ago);
    let plan = stage.plan();
    assert!(plan.needs.facts.contains("i-3") && kubernetes(&plan).is_empty(), "{plan:?}");
    stage.memory.terminations.accepted_mut().insert("i-3".to_owned(), long_ago);
    assert_eq!(kubernetes(&stage.plan()), ["release p-i-3"], "AWS took our call");
}

/// The watch of ASGMachines stalls: only the Machine shows that the drain continues.
#[test]
fn p51_a_held_instance_is_kept_while_only_its_machine_is_observed() {
    let mut stage = Stage::new(3);
    stage.draining("i-2").lifecycle("i-2", LifecycleState::TerminatingWait);
    stage.instance("i-2").ec2 = Some(Ec2Answer { facts: Some(facts("i-2", true)), as_of: now() });
    let instance = stage.instance("i-2");
    let (machine, _) = (instance.machine.take(), instance.asg_machine.take());
    stage.observed.unmatched_machines.extend(machine);
    let completes = |stage: &Stage| {
        cloud(&stage.plan()).iter().any(|w| matches!(w, Write::CompleteLifecycleAction { .. }))
    };
    assert!(!completes(&stage));
    stage.observed.unmatched_machines.clear();
    assert!(completes(&stage), "nothing is left to drain");
}

/// The ASGMachine is not observed any more, and a disruption budget blocks the drain.
#[test]
fn p51_the_drain_limit_applies_if_only_the_machine_is_observed() {
    let mut stage = held_drain(10);
    let instance = stage.instance("i-2");
    let (machine, _) = (instance.machine.take(), instance.asg_machine.take());
    stage.observed.unmatched_machines.extend(machine);
    assert!(cloud(&stage.plan()).iter().any(|w| matches!(w, Write::CompleteLifecycleAction { .. })));
}
