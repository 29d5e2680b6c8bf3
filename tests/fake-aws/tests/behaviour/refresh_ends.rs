//! Instance refreshes that do not succeed: refusals, failures, cancellation and rollback.

use capasg_fake_aws::Tree;

use crate::{
    kit::{Kit, named},
    refresh::{desired, preferences, refresh},
};

fn alarmed() -> Tree {
    Tree::new().with("AlarmSpecification", Tree::new().with("Alarms", vec!["errors"]))
}

#[test]
fn a_second_refresh_at_a_time_is_rejected() {
    let kit = Kit::with_two_versions(2);
    assert_eq!(kit.refused("CancelInstanceRefresh", named("pool")).0, "ActiveInstanceRefreshNotFound");
    assert_eq!(kit.refused("RollbackInstanceRefresh", named("pool")).0, "ActiveInstanceRefreshNotFound");
    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
    assert_eq!(kit.refused("StartInstanceRefresh", refresh(2, Tree::new())).0, "InstanceRefreshInProgress");
    kit.seconds(600);
    assert_eq!(kit.refused("CancelInstanceRefresh", named("pool")).0, "ActiveInstanceRefreshNotFound");
    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
}

#[test]
fn contradictory_preferences_are_rejected() {
    let kit = Kit::with_two_versions(2);
    let refused = |more: Tree| kit.refused("StartInstanceRefresh", refresh(2, more)).1;
    assert!(refused(Tree::new().with("MaxHealthyPercentage", 120)).starts_with("MinHealthyPercentage must"));
    let wide = Tree::new().with("MinHealthyPercentage", 50).with("MaxHealthyPercentage", 200);
    assert!(refused(wide).contains("cannot be greater than 100"));
    assert!(refused(Tree::new().with("CheckpointPercentages", vec![50, 20])).contains("ascending"));
    assert!(refused(Tree::new().with("CheckpointDelay", 5)).contains("CheckpointPercentages must"));
    let automatic = named("pool").with("Preferences", Tree::new().with("AutoRollback", true));
    let (code, words) = kit.refused("StartInstanceRefresh", automatic);
    assert_eq!(code, "ValidationError");
    assert!(words.contains("DesiredConfiguration parameter is empty"), "{words}");
    let latest = Tree::new().with("LaunchTemplateName", "nodes").with("Version", "$Latest");
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("LaunchTemplate", latest));
    assert!(refused(Tree::new().with("AutoRollback", true)).contains("$Latest"));
    let (_, words) = kit.refused("StartInstanceRefresh", refresh(9, Tree::new()));
    assert!(words.contains("Could not find the specified version 9"), "{words}");
}

#[test]
fn a_cancelled_refresh_waits_for_replacements_in_progress() {
    let kit = Kit::with_two_versions(4);
    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
    kit.seconds(20);
    kit.autoscaling("CancelInstanceRefresh", named("pool"));
    assert_eq!(kit.refresh_status(), "Cancelling");
    assert_eq!(kit.refused("CancelInstanceRefresh", named("pool")).0, "ActiveInstanceRefreshNotFound");
    kit.seconds(120);
    assert_eq!(kit.refresh_status(), "Cancelled");
    assert!(kit.refreshes()[0].text_of("EndTime").is_some());
    assert_eq!(kit.group_version(), "1");
    let (old, new): (Vec<_>, Vec<_>) = kit.versions().into_iter().partition(|version| *version == 1);
    assert_eq!((old.len(), new.len()), (3, 1), "nothing is taken back");

    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
    kit.seconds(20);
    kit.autoscaling("CancelInstanceRefresh", named("pool").with("WaitForTransitioningInstances", false));
    assert_eq!(kit.refresh_status(), "Cancelled", "not waited for");
}

#[test]
fn a_rollback_replaces_the_new_instances() {
    let kit = Kit::with_two_versions(4);
    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
    kit.seconds(70);
    assert!(kit.versions().contains(&2));
    kit.autoscaling("RollbackInstanceRefresh", named("pool"));
    assert_eq!(kit.refresh_status(), "RollbackInProgress");
    let (code, _) = kit.refused("RollbackInstanceRefresh", named("pool"));
    assert_eq!(code, "ActiveInstanceRefreshNotFound");
    kit.seconds(600);
    let newest = kit.refreshes().remove(0);
    assert_eq!(newest.text_of("Status"), Some("RollbackSuccessful"));
    assert!(newest.at("RollbackDetails.RollbackReason").is_some());
    assert_eq!(kit.versions(), [1; 4]);
    assert_eq!(kit.group_version(), "1");
}

#[test]
fn a_refresh_without_a_previous_configuration_cannot_roll_back() {
    let kit = Kit::with_two_versions(2);
    kit.autoscaling("StartInstanceRefresh", named("pool").with("Preferences", preferences(Tree::new())));
    assert_eq!(kit.refused("RollbackInstanceRefresh", named("pool")).0, "IrreversibleInstanceRefresh");
}

#[test]
fn an_alarm_fails_a_refresh_or_rolls_it_back() {
    for (automatic, end) in [(false, "Failed"), (true, "RollbackSuccessful")] {
        let kit = Kit::with_two_versions(3);
        kit.autoscaling("StartInstanceRefresh", refresh(2, alarmed().with("AutoRollback", automatic)));
        kit.seconds(60);
        kit.simulator.set_alarm(&kit.scope, "errors", true);
        kit.seconds(600);
        let newest = kit.refreshes().remove(0);
        assert_eq!(newest.text_of("Status"), Some(end));
        assert!(newest.text_of("StatusReason").is_some_and(|words| words.contains("Alarm errors")));
        assert_eq!(kit.group_version(), "1");
    }
}

#[test]
fn an_alarm_counts_during_the_bake_time() {
    let kit = Kit::with_two_versions(1);
    kit.autoscaling("StartInstanceRefresh", refresh(2, alarmed().with("BakeTime", 3600)));
    kit.seconds(300);
    assert_eq!(kit.refresh_status(), "Baking");
    kit.simulator.set_alarm(&kit.scope, "errors", true);
    kit.seconds(10);
    assert_eq!(kit.refresh_status(), "Failed");
}

#[test]
fn protected_instances_are_refreshed_ignored_or_waited_for() {
    let run = |how: &str| {
        let kit = Kit::with_two_versions(2);
        kit.protect(&kit.ids("pool")[..1], true);
        kit.autoscaling(
            "StartInstanceRefresh",
            refresh(2, Tree::new().with("ScaleInProtectedInstances", how)),
        );
        kit.seconds(3000);
        let early = kit.refresh_status();
        kit.seconds(3600);
        let mut versions = kit.versions();
        versions.sort_unstable();
        (early, kit.refresh_status(), versions)
    };
    let outcome = |early: &str, late: &str, versions| (early.to_owned(), late.to_owned(), versions);
    assert_eq!(run("Refresh"), outcome("Successful", "Successful", vec![2, 2]));
    assert_eq!(run("Ignore"), outcome("Successful", "Successful", vec![1, 2]));
    assert_eq!(run("Wait"), outcome("InProgress", "Failed", vec![1, 2]));
}

#[test]
fn standby_instances_are_terminated_ignored_or_waited_for() {
    let run = |how: &str| {
        let kit = Kit::with_two_versions(2);
        let one = kit.ids("pool").remove(0);
        let standby =
            named("pool").with("InstanceIds", vec![&one]).with("ShouldDecrementDesiredCapacity", true);
        kit.autoscaling("EnterStandby", standby);
        kit.seconds(10);
        kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new().with("StandbyInstances", how)));
        kit.seconds(600);
        let early = kit.refresh_status();
        kit.seconds(3600);
        (early, kit.refresh_status(), kit.state(&one))
    };
    assert_eq!(run("Terminate"), ("Successful".to_owned(), "Successful".to_owned(), None));
    let standby = Some("Standby".to_owned());
    assert_eq!(run("Ignore"), ("Successful".to_owned(), "Successful".to_owned(), standby.clone()));
    assert_eq!(run("Wait"), ("InProgress".to_owned(), "Failed".to_owned(), standby));
}

#[test]
fn an_hour_without_progress_fails_a_refresh() {
    let kit = Kit::with_two_versions(2);
    kit.simulator.set_capacity(&kit.scope, "*", "*", Some(2));
    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new().with("MinHealthyPercentage", 50)));
    kit.seconds(15);
    kit.simulator.set_capacity(&kit.scope, "*", "*", Some(0));
    kit.seconds(3000);
    assert_eq!(kit.refresh_status(), "InProgress");
    kit.seconds(1200);
    let newest = kit.refreshes().remove(0);
    assert_eq!(newest.text_of("Status"), Some("Failed"));
    assert!(newest.text_of("StatusReason").is_some_and(|words| words.contains("no progress")));
}

#[test]
fn an_hour_without_progress_fails_a_rollback() {
    let kit = Kit::with_two_versions(4);
    kit.autoscaling(
        "StartInstanceRefresh",
        refresh(2, Tree::new().with("ScaleInProtectedInstances", "Wait")),
    );
    let before = kit.ids("pool");
    kit.seconds(70);
    let new: Vec<String> = kit.ids("pool").into_iter().filter(|id| !before.contains(id)).collect();
    kit.protect(&new[..1], true);
    kit.autoscaling("RollbackInstanceRefresh", named("pool"));
    kit.seconds(3000);
    assert_eq!(kit.refresh_status(), "RollbackInProgress");
    kit.seconds(3600);
    assert_eq!(kit.refresh_status(), "RollbackFailed");
}

#[test]
fn suspended_processes_delay_a_refresh() {
    for process in ["InstanceRefresh", "Terminate", "Launch"] {
        let kit = Kit::with_two_versions(2);
        let processes = || named("pool").with("ScalingProcesses", vec![process]);
        kit.autoscaling("SuspendProcesses", processes());
        kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
        kit.seconds(1200);
        assert_eq!(kit.versions(), [1; 2], "{process}");
        kit.autoscaling("ResumeProcesses", processes());
        kit.seconds(600);
        assert_eq!(kit.refresh_status(), "Successful", "{process}");
    }
}

#[test]
fn a_refresh_status_can_be_overridden() {
    let kit = Kit::with_two_versions(1);
    assert!(!kit.simulator.disguise_refresh(&kit.scope, "pool", Some("Levitating")));
    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
    assert!(kit.simulator.disguise_refresh(&kit.scope, "pool", Some("Levitating")));
    assert_eq!(kit.refresh_status(), "Levitating");
    kit.simulator.disguise_refresh(&kit.scope, "pool", None);
    assert_eq!(kit.refresh_status(), "Pending");
}

#[test]
fn deleting_the_group_ends_its_refresh() {
    let kit = Kit::with_two_versions(2);
    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
    kit.seconds(10);
    kit.autoscaling("DeleteAutoScalingGroup", named("pool").with("ForceDelete", true));
    let (code, _) =
        kit.refused("StartInstanceRefresh", named("pool").with("DesiredConfiguration", desired(2)));
    assert_eq!(code, "ValidationError");
    kit.seconds(600);
    assert!(kit.describe("pool").is_none());
}
