//! J: pools of a ClusterClass, made and changed by core's topology controller from the class that we ship.

use anyhow::{Context as _, Result, ensure};
use capasg_api::ASGMachinePoolTemplate;
use capasg_e2e::{CLASS, CLUSTER, Rig, Setup, Topology, applied_by_topology, condition_of, eventually, rule};
use capasg_environment::{Look, wait_for_object};
use capasg_fake_aws::ec2::Image;
use chrono::Utc;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::json;

/// The template of our class.
const TEMPLATE: &str = "asg-development-workers";

fn templates(rig: &Rig<'_>) -> Api<ASGMachinePoolTemplate> {
    Api::namespaced(rig.scenario.client.clone(), &rig.scenario.namespace)
}

// Rules: J1, J2, J5, J6, J7
// Pains: P18
#[tokio::test]
async fn a_class_makes_pools_and_changes_them_in_place() -> Result<()> {
    rule("j1-class", Setup::bare(), async |rig| {
        let version = rig.scenario.environment.tools().kubernetes_version().to_owned();
        let topology = rig.topology(&version, 2, |_| ()).await?;
        let before = topology.running("workers", 2, &version).await?;
        topology.reconciled("True/ReconcileSucceeded", "").await?;
        made_from_the_class(rig, &before).await?;
        a_pool_waits_for_its_machine_pool(rig, &before)?;

        // Tags: the group has them, nothing rolls.
        let instances = topology.instances_of(&before);
        topology.set_variable("tags", json!({"team": "nights"})).await?;
        eventually("the group is tagged", async || {
            let group = rig.group_of(&topology.pool("workers").await?.pool).context("no group")?;
            Ok(Look::when(
                group.tags.get("team").is_some_and(|tag| tag == "nights"),
                format!("{:?}", group.tags),
            ))
        })
        .await?;
        // One more type: the group may use it, nothing rolls.
        topology.set_variable("instanceTypes", json!([{"type": "m7i.large"}, {"type": "m6i.large"}])).await?;
        eventually("the pool may use both types", async || {
            let pool = topology.pool("workers").await?.pool;
            let current =
                pool.status.as_ref().map(|status| status.observed_generation) == pool.metadata.generation;
            Ok(Look::when(
                current && pool.spec.instance_types.len() == 2,
                format!("{:?}", pool.spec.instance_types),
            ))
        })
        .await?;
        topology.reconciled("True/ReconcileSucceeded", "").await?;
        let after = topology.running("workers", 2, &version).await?;
        ensure!(
            after.pool.uid() == before.pool.uid() && after.owner.uid() == before.owner.uid(),
            "another object"
        );
        ensure!(after.pool.spec.provider_id == before.pool.spec.provider_id, "another group");
        ensure!(topology.instances_of(&after) == instances, "instances were replaced");

        a_template_is_edited(rig, &topology).await?;
        another_image_rolls(rig, &topology, &version).await?;
        region_is_refused(rig, &topology).await?;
        a_tag_goes_with_its_variable(rig, &topology).await?;
        rig.scenario.kubectl(&["delete", "cluster", CLUSTER, "--wait=false"]).await?;
        rig.gone(&after.owner.name_any()).await
    })
    .await
}

async fn made_from_the_class(rig: &Rig<'_>, made: &capasg_e2e::TopologyPool) -> Result<()> {
    let classes = rig.core("ClusterClass");
    let class = wait_for_object(&classes, CLASS, capasg_e2e::DEADLINE, |class| {
        let found = condition_of(class, "RefVersionsUpToDate");
        Look::from_option((found["status"] == "True").then(|| class.clone()), found.to_string())
    })
    .await?;
    let template = templates(rig).get(TEMPLATE).await?;
    let owner = template.owner_references().iter().find(|owner| owner.uid == class.uid().unwrap_or_default());
    ensure!(owner.is_some_and(|owner| owner.controller != Some(true)), "{:?}", template.owner_references());
    let listed = rig.scenario.kubectl(&["get", "asgmpt", "--no-headers"]).await?;
    ensure!(listed.split_whitespace().take(2).eq([TEMPLATE, CLASS]), "{listed}");

    let annotations = made.pool.annotations();
    ensure!(annotations.get("cluster.x-k8s.io/cloned-from-name").is_some_and(|name| name == TEMPLATE));
    ensure!(made.pool.spec.region == rig.scenario.region, "the variable did not arrive");
    // What the provider writes is nothing that the class applies (J3).
    let fields = applied_by_topology(&made.pool).next().unwrap_or_default();
    let spec = fields["f:spec"].as_object().context("the topology controller applied no spec")?;
    ensure!(spec.contains_key("f:region") && spec.contains_key("f:machine"), "{fields}");
    ensure!(!spec.contains_key("f:providerID") && !spec.contains_key("f:providerIDList"), "{fields}");
    ensure!(!made.pool.spec.provider_id_list.is_empty());
    Ok(())
}

/// The topology controller makes our object before the MachinePool: nothing may be done for it until then (J5, C1).
fn a_pool_waits_for_its_machine_pool(rig: &Rig<'_>, made: &capasg_e2e::TopologyPool) -> Result<()> {
    let owners = made.pool.owner_references();
    let owner = |kind: &str| owners.iter().find(|owner| owner.kind == kind);
    ensure!(owner("MachinePool").is_some_and(|owner| owner.controller == Some(true)), "{owners:?}");
    let writes = rig.writes()?;
    let created = |resource: &str| {
        let mut all = writes.iter().filter(|write| write.resource == resource && write.code == 201);
        all.next().map(|write| write.at).with_context(|| format!("no create of {resource}"))
    };
    let (pool, machine_pool) = (created("asgmachinepools")?, created("machinepools")?);
    ensure!(pool < machine_pool, "the pool was made at {pool}, the MachinePool at {machine_pool}");
    let first = rig.mutations_since(0).into_iter().next().context("no call to AWS")?;
    // AWS has a clock of its own, which goes as fast.
    let first_at = Utc::now() - (rig.scenario.simulator().now() - first.time);
    ensure!(first_at > machine_pool, "{} at {first_at}, before the MachinePool", first.action);
    Ok(())
}

/// The topology controller's own dry runs accept what an edited template changes of a pool (J2).
async fn a_template_is_edited(rig: &Rig<'_>, topology: &Topology<'_>) -> Result<()> {
    let begin = Utc::now();
    // The second edit changes a value that is there: rules on changes look at no other.
    for seconds in [77, 78] {
        let edit = json!({"spec": {"template": {"spec": {"group": {"defaultCooldownSeconds": seconds}}}}});
        templates(rig).patch(TEMPLATE, &PatchParams::default(), &Patch::Merge(&edit)).await?;
        // An edit of a template wakes nobody: the controller sees it when it looks at the Cluster next.
        topology.set_variable("tags", json!({"cooldown": seconds.to_string()})).await?;
        eventually("the pool has what the template says", async || {
            let pool = topology.pool("workers").await?.pool;
            let found = pool.spec.group.as_ref().and_then(|group| group.default_cooldown_seconds);
            Ok(Look::when(found == Some(seconds), format!("{found:?}")))
        })
        .await?;
    }
    topology.reconciled("True/ReconcileSucceeded", "").await?;
    let writes = rig.writes()?.into_iter();
    let dry: Vec<_> = writes
        .filter(|write| write.manager == capasg_e2e::TOPOLOGY && write.dry_run && write.received >= begin)
        .filter(|write| write.resource == "asgmachinepools")
        .collect();
    ensure!(!dry.is_empty() && dry.iter().all(|write| write.code == 200), "{dry:?}");
    Ok(())
}

/// Another image is written in place, and the pool rolls: what becomes of instances is ours to decide (J6).
async fn another_image_rolls(rig: &Rig<'_>, topology: &Topology<'_>, version: &str) -> Result<()> {
    let image = Image::new("ami-0123abcd", "node, hardened", "x86_64");
    rig.scenario.simulator().put_image(&rig.scenario.scope(), image);
    let before = topology.instances_of(&topology.pool("workers").await?);
    topology.set_variable("image", json!({"id": "ami-0123abcd"})).await?;
    eventually("every instance has the other image", async || {
        let of = topology.pool("workers").await?;
        let now = topology.instances_of(&of);
        let replaced = now.len() == 2 && now.iter().all(|id| !before.contains(id));
        let current = of.pool.status.as_ref().is_some_and(|status| status.up_to_date_replicas == 2);
        Ok(Look::when(replaced && current, format!("{before:?} {now:?} {:?}", of.pool.status)))
    })
    .await?;
    topology.running("workers", 2, version).await.map(drop)
}

/// A pool cannot leave its region: its refusal stands in the Cluster's condition, and goes with the edit (B14).
async fn region_is_refused(rig: &Rig<'_>, topology: &Topology<'_>) -> Result<()> {
    let mark = rig.mark();
    topology.set_variable("region", json!("us-east-1")).await?;
    let words = "spec.region: cannot be changed; create another pool";
    topology.reconciled("False/ReconcileFailed", words).await?;
    let refused = topology.pool("workers").await?.pool;
    ensure!(refused.spec.region == rig.scenario.region, "{}", refused.spec.region);
    ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));
    topology.set_variable("region", json!(rig.scenario.region)).await?;
    topology.reconciled("True/ReconcileSucceeded", "").await
}

/// What is no longer in the class goes from the pool and from AWS, although nobody names it (M5's twin for the class).
async fn a_tag_goes_with_its_variable(rig: &Rig<'_>, topology: &Topology<'_>) -> Result<()> {
    topology.set_variable("tags", json!({})).await?;
    eventually("the tag is gone", async || {
        let pool = topology.pool("workers").await?.pool;
        let group = rig.group_of(&pool).context("no group")?;
        let gone = pool.spec.tags.is_empty() && !group.tags.contains_key("team");
        Ok(Look::when(gone, format!("{:?}, {:?}", pool.spec.tags, group.tags)))
    })
    .await
}
