//! What a person can change, as hashes: when one differs, what was refused or has stopped is tried anew.

use capasg_api::names::annotations;
use kube::ResourceExt;

use super::{memory::PoolMemory, observe::Scene, stamp::hash};

/// A hash of what a person changes to say that the cause of failed launches is mended: bootstrap tokens and replicas
/// change by themselves.
pub(super) fn wish_key(scene: &Scene) -> String {
    let mut spec = scene.pool.spec.clone();
    spec.provider_id = None;
    spec.provider_id_list = Vec::new();
    let version = scene.machine_pool.as_ref().and_then(|owner| owner.version().map(str::to_owned));
    hash(&(spec, version, scene.pool.annotations().get(annotations::RETRY)))
}

/// A hash of what a person can change: a refused call is tried at once when it changes (design section 3).
pub(super) fn retry_key(scene: &Scene, memory: &PoolMemory) -> String {
    let mut spec = scene.pool.spec.clone();
    spec.provider_id = None;
    spec.provider_id_list = Vec::new();
    let owner = scene
        .machine_pool
        .as_ref()
        .map(|owner| (&owner.spec.replicas, &owner.spec.template, &owner.spec.failure_domains));
    let retry = scene.pool.annotations().get(annotations::RETRY);
    let bootstrap = memory.bootstrap.as_ref().map(|b| (&b.spec, &b.data));
    hash(&(spec, owner, retry, bootstrap))
}
