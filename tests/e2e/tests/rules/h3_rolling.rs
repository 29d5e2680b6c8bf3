//! H3, H4, H7: rolling updates, within their budget and that of the workload, whatever comes in between.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use capasg_api::{ASGMachinePoolStatus, names::machine_name};
use capasg_e2e::{DEADLINE, Rig, Setup, condition, eventually, rule};
use capasg_environment::Look;
use capasg_fake_aws::InstanceDump;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use crate::e_deletion::guarded_pod;

const END: &str = "TerminateInstanceInAutoScalingGroup";
const OLD_IMAGE: &str = "ami-0a1b2c3d";
const NEW_IMAGE: &str = "ami-0b1c2d3e";
const OTHER_IMAGE: &str = "ami-0d1e2f3a";

fn ids(rig: &Rig<'_>) -> BTreeSet<String> {
    rig.instances().into_iter().map(|instance| instance.id).collect()
}

async fn status(rig: &Rig<'_>) -> Result<ASGMachinePoolStatus> {
    rig.pools().get("workers").await?.status.context("no status")
}

async fn set_image(rig: &Rig<'_>, image: &str) -> Result<()> {
    rig.patch_pool("workers", &json!({"spec": {"machine": {"image": {"id": image}}}})).await
}

/// Waits until every instance has the image and the pool says that it is done; never more than one is added on the way.
async fn rolled_out(rig: &Rig<'_>, replicas: usize, image: &str) -> Result<()> {
    let mut most = 0;
    eventually(&format!("all run {image}"), async || {
        most = most.max(rig.group()?.desired);
        let told = status(rig).await?;
        let rolling = condition(&told.conditions, "RollingOut");
        let new = rig.instances().iter().filter(|one| one.image == image).count();
        let done = new == replicas
            && rig.instances().len() == replicas
            && rolling == "False/NotRollingOut"
            && usize::try_from(told.up_to_date_replicas)? == replicas;
        Ok(Look::when(done, format!("{new} of {replicas} are new, {rolling} {:?}", told.conditions)))
    })
    .await?;
    ensure!(most <= i64::try_from(replicas)? + 1, "{most} were desired");
    rig.running("workers", replicas).await
}

/// How often our manager told of something, by the reason of the event.
async fn told(rig: &Rig<'_>, reason: &str) -> Result<usize> {
    let selector = format!("--field-selector=reason={reason}");
    let names = rig.scenario.kubectl(&["get", "events", &selector, "--output=name"]).await?;
    Ok(names.lines().filter(|line| !line.is_empty()).count())
}

/// The instances in the order in which a rollout replaces them: core creates their Machines in any order.
async fn oldest_first(rig: &Rig<'_>) -> Result<Vec<InstanceDump>> {
    let machines = rig.machines_of("workers").await?;
    let created: BTreeMap<String, _> =
        machines.iter().map(|machine| (machine.name_any(), machine.creation_timestamp())).collect();
    let mut all = rig.instances();
    all.sort_by_key(|one| (created.get(&machine_name("workers", &one.id)).cloned(), one.id.clone()));
    Ok(all)
}

// Rules: H3, H4, H7
#[tokio::test]
async fn a_new_version_rolls_out_within_the_budgets_of_pool_and_workload() -> Result<()> {
    rule("h3-version", Setup::default(), async |rig| {
        rig.kubelets()?.set_version(NEW_IMAGE, "v1.37.0");
        rig.run(&rig.pool("workers").replicas(3), 3).await?;
        let before = oldest_first(rig).await?;
        // A pod that nobody may evict sits on the machine that goes first.
        let pod = format!("guarded-{}", rig.scenario.namespace);
        let workload = rig.cluster()?;
        let manifest = guarded_pod(&pod, &before[0].private_dns_name).to_string();
        workload.kubectl().feed(["apply", "--filename=-"], &manifest).await?;
        let pods: Api<Pod> = Api::namespaced(workload.client().await?, "default");
        eventually("the pod runs", async || {
            let phase = pods.get(&pod).await?.status.and_then(|status| status.phase).unwrap_or_default();
            Ok(Look::when(phase == "Running", phase))
        })
        .await?;

        // Image and version, one after another, as ClusterClass writes them.
        let mark = rig.mark();
        set_image(rig, NEW_IMAGE).await?;
        rig.patch_owner("workers", &json!({"spec": {"template": {"spec": {"version": "v1.37.0"}}}})).await?;
        let refused = async || -> Result<usize> {
            let writes = rig.workload_writes().await?.into_iter();
            Ok(writes.filter(|w| w.subresource == "eviction" && w.name == pod && w.code == 429).count())
        };
        eventually("the budget has refused", async || {
            Ok(Look::when(refused().await? >= 2, format!("{:?}", status(rig).await?.conditions)))
        })
        .await?;
        let told_now = status(rig).await?;
        ensure!(
            condition(&told_now.conditions, "RollingOut") == "True/RollingOut",
            "{:?}",
            told_now.conditions
        );
        ensure!(condition(&told_now.conditions, "Ready") == "True/Ready", "mid-rollout is Ready");
        ensure!(
            condition(&told_now.conditions, "UpToDate") == "False/NotUpToDate",
            "{:?}",
            told_now.conditions
        );
        let words = serde_json::to_string(&told_now)?;
        ensure!(words.contains(&format!("draining {}", machine_name("workers", &before[0].id))), "{words}");
        ensure!(
            told_now.phase.map(capasg_api::pool::Phase::as_str) == Some("RollingOut"),
            "{:?}",
            told_now.phase
        );
        let ours = rig.asg_machines().get(&machine_name("workers", &before[1].id)).await?;
        let conditions = ours.status.context("no status")?.conditions;
        ensure!(condition(&conditions, "UpToDate") == "False/ImageChanged", "{conditions:?}");
        ensure!(rig.instances().iter().any(|one| one.id == before[0].id), "it ended with its pod");

        let budgets = ["delete", "poddisruptionbudget", &pod, "--namespace=default"];
        workload.kubectl().run(budgets).await?;
        rolled_out(rig, 3, NEW_IMAGE).await?;
        let nodes: Api<Node> = Api::all(workload.client().await?);
        let names: BTreeSet<String> = rig.instances().into_iter().map(|one| one.private_dns_name).collect();
        for node in nodes.list(&ListParams::default()).await?.items {
            if names.contains(&node.name_any()) {
                let version =
                    node.status.and_then(|status| status.node_info).map(|info| info.kubelet_version);
                ensure!(version.as_deref() == Some("v1.37.0"), "{version:?}");
            }
        }
        let ends: Vec<bool> = rig
            .mutations_since(mark)
            .iter()
            .filter(|call| call.action == END)
            .flat_map(|call| {
                let shrinks = call.params["ShouldDecrementDesiredCapacity"] == "true";
                call.instances.iter().map(move |_| shrinks)
            })
            .collect();
        ensure!(ends.len() == 3, "each was ended once: {ends:?}");
        ensure!(
            ends.iter().filter(|shrinks| **shrinks).count() == 1,
            "the surge alone was given back: {ends:?}"
        );
        ensure!(told(rig, "RolloutStarted").await? == 1 && told(rig, "RolloutCompleted").await? == 1);
        let _ = pods.delete(&pod, &DeleteParams::default()).await;
        rig.delete("workers").await
    })
    .await
}

// Rules: H3
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn another_change_during_a_rollout_takes_precedence() -> Result<()> {
    rule("h3-middle", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        set_image(rig, OTHER_IMAGE).await?;
        eventually("one of the first wish runs", async || {
            Ok(Look::when(rig.instances().iter().any(|one| one.image == OTHER_IMAGE), "none does"))
        })
        .await?;
        set_image(rig, NEW_IMAGE).await?;
        rolled_out(rig, 2, NEW_IMAGE).await?;
        rig.delete("workers").await
    })
    .await
}

// Rules: H3
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn a_rollout_survives_kills_of_the_manager() -> Result<()> {
    rule("h3-kill", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(3), 3).await?;
        let mark = rig.mark();
        set_image(rig, NEW_IMAGE).await?;
        eventually("the surge is asked for", async || Ok(Look::when(rig.group()?.desired == 4, "it is not")))
            .await?;
        rig.kill_manager().await?;
        rig.start_manager().await?;
        eventually("a Machine leaves", async || {
            let leaving =
                rig.machines_of("workers").await?.iter().any(|one| one.metadata.deletion_timestamp.is_some());
            Ok(Look::when(leaving, "none does"))
        })
        .await?;
        rig.kill_manager().await?;
        rig.start_manager().await?;
        rolled_out(rig, 3, NEW_IMAGE).await?;
        let ended: usize = rig
            .mutations_since(mark)
            .iter()
            .filter(|call| call.action == END)
            .map(|call| call.instances.len())
            .sum();
        ensure!(ended == 3, "{ended} were ended for 3");
        ensure!(told(rig, "RolloutCompleted").await? == 1);
        rig.delete("workers").await
    })
    .await
}

// Rules: H2, H3
#[tokio::test]
async fn a_change_that_does_not_concern_machines_replaces_nothing() -> Result<()> {
    rule("h3-not", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        let before = ids(rig);
        let mark = rig.mark();
        let edits = json!({"spec": {
            "tags": {"team": "a"}, "maxSize": 5,
            "instanceTypes": [{"type": "m7i.large"}, {"type": "m6i.large"}],
            "drain": {"timeoutSeconds": 600},
        }});
        rig.patch_pool("workers", &edits).await?;
        eventually("it is pinned to the new version", async || {
            let done =
                rig.mutations_since(mark).iter().any(|call| call.action == "CreateLaunchTemplateVersion");
            Ok(Look::when(done, format!("{:?}", rig.mutations_since(mark))))
        })
        .await?;
        // The next machine has it; that it is made shows that the pool has looked after the change.
        rig.scale("workers", 2).await?;
        rig.running("workers", 2).await?;
        let told = status(rig).await?;
        ensure!(condition(&told.conditions, "UpToDate") == "True/UpToDate", "{:?}", told.conditions);
        ensure!(before.is_subset(&ids(rig)) && rig.calls_of(END).is_empty());
        rig.delete("workers").await
    })
    .await
}

// Rules: H3
#[tokio::test]
async fn on_delete_replaces_machines_that_a_user_deletes() -> Result<()> {
    rule("h3-on-delete", Setup::default(), async |rig| {
        let pool = rig.pool("workers").replicas(1).with("spec/rollout/strategy/type", "OnDelete");
        rig.run(&pool, 1).await?;
        set_image(rig, NEW_IMAGE).await?;
        rig.pool_until("workers", DEADLINE, |pool| {
            let conditions = pool.status.clone().unwrap_or_default().conditions;
            let said = condition(&conditions, "UpToDate");
            Look::when(said == "False/WaitingForDeletion", said)
        })
        .await?;
        let old = rig.instances()[0].clone();
        ensure!(old.image == OLD_IMAGE && rig.calls_of(END).is_empty());
        rig.scenario
            .kubectl(&["delete", "machine", &machine_name("workers", &old.id), "--wait=false"])
            .await?;
        rolled_out(rig, 1, NEW_IMAGE).await?;
        rig.delete("workers").await
    })
    .await
}
