//! What conditions report, by example: where a text depends on the case, each case has its own.

use std::sync::Arc;

use capasg_api::{
    conditions::{
        self, DELETING, EVENT_QUEUE_READY, Finding, GROUP_READY, LAUNCH_TEMPLATE_READY, REMEDIATING,
        ROLLING_OUT, SCALING_DOWN, SCALING_HEALTHY, UP_TO_DATE,
    },
    pool::RebalanceRecommendationPolicy,
};
use capasg_cloud::{CloudError, LifecycleState, QueueState, TerminationCause, Write};

use crate::machine_pool::decide::testing::{Stage, now, set_desired, terminations, untagged};
use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::memory::record::{Answer, Entry};
use crate::machine_pool::model::{
    Acted, Blocker, DeletionPhase, Desired, DesiredLaunch, Facts, GroupView, Known, Observation,
    OutdatedReason, Plan, PoolState, References, RolloutPhase, StopCause,
};
use crate::machine_pool::report::input::Input;
use crate::machine_pool::report::pool_conditions::findings;
use crate::machine_pool::report::{rollout_conditions, status, termination};

fn input<'a>(stage: &'a Stage, plan: &'a Plan, references: &'a References) -> Input<'a> {
    Input {
        objects: &stage.objects,
        desired: Some(&stage.desired),
        observed: Some(&stage.observed),
        plan,
        rollout_status: None,
        references,
        types: None,
        queue: None,
        findings: Vec::new(),
        now: now(),
        unreachable: None,
    }
}

/// Reason and message of a condition.
fn reported(stage: &Stage, plan: &Plan, condition: &str) -> (&'static str, String) {
    let references = References::default();
    let mut all = findings(&input(stage, plan, &references), &stage.memory).into_iter();
    let Finding { reason, message, .. } = all.find(|finding| finding.type_ == condition).unwrap();
    (reason, message.into_owned())
}

fn edit_pool(stage: &mut Stage, edit: impl FnOnce(&mut capasg_api::ASGMachinePool)) {
    edit(Arc::make_mut(&mut stage.objects.pool));
}

/// AWS rejects a call.
fn reject(stage: &mut Stage, write: &Write, error: &CloudError) {
    let answer = Answer::Rejected { error, retry_key: "" };
    stage.memory.record(Entry::Answered { write, answer }, now());
}

fn rolling(phase: RolloutPhase) -> Plan {
    let outdated = Plan::default().outdated.with_reason("i-1", OutdatedReason::ImageChanged);
    let mut plan = Plan::with_outdated(outdated);
    plan.rollout = Some(phase);
    plan
}

#[test]
fn e5_a_deletion_names_what_it_waits_for() {
    let mut stage = Stage::new(1);
    edit_pool(&mut stage, |pool| {
        pool.metadata.deletion_timestamp = Some(capasg_api::time::to_kubernetes(now()));
    });
    let plan = Plan::of_deletion(DeletionPhase::DeletingGroup);
    let told = reported(&stage, &plan, DELETING);
    assert_eq!(told, ("DeletingGroup", "waiting for the Auto Scaling group to be deleted".to_owned()));
    stage.desired.orphan_on_deletion = true;
    let (reason, message) = reported(&stage, &plan, DELETING);
    assert_eq!(reason, "DeletingLifecycleHook");
    assert!(message.ends_with("the Auto Scaling group is kept"), "{message}");
}

#[test]
fn a_deletion_names_what_keeps_a_machine() {
    let mut stage = Stage::new(2);
    edit_pool(&mut stage, |pool| {
        pool.metadata.deletion_timestamp = Some(capasg_api::time::to_kubernetes(now()));
    });
    let plan =
        Plan::of_deletion(DeletionPhase::DrainingMachines(vec!["p-i-1".to_owned(), "p-i-2".to_owned()]));
    let waits = "waiting for Machines p-i-1, p-i-2 to be deleted";
    assert_eq!(reported(&stage, &plan, DELETING).1, waits);
    let mut set = |id: &str, progress: &str| {
        let machine = stage.observed.instances.get_mut(id).and_then(|instance| instance.machine.as_mut());
        machine.unwrap().deletion_progress = Some(progress.to_owned());
        reported(&stage, &plan, DELETING).1
    };
    assert_eq!(
        set("i-1", "Drain not completed yet"),
        format!("{waits}. Machine p-i-1: Drain not completed yet")
    );
    let budget =
        "cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 1";
    assert_eq!(set("i-2", budget), format!("{waits}. Machine p-i-2: {budget}"));
    let long = set("i-2", &format!("{budget}{}", "x".repeat(1_000)));
    assert!(long.len() < 700 && long.ends_with("x..."), "{long}");
}

/// What is paused is neither replaced nor terminated: every condition that waits for it names it.
#[test]
fn f4_conditions_that_wait_for_a_paused_instance_name_it() {
    let mut stage = Stage::new(3);
    stage.desired.replicas = 1;
    let down = |stage: &Stage| reported(stage, &Plan::default(), SCALING_DOWN).1;
    stage.instance("i-1").asg_machine.as_mut().unwrap().paused = true;
    assert_eq!(down(&stage), "Scaling down from 3 to 1 replicas", "others can be terminated");
    stage.instance("i-2").machine.as_mut().unwrap().paused = true;
    let kept = |ids: &str| {
        format!(
            "; paused: {ids}. Remove annotation cluster.x-k8s.io/paused from the ASGMachine and the Machine to continue."
        )
    };
    assert_eq!(down(&stage), format!("Scaling down from 3 to 1 replicas{}", kept("i-1, i-2")));
    let outdated = Plan::default().outdated.with_reason("i-1", OutdatedReason::ImageChanged);
    let mut plan = Plan::with_outdated(outdated);
    plan.follows_rollout = true;
    let message = reported(&stage, &plan, UP_TO_DATE).1;
    assert_eq!(message, format!("1 of 3 instances is outdated (ImageChanged){}", kept("i-1")));
    stage.instance("i-2").machine.as_mut().unwrap().needs_remediation = true;
    let message = reported(&stage, &Plan::default(), REMEDIATING).1;
    assert_eq!(message, format!("to be replaced: p-i-2{}", kept("i-2")));
    edit_pool(&mut stage, |pool| {
        pool.metadata.deletion_timestamp = Some(capasg_api::time::to_kubernetes(now()));
    });
    let draining = DeletionPhase::DrainingMachines(vec!["p-i-1".to_owned(), "p-i-2".to_owned()]);
    let message = reported(&stage, &Plan::of_deletion(draining), DELETING).1;
    assert_eq!(message, format!("waiting for Machines p-i-1, p-i-2 to be deleted{}", kept("i-1, i-2")));
}

/// A rollout that can replace nothing says for which instances it waits.
#[test]
fn what_is_kept_in_a_rollout_is_named() {
    let phase = RolloutPhase::Rolling {
        draining: Vec::new(),
        starting: Vec::new(),
        awaits_new: false,
        out_of_budget: false,
        kept: vec!["i-1".to_owned()],
    };
    let mut stage = Stage::new(2);
    let plan = rolling(phase);
    let waits =
        "waiting until i-1 can be replaced, or the Node is ready: no other instance can be replaced before";
    assert_eq!(reported(&stage, &plan, ROLLING_OUT), ("RollingOut", waits.to_owned()));
    stage.instance("i-1").asg_machine.as_mut().unwrap().do_not_disrupt = true;
    let message = reported(&stage, &plan, ROLLING_OUT).1;
    let annotated = "; annotation asg.infrastructure.cluster.x-k8s.io/do-not-disrupt keeps the instance. Delete Machine \
                     p-i-1 to replace it now";
    assert_eq!(message, format!("{waits}{annotated}"));
    stage.instance("i-1").machine.as_mut().unwrap().paused = true;
    let message = reported(&stage, &plan, ROLLING_OUT).1;
    assert!(message.starts_with(&format!("{waits}; paused: i-1. Remove")), "{message}");
}

#[test]
fn unreachable_aws_is_reported_with_what_to_check() {
    let (mut stage, plan, references) = (Stage::new(1), Plan::default(), References::default());
    edit_pool(&mut stage, |pool| "eu-west-1".clone_into(&mut pool.spec.region));
    let told = |error: CloudError| {
        let input = Input { unreachable: Some(error), ..input(&stage, &plan, &references) };
        let mut all = findings(&input, &stage.memory).into_iter();
        all.find(|finding| finding.type_ == "CloudReachable").unwrap().message.into_owned()
    };
    let api = "DescribeAutoScalingGroups";
    let message = told(CloudError::unanswered(api, "Network", "no such host"));
    assert!(message.contains("no such host. Check that spec.region eu-west-1 exists"), "{message}");
    let message = told(CloudError::answered(api, 401, "AuthFailure", "AWS was not able to validate"));
    assert!(message.contains("that region eu-west-1 (spec.region) is enabled for the account"), "{message}");
    assert!(told(CloudError::unanswered(api, "Timeout", "no answer within 20 s")).ends_with("within 20 s"));
}

#[test]
fn a_launch_template_that_the_group_does_not_use_is_not_reported_as_missing() {
    let mut stage = Stage::new(1);
    let plan = Plan::default();
    assert_eq!(reported(&stage, &plan, LAUNCH_TEMPLATE_READY).0, "LaunchTemplateReady");
    stage.group().settings.launch.template.version = None;
    let (_, message) = reported(&stage, &plan, LAUNCH_TEMPLATE_READY);
    assert!(message.contains("does not use a version"), "{message}");
    stage.observed.template = Known::Absent;
    let (_, message) = reported(&stage, &plan, LAUNCH_TEMPLATE_READY);
    assert!(message.contains("does not exist"), "{message}");
}

#[test]
fn a_pool_that_had_a_group_is_not_told_to_delete_it() {
    let mut stage = Stage::new(1);
    let mut plan = Plan::default();
    plan.blocker = Some(Blocker::GroupNotOwned { tags: untagged() });
    let (reason, message) = reported(&stage, &plan, GROUP_READY);
    assert_eq!(reason, "GroupNotOwned");
    assert!(message.contains("Delete the Auto Scaling group if it is unused"), "{message}");
    edit_pool(&mut stage, |pool| pool.spec.provider_id = Some("arn".to_owned()));
    let (_, message) = reported(&stage, &plan, GROUP_READY);
    assert!(message.contains("set its tags") && !message.contains("Delete"), "{message}");
}

#[test]
fn a_retained_instance_is_named_until_its_machine_is_deleted() {
    let mut stage = Stage::new(2);
    let plan = Plan::default();
    assert_eq!(reported(&stage, &plan, GROUP_READY).0, "GroupReady");
    stage.lifecycle("i-2", LifecycleState::parse("Terminating:Retained"));
    let (reason, message) = reported(&stage, &plan, GROUP_READY);
    assert_eq!(reason, "NotGroupReady");
    assert!(message.starts_with("instance i-2 is replaced but retained"), "{message}");
    // Its Machine is deleted, and then drained: the termination is requested.
    stage.draining("i-2");
    assert_eq!(reported(&stage, &plan, GROUP_READY).0, "GroupReady");
    stage.drained("i-2");
    assert_eq!(terminations(&stage.plan()), [(vec!["i-2"], false)], "it does not count in desired capacity");
}

#[test]
fn a_group_that_does_not_exist_is_created_unless_the_pool_is_deleted() {
    let mut stage = Stage::new(1);
    stage.observed.group = GroupView::Absent { as_of: now(), settled: true };
    let plan = Plan::default();
    let (_, message) = reported(&stage, &plan, GROUP_READY);
    assert!(message.contains("the controller creates it once"), "{message}");
    edit_pool(&mut stage, |pool| {
        pool.metadata.deletion_timestamp = Some(capasg_api::time::to_kubernetes(now()));
    });
    let (_, message) = reported(&stage, &plan, GROUP_READY);
    assert_eq!(message, "the Auto Scaling group does not exist");
}

#[test]
fn a_rollout_names_what_it_waits_for() {
    let stage = Stage::new(1);
    for (phase, words) in [
        (RolloutPhase::Held, "uses the desired launch template"),
        (RolloutPhase::OutOfBudget, "disruption budget"),
        (RolloutPhase::Unread, "is read from AWS"),
    ] {
        let (_, message) = reported(&stage, &rolling(phase), ROLLING_OUT);
        assert!(message.contains(words), "{message}");
    }
}

/// The launch template version that is pinned stands in for an unknown desired state.
#[test]
fn a_rollout_stays_as_reported_while_the_desired_state_is_unknown() {
    let mut stage = Stage::new(3);
    stage.new_image();
    stage.group().settings.launch.template.version = Some(1);
    let before = stage.plan().rollout_status;
    assert!(before.is_some());
    stage.memory.rollout.reported_mut().clone_from(&before);
    let mut plan = Plan::default();
    plan.follows_rollout = true;
    for (launch, expected) in [(stage.desired.launch.clone(), None), (DesiredLaunch::Unknown, before.clone())]
    {
        let desired = Desired { launch, ..stage.desired.clone() };
        let facts = Facts { desired, observed: stage.observed.clone() };
        let observation = Observation::of(&stage.objects, PoolState::Running(Box::new(facts)));
        let told = rollout_conditions::status(&observation, &plan, &Acted::default(), &stage.memory);
        assert_eq!(told, expected);
    }
    // What is cancelled, or waits, is reported if nothing was, or the same rollout.
    plan.rollout_status = before;
    let desired = Desired { launch: DesiredLaunch::Unknown, ..stage.desired.clone() };
    let facts = Facts { desired, observed: stage.observed.clone() };
    let observation = Observation::of(&stage.objects, PoolState::Running(Box::new(facts)));
    let told = rollout_conditions::status(&observation, &plan, &Acted::default(), &PoolMemory::default());
    assert_eq!(told, plan.rollout_status);
}

#[test]
fn each_cause_of_a_stopped_rollout_has_its_reason() {
    let stage = Stage::new(1);
    for (cause, expected) in [
        (StopCause::ProgressDeadline, "ProgressDeadlineExceeded"),
        (StopCause::OutdatedOnArrival, "UnexpectedLaunchTemplateVersion"),
        (StopCause::RefreshFailed, "InstanceRefreshFailed"),
        (StopCause::RolledBack, "RolledBack"),
    ] {
        let stopped = RolloutPhase::Stopped { draining: Vec::new(), reason: String::new(), cause };
        assert_eq!(reported(&stage, &rolling(stopped), UP_TO_DATE).0, expected);
    }
}

#[test]
fn an_unknown_cause_of_a_termination_is_reported_as_such_and_not_kept() {
    assert_eq!(termination::reason(TerminationCause::Unknown), "TerminationPending");
    assert_eq!(termination::cause_of("TerminationPending"), None, "it may become known");
    assert_eq!(termination::cause_of("RequestedInAWS"), Some(TerminationCause::Requested));
}

#[test]
fn a_rejected_change_of_capacity_is_no_failed_launch() {
    for (code, expected, advice) in [
        ("ValidationError", "Rejected", "Correct the spec. The controller retries periodically, and"),
        ("AccessDenied", "Rejected", "Check the AWS credentials of the controller and the permissions"),
        ("LimitExceeded", "QuotaExceeded", "Request a higher quota"),
        ("InsufficientInstanceCapacity", "InsufficientCapacity", "or wait for capacity"),
        ("InvalidLaunchTemplateId.NotFound", "Rejected", "Create the missing resource again"),
    ] {
        let mut stage = Stage::new(1);
        let error = CloudError::answered("SetDesiredCapacity", 400, code, "No.");
        reject(&mut stage, &set_desired(2), &error);
        let (reason, message) = reported(&stage, &Plan::default(), SCALING_HEALTHY);
        assert_eq!(reason, expected, "{code}");
        assert!(message.contains(advice), "{message}");
    }
}

#[test]
fn p46_p54_an_edit_resumes_suspended_processes_except_in_a_preview() {
    let mut stage = Stage::new(1);
    let why = "Administratively suspended".to_owned();
    stage.group().suspended_processes.insert("Launch".to_owned(), why);
    let plan = Plan::default();
    let (reason, message) = reported(&stage, &plan, SCALING_HEALTHY);
    assert_eq!(reason, "ProcessesSuspended");
    assert!(message.contains("edit the spec or set spec.retryToken"), "{message}");
    stage.desired.previews = true;
    let (_, message) = reported(&stage, &plan, SCALING_HEALTHY);
    assert!(!message.contains("edit the spec") && message.contains("set spec.retryToken"), "{message}");
}

/// The policy, the state of the queue if it is known, and the reason of `EventQueueReady`, one report after another.
#[test]
fn event_queue_ready_follows_the_policy_and_is_kept_while_the_queue_is_unknown() {
    use RebalanceRecommendationPolicy::{Ignore, Replace};
    let (mut stage, plan, references) = (Stage::new(1), Plan::default(), References::default());
    for (policy, queue, status, reason) in [
        (Ignore, None, "True", "NotRequired"),
        (Replace, None, "Unknown", "NotYetReported"),
        (Replace, Some(QueueState::Available), "True", "EventQueueReady"),
        (Replace, Some(QueueState::Unread), "True", "EventQueueReady"),
        (Replace, Some(QueueState::Unavailable), "False", "EventQueueUnavailable"),
        (Replace, None, "False", "EventQueueUnavailable"),
        (Ignore, None, "True", "NotRequired"),
        (Replace, Some(QueueState::Unread), "Unknown", "NotYetReported"),
    ] {
        edit_pool(&mut stage, |pool| pool.spec.rebalance_recommendation_policy = Some(policy));
        let input = Input { queue, ..input(&stage, &plan, &references) };
        let after = status::status(&input, None, &stage.memory, now());
        let told = conditions::get(&after.conditions, EVENT_QUEUE_READY).unwrap();
        assert_eq!((told.status.as_str(), told.reason.as_str()), (status, reason), "{policy:?} {queue:?}");
        edit_pool(&mut stage, |pool| pool.status = Some(after));
    }
}
