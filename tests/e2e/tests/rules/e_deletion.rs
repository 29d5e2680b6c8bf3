//! E: a pool goes, whatever else is already gone, and leaves nothing.

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{CLUSTER, Rig, Setup, condition, eventually, rule};
use capasg_environment::Look;
use kube::ResourceExt;
use serde_json::json;

use crate::reconciled::reconciled;

/// Takes all finalizers off an object that is being deleted, as people do who are in a hurry.
async fn tear_off(rig: &Rig<'_>, kind: &str, name: &str) -> Result<()> {
    rig.scenario.kubectl(&["delete", kind, name, "--wait=false"]).await?;
    let patch = json!({"metadata": {"finalizers": null}}).to_string();
    rig.scenario.kubectl(&["patch", kind, name, "--type=merge", "--patch", &patch]).await?;
    eventually(&format!("{kind} {name} is gone"), async || {
        let found = rig.scenario.kubectl(&["get", kind, name, "--ignore-not-found", "--output=name"]).await?;
        // A controller may have put its finalizer back before it saw the deletion.
        if !found.is_empty() {
            rig.scenario.kubectl(&["patch", kind, name, "--type=merge", "--patch", &patch]).await?;
        }
        Ok(Look::when(found.is_empty(), "it is there"))
    })
    .await
}

async fn cloud_is_empty(rig: &Rig<'_>) -> Result<()> {
    eventually("nothing is left in the cloud", async || {
        let left = rig.scenario.simulator().leftovers(Some(&rig.scenario.region));
        let pool = rig.pools().get_opt("workers").await?.is_some();
        Ok(Look::when(left.is_empty() && !pool, format!("{left:?}, our object: {pool}")))
    })
    .await
}

// Rules: E1
#[tokio::test]
async fn a_deletion_removes_machines_group_template_and_then_finalizer() -> Result<()> {
    rule("e1-order", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(3), 3).await?;
        let machines: Vec<String> =
            rig.machines_of("workers").await?.iter().map(ResourceExt::name_any).collect();
        let mark = rig.mark();
        rig.delete("workers").await?;

        let calls = rig.mutations_since(mark);
        let at = |action: &str| {
            let call = calls.iter().find(|call| call.action == action);
            call.and_then(|call| call.wall_time).with_context(|| format!("no {action} in {calls:?}"))
        };
        ensure!(at("SuspendProcesses")? < at("DeleteAutoScalingGroup")?);
        ensure!(at("DeleteAutoScalingGroup")? < at("DeleteLaunchTemplate")?);
        let writes = rig.writes()?;
        for name in &machines {
            // Core's last write takes its finalizer off; by then the Machine was drained.
            let last = writes
                .iter()
                .rfind(|write| write.resource == "machines" && write.name == *name && write.code < 300)
                .context("no write of a Machine")?;
            ensure!(last.received < at("DeleteAutoScalingGroup")?, "{name} went at {}", last.received);
        }
        let released = writes
            .iter()
            .rfind(|write| {
                write.resource == "asgmachinepools" && write.user == rig.user() && write.code < 300
            })
            .context("no write of ours")?;
        ensure!(released.at > at("DeleteLaunchTemplate")?);
        // Each instance was ended by us, after its drain, and none by the force of the group's deletion.
        let ended: usize = calls
            .iter()
            .filter(|call| call.action == "TerminateInstanceInAutoScalingGroup")
            .map(|call| call.instances.len())
            .sum();
        ensure!(ended == 3, "{ended} ends");
        Ok(())
    })
    .await
}

// Rules: E2, E6
#[tokio::test]
async fn deleting_a_cluster_deletes_its_pools_without_drains() -> Result<()> {
    rule("e2-cluster", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        // Pods that nobody may evict stand in nobody's way: with its Cluster, a Node is not drained.
        let node = rig.instances()[0].private_dns_name.clone();
        let name = format!("guarded-{}", rig.scenario.namespace);
        let guarded = guarded_pod(&name, &node).to_string();
        rig.cluster()?.kubectl().feed(["apply", "--filename=-"], &guarded).await?;
        // The bootstrap data are gone already.
        rig.scenario.kubectl(&["delete", "secret", "workers-bootstrap"]).await?;
        rig.scenario.kubectl(&["delete", "cluster", CLUSTER, "--wait=false"]).await?;
        rig.gone("workers").await?;
        eventually("the Cluster is gone", async || {
            Ok(Look::when(rig.clusters().get_opt(CLUSTER).await?.is_none(), "it is there"))
        })
        .await?;
        let evictions = rig
            .workload_writes()
            .await?
            .into_iter()
            .filter(|write| write.subresource == "eviction" && write.name == name);
        ensure!(evictions.count() == 0);
        rig.cluster()?
            .kubectl()
            .run(["delete", "pod,poddisruptionbudget", &name, "--namespace=default", "--wait=false"])
            .await?;
        Ok(())
    })
    .await
}

/// The namespace controller deletes everything at once and in no order, Secrets and ASGMachines included, and nothing can be
/// created any more: no ASGMachine for an instance that AWS has just launched, and no event.
// Rules: E2, E6
#[tokio::test]
async fn deleting_a_namespace_leaves_nothing() -> Result<()> {
    rule("e2-namespace", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        rig.scale("workers", 4).await?;
        eventually("AWS launches more", async || {
            let desired = rig.group()?.desired;
            Ok(Look::when(desired == 4, format!("{desired}")))
        })
        .await?;
        let namespace = rig.scenario.namespace.as_str();
        rig.scenario.kubectl(&["delete", "namespace", namespace, "--wait=false"]).await?;
        rig.gone("workers").await?;
        eventually("the namespace is gone", async || {
            let args = ["get", "namespace", namespace, "--ignore-not-found", "--output=yaml"];
            let found = rig.scenario.kubectl(&args).await?;
            Ok(Look::when(found.is_empty(), found))
        })
        .await
    })
    .await
}

/// The garbage collector deletes in the foreground what an object owns, or takes the reference to that object off. Without a drain
/// the pod that nobody may evict would end with its instance.
// Rules: D7, E1
#[tokio::test]
async fn a_deletion_in_the_foreground_drains() -> Result<()> {
    rule("e1-foreground", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let first = rig.instances()[0].clone();
        let name = format!("guarded-{}", rig.scenario.namespace);
        let guarded = guarded_pod(&name, &first.private_dns_name).to_string();
        rig.cluster()?.kubectl().feed(["apply", "--filename=-"], &guarded).await?;
        let foreground = ["--cascade=foreground", "--wait=false"];
        let of_owner = [&["delete", "machinepool", "workers"], &foreground[..]].concat();
        let refused = rig.scenario.kubectl(&of_owner).await;
        let refused = refused.err().context("the API server accepts it")?.to_string();
        ensure!(refused.contains("without a drain"), "{refused}");
        let of_pool = [&["delete", "asgmachinepool", "workers"], &foreground[..]].concat();
        rig.scenario.kubectl(&of_pool).await?;
        eventually("an eviction is tried", async || {
            let writes = rig.workload_writes().await?.into_iter();
            let tried = writes.filter(|write| write.subresource == "eviction" && write.name == name).count();
            Ok(Look::when(tried > 0, "none"))
        })
        .await?;
        ensure!(
            rig.instances().iter().any(|one| one.id == first.id),
            "it was terminated although its pod runs"
        );
        rig.cluster()?
            .kubectl()
            .run(["delete", "pod,poddisruptionbudget", &name, "--namespace=default", "--wait=false"])
            .await?;
        rig.scenario.kubectl(&["delete", "machinepool", "workers", "--wait=false"]).await?;
        rig.gone("workers").await
    })
    .await
}

/// A pod on a Node, and a disruption budget that lets nobody evict it.
pub fn guarded_pod(name: &str, node: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
            "spec": {
                "nodeName": node,
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "main"}],
            },
        },
        {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}},
        },
    ]})
}

// Rules: E3
#[tokio::test]
async fn a_pool_that_created_nothing_is_deleted_at_once() -> Result<()> {
    rule("e3-nothing", Setup::default(), async |rig| {
        let pool = rig.pool("workers").replicas(1);
        rig.scenario.apply(&pool.ours().to_string()).await?;
        rig.pool_until("workers", capasg_e2e::DEADLINE, |pool| {
            Look::when(pool.status.is_some(), "no status")
        })
        .await?;
        rig.scenario.kubectl(&["delete", "asgmachinepool", "workers", "--timeout=60s"]).await?;
        ensure!(rig.mutations() == 0);

        // Nor does one stay whose group AWS has always refused.
        rig.apply(&rig.pool("workers").replicas(1).with("spec/subnets/0/id", "subnet-0000000000000bad0"))
            .await?;
        rig.pool_until("workers", capasg_e2e::DEADLINE, |pool| {
            let status = serde_json::to_string(&pool.status).unwrap_or_default();
            Look::when(status.contains("subnet-0000000000000bad0"), status)
        })
        .await?;
        rig.delete("workers").await
    })
    .await
}

// Rules: E4
#[tokio::test]
async fn a_pool_is_deleted_without_machinepool_and_cluster() -> Result<()> {
    rule("e4-torn-off", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        // Paused while others tear the rest off, so that what is left is seen all at once.
        let paused = |value: serde_json::Value| json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}});
        rig.patch_pool("workers", &paused(json!("true"))).await?;
        eventually("the pause is reported", async || {
            let status = rig.pools().get("workers").await?.status.unwrap_or_default();
            let reported = condition(&status.conditions, "Paused");
            Ok(Look::when(reported == "True/Paused", reported))
        })
        .await?;
        let mark = rig.mark();
        tear_off(rig, "cluster", CLUSTER).await?;
        tear_off(rig, "machinepool", "workers").await?;
        rig.scenario.kubectl(&["delete", "asgmachinepool", "workers", "--wait=false"]).await?;
        reconciled(rig, "workers").await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));
        ensure!(rig.instances().len() == 2, "instances were terminated in the pause");
        rig.patch_pool("workers", &paused(serde_json::Value::Null)).await?;
        cloud_is_empty(rig).await?;
        eventually("no instance's object is left", async || {
            let left = rig.asg_machines_of("workers").await?.len();
            Ok(Look::when(left == 0, format!("{left}")))
        })
        .await
    })
    .await
}

// Rules: E4
#[tokio::test]
async fn a_pool_is_deleted_without_machinepool() -> Result<()> {
    rule("e4-no-owner", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        tear_off(rig, "machinepool", "workers").await?;
        rig.scenario.kubectl(&["delete", "asgmachinepool", "workers", "--wait=false"]).await?;
        cloud_is_empty(rig).await
    })
    .await
}
