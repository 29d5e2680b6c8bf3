//! What is decided while something about an instance refresh is not known: the listing, the report, or the desired state.

use capasg_cloud::CloudError;

use super::*;
use crate::kubernetes::KubeWrite;
use crate::machine_pool::model::memory::record::{Answer, Entry, Report};

#[test]
fn h3_a_rolling_update_waits_for_the_listing_if_a_refresh_may_be_in_progress() {
    let unlisted = || {
        let mut stage = outdated(true);
        stage.desired.rollout.type_ = RolloutType::RollingUpdate;
        stage.observed.refreshes = None;
        stage
    };
    assert!(!cloud(&unlisted().plan()).is_empty(), "a surge: nothing shows that one is in progress");

    let mut reported = unlisted();
    reported.desired.rollout.type_ = RolloutType::InstanceRefresh;
    followed(&mut reported, RolloutWait::Refresh);
    reported.desired.rollout.type_ = RolloutType::RollingUpdate;
    let plan = reported.plan();
    assert!(plan.needs.refreshes && cloud(&plan).is_empty() && kubernetes(&plan).is_empty(), "{plan:?}");
    listed(&mut reported, Vec::new());
    assert!(!cloud(&reported.plan()).is_empty(), "it is over");

    let mut terminating = unlisted();
    terminating.lifecycle("i-1", LifecycleState::TerminatingWait);
    terminating.instance("i-1").asg_machine.as_mut().unwrap().terminated_by_refresh = true;
    let plan = terminating.plan();
    assert!(plan.needs.refreshes && terminations(&plan).is_empty() && kubernetes(&plan).is_empty());
    assert!(matches!(plan.rollout, Some(RolloutPhase::Held)), "{:?}", plan.rollout);
    // The surge stays, and what holds the rollout otherwise still does.
    terminating.group().capacity = Capacity { min: 0, max: 4, desired: 4 };
    assert_eq!(terminating.plan().target, Some(4));
    terminating.desired.rollout.mode = RolloutMode::Paused;
    assert!(matches!(terminating.plan().rollout, Some(RolloutPhase::Paused { .. })));
}

/// The report that it started failed, or the status still reports that the rollout is stopped.
#[test]
fn w26_a_refresh_that_was_requested_counts_although_its_start_was_not_reported() {
    for waiting_for in [None, Some(RolloutWait::Correction)] {
        let mut stage = outdated(false);
        if let Some(waiting_for) = waiting_for {
            followed(&mut stage, waiting_for);
        }
        *stage.memory.refreshes.start_mut() = Some(stage.clock - TimeDelta::seconds(40));
        let ended_at = Some(stage.clock - TimeDelta::seconds(30));
        listed(&mut stage, vec![InstanceRefresh { ended_at, ..refresh("Cancelled", Some(2)) }]);
        let plan = stage.plan();
        let stopped = matches!(plan.rollout, Some(RolloutPhase::Stopped { .. }));
        assert!(stopped && start(&plan).is_none(), "{waiting_for:?}: {:?}", plan.rollout);

        // A user who removes the annotation starts another one.
        let stop = KubeWrite::AnnotateRolloutStopped {
            pool: stage.desired.pool.clone(),
            resource_version: None,
            revision: Some("r".to_owned()),
            reason: String::new(),
            rolled_back: false,
        };
        stage.memory.record(Entry::Written { write: &stop, resource_version: None }, stage.clock);
        assert!(start(&stage.plan()).is_some(), "{:?}", stage.plan().rollout);
    }
}

/// The desired state returned while an instance refresh for it was in progress, and the clocks of the host and of AWS are apart.
#[test]
fn w26_an_end_that_was_seen_counts_by_the_clock_of_the_host() {
    let stops = |seen, ended| {
        let mut stage = outdated(false);
        followed(&mut stage, RolloutWait::Refresh);
        let returned = stage.clock - TimeDelta::minutes(1);
        stage.memory.rollout.reported_mut().as_mut().unwrap().started_at = Some(returned);
        let end = InstanceRefresh {
            ended_at: Some(returned + TimeDelta::seconds(ended)),
            ..refresh("Cancelled", Some(2))
        };
        for (refresh, seen) in [(refresh("InProgress", Some(2)), -30), (end, seen)] {
            let as_of = returned + TimeDelta::seconds(seen);
            stage.observed.refreshes = Some(RefreshesView { refreshes: Arc::new(vec![refresh]), as_of });
            stage.memory.observe_facts(&stage.desired, &stage.observed, as_of);
        }
        matches!(stage.plan().rollout, Some(RolloutPhase::Stopped { .. }))
    };
    assert!(stops(10, -15), "the clock of AWS is behind");
    assert!(!stops(-10, 5), "the clock of AWS is ahead");
    assert!(!stops(10, -30), "it ended before the return, and was listed later");
}

/// The answer to a cancellation was lost, the reason for it ended, and a user cancelled the instance refresh.
#[test]
fn w26_the_end_of_a_refresh_that_continued_counts() {
    let mut stage = outdated(false);
    followed(&mut stage, RolloutWait::Refresh);
    let reported = stage.memory.rollout.reported().cloned().unwrap();
    for (ended_refresh_id, counts) in [(Some("r-1".to_owned()), false), (None, true)] {
        let rollout = RolloutStatus { ended_refresh_id, ..reported.clone() };
        let report = Report::Status {
            provisioned: None,
            rollout: Some(&rollout),
            rolling_out: true,
            nodes: None,
            external: false,
        };
        stage.memory.record(Entry::Reported(report), stage.clock);
        if !counts {
            let write = Write::CancelInstanceRefresh { group: stage.desired.group.clone() };
            let error = CloudError::timed_out("CancelInstanceRefresh", "no answer");
            stage
                .memory
                .record(Entry::Answered { write: &write, answer: Answer::Failed(&error) }, stage.clock);
        }
        listed(&mut stage, vec![refresh("Cancelled", Some(2))]);
        let stopped = matches!(stage.plan().rollout, Some(RolloutPhase::Stopped { .. }));
        assert_eq!(stopped, counts, "{:?}", stage.plan().rollout);
    }
}

/// A user cancels it before AWS starts it, and the clock of AWS is behind.
#[test]
fn w26_a_refresh_that_was_cancelled_while_it_was_pending_counts() {
    let stops = |seconds| {
        let mut stage = outdated(false);
        followed(&mut stage, RolloutWait::Refresh);
        let began = stage.clock - TimeDelta::minutes(1);
        stage.memory.rollout.reported_mut().as_mut().unwrap().started_at = Some(began);
        let ended_at = Some(began - TimeDelta::seconds(seconds));
        listed(
            &mut stage,
            vec![InstanceRefresh { started_at: None, ended_at, ..refresh("Cancelled", Some(2)) }],
        );
        matches!(stage.plan().rollout, Some(RolloutPhase::Stopped { .. }))
    };
    assert!(stops(15));
    assert!(!stops(25), "it belongs to an earlier rollout");
}

/// An instance that is outdated later belongs to another rollout.
#[test]
fn w26_a_refresh_of_a_rollout_that_is_over_does_not_count() {
    let mut stage = outdated(false);
    followed(&mut stage, RolloutWait::Refresh);
    *stage.memory.refreshes.start_mut() = Some(stage.clock - TimeDelta::seconds(40));
    let over =
        Report::Status { provisioned: None, rollout: None, rolling_out: false, nodes: None, external: false };
    stage.memory.record(Entry::Reported(over), stage.clock);
    let ended_at = Some(stage.clock - TimeDelta::seconds(30));
    listed(&mut stage, vec![InstanceRefresh { ended_at, ..refresh("Cancelled", Some(2)) }]);
    assert!(start(&stage.plan()).is_some(), "{:?}", stage.plan().rollout);
}

#[test]
fn p54_a_refresh_above_the_budget_is_cancelled_also_while_the_desired_state_changes_or_is_unknown() {
    let above = || {
        let mut stage = outdated(false);
        stage.desired.disruption.max_disrupted = Some(1);
        let min_healthy_percentage = Some(33);
        listed(
            &mut stage,
            vec![InstanceRefresh { min_healthy_percentage, ..refresh("InProgress", Some(2)) }],
        );
        stage
    };
    let mut unknown = above();
    (unknown.desired.launch, unknown.desired.bootstrap) = (DesiredLaunch::Unknown, None);
    assert!(cancels(&once_told(&mut unknown)));
    let mut changed = above();
    changed.desired_for(2);
    assert!(cancels(&once_told(&mut changed)));
}

/// A version of another actor has no stamp. The next one follows ours, so that an edit of the bootstrap configuration that is
/// not rendered yet is no other revision.
#[test]
fn h2_the_next_version_follows_ours_although_another_actor_pinned_one() {
    let mut stage = outdated(true);
    let before = crate::machine_pool::model::revision::revision(&stage.desired, &stage.observed);
    if let DesiredLaunch::Known { stamp, .. } = &mut stage.desired.launch {
        stamp.bootstrap_spec = "edited".to_owned();
    }
    stage.group().settings.launch.template.version = Some(9);
    if let Known::Present(template) = &mut stage.observed.template {
        template.versions.insert(9, LaunchTemplateVersion { description: None, ..version(9, &stamp("9")) });
    }
    let after = crate::machine_pool::model::revision::revision(&stage.desired, &stage.observed);
    assert_eq!(before, after);
}
