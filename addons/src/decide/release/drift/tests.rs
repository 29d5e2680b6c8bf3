//! When releases are compared and corrected, and what the condition says.

use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_000_000 + seconds, 0).unwrap()
}

fn annotations(drift: &str, ignored: &str) -> BTreeMap<String, String> {
    [(names::DRIFT.to_owned(), drift.to_owned()), (names::DRIFT_IGNORED.to_owned(), ignored.to_owned())]
        .into()
}

fn drift(mode: &str) -> Drift {
    let settings = DriftSettings::of(&annotations(mode, "")).transpose().unwrap();
    Drift { settings, memory: DriftMemory::default() }
}

fn differs() -> DriftFindings {
    let resource = "Deployment kube-system/cni".to_owned();
    let drifted = vec![Drifted { resource, paths: vec!["spec.replicas".to_owned()] }];
    DriftFindings { drifted, unchecked: Vec::new() }
}

#[test]
fn annotations_request_reports_or_corrections_and_name_what_is_not_compared() {
    assert_eq!(DriftSettings::of(&BTreeMap::new()), Ok(None));
    let text = "Deployment:spec.replicas, ValidatingWebhookConfiguration:webhooks";
    let settings = DriftSettings::of(&annotations("Correct", text)).unwrap().unwrap();
    assert!(settings.corrects);
    assert!(settings.ignores("Deployment", "spec.replicas"));
    assert!(settings.ignores("ValidatingWebhookConfiguration", "webhooks[0].clientConfig.caBundle"));
    assert!(!settings.ignores("Deployment", "spec.replicasOther") && !settings.ignores("Deployment", "spec"));
    assert!(!settings.ignores("StatefulSet", "spec.replicas"));
    let error = DriftSettings::of(&annotations("yes", "")).unwrap_err();
    assert!(error.ends_with("is \"yes\", and not Report or Correct"), "{error}");
    assert!(
        DriftSettings::of(&annotations("Report", "spec")).unwrap_err().ends_with("and not <kind>:<path>")
    );
}

#[test]
fn a_release_is_compared_at_intervals_and_after_a_new_revision() {
    let mut memory = DriftMemory::default();
    assert!(memory.is_due(1, at(0)));
    memory.checked(1, DriftFindings::default(), 0.5, at(0));
    assert!(!memory.is_due(1, at(659)) && memory.is_due(1, at(660)), "with a tenth more");
    assert!(memory.is_due(2, at(1)));
    let mut restarted = DriftMemory::default();
    restarted.started(0.5, at(0));
    restarted.started(1.0, at(0));
    assert!(!restarted.is_due(1, at(299)) && restarted.is_due(1, at(300)));
}

#[test]
fn corrections_that_do_not_last_are_rarer_each_time() {
    let mut drift = drift("Correct");
    let (mut now, mut revision, mut corrections) = (0, 1, Vec::new());
    while now < 24 * 3600 {
        if drift.memory.is_due(revision, at(now)) {
            drift.memory.checked(revision, differs(), 0.0, at(now));
        }
        if drift.corrects(revision, at(now)) {
            corrections.push(now / 60);
            drift.memory.corrected(at(now));
            revision += 1;
        }
        now += 60;
    }
    assert_eq!(corrections, [0, 10, 30, 70, 150, 310, 630, 990, 1350]);

    // One that lasts is forgotten, but not by the comparison that follows it at once.
    drift.memory.corrected(at(now));
    drift.memory.checked(revision + 1, DriftFindings::default(), 0.0, at(now));
    assert!(drift.memory.corrections > 0);
    drift.memory.checked(revision + 1, DriftFindings::default(), 0.0, at(now + 600));
    assert_eq!((drift.memory.corrections, drift.memory.may_correct_at()), (0, None));
}

#[test]
fn annotations_that_are_not_valid_are_reported_and_correct_nothing() {
    let mut drift = drift("yes");
    drift.memory.checked(1, differs(), 0.0, at(0));
    assert!(!drift.corrects(1, at(0)));
    let finding = drift.condition(1).unwrap();
    assert_eq!((finding.status, finding.reason), (Status::Unknown, "AnnotationNotValid"));
}

#[test]
fn the_next_comparison_is_always_later() {
    // Nothing is compared with an annotation that is not valid, and with InstallOnce.
    assert_eq!(drift("yes").next(at(0)), at(600));
    let mut drift = drift("Correct");
    assert_eq!(drift.next(at(0)), at(600));
    drift.memory.started(0.5, at(0));
    assert_eq!(drift.next(at(0)), at(300));
    drift.memory.checked(1, differs(), 0.0, at(0));
    drift.memory.corrected(at(0));
    assert_eq!((drift.next(at(0)), drift.next(at(600))), (at(600), at(1200)));
    drift.memory.corrected(at(300));
    assert_eq!((drift.next(at(0)), drift.next(at(600))), (at(600), at(1500)));
}

#[test]
fn a_report_changes_nothing() {
    let mut drift = drift("Report");
    drift.memory.checked(1, differs(), 0.0, at(0));
    assert!(!drift.corrects(1, at(0)));
    assert_eq!(drift.next(at(0)), at(600));
    let finding = drift.condition(1).unwrap();
    assert_eq!((finding.status, finding.reason), (Status::True, "ResourcesChanged"));
    let expected = "resources differ from the release: Deployment kube-system/cni (spec.replicas)";
    assert_eq!(finding.message, expected);
    assert_eq!(drift.condition(2), None, "another revision was not compared yet");
}

#[test]
fn the_condition_names_what_was_not_compared() {
    let mut drift = drift("Correct");
    let unchecked = vec!["Job kube-system/a: 403 Forbidden".to_owned()];
    drift.memory.checked(1, DriftFindings { drifted: Vec::new(), unchecked: unchecked.clone() }, 0.0, at(0));
    let finding = drift.condition(1).unwrap();
    assert_eq!((finding.status, finding.reason), (Status::Unknown, "DriftNotChecked"));
    assert_eq!(finding.message, "Not compared: Job kube-system/a: 403 Forbidden");
    let drifted = vec![Drifted { resource: "Job kube-system/b".to_owned(), paths: Vec::new() }];
    drift.memory.checked(1, DriftFindings { drifted, unchecked }, 0.0, at(0));
    assert_eq!(
        drift.condition(1).unwrap().message,
        "resources differ from the release: Job kube-system/b does not exist. The release is upgraded to correct them. \
         Not compared: Job kube-system/a: 403 Forbidden"
    );
    drift.memory.checked(1, DriftFindings::default(), 0.0, at(0));
    assert_eq!(drift.condition(1).unwrap().reason, "NoDrift");
}
