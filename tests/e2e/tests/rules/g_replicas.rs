//! G: who decides how many nodes there are, and what autoscalers read.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{DEADLINE, NodeShape, Rig, Setup, condition, eventually, node_names, rule};
use capasg_environment::Look;
use capasg_fake_aws::{LogEntry, Tree};
use kube::ResourceExt as _;
use serde_json::{Value, json};

const END: &str = "TerminateInstanceInAutoScalingGroup";
const MANAGED_BY: &str = "cluster.x-k8s.io/replicas-managed-by";
const MIN: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
const MAX: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
/// Hands replicas over, and waits until group and status say so.
async fn hand_over(rig: &Rig<'_>, bounds: (i64, i64)) -> Result<()> {
    rig.patch_owner("workers", &json!({"metadata": {"annotations": {MANAGED_BY: "somebody"}}})).await?;
    eventually("the bounds are the spec's", async || {
        let group = rig.group()?;
        Ok(Look::when((group.min, group.max) == bounds, format!("{group:?}")))
    })
    .await?;
    rig.pool_until("workers", DEADLINE, |pool| {
        let by = pool.status.as_ref().and_then(|status| status.replicas_managed_by.as_deref());
        Look::when(by == Some("somebody"), format!("{by:?}"))
    })
    .await
}

/// Waits until core has followed somebody else to this many.
async fn followed(rig: &Rig<'_>, count: usize) -> Result<()> {
    eventually(&format!("replicas follow to {count}"), async || {
        let owner = rig.machine_pools().get("workers").await?;
        let replicas = owner.data["spec"]["replicas"].as_u64();
        let refs = owner.data.pointer("/status/nodeRefs").and_then(Value::as_array).map_or(0, Vec::len);
        let (machines, running) = (rig.machines_of("workers").await?.len(), rig.instances().len());
        let desired = rig.group()?.desired;
        let wanted = u64::try_from(count)?;
        Ok(Look::when(
            replicas == Some(wanted)
                && [refs, machines, running] == [count; 3]
                && desired == i64::try_from(count)?,
            format!("replicas {replicas:?}, nodes {refs}, Machines {machines}, running {running}, {desired}"),
        ))
    })
    .await
}

/// Calls of ours that set or shrink desired capacity. Somebody else's are those that a test makes itself.
fn sizes(calls: &[LogEntry], theirs: usize) -> Result<()> {
    let set = calls.iter().filter(|call| call.action == "SetDesiredCapacity").count();
    ensure!(set == theirs, "{set} calls set desired capacity, {theirs} of them somebody else's");
    for call in calls {
        let sizes = (call.action == "UpdateAutoScalingGroup"
            && call.params["DesiredCapacity"] != Value::Null)
            || (call.action == END && call.params["ShouldDecrementDesiredCapacity"] == "true");
        ensure!(!sizes, "{call:?}");
    }
    Ok(())
}

fn ids(rig: &Rig<'_>) -> BTreeSet<String> {
    rig.instances().into_iter().map(|instance| instance.id).collect()
}

// Rules: G1
#[tokio::test]
async fn desired_capacity_is_the_machine_pools_replicas() -> Result<()> {
    rule("g1-replicas", Setup::default(), async |rig| {
        let pool = rig.pool("workers").replicas(2);
        rig.run(&pool.with_owner("metadata/annotations", json!({MANAGED_BY: "false"})), 2).await?;
        let mark = rig.mark();
        rig.scale("workers", 3).await?;
        rig.running("workers", 3).await?;
        let sent: Vec<LogEntry> = rig.mutations_since(mark);
        ensure!(sent.len() == 1 && sent[0].params["DesiredCapacity"] == "3", "{sent:?}");
        let group = rig.group()?;
        ensure!((group.min, group.max, group.desired) == (0, 3, 3), "{group:?}");
        // Whoever sizes the group without being named is set right.
        rig.patch_pool("workers", &json!({"spec": {"maxSize": 5}})).await?;
        let params = Tree::new().with("AutoScalingGroupName", group.name).with("DesiredCapacity", 2);
        rig.somebody_calls("SetDesiredCapacity", params)?;
        eventually("replicas are set right", async || {
            let desired = rig.group()?.desired;
            Ok(Look::when(desired == 3, format!("{desired}")))
        })
        .await?;
        rig.running("workers", 3).await?;
        let pool = rig.pools().get("workers").await?;
        ensure!(pool.status.context("a status")?.replicas_managed_by.is_none());
        rig.delete("workers").await
    })
    .await
}

// Rules: G2, G4
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn another_actor_scales_up_down_and_to_zero() -> Result<()> {
    rule("g2-external", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2).with("spec/maxSize", 6), 2).await?;
        let (before, mark) = (ids(rig), rig.mark());
        hand_over(rig, (0, 6)).await?;
        ensure!(ids(rig) == before, "the hand-over moves nothing");

        rig.somebody_sets(4)?;
        followed(rig, 4).await?;
        let many = ids(rig);
        ensure!(many.is_superset(&before));
        rig.somebody_sets(1)?;
        followed(rig, 1).await?;
        let one = ids(rig);
        ensure!(one.is_subset(&many), "nothing was launched for what ended");
        let gone: Vec<String> = many.difference(&one).cloned().collect();

        // Each was drained before it ended: its Machine was deleted first, and core took its Node away.
        let writes = rig.writes()?;
        for id in &gone {
            let end = rig.calls_of(END).into_iter().find(|call| call.instances.contains(id));
            let end = end.with_context(|| format!("{id} was never ended by us"))?;
            ensure!(end.params["ShouldDecrementDesiredCapacity"] == "false", "{end:?}");
            let deleted = writes.iter().any(|write| {
                write.verb == "delete" && write.resource == "machines" && write.name.ends_with(id.as_str())
            });
            ensure!(deleted, "the Machine of {id} was not deleted");
        }
        rig.somebody_sets(0)?;
        followed(rig, 0).await?;
        let all: Vec<String> = many.into_iter().collect();
        let client = rig.cluster()?.client().await?;
        eventually("no Node is left", async || {
            let left = node_names(&client, &all).await?;
            Ok(Look::when(left.is_empty(), format!("{left:?}")))
        })
        .await?;
        sizes(&rig.mutations_since(mark), 3)?;

        // G4: our manager itself wrote replicas, with the rights that it ships with, and nothing else of a MachinePool.
        let ours: Vec<_> = rig
            .writes()?
            .into_iter()
            .filter(|write| write.user == rig.user() && write.resource == "machinepools")
            .collect();
        ensure!(ours.len() >= 3 && ours.iter().all(|write| write.verb == "patch"), "{ours:?}");
        ensure!(ours.iter().all(|write| write.subresource.is_empty()), "{ours:?}");
        let owner = rig.machine_pools().get("workers").await?;
        let managers = owner.managed_fields();
        let mine = managers.iter().find(|entry| entry.manager.as_deref() == Some("capasg"));
        let fields = mine.and_then(|entry| entry.fields_v1.as_ref()).context("no field manager of ours")?;
        ensure!(fields.0 == json!({"f:spec": {"f:replicas": {}}}), "{fields:?}");
        rig.delete("workers").await
    })
    .await
}

// Rules: G2
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn replicas_handed_back_keep_a_capacity_set_just_before() -> Result<()> {
    rule("g2-hand-back", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2).with("spec/maxSize", 6), 2).await?;
        hand_over(rig, (0, 6)).await?;
        rig.somebody_sets(3)?;
        rig.patch_owner("workers", &json!({"metadata": {"annotations": {MANAGED_BY: null}}})).await?;
        rig.running("workers", 3).await?;
        rig.pool_until("workers", DEADLINE, |pool| {
            let status = pool.status.clone().unwrap_or_default();
            let ours = status.replicas_managed_by.is_none() && status.desired_replicas == 3;
            Look::when(ours, format!("{status:?}"))
        })
        .await?;
        let group = rig.group()?;
        ensure!((group.min, group.max, group.desired) == (0, 3, 3), "{group:?}");
        rig.scale("workers", 1).await?;
        rig.running("workers", 1).await?;
        rig.delete("workers").await
    })
    .await
}

// Rules: G3
#[tokio::test]
async fn replicas_are_kept_within_the_limits_of_spec_and_annotations() -> Result<()> {
    rule("g3-limits", Setup::default(), async |rig| {
        let pool = rig.pool("workers").replicas(2).with("spec/minSize", 1);
        rig.run(&pool.with_owner("metadata/annotations", json!({MIN: "0", MAX: "3"})), 2).await?;
        let told = async |reason: &str| {
            rig.pool_until("workers", DEADLINE, |pool| {
                let conditions = pool.status.clone().unwrap_or_default().conditions;
                let found = condition(&conditions, "ScalingHealthy");
                Look::when(found == reason, format!("{conditions:?}"))
            })
            .await
        };
        // The annotation's upper end holds where the spec has none; core's webhook does not look at it again.
        rig.scale("workers", 5).await?;
        told("False/ReplicasOutOfBounds").await?;
        eventually("3 are kept", async || {
            let group = rig.group()?;
            Ok(Look::when(group.desired == 3 && group.max == 3, format!("{group:?}")))
        })
        .await?;
        // The spec's lower end counts before the annotation's.
        rig.scale("workers", 0).await?;
        eventually("1 is kept", async || {
            let group = rig.group()?;
            Ok(Look::when(group.desired == 1 && group.instances.len() == 1, format!("{group:?}")))
        })
        .await?;
        told("False/ReplicasOutOfBounds").await?;
        rig.scale("workers", 2).await?;
        rig.running("workers", 2).await?;
        told("True/ScalingHealthy").await?;
        rig.delete("workers").await
    })
    .await
}

// Rules: D8, G3, G5
// Pains: P14, P29, P44
#[tokio::test]
async fn the_autoscaler_scales_a_pool_from_zero_and_back_by_node() -> Result<()> {
    rule("g5-autoscaler", Setup::default(), async |rig| {
        let pool = rig
            .pool("workers")
            .replicas(0)
            .with("spec/instanceTypes", json!([{"type": "m7i.xlarge"}, {"type": "c7i.2xlarge"}]))
            .with("spec/machine/rootVolume", json!({"sizeGiB": 40}))
            .with_owner("metadata/annotations", json!({MIN: "0", MAX: "4"}));
        rig.run(&pool, 0).await?;
        let autoscaler = rig.autoscaler("workers");
        ensure!(autoscaler.bounds().await? == (0, 4));
        let expected = NodeShape {
            capacity: [("cpu", "4"), ("ephemeral-storage", "40Gi"), ("memory", "16384Mi")]
                .map(|(name, quantity)| (name.to_owned(), quantity.to_owned()))
                .to_vec(),
            info: ("amd64".to_owned(), "linux".to_owned()),
        };
        eventually("the autoscaler can tell what a node would have", async || {
            let shape = autoscaler.node_shape().await?;
            Ok(Look::when(shape.as_ref() == Some(&expected), format!("{shape:?}")))
        })
        .await?;

        autoscaler.increase(3).await?;
        rig.running("workers", 3).await?;
        ensure!(autoscaler.increase(2).await.is_err(), "it keeps to its bounds");

        // One by one, and exactly those: first the newest, which our own order would take last, then another.
        for left in [2, 1] {
            let instances = rig.instances();
            let victim = instances.last().context("an instance")?;
            let id = format!("aws:///{}/{}", victim.zone, victim.id);
            autoscaler.delete_nodes(&[id]).await?;
            rig.running("workers", left).await?;
            ensure!(!ids(rig).contains(&victim.id), "{} was marked and still runs", victim.id);
        }
        // Several at once, down to nothing.
        autoscaler.increase(2).await?;
        rig.running("workers", 3).await?;
        let all: Vec<String> =
            rig.instances().iter().map(|one| format!("aws:///{}/{}", one.zone, one.id)).collect();
        autoscaler.delete_nodes(&all).await?;
        rig.running("workers", 0).await?;
        ensure!(autoscaler.node_shape().await? == Some(expected), "and up again from there");
        rig.delete("workers").await
    })
    .await
}

// Rules: G5
#[tokio::test]
async fn status_capacity_lists_accelerators() -> Result<()> {
    rule("g5-accelerators", Setup::default(), async |rig| {
        let gpu = json!({"type": "g5.12xlarge"});
        rig.run(&rig.pool("workers").replicas(0).with("spec/instanceTypes", json!([gpu])), 0).await?;
        let capacity = |wanted: Value| {
            rig.pool_until("workers", DEADLINE, move |pool| {
                let told = pool.status.clone().unwrap_or_default().capacity;
                Look::when(json!(told) == wanted, format!("{told:?}"))
            })
        };
        capacity(json!({
            "cpu": "48", "memory": "196608Mi", "nvidia.com/gpu": "4", "ephemeral-storage": "20Gi",
        }))
        .await?;
        // A type without a GPU beside it: a pod that needs one might get a node that has none.
        let types = json!({"spec": {"instanceTypes": [gpu, {"type": "m7i.large"}]}});
        rig.patch_pool("workers", &types).await?;
        capacity(json!({"cpu": "2", "memory": "8192Mi", "ephemeral-storage": "20Gi"})).await?;
        rig.delete("workers").await
    })
    .await
}
