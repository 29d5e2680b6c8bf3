//! Reconciles of a `HelmReleaseProxy` with the real Helm, until nothing is left to do: what is written to the object, and
//! what its conditions say.

#[path = "controller/before_cluster.rs"]
mod before_cluster;
mod support;

use std::sync::Arc;

use capasg_addons::controller::{Next, ReconcileError};
use capasg_cloud::WriteGuard;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use support::{
    Outcome,
    lab::{CLUSTER, Lab, OBJECT, SECRETS, secret},
};

fn is(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

/// Status and reason.
fn brief((status, reason, _): (String, String, String)) -> (String, String) {
    (status, reason)
}

// Rules: X4, X5, X9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_follows_its_object() -> Outcome {
    let lab = Lab::new().await?;
    assert_eq!(lab.settle().await?, Next::Later);
    let object = lab.object();
    let name = object["spec"]["releaseName"].as_str().unwrap_or_default().to_owned();
    assert!(name.starts_with("demo-"), "{object}");
    let annotations = &object["metadata"]["annotations"];
    assert_eq!(annotations["helmreleaseproxy.addons.cluster.x-k8s.io/is-release-name-generated"], "true");
    assert_eq!(
        annotations["helmreleaseproxy.addons.cluster.x-k8s.io/release-successfully-installed"],
        "true"
    );
    assert_eq!((&object["status"]["status"], &object["status"]["revision"]), (&json!("deployed"), &json!(1)));
    for type_ in ["Ready", "HelmReleaseReady", "ClusterAvailable"] {
        assert_eq!(lab.condition(type_).0, "True", "{object}");
    }
    let map =
        lab.workload.get(&format!("/api/v1/namespaces/kube-system/configmaps/{name}")).unwrap_or_default();
    assert_eq!(map["data"]["password"], "true", "YAML 1.1, as Helm reads it");

    let version = lab.management.version();
    assert_eq!(lab.settle().await?, Next::Later);
    assert_eq!(lab.management.version(), version, "nothing changed, so nothing is written");

    lab.change(|object| object["spec"]["version"] = json!("1.1.0"));
    lab.settle().await?;
    assert_eq!(lab.object()["status"]["revision"], 2);

    lab.change(|object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    assert_eq!(lab.settle().await?, Next::Never);
    assert_eq!((lab.releases().len(), lab.management.get(OBJECT)), (0, None));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_is_uninstalled_after_those_that_depend_on_it() -> Outcome {
    const CHART: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name";
    const OTHER: &str = "/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/teams/helmreleaseproxies/csi-prod";
    let lab = Lab::new().await?;
    lab.change(|object| object["metadata"]["labels"][CHART] = json!("cni"));
    lab.settle().await?;
    let proxies = OBJECT.replace("helmreleaseproxies/cni", "helmchartproxies");
    for (name, depends_on) in [("cni", ""), ("csi", "cni")] {
        let annotations = json!({"asg.addons.cluster.x-k8s.io/depends-on": depends_on});
        let proxy = json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
            "metadata": {"name": name, "namespace": "teams", "annotations": annotations},
            "spec": {"clusterSelector": {}, "chartName": "demo", "repoURL": "https://charts.example"},
        });
        lab.management.put(&format!("{proxies}/{name}"), proxy);
    }
    let mut other = lab.object();
    other["metadata"]["name"] = json!("csi-prod");
    other["metadata"]["labels"][CHART] = json!("csi");
    other["spec"]["releaseName"] = json!("csi");
    other["metadata"]["deletionTimestamp"] = json!(Utc::now());
    lab.management.put(OTHER, other);

    lab.change(|object| object["metadata"]["deletionTimestamp"] = json!(Utc::now()));
    assert!(matches!(lab.settle().await?, Next::At(_)));
    let (status, reason, message) = lab.condition("HelmReleaseReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "HelmReleasePending"));
    assert!(message.ends_with(": csi-prod"), "{message}");
    assert_eq!(lab.releases().len(), 1);
    lab.management.change(OTHER, |other| other["metadata"]["labels"][CHART] = json!("none"));
    assert_eq!(lab.settle().await?, Next::Never);
    assert_eq!(lab.releases().len(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orphaned_release_stays_unless_its_cluster_is_selected() -> Outcome {
    const CHART: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name";
    let lab = Lab::new().await?;
    lab.change(|object| object["metadata"]["labels"][CHART] = json!("cni"));
    lab.settle().await?;
    let installed = lab.object();
    let proxy = |labels: Value| {
        let annotations = json!({"asg.addons.cluster.x-k8s.io/deletion-policy": "Orphan"});
        json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
            "metadata": {"name": "cni", "namespace": "teams", "annotations": annotations},
            "spec": {"clusterSelector": labels, "chartName": "demo", "repoURL": "https://charts.example"},
        })
    };
    let path = OBJECT.replace("helmreleaseproxies", "helmchartproxies");
    for (selector, left) in [(json!({"matchLabels": {"cni": "none"}}), 1), (json!({}), 0)] {
        lab.management.put(&path, proxy(selector));
        lab.management.put(OBJECT, installed.clone());
        lab.change(|object| object["metadata"]["deletionTimestamp"] = json!(Utc::now()));
        assert_eq!(lab.settle().await?, Next::Never);
        assert_eq!((lab.releases().len(), lab.management.get(OBJECT)), (left, None));
    }
    Ok(())
}

// Rules: X8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_reported_and_waited_for() -> Outcome {
    let lab = Lab::new().await?;
    let initialized = lab.management.get(CLUSTER).unwrap_or_default();
    let kubeconfig = format!("{SECRETS}/prod-kubeconfig");
    let access = lab.management.get(&kubeconfig).unwrap_or_default();
    lab.management.change(CLUSTER, |cluster| cluster["status"] = json!({}));
    assert_eq!(lab.settle().await?, Next::Later);
    assert_eq!(brief(lab.condition("ClusterAvailable")), is("False", "NotAvailable"));
    lab.management.put(CLUSTER, initialized);

    let exec = "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: a, user: {exec: {command: id}}}]\n";
    lab.management.put(&kubeconfig, secret("prod-kubeconfig", &[("value", exec)]));
    lab.settle().await?;
    let (status, reason, message) = lab.condition("ClusterAvailable");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "GetKubeconfigFailed"));
    assert!(message.contains("must not contain exec: it runs a program"), "{message}");
    lab.management.put(&kubeconfig, access);

    let login = format!("{SECRETS}/login");
    lab.management.put(&login, secret("login", &[("config.json", "{}")]));
    lab.settle().await?;
    assert_eq!(brief(lab.condition("ClusterAvailable")), is("False", "GetCredentialsFailed"));
    lab.management.put(&login, secret("login", &[("username", "robot"), ("password", "s3cret")]));

    lab.change(|object| object["spec"]["values"] = json!("- s3cret"));
    lab.settle().await?;
    let (_, reason, message) = lab.condition("HelmReleaseReady");
    assert_eq!(reason, "HelmInstallOrUpgradeFailed");
    assert!(message.starts_with("spec.values is not YAML") && !message.contains("s3cret"), "{message}");
    assert_eq!(lab.releases().len(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_is_reported_and_tried_again_later() -> Outcome {
    let mut lab = Lab::new().await?;
    lab.change(|object| object["spec"]["version"] = json!("9.9.9"));
    let next = lab.settle().await?;
    let Next::At(until) = next else { return Err(format!("{next:?}").into()) };
    let (status, reason, message) = lab.condition("Ready");
    assert_eq!(status, "False", "{reason}");
    assert!(
        message.contains("ChartNotFound: helm pull: the repository has no such chart or version"),
        "{message}"
    );
    lab.ahead = TimeDelta::seconds(5);
    assert_eq!(lab.step().await?, Next::At(until), "no call before");
    lab.change(|object| object["spec"]["version"] = json!("1.0.0"));
    assert_eq!(lab.settle().await?, Next::Later, "a change is tried at once");
    assert_eq!(lab.condition("Ready").0, "True");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_without_a_version_follows_the_newest_one() -> Outcome {
    let mut lab = Lab::new().await?;
    lab.change(|object| object["spec"]["version"] = json!(""));
    lab.settle().await?;
    let name = lab.object()["spec"]["releaseName"].as_str().unwrap_or_default().to_owned();
    let map = format!("/api/v1/namespaces/kube-system/configmaps/{name}");
    let version = |lab: &Lab| lab.workload.get(&map).unwrap_or_default()["data"]["version"].clone();
    assert_eq!(version(&lab), "1.1.0");
    lab.repository.add("1.2.0").await?;
    lab.settle().await?;
    assert_eq!(version(&lab), "1.1.0", "the repository is read at intervals");
    lab.ahead = TimeDelta::minutes(11);
    lab.settle().await?;
    assert_eq!((version(&lab), lab.object()["status"]["revision"].clone()), (json!("1.2.0"), json!(2)));
    Ok(())
}

// Rules: X8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_changes_nothing() -> Outcome {
    let lab = Lab::new().await?;
    lab.management.change(CLUSTER, |cluster| cluster["spec"]["paused"] = json!(true));
    let version = lab.management.version();
    assert_eq!(lab.settle().await?, Next::Later);
    lab.management.change(CLUSTER, |cluster| cluster["spec"]["paused"] = json!(false));
    lab.change(|object| object["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""}));
    assert_eq!(lab.settle().await?, Next::Later);
    assert_eq!(lab.management.version(), version + 2, "the changes of the test alone");
    Ok(())
}

/// What was observed belongs to the object as it was read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_during_a_reconcile_is_neither_reported_as_ready_nor_skipped() -> Outcome {
    let lab = Lab::new().await?;
    let changes: [fn(&mut Value); 2] = [
        |object| object["spec"]["values"] = json!("password: other\n"),
        |object| object["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = json!("true"),
    ];
    for change in changes {
        lab.management.change_before_status(OBJECT, move |object| {
            change(object);
            object["metadata"]["generation"] = json!(2);
        });
        assert_eq!(lab.step().await?, Next::Now);
        let written = lab.object();
        assert_eq!(lab.releases().len(), 0, "nothing was installed with what was observed before");
        assert!(written["metadata"]["annotations"]["asg.addons.cluster.x-k8s.io/release-id"].is_null());
        lab.management.change(OBJECT, |object| object["status"] = json!({}));
    }
    assert_eq!(lab.settle().await?, Next::Later, "it is paused now");
    assert_eq!(lab.releases().len(), 0);
    Ok(())
}

// Rules: X5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_cluster_does_not_keep_an_object_for_ever() -> Outcome {
    let mut lab = Lab::new().await?;
    lab.settle().await?;
    let kubeconfig = "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: a, user: {token: a}}]\n";
    let path = format!("{SECRETS}/prod-kubeconfig");
    lab.management.put(&path, secret("prod-kubeconfig", &[("value", kubeconfig)]));
    let Next::At(again) = lab.settle().await? else { return Err("no event announces its end".into()) };
    assert!(again > Utc::now() + TimeDelta::seconds(50) && again < Utc::now() + TimeDelta::seconds(70));
    assert_eq!(brief(lab.condition("ClusterAvailable")), is("False", "ClusterUnreachable"));
    lab.change(|object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    assert!(matches!(lab.settle().await?, Next::At(until) if until > Utc::now() + TimeDelta::minutes(50)));
    assert_eq!(brief(lab.condition("HelmReleaseReady")), is("False", "HelmReleaseDeletionFailed"));
    lab.ahead = TimeDelta::hours(1);
    assert_eq!(lab.settle().await?, Next::Never);
    assert_eq!((lab.management.get(OBJECT), lab.releases().len()), (None, 1));
    Ok(())
}

/// A replica that has lost its Lease.
struct NotLeading;

impl WriteGuard for NotLeading {
    fn deadline(&self) -> Option<DateTime<Utc>> {
        None
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_operation_begins_without_the_lease() -> Outcome {
    let lab = Lab::with(|parts| parts.guard = Arc::new(NotLeading)).await?;
    let Err(error) = lab.settle().await else { return Err("it was installed".into()) };
    let error = error.downcast_ref::<ReconcileError>().map(ReconcileError::reason);
    assert_eq!((error, lab.releases()), (Some("NotLeading"), Vec::new()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_of_other_namespaces_require_the_operator() -> Outcome {
    let other = |lab: &Lab| {
        let path = "/api/v1/namespaces/other/secrets/login";
        lab.management.put(path, secret("login", &[("username", "robot"), ("password", "s3cret")]));
        lab.change(|object| object["spec"]["credentials"]["secret"]["namespace"] = json!("other"));
    };
    let lab = Lab::new().await?;
    other(&lab);
    lab.settle().await?;
    let (_, reason, message) = lab.condition("ClusterAvailable");
    assert_eq!(reason, "GetCredentialsFailed");
    assert!(message.contains("other namespaces require a flag of the manager"), "{message}");
    assert_eq!(lab.releases().len(), 0);

    let lab = Lab::with(|parts| parts.policy.foreign_secrets = true).await?;
    other(&lab);
    lab.settle().await?;
    assert_eq!(brief(lab.condition("Ready")).0, "True");
    assert_eq!(lab.releases().len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_is_an_event_and_a_repeated_failure_is_one_too() -> Outcome {
    let mut lab = Lab::new().await?;
    lab.change(|object| object["spec"]["version"] = json!("9.9.9"));
    lab.settle().await?;
    lab.ahead = TimeDelta::hours(1);
    assert_eq!(lab.step().await?, Next::Now, "it is tried again");
    lab.ahead = TimeDelta::zero();
    lab.change(|object| object["spec"]["version"] = json!("1.0.0"));
    lab.settle().await?;
    let events = lab.management.paths("/apis/events.k8s.io/v1/namespaces/teams/events/");
    let events = events.iter().filter_map(|path| lab.management.get(path));
    let mut events: Vec<String> = events.map(|event| event["reason"].to_string()).collect();
    events.sort();
    assert_eq!(events, [r#""HelmInstallFailed""#, r#""HelmReleaseInstalled""#]);
    Ok(())
}
