//! Owner references: the `MachinePool` of a pool, the Machine of an `ASGMachine`, and the reference that we set.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

use super::GROUP;
use crate::{
    ASGMachine, ASGMachinePool,
    names::{labels, machine_name, must_format_value},
};

/// The `MachinePool` that controls a pool; a pool without one is not reconciled (C1). A Cluster as the only owner, which the
/// topology controller sets first, does not count (J5).
#[must_use]
pub fn owner_machine_pool(pool: &ASGMachinePool) -> Option<&OwnerReference> {
    controller(&pool.metadata, GROUP, "MachinePool")
}

/// The Machine that controls an `ASGMachine`, once core has created it (D9).
#[must_use]
pub fn machine_owner(machine: &ASGMachine) -> Option<&OwnerReference> {
    controller(&machine.metadata, GROUP, "Machine")
}

/// The `ASGMachinePool` of an `ASGMachine`.
#[must_use]
pub fn pool_owner_of_machine(machine: &ASGMachine) -> Option<&OwnerReference> {
    references(&machine.metadata).iter().find(|owner| is(owner, crate::GROUP, "ASGMachinePool"))
}

/// Whether an `ASGMachine` belongs to a pool: by its owner reference, or, if it references no pool, by its own name (D5), and
/// by its label for the `MachinePool` (D3), since names of pools are truncated in it. Tools that restore backups remove
/// owner references.
#[must_use]
pub fn belongs_to_pool(machine: &ASGMachine, pool: &ASGMachinePool) -> bool {
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    if machine.metadata.namespace != pool.metadata.namespace {
        return false;
    }
    if let Some(owner) = pool_owner_of_machine(machine) {
        return owner.name == name;
    }
    let label = machine.metadata.labels.as_ref().and_then(|labels| labels.get(labels::POOL_NAME));
    let id = &machine.spec.instance_id;
    let expected = machine_name(name, id);
    let of_owner = match owner_machine_pool(pool) {
        Some(owner) => label == Some(&must_format_value(&owner.name)),
        // The pool may have lost its owner reference as well: only a name that is not truncated is that of one pool.
        None => expected == format!("{name}-{id}"),
    };
    of_owner && machine.metadata.name.as_ref() == Some(&expected)
}

/// The reference from an `ASGMachine` to its pool. It is not a controller reference, since core's Machine is the controller
/// (D4, C2). Because of it, the `ASGMachine` is moved with the pool (C7, M1). `None` for a pool without a UID.
#[must_use]
pub fn owner_reference_to_pool(pool: &ASGMachinePool) -> Option<OwnerReference> {
    pool.owner_ref(&())
}

/// The owner references of a Machine with this one in the place of those to other `MachinePool`s; `None` if it has none of
/// those.
#[must_use]
pub fn without_other_machine_pools(
    owners: &[OwnerReference],
    machine_pool: &OwnerReference,
) -> Option<Vec<OwnerReference>> {
    let is_pool = |owner: &OwnerReference| is(owner, GROUP, "MachinePool");
    if !owners.iter().any(|owner| is_pool(owner) && owner.uid != machine_pool.uid) {
        return None;
    }
    let others = owners.iter().filter(|owner| !is_pool(owner));
    Some(others.chain([machine_pool]).cloned().collect())
}

/// Whether an object is owned by the object with this UID.
#[must_use]
pub fn is_owned_by(metadata: &ObjectMeta, uid: &str) -> bool {
    references(metadata).iter().any(|owner| owner.uid == uid)
}

fn controller<'a>(metadata: &'a ObjectMeta, group: &str, kind: &str) -> Option<&'a OwnerReference> {
    references(metadata).iter().find(|owner| owner.controller == Some(true) && is(owner, group, kind))
}

fn references(metadata: &ObjectMeta) -> &[OwnerReference] {
    metadata.owner_references.as_deref().unwrap_or_default()
}

fn is(owner: &OwnerReference, group: &str, kind: &str) -> bool {
    owner.kind == kind && owner.api_version.split_once('/').is_some_and(|(found, _)| found == group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ASGMachinePoolSpec, ASGMachineSpec};

    const INSTANCE: &str = "i-0a1b2c3d4e5f60718";

    fn pool(name: &str) -> ASGMachinePool {
        ASGMachinePool::new(name, ASGMachinePoolSpec::default())
    }

    /// As a tool restores it: without owner references.
    fn machine_of(pool: &str) -> ASGMachine {
        let spec = ASGMachineSpec { provider_id: String::new(), instance_id: INSTANCE.to_owned() };
        ASGMachine::new(&machine_name(pool, INSTANCE), spec)
    }

    // Rules: D5
    #[test]
    fn without_references_only_a_whole_name_is_that_of_a_pool() {
        for (length, is_whole) in [(1, true), (43, true), (44, false), (62, false), (63, false), (253, false)]
        {
            let name = "p".repeat(length);
            assert_eq!(belongs_to_pool(&machine_of(&name), &pool(&name)), is_whole, "{length}");
        }
        assert!(!belongs_to_pool(&machine_of("workers"), &pool("worker")));
    }
}
