//! Reads the Machines and ASGMachines of one pool, from the caches or by LISTs.

use std::{collections::BTreeSet, sync::Arc};

use capasg_api::{
    ASGMachine,
    capi::Machine,
    names::{labels, machine_name, must_format_value},
};
use kube::ResourceExt;

use crate::Context;
use crate::kubernetes::{KubeError, PoolScope};
use crate::machine_pool::model::{Machines, PoolObjects};

/// The live Machines of a pool. Machines are listed before ASGMachines: a Machine's ASGMachine is older.
///
/// # Errors
/// A LIST failed.
pub async fn live_machines(context: &Context, objects: &PoolObjects) -> Result<Machines, KubeError> {
    let cached = cached_machines(context, objects);
    let Some(scope) = scope(objects, &cached) else { return Ok(cached) };
    let machines = context.kubernetes.list_machines(&scope).await?;
    let mut asg_machines = context.kubernetes.list_asg_machines(&scope).await?;
    // A user may have edited the labels that the list selects by; the cache selects by owner.
    let listed: BTreeSet<String> = asg_machines.iter().map(|machine| machine.name_any()).collect();
    let others = cached.asg_machines.into_iter().filter(|machine| !listed.contains(&machine.name_any()));
    asg_machines.extend(others);
    Ok(ours(context, objects, asg_machines, machines))
}

/// An instance ID has this many characters.
const ANY_ID: &str = "i-00000000000000000";

/// Leaves out the Machines of other pools that the same MachinePool refers to or once referred to.
fn ours(
    context: &Context,
    objects: &PoolObjects,
    asg_machines: Vec<Arc<ASGMachine>>,
    mut machines: Vec<Arc<Machine>>,
) -> Machines {
    let known: BTreeSet<String> = asg_machines.iter().map(|machine| machine.name_any()).collect();
    let is_named = |name: &str| {
        let instance = name.rfind("i-").map_or("", |at| &name[at..]);
        machine_name(&objects.key.name, instance) == name
    };
    machines.retain(|machine| {
        let name = &machine.spec.infrastructure_ref.name;
        known.contains(name) || is_named(name)
    });
    if machines.iter().any(|machine| !known.contains(&machine.spec.infrastructure_ref.name)) {
        let namesakes = of_namesakes(context, objects);
        machines.retain(|machine| {
            let name = &machine.spec.infrastructure_ref.name;
            known.contains(name) || !namesakes.contains(name)
        });
    }
    Machines { asg_machines, machines }
}

/// The ASGMachines of other pools whose Machines have names like those of this one: a name that is too long is truncated.
fn of_namesakes(context: &Context, objects: &PoolObjects) -> BTreeSet<String> {
    let key = &objects.key;
    let pools = context.kubernetes.pools_of(&key.namespace).into_iter().map(|pool| pool.name_any());
    let is_alike = |name: &String| machine_name(name, ANY_ID) == machine_name(&key.name, ANY_ID);
    let namesakes = pools.filter(|name| *name != key.name && is_alike(name));
    let machines = namesakes.flat_map(|name| context.kubernetes.asg_machines(&key.sibling(name)));
    machines.map(|machine| machine.name_any()).collect()
}

/// The cached Machines of a pool: those with its labels, and those with the names of its ASGMachines. After an ASGMachine was
/// relabelled for another MachinePool, its Machine has the label from before until core changes that.
#[must_use]
pub fn cached_machines(context: &Context, objects: &PoolObjects) -> Machines {
    let kubernetes = context.kubernetes.as_ref();
    let mut found = Machines { asg_machines: kubernetes.asg_machines(&objects.key), machines: Vec::new() };
    found.machines = scope(objects, &found).map(|scope| kubernetes.machines(&scope)).unwrap_or_default();
    let labelled: BTreeSet<String> = found.machines.iter().map(|machine| machine.name_any()).collect();
    let names = found.asg_machines.iter().map(|machine| machine.name_any());
    let others = names.filter(|name| !labelled.contains(name));
    found.machines.extend(others.filter_map(|name| kubernetes.machine(&objects.key.sibling(name))));
    ours(context, objects, found.asg_machines, found.machines)
}

/// The labels of the pool's Machines: for its MachinePool, and those of `known`. The pool may have lost the reference to its
/// MachinePool (`kubectl delete machinepool --cascade=orphan`), or be owned by another one now: Machines that exist have
/// the labels from before, and are drained all the same.
fn scope(objects: &PoolObjects, known: &Machines) -> Option<PoolScope> {
    let asg_machines =
        known.asg_machines.iter().filter_map(|machine| machine.labels().get(labels::POOL_NAME));
    let machines = known.machines.iter().filter_map(|machine| machine.labels().get(labels::POOL_NAME));
    let labelled: BTreeSet<&String> = asg_machines.chain(machines).collect();
    let owner = objects.machine_pool_name().map(|name| must_format_value(&name));
    let pool_names: BTreeSet<String> = labelled.into_iter().cloned().chain(owner).collect();
    let cluster = objects.cluster_name.clone().filter(|_| !pool_names.is_empty())?;
    Some(PoolScope { pool: objects.key.clone(), cluster, pool_names })
}
