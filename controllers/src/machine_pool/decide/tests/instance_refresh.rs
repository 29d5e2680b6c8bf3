//! The engine `InstanceRefresh` by example and by property.

mod unknown;

use std::sync::Arc;

use capasg_api::{
    ASGMachinePoolSpec,
    pool::{
        Disruption, DisruptionWindow, ResolvedDisruption, RolloutMode, RolloutStatus, RolloutType,
        RolloutWait,
    },
};
use capasg_cloud::{
    Capacity, CloudError, InstanceRefresh, Launch, LaunchTemplateVersion, LifecycleState, RefreshStatus,
    RefreshesView, StartRefresh, TemplateRef, Write,
};
use chrono::TimeDelta;
use proptest::prelude::*;

use crate::machine_pool::decide::testing::{Stage, cloud, kubernetes, mixed, stamp, terminations, version};
use crate::machine_pool::model::memory::record::{Answer, Entry};
use crate::machine_pool::model::retry_key::retry_key;
use crate::machine_pool::model::revision::revision;
use crate::machine_pool::model::stamp::Stamp;
use crate::machine_pool::model::stopped_rollout;
use crate::machine_pool::model::{DesiredLaunch, Known, Plan, RolloutPhase, StopCause};

/// Three instances of version 1; version 2 is desired and exists. With data that do not rotate the group still has
/// version 1.
fn outdated(rotates: bool) -> Stage {
    let mut stage = Stage::new(3);
    stage.new_image();
    stage.desired.rollout.type_ = RolloutType::InstanceRefresh;
    stage.desired.rotates = rotates;
    if !rotates {
        stage.group().settings.launch.template.version = Some(1);
    }
    stage.desired_for(3600);
    stage
}

fn launch(version: i64) -> Launch {
    Launch { template: TemplateRef { id: "lt-1".into(), version: Some(version) }, mixed: None }
}

fn refresh(status: &str, desired: Option<i64>) -> InstanceRefresh {
    let now = Stage::new(1).clock;
    let status = RefreshStatus::parse(status);
    InstanceRefresh {
        id: "r-1".into(),
        reason: Some("words.".into()),
        started_at: Some(now - TimeDelta::minutes(10)),
        ended_at: status.is_finished().then(|| now - TimeDelta::minutes(5)),
        percentage: Some(40),
        to_update: Some(2),
        min_healthy_percentage: Some(90),
        desired: desired.map(launch),
        rollback_reason: None,
        status,
    }
}

fn listed(stage: &mut Stage, refreshes: Vec<InstanceRefresh>) {
    stage.observed.refreshes = Some(RefreshesView { refreshes: Arc::new(refreshes), as_of: stage.clock });
}

/// The rollout was reported as begun 20 minutes ago.
fn followed(stage: &mut Stage, waiting_for: RolloutWait) {
    let before = stage.plan().rollout_status;
    *stage.memory.rollout.reported_mut() = Some(RolloutStatus {
        started_at: Some(stage.clock - TimeDelta::minutes(20)),
        waiting_for: Some(waiting_for),
        ..before.unwrap()
    });
}

/// The plan after the status reports which instance refresh is to be stopped. Before that AWS is not called.
fn once_told(stage: &mut Stage) -> Plan {
    let first = stage.plan();
    assert!(cloud(&first).is_empty() && first.requeue_after.is_some(), "{first:?}");
    let status = first.rollout_status.unwrap();
    assert_eq!(status.ended_refresh_id.as_deref(), Some("r-1"));
    *stage.memory.rollout.reported_mut() = Some(status);
    stage.plan()
}

fn cancels(plan: &Plan) -> bool {
    matches!(cloud(plan)[..], [Write::CancelInstanceRefresh { .. }])
}

fn start(plan: &Plan) -> Option<&StartRefresh> {
    cloud(plan).into_iter().find_map(|write| match write {
        Write::StartInstanceRefresh(start) => Some(&**start),
        _ => None,
    })
}

fn updates_launch(plan: &Plan) -> bool {
    cloud(plan)
        .into_iter()
        .any(|write| matches!(write, Write::UpdateGroup { change, .. } if change.launch.is_some()))
}

#[test]
fn w7_data_that_do_not_rotate_start_a_refresh_to_a_version() {
    let plan = outdated(false).plan();
    let start = start(&plan).unwrap();
    assert_eq!(start.desired, Some(launch(2)));
    let preferences = &start.preferences;
    assert!(preferences.skip_matching && !preferences.auto_rollback);
    assert_eq!(preferences.protected_instances, "Refresh");
    assert!(!updates_launch(&plan) && kubernetes(&plan).is_empty(), "{plan:?}");
}

#[test]
fn w7_data_that_rotate_start_a_refresh_of_what_the_group_launches() {
    let mut stage = outdated(true);
    assert_eq!(start(&stage.plan()).unwrap().desired, None);
    stage.group().settings.launch.template.version = Some(1);
    let plan = stage.plan();
    assert!(start(&plan).is_none() && updates_launch(&plan), "the group follows first");
}

#[test]
fn w8_a_listing_comes_before_a_start() {
    let mut stage = outdated(false);
    stage.observed.refreshes = None;
    let plan = stage.plan();
    assert!(plan.needs.refreshes && start(&plan).is_none() && !updates_launch(&plan));
    listed(&mut stage, Vec::new());
    stage.observed.refreshes.as_mut().unwrap().as_of -= TimeDelta::minutes(2);
    let plan = stage.plan();
    assert!(plan.needs.refreshes && start(&plan).is_none(), "too old");
}

#[test]
fn w8_a_listing_that_waited_for_the_rate_limit_is_not_read_forever() {
    let mut stage = outdated(false);
    stage.observed.refreshes.as_mut().unwrap().as_of -= TimeDelta::seconds(20);
    let plan = stage.plan();
    assert!(plan.needs.refreshes && start(&plan).is_none(), "it is old");
    stage.observed.refreshes_were_read = true;
    let plan = stage.plan();
    assert!(!plan.needs.refreshes && start(&plan).is_some(), "there is none that is newer");
}

#[test]
fn w8_a_listing_that_may_be_older_than_our_call_starts_nothing() {
    let mut stage = outdated(false);
    let asked_ago = |seconds| Some(Stage::new(1).clock - TimeDelta::seconds(seconds));
    *stage.memory.refreshes.start_mut() = asked_ago(9);
    let plan = stage.plan();
    assert!(start(&plan).is_none() && plan.requeue_after.is_some(), "{plan:?}");
    assert!(matches!(plan.rollout, Some(RolloutPhase::Refreshing { .. })), "{:?}", plan.rollout);
    *stage.memory.refreshes.start_mut() = asked_ago(10);
    assert!(start(&stage.plan()).is_some());
    // What failed within that time is reported at once.
    *stage.memory.refreshes.start_mut() = asked_ago(9);
    followed(&mut stage, RolloutWait::Refresh);
    listed(&mut stage, vec![refresh("Failed", Some(2))]);
    assert!(matches!(stage.plan().rollout, Some(RolloutPhase::Stopped { .. })));
}

/// The answer to its start was lost: nothing else shows that the rollout has started.
#[test]
fn w26_a_refresh_counts_although_the_answer_to_its_start_is_lost() {
    let mut stage = outdated(false);
    followed(&mut stage, RolloutWait::Group);
    let told = stage.memory.rollout.reported_mut().as_mut().unwrap();
    (told.started_at, told.waiting_since) = (None, Some(stage.clock - TimeDelta::seconds(9)));
    stage.unsettled();
    *stage.memory.refreshes.start_mut() = Some(stage.clock - TimeDelta::seconds(8));
    let plan = stage.plan();
    assert!(matches!(plan.rollout, Some(RolloutPhase::Refreshing { .. })), "{:?}", plan.rollout);
    let mut stage = outdated(false);
    *stage.memory.rollout.reported_mut() = plan.rollout_status;
    let ended_at = Some(stage.clock - TimeDelta::seconds(4));
    listed(&mut stage, vec![InstanceRefresh { ended_at, ..refresh("Failed", Some(2)) }]);
    assert!(matches!(stage.plan().rollout, Some(RolloutPhase::Stopped { .. })));
}

/// One that is not listed yet is not stopped, and a pause in the meantime requests nothing else.
#[test]
fn w8_a_listing_that_may_be_older_than_our_call_is_read_again() {
    for by_us in [true, false] {
        let mut stage = outdated(false);
        stage.desired.rollout.mode = RolloutMode::Paused;
        let asked = Some(stage.clock - TimeDelta::seconds(2));
        let memory = &mut stage.memory;
        *if by_us { memory.refreshes.start_mut() } else { memory.began_mut() } = asked;
        let plan = stage.plan();
        assert_eq!(plan.requeue_after, Some(TimeDelta::seconds(10)), "{by_us}");
        stage.clock += TimeDelta::seconds(10);
        assert!(stage.plan().needs.refreshes, "{by_us}");
        listed(&mut stage, Vec::new());
        let plan = stage.plan();
        assert!(!plan.needs.refreshes && plan.requeue_after.is_none(), "{by_us}: {:?}", plan.requeue_after);
    }
}

#[test]
fn w9_nothing_is_started_alongside_one_in_progress() {
    for status in ["Pending", "InProgress", "Baking", "Cancelling", "RollbackInProgress", "Levitating"] {
        let mut stage = outdated(false);
        listed(&mut stage, vec![refresh(status, Some(2))]);
        let plan = stage.plan();
        assert!(cloud(&plan).is_empty(), "{status}: {plan:?}");
        let Some(RolloutPhase::Refreshing { status: told, percentage, .. }) = &plan.rollout else {
            panic!("{:?}", plan.rollout);
        };
        assert_eq!((told.as_str(), *percentage), (status, Some(40)));
        assert_eq!(plan.rollout_status.unwrap().waiting_for, Some(RolloutWait::Refresh));
    }
}

#[test]
fn p10_a_refresh_for_another_desired_state_is_cancelled_or_rolled_back() {
    let version_3 = |stage: &mut Stage| listed(stage, vec![refresh("InProgress", Some(3))]);
    let mut stage = outdated(false);
    version_3(&mut stage);
    let plan = once_told(&mut stage);
    assert!(cancels(&plan), "{plan:?}");
    // The group's own configuration is desired again.
    let mut stage = outdated(false);
    stage.group().settings.launch.template.version = Some(2);
    version_3(&mut stage);
    assert!(matches!(cloud(&once_told(&mut stage))[..], [Write::RollbackInstanceRefresh { .. }]));
    *stage.memory.refreshes.rollback_rejected_mut() = true;
    assert!(cancels(&stage.plan()));
    listed(&mut stage, vec![refresh("RollbackInProgress", Some(3))]);
    assert!(cloud(&stage.plan()).is_empty(), "it leads there");
    // A desired state that is unknown, or may still change, stops nothing.
    let mut stage = outdated(false);
    version_3(&mut stage);
    stage.desired_for(3);
    assert!(cloud(&stage.plan()).is_empty());
    listed(&mut stage, vec![refresh("Levitating", Some(3))]);
    assert!(cloud(&stage.desired_for(3600).plan()).is_empty());
}

/// AWS rejects the desired state: the instance refresh of the one before would replace everything, and then again.
#[test]
fn p10_an_obsolete_refresh_is_cancelled_while_aws_rejects_the_launch_template() {
    let mut stage = outdated(true);
    stage.group().settings.launch.template.version = Some(1);
    listed(&mut stage, Vec::new());
    let write =
        cloud(&stage.plan()).into_iter().find(|write| write.api() == "UpdateAutoScalingGroup").cloned();
    let key = retry_key(&stage.objects, &stage.memory, &stage.plan());
    let error = CloudError::answered("Api", 400, "ValidationError", "The key pair 'missing' does not exist");
    let answer = Answer::Rejected { error: &error, retry_key: &key };
    stage.memory.record(Entry::Answered { write: &write.unwrap(), answer }, stage.clock);
    listed(&mut stage, vec![refresh("InProgress", None)]);
    let plan = stage.plan();
    assert!(plan.launches_previous, "{plan:?}");
    let status = plan.rollout_status.unwrap();
    assert_eq!(status.ended_refresh_id.as_deref(), Some("r-1"));
    *stage.memory.rollout.reported_mut() = Some(status);
    let plan = stage.plan();
    assert!(
        cloud(&plan).iter().any(|write| matches!(write, Write::CancelInstanceRefresh { .. })),
        "{plan:?}"
    );
}

/// The same types, one of them from another launch template.
#[test]
fn a_refresh_with_other_members_of_overrides_is_for_another_desired_state() {
    let mut stage = outdated(false);
    stage.desired.settings.mixed = Some(mixed(&[]));
    stage.group().settings.launch.mixed = Some(mixed(&[]));
    let names = |members: &[&str]| {
        let desired = Launch { mixed: Some(mixed(members)), ..launch(2) };
        InstanceRefresh { desired: Some(desired), ..refresh("InProgress", None) }
    };
    listed(&mut stage, vec![names(&[])]);
    assert!(cloud(&stage.plan()).is_empty());
    listed(&mut stage, vec![names(&["LaunchTemplateSpecification"])]);
    assert!(cancels(&once_told(&mut stage)));
}

#[test]
fn p10_a_refresh_older_than_the_desired_state_is_for_another() {
    let mut stage = outdated(true);
    let mut late = refresh("InProgress", None);
    late.started_at = Some(stage.clock);
    listed(&mut stage, vec![late]);
    assert!(cloud(&stage.plan()).is_empty(), "the version was there before");
    listed(&mut stage, vec![refresh("InProgress", None)]);
    assert!(cancels(&once_told(&mut stage)));
}

#[test]
fn p54_a_pause_or_a_closed_window_stops_replacements_alone() {
    for closed in [false, true] {
        for (status, ends) in [
            ("Pending", true),
            ("InProgress", true),
            ("Baking", false),
            ("Cancelling", false),
            ("RollbackInProgress", false),
            ("Levitating", false),
        ] {
            let mut stage = outdated(false);
            listed(&mut stage, vec![refresh(status, Some(2))]);
            if closed {
                stage.desired.disruption = never();
            } else {
                stage.desired.rollout.mode = RolloutMode::Paused;
            }
            if !ends {
                assert!(cloud(&stage.plan()).is_empty(), "{status}");
                assert_eq!(stage.plan().rollout_status.unwrap().ended_refresh_id, None, "{status}");
                continue;
            }
            let plan = once_told(&mut stage);
            assert!(cancels(&plan), "{status}: {plan:?}");
            let waits = if closed { RolloutWait::Window } else { RolloutWait::Resume };
            assert_eq!(plan.rollout_status.unwrap().waiting_for, Some(waits));
            // A desired state that changed recently, or a reverted change, is no reason to continue or to roll back.
            stage.group().settings.launch.template.version = Some(2);
            stage.desired_for(1);
            assert!(cancels(&stage.plan()), "{status}");
            // A preview stops nothing.
            stage.desired.previews = true;
            assert!(cloud(&stage.plan()).is_empty());
        }
    }
}

/// Tokens make versions, and AWS replaces each instance whose version is not the group's: what one window replaced
/// would be replaced again in the next.
#[test]
fn windows_are_refused_if_bootstrap_data_rotate() {
    for rotates in [false, true] {
        let mut stage = outdated(rotates);
        stage.desired.disruption = never();
        let plan = stage.plan();
        assert!(start(&plan).is_none() && kubernetes(&plan).is_empty(), "{plan:?}");
        let waits = plan.rollout_status.unwrap().waiting_for;
        if rotates {
            assert_eq!(plan.rollout, Some(RolloutPhase::WindowsUnsupported { draining: Vec::new() }));
            assert_eq!(waits, Some(RolloutWait::Correction));
        } else {
            assert_eq!(waits, Some(RolloutWait::Window));
        }
        stage.desired.disruption = ResolvedDisruption::default();
        assert!(start(&stage.plan()).is_some(), "without windows");
    }
    // One that is in progress when windows are added is cancelled when they close, as ever.
    let mut stage = outdated(true);
    listed(&mut stage, vec![refresh("InProgress", None)]);
    stage.desired.disruption = never();
    assert!(cancels(&once_told(&mut stage)));
    // The result of one that was just requested is waited for.
    let mut stage = outdated(true);
    listed(&mut stage, Vec::new());
    followed(&mut stage, RolloutWait::Refresh);
    *stage.memory.refreshes.start_mut() = Some(stage.clock);
    stage.desired.disruption = never();
    assert_eq!(stage.plan().rollout_status.unwrap().waiting_for, Some(RolloutWait::Refresh));
    // One that fails stops the rollout, also once there are no windows any more.
    let mut stage = outdated(true);
    let mut failed = refresh("Failed", None);
    (failed.started_at, failed.ended_at) = (Some(stage.clock), Some(stage.clock));
    listed(&mut stage, vec![failed]);
    followed(&mut stage, RolloutWait::Refresh);
    stage.desired.disruption = never();
    assert_eq!(kubernetes(&stage.plan()), ["stopping the rollout of ASGMachinePool ns/p"]);
}

/// An instance refresh was cancelled when it had replaced all instances: AWS may have just launched another one from the
/// version that the group still has, for which the instance refresh would be repeated.
#[test]
fn w26_a_rollout_is_not_over_before_the_group_launches_what_is_desired() {
    let mut stage = outdated(false);
    listed(&mut stage, vec![refresh("Cancelled", Some(2))]);
    followed(&mut stage, RolloutWait::Refresh);
    stage.observed.instances.clear();
    for id in ["i-4", "i-5", "i-6"] {
        stage.add(id, 2);
    }
    // The cancellation is recorded although nothing is outdated, and the group gets what is desired.
    let plan = stage.plan();
    assert!(updates_launch(&plan), "{plan:?}");
    let stops = "stopping the rollout of ASGMachinePool ns/p".to_owned();
    assert!(kubernetes(&plan).contains(&stops), "{:?}", kubernetes(&plan));
    let revision = revision(&stage.desired, &stage.observed).unwrap();
    stage.desired.stopped = Some(stopped_rollout::value(revision, true));
    assert_eq!(stage.plan().rollout, Some(RolloutPhase::Held));
    stage.group().settings.launch.template.version = Some(2);
    assert_eq!(stage.plan().rollout_status, None, "it is over");
    assert!(kubernetes(&stage.plan()).is_empty(), "the record stays: {:?}", kubernetes(&stage.plan()));
    stage.add("i-7", 1);
    let plan = stage.plan();
    assert!(matches!(plan.rollout, Some(RolloutPhase::Stopped { .. })), "{plan:?}");
    assert!(start(&plan).is_none(), "{plan:?}");
}

#[test]
fn p54_a_refresh_above_the_budget_is_cancelled() {
    let mut stage = outdated(false);
    stage.desired.disruption.max_disrupted = Some(1);
    let with = |stage: &mut Stage, status, kept| {
        let mut own = refresh(status, Some(2));
        own.min_healthy_percentage = kept;
        listed(stage, vec![own]);
    };
    for (status, kept) in [("InProgress", Some(67)), ("InProgress", None), ("Baking", Some(0))] {
        with(&mut stage, status, kept);
        assert!(cloud(&stage.plan()).is_empty(), "{status} {kept:?}: {:?}", stage.plan());
        assert_eq!(stage.plan().rollout_status.unwrap().ended_refresh_id, None);
    }
    with(&mut stage, "InProgress", Some(33));
    assert!(cancels(&once_told(&mut stage)));
    let Some(RolloutPhase::Refreshing { cancelled_for: Some(why), .. }) = stage.plan().rollout else {
        panic!("{:?}", stage.plan().rollout);
    };
    assert!(why.contains("spec.disruption"), "{why}");
    // It was stopped by us: another one follows.
    with(&mut stage, "Cancelled", Some(33));
    let plan = stage.plan();
    assert_eq!(start(&plan).unwrap().preferences.min_healthy_percentage, 90);
    assert!(kubernetes(&plan).is_empty(), "{plan:?}");
}

#[test]
fn w26_a_refresh_that_we_stopped_is_no_failure() {
    for status in ["Cancelled", "RollbackSuccessful", "RollbackFailed", "Failed"] {
        let mut stage = outdated(false);
        listed(&mut stage, vec![refresh(status, Some(2))]);
        followed(&mut stage, RolloutWait::Refresh);
        stage.memory.rollout.reported_mut().as_mut().unwrap().ended_refresh_id = Some("r-0".into());
        assert_eq!(kubernetes(&stage.plan()).len(), 1, "{status}: another one was stopped by us");
        stage.memory.rollout.reported_mut().as_mut().unwrap().ended_refresh_id = Some("r-1".into());
        let plan = stage.plan();
        if status == "Failed" {
            assert_eq!(kubernetes(&plan).len(), 1, "it failed before AWS received the call");
            continue;
        }
        assert!(start(&plan).is_some() && kubernetes(&plan).is_empty(), "{status}: {plan:?}");
        assert_eq!(plan.rollout_status.unwrap().ended_refresh_id.as_deref(), Some("r-1"), "kept");
    }
}

/// A pause that ends before AWS is called: another actor may stop the instance refresh later.
#[test]
fn w26_a_refresh_that_continues_is_not_reported_as_stopped_by_us() {
    let mut stage = outdated(false);
    listed(&mut stage, vec![refresh("InProgress", Some(2))]);
    followed(&mut stage, RolloutWait::Refresh);
    stage.memory.rollout.reported_mut().as_mut().unwrap().ended_refresh_id = Some("r-1".into());
    let told = |stage: &Stage| stage.plan().rollout_status.unwrap().ended_refresh_id;
    assert_eq!(told(&stage), None);
    *stage.memory.refreshes.stop_mut() = Some(stage.clock - TimeDelta::seconds(29));
    assert!(told(&stage).is_some(), "listings may be behind our call");
    *stage.memory.refreshes.stop_mut() = None;
    *stage.memory.began_mut() = Some(stage.clock - TimeDelta::seconds(29));
    assert!(told(&stage).is_some(), "or of the previous leader");
    *stage.memory.began_mut() = None;
    listed(&mut stage, vec![refresh("Cancelling", Some(2))]);
    assert!(told(&stage).is_some(), "it is being stopped");
}

#[test]
fn w26_a_failed_refresh_stops_the_rollout_once() {
    for status in ["Failed", "Cancelled", "RollbackFailed", "RollbackSuccessful"] {
        let mut stage = outdated(false);
        listed(&mut stage, vec![refresh(status, Some(2))]);
        followed(&mut stage, RolloutWait::Refresh);
        let plan = stage.plan();
        assert_eq!(kubernetes(&plan), ["stopping the rollout of ASGMachinePool ns/p"], "{status}");
        assert!(cloud(&plan).is_empty(), "{status}");
        let Some(RolloutPhase::Stopped { reason, cause, .. }) = &plan.rollout else {
            panic!("{:?}", plan.rollout);
        };
        assert_eq!(*reason, format!("the instance refresh has status {status}: words"));
        assert_eq!(*cause == StopCause::RolledBack, status == "RollbackSuccessful");
        // The annotation exists: nothing more is done.
        stage.desired.stopped = plan.rollout_status.unwrap().to_hash;
        let plan = stage.plan();
        assert!(plan.is_empty(), "{status}: {plan:?}");
        let Some(RolloutPhase::Stopped { reason, .. }) = &plan.rollout else { panic!("{:?}", plan.rollout) };
        assert_eq!(*reason, format!("the instance refresh has status {status}: words"));
        // A user removes it.
        stage.desired.stopped = None;
        followed(&mut stage, RolloutWait::Correction);
        assert!(start(&stage.plan()).is_some(), "{status}");
    }
}

/// Another actor deletes the launch template during the instance refresh, and cancels that.
#[test]
fn w26_a_refresh_for_a_deleted_launch_template_counts_for_the_rollout_that_it_ended_in() {
    for desired in [None, Some(2)] {
        let mut stage = outdated(desired.is_none());
        let mut ended = refresh("Cancelled", desired);
        if let Some(launch) = &mut ended.desired {
            launch.template.id = "lt-deleted".to_owned();
        }
        if let Known::Present(template) = &mut stage.observed.template {
            for version in template.versions.values_mut() {
                version.created_at = stage.clock - TimeDelta::minutes(4);
            }
        }
        listed(&mut stage, vec![ended]);
        followed(&mut stage, RolloutWait::Refresh);
        let plan = stage.plan();
        assert_eq!(kubernetes(&plan), ["stopping the rollout of ASGMachinePool ns/p"], "{desired:?}");
        stage.memory.rollout.reported_mut().as_mut().unwrap().started_at = Some(stage.clock);
        assert!(start(&stage.plan()).is_some(), "it ended before this rollout: {desired:?}");
    }
}

#[test]
fn w26_another_actors_refresh_of_the_old_configuration_hides_no_failure() {
    let mut stage = outdated(false);
    let mut theirs = refresh("Successful", None);
    (theirs.started_at, theirs.ended_at) = (Some(stage.clock), Some(stage.clock));
    listed(&mut stage, vec![theirs, refresh("Cancelled", Some(2))]);
    followed(&mut stage, RolloutWait::Refresh);
    assert_eq!(kubernetes(&stage.plan()), ["stopping the rollout of ASGMachinePool ns/p"]);
}

/// A user cancelled ours, and another actor started one that replaces more at once than the budget allows.
#[test]
fn w26_another_actors_refresh_that_we_stopped_hides_no_failure() {
    let stops = |requested| {
        let mut stage = outdated(false);
        let mut theirs = InstanceRefresh { id: "r-2".into(), ..refresh("Cancelled", Some(2)) };
        (theirs.started_at, theirs.ended_at) = (Some(stage.clock), Some(stage.clock));
        listed(&mut stage, vec![theirs, refresh("Cancelled", Some(2))]);
        followed(&mut stage, RolloutWait::Refresh);
        stage.memory.rollout.reported_mut().as_mut().unwrap().ended_refresh_id = Some("r-2".to_owned());
        *stage.memory.refreshes.start_mut() = Some(stage.clock - TimeDelta::minutes(requested));
        !kubernetes(&stage.plan()).is_empty()
    };
    assert!(stops(10), "the first one was ours");
    assert!(!stops(2), "another one was started since, and the first one was no failure");
}

#[test]
fn w26_an_old_failure_does_not_stop_a_desired_state_that_returns() {
    let mut stage = outdated(false);
    listed(&mut stage, vec![refresh("Failed", Some(2))]);
    assert!(start(&stage.plan()).is_some(), "nothing was followed");
    followed(&mut stage, RolloutWait::Refresh);
    stage.memory.rollout.reported_mut().as_mut().unwrap().started_at = Some(stage.clock);
    assert!(start(&stage.plan()).is_some(), "it ended before this began");
}

/// The image is changed and changed back while an instance refresh is in progress, which fails then.
#[test]
fn w26_a_failure_after_a_revert_stops_the_rollout_that_is_about_to_begin() {
    let stops = |seconds| {
        let mut stage = outdated(false);
        let failed = refresh("Failed", Some(2));
        let returned = failed.ended_at.unwrap() + TimeDelta::seconds(seconds);
        listed(&mut stage, vec![failed]);
        followed(&mut stage, RolloutWait::StableSpec);
        let reported = stage.memory.rollout.reported_mut().as_mut().unwrap();
        (reported.started_at, reported.waiting_since) = (None, Some(returned));
        start(&stage.plan()).is_none()
    };
    assert!(stops(-1));
    assert!(!stops(1), "it ended before the return");
}

#[test]
fn w26_a_success_that_leaves_instances_outdated_is_repeated_once() {
    let mut stage = outdated(false);
    let once = refresh("Successful", Some(2));
    listed(&mut stage, vec![once.clone()]);
    followed(&mut stage, RolloutWait::Refresh);
    assert!(start(&stage.plan()).is_some());
    listed(&mut stage, vec![once.clone(), once]);
    let plan = stage.plan();
    assert!(start(&plan).is_none());
    assert_eq!(kubernetes(&plan).len(), 1, "{plan:?}");
    // A view that may be from before the end shows nothing.
    let mut just = refresh("Successful", Some(2));
    just.ended_at = Some(stage.clock - TimeDelta::seconds(3));
    listed(&mut stage, vec![just]);
    assert!(start(&stage.plan()).is_none());
}

#[test]
fn the_budget_limits_what_aws_may_terminate() {
    let least = |most: Option<i32>, spec: i32| {
        let mut stage = outdated(false);
        stage.desired.disruption.max_disrupted = most;
        stage.desired.refresh.min_healthy_percentage = spec;
        start(&stage.plan()).unwrap().preferences.min_healthy_percentage
    };
    assert_eq!(least(None, 0), 0);
    assert_eq!(least(Some(1), 0), 67);
    assert_eq!(least(Some(2), 0), 34);
    assert_eq!(least(Some(3), 50), 50);
    assert_eq!(least(Some(1), 90), 90);
    let mut stage = outdated(false);
    stage.desired.disruption.max_disrupted = Some(1);
    stage.draining("i-1");
    let plan = stage.plan();
    assert!(start(&plan).is_none(), "the budget is used up");
    assert_eq!(plan.rollout, Some(RolloutPhase::OutOfBudget));
    assert_eq!(plan.rollout_status.unwrap().waiting_for, Some(RolloutWait::Budget));
    // Nodes that never joined do not get better by waiting: the refresh is what replaces them.
    let mut stage = outdated(false);
    stage.desired.disruption.max_disrupted = Some(1);
    for id in ["i-1", "i-2"] {
        stage.instance(id).machine.as_mut().unwrap().has_node = false;
    }
    assert!(start(&stage.plan()).is_some(), "{:?}", stage.plan().rollout);
}

#[test]
fn h7_a_scale_in_ignores_what_an_instance_refresh_launches() {
    let mut stage = outdated(false);
    stage.add("i-4", 2);
    listed(&mut stage, vec![refresh("InProgress", Some(2))]);
    let plan = stage.plan();
    assert!(plan.is_empty(), "{plan:?}");
    stage.desired.replicas = 2;
    let deleted = kubernetes(&stage.plan()).into_iter().filter(|step| step.starts_with("delete")).count();
    assert_eq!(deleted, 1);
    stage.drained("i-1");
    assert_eq!(terminations(&stage.plan()), [(vec!["i-1"], true)]);
    // Unknown: it is read first.
    let mut stage = Stage::new(3);
    stage.add("i-4", 1);
    stage.observed.refreshes = None;
    let plan = stage.plan();
    assert!(plan.needs.refreshes && plan.is_empty(), "{plan:?}");
    listed(&mut stage, Vec::new());
    assert_eq!(kubernetes(&stage.plan()).len(), 2, "an annotation and a deletion");
}

/// AWS accepts no other launch template during a refresh that names one; a listing that is old says nothing of now.
#[test]
fn h6_an_old_listing_does_not_keep_a_token_from_the_group() {
    let mut stage = outdated(true);
    stage.group().settings.launch.template.version = Some(1);
    stage.desired_for(3600);
    listed(&mut stage, vec![refresh("InProgress", Some(2))]);
    assert!(!updates_launch(&stage.plan()), "listed now");
    if let Some(view) = &mut stage.observed.refreshes {
        view.as_of -= TimeDelta::seconds(91);
    }
    assert!(updates_launch(&stage.plan()), "listed too long ago");
}

/// A refresh without rotating data keeps our previous version for a rollback; that of another actor is corrected.
#[test]
fn h6_a_version_of_another_actor_does_not_stay_pinned() {
    let mut stage = outdated(false);
    if let Known::Present(template) = &mut stage.observed.template {
        let foreign = LaunchTemplateVersion { description: None, ..version(3, &stamp("1")) };
        template.versions.insert(3, foreign);
    }
    assert!(!updates_launch(&stage.plan()), "our version");
    stage.group().settings.launch.template.version = Some(3);
    stage.desired_for(3600);
    assert!(updates_launch(&stage.plan()), "the version of another actor");
}

#[test]
fn h3_a_rolling_update_waits_for_another_actors_refresh() {
    let mut stage = outdated(true);
    stage.desired.rollout.type_ = RolloutType::RollingUpdate;
    stage.group().capacity = Capacity { min: 0, max: 4, desired: 3 };
    listed(&mut stage, vec![refresh("InProgress", Some(1))]);
    let plan = stage.plan();
    assert!(plan.is_empty(), "no surge, no termination, no update: {plan:?}");
    listed(&mut stage, Vec::new());
    assert!(!stage.plan().is_empty());
}

/// Without a desired configuration AWS rejects nothing, so that only its terminations show an instance refresh.
#[test]
fn h3_another_actors_refresh_is_read_once_it_terminates_an_instance() {
    let mut stage = outdated(true);
    stage.desired.rollout.type_ = RolloutType::RollingUpdate;
    stage.observed.refreshes.as_mut().unwrap().as_of -= TimeDelta::seconds(15);
    stage.lifecycle("i-1", LifecycleState::TerminatingWait);
    assert!(!stage.plan().needs.refreshes);
    stage.instance("i-1").asg_machine.as_mut().unwrap().terminated_by_refresh = true;
    assert!(stage.plan().needs.refreshes);
    listed(&mut stage, vec![refresh("InProgress", None)]);
    let plan = stage.plan();
    assert!(!plan.needs.refreshes && matches!(plan.rollout, Some(RolloutPhase::Refreshing { .. })));
}

#[test]
fn h2_what_outdates_nothing_is_updated_unless_aws_would_reject_it() {
    let mut stage = Stage::new(3);
    stage.desired.rollout.type_ = RolloutType::InstanceRefresh;
    stage.desired.rotates = false;
    stage.group().settings.launch.template.version = Some(9);
    if let Known::Present(template) = &mut stage.observed.template {
        template.versions.insert(9, LaunchTemplateVersion { description: None, ..version(9, &stamp("9")) });
    }
    assert!(updates_launch(&stage.plan()), "nothing is outdated");
    listed(&mut stage, vec![refresh("Baking", Some(1))]);
    assert!(!updates_launch(&stage.plan()));
    stage.observed.refreshes = None;
    let plan = stage.plan();
    assert!(!updates_launch(&plan) && plan.needs.refreshes);
}

/// AWS rejects an update of the group while an instance refresh that names a configuration is in progress: instances that
/// it launches would never get the new data, such as a token that is still valid.
#[test]
fn h2_an_instance_refresh_with_previous_bootstrap_data_is_replaced() {
    let mut stage = outdated(false);
    listed(&mut stage, vec![refresh("InProgress", Some(2))]);
    followed(&mut stage, RolloutWait::Refresh);
    assert!(cloud(&stage.plan()).is_empty());
    let next = Stamp { content: stamp("other").content, ..stamp("2") };
    if let Known::Present(template) = &mut stage.observed.template {
        let content = template.versions[&2].content.clone();
        template.versions.insert(3, LaunchTemplateVersion { content, ..version(3, &next) });
    }
    if let DesiredLaunch::Known { stamp, .. } = &mut stage.desired.launch {
        *stamp = next;
    }
    assert!(cancels(&once_told(&mut stage)));
    listed(&mut stage, vec![refresh("Cancelled", Some(2))]);
    assert_eq!(start(&stage.plan()).unwrap().desired, Some(launch(3)));
}

#[test]
fn p46_a_launch_template_that_launches_nothing_is_no_rollback() {
    let mut stage = outdated(false);
    stage.desired.disruption = never();
    assert!(!updates_launch(&stage.plan()), "held for the window");
    stage.memory.launches.fail();
    assert!(!updates_launch(&stage.plan()), "nothing is missing");
    stage.observed.instances.remove("i-3");
    assert!(updates_launch(&stage.plan()));
}

#[test]
fn p16_nothing_is_started_unless_our_hook_was_just_read() {
    let mut stage = outdated(false);
    stage.observed.fresh_hook = false;
    let plan = stage.plan();
    assert!(start(&plan).is_none() && plan.needs.fresh_hook);
    stage.observed.fresh_hook = true;
    stage.observed.hook = Known::Unread(None);
    assert!(start(&stage.plan()).is_none(), "it could not be read");
    stage.observed.hook = Known::Absent;
    let plan = stage.plan();
    assert!(matches!(cloud(&plan)[..], [Write::PutLifecycleHook { .. }]), "{plan:?}");
}

/// AWS waits for the instance, and `ExitStandby` is rejected beyond MaxSize.
#[test]
fn p43_max_size_includes_instances_in_standby_during_an_instance_refresh() {
    let mut stage = outdated(true);
    listed(&mut stage, vec![refresh("InProgress", Some(2))]);
    stage.lifecycle("i-2", LifecycleState::Standby);
    stage.group().capacity.desired = 2;
    let plan = stage.plan();
    let Some(Write::UpdateGroup { change, .. }) = cloud(&plan).first() else { panic!("{plan:?}") };
    assert_eq!((change.max, change.desired), (Some(4), Some(3)));
}

#[test]
fn w8_a_changed_strategy_waits_for_the_refresh_in_progress() {
    let mut stage = outdated(true);
    followed(&mut stage, RolloutWait::Refresh);
    stage.desired.rollout.type_ = RolloutType::RollingUpdate;
    stage.memory.rollout.reported_mut().as_mut().unwrap().type_ = RolloutType::RollingUpdate;
    stage.observed.refreshes = None;
    assert!(stage.plan().needs.refreshes, "a new leader reads it");
}

#[test]
fn w26_a_pool_that_is_up_to_date_reads_no_refreshes() {
    for kind in [RolloutType::InstanceRefresh, RolloutType::RollingUpdate, RolloutType::OnDelete] {
        let mut stage = Stage::new(3);
        stage.desired.rollout.type_ = kind;
        stage.observed.refreshes = None;
        let plan = stage.plan();
        assert!(plan.needs.is_empty() && plan.is_empty(), "{kind:?}: {plan:?}");
    }
}

/// A window that opens once in four years.
fn never() -> ResolvedDisruption {
    let window = DisruptionWindow {
        schedule: "0 0 29 2 *".into(),
        duration_seconds: 900,
        ..DisruptionWindow::default()
    };
    let disruption = Disruption { windows: vec![window], ..Disruption::default() };
    ASGMachinePoolSpec { disruption: Some(disruption), ..ASGMachinePoolSpec::default() }.disruption(3)
}

fn any_status() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "Pending",
        "InProgress",
        "Baking",
        "Cancelling",
        "RollbackInProgress",
        "Levitating",
        "Successful",
        "Failed",
        "Cancelled",
        "RollbackSuccessful",
        "RollbackFailed",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever AWS lists and whatever was reported: at most one call about refreshes, never a start alongside an
    /// active one or against a pause, an annotation or an unread listing, no change of what the group launches that AWS
    /// would reject or that prevents a rollback, no instance added or terminated by a rolling update, and the same
    /// again for the same facts.
    #[test]
    fn instance_refreshes_never_conflict(
        listing in prop::option::of(prop::collection::vec((any_status(), prop::option::of(1_i64..4)), 0..3)),
        rotates in any::<bool>(),
        paused in any::<bool>(),
        stopped in any::<bool>(),
        was in prop::option::of(prop::sample::select(vec![RolloutWait::Refresh, RolloutWait::Correction])),
        pinned in 1_i64..4,
        age in 0_i64..120,
        extra in 0_usize..3,
        rolling in any::<bool>(),
        told in any::<bool>(),
    ) {
        let mut stage = outdated(rotates);
        stage.group().settings.launch.template.version = Some(pinned);
        if rolling {
            stage.desired.rollout.type_ = RolloutType::RollingUpdate;
        }
        for number in 0..extra {
            stage.add(&format!("i-{}", 4 + number), 2);
        }
        if let Some(was) = was {
            followed(&mut stage, was);
            stage.memory.rollout.reported_mut().as_mut().unwrap().ended_refresh_id = told.then(|| "r-1".to_owned());
        }
        if stopped {
            stage.desired.stopped =
                crate::machine_pool::model::revision::revision(&stage.desired, &stage.observed);
        }
        if paused {
            stage.desired.rollout.mode = RolloutMode::Paused;
        }
        stage.desired_for(age);
        let mut active = None;
        match listing {
            None => stage.observed.refreshes = None,
            Some(all) => {
                // AWS has one at a time: the newest.
                let mut all: Vec<_> = all.into_iter().map(|(status, desired)| refresh(status, desired)).collect();
                for older in all.iter_mut().skip(1).filter(|older| !older.status.is_finished()) {
                    *older = refresh("Failed", None);
                }
                active = all.first().filter(|newest| !newest.status.is_finished()).cloned();
                listed(&mut stage, all);
            }
        }
        let plan = stage.plan();
        let about = cloud(&plan)
            .into_iter()
            .filter(|write| matches!(
                write,
                Write::StartInstanceRefresh(_)
                    | Write::CancelInstanceRefresh { .. }
                    | Write::RollbackInstanceRefresh { .. }
            ))
            .count();
        prop_assert!(about <= 1, "{plan:?}");
        if cloud(&plan).iter().any(|write| {
            matches!(write, Write::CancelInstanceRefresh { .. } | Write::RollbackInstanceRefresh { .. })
        }) {
            prop_assert!(was.is_some() && told, "the status reports it first: {plan:?}");
        }
        if start(&plan).is_some() {
            prop_assert!(active.is_none() && stage.observed.refreshes.is_some());
            prop_assert!(!paused && !stopped && !rolling && age >= 10);
            prop_assert!(!updates_launch(&plan));
        }
        if active.as_ref().is_some_and(|active| active.desired.is_some()) || (!rotates && !rolling) {
            prop_assert!(!updates_launch(&plan), "{plan:?}");
        }
        if active.is_some() {
            let rolls = kubernetes(&plan).into_iter().any(|step| step.starts_with("delete"));
            prop_assert!(!rolls && terminations(&plan).is_empty(), "{plan:?}");
        }
        prop_assert_eq!(format!("{:?}", stage.plan()), format!("{plan:?}"));
    }
}
