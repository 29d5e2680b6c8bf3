//! M: `clusterctl move` to a second management cluster.

use anyhow::{Context as _, Result, ensure};
use capasg_api::{ASGMachinePool, names::annotations};
use capasg_e2e::{CLUSTER, DEADLINE, Rig, Setup, eventually, rule, text};
use capasg_environment::{
    Look, Management, ManagementOptions, ManagerOptions, ManagerPlan, dynamic, wait_for_object,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::json;

const STUB: &str = "stubcontrolplanes.controlplane.cluster.x-k8s.io";

/// A manager of ours on another management cluster, as it is shipped: for all namespaces, with an election.
async fn plan(rig: &Rig<'_>, target: &Management) -> Result<ManagerPlan> {
    let environment = &rig.scenario.environment;
    let program = environment.settings().manager.clone().context("no manager")?;
    let options =
        ManagerOptions { leader_elect: true, env: environment.cloud().env(), ..ManagerOptions::default() };
    target.plan_manager("infrastructure-asg", &program, &options).await
}

/// The stub control plane has no controller: its kind and, since a move drops status, what it says are ours to bring.
async fn bring_stub_kind(rig: &Rig<'_>, target: &Management) -> Result<()> {
    let source = rig.scenario.environment.management().api().kubectl();
    let kind = source.run(["get", "customresourcedefinition", STUB, "--output=json"]).await?;
    let mut kind: serde_json::Value = serde_json::from_str(&kind)?;
    kind["status"] = serde_json::Value::Null;
    kind["metadata"] = json!({"name": STUB, "labels": kind["metadata"]["labels"]});
    target.api().kubectl().feed(["apply", "--server-side", "--filename=-"], &kind.to_string()).await?;
    Ok(())
}

fn stubs(client: &Client, namespace: &str) -> Api<DynamicObject> {
    dynamic(client, namespace, "controlplane.cluster.x-k8s.io", "v1alpha1", "StubControlPlane")
}

#[tokio::test]
async fn m2_m4_a_settled_pool_moves_without_a_change_in_the_cloud() -> Result<()> {
    rule("m4-move", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let environment = &rig.scenario.environment;
        let options = ManagementOptions { name: "target".to_owned(), ..ManagementOptions::default() };
        let target = environment.second_management(options).await?;
        bring_stub_kind(rig, &target).await?;
        let manager = plan(rig, &target).await?.start_ready().await?;

        let source_client = &rig.scenario.client;
        let client = target.api().client().await?;
        let namespace = rig.scenario.namespace.as_str();
        let before = rig.pools().get("workers").await?;
        let (group, templates) = (rig.group()?, rig.templates());
        let instances: Vec<String> = rig.instances().into_iter().map(|one| one.id).collect();
        let control_plane = stubs(source_client, namespace).get(CLUSTER).await?;

        // M2: nothing happens in the cloud from here until somebody asks for something.
        let mark = rig.mark();
        let to = target.api().kubeconfig().display().to_string();
        rig.scenario.clusterctl(&["move", "--to-kubeconfig", &to]).await?;
        let status = Patch::Merge(json!({"status": control_plane.data["status"]}));
        stubs(&client, namespace).patch_status(CLUSTER, &PatchParams::default(), &status).await?;

        let owners = dynamic(&client, namespace, "cluster.x-k8s.io", "v1beta2", "MachinePool");
        let pools: Api<ASGMachinePool> = Api::namespaced(client.clone(), namespace);
        let running = async |replicas: usize| {
            wait_for_object(&owners, "workers", DEADLINE, |owner| {
                let nodes = owner
                    .data
                    .pointer("/status/nodeRefs")
                    .and_then(|refs| refs.as_array())
                    .map_or(0, Vec::len);
                let phase = text(owner, "/status/phase");
                Look::when(phase == "Running" && nodes == replicas, format!("{phase}, {nodes} nodes"))
            })
            .await
        };
        running(2).await?;
        let after = eventually("its status is back", async || {
            let pool = pools.get("workers").await?;
            let status = pool.status.clone().unwrap_or_default();
            let same =
                status.ready && status.replicas == 2 && status.ready_replicas == 2 && status.group.is_some();
            Ok(Look::from_option(same.then_some(pool), format!("{status:?}")))
        })
        .await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));
        ensure!(rig.group()? == group && rig.templates() == templates);
        ensure!(after.uid() != before.uid() && after.spec == before.spec);
        ensure!(
            after.annotations().get(annotations::OWNER_ID) == before.annotations().get(annotations::OWNER_ID)
        );
        ensure!(rig.pools().get_opt("workers").await?.is_none(), "it is left on the source");

        // M4: and it can be scaled there, both ways.
        let scale = async |replicas: usize| {
            let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
            owners.patch("workers", &PatchParams::default(), &patch).await?;
            running(replicas).await?;
            eventually("the group has as many", async || {
                let group = rig.group()?;
                Ok(Look::when(group.instances.len() == replicas, format!("{group:?}")))
            })
            .await
        };
        scale(3).await?;
        ensure!(
            rig.instances().iter().filter(|one| instances.contains(&one.id)).count() == 2,
            "machines were replaced"
        );
        scale(1).await?;
        target
            .api()
            .kubectl()
            .run(["delete", "machinepool", "workers", "--namespace", namespace, "--wait=false"])
            .await?;
        eventually("nothing is left in the cloud", async || {
            let left = rig.scenario.simulator().leftovers(Some(&rig.scenario.region));
            Ok(Look::when(left.is_empty(), format!("{left:?}")))
        })
        .await?;
        ensure!(manager.stop().await?.success());
        target.stop().await
    })
    .await
}
