//! What scales pools from outside: somebody in AWS, and the Cluster Autoscaler by its documented reads and writes.

use anyhow::{Context as _, Result, ensure};
use capasg_api::ASGMachinePool;
use capasg_environment::Look;
use capasg_fake_aws::{Scope, Service, Tree};
use kube::{
    Api, ResourceExt as _,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{Rig, look::text};

const DELETE_MARK: &str = "cluster.x-k8s.io/delete-machine";
const BOUNDS: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group";

impl Rig<'_> {
    /// Somebody else's call of Auto Scaling about the test's one group.
    ///
    /// # Errors
    /// What AWS refuses.
    pub fn somebody_calls(&self, action: &str, params: Tree) -> Result<Tree> {
        let scope = Scope::region(&self.scenario.region);
        Ok(self.scenario.simulator().call(&scope, Service::AutoScaling, action, params)?)
    }

    /// Somebody else's `SetDesiredCapacity`.
    ///
    /// # Errors
    /// When AWS refuses.
    pub fn somebody_sets(&self, desired: usize) -> Result<()> {
        let params =
            Tree::new().with("AutoScalingGroupName", self.group()?.name).with("DesiredCapacity", desired);
        self.somebody_calls("SetDesiredCapacity", params).map(|_| ())
    }

    /// A node group of the Cluster Autoscaler's `clusterapi` provider: this MachinePool.
    #[must_use]
    pub fn autoscaler(&self, pool: &str) -> Autoscaler<'_> {
        Autoscaler { rig: self, pool: pool.to_owned() }
    }
}

/// The Cluster Autoscaler's view of one node group. Its module cannot be built here; this does what its `clusterapi`
/// provider is documented to do, call by call, and nothing else.
pub struct Autoscaler<'a> {
    rig: &'a Rig<'a>,
    pool: String,
}

/// What the autoscaler takes a new node for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeShape {
    /// Quantities by resource.
    pub capacity: Vec<(String, String)>,
    /// Architecture and operating system.
    pub info: (String, String),
}

impl Autoscaler<'_> {
    /// Bounds from the annotations of the MachinePool; no number there is 0.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn bounds(&self) -> Result<(u64, u64)> {
        let owner = self.owner().await?;
        let bound = |end: &str| owner.annotations().get(&format!("{BOUNDS}-{end}-size"))?.parse().ok();
        Ok((bound("min").unwrap_or(0), bound("max").unwrap_or(0)))
    }

    /// Replicas by the scale subresource of the MachinePool.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn replicas(&self) -> Result<u64> {
        let scale = self.rig.machine_pools().get_scale(&self.pool).await?;
        Ok(u64::try_from(scale.spec.and_then(|spec| spec.replicas).unwrap_or(0))?)
    }

    /// `status.capacity` and `status.nodeInfo` of the object behind `infrastructureRef`, whose resource is its kind in
    /// lower case with an `s`. `None` where cpu or memory is missing: then it cannot scale from zero.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn node_shape(&self) -> Result<Option<NodeShape>> {
        let owner = self.owner().await?;
        let reference = "/spec/template/spec/infrastructureRef";
        let kind = text(&owner, &format!("{reference}/kind"));
        ensure!(format!("{}s", kind.to_lowercase()) == "asgmachinepools", "{kind}");
        let name = text(&owner, &format!("{reference}/name"));
        let pool: ASGMachinePool = self.rig.pools().get(name).await?;
        let status = serde_json::to_value(pool.status.unwrap_or_default())?;
        let strings = |field: &str| -> Vec<(String, String)> {
            let map = status[field].as_object().into_iter().flatten();
            map.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
        };
        let capacity = strings("capacity");
        let has = |name: &str| capacity.iter().any(|(known, _)| known == name);
        let can = has("cpu") && has("memory");
        let info = |key: &str| {
            strings("nodeInfo").into_iter().find(|(known, _)| known == key).map(|(_, value)| value)
        };
        let info = (info("architecture").unwrap_or_default(), info("operatingSystem").unwrap_or_default());
        Ok(can.then_some(NodeShape { capacity, info }))
    }

    /// Raises replicas within the bounds.
    ///
    /// # Errors
    /// When it would leave the bounds, or the API server refuses.
    pub async fn increase(&self, delta: u64) -> Result<()> {
        let size = self.replicas().await? + delta;
        self.set_size(size).await
    }

    /// For each of the nodes: annotates its Machine, found by provider id, and lowers replicas by one.
    ///
    /// # Errors
    /// When a node has no Machine, the size would leave the bounds, or the API server refuses.
    pub async fn delete_nodes(&self, provider_ids: &[String]) -> Result<()> {
        let mut replicas = self.replicas().await?;
        let (min, _) = self.bounds().await?;
        ensure!(replicas >= min + u64::try_from(provider_ids.len())?, "min size reached");
        for id in provider_ids {
            if !self.mark(id).await? {
                continue;
            }
            self.set_size(replicas - 1).await?;
            replicas -= 1;
        }
        Ok(())
    }

    /// Annotates the Machine of a node, unless it goes already. An autoscaler that meets a conflict comes again.
    async fn mark(&self, id: &str) -> Result<bool> {
        let machines: Api<DynamicObject> = self.rig.machines();
        crate::eventually(&format!("the Machine of {id} is annotated"), async || {
            let found = machines.list(&kube::api::ListParams::default()).await?.items;
            let mut machine = found
                .into_iter()
                .find(|machine| text(machine, "/spec/providerID") == id)
                .with_context(|| format!("unknown machine for node {id}"))?;
            if machine.metadata.deletion_timestamp.is_some() {
                return Ok(Look::Done(false));
            }
            machine.annotations_mut().insert(DELETE_MARK.to_owned(), chrono::Utc::now().to_string());
            match machines.replace(&machine.name_any(), &PostParams::default(), &machine).await {
                Ok(_) => Ok(Look::Done(true)),
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(Look::Not(status.message)),
                Err(other) => Err(other.into()),
            }
        })
        .await
    }

    /// A merge patch of the scale subresource.
    async fn set_size(&self, size: u64) -> Result<()> {
        let (min, max) = self.bounds().await?;
        ensure!((min..=max).contains(&size), "size {size} is outside {min} to {max}");
        let patch: Value = json!({"spec": {"replicas": size}});
        let params = PatchParams::default();
        self.rig.machine_pools().patch_scale(&self.pool, &params, &Patch::Merge(&patch)).await?;
        Ok(())
    }

    async fn owner(&self) -> Result<DynamicObject> {
        Ok(self.rig.machine_pools().get(&self.pool).await?)
    }
}
