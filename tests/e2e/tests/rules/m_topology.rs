//! M: `clusterctl move` of a cluster whose objects the topology controller makes, there and back in the middle of a
//! rollout. What the topology controller owns of a pool, it owns afterwards: it takes a field back by leaving it out.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use capasg_api::ASGMachinePool;
use capasg_e2e::{
    CLUSTER, Rig, Setup, TOPOLOGY, Topology, TopologyPool, applied_by_topology, condition_of, eventually,
    rule,
    target::{self, Target},
    text,
};
use capasg_environment::{Look, Management, dynamic, stand_in};
use capasg_fake_aws::{LogEntry, ec2::Image};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

const REPLICAS: usize = 3;
const NEW_IMAGE: &str = "ami-0123abcd";
/// What a move takes along; nothing of it stays.
const MOVED: &str = "clusters.cluster.x-k8s.io,machinepools.cluster.x-k8s.io,machines.cluster.x-k8s.io,asgmachinepools,\
                     asgmachines,awsclusters,kubeadmcontrolplanes";

/// The test's namespace in one of the two management clusters.
struct Side<'a> {
    rig: &'a Rig<'a>,
    management: &'a Management,
    client: Client,
}

impl<'a> Side<'a> {
    async fn new(rig: &'a Rig<'a>, management: &'a Management) -> Result<Self> {
        Ok(Self { rig, management, client: management.api().client().await? })
    }

    fn core(&self, kind: &str) -> Api<DynamicObject> {
        dynamic(&self.client, &self.rig.scenario.namespace, "cluster.x-k8s.io", "v1beta2", kind)
    }

    async fn pool(&self) -> Result<TopologyPool> {
        let mut owners = self.core("MachinePool").list(&ListParams::default()).await?.items;
        ensure!(owners.len() == 1, "{} MachinePools", owners.len());
        let owner = owners.pop().context("no MachinePool")?;
        let pools: Api<ASGMachinePool> = Api::namespaced(self.client.clone(), &self.rig.scenario.namespace);
        let pool = pools.get(text(&owner, "/spec/template/spec/infrastructureRef/name")).await?;
        Ok(TopologyPool { owner, pool })
    }

    /// Waits until core, our object and AWS agree on all replicas, and every Machine has its Node.
    async fn running(&self) -> Result<TopologyPool> {
        eventually("the pool runs", async || {
            let of = self.pool().await?;
            let status = of.pool.status.clone().unwrap_or_default();
            let machines = self.core("Machine").list(&ListParams::default()).await?.items;
            let joined = machines.iter().filter(|one| !text(one, "/status/nodeRef/name").is_empty()).count();
            let group = self.rig.group_of(&of.pool).map(|group| group.instances.len());
            let agreed = text(&of.owner, "/status/phase") == "Running"
                && usize::try_from(status.up_to_date_replicas)? == REPLICAS
                && of.pool.spec.provider_id_list.len() == REPLICAS
                && (machines.len(), joined) == (REPLICAS + 1, REPLICAS + 1)
                && group == Some(REPLICAS);
            let phase = text(&of.owner, "/status/phase");
            let count = machines.len();
            let why = format!("phase {phase}, {count} Machines, {joined} with Nodes, {group:?}, {status:?}");
            Ok(Look::from_option(agreed.then_some(of), why))
        })
        .await
    }

    async fn reconciled(&self) -> Result<()> {
        eventually("the topology is reconciled", async || {
            let cluster = self.core("Cluster").get(CLUSTER).await?;
            let found = condition_of(&cluster, "TopologyReconciled");
            let current = found["observedGeneration"].as_i64() == cluster.metadata.generation;
            Ok(Look::when(current && found["status"] == "True", found.to_string()))
        })
        .await
    }

    /// Sets a variable of the topology, or removes it.
    async fn set_variable(&self, name: &str, value: Option<Value>) -> Result<()> {
        let clusters = self.core("Cluster");
        let cluster = clusters.get(CLUSTER).await?;
        let mut all = cluster.data["spec"]["topology"]["variables"].as_array().cloned().unwrap_or_default();
        all.retain(|variable| variable["name"] != name);
        all.extend(value.map(|value| json!({"name": name, "value": value})));
        let patch = json!({"spec": {"topology": {"variables": all}}});
        clusters.patch(CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Waits until the rollout waits for the Nodes of new instances, which do not become Ready. clusterctl lists the objects
    /// before it pauses the Cluster: what is created or deleted in between it leaves behind or misses.
    async fn rollout_waits(&self, topology: &Topology<'_>) -> Result<()> {
        let nodes: Api<Node> = Api::all(topology.cluster.client().await?);
        eventually("the rollout waits for Ready Nodes", async || {
            let instances = self.rig.instances();
            let (new, old): (Vec<_>, Vec<_>) = instances.iter().partition(|one| one.image == NEW_IMAGE);
            for one in &new {
                topology.kubelets.set_ready(&one.id, false);
            }
            let joined = topology.kubelets.nodes();
            let mut unready = 0;
            for name in new.iter().filter_map(|one| joined.get(&one.id)) {
                let conditions = nodes.get(name).await?.status.and_then(|status| status.conditions);
                unready += conditions
                    .iter()
                    .flatten()
                    .filter(|one| one.type_ == "Ready" && one.status == "False")
                    .count();
            }
            let machines = self.core("Machine").list(&ListParams::default()).await?.items;
            let settled = machines.iter().all(|one| {
                one.metadata.deletion_timestamp.is_none() && !text(one, "/status/nodeRef/name").is_empty()
            });
            let counts = (new.len(), old.len(), unready, machines.len());
            // The one of the control plane, and one of a surge.
            let waits = settled
                && !new.is_empty()
                && !old.is_empty()
                && unready == new.len()
                && instances.len() == REPLICAS + 1
                && machines.len() == instances.len() + 1;
            Ok(Look::when(waits, format!("new, old, not Ready, Machines: {counts:?}")))
        })
        .await
    }

    async fn left(&self) -> Result<String> {
        let namespace = &self.rig.scenario.namespace;
        let args = ["get", MOVED, "--namespace", namespace, "--output=name"];
        self.management.api().kubectl().run(args).await
    }
}

/// The fields that the topology controller applies.
fn applied(object: &impl Resource) -> Result<Value> {
    let mut own = applied_by_topology(object);
    let fields = own.next();
    ensure!(own.next().is_none(), "two entries of {TOPOLOGY}");
    let mut fields =
        fields.with_context(|| format!("{TOPOLOGY} owns nothing of {:?}", object.meta().name))?;
    // The keys of owner references are UIDs, and a move creates the Cluster with another.
    if let Some(owners) = fields.pointer_mut("/f:metadata/f:ownerReferences") {
        *owners = json!(owners.as_object().map(|owners| owners.values().cloned().collect::<Vec<_>>()));
    }
    Ok(fields)
}

/// What it owns of the pool and of its MachinePool.
fn owned(of: &TopologyPool) -> Result<[Value; 2]> {
    Ok([applied(&of.pool)?, applied(&of.owner)?])
}

fn ids(rig: &Rig<'_>) -> BTreeSet<String> {
    rig.instances().into_iter().map(|one| one.id).collect()
}

/// The actions of certain mutations since a mark.
fn calls(rig: &Rig<'_>, mark: u64, of: impl Fn(&LogEntry) -> bool) -> Vec<String> {
    rig.mutations_since(mark).into_iter().filter(of).map(|call| call.action).collect()
}

/// Moves the settled pool to the other management cluster, whose topology controller takes back what it owns. Answers
/// the pool after the move.
async fn there(
    rig: &Rig<'_>,
    source: &Side<'_>,
    other: &Side<'_>,
    target: &Target<'_>,
) -> Result<TopologyPool> {
    let (before, instances) = (source.pool().await?, ids(rig));
    target.carry_here().await?;
    ensure!(source.left().await?.is_empty(), "left on the source: {}", source.left().await?);
    rig.provision_on_aws(other.management).await?;
    let after = other.running().await?;
    ensure!(after.pool.uid() != before.pool.uid(), "it was not moved");
    ensure!(owned(&after)? == owned(&before)?, "{:?} became {:?}", owned(&before)?, owned(&after)?);
    other.reconciled().await?;
    ensure!(ids(rig) == instances, "instances were replaced");

    other.set_variable("tags", None).await?;
    eventually("the tag is gone", async || {
        let of = other.pool().await?;
        let group = rig.group_of(&of.pool).context("no group")?;
        let gone = of.pool.spec.tags.is_empty() && !group.tags.contains_key("team");
        Ok(Look::when(gone, format!("{:?}, {:?}", of.pool.spec.tags, group.tags)))
    })
    .await?;
    Ok(after)
}

/// Moves the pool back in the middle of a rollout, which ends on the first management cluster. Answers what the topology
/// controller owned when the move began.
async fn and_back(
    rig: &Rig<'_>,
    source: &Side<'_>,
    other: &Side<'_>,
    target: &Target<'_>,
    topology: &Topology<'_>,
) -> Result<[Value; 2]> {
    let instances = ids(rig);
    other.set_variable("image", Some(json!({"id": NEW_IMAGE}))).await?;
    let new = || rig.instances().iter().filter(|one| one.image == NEW_IMAGE).count();
    other.rollout_waits(topology).await?;
    other.reconciled().await?;
    let during = owned(&other.pool().await?)?;
    target.carry_back().await?;
    ensure!(other.left().await?.is_empty(), "left on the target: {}", other.left().await?);
    ensure!(ids(rig).intersection(&instances).count() > 0, "the rollout was over");
    let mark = rig.mark();
    for id in ids(rig) {
        topology.kubelets.set_ready(&id, true);
    }
    rig.provision_on_aws(source.management).await?;
    let home = owned(&source.running().await?)?;
    ensure!(home == during, "{during:?} became {home:?}");
    ensure!(new() == REPLICAS && rig.instances().len() == REPLICAS, "{:?}", rig.instances());
    let of_the_target = calls(rig, mark, |call| call.access_key.as_deref() == Some(target::ACCESS_KEY));
    ensure!(of_the_target.is_empty(), "{of_the_target:?}");
    source.reconciled().await?;
    Ok(during)
}

// Rules: M1, M4, M5, M8
#[tokio::test]
async fn a_topology_moved_in_a_rollout_keeps_the_fields_of_its_controller() -> Result<()> {
    rule("m5-topology", Setup::bare(), async |rig| {
        let source = Side::new(rig, rig.scenario.environment.management()).await?;
        let image = Image::new(NEW_IMAGE, "node, hardened", "x86_64");
        rig.scenario.simulator().put_image(&rig.scenario.scope(), image);
        let with_a_tag = |cluster: &mut Value| {
            if let Some(all) = cluster["spec"]["topology"]["variables"].as_array_mut() {
                all.push(json!({"name": "tags", "value": {"team": "nights"}}));
            }
        };
        let topology = Box::pin(rig.topology_on_aws(REPLICAS, with_a_tag)).await?;
        source.running().await?;
        source.reconciled().await?;
        let target = rig.target().await?;
        let tools = rig.scenario.environment.tools();
        stand_in::install_aws_provider(tools, target.management.api()).await?;
        let other = Side::new(rig, target.management).await?;

        let mark = rig.mark();
        let after = Box::pin(there(rig, &source, &other, &target)).await?;
        let of_the_source = calls(rig, mark, |call| call.access_key.as_deref() != Some(target::ACCESS_KEY));
        ensure!(of_the_source.is_empty(), "{of_the_source:?}");
        let during = Box::pin(and_back(rig, &source, &other, &target, &topology)).await?;
        ensure!(during != owned(&after)?, "the topology controller owns the tag, which it removed");
        let never = ["CreateLaunchTemplate", "CreateAutoScalingGroup"];
        let created = calls(rig, mark, |call| never.contains(&call.action.as_str()));
        ensure!(created.is_empty(), "a move creates nothing: {created:?}");

        let owner = source.pool().await?.owner.name_any();
        rig.scenario.kubectl(&["delete", "cluster", CLUSTER, "--wait=false"]).await?;
        rig.gone(&owner).await?;
        target.stop().await
    })
    .await
}
