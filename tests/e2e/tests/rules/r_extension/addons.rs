//! Add-ons that list phases: steps of the control plane and the deletion of the Cluster wait for their releases. The test
//! reports in place of the add-on provider, which requires an API server that Helm can use.

use anyhow::{Result, ensure};
use capasg_e2e::{CLUSTER, Rig, Setup, eventually, rule, text};
use capasg_environment::{Look, dynamic};
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    BETWEEN, FIRST, control_plane, control_plane_goes_to, published, says, undelayed::without_workers,
};

const GROUP: &str = "addons.cluster.x-k8s.io";
const RELEASE: &str = "demo-prod";

fn releases(rig: &Rig<'_>) -> Api<DynamicObject> {
    dynamic(&rig.scenario.client, &rig.scenario.namespace, GROUP, "v1alpha1", "HelmReleaseProxy")
}

// Rules: R11, R16
#[tokio::test]
async fn steps_and_the_deletion_wait_for_add_ons() -> Result<()> {
    Box::pin(rule("r-addons", Setup::bare(), async |rig| {
        let extension = rig.extension(1, &[]).await?;
        rig.topology_of("development-topology", FIRST, 0, |objects| without_workers(objects)).await?;
        install(rig).await?;

        // Neither an approval nor a window is required.
        let version = json!({"spec": {"topology": {"version": BETWEEN}}});
        rig.clusters().patch(CLUSTER, &PatchParams::default(), &Patch::Merge(version)).await?;
        says(rig, &format!("HelmChartProxies whose releases are not ready for {BETWEEN}: demo")).await?;
        eventually("the step is requested", async || {
            let status = releases(rig).get(RELEASE).await?.data["status"].clone();
            Ok(Look::when(status["nextKubernetesVersion"] == BETWEEN, status.to_string()))
        })
        .await?;
        ensure!(text(&control_plane(rig).await?, "/spec/version") == FIRST, "it did not hold");
        let is_for =
            json!({"metadata": {"annotations": {format!("asg.{GROUP}/kubernetes-version"): BETWEEN}}});
        releases(rig).patch(RELEASE, &PatchParams::default(), &Patch::Merge(is_for)).await?;
        control_plane_goes_to(rig, BETWEEN).await?;
        published(&extension, "HookUnblocked: Before").await?;

        rig.scenario.kubectl(&["delete", "cluster", CLUSTER, "--wait=false"]).await?;
        let blocked =
            "HookBlocked: BeforeClusterDelete: HelmChartProxies whose releases are not uninstalled: demo";
        published(&extension, blocked).await?;
        ensure!(rig.clusters().get_opt(CLUSTER).await?.is_some(), "it did not hold");
        rig.scenario.kubectl(&["delete", "helmreleaseproxy", RELEASE]).await?;
        eventually("the Cluster is gone", async || {
            let left = rig.clusters().get_opt(CLUSTER).await?;
            Ok(Look::when(left.is_none(), "it is there"))
        })
        .await?;
        extension.remove().await
    }))
    .await
}

/// A chart that lists the phases, and its release, which is ready for the first version.
async fn install(rig: &Rig<'_>) -> Result<()> {
    let namespace = rig.scenario.namespace.as_str();
    let phases = "before-control-plane-upgrade,after-control-plane-upgrade,before-cluster-delete";
    let source = json!({"chartName": "demo", "repoURL": "https://charts.example", "namespace": "default"});
    let with = |mut spec: Value, field: &str, value: Value| {
        spec[field] = value;
        spec
    };
    let objects = [
        json!({
            "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "HelmChartProxy",
            "metadata": {
                "name": "demo", "namespace": namespace,
                "annotations": {format!("asg.{GROUP}/phases"): phases},
            },
            "spec": with(source.clone(), "clusterSelector", json!({"matchLabels": {"demo": "enabled"}})),
        }),
        json!({
            "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "HelmReleaseProxy",
            "metadata": {
                "name": RELEASE, "namespace": namespace,
                "labels": {
                    "cluster.x-k8s.io/cluster-name": CLUSTER,
                    format!("helmreleaseproxy.{GROUP}/helmchartproxy-name"): "demo",
                },
                "annotations": {format!("asg.{GROUP}/kubernetes-version"): FIRST},
            },
            "spec": with(source, "clusterRef", json!({"name": CLUSTER, "namespace": namespace})),
        }),
    ];
    for object in objects {
        rig.scenario.apply(&object.to_string()).await?;
    }
    let ready = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let conditions = [ready("Ready"), ready("HelmReleaseReady")];
    let status = json!({"status": {"observedGeneration": 1, "conditions": conditions}});
    releases(rig).patch_status(RELEASE, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}
