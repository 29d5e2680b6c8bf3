//! C: whose pool it is, what it waits for, and what wakes it.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use capasg_api::names::{annotations, aws_name, finalizers, tags};
use capasg_e2e::{
    CLUSTER, Rig, Setup, condition, eventually,
    manifest::{Bootstrap, bootstrap_secret},
    rule,
};
use capasg_environment::Look;
use capasg_fake_aws::Fault;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::reconciled::rests;

async fn reason(rig: &Rig<'_>, pool: &str, kind: &str) -> Result<String> {
    let status = rig.pools().get(pool).await?.status.unwrap_or_default();
    Ok(condition(&status.conditions, kind))
}

async fn until_reason(rig: &Rig<'_>, pool: &str, kind: &str, wanted: &str) -> Result<()> {
    eventually(&format!("{kind} is {wanted}"), async || {
        let found = reason(rig, pool, kind).await?;
        Ok(Look::when(found == wanted, found))
    })
    .await
}

// Rules: C1
#[tokio::test]
async fn nothing_is_done_for_a_pool_without_owner() -> Result<()> {
    rule("c1-orphan", Setup::default(), async |rig| {
        let pool = rig.pool("workers").replicas(1);
        rig.scenario.apply(&pool.ours().to_string()).await?;
        eventually("it says what it waits for", async || {
            let pool = rig.pools().get("workers").await?;
            let said = serde_json::to_string(&pool.status)?;
            Ok(Look::when(said.contains("waiting for a MachinePool"), said))
        })
        .await?;
        ensure!(rig.calls_since(0).is_empty(), "{:?}", rig.calls_since(0));
        ensure!(rig.pools().get("workers").await?.finalizers().is_empty());

        rig.run(&pool, 1).await?;
        rig.delete("workers").await
    })
    .await
}

// Rules: C2
#[tokio::test]
async fn metadata_of_other_actors_is_kept() -> Result<()> {
    rule("c2-others", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        let marks = json!({"metadata": {"labels": {"team": "blue"}, "annotations": {"note": "mine"}, "finalizers":
            [finalizers::POOL, "example.org/mine"]}});
        rig.patch_pool("workers", &marks).await?;
        rig.scale("workers", 2).await?;
        rig.running("workers", 2).await?;
        let pool = rig.pools().get("workers").await?;
        let controllers: Vec<_> =
            pool.owner_references().iter().filter(|owner| owner.controller == Some(true)).collect();
        ensure!(controllers.len() == 1 && controllers[0].kind == "MachinePool", "{:?}", pool.owner_references());
        ensure!(pool.labels().get("cluster.x-k8s.io/cluster-name").is_some_and(|name| name == CLUSTER));
        ensure!(pool.labels().get("team").is_some_and(|team| team == "blue"));
        ensure!(pool.annotations().get("note").is_some_and(|note| note == "mine"));
        ensure!(pool.finalizers().iter().any(|one| one == "example.org/mine"));

        // Nor does our release of the object take away what holds it for others.
        rig.scenario.kubectl(&["delete", "machinepool", "workers", "--wait=false"]).await?;
        eventually("ours is the first to let go", async || {
            let left = rig.pools().get("workers").await?.finalizers().to_vec();
            Ok(Look::when(left == ["example.org/mine"], format!("{left:?}")))
        })
        .await?;
        rig.patch_pool("workers", &json!({"metadata": {"finalizers": null}})).await?;
        rig.gone("workers").await
    })
    .await
}

/// Another MachinePool takes over a pool, and a user removes the owner reference, as the condition says: core takes over the
/// Machines of the relabelled ASGMachines, and drains what a scale-in removes. `clusterctl move` owns the owner references of
/// Machines as well.
// Rules: C1, D3, D5
#[tokio::test]
async fn what_runs_stays_when_another_machine_pool_takes_over_the_pool() -> Result<()> {
    rule("c1-takeover", Setup::default(), async |rig| {
        // With data of its own, a MachinePool would request a rollout.
        let shared = || Bootstrap::Secret { name: "shared".to_owned(), value: rig.user_data() };
        rig.run(&rig.pool("workers").replicas(2).bootstrap(shared()), 2).await?;
        for machine in rig.machines_of("workers").await? {
            let owners = machine.owner_references();
            let moved = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
                "metadata": {"ownerReferences": owners}});
            let by_clusterctl = PatchParams::apply("clusterctl").force();
            rig.machines().patch(&machine.name_any(), &by_clusterctl, &Patch::Apply(&moved)).await?;
        }
        let uids = async |label: &str| -> Result<BTreeSet<Option<String>>> {
            Ok(rig.machines_of(label).await?.iter().map(kube::ResourceExt::uid).collect())
        };
        let refers_to =
            |pool: &str| json!({"spec": {"template": {"spec": {"infrastructureRef": {"name": pool}}}}});
        let (machines, mark) = (uids("workers").await?, rig.mark());
        rig.patch_owner("workers", &refers_to("nowhere")).await?;
        let mut renamed = rig.pool("renamed").replicas(2).bootstrap(shared()).owner().clone();
        renamed["spec"]["template"]["spec"]["infrastructureRef"]["name"] = json!("workers");
        rig.scenario.apply(&renamed.to_string()).await?;
        eventually("it says what to do", async || {
            let said = serde_json::to_string(&rig.pools().get("workers").await?.status)?;
            let names = said.contains("MachinePool renamed refers to it");
            let remedy =
                said.contains("remove the entry of MachinePool workers from metadata.ownerReferences");
            Ok(Look::when(names && remedy, said))
        })
        .await?;
        rig.patch_pool("workers", &json!({"metadata": {"ownerReferences": null}})).await?;
        eventually("core owns the Machines anew", async || {
            let machines = rig.machines_of("renamed").await?;
            let controllers = machines.iter().map(|machine| {
                let owners = machine.owner_references().iter().filter(|one| one.controller == Some(true));
                owners.map(|one| one.name.clone()).collect::<Vec<_>>()
            });
            let found: Vec<_> = controllers.collect();
            Ok(Look::when(found == [["renamed"], ["renamed"]], format!("{found:?}")))
        })
        .await?;
        until_reason(rig, "workers", "NodesReady", "True/NodesReady").await?;
        until_reason(rig, "workers", "GroupReady", "True/GroupReady").await?;
        rig.scenario.kubectl(&["delete", "machinepool", "workers", "--wait=true", "--timeout=120s"]).await?;
        ensure!(uids("renamed").await? == machines, "Machines were made anew");
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));

        rig.scale("renamed", 1).await?;
        eventually("one instance is left", async || {
            let left = rig.group()?.instances.len();
            let machines = rig.machines_of("renamed").await?.len();
            Ok(Look::when((left, machines) == (1, 1), format!("{left} instances, {machines} Machines")))
        })
        .await?;
        // An ASGMachine that the manager deletes itself is not drained.
        let user = rig.user();
        let mut deleted =
            rig.writes()?.into_iter().filter(|write| write.user == user && write.verb == "delete");
        ensure!(deleted.all(|write| write.resource == "machines"), "an ASGMachine was deleted");
        rig.scenario.kubectl(&["delete", "machinepool", "renamed", "--wait=false"]).await?;
        rig.gone("workers").await
    })
    .await
}

// Rules: C3, H1
#[tokio::test]
async fn a_pool_waits_for_its_cluster_and_bootstrap_data() -> Result<()> {
    rule("c3-h1-waits", Setup::bare(), async |rig| {
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": CLUSTER},
            "spec": {"infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": CLUSTER,
            }},
        });
        rig.scenario.apply(&cluster.to_string()).await?;
        let pool = rig.pool("workers").replicas(1).bootstrap(Bootstrap::Missing("late".to_owned()));
        rig.apply(&pool).await?;
        until_reason(rig, "workers", "LaunchTemplateReady", "False/WaitingForClusterInfrastructureReady")
            .await?;
        ensure!(rig.calls_since(0).is_empty(), "{:?}", rig.calls_since(0));

        rig.scenario.environment.management().start_in_memory().await?;
        let infrastructure = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevCluster",
            "metadata": {"name": CLUSTER}, "spec": {"backend": {"inMemory": {}}},
        });
        rig.scenario.apply(&infrastructure.to_string()).await?;
        until_reason(rig, "workers", "LaunchTemplateReady", "False/WaitingForBootstrapData").await?;
        ensure!(rig.mutations() == 0, "{:?}", rig.mutations_since(0));

        let secret = bootstrap_secret(CLUSTER, "late", &rig.user_data());
        rig.scenario.apply(&secret.to_string()).await?;
        eventually("a machine with exactly the Secret's data", async || {
            use base64::{Engine as _, engine::general_purpose::STANDARD};
            let data: Vec<_> = rig.instances().into_iter().map(|one| one.user_data).collect();
            Ok(Look::when(
                data == [Some(STANDARD.encode(rig.user_data()))],
                format!("{} machines", data.len()),
            ))
        })
        .await
    })
    .await
}

// Rules: C4
// Pains: W20
#[tokio::test]
async fn every_input_wakes_the_pool() -> Result<()> {
    // With a resync every hour, only events can be what wakes it.
    rule("c4-wakes", Setup::default().arg("--sync-period=1h"), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        let until_call = async |mark: u64, action: &str| {
            eventually(action, async || {
                let calls = rig.mutations_since(mark);
                let seen = calls.iter().any(|call| call.action == action);
                Ok(Look::when(
                    seen,
                    format!("{:?}", calls.iter().map(|call| &call.action).collect::<Vec<_>>()),
                ))
            })
            .await
        };
        // The MachinePool.
        let mark = rig.mark();
        rig.scale("workers", 2).await?;
        until_call(mark, "UpdateAutoScalingGroup").await?;
        rig.running("workers", 2).await?;
        // Our own object.
        let mark = rig.mark();
        rig.patch_pool("workers", &json!({"spec": {"group": {"defaultCooldownSeconds": 77}}})).await?;
        until_call(mark, "UpdateAutoScalingGroup").await?;
        // The Cluster.
        rig.patch_cluster(&json!({"spec": {"paused": true}})).await?;
        until_reason(rig, "workers", "Paused", "True/Paused").await?;
        rig.patch_cluster(&json!({"spec": {"paused": null}})).await?;
        until_reason(rig, "workers", "Paused", "False/NotPaused").await?;
        // A Machine, and then its ASGMachine.
        let mark = rig.mark();
        let victim = rig.machines_of("workers").await?.first().context("no Machine")?.name_any();
        rig.scenario.kubectl(&["delete", "machine", &victim, "--wait=false"]).await?;
        until_call(mark, "TerminateInstanceInAutoScalingGroup").await?;
        rig.running("workers", 2).await?;
        // The bootstrap Secret, which comes back under another name, as users create their own.
        let own = |value: &str| {
            let mut secret = bootstrap_secret(CLUSTER, "renamed", value);
            secret["type"] = json!("Opaque");
            secret.to_string()
        };
        let mark = rig.mark();
        rig.scenario.apply(&own(&rig.user_data())).await?;
        let other = json!({"spec": {"template": {"spec": {"bootstrap": {"dataSecretName": "renamed"}}}}});
        rig.patch_owner("workers", &other).await?;
        until_call(mark, "CreateLaunchTemplateVersion").await?;
        rests(rig).await?;
        let mark = rig.mark();
        rig.scenario.apply(&own(&format!("{}# again\n", rig.user_data()))).await?;
        until_call(mark, "CreateLaunchTemplateVersion").await?;
        rig.delete("workers").await
    })
    .await
}

// Rules: C6
#[tokio::test]
async fn the_finalizer_is_set_before_the_first_create_until_all_is_deleted() -> Result<()> {
    rule("c6-finalizer", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        let user = rig.user();
        let claimed = rig
            .writes()?
            .into_iter()
            .find(|write| {
                write.resource == "asgmachinepools" && write.subresource.is_empty() && write.user == user
            })
            .context("no write of ours")?;
        let created = rig
            .calls_of("CreateLaunchTemplate")
            .first()
            .and_then(|call| call.wall_time)
            .context("no create")?;
        ensure!(claimed.at < created, "claimed at {}, created at {created}", claimed.at);
        let pool = rig.pools().get("workers").await?;
        ensure!(pool.finalizers().contains(&finalizers::POOL.to_owned()));
        ensure!(pool.annotations().contains_key(annotations::OWNER_ID));

        // As long as AWS refuses to delete the group, the object stays.
        let refused = Fault::error("DeleteAutoScalingGroup", 400, "ScalingActivityInProgress", "not now");
        rig.scenario.simulator().add_fault(refused.times(None).in_region(&rig.scenario.region));
        rig.scenario.kubectl(&["delete", "machinepool", "workers", "--wait=false"]).await?;
        eventually("AWS was asked twice", async || {
            let asked = rig.calls_of("DeleteAutoScalingGroup").len();
            Ok(Look::when(asked >= 2, format!("{asked} times")))
        })
        .await?;
        ensure!(rig.pools().get("workers").await?.finalizers().contains(&finalizers::POOL.to_owned()));
        rig.scenario.simulator().clear_faults(Some(&rig.scenario.region));
        rig.gone("workers").await
    })
    .await
}

// Rules: C7
#[tokio::test]
async fn owner_references_lead_to_the_cluster() -> Result<()> {
    rule("c7-owners", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let owner_of = |owners: &[OwnerReference], kind: &str| {
            owners.iter().find(|owner| owner.kind == kind).map(|owner| owner.uid.clone())
        };
        let pool = rig.pools().get("workers").await?;
        let machines = rig.asg_machines_of("workers").await?;
        ensure!(machines.len() == 2, "{} ASGMachines", machines.len());
        for machine in &machines {
            let found = owner_of(machine.owner_references(), "ASGMachinePool");
            ensure!(found == pool.uid(), "{} has {:?}", machine.name_any(), machine.owner_references());
        }
        let machine_pool = rig.machine_pools().get("workers").await?;
        ensure!(owner_of(pool.owner_references(), "MachinePool") == machine_pool.uid());
        let cluster = rig.clusters().get(CLUSTER).await?;
        ensure!(owner_of(machine_pool.owner_references(), "Cluster") == cluster.uid());

        // Our kinds apart, the manager makes its lease, which nobody moves (and events, which nobody logs).
        let mine = rig.user();
        let made: BTreeSet<String> = rig
            .writes()?
            .into_iter()
            .filter(|write| write.user == mine && write.verb == "create")
            .map(|write| write.resource)
            .collect();
        let known = BTreeSet::from(["asgmachines", "leases"].map(str::to_owned));
        ensure!(made.is_subset(&known), "made {made:?}");
        rig.delete("workers").await
    })
    .await
}

// Rules: C8
#[tokio::test]
async fn names_and_tags_follow_from_names_alone() -> Result<()> {
    rule("c8-names", Setup::default(), async |rig| {
        let pool = rig.pool("workers").replicas(1);
        let name = aws_name(&rig.scenario.namespace, CLUSTER, "workers");
        let mut uids = BTreeSet::new();
        let mut owner_ids = BTreeSet::new();
        for _ in 0..2 {
            rig.run(&pool, 1).await?;
            let group = rig.group()?;
            ensure!(group.name == name, "{}", group.name);
            ensure!(rig.templates().iter().all(|template| template.name == name));
            let object = rig.pools().get("workers").await?;
            let uid = object.uid().context("no uid")?;
            ensure!(!format!("{group:?}").contains(&uid), "the UID is in {group:?}");
            let tag = |key: &str| group.tags.get(key).map(String::as_str);
            ensure!(tag(tags::NAMESPACE) == Some(rig.scenario.namespace.as_str()));
            ensure!(tag(tags::CLUSTER) == Some(CLUSTER) && tag(tags::POOL) == Some("workers"));
            ensure!(tag(&tags::cloud_provider(CLUSTER)) == Some("owned"));
            let owner_id = object.annotations().get(annotations::OWNER_ID).context("no owner id")?;
            ensure!(tag(tags::OWNER_ID) == Some(owner_id.as_str()));
            ensure!(rig.templates()[0].tags.get(tags::OWNER_ID) == Some(owner_id));
            for instance in rig.instances() {
                ensure!(
                    instance.tags.get(&tags::cloud_provider(CLUSTER)).is_some_and(|value| value == "owned")
                );
            }
            uids.insert(uid);
            owner_ids.insert(owner_id.clone());
            rig.delete("workers").await?;
        }
        ensure!(uids.len() == 2 && owner_ids.len() == 2);
        Ok(())
    })
    .await
}

// Rules: C8
#[tokio::test]
async fn a_group_of_our_name_that_is_not_owned_is_left_alone() -> Result<()> {
    rule("c8-foreign", Setup::default(), async |rig| {
        // A pool that left everything behind is a stranger to the next one of the same name: so would be a pool of
        // another management cluster.
        let pool = rig.pool("workers").replicas(2).with("spec/deletionPolicy", "Orphan");
        rig.run(&pool, 2).await?;
        rig.scenario.kubectl(&["delete", "machinepool", "workers", "--wait=true", "--timeout=120s"]).await?;
        let left = rig.group()?;
        ensure!(left.instances.len() == 2 && left.hooks.is_empty(), "{left:?}");
        ensure!(rig.instances().len() == 2 && rig.templates().len() == 1);

        let mark = rig.mark();
        rig.apply(&rig.pool("workers").replicas(3)).await?;
        eventually("it says whose they are", async || {
            let status = rig.pools().get("workers").await?.status.unwrap_or_default();
            let ready = status.conditions.into_iter().find(|one| one.type_ == "Ready").context("no Ready")?;
            let said =
                ready.status == "False" && ready.message.contains("owner-id with a value of another pool");
            Ok(Look::when(said, format!("{ready:?}")))
        })
        .await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));

        // Nor is it taken down with the pool that could not have it.
        rig.scenario.kubectl(&["delete", "machinepool", "workers", "--wait=true", "--timeout=120s"]).await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));
        ensure!(rig.group()?.instances.len() == 2);
        Ok(())
    })
    .await
}
