//! X: the Helm add-on provider, from its shipped Deployment and with its shipped rights, with the real Helm on real API
//! servers.

mod bad_input;
mod compared;
mod hand_over;
mod kills;
mod other;

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{Addons, CLUSTER, Charts, Rig, Setup, condition_of, eventually, rule, text};
use capasg_environment::Look;
use kube::{
    ResourceExt as _,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

const PROXY: &str = "demo";

/// What the chart was installed or upgraded with, as its `ConfigMap` shows.
struct Installed {
    chart: String,
    values: Value,
}

async fn installed(rig: &Rig<'_>, release: &DynamicObject) -> Result<Installed> {
    let (name, namespace) = (text(release, "/spec/releaseName"), text(release, "/spec/namespace"));
    let get = ["get", "configmap", name, "--namespace", namespace, "--output=json"];
    let map: Value = serde_json::from_str(&rig.cluster()?.kubectl().run(get).await?)?;
    let member = |name: &str| map["data"][name].as_str().map(str::to_owned).context("no such member");
    Ok(Installed { chart: member("chart")?, values: serde_json::from_str(&member("values")?)? })
}

/// Whether a release has this revision and is ready.
fn is_at(release: &DynamicObject, revision: i64) -> bool {
    release.data["status"]["revision"] == revision
        && release.data["status"]["status"] == "deployed"
        && condition_of(release, "Ready")["status"] == "True"
}

async fn change_proxy(addons: &Addons, patch: &Value) -> Result<DynamicObject> {
    let proxies = addons.api("HelmChartProxy");
    Ok(proxies.patch(PROXY, &PatchParams::default(), &Patch::Merge(patch)).await?)
}

async fn change_cluster(rig: &Rig<'_>, patch: &Value) -> Result<()> {
    rig.clusters().patch(CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Waits until the `HelmChartProxy` has observed its spec, and says this of its releases.
async fn observed(addons: &Addons, generation: Option<i64>, clusters: usize) -> Result<()> {
    eventually("the HelmChartProxy is observed", async || {
        let proxy = addons.api("HelmChartProxy").get(PROXY).await?;
        let status = &proxy.data["status"];
        let is = status["observedGeneration"].as_i64() == generation
            && status["matchingClusters"].as_array().map_or(0, Vec::len) == clusters;
        Ok(Look::when(is, status.to_string()))
    })
    .await
}

// Rules: X1, X2, X3, X4, X5, X8, X9, X10
#[tokio::test]
async fn charts_follow_their_proxy_and_clusters_through_a_move() -> Result<()> {
    Box::pin(rule("x-addons", Setup::default().without_manager(), async |rig| {
        let charts = Charts::serve(rig, &["1.0.0", "1.1.0"]).await?;
        let addons = Addons::start_elected(rig, rig.scenario.environment.management()).await?;
        let release = follow(rig, &charts, &addons).await?;
        moved(rig, &charts, addons, &release).await
    }))
    .await
}

/// A release is installed on the Cluster that the labels select, and upgraded; not in a pause.
async fn follow(rig: &Rig<'_>, charts: &Charts, addons: &Addons) -> Result<DynamicObject> {
    let namespace = rig.scenario.namespace.as_str();
    let template = "cluster: {{ .Cluster.metadata.name }}\nversion: {{ .ControlPlane.spec.version }}\n\
                    password: {{ randAlphaNum 20 }}\n";
    let proxy = json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
        "metadata": {"name": PROXY, "namespace": namespace},
        "spec": {
            "clusterSelector": {"matchLabels": {"demo": "enabled"}}, "chartName": "demo",
            "repoURL": charts.repository.url,
            "namespace": namespace, "version": "1.0.0", "valuesTemplate": template,
        },
    });
    rig.scenario.apply(&proxy.to_string()).await?;
    observed(addons, Some(1), 0).await?;
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/addons/addons-aws.yaml");
    let examples = examples.display().to_string();
    let created = rig.scenario.kubectl(&["create", "--dry-run=server", "--filename", &examples]).await?;
    ensure!(created.lines().count() == 3, "{created}");
    ensure!(
        addons.api("HelmReleaseProxy").list(&ListParams::default()).await?.items.is_empty(),
        "none is selected"
    );

    change_cluster(rig, &json!({"metadata": {"labels": {"demo": "enabled"}}})).await?;
    let release = addons.release("the release is installed", |release| is_at(release, 1)).await?;
    let first = installed(rig, &release).await?;
    ensure!(first.chart == "1.0.0" && first.values["cluster"] == CLUSTER, "{}", first.values);
    ensure!(first.values["version"].as_str().is_some_and(|version| version.starts_with("v1.")));
    let password = first.values["password"].as_str().context("no password")?.to_owned();
    ensure!(password.len() == 20);
    let listed = charts.helm(namespace, &["list", "--all"]).await?;
    ensure!(
        listed.len() == 1
            && listed[0]["name"] == text(&release, "/spec/releaseName")
            && listed[0]["chart"] == "demo-1.0.0",
        "{listed:?}"
    );

    // X8: a pause of the Cluster holds the change back, although the HelmChartProxy is observed.
    change_cluster(rig, &json!({"spec": {"paused": true}})).await?;
    let values = format!("{template}replicas: 3\n");
    let spec = json!({"spec": {"version": "1.1.0", "valuesTemplate": values, "options": {"timeout": "3m"}}});
    let changed = change_proxy(addons, &spec).await?;
    observed(addons, changed.metadata.generation, 1).await?;
    let held = addons.release("the release is held", |_| true).await?;
    ensure!(is_at(&held, 1) && text(&held, "/spec/version") == "1.0.0", "{}", held.data);
    change_cluster(rig, &json!({"spec": {"paused": false}})).await?;
    let release = addons.release("the release is upgraded", |release| is_at(release, 2)).await?;
    let second = installed(rig, &release).await?;
    ensure!(second.chart == "1.1.0" && second.values["replicas"] == 3, "{}", second.values);
    ensure!(second.values["password"] == password.as_str(), "random values stay");

    // X9: a change of options alone reaches the release.
    change_proxy(addons, &json!({"spec": {"options": {"timeout": "4m", "disableHooks": true}}})).await?;
    let release = addons.release("the options have changed", |release| is_at(release, 3)).await?;
    for reason in ["HelmReleaseInstalled", "HelmReleaseUpgraded"] {
        let field = format!("--field-selector=reason={reason}");
        let events = rig.scenario.kubectl(&["get", "events.events.k8s.io", &field, "--output=name"]).await?;
        ensure!(!events.is_empty(), "no event {reason}");
    }
    let log = addons.log()?;
    ensure!(!log.contains(&password), "values are in the log");
    ensure!(!log.contains("orbidden"), "a permission is missing: {log}");
    eventually("the metrics", async || {
        let metrics = addons.metrics().await?;
        let of_release = format!(
            "capasg_helm_release_state{{namespace=\"{namespace}\",cluster=\"{CLUSTER}\",helmchartproxy=\"{PROXY}\",\
             helmreleaseproxy=\"{}\",state=\"deployed\"}} 1",
            release.name_any(),
        );
        let missing = [
            "capasg_helm_operations_total{operation=\"install\",outcome=\"ok\"} 1",
            "capasg_helm_operations_total{operation=\"upgrade\",outcome=\"ok\"} 2",
            "capasg_helm_releases{state=\"deployed\",ready=\"true\"} 1",
            of_release.as_str(),
            "capasg_leader 1",
        ];
        let missing = missing.iter().find(|line| !metrics.lines().any(|written| written == **line));
        Ok(Look::when(missing.is_none(), format!("{missing:?} is not in\n{metrics}")))
    })
    .await?;
    Ok(release)
}

/// A move changes nothing of the release; afterwards it follows its objects there, and is uninstalled with them.
async fn moved(rig: &Rig<'_>, charts: &Charts, addons: Addons, release: &DynamicObject) -> Result<()> {
    let namespace = rig.scenario.namespace.as_str();
    let target = rig.target().await?;
    let there = Addons::start_elected(rig, target.management).await?;
    target.move_here().await?;
    let moved = there.release("the release is known there", |release| is_at(release, 3)).await?;
    for annotation in ["release-id", "is-release-name-generated", "release-successfully-installed"] {
        let value = |object: &DynamicObject| {
            let all = object.annotations().iter();
            all.filter(|(name, _)| name.ends_with(annotation)).map(|(_, value)| value.clone()).next()
        };
        ensure!(value(&moved).is_some() && value(&moved) == value(release), "{annotation}");
    }
    ensure!(moved.data["spec"] == release.data["spec"], "{}", moved.data["spec"]);
    let before = installed(rig, &moved).await?;
    change_proxy(&there, &json!({"spec": {"version": "1.0.0"}})).await?;
    let release = there.release("the release follows there", |release| is_at(release, 4)).await?;
    let after = installed(rig, &release).await?;
    ensure!(after.chart == "1.0.0" && after.values == before.values, "{} {}", after.chart, after.values);
    addons.stop().await?;

    target.kubectl(&["delete", "helmchartproxy", PROXY, "--wait=false"]).await?;
    eventually("the release is uninstalled", async || {
        let releases = charts.helm(namespace, &["list", "--all"]).await?;
        let proxy = there.api("HelmChartProxy").get_opt(PROXY).await?;
        let left = there.api("HelmReleaseProxy").list(&ListParams::default()).await?.items;
        let is_gone = releases.is_empty() && proxy.is_none() && left.is_empty();
        Ok(Look::when(is_gone, format!("{releases:?} {proxy:?} {left:?}")))
    })
    .await?;
    let log = there.log()?;
    ensure!(!log.contains("orbidden"), "a permission is missing: {log}");
    there.stop().await?;
    target.stop().await
}
