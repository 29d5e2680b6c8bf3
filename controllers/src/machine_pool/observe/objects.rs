//! The Kubernetes objects of a pool: its MachinePool, its Cluster, and whether it is paused.

use std::sync::Arc;

use capasg_api::{
    ASGMachinePool,
    capi::{owner_machine_pool, pause_state},
    identity::IdentityRequest,
    names::labels,
};
use kube::ResourceExt;

use crate::kubernetes::{Kubernetes, Result};
use crate::{Context, ObjectKey, access::access, machine_pool::model::PoolObjects};

/// Reads the objects of `pool`.
///
/// # Errors
/// The live read of a Cluster that the cache does not have failed.
pub async fn objects(context: &Context, pool: Arc<ASGMachinePool>) -> Result<PoolObjects> {
    let kubernetes = context.kubernetes.as_ref();
    let key = ObjectKey::of(pool.as_ref());
    let owner = owner_machine_pool(&pool).map(|owner| key.sibling(&owner.name));
    // A MachinePool that refers to another pool now is still named in the owner reference here.
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
                // A Cluster that a lagging cache does not have must not count as deleted: the deletion would not drain.
                None => kubernetes.get_cluster(&cluster).await?,
            }
        }
    };
    let pause = pause_state(cluster.as_deref(), pool.annotations());
    let request = IdentityRequest::of(&pool, cluster.as_deref().into());
    let access = access(kubernetes, &context.access, context.clock.as_ref(), &request).await?;
    Ok(PoolObjects { key, pool, machine_pool, cluster_name, cluster, pause, access })
}

/// The name of a MachinePool of the pool's Cluster that refers to the pool, whichever MachinePool is its controller owner.
#[must_use]
pub fn referring_machine_pool(kubernetes: &dyn Kubernetes, objects: &PoolObjects) -> Option<String> {
    let all = kubernetes.machine_pools_of(&objects.key.namespace).into_iter();
    let referring = all.filter(|owner| {
        owner.infrastructure_pool() == Some(objects.key.name.as_str())
            && Some(&owner.spec.cluster_name) == objects.cluster_name.as_ref()
    });
    referring.map(|owner| owner.name_any()).min()
}
