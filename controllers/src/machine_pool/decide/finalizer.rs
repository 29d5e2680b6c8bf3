//! Decides about our finalizer: it is added before anything is created in AWS (C6, C8), and removed once nothing is
//! left there.

use capasg_api::names::finalizers;
use kube::ResourceExt;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::model::{Part, PoolObjects};

/// Adds the finalizer and the owner ID. The write wakes the pool again.
#[must_use]
pub fn add(objects: &PoolObjects, owner_id: &str) -> Part {
    let mut all = objects.pool.finalizers().to_vec();
    if !objects.has_finalizer() {
        all.push(finalizers::POOL.to_owned());
    }
    Part::of(KubeWrite::AddPoolFinalizer {
        pool: objects.key.clone(),
        resource_version: objects.pool.resource_version().unwrap_or_default(),
        finalizers: all,
        owner_id: owner_id.to_owned(),
    })
}

/// Removes the finalizer.
#[must_use]
pub fn remove(objects: &PoolObjects) -> Part {
    let others = objects.pool.finalizers().iter().filter(|finalizer| *finalizer != finalizers::POOL);
    Part::of(KubeWrite::RemovePoolFinalizer {
        pool: objects.key.clone(),
        resource_version: objects.pool.resource_version().unwrap_or_default(),
        finalizers: others.cloned().collect(),
    })
}
