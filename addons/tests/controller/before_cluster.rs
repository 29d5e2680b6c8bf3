//! A release that is uninstalled before its Cluster is deleted.

use serde_json::Value;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_a_cluster_is_deleted_its_load_balancers_are_waited_for() -> Outcome {
    const SERVICE: &str = "/api/v1/namespaces/web/services/nginx";
    let mut lab = Lab::new().await?;
    lab.change(|object| {
        object["metadata"]["labels"]["helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name"] =
            json!("cni");
    });
    lab.settle().await?;
    let annotations = json!({
        "asg.addons.cluster.x-k8s.io/phases": "before-cluster-delete",
        "asg.addons.cluster.x-k8s.io/wait-for-volumes": "true",
    });
    lab.management.put(
        &OBJECT.replace("helmreleaseproxies", "helmchartproxies"),
        json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
            "metadata": {"name": "cni", "namespace": "teams", "annotations": annotations},
            "spec": {"clusterSelector": {}, "chartName": "demo", "repoURL": "https://charts.example"},
        }),
    );
    lab.workload.put(
        SERVICE,
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "nginx", "namespace": "web"},
            "spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"hostname": "a"}]}},
        }),
    );
    lab.workload.put(
        "/api/v1/persistentvolumes/pv-1",
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-1"},
            "spec": {
                "persistentVolumeReclaimPolicy": "Delete", "claimRef": {"namespace": "web", "name": "data"},
            },
        }),
    );
    lab.management.change(CLUSTER, |cluster| {
        cluster["metadata"]["deletionTimestamp"] = json!(Utc::now());
    });
    lab.change(|object| object["metadata"]["deletionTimestamp"] = json!(Utc::now()));
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
