//! What a person can change, as hashes: when one differs, what was refused or has stopped is tried anew.

use crate::machine_pool::model::PoolObjects;
use capasg_api::{ASGMachinePoolSpec, names::annotations};
use kube::ResourceExt;

use crate::machine_pool::model::Plan;
use crate::machine_pool::model::memory::{DesiredSource, PoolMemory};
use crate::machine_pool::model::stamp::hash;

/// A hash of what a user changes to say that the cause of failed launches is corrected, and what it was made from: bootstrap
/// tokens and replicas change by themselves.
pub(in crate::machine_pool) fn desired_key(
    objects: &PoolObjects,
    memory: &PoolMemory,
) -> (DesiredSource, String) {
    let version = objects.machine_pool.as_ref().and_then(|owner| owner.version().map(str::to_owned));
    let retry = objects.pool.annotations().get(annotations::RETRY).cloned();
    let source = (objects.pool.metadata.generation.unwrap_or_default(), version, retry);
    let key = memory.sources.desired_key(&source).cloned();
    let key = key.unwrap_or_else(|| hash(&(wished_spec(objects), &source.1, &source.2)));
    (source, key)
}

/// A hash of what a person can change: a refused call is tried at once when it changes (design section 3).
///
/// Empty for a plan without calls: most have none, and the hash would be a good part of what a reconcile costs.
pub(in crate::machine_pool) fn retry_key(objects: &PoolObjects, memory: &PoolMemory, plan: &Plan) -> String {
    if plan.writes().next().is_none() {
        return String::new();
    }
    let owner = objects
        .machine_pool
        .as_ref()
        .map(|owner| (&owner.spec.replicas, &owner.spec.template, &owner.spec.failure_domains));
    let retry = objects.pool.annotations().get(annotations::RETRY);
    let bootstrap = memory.sources.bootstrap().map(|b| (&b.spec, &b.data));
    hash(&(wished_spec(objects), owner, retry, bootstrap))
}

/// The spec without what we write into it.
fn wished_spec(objects: &PoolObjects) -> ASGMachinePoolSpec {
    let mut spec = objects.pool.spec.clone();
    spec.provider_id = None;
    spec.provider_id_list = Vec::new();
    spec
}
