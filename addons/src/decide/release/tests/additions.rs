//! Archives of charts, and drift.

use super::*;

#[test]
fn an_archive_with_other_content_is_an_upgrade() {
    let mut case = Case::installed();
    case.archive = Some("0a1b".into());
    case.spec.version = "1.17.0+archive.0a1b".into();
    assert_eq!(case.step(), Step::Upgrade(Change::Archive), "it was installed from a repository");
    let found = case.found();
    case.cluster = Cluster::Reachable(Some(found.clone()));
    assert_eq!(case.step(), Step::Nothing);
    case.spec.version = "1.18.0+archive.0a1b".into();
    assert_eq!(case.step(), Step::Nothing, "this content has another version than the spec says");
    let by_hand = case.clone().with(|found| found.release.revision = 2);
    assert!(matches!(by_hand.step(), Step::Upgrade(Change::Version { .. })), "a manual upgrade");
    case.spec.version = "1.17.0+archive.2c3d".into();
    case.archive = Some("2c3d".into());
    assert_eq!(case.step(), Step::Upgrade(Change::Archive));
    case.archive = None;
    assert_eq!(case.step(), Step::Upgrade(Change::Archive), "back to the repository");
    assert_eq!(case.found().labels[names::RELEASE_ARCHIVE], "", "an upgrade removes the digest");
}

#[test]
fn a_release_whose_resources_were_changed_is_upgraded_if_requested() {
    let findings = |paths: &[&str]| DriftFindings {
        drifted: paths.iter().map(|_| Drifted { resource: "Job a".into(), paths: Vec::new() }).collect(),
        unchecked: Vec::new(),
    };
    let case = |mode: &str, findings: DriftFindings| {
        let annotations = [(names::DRIFT.to_owned(), mode.to_owned())].into();
        let mut memory = DriftMemory::default();
        memory.checked(1, findings, 0.0, at(0));
        let settings = DriftSettings::of(&annotations).transpose().unwrap();
        Case { drift: Some(Drift { settings, memory }), ..Case::installed() }
    };
    let mut corrects = case("Correct", findings(&["spec"]));
    assert_eq!(corrects.step(), Step::Upgrade(Change::Drift));
    assert_eq!(corrects.decide().conditions[2].reason, "ResourcesChanged");
    corrects.memory.failed("1", "HookFailed", String::new(), at(0));
    assert_eq!(corrects.step(), Step::Wait(Wait::Backoff(at(15))));
    assert_eq!(case("Correct", findings(&[])).step(), Step::Nothing);
    assert_eq!(case("Report", findings(&["spec"])).step(), Step::Nothing);
    let later = case("Correct", findings(&["spec"])).with(|found| found.release.revision = 2);
    assert_eq!(later.step(), Step::Nothing, "another revision was not compared yet");
    let paused = Case { is_paused: true, ..case("Correct", findings(&["spec"])) };
    assert_eq!(paused.step(), Step::Nothing);
    let mut once = case("Correct", findings(&["spec"]));
    once.spec.reconcile_strategy = crate::kinds::ReconcileStrategy::InstallOnce;
    assert_eq!(once.step(), Step::Nothing);
}
