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
    for satisfied in ["~1.17", "", "^1 || ^2"] {
        case.spec.version = satisfied.into();
        assert_eq!(case.step(), Step::Nothing, "until the newest version is known");
    }
    case.spec.version = "~1.18".into();
    let change = Change::Version { from: "1.17.0".into(), to: "~1.18".into() };
    assert_eq!(case.step(), Step::Upgrade(change), "Helm reads the repository, or says why not");
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
