//! Resources of a release that another actor changes, with the real Helm.

mod support;

use capasg_addons::controller::Next;
use chrono::TimeDelta;
use serde_json::{Value, json};
use support::{
    Outcome,
    lab::{Lab, OBJECT},
};

/// A release that is installed and compared, with the name of its `ConfigMap`.
async fn installed(mode: &str) -> Outcome<(Lab, String)> {
    let lab = Lab::new().await?;
    lab.change(|object| {
        object["metadata"]["annotations"]["asg.addons.cluster.x-k8s.io/drift"] = json!(mode);
        object["spec"]["values"] = json!("password: s3cret");
    });
    assert!(matches!(lab.settle().await?, Next::At(_)));
    let name = lab.object()["spec"]["releaseName"].as_str().unwrap_or_default().to_owned();
    assert_eq!(lab.condition("Drifted"), drifted("False", "NoDrift", ""));
    Ok((lab, name))
}

fn drifted(status: &str, reason: &str, message: &str) -> (String, String, String) {
    (status.to_owned(), reason.to_owned(), message.to_owned())
}

fn map(name: &str) -> String {
    format!("/api/v1/namespaces/kube-system/configmaps/{name}")
}

fn events(lab: &Lab, reason: &str) -> Vec<Value> {
    let all = lab.management.paths("/apis/events.k8s.io/v1/namespaces/teams/events/");
    let all = all.iter().filter_map(|path| lab.management.get(path));
    all.filter(|event| event["reason"] == reason).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_by_another_actor_is_reported_without_values() -> Outcome {
    let (mut lab, name) = installed("Report").await?;
    lab.workload.change(&map(&name), |map| map["data"]["password"] = json!("0ther"));
    lab.settle().await?;
    assert_eq!(lab.condition("Drifted").1, "NoDrift", "resources are compared at intervals");
    lab.ahead = TimeDelta::minutes(13);
    let version = lab.workload.version();
    lab.settle().await?;
    let message = format!("resources differ from the release: ConfigMap {name} (data.password)");
    assert_eq!(lab.condition("Drifted"), drifted("True", "ResourcesChanged", &message));
    assert_eq!((lab.condition("Ready").0.as_str(), lab.workload.version()), ("True", version));
    lab.ahead = TimeDelta::minutes(26);
    lab.settle().await?;
    assert_eq!(events(&lab, "HelmReleaseDrifted").len(), 1, "once for each difference");

    lab.management.change(OBJECT, |object| {
        object["metadata"]["annotations"]["asg.addons.cluster.x-k8s.io/drift-ignored"] =
            json!("ConfigMap:data");
    });
    lab.ahead = TimeDelta::minutes(39);
    lab.settle().await?;
    assert_eq!(lab.condition("Drifted").1, "NoDrift");
    lab.management.change(OBJECT, |object| {
        if let Some(all) = object["metadata"]["annotations"].as_object_mut() {
            all.remove("asg.addons.cluster.x-k8s.io/drift");
        }
    });
    assert_eq!(lab.settle().await?, Next::Later);
    assert_eq!(lab.condition("Drifted"), drifted("", "", ""));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_by_another_actor_is_corrected_on_request() -> Outcome {
    let (mut lab, name) = installed("Correct").await?;
    lab.workload.change(&map(&name), |map| map["data"]["password"] = json!("0ther"));
    lab.ahead = TimeDelta::minutes(13);
    lab.settle().await?;
    let data = |lab: &Lab| lab.workload.get(&map(&name)).unwrap_or_default()["data"]["password"].clone();
    assert_eq!((data(&lab), lab.object()["status"]["revision"].clone()), (json!("s3cret"), json!(2)));
    assert_eq!(lab.condition("Drifted").1, "NoDrift", "it is compared again at once");
    let notes: Vec<String> =
        events(&lab, "HelmReleaseUpgraded").iter().map(|event| event["note"].to_string()).collect();
    assert!(notes[0].contains("another actor had changed its resources"), "{notes:?}");

    // Another actor that changes it again and again has a correction at intervals.
    for (minutes, revision) in [(14, 2), (26, 3), (39, 3), (52, 4)] {
        lab.workload.change(&map(&name), |map| map["data"]["password"] = json!("0ther"));
        lab.ahead = TimeDelta::minutes(minutes);
        lab.settle().await?;
        assert_eq!(lab.object()["status"]["revision"], revision, "after {minutes} minutes");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_resource_is_drift_and_an_unknown_setting_is_reported() -> Outcome {
    let (mut lab, name) = installed("Report").await?;
    lab.workload.remove(&map(&name));
    lab.ahead = TimeDelta::minutes(13);
    lab.settle().await?;
    let message = format!("resources differ from the release: ConfigMap {name} does not exist");
    assert_eq!(lab.condition("Drifted").2, message);
    lab.change(|object| {
        object["metadata"]["annotations"]["asg.addons.cluster.x-k8s.io/drift"] = json!("yes");
    });
    lab.settle().await?;
    assert_eq!(lab.condition("Drifted").1, "AnnotationNotValid");
    Ok(())
}
