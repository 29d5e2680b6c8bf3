//! Reads the Machines and ASGMachines of one pool, from the caches or by LISTs.

use std::{collections::BTreeSet, sync::Arc};

use capasg_api::{
    ASGMachine,
    capi::Machine,
    names::{labels, machine_name},
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
    let cached = context.kubernetes.asg_machines(&objects.key);
    let Some(scope) = scope(objects, &cached) else { return Ok(ours(objects, cached, Vec::new())) };
    let machines = context.kubernetes.list_machines(&scope).await?;
    let mut asg_machines = context.kubernetes.list_asg_machines(&scope).await?;
    // A user may have edited the labels that the list selects by; the cache selects by owner.
    let listed: BTreeSet<String> = asg_machines.iter().map(|machine| machine.name_any()).collect();
    asg_machines.extend(cached.into_iter().filter(|machine| !listed.contains(&machine.name_any())));
    Ok(ours(objects, asg_machines, machines))
}

/// Leaves out the Machines of other pools that the same MachinePool refers to or once referred to.
fn ours(
    objects: &PoolObjects,
    asg_machines: Vec<Arc<ASGMachine>>,
    mut machines: Vec<Arc<Machine>>,
) -> Machines {
    let known: BTreeSet<String> = asg_machines.iter().map(|machine| machine.name_any()).collect();
    machines.retain(|machine| {
        let name = &machine.spec.infrastructure_ref.name;
        let instance = name.rfind("i-").map_or("", |at| &name[at..]);
        known.contains(name) || machine_name(&objects.key.name, instance) == *name
    });
    Machines { asg_machines, machines }
}

/// The cached Machines of a pool.
#[must_use]
pub fn cached_machines(context: &Context, objects: &PoolObjects) -> Machines {
    let asg_machines = context.kubernetes.asg_machines(&objects.key);
    let scope = scope(objects, &asg_machines);
    let machines = scope.map(|scope| context.kubernetes.machines(&scope)).unwrap_or_default();
    ours(objects, asg_machines, machines)
}

/// The labels of the pool's Machines. Where the pool has lost the reference to its MachinePool (`kubectl delete machinepool
/// --cascade=orphan`), its ASGMachines tell the name: their Machines have the same labels, and are drained all the same.
fn scope(objects: &PoolObjects, asg_machines: &[Arc<ASGMachine>]) -> Option<PoolScope> {
    objects.machines_scope().or_else(|| {
        let label = asg_machines.iter().find_map(|machine| machine.labels().get(labels::POOL_NAME))?;
        // The value of a label is a name that has itself as its label (contract D3).
        let (pool, machine_pool) = (objects.key.clone(), label.clone());
        Some(PoolScope { pool, cluster: objects.cluster_name.clone()?, machine_pool })
    })
}
