//! Clusters that the extension does not delay: without a pool of ours, and in a namespace that is not selected.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{CLUSTER, Extension, Rig, Setup, eventually, rule};
use capasg_environment::Look;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{BETWEEN, FIRST, closed, control_plane_goes_to, say};

/// The settings would block the upgrade of every Cluster with a pool.
// Rules: R16
#[tokio::test]
async fn clusters_without_pools_or_in_other_namespaces_are_not_delayed() -> Result<()> {
    Box::pin(rule("r-undelayed", Setup::bare(), async |rig| {
        let windows = closed();
        let windows = windows.as_str().context("no text")?;
        let extension =
            rig.extension(1, &[("requireApproval", "true"), ("maintenanceWindows", windows)]).await?;
        let last = rig.scenario.environment.tools().kubernetes_version().to_owned();
        rig.topology_of("development-topology", FIRST, 0, |objects| without_workers(objects)).await?;

        let asked = upgrade(rig, BETWEEN).await?;
        let calls = extension.calls().await?;
        let blocked = calls.keys().find(|(_, outcome)| outcome == "Blocked");
        ensure!(blocked.is_none() && has_upgraded(&extension).await?, "{calls:?}");

        extension.select(false).await?;
        let left_out = upgrade(rig, &last).await?;
        ensure!(extension.calls().await? == calls, "it was called: {:?}", extension.calls().await?);
        let events = extension.events().await?;
        ensure!(!events.iter().any(|event| event.contains("Blocked")), "{events:?}");
        say(&format!("upgrade without pools: {asked:?}; in a namespace that is not selected: {left_out:?}"))?;
        rig.scenario.kubectl(&["delete", "cluster", CLUSTER]).await?;
        extension.remove().await
    }))
    .await
}

pub(super) fn without_workers(objects: &mut [Value]) -> Result<()> {
    let cluster = objects.iter_mut().find(|object| object["kind"] == "Cluster").context("no Cluster")?;
    cluster["spec"]["topology"].as_object_mut().context("no topology")?.remove("workers");
    Ok(())
}

/// How long the control plane takes to get the version.
async fn upgrade(rig: &Rig<'_>, version: &str) -> Result<Duration> {
    let patch = Patch::Merge(json!({"spec": {"topology": {"version": version}}}));
    // Core rejects it until it has called the hooks after the upgrade before.
    let begin = eventually(&format!("{version} is taken"), async || {
        let begin = Instant::now();
        rig.clusters().patch(CLUSTER, &PatchParams::default(), &patch).await?;
        Ok(Look::Done(begin))
    })
    .await?;
    control_plane_goes_to(rig, version).await?;
    Ok(begin.elapsed())
}

/// Whether core asked before the upgrade.
async fn has_upgraded(extension: &Extension<'_>) -> Result<bool> {
    Ok(extension.calls().await?.keys().any(|(hook, _)| hook == "BeforeClusterUpgrade"))
}
