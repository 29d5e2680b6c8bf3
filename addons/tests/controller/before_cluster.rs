//! A release that is uninstalled before its Cluster is deleted.

use serde_json::Value;

use super::*;

const CHART: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name";
const SERVICE: &str = "/api/v1/namespaces/web/services/nginx";

/// A release of the `HelmChartProxy` cni.
async fn installed() -> Outcome<Lab> {
    let lab = Lab::new().await?;
    lab.change(|object| object["metadata"]["labels"][CHART] = json!("cni"));
    lab.settle().await?;
    Ok(lab)
}

fn proxy(lab: &Lab, name: &str, annotations: &Value) {
    let path = OBJECT.replace("helmreleaseproxies/cni", "helmchartproxies");
    lab.management.put(
        &format!("{path}/{name}"),
        json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
            "metadata": {"name": name, "namespace": "teams", "annotations": annotations},
            "spec": {"clusterSelector": {}, "chartName": "demo", "repoURL": "https://charts.example"},
        }),
    );
}

/// A Service with a load balancer.
fn service(annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "nginx", "namespace": "web", "annotations": annotations},
        "spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"hostname": "a"}]}},
    })
}

/// The Cluster is being deleted, and so is the object.
fn delete(lab: &Lab) {
    lab.management.change(CLUSTER, |cluster| cluster["metadata"]["deletionTimestamp"] = json!(Utc::now()));
    lab.change(|object| object["metadata"]["deletionTimestamp"] = json!(Utc::now()));
}

/// Otherwise the other release, which waits until this object is deleted, would be waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_balancers_of_a_release_that_is_uninstalled_next_are_not_waited_for() -> Outcome {
    const OTHER: &str =
        "/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/teams/helmreleaseproxies/ingress-prod";
    let lab = installed().await?;
    let phase = json!("before-cluster-delete");
    proxy(&lab, "ingress", &json!({"asg.addons.cluster.x-k8s.io/phases": phase}));
    let depends_on = "asg.addons.cluster.x-k8s.io/depends-on";
    proxy(&lab, "cni", &json!({"asg.addons.cluster.x-k8s.io/phases": phase, depends_on: "ingress"}));
    let mut other = lab.object();
    other["metadata"]["name"] = json!("ingress-prod");
    other["metadata"]["labels"][CHART] = json!("ingress");
    other["spec"]["releaseName"] = json!("nginx");
    other["spec"]["namespace"] = json!("web");
    lab.management.put(OTHER, other);
    let release = json!({"meta.helm.sh/release-name": "nginx", "meta.helm.sh/release-namespace": "web"});
    lab.workload.put(SERVICE, service(&release));
    delete(&lab);
    assert!(matches!(lab.settle().await?, Next::At(_)), "the other release stays, as far as is known");
    lab.management.change(OTHER, |other| other["metadata"]["deletionTimestamp"] = json!(Utc::now()));
    assert_eq!(lab.settle().await?, Next::Never, "{}", lab.object());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_a_cluster_is_deleted_its_load_balancers_are_waited_for() -> Outcome {
    let mut lab = installed().await?;
    let annotations = json!({
        "asg.addons.cluster.x-k8s.io/phases": "before-cluster-delete",
        "asg.addons.cluster.x-k8s.io/wait-for-volumes": "true",
    });
    proxy(&lab, "cni", &annotations);
    lab.workload.put(SERVICE, service(&json!({})));
    lab.workload.put(
        "/api/v1/persistentvolumes/pv-1",
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-1"},
            "spec": {
                "persistentVolumeReclaimPolicy": "Delete", "claimRef": {"namespace": "web", "name": "data"},
            },
        }),
    );
    delete(&lab);
    assert!(matches!(lab.settle().await?, Next::At(_)));
    assert_eq!(lab.releases().len(), 0, "it is uninstalled");
    let (status, reason, message) = lab.condition("HelmReleaseReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "CloudResourcesRemain"));
    assert!(message.ends_with(": PersistentVolumeClaim web/data, Service web/nginx"), "{message}");

    lab.workload.change(SERVICE, |service| service["spec"]["type"] = json!("ClusterIP"));
    lab.settle().await?;
    assert!(lab.condition("HelmReleaseReady").2.ends_with(": PersistentVolumeClaim web/data"));
    lab.ahead = TimeDelta::hours(1);
    assert_eq!(lab.settle().await?, Next::Never, "within a limit");
    let events = lab.management.paths("/apis/events.k8s.io/v1/namespaces/teams/events/");
    let events: Vec<Value> = events.iter().filter_map(|path| lab.management.get(path)).collect();
    let left = events.iter().find(|event| event["reason"] == "HelmReleaseLeft").cloned().unwrap_or_default();
    assert!(left["note"].as_str().is_some_and(|note| note.contains("web/data")), "{events:?}");
    Ok(())
}
