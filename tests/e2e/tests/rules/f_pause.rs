//! F: what is paused is left alone, deletion included.

use anyhow::{Context as _, Result, ensure};
use capasg_api::{conditions, names::machine_name};
use capasg_e2e::{CLUSTER, Rig, Setup, eventually, rule};
use capasg_environment::Look;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use serde_json::{Value, json};

const PAUSED: &str = "cluster.x-k8s.io/paused";

/// A patch that sets the annotation, or with `None` removes it.
fn annotation(value: Option<&str>) -> Value {
    json!({"metadata": {"annotations": {PAUSED: value}}})
}

async fn paused_is(rig: &Rig<'_>, status: &str) -> Result<Condition> {
    eventually(&format!("Paused is {status}"), async || {
        let conditions = rig.pools().get("workers").await?.status.unwrap_or_default().conditions;
        let found = conditions::get(&conditions, "Paused").cloned();
        Ok(Look::from_option(found.filter(|found| found.status == status), format!("{conditions:?}")))
    })
    .await
}

// Rules: F1, F2, F3
#[tokio::test]
async fn a_pause_stops_all_writes_until_it_ends() -> Result<()> {
    rule("f1-f3-pause", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let not_paused = paused_is(rig, "False").await?;
        ensure!(not_paused.reason == "NotPaused" && not_paused.message.is_empty(), "{not_paused:?}");

        // By the annotation.
        rig.patch_pool("workers", &annotation(Some(""))).await?;
        let paused = paused_is(rig, "True").await?;
        ensure!(paused.reason == "Paused");
        ensure!(
            paused.message == "ASGMachinePool has the cluster.x-k8s.io/paused annotation",
            "{}",
            paused.message
        );
        let mark = rig.mark();
        rig.scale("workers", 3).await?;
        // By both: the new message shows that it was looked at since the edit.
        rig.patch_cluster(&json!({"spec": {"paused": true}})).await?;
        let both =
            "Cluster spec.paused is set to true, ASGMachinePool has the cluster.x-k8s.io/paused annotation";
        eventually("both causes are named", async || {
            let found = paused_is(rig, "True").await?;
            Ok(Look::when(found.message == both, found.message))
        })
        .await?;
        let generation = rig.pools().get("workers").await?.metadata.generation;
        ensure!(paused_is(rig, "True").await?.observed_generation == generation);
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));

        // By the Cluster alone; its end is enough to go on.
        rig.patch_pool("workers", &annotation(None)).await?;
        eventually("one cause is named", async || {
            let found = paused_is(rig, "True").await?;
            Ok(Look::when(found.message == "Cluster spec.paused is set to true", found.message))
        })
        .await?;
        ensure!(rig.mutations_since(mark).is_empty());
        rig.patch_cluster(&json!({"spec": {"paused": null}})).await?;
        rig.running("workers", 3).await?;
        paused_is(rig, "False").await?;
        rig.delete("workers").await
    })
    .await
}

// Rules: F1
#[tokio::test]
async fn a_pause_delays_a_deletion() -> Result<()> {
    rule("f1-deletion", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        rig.patch_pool("workers", &annotation(Some("true"))).await?;
        paused_is(rig, "True").await?;
        let mark = rig.mark();
        let finalizers = rig.pools().get("workers").await?.finalizers().to_vec();
        rig.scenario.kubectl(&["delete", "machinepool", "workers", "--wait=false"]).await?;
        eventually("core has asked for our deletion", async || {
            let pool = rig.pools().get("workers").await?;
            Ok(Look::when(pool.metadata.deletion_timestamp.is_some(), "not yet"))
        })
        .await?;
        // Another edit, whose observed generation shows that the deletion was seen before it.
        rig.patch_pool("workers", &json!({"spec": {"maxSize": 9}})).await?;
        eventually("the edit was seen", async || {
            let pool = rig.pools().get("workers").await?;
            let observed = conditions::get(&pool.status.clone().unwrap_or_default().conditions, "Paused")
                .and_then(|paused| paused.observed_generation);
            Ok(Look::when(observed == pool.metadata.generation, format!("{observed:?}")))
        })
        .await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));
        ensure!(rig.pools().get("workers").await?.finalizers() == finalizers);
        rig.patch_pool("workers", &annotation(None)).await?;
        rig.gone("workers").await
    })
    .await
}

// Rules: F4
#[tokio::test]
async fn a_paused_asgmachine_is_left_alone() -> Result<()> {
    rule("f4-machine", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let victim = rig.instances()[0].id.clone();
        let name = machine_name("workers", &victim);
        let patch = annotation(Some("true")).to_string();
        rig.scenario.kubectl(&["patch", "asgmachine", &name, "--type=merge", "--patch", &patch]).await?;
        eventually("it says so", async || {
            let status = rig.asg_machines().get(&name).await?.status.unwrap_or_default();
            let paused = conditions::get(&status.conditions, "Paused").cloned().context("no Paused")?;
            let wanted = "ASGMachine has the cluster.x-k8s.io/paused annotation";
            Ok(Look::when(paused.status == "True" && paused.message == wanted, format!("{paused:?}")))
        })
        .await?;
        let mark = rig.mark();
        rig.scenario.kubectl(&["delete", "asgmachine", &name, "--wait=false"]).await?;
        // The pool goes on: what it does after the deletion shows that the deletion was seen.
        rig.scale("workers", 3).await?;
        eventually("the pool has grown", async || {
            let group = rig.group()?;
            Ok(Look::when(group.instances.len() == 3 && group.desired == 3, format!("{group:?}")))
        })
        .await?;
        let ended =
            rig.mutations_since(mark).into_iter().filter(|call| call.instances.contains(&victim)).count();
        ensure!(ended == 0, "{:?}", rig.mutations_since(mark));
        ensure!(
            rig.asg_machines()
                .get(&name)
                .await?
                .finalizers()
                .contains(&"infrastructure.cluster.x-k8s.io/asgmachine".to_owned())
        );

        let patch = annotation(None).to_string();
        rig.scenario.kubectl(&["patch", "asgmachine", &name, "--type=merge", "--patch", &patch]).await?;
        eventually("the instance is gone", async || {
            Ok(Look::when(rig.instances().iter().all(|one| one.id != victim), "it runs"))
        })
        .await?;
        rig.running("workers", 3).await?;
        rig.delete("workers").await
    })
    .await
}

// Rules: F4
#[tokio::test]
async fn asgmachines_report_that_their_cluster_is_paused() -> Result<()> {
    rule("f4-cluster", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        rig.patch_cluster(&json!({"spec": {"paused": true}})).await?;
        eventually("all say so", async || {
            let machines = rig.asg_machines_of("workers").await?;
            let said = machines.iter().all(|machine| {
                let status = machine.status.clone().unwrap_or_default();
                conditions::get(&status.conditions, "Paused").is_some_and(|one| {
                    one.status == "True" && one.message == "Cluster spec.paused is set to true"
                })
            });
            Ok(Look::when(said && !machines.is_empty(), "not all"))
        })
        .await?;
        let mark = rig.mark();
        let victim = rig.instances()[0].id.clone();
        rig.scenario
            .kubectl(&["delete", "asgmachine", &machine_name("workers", &victim), "--wait=false"])
            .await?;
        rig.patch_pool("workers", &json!({"spec": {"maxSize": 9}})).await?;
        eventually("the edit was seen", async || {
            let pool = rig.pools().get("workers").await?;
            let conditions = pool.status.clone().unwrap_or_default().conditions;
            let observed =
                conditions::get(&conditions, "Paused").and_then(|paused| paused.observed_generation);
            Ok(Look::when(observed == pool.metadata.generation, format!("{observed:?}")))
        })
        .await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));
        rig.patch_cluster(&json!({"spec": {"paused": null}})).await?;
        eventually("the instance is gone", async || {
            Ok(Look::when(rig.instances().iter().all(|one| one.id != victim), "it runs"))
        })
        .await?;
        rig.running("workers", 1).await?;
        rig.clusters().get(CLUSTER).await?;
        rig.delete("workers").await
    })
    .await
}
