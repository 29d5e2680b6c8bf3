//! Whether a pool's group is as its spec and this controller's documentation say (docs/contributors/ownership.md, "In AWS"): what
//! people and mishaps change of it comes back.

use std::collections::BTreeSet;

use capasg_api::{
    ASGMachinePool,
    conditions::{NODES_READY, SCALING_UP},
    names::{TERMINATE_HOOK, annotations, tags},
    pool::OnCloudTermination,
};
use kube::ResourceExt;

use crate::{Pool, World};

/// What the group of a pool at rest lacks.
pub(super) fn lacks(world: &World, pool: &Pool, object: &ASGMachinePool, replicas: usize) -> Option<String> {
    if let Some(id) = world.detached().first() {
        return Some(format!("{id} runs outside its group"));
    }
    let group = world.group(pool)?;
    let holds = object.spec.drain(None).on_cloud_termination == OnCloudTermination::Drain;
    let has = group.hooks.iter().any(|hook| hook == TERMINATE_HOOK);
    if holds != has {
        return Some(format!("the hook is to be there: {holds}, and is: {has}"));
    }
    let owner = object.annotations().get(annotations::OWNER_ID)?;
    let wanted =
        tags::of_pool(&object.spec.tags, owner, &pool.key.namespace, &pool.cluster.name, &pool.key.name);
    if let Some((key, value)) = wanted.iter().find(|(key, value)| group.tags.get(*key) != Some(value)) {
        return Some(format!("its tag {key} is not {value:?}"));
    }
    if let Some(open) = world.instances(pool).iter().find(|one| !one.protected) {
        return Some(format!("{} is not protected", open.id));
    }
    if world.simulator.launches_first(&world.scope(), &pool.group) {
        return Some("it launches replacements before it ends instances".to_owned());
    }
    let wanted = object.spec.suspended_processes();
    let wanted: BTreeSet<&str> = wanted.iter().map(|process| process.as_str()).collect();
    let suspended: BTreeSet<&str> = group.suspended.iter().map(String::as_str).collect();
    if wanted != suspended {
        return Some(format!("{wanted:?} are to be suspended, and {suspended:?} are"));
    }
    let bounds = (0, i64::try_from(replicas).unwrap_or(i64::MAX));
    ((group.min, group.max) != bounds)
        .then(|| format!("its bounds are {:?} instead of {bounds:?}", (group.min, group.max)))
}

/// What a pool whose Nodes are all ready still reports otherwise.
pub(super) fn lacks_report(world: &World, pool: &Pool) -> Option<String> {
    let settled = [(NODES_READY, "True", "NodesReady"), (SCALING_UP, "False", "NotScalingUp")];
    let other = settled.into_iter().find(|(type_, status, reason)| !world.says(pool, type_, status, reason));
    other.map(|(type_, status, _)| format!("{type_} is not {status} although all Nodes are ready"))
}
