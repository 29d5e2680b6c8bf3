//! What a `HelmChartProxy` asks for, by cases and by properties.

mod phases;
mod values_from;

use capasg_api::{conditions::Status, names::labels};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{decide::ArchivedChart, names};

/// With a chart in the repository.
fn fan_out(proxy: &HelmChartProxy, selected: &[Selected], releases: &[HelmReleaseProxy]) -> FanOut {
    super::fan_out(proxy, &Chart::InRepository, selected, releases)
}

fn proxy() -> HelmChartProxy {
    serde_json::from_value(json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
        "metadata": {"name": "cni", "namespace": "teams", "uid": "1"},
        "spec": {
            "clusterSelector": {"matchLabels": {"cni": "cilium"}}, "chartName": "cilium",
            "repoURL": "https://charts.example", "version": "1.17.0",
            "credentials": {"secret": {"name": "login"}, "key": ""},
            "tlsConfig": {"caSecret": {"name": "ca"}},
        },
    }))
    .unwrap()
}

fn cluster(name: &str) -> Selected {
    Selected::with_values(name, "replicas: 1\n")
}

fn kubernetes(actual: &str, requested: &str) -> Kubernetes {
    Kubernetes { actual: Some(actual.to_owned()), requested: Some(requested.to_owned()) }
}

fn created(outcome: &FanOut) -> Vec<HelmReleaseProxy> {
    let created = outcome.steps.iter().filter_map(|step| match step {
        Step::Create(release) => Some((**release).clone()),
        _ => None,
    });
    created.collect()
}

/// The releases after a first reconcile.
fn existing(proxy: &HelmChartProxy, names: &[&str]) -> Vec<HelmReleaseProxy> {
    let selected: Vec<_> = names.iter().map(|name| cluster(name)).collect();
    created(&fan_out(proxy, &selected, &[]))
}

fn going(mut release: HelmReleaseProxy) -> HelmReleaseProxy {
    release.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    release
}

#[test]
fn each_selected_cluster_has_one_release() {
    let proxy = proxy();
    let outcome = fan_out(&proxy, &[cluster("b"), cluster("a")], &[]);
    let releases = created(&outcome);
    assert_eq!((outcome.steps.len(), releases.len()), (2, 2));
    assert_eq!(outcome.matching.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(outcome.condition.reason, "HelmReleaseProxySpecsUpdating");
    let release = &releases[1];
    assert_eq!(release.labels()[labels::CLUSTER_NAME], "a");
    assert_eq!(release.labels()[names::CHART_PROXY_LABEL], "cni");
    assert_eq!(release.owner_references()[0].controller, Some(true));
    assert_eq!(release.spec.release_namespace, "default");
    let credentials = release.spec.credentials.as_ref().unwrap();
    assert_eq!((credentials.secret.namespace.as_str(), credentials.key.as_str()), ("teams", "config.json"));
    let outcome = fan_out(&proxy, &[cluster("b"), cluster("a")], &releases);
    assert_eq!((outcome.steps, outcome.condition.status), (Vec::new(), Status::True));
}

#[test]
fn a_release_waits_for_the_releases_that_it_depends_on() {
    let proxy = proxy();
    let waits = |name: &str| Selected { waits_for: vec!["ccm".to_owned()], ..cluster(name) };
    let outcome = fan_out(&proxy, &[waits("a"), waits("b"), cluster("c")], &[]);
    let created = created(&outcome);
    assert_eq!((outcome.steps.len(), created[0].spec.cluster_ref.name.as_str()), (1, "c"));
    assert_eq!(outcome.condition.reason, "HelmReleaseProxySpecsUpdating");
    assert_eq!(
        outcome.condition.message,
        "Cluster a (and 1 more Clusters): the releases of HelmChartProxies that this one depends on are not ready: ccm"
    );
    // A release that is as requested is not affected; a change of it waits.
    let releases = existing(&proxy, &["a"]);
    let outcome = fan_out(&proxy, &[waits("a")], &releases);
    assert_eq!((outcome.steps.len(), outcome.condition.status), (0, Status::True));
    let mut changed = proxy.clone();
    changed.spec.version = "1.18.0".into();
    assert_eq!(fan_out(&changed, &[waits("a")], &releases).steps, []);
    changed.spec.chart_name = "calico".into();
    assert_eq!(fan_out(&changed, &[waits("a")], &releases).steps, [], "the old release stays until then");
    assert_eq!(fan_out(&changed, &[cluster("a")], &releases).steps.len(), 1);
    // A Cluster that is not selected any longer waits for nothing.
    assert_eq!(fan_out(&proxy, &[], &releases).steps.len(), 1);
}

#[test]
fn what_applies_in_place_is_updated_and_what_identifies_the_release_installs_another() {
    let before = proxy();
    let releases = existing(&before, &["a"]);
    let name = releases[0].name_any();
    let in_place: [fn(&mut HelmChartProxy); 4] = [
        |proxy| proxy.spec.version = "1.18.0".into(),
        |proxy| proxy.spec.options = Some(serde_json::from_value(json!({"wait": true})).unwrap()),
        |proxy| proxy.spec.credentials = None,
        |proxy| proxy.spec.tls_config = None,
    ];
    for change in in_place {
        let mut proxy = before.clone();
        change(&mut proxy);
        let outcome = fan_out(&proxy, &[cluster("a")], &releases);
        assert!(matches!(&outcome.steps[..], [Step::Update(of)] if of.name_any() == name), "{outcome:?}");
    }
    let another: [fn(&mut HelmChartProxy); 4] = [
        |proxy| proxy.spec.chart_name = "calico".into(),
        |proxy| proxy.spec.repo_url = "https://other.example".into(),
        |proxy| proxy.spec.release_name = "cni".into(),
        |proxy| proxy.spec.release_namespace = "kube-system".into(),
    ];
    for change in another {
        let mut proxy = before.clone();
        change(&mut proxy);
        let outcome = fan_out(&proxy, &[cluster("a")], &releases);
        assert_eq!(outcome.steps, [Step::Delete { name: name.clone(), why: Deletion::Reinstall }]);
        assert_eq!(outcome.condition.reason, "HelmReleaseProxyReinstalling");
        let outcome = fan_out(&proxy, &[cluster("a")], &[going(releases[0].clone())]);
        assert_eq!((outcome.steps.len(), outcome.condition.reason), (0, "HelmReleaseProxyReinstalling"));
        assert_eq!(created(&fan_out(&proxy, &[cluster("a")], &[])).len(), 1);
    }
}

#[test]
fn a_generated_release_name_is_kept_until_the_spec_names_one() {
    let mut proxy = proxy();
    let mut releases = existing(&proxy, &["a"]);
    releases[0].spec.release_name = "cilium-17".into();
    releases[0].annotations_mut().insert(names::RELEASE_NAME_GENERATED.into(), "true".into());
    assert_eq!(fan_out(&proxy, &[cluster("a")], &releases).steps, []);
    proxy.spec.release_name = "cilium".into();
    let outcome = fan_out(&proxy, &[cluster("a")], &releases);
    assert!(matches!(outcome.steps[..], [Step::Delete { why: Deletion::Reinstall, .. }]));
}

#[test]
fn a_release_that_is_installed_once_stays() {
    let mut proxy = proxy();
    proxy.spec.reconcile_strategy = crate::kinds::ReconcileStrategy::InstallOnce;
    let mut releases = existing(&proxy, &["a"]);
    proxy.spec.version = "1.18.0".into();
    let outcome = fan_out(&proxy, &[cluster("a")], &releases);
    assert!(matches!(outcome.steps[..], [Step::Update(_)]), "until it is installed, it is corrected");
    releases[0].annotations_mut().insert(names::RELEASE_INSTALLED.into(), "true".into());
    proxy.spec.chart_name = "calico".into();
    assert_eq!(fan_out(&proxy, &[cluster("a")], &releases).steps, []);
    assert_eq!(fan_out(&proxy, &[], &releases).steps, [], "no longer selected");
}

#[test]
fn a_cluster_that_is_not_selected_loses_its_release() {
    let proxy = proxy();
    let releases = existing(&proxy, &["a", "b"]);
    let outcome = fan_out(&proxy, &[cluster("a")], &releases);
    let name = releases[1].name_any();
    assert_eq!(outcome.steps, [Step::Delete { name, why: Deletion::NotSelected }]);
    let outcome = fan_out(&proxy, &[cluster("a")], &[releases[0].clone(), going(releases[1].clone())]);
    assert_eq!(outcome.steps, []);
}

#[test]
fn nothing_happens_to_a_cluster_that_is_paused_or_deleted() {
    let mut proxy = proxy();
    let releases = existing(&proxy, &["a"]);
    proxy.spec.version = "2".into();
    let paused = Selected { is_paused: true, ..cluster("a") };
    let deleted = Selected { is_deleting: true, ..cluster("a") };
    for cluster in [paused, deleted] {
        assert_eq!(fan_out(&proxy, std::slice::from_ref(&cluster), &releases).steps, []);
        assert_eq!(fan_out(&proxy, &[cluster], &[]).steps, []);
    }
}

#[test]
fn values_that_cannot_be_rendered_hold_up_their_cluster_only() {
    let failed = Selected { values: Values::Failed("line 3: no such field".into()), ..cluster("a") };
    let waiting = Selected { values: Values::NotYet, ..cluster("c") };
    let outcome = fan_out(&proxy(), &[failed, cluster("b"), waiting.clone()], &[]);
    assert_eq!(created(&outcome).len(), 1);
    assert_eq!(outcome.condition.reason, "ValueParsingFailed");
    let message = "Cluster a: valuesTemplate cannot be rendered: line 3: no such field";
    assert_eq!(outcome.condition.message, message);
    let outcome = fan_out(&proxy(), &[waiting], &[]);
    assert_eq!((outcome.steps.len(), outcome.condition.status), (0, Status::False));
    assert_eq!(
        outcome.condition.message,
        "objects of these Clusters, or versions in their status, do not exist yet: c"
    );
}

#[test]
fn of_two_objects_for_a_cluster_none_is_deleted() {
    let proxy = proxy();
    let mut older = existing(&proxy, &["a"]).remove(0);
    older.metadata.creation_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    let mut younger = older.clone();
    younger.metadata.name = Some("aaa".into());
    younger.metadata.creation_timestamp = Some(Time(Timestamp::from_second(60).unwrap()));
    let outcome = fan_out(&proxy, &[cluster("a")], &[younger, older]);
    assert_eq!((outcome.steps.len(), outcome.condition.reason), (0, "HelmReleaseProxyCreationFailed"));
    assert!(outcome.condition.message.contains("one can stay: cilium-a-"), "{}", outcome.condition.message);
}

#[test]
fn the_finalizer_waits_for_all_releases() {
    let mut proxy = proxy();
    let releases = existing(&proxy, &["a", "b"]);
    proxy.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    let outcome = fan_out(&proxy, &[cluster("a")], &releases);
    assert_eq!((outcome.steps.len(), outcome.is_released), (2, false));
    let releases: Vec<_> = releases.into_iter().map(going).collect();
    let outcome = fan_out(&proxy, &[cluster("a")], &releases);
    assert_eq!((outcome.steps.len(), outcome.is_released), (0, false));
    assert!(fan_out(&proxy, &[cluster("a")], &[]).is_released);
}

/// Carries out the steps: deleted objects are gone at once.
fn carry_out(releases: &mut Vec<HelmReleaseProxy>, steps: Vec<Step>) {
    for step in steps {
        match step {
            Step::Create(release) => {
                assert!(releases.iter().all(|known| known.name_any() != release.name_any()), "created twice");
                releases.push(*release);
            }
            Step::Update(changed) => {
                let found = releases.iter_mut().find(|release| release.name_any() == changed.name_any());
                *found.unwrap() = *changed;
            }
            Step::Delete { name, .. } => releases.retain(|release| release.name_any() != name),
        }
    }
}

proptest! {
    #[test]
    fn any_spec_is_reached_and_then_nothing_changes(
        before in proptest::sample::subsequence(vec!["a", "b", "c"], 0..=3),
        after in proptest::sample::subsequence(vec!["a", "b", "c"], 0..=3),
        chart in "[a-c]", version in "[1-3]", name in "[ab]?", namespace in "[ab]?",
    ) {
        let mut proxy = proxy();
        let mut releases = existing(&proxy, &before);
        proxy.spec.chart_name = chart;
        proxy.spec.version = version;
        proxy.spec.release_name = name;
        proxy.spec.release_namespace = namespace;
        let selected: Vec<_> = after.iter().map(|name| cluster(name)).collect();
        for _ in 0..2 {
            let steps = fan_out(&proxy, &selected, &releases).steps;
            carry_out(&mut releases, steps);
        }
        let outcome = fan_out(&proxy, &selected, &releases);
        prop_assert_eq!(outcome.steps, vec![]);
        prop_assert_eq!(outcome.condition.reason, "UpToDate");
        prop_assert_eq!(releases.len(), after.len());
        prop_assert!(releases.iter().all(|release| release.spec.version == proxy.spec.version));
    }
}

#[test]
fn the_version_of_the_chart_follows_the_control_plane() {
    let mut proxy = proxy();
    let entries =
        json!([{"kubernetes": "<1.36", "version": "1.17.0"}, {"kubernetes": "1.36", "version": "1.18.0"}]);
    proxy.annotations_mut().insert(names::VERSIONS.to_owned(), entries.to_string());
    let at = |version: &str| Selected { kubernetes: kubernetes(version, version), ..cluster("a") };
    let releases = created(&fan_out(&proxy, &[at("v1.35.2")], &[]));
    assert_eq!(releases[0].spec.version, "1.17.0");
    assert!(fan_out(&proxy, &[at("v1.35.9")], &releases).steps.is_empty());
    let outcome = fan_out(&proxy, &[at("v1.36.0")], &releases);
    let [Step::Update(changed)] = &outcome.steps[..] else { panic!("{:?}", outcome.steps) };
    assert_eq!(changed.spec.version, "1.18.0");
    // The release stays as it is while there is no version for it.
    let outcome = fan_out(&proxy, &[at("v1.37.0")], &releases);
    assert_eq!((outcome.steps.len(), outcome.condition.reason), (0, "VersionNotAvailable"));
    let outcome = fan_out(&proxy, &[cluster("a")], &releases);
    assert_eq!((outcome.steps.len(), outcome.condition.status), (0, Status::False));
}

#[test]
fn a_change_reaches_few_clusters_at_a_time_and_stops_where_it_fails() {
    let mut proxy = proxy();
    proxy.annotations_mut().insert(names::MAX_CHANGING.to_owned(), "50%".to_owned());
    let clusters: Vec<Selected> = ["a", "b", "c", "d", "e"].map(cluster).into();
    let mut releases = existing(&proxy, &["a", "b", "c", "d", "e"]);
    assert_eq!(releases.len(), 5, "what does not exist is created everywhere");
    let status = |release: &mut HelmReleaseProxy, ready: &str, available: &str| {
        let condition = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": "NotAvailable", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let conditions = [condition("Ready", ready), condition("ClusterAvailable", available)];
        release.status = serde_json::from_value(json!({"conditions": conditions})).unwrap();
    };
    for release in &mut releases {
        status(release, "True", "True");
    }
    // A new Cluster is not ready, and nobody waits for it.
    status(&mut releases[4], "False", "False");
    proxy.spec.version = "1.18.0".into();
    let updates = |releases: &mut Vec<HelmReleaseProxy>, proxy: &HelmChartProxy| {
        let outcome = fan_out(proxy, &clusters, releases);
        let mut updated = Vec::new();
        for step in outcome.steps {
            let Step::Update(changed) = step else { panic!("{step:?}") };
            let release = releases.iter_mut().find(|one| one.name_any() == changed.name_any()).unwrap();
            release.spec = changed.spec;
            status(release, "False", "True");
            updated.push(release.spec.cluster_ref.name.clone());
        }
        (updated, outcome.condition.message)
    };
    let (first, message) = updates(&mut releases, &proxy);
    assert_eq!(first, ["a", "b"]);
    assert_eq!(message, "the release changes on 2 Clusters at the same time, now a, b, and then c, d, e");
    assert_eq!(updates(&mut releases, &proxy).0, Vec::<String>::new());
    status(&mut releases[0], "True", "True");
    assert_eq!(updates(&mut releases, &proxy).0, ["c"]);
    // Those that fail are corrected before the others.
    proxy.spec.version = "1.18.1".into();
    assert_eq!(updates(&mut releases, &proxy).0, ["b", "c"]);
    for release in &mut releases {
        status(release, "True", "True");
    }
    assert_eq!(updates(&mut releases, &proxy).0, ["a", "d"]);

    // A Cluster that is being deleted takes no place.
    let mut others = clusters.clone();
    (others[0].is_deleting, others[3].is_paused) = (true, true);
    let outcome = fan_out(&proxy, &others, &releases);
    assert_eq!(outcome.steps.len(), 1, "{:?}", outcome.steps);

    // Nor is anything uninstalled beside a release that is installed again.
    let mut another = proxy.clone();
    another.spec.chart_name = "calico".into();
    another.annotations_mut().insert(names::MAX_CHANGING.to_owned(), "1".to_owned());
    for release in &mut releases {
        status(release, "True", "True");
    }
    let gone = releases.remove(0);
    let outcome = fan_out(&another, &clusters, &releases);
    assert_eq!((outcome.steps.len(), created(&outcome).len()), (1, 1), "{:?}", outcome.steps);
    releases.insert(0, gone);
    let mut fails = clusters.clone();
    fails[0].values = Values::Failed("no such field".into());
    let deleted = |outcome: &FanOut| outcome.steps.iter().any(|step| matches!(step, Step::Delete { .. }));
    assert!(deleted(&fan_out(&another, &clusters[..1], &releases[..1])));
    assert!(!deleted(&fan_out(&another, &fails[..1], &releases[..1])), "it could not be installed again");

    proxy.annotations_mut().insert(names::MAX_CHANGING.to_owned(), "few".to_owned());
    let outcome = fan_out(&proxy, &clusters, &releases);
    assert_eq!((outcome.steps.len(), outcome.condition.reason), (0, "AnnotationNotValid"));
}

#[test]
fn the_content_of_an_archive_is_a_part_of_the_spec() {
    let mut proxy = proxy();
    proxy.spec.version.clear();
    proxy.annotations_mut().insert(names::CHART_ARCHIVE.to_owned(), "configmap/cilium".to_owned());
    let archived = |digest: &str| {
        Chart::Archived(ArchivedChart { version: "1.17.0".to_owned(), digest: digest.to_owned() })
    };
    let of = |proxy: &HelmChartProxy, chart: &Chart, releases: &[HelmReleaseProxy]| {
        super::fan_out(proxy, chart, &[cluster("a")], releases)
    };
    let releases = created(&of(&proxy, &archived("0a"), &[]));
    assert_eq!(releases[0].spec.version, "1.17.0+archive.0a");
    assert_eq!(releases[0].annotations()[names::CHART_ARCHIVE], "configmap/cilium");
    assert_eq!(of(&proxy, &archived("0a"), &releases).steps, []);
    let outcome = of(&proxy, &archived("1b"), &releases);
    let [Step::Update(changed)] = &outcome.steps[..] else { panic!("{:?}", outcome.steps) };
    assert_eq!(changed.spec.version, "1.17.0+archive.1b");

    let missing = Chart::NotAvailable("ConfigMap cilium does not exist".to_owned());
    let outcome = of(&proxy, &missing, &releases);
    assert_eq!((outcome.steps.len(), outcome.condition.reason), (0, "GetChartArchiveFailed"));
    assert_eq!(outcome.condition.message, "Cluster a: ConfigMap cilium does not exist");
    let outcome = super::fan_out(&proxy, &missing, &[], &releases);
    assert_eq!(outcome.steps.len(), 1, "a Cluster that is not selected any longer does not require it");

    proxy.annotations_mut().clear();
    let outcome = of(&proxy, &Chart::InRepository, &releases);
    let [Step::Update(changed)] = &outcome.steps[..] else { panic!("{:?}", outcome.steps) };
    assert_eq!((changed.spec.version.as_str(), changed.annotations().len()), ("", 0));
}
