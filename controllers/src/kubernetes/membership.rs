//! Which pool an ASGMachine belongs to, as far as the cache shows pools.

use std::sync::Arc;

use capasg_api::{
    ASGMachine, ASGMachinePool,
    capi::{belongs_to_pool, pool_owner_of_machine},
};

use crate::ObjectKey;

/// The pool of an ASGMachine: the one that it references, whether or not the cache shows that, or else those of its namespace
/// that it belongs to. `pools` returns the pools of a namespace.
pub fn pools_of_asg_machine(
    machine: &ASGMachine,
    pools: impl FnOnce(&str) -> Vec<Arc<ASGMachinePool>>,
) -> Vec<ObjectKey> {
    let key = ObjectKey::of(machine);
    if let Some(owner) = pool_owner_of_machine(machine) {
        return vec![key.sibling(&owner.name)];
    }
    let pools = pools(&key.namespace);
    let pools = pools.iter().filter(|pool| belongs_to_pool(machine, pool));
    pools.map(|pool| ObjectKey::of(pool.as_ref())).collect()
}

/// Whether an ASGMachine belongs to a pool. `pool` is the pool as the cache shows it: without it, the reference of the
/// ASGMachine decides.
#[must_use]
pub fn belongs_to(machine: &ASGMachine, key: &ObjectKey, pool: Option<&ASGMachinePool>) -> bool {
    match pool {
        Some(pool) => belongs_to_pool(machine, pool),
        None => pools_of_asg_machine(machine, |_| Vec::new()).contains(key),
    }
}
