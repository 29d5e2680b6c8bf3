//! Claims a pool before anything is made in the cloud, and lets go of it once nothing is left there.

use capasg_api::names::{annotations, finalizers};
use kube::ResourceExt;

use super::{Next, ReconcileError, observe::Scene};
use crate::{Context, kubernetes::KubeWrite};

/// Adds finalizer and owner id before anything is made in the cloud (C6, C8). True if something was written.
///
/// # Errors
/// A write that the API server refused.
pub async fn claim(context: &Context, scene: &Scene) -> Result<bool, ReconcileError> {
    let pool = &scene.pool;
    let held = pool.finalizers().iter().any(|f| f == finalizers::POOL);
    let owner_id = pool.annotations().get(annotations::OWNER_ID);
    if held && owner_id.is_some() {
        return Ok(false);
    }
    let mut all = pool.finalizers().to_vec();
    if !held {
        all.push(finalizers::POOL.to_owned());
    }
    let write = KubeWrite::ClaimPool {
        pool: scene.key.clone(),
        resource_version: pool.resource_version().unwrap_or_default(),
        finalizers: all,
        owner_id: owner_id.cloned().unwrap_or_else(|| context.random.owner_id()),
    };
    context.kubernetes.write(&write).await?;
    Ok(true)
}

/// Removes our finalizer: nothing of the pool is left in the cloud.
///
/// # Errors
/// A write that the API server refused.
pub async fn release(context: &Context, scene: &Scene) -> Result<Next, ReconcileError> {
    let finalizers_left: Vec<String> =
        scene.pool.finalizers().iter().filter(|f| *f != finalizers::POOL).cloned().collect();
    let write = KubeWrite::ReleasePool {
        pool: scene.key.clone(),
        resource_version: scene.pool.resource_version().unwrap_or_default(),
        finalizers: finalizers_left,
    };
    context.kubernetes.write(&write).await?;
    Ok(Next::default())
}
