//! Hooks that wait for the nodes of the control plane. Core v1.14 compares their versions itself before it calls these hooks.

use anyhow::{Result, ensure};
use capasg_e2e::{CLUSTER, Rig, Setup, rule, text};
use serde_json::json;

use super::{BETWEEN, FIRST, control_plane_goes_to, published, put_image_of_first, says, why};

// Rules: R11, R18
#[tokio::test]
#[ignore = "older core: v1.13 calls the hooks before the nodes of the control plane report the version"]
async fn hooks_wait_for_the_nodes_of_the_control_plane() -> Result<()> {
    Box::pin(rule("r-older-core", Setup::bare(), async |rig| Box::pin(story(rig)).await)).await
}

async fn story(rig: &Rig<'_>) -> Result<()> {
    ensure!(rig.core_minor()? < 14, "this core compares the versions itself");
    put_image_of_first(rig);
    let extension = rig.extension(1, &[]).await?;
    let topology = rig.topology(FIRST, 1, |_| ()).await?;
    topology.running("workers", 1, FIRST).await?;
    topology.kubelets.set_control_plane_version(Some(FIRST));
    topology.patch(&json!({"spec": {"topology": {"version": BETWEEN}}})).await?;
    control_plane_goes_to(rig, BETWEEN).await?;
    says(rig, "AfterControlPlaneUpgrade: control plane Machines whose nodes do not report").await?;
    why(rig).await?;
    let owner = topology.pool("workers").await?.owner;
    ensure!(text(&owner, "/spec/template/spec/version") == FIRST, "it did not hold");

    topology.kubelets.set_control_plane_version(None);
    published(&extension, &format!("UpgradeVerified: all nodes of the control plane report {BETWEEN}"))
        .await?;
    topology.kubelets.set_control_plane_version(Some(FIRST));
    topology.running("workers", 1, BETWEEN).await?;
    published(&extension, &format!("UpgradeVerified: all nodes of ASGMachinePools report {BETWEEN}")).await?;
    let words = "HookBlocked: AfterClusterUpgrade: control plane Machines whose nodes do not report";
    published(&extension, words).await?;
    why(rig).await?;
    topology.kubelets.set_control_plane_version(None);
    published(&extension, "UpgradeVerified: all nodes of the control plane and of ASGMachinePools").await?;
    rig.scenario.kubectl(&["delete", "cluster", CLUSTER]).await?;
    extension.remove().await
}
