//! What AWS announces for single instances, by example.

use capasg_api::{
    capi::MachineDeletion,
    pool::{RolloutMode, RolloutType},
};
use capasg_cloud::{InstanceFacts, LifecycleState, NoticeKind, PurchaseOption};

use crate::machine_pool::decide::disruption_budget::Budget;
use crate::machine_pool::decide::machines::time_limits;
use crate::machine_pool::decide::testing::{Stage, facts, kubernetes, now, terminations};
use crate::machine_pool::model::instance_notice::accepted;
use crate::machine_pool::model::{Ec2Answer, ReplicaOwner};

/// What EC2 says of a machine: how it is paid for, or that it knows none.
fn paid(purchase: Option<PurchaseOption>) -> Ec2Answer {
    let known = purchase.map(|purchase| InstanceFacts { purchase, ..facts("i-1", true) });
    Ec2Answer { facts: known, as_of: now() }
}

/// EC2 reclaims it, which its ASGMachine reports.
fn interrupted(stage: &mut Stage, id: &str) {
    let instance = stage.instance(id);
    (instance.notice, instance.notice_is_reported) = (Some(NoticeKind::SpotInterruption), true);
}

#[test]
fn w8_w18_p17_an_interruption_is_reported_before_anything_is_done_about_it() {
    let mut stage = Stage::new(3);
    interrupted(&mut stage, "i-1");
    stage.instance("i-1").notice_is_reported = false;
    stage.desired.timeouts = None;
    let plan = stage.plan();
    assert!(plan.is_empty() && plan.target == Some(3), "{plan:?}");
    assert!(plan.requeue_after.is_some_and(|wait| wait.num_seconds() <= 1), "{:?}", plan.requeue_after);
}

#[test]
fn w18_p17_a_spot_event_counts_for_spot_instances_alone() {
    use NoticeKind::{RebalanceRecommendation, ScheduledRetirement, SpotInterruption};
    let spot = paid(Some(PurchaseOption::Spot));
    for kind in [SpotInterruption, RebalanceRecommendation] {
        assert_eq!(accepted(Some(kind), None, Some(&spot)), (Some(kind), false));
        // EC2 is read first.
        assert_eq!(accepted(Some(kind), None, None), (None, true));
        for other in [None, Some(PurchaseOption::OnDemand), Some(PurchaseOption::Scheduled)] {
            assert_eq!(accepted(Some(kind), None, Some(&paid(other))), (None, false), "{other:?}");
        }
        // What the previous leader reported counts for the new leader, which has no description yet.
        assert_eq!(accepted(None, Some(kind), None), (Some(kind), false));
        assert_eq!(accepted(Some(kind), Some(kind), None), (Some(kind), false));
    }
    let both = accepted(Some(SpotInterruption), Some(ScheduledRetirement), Some(&spot));
    assert_eq!(both, (Some(SpotInterruption), false));
    assert_eq!(
        accepted(Some(RebalanceRecommendation), Some(ScheduledRetirement), None),
        (Some(ScheduledRetirement), false)
    );
    assert_eq!(
        accepted(Some(ScheduledRetirement), None, None),
        (Some(ScheduledRetirement), false),
        "of any machine"
    );
}

#[test]
fn p17_a_retirement_that_aws_closes_is_forgotten_although_it_was_reported() {
    use NoticeKind::{RebalanceRecommendation, RetirementClosed, ScheduledRetirement, SpotInterruption};
    assert_eq!(accepted(Some(RetirementClosed), Some(ScheduledRetirement), None), (None, false));
    assert_eq!(accepted(Some(RetirementClosed), None, None), (None, false));
    for other in [RebalanceRecommendation, SpotInterruption] {
        assert_eq!(accepted(Some(RetirementClosed), Some(other), None), (Some(other), false));
    }
}

#[test]
fn w18_p17_ec2_is_read_before_an_event_about_an_instance_counts() {
    let mut stage = Stage::new(3);
    stage.instance("i-1").notice_is_unverified = true;
    let plan = stage.plan();
    assert!(plan.needs.facts.contains("i-1"), "{:?}", plan.needs);
    assert!(plan.is_empty() && plan.target == Some(3), "{plan:?}");
}

#[test]
fn w18_p17_p20_an_interrupted_instance_is_drained_and_replaced_at_once() {
    let mut stage = Stage::new(3);
    interrupted(&mut stage, "i-1");
    let plan = stage.plan();
    assert_eq!(kubernetes(&plan), ["delete p-i-1", "timeouts p-i-1"]);
    assert_eq!(plan.target, Some(4));
    stage.draining("i-1");
    stage.desired.timeouts = None;
    assert!(kubernetes(&stage.plan()).is_empty() && stage.plan().target == Some(4), "once is enough");
    stage.drained("i-1");
    stage.add("i-4", 1);
    stage.group().capacity.desired = 4;
    assert_eq!(terminations(&stage.plan()), [(vec!["i-1"], true)], "the other one replaces it");
}

#[test]
fn d9_p17_an_interrupted_instance_waits_for_its_machine() {
    let mut stage = Stage::new(3);
    interrupted(&mut stage, "i-1");
    stage.instance("i-1").machine = None;
    assert!(kubernetes(&stage.plan()).is_empty(), "{:?}", kubernetes(&stage.plan()));
    assert_eq!(stage.plan().target, Some(4));
}

#[test]
fn p17_an_interruption_adds_no_surge_if_paused_or_managed_externally() {
    let mut stage = Stage::new(3);
    interrupted(&mut stage, "i-1");
    stage.instance("i-1").asg_machine.as_mut().unwrap().paused = true;
    assert!(stage.plan().is_empty() && stage.plan().target == Some(3));

    let mut stage = Stage::new(3);
    interrupted(&mut stage, "i-1");
    stage.desired.owner = ReplicaOwner::ExternalPending;
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1", "timeouts p-i-1"]);
    assert_eq!(stage.plan().target, Some(3));

    let mut stage = Stage::new(3);
    interrupted(&mut stage, "i-1");
    stage.lifecycle("i-1", LifecycleState::TerminatingWait);
    assert_eq!(stage.plan().target, Some(3), "its group replaces it");
}

#[test]
fn d11_p32_a_terminated_instance_is_replaced_without_drain_or_surge() {
    let mut stage = Stage::new(3);
    let known = Ec2Answer { facts: Some(facts("i-1", false)), as_of: stage.clock };
    stage.instance("i-1").ec2 = Some(known);
    interrupted(&mut stage, "i-1");
    let plan = stage.plan();
    assert_eq!(kubernetes(&plan), ["exclude p-i-1", "delete p-i-1", "timeouts p-i-1"]);
    assert_eq!(plan.target, Some(3));
}

/// Three outdated instances, one of which is reclaimed.
fn outdated_and_interrupted() -> Stage {
    let mut stage = Stage::new(3);
    stage.new_image();
    interrupted(&mut stage, "i-1");
    stage
}

#[test]
fn w18_p17_a_reclaimed_outdated_instance_is_replaced_without_a_rollout() {
    let mut stage = outdated_and_interrupted();
    assert_eq!(stage.plan().target, Some(4), "the surge of the rollout is its replacement");
    assert_eq!(kubernetes(&stage.plan()), ["delete p-i-1", "timeouts p-i-1"]);

    let mut paused = outdated_and_interrupted();
    paused.desired.rollout.mode = RolloutMode::Paused;
    assert_eq!(paused.plan().target, Some(4));
    paused.add("i-4", 2);
    paused.group().capacity.desired = 4;
    assert_eq!(paused.plan().target, Some(4), "and stays one");
    paused.draining("i-1");
    assert_eq!(paused.plan().target, Some(4));

    let mut by_hand = outdated_and_interrupted();
    by_hand.desired.rollout.type_ = RolloutType::OnDelete;
    assert_eq!(by_hand.plan().target, Some(4));

    stage.desired.rollout.max_surge = 0;
    stage.desired.rollout.max_unavailable = 1;
    assert_eq!(stage.plan().target, Some(4));
}

/// Its Machine is deleted by the same decision.
#[test]
fn w18_p17_an_interrupted_instance_is_not_available_to_a_rollout() {
    let mut stage = Stage::new(4);
    stage.new_image();
    (stage.desired.rollout.max_surge, stage.desired.rollout.max_unavailable) = (0, 2);
    stage.desired.timeouts = None;
    stage.add("i-5", 2);
    stage.group().capacity.desired = 5;
    interrupted(&mut stage, "i-4");
    assert_eq!(
        kubernetes(&stage.plan()),
        ["delete p-i-4", "delete p-i-2", "delete p-i-3"],
        "two of four stay: i-1 and i-5"
    );
}

#[test]
fn w18_p17_an_interrupted_instance_is_missing_in_the_budget() {
    let mut stage = Stage::new(4);
    stage.observed.instances.remove("i-4");
    stage.desired.disruption.max_disrupted = Some(2);
    assert_eq!(Budget::of(&stage.input()).room(), 1);
    interrupted(&mut stage, "i-1");
    assert_eq!(Budget::of(&stage.input()).room(), 0);
}

#[test]
fn d14_p17_no_drain_takes_longer_than_the_interruption_notice() {
    let mut stage = Stage::new(1);
    let limits = |drain, volumes| MachineDeletion {
        node_drain_timeout_seconds: drain,
        node_volume_detach_timeout_seconds: volumes,
        ..MachineDeletion::default()
    };
    let own = limits(Some(600), None);
    assert_eq!(time_limits::limits(stage.instance("i-1"), own), own);
    interrupted(&mut stage, "i-1");
    assert_eq!(time_limits::limits(stage.instance("i-1"), own), limits(Some(120), Some(120)));
    let short = limits(Some(30), Some(0));
    assert_eq!(
        time_limits::limits(stage.instance("i-1"), short),
        limits(Some(30), Some(120)),
        "0 is no limit"
    );
}

/// Its group still counts it, and the same decision deletes its Machine.
#[test]
fn p17_d8_a_terminated_instance_counts_as_surplus() {
    let mut stage = Stage::new(3);
    stage.desired.replicas = 2;
    stage.instance("i-1").ec2 = Some(Ec2Answer { facts: Some(facts("i-1", false)), as_of: now() });
    assert_eq!(kubernetes(&stage.plan()), ["exclude p-i-1", "delete p-i-1"]);
}
