//! The text for one `HelmChartProxy` whose Clusters are in all situations.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use super::*;
use crate::{
    HelmChartProxy,
    decide::{
        Chart, Kubernetes, Selected, Values,
        release::{Cluster, ClusterDeletion, Desired, Fresh, Memory, decide_operation, labels},
    },
    helm::{ChartMetadata, Release, ReleaseState},
    names,
    preview::plan,
};

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_225_600, 0).unwrap()
}

fn proxy() -> HelmChartProxy {
    serde_json::from_value(json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
        "metadata": {"name": "cni", "namespace": "teams", "uid": "1"},
        "spec": {
            "clusterSelector": {"matchLabels": {"cni": "cilium"}}, "chartName": "cilium",
            "repoURL": "https://charts.example", "version": "1.17.0", "releaseName": "cni", "namespace": "kube-system",
        },
    }))
    .unwrap()
}

fn cluster(name: &str, replicas: u32) -> Selected {
    Selected::with_values(name, &format!(r#"{{"replicas": {replicas}, "password": "s3cret"}}"#))
}

fn map(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// The object of a release that is installed as requested.
fn installed(proxy: &HelmChartProxy, cluster: &Selected) -> HelmReleaseProxy {
    let outcome = decide::fan_out(proxy, &Chart::InRepository, std::slice::from_ref(cluster), &[]);
    let Some(decide::Step::Create(object)) = outcome.steps.into_iter().next() else {
        panic!("it is created")
    };
    let mut object = *object;
    let annotations = [(names::RELEASE_ID, "own"), (names::RELEASE_INSTALLED, "true")];
    let all = object.metadata.annotations.get_or_insert_default();
    all.extend(annotations.map(|(key, value)| (key.to_owned(), value.to_owned())));
    let ready = json!({"type": "Ready", "status": "True", "reason": "a", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    object.status = serde_json::from_value(json!({"conditions": [ready]})).unwrap();
    object
}

fn desired<'a>(
    object: &'a HelmReleaseProxy,
    values: &'a Map<String, Value>,
    fresh: &'a Fresh,
) -> Desired<'a> {
    Desired {
        spec: &object.spec,
        request: "",
        values,
        newest: None,
        archive: None,
        id: object
            .metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(names::RELEASE_ID))
            .map(String::as_str),
        is_installed: object.is_installed(),
        created_at: None,
        app_version: None,
        is_orphaned: false,
        is_paused: false,
        cluster_deletion: ClusterDeletion::NotRequested,
        deleted_at: object.metadata.deletion_timestamp.as_ref().map(capasg_api::time::from_kubernetes),
        claimed_by: None,
        uninstalled_first: &[],
        remaining: &[],
        drift: None,
        operation_limit: TimeDelta::minutes(30),
        fresh,
    }
}

/// As the controller observes and decides, with the release of the known object.
fn described(planned: &Planned, is_reachable: bool) -> ClusterPreview {
    let fresh = Fresh { id: "fresh".to_owned(), name: "cilium-0a1b2c3d".to_owned() };
    let known = planned.known.as_ref().map(|known| map(&known.spec.values)).unwrap_or_default();
    let found = planned.known.as_ref().map(|object| {
        let chart = ChartMetadata {
            name: "cilium".to_owned(),
            version: "1.17.0".to_owned(),
            ..ChartMetadata::default()
        };
        let release = Release { revision: 1, state: ReleaseState::Deployed, chart, values: known.clone() };
        Found { release, labels: labels(&desired(object, &known, &fresh), 1), created_at: now() }
    });
    let mut object = match &planned.step {
        Some(decide::Step::Create(object) | decide::Step::Update(object)) => (**object).clone(),
        Some(decide::Step::Delete { .. }) => planned.known.clone().unwrap(),
        None => return describe(planned, None),
    };
    if matches!(planned.step, Some(decide::Step::Delete { .. })) {
        object.metadata.deletion_timestamp = Some(capasg_api::time::to_kubernetes(now()));
    }
    let after = map(&planned.successor.as_ref().map_or(&object.spec, |successor| &successor.spec).values);
    let state =
        if is_reachable { Cluster::Reachable(found.clone()) } else { Cluster::Unreachable { since: now() } };
    let decision = decide_operation(&desired(&object, &after, &fresh), &state, &Memory::default(), now());
    let found = found.as_ref().filter(|_| is_reachable);
    let outcome =
        Outcome { object: &object, decision: &decision, found, before: &known, after: &after, newest: None };
    describe(planned, Some(&outcome))
}

fn text(proxy: &HelmChartProxy, selected: &[Selected], known: &[HelmReleaseProxy]) -> String {
    let plan = plan(proxy, &Chart::InRepository, selected, known);
    let clusters = plan.clusters.iter().map(|one| described(one, one.cluster != "far")).collect();
    Preview { proxy: "teams/cni".to_owned(), note: None, clusters }.to_string()
}

#[test]
fn the_text_has_what_changes_on_each_cluster_and_no_values() {
    let before = proxy();
    let all = ["far", "old", "prod", "same", "stage", "zone"];
    let known: Vec<_> = all.iter().map(|name| installed(&before, &cluster(name, 1))).collect();
    let mut after = before.clone();
    after.spec.version = "1.18.0".to_owned();
    after.spec.options = Some(serde_json::from_value(json!({"wait": true})).unwrap());
    after.metadata.annotations = Some([(names::MAX_CHANGING.to_owned(), "3".to_owned())].into());
    let failed = Selected { values: Values::Failed("line 3: no such field".to_owned()), ..cluster("bad", 1) };
    let paused = Selected { is_paused: true, ..cluster("same", 1) };
    let waits = Selected { waits_for: vec!["ccm".to_owned()], ..cluster("stage", 1) };
    let selected =
        [failed, cluster("far", 1), cluster("new", 1), cluster("prod", 3), paused, waits, cluster("zone", 1)];
    let printed = text(&after, &selected, &known);
    assert!(!printed.contains("s3cret"), "{printed}");
    insta::assert_snapshot!(printed);
}

#[test]
fn the_text_has_what_happens_in_the_phases_of_a_cluster() {
    let mut proxy = proxy();
    let phases = "before-control-plane-upgrade,before-cluster-delete".to_owned();
    proxy.metadata.annotations = Some([(names::PHASES.to_owned(), phases)].into());
    let at = |actual: &str| {
        let kubernetes =
            Kubernetes { actual: Some(actual.to_owned()), requested: Some("v1.36.3".to_owned()) };
        Selected { kubernetes, ..cluster("prod", 1) }
    };
    let known = [installed(&proxy, &at("v1.35.1"))];
    let printed = |selected: Selected| text(&proxy, &[selected], &known);
    let line = |action: &str| format!("HelmChartProxy teams/cni\n  prod  {action:9}  kube-system/cni\n");
    assert_eq!(printed(at("v1.35.1")), line("unchanged"));
    assert_eq!(printed(at("v1.36.3")), line("update"), "the version that the spec is for is written");
    let deleting = Selected { is_deleting: true, ..at("v1.36.3") };
    let uninstalls = printed(deleting.clone());
    assert!(uninstalls.starts_with(&line("uninstall")), "{uninstalls}");
    let protected = printed(Selected { is_protected: true, ..deleting });
    assert!(protected.contains("the Cluster is being deleted"), "{protected}");
}

#[test]
fn a_release_that_is_another_one_is_installed_again() {
    let before = proxy();
    let known = [installed(&before, &cluster("prod", 1))];
    let mut after = before.clone();
    after.spec.repo_url = "https://other.example".to_owned();
    insta::assert_snapshot!(text(&after, &[cluster("prod", 2)], &known));
    assert_eq!(
        text(&before, &[cluster("prod", 1)], &known),
        "HelmChartProxy teams/cni\n  prod  unchanged  kube-system/cni\n"
    );
    assert_eq!(text(&before, &[], &[]), "HelmChartProxy teams/cni\n  no Cluster is selected\n");
}
