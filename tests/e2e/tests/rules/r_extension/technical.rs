//! Blocks that end when their cause does: in AWS, of pools, and of nodes. At each hook of an upgrade core waits for one.

use anyhow::{Result, ensure};
use capasg_api::conditions::{self, READY};
use capasg_e2e::{CLUSTER, Extension, Rig, Setup, Topology, eventually, rule, text};
use capasg_environment::Look;
use capasg_fake_aws::Fault;
use kube::{
    ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    BETWEEN, FIRST, closed_schedule, control_plane, control_plane_goes_to, message, published,
    put_image_of_first, says, why,
};

const SUBNETS: [&str; 3] = ["subnet-0a1b2c3d", "subnet-0b1c2d3e", "subnet-0c1d2e3f"];

/// Holds the deletion of a Machine before its node is drained, until it is removed.
const PRE_DRAIN: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io/e2e";

// Rules: R11, R18
#[tokio::test]
#[ignore = "long form: unit tests show each cause as well"]
async fn every_hook_of_an_upgrade_waits_until_its_cause_ends() -> Result<()> {
    Box::pin(rule("r-technical", Setup::bare(), async |rig| Box::pin(story(rig)).await)).await
}

async fn story(rig: &Rig<'_>) -> Result<()> {
    let extension = rig.extension_with(1, &[], &["--aws-api-share=0.2"]).await?;
    let topology = create(rig).await?;
    topology.running("workers", 1, FIRST).await?;
    before_the_upgrade(rig, &topology).await?;
    after_the_control_plane(rig, &topology).await?;
    let old = before_the_workers(rig, &topology).await?;
    after_the_workers(rig, &topology, &extension, &old).await?;
    rig.scenario.kubectl(&["delete", "cluster", CLUSTER]).await?;
    extension.remove().await
}

/// `BeforeClusterCreate` waits for an image.
async fn create<'a>(rig: &'a Rig<'a>) -> Result<Topology<'a>> {
    let waits = async {
        let missing = format!("images of machine pool workers do not exist in {}", rig.scenario.region);
        says(rig, &format!("BeforeClusterCreate: {missing}: /images/node/{FIRST}")).await?;
        why(rig).await?;
        ensure!(control_plane(rig).await.is_err(), "it did not hold");
        put_image_of_first(rig);
        Ok(())
    };
    let create = rig.topology(FIRST, 1, |_| ());
    let (topology, ()) = tokio::try_join!(Box::pin(create), waits)?;
    Ok(topology)
}

/// `BeforeClusterUpgrade` waits for a pool that rolls out.
async fn before_the_upgrade(rig: &Rig<'_>, topology: &Topology<'_>) -> Result<()> {
    let old = Held::new(rig, topology).await?;
    topology.set_variable("rootVolumeSizeGiB", json!(90)).await?;
    old.is_replaced(rig, topology).await?;
    topology.patch(&json!({"spec": {"topology": {"version": BETWEEN}}})).await?;
    says(rig, "BeforeClusterUpgrade: ASGMachinePools that are rolling out").await?;
    why(rig).await?;
    ensure!(text(&control_plane(rig).await?, "/spec/version") == FIRST, "it did not hold");
    old.drain(rig).await?;
    control_plane_goes_to(rig, BETWEEN).await
}

/// What `BeforeWorkersUpgrade` waits for. `AfterControlPlaneUpgrade` waits for nodes of the control plane only with an older core:
/// `older_core`.
async fn after_the_control_plane(rig: &Rig<'_>, topology: &Topology<'_>) -> Result<()> {
    // What the next hook waits for.
    let windows = json!([{"schedule": closed_schedule(), "durationSeconds": 900}]);
    change_pool(rig, topology, &json!({"disruption": {"windows": windows}})).await?;
    set_addresses(rig, 0);
    let rejected = Fault::error("UpdateAutoScalingGroup", 400, "ValidationError", "not this cooldown");
    rig.scenario.simulator().add_fault(rejected.times(None).in_region(&rig.scenario.region));
    change_pool(rig, topology, &json!({"group": {"defaultCooldownSeconds": 17}})).await?;
    eventually("the pool is not ready", async || {
        let pool = topology.pool("workers").await?.pool;
        let ready = pool.status.as_ref().and_then(|status| conditions::get(&status.conditions, READY));
        Ok(Look::when(ready.is_some_and(|ready| ready.status == "False"), format!("{ready:?}")))
    })
    .await?;
    Ok(())
}

/// `BeforeWorkersUpgrade` waits for a pool that is not ready, for its window, and for free addresses.
async fn before_the_workers(rig: &Rig<'_>, topology: &Topology<'_>) -> Result<Held> {
    let (not_ready, closed, addresses) = (
        "ASGMachinePools that are not ready",
        "no ASGMachinePool has an open window",
        "the subnets have fewer free addresses than new instances",
    );
    for words in ["BeforeWorkersUpgrade: ", not_ready, closed, addresses] {
        says(rig, words).await?;
    }
    why(rig).await?;
    change_pool(rig, topology, &json!({"disruption": null})).await?;
    no_longer_says(rig, closed).await?;
    rig.scenario.simulator().clear_faults(Some(&rig.scenario.region));
    change_pool(rig, topology, &json!({"group": null})).await?;
    no_longer_says(rig, not_ready).await?;
    holds(topology).await?;
    let old = Held::new(rig, topology).await?;
    set_addresses(rig, 4_000);
    eventually("the workers go on", async || {
        let owner = topology.pool("workers").await?.owner;
        Ok(Look::when(text(&owner, "/spec/template/spec/version") == BETWEEN, "they hold"))
    })
    .await?;
    Ok(old)
}

/// Core does not call `AfterWorkersUpgrade` before the nodes of the pools report the version, so that it does not wait here.
async fn after_the_workers(
    rig: &Rig<'_>,
    topology: &Topology<'_>,
    extension: &Extension<'_>,
    old: &Held,
) -> Result<()> {
    old.is_replaced(rig, topology).await?;
    old.drain(rig).await?;
    published(extension, &format!("UpgradeVerified: all nodes of ASGMachinePools report {BETWEEN}")).await?;
    published(extension, "UpgradeVerified: all nodes of the control plane and of ASGMachinePools").await
}

async fn holds(topology: &Topology<'_>) -> Result<()> {
    let owner = topology.pool("workers").await?.owner;
    ensure!(text(&owner, "/spec/template/spec/version") == FIRST, "it did not hold");
    Ok(())
}

async fn no_longer_says(rig: &Rig<'_>, words: &str) -> Result<()> {
    eventually(&format!("the Cluster no longer says: {words}"), async || {
        let message = message(rig).await?;
        Ok(Look::when(!message.contains(words), message))
    })
    .await
}

/// Changes the spec of the pool itself: changes of the topology wait while a hook blocks.
async fn change_pool(rig: &Rig<'_>, topology: &Topology<'_>, spec: &Value) -> Result<()> {
    let name = topology.pool("workers").await?.pool.name_any();
    let patch = Patch::Merge(json!({"spec": spec}));
    rig.pools().patch(&name, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn set_addresses(rig: &Rig<'_>, addresses: usize) {
    for subnet in SUBNETS {
        rig.scenario.simulator().set_addresses(&rig.scope(), subnet, addresses);
    }
}

/// The one Machine of the pool, whose node is not drained until the test continues.
struct Held {
    machine: String,
    instance: String,
}

impl Held {
    async fn new(rig: &Rig<'_>, topology: &Topology<'_>) -> Result<Self> {
        let owner = topology.pool("workers").await?.owner.name_any();
        let machine = eventually("the pool has a Machine", async || {
            let mut machines = rig.machines_of(&owner).await?;
            machines.retain(|one| one.metadata.deletion_timestamp.is_none());
            Ok(Look::from_option(machines.pop(), "none"))
        })
        .await?;
        let instance = text(&machine, "/spec/providerID").rsplit('/').next().unwrap_or_default().to_owned();
        let held = Self { machine: machine.name_any(), instance };
        held.annotate(rig, &json!("")).await?;
        Ok(held)
    }

    /// Waits until another instance has joined and the Machine is deleted.
    async fn is_replaced(&self, rig: &Rig<'_>, topology: &Topology<'_>) -> Result<()> {
        eventually(&format!("{} is replaced", self.instance), async || {
            let machine = rig.machines().get(&self.machine).await?;
            let joined = topology.kubelets.nodes();
            let other = joined.keys().any(|id| *id != self.instance);
            let is = other && machine.metadata.deletion_timestamp.is_some();
            Ok(Look::when(is, format!("joined: {joined:?}")))
        })
        .await
    }

    async fn drain(&self, rig: &Rig<'_>) -> Result<()> {
        self.annotate(rig, &Value::Null).await
    }

    async fn annotate(&self, rig: &Rig<'_>, value: &Value) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {PRE_DRAIN: value}}}));
        rig.machines().patch(&self.machine, &PatchParams::default(), &patch).await?;
        Ok(())
    }
}
