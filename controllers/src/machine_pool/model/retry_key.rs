//! Hashes of what a user can change: when one differs, a call that was rejected, or that stopped, is tried again.

use capasg_api::ASGMachinePoolSpec;

use crate::machine_pool::model::memory::{DesiredSource, PoolMemory};
use crate::machine_pool::model::stamp::hash;
use crate::machine_pool::model::{Plan, PoolObjects};

/// The hash of what a user changes after correcting the cause of failed launches, with its source. Bootstrap tokens and
/// replicas are not included, since they change by themselves.
pub(in crate::machine_pool) fn desired_key(
    objects: &PoolObjects,
    memory: &PoolMemory,
) -> (DesiredSource, String) {
    let version = objects.machine_pool.as_ref().and_then(|owner| owner.version().map(str::to_owned));
    let source = (objects.pool.metadata.generation.unwrap_or_default(), version);
    let key = memory.sources.desired_key(&source).cloned();
    let key = key.unwrap_or_else(|| hash(&(user_spec(objects), &source.1)));
    (source, key)
}

/// The hash of what a user can change: a rejected call is tried again at once when it changes.
///
/// Empty for a plan without calls, as most are: the hash would be a large part of the cost of a reconcile.
pub(in crate::machine_pool) fn retry_key(objects: &PoolObjects, memory: &PoolMemory, plan: &Plan) -> String {
    if plan.writes().next().is_none() { String::new() } else { user_key(objects, memory) }
}

/// The same, whatever the plan is.
pub(in crate::machine_pool) fn user_key(objects: &PoolObjects, memory: &PoolMemory) -> String {
    let owner = objects
        .machine_pool
        .as_ref()
        .map(|owner| (&owner.spec.replicas, &owner.spec.template, &owner.spec.failure_domains));
    let bootstrap = memory.sources.bootstrap().map(|b| (&b.spec, &b.data));
    // Other credentials may be allowed what these are not. The text has no secrets.
    let identity = objects.access.identity.as_ref().map(|identity| format!("{identity:?}")).ok();
    hash(&(user_spec(objects), owner, bootstrap, identity))
}

/// The spec without the fields that this controller writes.
fn user_spec(objects: &PoolObjects) -> ASGMachinePoolSpec {
    let mut spec = objects.pool.spec.clone();
    spec.provider_id = None;
    spec.provider_id_list = Vec::new();
    spec
}
