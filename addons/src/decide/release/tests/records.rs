//! What is recorded on the object and on the release, and what follows from it.

use super::*;

// Rules: X5
#[test]
fn an_operation_of_the_management_cluster_before_a_move_has_time_to_end() {
    let mut case = Case::installed().with(|found| found.release.state = ReleaseState::PendingUpgrade);
    case.created_at = Some(at(0) + TimeDelta::seconds(6));
    assert_eq!(case.step(), Step::Wait(Wait::Operation(at(1800))));
    case.now = at(1800);
    assert_eq!(case.step(), Step::MarkFailed { revision: 1 });
    (case.created_at, case.now) = (Some(at(0) - TimeDelta::days(1)), at(0));
    assert_eq!(case.step(), Step::MarkFailed { revision: 1 }, "the object was here before");
}

#[test]
fn another_constraint_is_applied_although_the_repository_was_not_read() {
    let mut case = Case::installed();
    case.spec.version = "~1.17".into();
    let change = Change::Version { from: "1.17.0".into(), to: "~1.17".into() };
    assert_eq!(case.step(), Step::Upgrade(change), "its last operation had an exact version");
    case.cluster = Cluster::Reachable(Some(case.found()));
    assert_eq!(
        case.step(),
        Step::Nothing,
        "the repository is not available, and the release has this constraint"
    );
    case.spec.version = String::new();
    let change = Change::Version { from: "1.17.0".into(), to: "the newest one".into() };
    assert_eq!(case.step(), Step::Upgrade(change));
    case.newest = Some("1.17.0".into());
    assert_eq!(case.step(), Step::Nothing, "it is the newest one");
    let taken_over = case.with(|found| drop(found.labels.remove(names::RELEASE_CONSTRAINT)));
    assert_eq!(Case { newest: None, ..taken_over }.step(), Step::Nothing, "a hand-over upgrades nothing");
}

#[test]
fn the_version_of_the_application_is_recorded() {
    let with = |version: &str| {
        let version = Some(version.to_owned());
        Case::installed().with(|found| found.release.chart.app_version = version)
    };
    let case = with("v2.0.0");
    assert_eq!(case.step(), Step::RecordInstalled);
    assert_eq!(decide_operation(&case.desired(), &case.cluster, &case.memory, case.now).step, Step::Nothing);
    assert_eq!(Case { app_version: Some("v2.0.0".into()), ..case }.step(), Step::Nothing);
    assert_eq!(with("").step(), Step::Nothing);
    let long = "é".repeat(40);
    let shown = Some("é".repeat(31));
    assert_eq!(Case { app_version: shown, ..with(&long) }.step(), Step::Nothing, "it is cut");
}

#[test]
fn a_release_that_is_orphaned_stays() {
    let case = Case { deleted_at: Some(at(0)), is_orphaned: true, ..Case::installed() };
    assert_eq!(case.step(), Step::Release);
    let asked = Case { cluster_deletion: ClusterDeletion::AfterRelease, ..case };
    assert_eq!(
        asked.step(),
        Step::Uninstall(Removal::Deleted),
        "it asks to be uninstalled before its Cluster"
    );
}
