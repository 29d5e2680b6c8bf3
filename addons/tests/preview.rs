//! What a `HelmChartProxy` would change, with the real Helm.

mod support;

use capasg_addons::{HelmChartProxy, controller::preview};
use chrono::Utc;
use serde_json::{Value, json};
use support::{
    Outcome,
    lab::{CLUSTER, Lab},
};

/// The `HelmChartProxy` of the object of a [`Lab`].
fn chart_proxy(lab: &Lab) -> Value {
    let spec = lab.object()["spec"].clone();
    json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
        "metadata": {"name": "cni", "namespace": "teams"},
        "spec": {
            "clusterSelector": {"matchLabels": {"cni": "demo"}}, "chartName": "demo", "repoURL": spec["repoURL"],
            "namespace": "kube-system", "version": "1.0.0", "valuesTemplate": "password: yes\n",
            "credentials": {"secret": {"name": "login"}}, "tlsConfig": spec["tlsConfig"], "options": spec["options"],
        },
    })
}

async fn text(lab: &Lab, proxy: &Value, with_manifests: bool) -> Outcome<String> {
    let proxy: HelmChartProxy = serde_json::from_value(proxy.clone())?;
    let versions = (lab.management.version(), lab.workload.version());
    let preview = preview(&lab.context, &proxy, with_manifests, Utc::now()).await?;
    assert_eq!((lab.management.version(), lab.workload.version()), versions, "nothing is written");
    let name = lab.object()["spec"]["releaseName"].as_str().unwrap_or_default().to_owned();
    let printed = preview.to_string();
    Ok(if name.is_empty() { printed } else { printed.replace(&name, "<name>") })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_has_what_would_change_and_changes_nothing() -> Outcome {
    const CHART: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name";
    let lab = Lab::new().await?;
    let mut proxy = chart_proxy(&lab);
    assert_eq!(text(&lab, &proxy, false).await?, "HelmChartProxy teams/cni\n  no Cluster is selected\n");
    lab.management.change(CLUSTER, |cluster| cluster["metadata"]["labels"] = json!({"cni": "demo"}));
    let new = text(&lab, &proxy, true).await?;
    assert!(
        new.starts_with(
            "HelmChartProxy teams/cni\n  prod  install\n      version: 1.0.0\n      values: + password\n"
        ),
        "{new}"
    );
    assert!(new.contains("      + ConfigMap demo-"), "{new}");

    lab.settle().await?;
    lab.change(|object| {
        object["metadata"]["labels"][CHART] = json!("cni");
        object["spec"]["tlsConfig"]["caSecret"]["namespace"] = json!("teams");
    });
    lab.settle().await?;
    let unchanged = "HelmChartProxy teams/cni\n  prod  unchanged  kube-system/<name>\n";
    assert_eq!(text(&lab, &proxy, true).await?, unchanged);

    proxy["spec"]["version"] = json!("1.1.0");
    proxy["spec"]["valuesTemplate"] = json!("password: s3cret\nuser: robot\n");
    let upgrade = "HelmChartProxy teams/cni\n  prod  upgrade    kube-system/<name>\n      version: 1.0.0 -> 1.1.0\n      \
                   values: ~ password, + user\n";
    assert_eq!(text(&lab, &proxy, false).await?, upgrade);
    let resources = "      ~ ConfigMap <name>\n          ~ data.password: \"true\" -> \"s3cret\"\n          \
                     ~ data.version: \"1.0.0\" -> \"1.1.0\"\n";
    assert_eq!(text(&lab, &proxy, true).await?, format!("{upgrade}{resources}"));

    proxy["spec"]["version"] = json!("9.9.9");
    let failed = text(&lab, &proxy, true).await?;
    assert!(
        failed.contains("resources are not compared: helm pull: the repository has no such chart"),
        "{failed}"
    );
    proxy["spec"]["clusterSelector"] = json!({"matchLabels": {"cni": "other"}});
    let removed = "HelmChartProxy teams/cni\n  prod  uninstall  kube-system/<name>\n";
    assert_eq!(text(&lab, &proxy, true).await?, removed);
    Ok(())
}
