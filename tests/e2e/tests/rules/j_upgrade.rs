//! H3, H4, J6: an upgrade by one field of the Cluster: control plane first, then pool after pool, each by one rollout.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{CLUSTER, Rig, Setup, Topology, TopologyPool, eventually, rule, text};
use capasg_environment::{Look, dynamic};
use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _, api::ListParams};
use serde_json::{Value, json};

/// The version that the simulator has an image for beside that of the tools.
const OLD: &str = "v1.35.4";
const DEFER: &str = "topology.cluster.x-k8s.io/defer-upgrade";

/// A second pool, which waits with its upgrade.
fn with_a_deferred_pool(cluster: &mut Value) {
    if let Some(Value::Array(pools)) = cluster.pointer_mut("/spec/topology/workers/machinePools") {
        let metadata = json!({"annotations": {DEFER: ""}});
        pools.push(json!({"class": "default-worker", "name": "later", "replicas": 1, "metadata": metadata}));
    }
}

/// How many instances of a pool became machines since then.
fn made_since(rig: &Rig<'_>, pool: &TopologyPool, since: DateTime<Utc>) -> Result<usize> {
    let prefix = format!("{}-i-", pool.pool.name_any());
    let writes = rig.writes()?.into_iter();
    let made =
        writes.filter(|write| write.at > since && write.resource == "asgmachines" && write.code == 201);
    Ok(made.filter(|write| write.name.starts_with(&prefix)).count())
}

/// The versions of the kubelets of a pool's instances, as the workload cluster tells.
async fn kubelets(topology: &Topology<'_>, pool: &TopologyPool) -> Result<Vec<String>> {
    let nodes = Api::<Node>::all(topology.cluster.client().await?).list(&ListParams::default()).await?;
    let of_pool = |node: &&Node| {
        let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).unwrap_or_default();
        pool.pool.spec.provider_id_list.iter().any(|listed| listed == id)
    };
    let version = |node: &Node| Some(node.status.as_ref()?.node_info.as_ref()?.kubelet_version.clone());
    Ok(nodes.iter().filter(of_pool).filter_map(version).collect())
}

// Rules: H3, H4, J6
#[tokio::test]
async fn an_upgrade_rolls_each_pool_once_at_its_turn() -> Result<()> {
    Box::pin(rule("h4-upgrade", Setup::bare(), async |rig| {
        let new = rig.scenario.environment.tools().kubernetes_version().to_owned();
        let topology = rig.topology(OLD, 2, with_a_deferred_pool).await?;
        let before = topology.running("workers", 2, OLD).await?;
        let later = topology.running("later", 1, OLD).await?;
        let (old, old_later) = (topology.instances_of(&before), topology.instances_of(&later));
        ensure!(kubelets(&topology, &before).await? == [OLD, OLD]);

        // Version and disk in one edit: bootstrap config, pool and MachinePool are written one after another.
        let begun = Utc::now();
        let cluster = rig.clusters().get(CLUSTER).await?;
        let mut variables =
            cluster.data["spec"]["topology"]["variables"].as_array().cloned().unwrap_or_default();
        variables.retain(|variable| variable["name"] != "rootVolumeSizeGiB");
        variables.push(json!({"name": "rootVolumeSizeGiB", "value": 100}));
        topology.patch(&json!({"spec": {"topology": {"version": new, "variables": variables}}})).await?;
        control_plane_first(rig, &topology, begun, &new).await?;

        let after = topology.running("workers", 2, &new).await?;
        ensure!(
            after.pool.uid() == before.pool.uid() && after.owner.uid() == before.owner.uid(),
            "another pool"
        );
        let replaced: BTreeSet<_> = topology.instances_of(&after).into_iter().collect();
        ensure!(replaced.is_disjoint(&old.into_iter().collect()), "an old instance is left");
        ensure!(made_since(rig, &after, begun)? == 2, "{} were made for 2", made_since(rig, &after, begun)?);
        ensure!(kubelets(&topology, &after).await? == [new.clone(), new.clone()]);
        ensure!(after.pool.spec.machine.root_volume().settings.size_gib == Some(100));

        // The other pool waits, with all of its changes.
        let waiting = topology.running("later", 1, OLD).await?;
        ensure!(topology.instances_of(&waiting) == old_later, "the deferred pool was touched");
        ensure!(
            waiting.pool.spec.machine.root_volume().settings.size_gib == Some(80),
            "only its version waits"
        );
        topology.reconciled("False/MachinePoolsUpgradeDeferred", "").await?;

        let undeferred = Utc::now();
        let mut pools =
            rig.clusters().get(CLUSTER).await?.data["spec"]["topology"]["workers"]["machinePools"].clone();
        for pool in pools.as_array_mut().into_iter().flatten() {
            pool.as_object_mut().context("no pool")?.remove("metadata");
        }
        topology.patch(&json!({"spec": {"topology": {"workers": {"machinePools": pools}}}})).await?;
        let last = topology.running("later", 1, &new).await?;
        ensure!(made_since(rig, &last, undeferred)? == 1);
        ensure!(
            topology.instances_of(&last) != old_later && kubelets(&topology, &last).await? == [new.clone()]
        );
        ensure!(made_since(rig, &after, undeferred)? == 0, "the first pool rolled again");
        topology.reconciled("True/ReconcileSucceeded", "").await
    }))
    .await
}

/// Waits for the control plane, and shows by the API server's clock that no pool was written before it was done.
async fn control_plane_first(
    rig: &Rig<'_>,
    topology: &Topology<'_>,
    begun: DateTime<Utc>,
    new: &str,
) -> Result<()> {
    let (client, namespace) = (&rig.scenario.client, &rig.scenario.namespace);
    let planes =
        dynamic(client, namespace, "controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane");
    eventually("the control plane is upgraded", async || {
        let plane = planes.list(&ListParams::default()).await?.items.pop().context("no control plane")?;
        let (version, wanted) = (text(&plane, "/status/version"), text(&plane, "/spec/version"));
        let replicas = |path: &str| plane.data.pointer(path).and_then(Value::as_u64);
        let done = version == new && replicas("/status/upToDateReplicas") == replicas("/status/replicas");
        Ok(Look::when(done, format!("{version} of {wanted}, {}", plane.data["status"])))
    })
    .await?;
    let written = eventually("a pool has its turn", async || {
        let writes = topology.writes()?.into_iter();
        let mut of_pools = writes.filter(|write| {
            write.at > begun
                && ["machinepools", "asgmachinepools", "kubeadmconfigs"].contains(&write.resource.as_str())
        });
        Ok(Look::from_option(of_pools.next().map(|write| write.at), "no write to a pool"))
    })
    .await?;
    let removed = rig.writes()?.into_iter().filter(|write| {
        write.at > begun
            && write.verb == "delete"
            && write.resource == "machines"
            && write.user.contains("kubeadm-control-plane")
    });
    let removed =
        removed.map(|write| write.at).max().context("no machine of the control plane was replaced")?;
    ensure!(removed < written, "a pool was written at {written}, the control plane was done after {removed}");
    Ok(())
}
