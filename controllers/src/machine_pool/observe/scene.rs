//! The objects around a pool: its MachinePool, its Cluster, and whether somebody paused it.

use std::sync::Arc;

use capasg_api::{
    ASGMachinePool,
    capi::{Cluster, MachinePool, PauseState, owner_machine_pool, pause_state},
    names::labels,
};
use kube::ResourceExt;

use crate::{
    ObjectKey,
    kubernetes::{Kubernetes, PoolScope, Result},
};

/// A pool with the objects around it.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The pool.
    pub pool: Arc<ASGMachinePool>,
    /// The MachinePool that controls it (C1); none before core set the reference, or after it was deleted.
    pub machine_pool: Option<Arc<MachinePool>>,
    /// The Cluster's name, from the MachinePool or the label that core sets.
    pub cluster_name: Option<String>,
    /// The Cluster; none only if the API server itself says that it is gone.
    pub cluster: Option<Arc<Cluster>>,
    /// Who asks for a pause.
    pub pause: PauseState,
}

impl Scene {
    /// Looks up what is around `pool`.
    ///
    /// # Errors
    /// The API server did not say whether a Cluster that the cache lacks exists.
    pub async fn observe(kubernetes: &dyn Kubernetes, pool: Arc<ASGMachinePool>) -> Result<Self> {
        let key = ObjectKey::of(pool.as_ref());
        let owner = owner_machine_pool(&pool).map(|owner| key.sibling(&owner.name));
        // A MachinePool that was pointed to another pool keeps its owner reference here, but is not ours any more.
        let machine_pool = owner
            .and_then(|owner| kubernetes.machine_pool(&owner))
            .filter(|owner| owner.infrastructure_pool() == Some(key.name.as_str()));
        let cluster_name = machine_pool
            .as_ref()
            .map(|owner| owner.spec.cluster_name.clone())
            .or_else(|| pool.labels().get(labels::CLUSTER_NAME).cloned())
            .filter(|name| !name.is_empty());
        let cluster = match &cluster_name {
            None => None,
            Some(name) => {
                let cluster = key.sibling(name);
                match kubernetes.cluster(&cluster) {
                    Some(cluster) => Some(cluster),
                    // A cache that lags must not look like a Cluster that is gone: deletion would not drain.
                    None => kubernetes.get_cluster(&cluster).await?,
                }
            }
        };
        let pause = pause_state(cluster.as_deref(), pool.annotations());
        Ok(Self { key, pool, machine_pool, cluster_name, cluster, pause })
    }

    /// The labels by which the pool's Machines are found. Without a MachinePool, its name is known from the owner
    /// reference that core left.
    #[must_use]
    pub fn machines_scope(&self) -> Option<PoolScope> {
        let machine_pool = match &self.machine_pool {
            Some(owner) => owner.name_any(),
            None => owner_machine_pool(&self.pool)?.name.clone(),
        };
        Some(PoolScope { pool: self.key.clone(), cluster: self.cluster_name.clone()?, machine_pool })
    }

    /// Whether the pool is being deleted.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.pool.metadata.deletion_timestamp.is_some()
    }
}
