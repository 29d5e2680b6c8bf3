//! The flows: those of CAAPH's own end-to-end tests, and one for each reason of a condition.

use anyhow::Result;
use capasg_e2e::CLUSTER;
use serde_json::{Value, json};

use super::{
    record::{Flow, Sample},
    side::{Run, Side, View},
};

/// The Cluster that is created after the samples, one that is not initialized, and one without a kubeconfig.
pub const OTHERS: [&str; 3] = ["second", "later", "keyless"];
const BEFORE: &str = "prometheus:\n  scrapeAnnotations: false";
const AFTER: &str = "prometheus:\n  scrapeAnnotations: true";
const NAME: &str = "metallb-name";
/// What an account of the chart is named for this release.
const ACCOUNT: &str = "metallb-name-controller";

fn metallb(more: &Value) -> Value {
    let mut spec = json!({"releaseName": NAME, "version": "0.15.2", "valuesTemplate": BEFORE});
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    spec
}

/// Installs with this spec on the Cluster, and records it.
async fn installed(flow: &mut Run, spec: &Value) -> Result<()> {
    flow.create(&metallb(spec)).await?;
    flow.select(CLUSTER, true).await?;
    flow.step("install", |view| view.is_deployed(&[(CLUSTER, 1)])).await
}

async fn deleted(flow: &mut Run) -> Result<()> {
    flow.delete().await?;
    flow.step("delete the HelmChartProxy", |view| view.proxy.is_none() && view.releases.is_empty()).await
}

/// Installation, changes, reinstallations, and the end with the label.
pub async fn life(side: &Side) -> Result<Flow> {
    let mut flow = side.flow("life");
    installed(&mut flow, &json!({"reconcileStrategy": "Continuous"})).await?;
    flow.change(&json!({"valuesTemplate": AFTER})).await?;
    flow.step("change the values", |view| view.is_deployed(&[(CLUSTER, 2)])).await?;
    flow.change(&json!({"version": "0.15.3"})).await?;
    flow.step("change the version", |view| view.is_deployed(&[(CLUSTER, 3)])).await?;
    let space = flow.another_space("new");
    flow.change(&json!({"namespace": space})).await?;
    flow.step("change the namespace", |view| view.is_deployed(&[(CLUSTER, 1)])).await?;
    flow.change(&json!({"releaseName": "new-metallb-name"})).await?;
    let is = "new-metallb-name";
    flow.step("change the name", |view| {
        view.is_deployed(&[(CLUSTER, 1)]) && view.releases[0].data["spec"]["releaseName"] == is
    })
    .await?;
    flow.change(&json!({"chartName": "pgo", "version": "5.3.1"})).await?;
    flow.step("change the chart", |view| {
        view.is_deployed(&[(CLUSTER, 1)]) && view.releases[0].data["spec"]["chartName"] == "pgo"
    })
    .await?;
    flow.select(CLUSTER, false).await?;
    flow.step("remove the label", |view| view.releases.is_empty() && view.is_steady()).await?;
    Ok(flow.end())
}

/// An object that the chart creates exists already.
pub async fn ownership(side: &Side) -> Result<Flow> {
    let mut flow = side.flow("ownership");
    flow.in_workload("ServiceAccount", ACCOUNT).await?;
    flow.create(&metallb(&json!({"reconcileStrategy": "Continuous"}))).await?;
    flow.select(CLUSTER, true).await?;
    flow.step("without takeOwnership", |view| {
        view.release_says("HelmReleaseReady", "HelmInstallOrUpgradeFailed")
    })
    .await?;
    deleted(&mut flow).await?;
    installed(&mut flow, &json!({"options": {"takeOwnership": true}})).await?;
    flow.record_owner("install", "ServiceAccount", ACCOUNT).await?;
    Ok(flow.end())
}

/// A release that nothing changes after its installation.
pub async fn once(side: &Side) -> Result<Flow> {
    let mut flow = side.flow("once");
    installed(&mut flow, &json!({"reconcileStrategy": "InstallOnce"})).await?;
    flow.change(&json!({"valuesTemplate": AFTER})).await?;
    flow.step("change the values", View::is_steady).await?;
    flow.upgrade_by_hand(NAME, "metallb", "prometheus.metricsPort=7470").await?;
    flow.touch().await?;
    flow.step("upgrade by hand", View::is_steady).await?;
    flow.change(&json!({"clusterSelector": {"matchLabels": {"once": null, "unmatchCluster": "true"}}}))
        .await?;
    flow.step("select no Cluster", |view| {
        view.proxy.as_ref().is_some_and(|proxy| proxy.data["status"]["matchingClusters"] == json!([]))
    })
    .await?;
    deleted(&mut flow).await?;
    Ok(flow.end())
}

/// Two Clusters, of which one is selected after the other. Their releases are on one API server, so that their names are
/// generated.
pub async fn clusters(side: &Side) -> Result<Flow> {
    let mut flow = side.flow("clusters");
    installed(&mut flow, &json!({"releaseName": null})).await?;
    flow.select(OTHERS[0], true).await?;
    flow.step("label a second Cluster", |view| view.is_deployed(&[(CLUSTER, 1), (OTHERS[0], 1)])).await?;
    flow.select(CLUSTER, false).await?;
    flow.step("remove the label of the first one", |view| view.is_deployed(&[(OTHERS[0], 1)])).await?;
    Ok(flow.end())
}

/// The last operation was interrupted: it is repeated, or the release is uninstalled.
pub async fn interrupted(side: &Side, state: &str) -> Result<Flow> {
    let mut flow = side.flow(state);
    installed(&mut flow, &json!({"reconcileStrategy": "Continuous"})).await?;
    flow.interrupt(state).await?;
    if state == "uninstalling" {
        flow.select(CLUSTER, false).await?;
        flow.step("remove the label", |view| view.releases.is_empty() && view.is_steady()).await?;
    } else {
        flow.step("interrupt an operation", |view| view.is_deployed(&[(CLUSTER, 2)])).await?;
        deleted(&mut flow).await?;
    }
    Ok(flow.end())
}

/// All options, and changes of options alone.
pub async fn options(side: &Side) -> Result<Flow> {
    let mut flow = side.flow("options");
    let options = json!({
        "waitForJobs": true, "wait": true, "timeout": "5m", "install": {"createNamespace": true},
        "upgrade": {"maxHistory": 3, "cleanupOnFail": true}, "uninstall": {"description": "by a test"},
        "atomic": true, "skipCRDs": true, "options": true,
    });
    installed(&mut flow, &json!({"options": options})).await?;
    flow.change(&json!({"options": {"skipCRDs": null, "timeout": "4m"}})).await?;
    flow.step("change options alone", View::is_steady).await?;
    flow.change(&json!({"options": {"install": {"createNamespace": false}}})).await?;
    flow.step("do not create the namespace", View::is_steady).await?;
    deleted(&mut flow).await?;
    Ok(flow.end())
}

/// What fails before Helm is called, or in it: one reason of a condition.
async fn reason(side: &Side, name: &str, cluster: &str, spec: &Value, kind: &str) -> Result<Flow> {
    let mut flow = side.flow(name);
    flow.create(&metallb(spec)).await?;
    flow.select(cluster, true).await?;
    flow.step("select a Cluster", |view| {
        if kind == "HelmReleaseProxySpecsUpToDate" {
            return view.proxy_says(kind, "ValueParsingFailed");
        }
        let not_yet = ["PreparingToHelmInstall", "NotYetReported"];
        view.releases.iter().any(|release| {
            let found = capasg_e2e::condition_of(release, kind);
            found["status"] == "False" && not_yet.iter().all(|reason| found["reason"] != *reason)
        })
    })
    .await?;
    Ok(flow.end())
}

/// One flow for each reason.
pub async fn reasons(side: &Side) -> Result<Vec<Flow>> {
    let secret = json!({"secret": {"name": "does-not-exist"}, "key": ""});
    let all = [
        (
            "template",
            CLUSTER,
            json!({"valuesTemplate": "{{ index .Cluster.spec.a 0 }}"}),
            "HelmReleaseProxySpecsUpToDate",
        ),
        ("chart", CLUSTER, json!({"chartName": "does-not-exist"}), "HelmReleaseReady"),
        ("version", CLUSTER, json!({"version": "9.9.9"}), "HelmReleaseReady"),
        ("credentials", CLUSTER, json!({"credentials": secret}), "ClusterAvailable"),
        (
            "authority",
            CLUSTER,
            json!({"tlsConfig": {"caSecret": {"name": "does-not-exist"}}}),
            "ClusterAvailable",
        ),
        ("not-initialized", OTHERS[1], json!({}), "ClusterAvailable"),
        ("kubeconfig", OTHERS[2], json!({}), "ClusterAvailable"),
    ];
    let flows = all.iter().map(|(name, cluster, spec, kind)| reason(side, name, cluster, spec, kind));
    futures::future::try_join_all(flows).await
}

/// A sample: unchanged as far as the API server stores it, then with the local repository, until it is deleted.
pub async fn sample(side: &Side, sample: &Sample) -> Result<Flow> {
    let manifest = &sample.manifest;
    let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
    let space = manifest["spec"]["namespace"].as_str().unwrap_or("default");
    let mut flow = side.flow(&format!("sample {}", sample.file)).of(name, space);
    let stored = side.dry_run(manifest).await?;
    flow.record("apply unchanged", super::fields::stored(side, &stored));
    let mut spec = manifest["spec"].clone();
    spec["repoURL"] = json!(side.repository);
    // Null in one without it, which is not to have the namespace of the flow.
    spec["namespace"] = manifest["spec"]["namespace"].clone();
    flow.create(&spec).await?;
    flow.step("install from a local repository", |view| view.is_deployed(&[(CLUSTER, 1)])).await?;
    deleted(&mut flow).await?;
    Ok(flow.end())
}
