//! What a person can change, as hashes: when one differs, what was refused or has stopped is tried anew.

use capasg_api::{ASGMachinePoolSpec, names::annotations};
use kube::ResourceExt;

use super::{
    memory::PoolMemory,
    observe::Scene,
    stamp::hash,
    state::{Plan, Step},
};

/// What a wish was hashed from: the spec by its generation, the version, the annotation.
type Source = (i64, Option<String>, Option<String>);

/// The hash of a wish, and what it is of.
#[derive(Debug, Default)]
pub struct KnownWish(Option<(Source, String)>);

/// A hash of what a person changes to say that the cause of failed launches is mended: bootstrap tokens and replicas
/// change by themselves.
pub(super) fn wish_key(scene: &Scene, known: &mut KnownWish) -> String {
    let version = scene.machine_pool.as_ref().and_then(|owner| owner.version().map(str::to_owned));
    let retry = scene.pool.annotations().get(annotations::RETRY).cloned();
    let source = (scene.pool.metadata.generation.unwrap_or_default(), version, retry);
    if let Some((_, key)) = known.0.as_ref().filter(|(of, _)| *of == source && of.0 > 0) {
        return key.clone();
    }
    let (_, version, retry) = &source;
    let key = hash(&(wished_spec(scene), version, retry));
    known.0 = Some((source, key.clone()));
    key
}

/// A hash of what a person can change: a refused call is tried at once when it changes (design section 3).
///
/// Empty for a plan without calls: most have none, and the hash would be a good part of what a reconcile costs.
pub(super) fn retry_key(scene: &Scene, memory: &PoolMemory, plan: &Plan) -> String {
    if !plan.steps.iter().any(|step| matches!(step, Step::Cloud(_))) {
        return String::new();
    }
    let owner = scene
        .machine_pool
        .as_ref()
        .map(|owner| (&owner.spec.replicas, &owner.spec.template, &owner.spec.failure_domains));
    let retry = scene.pool.annotations().get(annotations::RETRY);
    let bootstrap = memory.bootstrap.as_ref().map(|b| (&b.spec, &b.data));
    hash(&(wished_spec(scene), owner, retry, bootstrap))
}

/// The spec without what we write into it.
fn wished_spec(scene: &Scene) -> ASGMachinePoolSpec {
    let mut spec = scene.pool.spec.clone();
    spec.provider_id = None;
    spec.provider_id_list = Vec::new();
    spec
}
