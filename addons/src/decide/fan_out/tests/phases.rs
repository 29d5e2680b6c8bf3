//! Phases of the life of a Cluster: which version a release is for, and which releases are uninstalled before their Cluster.

use super::*;

const ENTRIES: &str =
    r#"[{"kubernetes": "<1.36", "version": "1.17.0"}, {"kubernetes": "1.36", "version": "1.18.0"}]"#;

fn asking(phases: &str) -> HelmChartProxy {
    let mut proxy = proxy();
    proxy.annotations_mut().insert(names::PHASES.to_owned(), phases.to_owned());
    proxy.annotations_mut().insert(names::VERSIONS.to_owned(), ENTRIES.to_owned());
    proxy
}

fn at(actual: &str, requested: &str) -> Selected {
    Selected { kubernetes: kubernetes(actual, requested), ..cluster("a") }
}

/// The version of the chart and the Kubernetes version that an update writes.
fn updated_to(outcome: &FanOut) -> (String, Option<String>) {
    let [Step::Update(changed)] = &outcome.steps[..] else { panic!("{outcome:?}") };
    (changed.spec.version.clone(), changed.kubernetes_version().map(str::to_owned))
}

fn requested(mut release: HelmReleaseProxy, next: &str) -> HelmReleaseProxy {
    release.status = serde_json::from_value(json!({"nextKubernetesVersion": next})).unwrap();
    release
}

#[test]
fn a_release_is_changed_for_a_step_before_it_and_for_its_version_after_it() {
    for (phases, before) in [("before-control-plane-upgrade", true), ("after-control-plane-upgrade", false)] {
        let proxy = asking(phases);
        let release = created(&fan_out(&proxy, &[at("v1.35.2", "v1.35.2")], &[])).remove(0);
        assert_eq!(
            (release.spec.version.as_str(), release.kubernetes_version()),
            ("1.17.0", Some("v1.35.2"))
        );
        let requested = requested(release, "v1.36.3");
        let outcome = fan_out(&proxy, &[at("v1.35.2", "v1.36.3")], std::slice::from_ref(&requested));
        if before {
            assert_eq!(updated_to(&outcome), ("1.18.0".to_owned(), Some("v1.36.3".to_owned())));
        } else {
            assert_eq!(outcome.steps, [], "this one is changed after the step");
        }
        let outcome = fan_out(&proxy, &[at("v1.36.3", "v1.36.3")], &[requested]);
        assert_eq!(updated_to(&outcome), ("1.18.0".to_owned(), Some("v1.36.3".to_owned())));
    }
}

#[test]
fn a_chart_that_fits_both_versions_is_no_change() {
    let mut proxy = asking("before-control-plane-upgrade");
    let release = created(&fan_out(&proxy, &[at("v1.34.1", "v1.34.1")], &[])).remove(0);
    let requested = requested(release, "v1.35.2");
    // Neither a dependency nor the limit of Clusters holds up what changes no release.
    proxy.annotations_mut().insert(names::MAX_CHANGING.to_owned(), "1".to_owned());
    let busy = Selected { waits_for: vec!["ccm".to_owned()], ..at("v1.34.1", "v1.35.2") };
    let outcome = fan_out(&proxy, &[busy], &[requested]);
    assert_eq!(updated_to(&outcome), ("1.17.0".to_owned(), Some("v1.35.2".to_owned())));
}

#[test]
fn without_a_phase_of_upgrades_nothing_is_recorded() {
    let proxy = asking("before-cluster-delete");
    let release = created(&fan_out(&proxy, &[at("v1.34.1", "v1.34.1")], &[])).remove(0);
    assert_eq!(release.kubernetes_version(), None);
    assert_eq!(fan_out(&proxy, &[at("v1.35.2", "v1.35.2")], &[release]).steps, []);
}

#[test]
fn releases_that_ask_for_it_are_uninstalled_before_their_cluster_and_no_others() {
    let deleting = || Selected { is_deleting: true, waits_for: vec!["ccm".to_owned()], ..cluster("a") };
    let asks = asking("before-cluster-delete,after-control-plane-upgrade");
    let releases = existing(&proxy(), &["a"]);
    let outcome = fan_out(&asks, &[deleting()], &releases);
    let name = releases[0].name_any();
    assert_eq!(outcome.steps, [Step::Delete { name, why: Deletion::BeforeClusterDelete }]);
    let gone = [going(releases[0].clone())];
    assert_eq!(fan_out(&asks, &[deleting()], &gone).steps, [], "once");
    assert_eq!(fan_out(&asks, &[deleting()], &[]).steps, [], "it is not installed again");
    let protected = Selected { is_protected: true, ..deleting() };
    assert_eq!(fan_out(&asks, &[protected], &releases).steps, []);
    let moved = Selected { is_paused: true, ..deleting() };
    assert_eq!(fan_out(&asks, &[moved], &releases).steps, [], "a move deletes the Cluster here alone");
    for other in [proxy(), asking("after-control-plane-upgrade")] {
        assert_eq!(fan_out(&other, &[deleting()], &releases).steps, []);
    }
}

#[test]
fn an_unknown_phase_is_reported_and_changes_nothing() {
    let outcome = fan_out(&asking("before-delete"), &[at("v1.36.3", "v1.36.3")], &[]);
    assert_eq!((outcome.steps.len(), outcome.condition.reason), (0, "AnnotationNotValid"));
    assert!(
        outcome.condition.message.contains("contains \"before-delete\""),
        "{}",
        outcome.condition.message
    );
}
