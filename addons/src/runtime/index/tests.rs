//! Which objects the events of each kind wake.

use serde_json::{Value, json};

use super::*;

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn chart(name: &str, labels: &Value) -> DynamicObject {
    object(json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
        "metadata": {"name": name, "namespace": "teams", "generation": 1},
        "spec": {"clusterSelector": {"matchLabels": labels}, "chartName": "demo", "repoURL": "https://charts.example"},
    }))
}

fn release(name: &str, cluster: &str, release_name: &str) -> DynamicObject {
    object(json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmReleaseProxy",
        "metadata": {
            "name": name, "namespace": "teams", "generation": 1,
            "labels": {"helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name": "cni"},
        },
        "spec": {
            "clusterRef": {"name": cluster}, "chartName": "demo", "repoURL": "https://charts.example",
            "namespace": "kube-system", "releaseName": release_name,
        },
    }))
}

fn cluster(name: &str, version: &str) -> DynamicObject {
    object(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": name, "namespace": "teams", "resourceVersion": version, "labels": {"cni": "demo"}},
        "spec": {"controlPlaneRef": {"apiGroup": "controlplane.example", "kind": "Plane", "name": name}},
        "status": {"initialization": {"controlPlaneInitialized": true}},
    }))
}

fn plane() -> Referenced {
    Referenced::Kind(Kind { group: "controlplane.example".to_owned(), kind: "Plane".to_owned() })
}

fn metadata<K>(name: &str, version: &str) -> PartialObjectMeta<K> {
    let value = json!({"metadata": {"name": name, "namespace": "teams", "resourceVersion": version}});
    serde_json::from_value(value).unwrap()
}

/// An index with two charts, of which `cni` selects both Clusters, and one release on each Cluster.
fn index() -> Index {
    let mut index = Index::default();
    index.take(Seen::Chart(Event::Apply(chart("cni", &json!({"cni": "demo"})))));
    index.take(Seen::Chart(Event::Apply(chart("other", &json!({"other": "yes"})))));
    for name in ["dev", "prod"] {
        index.take(Seen::Cluster(Event::Apply(cluster(name, "1"))));
        index.take(Seen::Release(Event::Apply(release(&format!("cni-{name}"), name, "cni"))));
    }
    index
}

/// The names of what is woken, sorted, each with its kind.
fn woken(wakes: Vec<Wake>) -> Vec<String> {
    let name = |(item, _): Wake| format!("{} {}", item.controller(), item.key().name);
    let mut names: Vec<String> = wakes.into_iter().map(name).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn a_cluster_wakes_the_charts_that_select_it_and_its_releases_if_their_state_changes() {
    let mut index = index();
    let changed = index.take(Seen::Cluster(Event::Apply(cluster("prod", "2"))));
    assert!(changed.iter().all(|(_, after)| *after == SETTLE));
    assert_eq!(woken(changed), ["helmchartproxy cni"]);
    let mut paused = cluster("prod", "3");
    paused.data["spec"]["paused"] = json!(true);
    let both = ["helmchartproxy cni", "helmreleaseproxy cni-prod"];
    assert_eq!(woken(index.take(Seen::Cluster(Event::Apply(paused)))), both);
    let mut other = cluster("dev", "4");
    other.metadata.labels = Some([("other".to_owned(), "yes".to_owned())].into());
    let charts = ["helmchartproxy cni", "helmchartproxy other"];
    assert_eq!(woken(index.take(Seen::Cluster(Event::Apply(other)))), charts, "before and after");
    assert_eq!(woken(index.take(Seen::Cluster(Event::Delete(cluster("prod", "5"))))), both);
}

#[test]
fn an_object_that_a_cluster_refers_to_wakes_the_charts_that_select_the_cluster() {
    let mut index = index();
    assert_eq!(index.references(), [plane()].into());
    let mut take = |name: &str, version: &str| {
        woken(index.take(Seen::Referenced(plane(), Event::Apply(metadata(name, version)))))
    };
    assert_eq!(take("prod", "1"), ["helmchartproxy cni"]);
    assert_eq!(take("prod", "1"), [""; 0], "nothing has changed");
    assert_eq!(take("other", "1"), [""; 0]);
    let mut without = cluster("dev", "2");
    without.data["spec"] = json!({});
    index.take(Seen::Cluster(Event::Apply(without)));
    index.take(Seen::Cluster(Event::Delete(cluster("prod", "2"))));
    assert_eq!(index.references(), BTreeSet::new());
    index.retain(&BTreeSet::new());
    assert!(index.referenced.is_empty());
}

#[test]
fn a_kubeconfig_wakes_the_releases_of_its_cluster() {
    let mut index = index();
    let mut take =
        |name: &str, version: &str| woken(index.take(Seen::Secret(Event::Apply(metadata(name, version)))));
    assert_eq!(take("prod-kubeconfig", "1"), ["helmreleaseproxy cni-prod"]);
    assert_eq!(take("prod-kubeconfig", "1"), [""; 0]);
    assert_eq!(take("prod-ca", "1"), [""; 0]);
}

#[test]
fn a_release_wakes_its_chart_and_those_with_the_same_release() {
    let mut index = index();
    let younger = index.take(Seen::Release(Event::Apply(release("younger", "prod", "cni"))));
    let all = ["helmchartproxy cni", "helmreleaseproxy cni-prod", "helmreleaseproxy younger"];
    assert_eq!(woken(younger), all);
    let mut reported = release("cni-prod", "prod", "cni");
    reported.data["status"] = json!({"observedGeneration": 1, "conditions": [{
        "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]});
    let chart_alone = ["helmchartproxy cni"];
    assert_eq!(woken(index.take(Seen::Release(Event::Apply(reported.clone())))), chart_alone, "a status");
    reported.data["status"]["nextKubernetesVersion"] = json!("v1.36.3");
    assert_eq!(woken(index.take(Seen::Release(Event::Apply(reported.clone())))), chart_alone, "a request");
    let other = release("third", "prod", "other");
    assert_eq!(
        woken(index.take(Seen::Release(Event::Apply(other)))),
        ["helmchartproxy cni", "helmreleaseproxy third"]
    );
    assert_eq!(woken(index.take(Seen::Release(Event::Delete(reported)))), all, "the younger one has it now");
    assert_eq!(index.cluster_of(&ObjectKey::new("teams", "younger")), Some(ObjectKey::new("teams", "prod")));
}

#[test]
fn a_release_wakes_the_charts_that_depend_on_its_chart() {
    let mut index = index();
    let mut dependent = chart("csi", &json!({"cni": "demo"}));
    dependent.annotations_mut().insert(crate::names::DEPENDS_ON.to_owned(), "cni, ccm".to_owned());
    assert_eq!(woken(index.take(Seen::Chart(Event::Apply(dependent.clone())))), ["helmchartproxy csi"]);
    let mut ready = release("cni-prod", "prod", "cni");
    ready.data["status"] = json!({"observedGeneration": 1, "conditions": [{
        "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]});
    let both = ["helmchartproxy cni", "helmchartproxy csi"];
    assert_eq!(woken(index.take(Seen::Release(Event::Apply(ready)))), both);
    // The annotation is no part of the generation.
    dependent.annotations_mut().clear();
    assert_eq!(woken(index.take(Seen::Chart(Event::Apply(dependent)))), ["helmchartproxy csi"]);
}

#[test]
fn a_release_of_the_first_phase_wakes_the_charts_of_its_cluster() {
    let mut index = index();
    let mut first = chart("cni", &json!({"cni": "demo"}));
    let phase = "after-control-plane-initialized".to_owned();
    first.annotations_mut().insert(crate::names::PHASES.to_owned(), phase);
    assert_eq!(woken(index.take(Seen::Chart(Event::Apply(first)))), ["helmchartproxy cni"]);
    index.take(Seen::Chart(Event::Apply(chart("csi", &json!({"cni": "demo"})))));
    let mut reported = release("cni-prod", "prod", "cni");
    reported.data["status"] = json!({"observedGeneration": 1, "conditions": [{
        "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]});
    let both = ["helmchartproxy cni", "helmchartproxy csi"];
    assert_eq!(woken(index.take(Seen::Release(Event::Apply(reported)))), both);
}

#[test]
fn an_archive_wakes_the_charts_that_are_in_it() {
    let mut index = index();
    let mut archived = chart("csi", &json!({"cni": "demo"}));
    archived.annotations_mut().insert(crate::names::CHART_ARCHIVE.to_owned(), "configmap/csi".to_owned());
    assert_eq!(woken(index.take(Seen::Chart(Event::Apply(archived.clone())))), ["helmchartproxy csi"]);
    let Some(reference) = crate::decide::archive_reference(archived.annotations()).and_then(Result::ok)
    else {
        panic!("the annotation is valid")
    };
    let of = |namespace: &str| Referenced::Object {
        namespace: namespace.to_owned(),
        reference: reference.clone(),
    };
    assert_eq!(index.references(), [plane(), of("teams")].into());
    let mut take = |namespace: &str, version: &str| {
        woken(index.take(Seen::Referenced(of(namespace), Event::Apply(metadata("csi", version)))))
    };
    assert_eq!(take("teams", "1"), ["helmchartproxy csi"]);
    assert_eq!(take("teams", "1"), [""; 0]);
    assert_eq!(take("teams", "2"), ["helmchartproxy csi"]);
    assert_eq!(take("other", "1"), [""; 0]);
    archived.annotations_mut().clear();
    assert_eq!(woken(index.take(Seen::Chart(Event::Apply(archived)))), ["helmchartproxy csi"]);
    assert_eq!(index.references(), [plane()].into());
}

#[test]
fn an_object_with_values_wakes_the_releases_that_refer_to_it() {
    let mut index = index();
    let mut with_values = release("cni-prod", "prod", "cni");
    let annotation = r#"[{"kind": "Secret", "name": "db"}, {"kind": "Secret", "name": "db", "key": "b"}]"#;
    with_values.annotations_mut().insert(crate::names::VALUES_FROM.to_owned(), annotation.to_owned());
    let own = ["helmchartproxy cni", "helmreleaseproxy cni-prod"];
    assert_eq!(woken(index.take(Seen::Release(Event::Apply(with_values.clone())))), own, "the annotation");
    let Ok(sources) = crate::decide::values_from(with_values.annotations()) else {
        panic!("the annotation is valid")
    };
    let of = |namespace: &str| Referenced::Object {
        namespace: namespace.to_owned(),
        reference: sources[0].object.clone(),
    };
    assert_eq!(index.changed_references(), Some([plane(), of("teams")].into()));
    let mut reported = with_values.clone();
    reported.data["status"] = json!({"nextKubernetesVersion": "v1.36.3"});
    index.take(Seen::Release(Event::Apply(reported)));
    assert_eq!(index.changed_references(), None, "a status");
    let mut take = |namespace: &str, version: &str| {
        woken(index.take(Seen::Referenced(of(namespace), Event::Apply(metadata("db", version)))))
    };
    assert_eq!(take("teams", "1"), ["helmreleaseproxy cni-prod"]);
    assert_eq!(take("teams", "1"), [""; 0]);
    assert_eq!(take("other", "1"), [""; 0]);
    let deleted = index.take(Seen::Referenced(of("teams"), Event::Delete(metadata("db", "2"))));
    assert_eq!(woken(deleted), ["helmreleaseproxy cni-prod"]);
    with_values.annotations_mut().clear();
    assert_eq!(woken(index.take(Seen::Release(Event::Apply(with_values)))), own);
    assert_eq!(index.changed_references(), Some([plane()].into()));
}
