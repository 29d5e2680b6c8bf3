//! The Kubernetes objects of a pool, as a reconcile read them.

use std::sync::Arc;

use capasg_api::{
    ASGMachine, ASGMachinePool,
    capi::{Cluster, Machine, MachinePool, PauseState, owner_machine_pool},
    names::{annotations, aws_name, finalizers},
};
use capasg_cloud::Place;
use kube::ResourceExt;

use crate::{ObjectKey, access::Access, names::BLOCK_MOVE_VALUE};

/// A pool with its MachinePool and its Cluster.
#[derive(Debug, Clone)]
pub struct PoolObjects {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The pool.
    pub pool: Arc<ASGMachinePool>,
    /// The MachinePool that controls it (C1); `None` before core sets the reference, and after the MachinePool was
    /// deleted.
    pub machine_pool: Option<Arc<MachinePool>>,
    /// The Cluster's name, from the MachinePool or the label that core sets.
    pub cluster_name: Option<String>,
    /// The Cluster; `None` only if a live read shows that it is deleted.
    pub cluster: Option<Arc<Cluster>>,
    /// What pauses the pool.
    pub pause: PauseState,
    /// What the pool may use in AWS.
    pub access: Access,
}

impl PoolObjects {
    /// The names of a pool's group and launch template.
    #[must_use]
    pub fn cloud_names(&self) -> Option<(String, String)> {
        let name = aws_name(&self.key.namespace, self.cluster_name.as_deref()?, &self.key.name);
        // The ARN takes precedence over the computed name: it was written when the group was created
        // (docs/contributors/ownership.md).
        let recorded =
            self.pool.spec.provider_id.as_deref().and_then(|arn| arn.split_once("autoScalingGroupName/"));
        let group = recorded
            .map(|(_, name)| name.to_owned())
            .or_else(|| self.pool.spec.group_name().map(str::to_owned))
            .unwrap_or_else(|| name.clone());
        Some((group, name))
    }

    /// With which credentials and in which region AWS is called; `None` if the pool may not use its identity.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        let identity = self.access.identity.clone().ok()?;
        Some(Place { identity, region: self.pool.spec.region.clone() })
    }

    /// The random ID of the object that owns group and template, once it was written.
    #[must_use]
    pub fn owner_id(&self) -> Option<&str> {
        self.pool.annotations().get(annotations::OWNER_ID).map(String::as_str)
    }

    /// Whether nothing of the pool can exist in AWS: its annotation says so, and no resource is recorded.
    #[must_use]
    pub fn has_created_nothing(&self) -> bool {
        self.has_creation_mark() && !self.records_resources()
    }

    /// Whether the annotation says that no call was made that creates or changes a resource.
    #[must_use]
    pub fn has_creation_mark(&self) -> bool {
        self.pool.annotations().contains_key(annotations::NOTHING_CREATED)
    }

    /// Whether the spec records a group or its instances.
    #[must_use]
    pub fn records_group(&self) -> bool {
        let spec = &self.pool.spec;
        spec.provider_id.is_some() || !spec.provider_id_list.is_empty()
    }

    /// Whether spec or status record a group, its instances or a launch template. A tool that replaces the object with its
    /// manifest leaves the status alone.
    #[must_use]
    pub fn records_resources(&self) -> bool {
        let status = self.pool.status.as_ref();
        self.records_group()
            || status.is_some_and(|status| status.group.is_some() || status.launch_template.is_some())
    }

    /// Whether the pool has our finalizer.
    #[must_use]
    pub fn has_finalizer(&self) -> bool {
        self.pool.finalizers().iter().any(|finalizer| finalizer == finalizers::POOL)
    }

    /// The value of the annotation that blocks `clusterctl move`, whichever actor set it (F5).
    #[must_use]
    pub fn block_move(&self) -> Option<&str> {
        self.pool.annotations().get(annotations::BLOCK_MOVE).map(String::as_str)
    }

    /// Whether this controller blocks `clusterctl move`.
    #[must_use]
    pub fn blocks_move(&self) -> bool {
        self.block_move() == Some(BLOCK_MOVE_VALUE)
    }

    /// The name of the MachinePool that new ASGMachines are labelled for. If it is deleted, the owner reference tells it.
    #[must_use]
    pub fn machine_pool_name(&self) -> Option<String> {
        match &self.machine_pool {
            Some(owner) => Some(owner.name_any()),
            None => owner_machine_pool(&self.pool).map(|owner| owner.name.clone()),
        }
    }

    /// Whether the pool is being deleted.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.pool.metadata.deletion_timestamp.is_some()
    }
}

/// The Machines and ASGMachines of a pool.
#[derive(Debug, Clone, Default)]
pub struct Machines {
    /// The ASGMachines.
    pub asg_machines: Vec<Arc<ASGMachine>>,
    /// The Machines.
    pub machines: Vec<Arc<Machine>>,
}
