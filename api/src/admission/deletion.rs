//! Warnings for users who delete an object that represents something else. A deletion is never rejected (M6).

use kube::ResourceExt;

use crate::{
    ASGMachine, ASGMachinePool,
    capi::{Machine, MachinePool, machine_owner, owner_machine_pool},
    names::annotations,
    pool::DeletionPolicy,
};

/// A warning if the instance terminates without draining its Node, since its Machine is not being deleted (D12).
/// `machine` is the object that the owner reference names, if it exists.
#[must_use]
pub fn machine_deletion_warning(object: &ASGMachine, machine: Option<&Machine>) -> Option<String> {
    let owner = machine_owner(object)?;
    let machine = machine.filter(|machine| machine.metadata.uid.as_ref() == Some(&owner.uid))?;
    if is_moved(object) || machine.is_deleting() {
        return None;
    }
    let instance = &object.spec.instance_id;
    Some(format!(
        "Instance {instance} will be terminated without draining its Node. To drain it, delete Machine {} first.",
        owner.name
    ))
}

/// A warning if the nodes are deleted and the MachinePool is not. `owner` is the object that the owner reference names, if it
/// exists.
#[must_use]
pub fn pool_deletion_warning(pool: &ASGMachinePool, owner: Option<&MachinePool>) -> Option<String> {
    let reference = owner_machine_pool(pool)?;
    let owner = owner.filter(|owner| owner.metadata.uid.as_ref() == Some(&reference.uid))?;
    let orphans = pool.spec.deletion_policy == Some(DeletionPolicy::Orphan);
    if is_moved(pool) || orphans || owner.is_deleting() {
        return None;
    }
    Some(format!(
        "This deletes all nodes of MachinePool {}, but not the MachinePool. To delete both, delete the \
         MachinePool.",
        reference.name
    ))
}

/// Whether the object is deleted because it was moved (M3).
fn is_moved(object: &impl ResourceExt) -> bool {
    object.annotations().contains_key(annotations::DELETE_FOR_MOVE)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};

    use super::*;
    use crate::{
        ASGMachinePoolSpec, ASGMachineSpec,
        capi::{MachinePoolSpec, MachineSpec},
    };

    fn owned_by(kind: &str, name: &str) -> ObjectMeta {
        let owner = OwnerReference {
            api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: "the-owner".to_owned(),
            controller: Some(true),
            ..OwnerReference::default()
        };
        ObjectMeta { owner_references: Some(vec![owner]), ..ObjectMeta::default() }
    }

    fn instance() -> ASGMachine {
        let spec = ASGMachineSpec::new("eu-west-1a", "i-0123456789abcdef0");
        ASGMachine { metadata: owned_by("Machine", "workers-1"), ..ASGMachine::new("workers-1", spec) }
    }

    fn machine(uid: &str, deleting: bool) -> Machine {
        let mut machine = Machine::new("workers-1", MachineSpec::default());
        machine.metadata.uid = Some(uid.to_owned());
        machine.metadata.deletion_timestamp = deleting.then(|| Time("2026-01-01T00:00:00Z".parse().unwrap()));
        machine
    }

    fn pool() -> ASGMachinePool {
        let spec = ASGMachinePoolSpec::default();
        ASGMachinePool {
            metadata: owned_by("MachinePool", "workers"),
            ..ASGMachinePool::new("workers", spec)
        }
    }

    fn machine_pool(deleting: bool) -> MachinePool {
        let mut owner = MachinePool::new("workers", MachinePoolSpec::default());
        owner.metadata.uid = Some("the-owner".to_owned());
        owner.metadata.deletion_timestamp = deleting.then(|| Time("2026-01-01T00:00:00Z".parse().unwrap()));
        owner
    }

    // Rules: D12
    #[test]
    fn deleting_an_asgmachine_alone_gives_a_warning() {
        assert_eq!(
            machine_deletion_warning(&instance(), Some(&machine("the-owner", false))).as_deref(),
            Some(
                "Instance i-0123456789abcdef0 will be terminated without draining its Node. To drain it, \
                 delete Machine workers-1 first."
            )
        );
    }

    // Rules: D12
    #[test]
    fn no_warning_if_the_machine_is_deleted_too() {
        assert_eq!(machine_deletion_warning(&instance(), Some(&machine("the-owner", true))), None);
        assert_eq!(machine_deletion_warning(&instance(), Some(&machine("another", false))), None);
        assert_eq!(machine_deletion_warning(&instance(), None), None);
        let mut young = instance();
        young.metadata.owner_references = None;
        assert_eq!(machine_deletion_warning(&young, Some(&machine("the-owner", false))), None);
    }

    #[test]
    fn deleting_a_pool_alone_gives_a_warning() {
        assert_eq!(
            pool_deletion_warning(&pool(), Some(&machine_pool(false))).as_deref(),
            Some(
                "This deletes all nodes of MachinePool workers, but not the MachinePool. To delete both, \
                 delete the MachinePool."
            )
        );
        assert_eq!(pool_deletion_warning(&pool(), Some(&machine_pool(true))), None);
        assert_eq!(pool_deletion_warning(&pool(), None), None);
        let mut orphaning = pool();
        orphaning.spec.deletion_policy = Some(DeletionPolicy::Orphan);
        assert_eq!(pool_deletion_warning(&orphaning, Some(&machine_pool(false))), None);
    }

    // Rules: M6
    #[test]
    fn a_move_gives_no_warning() {
        let (mut instance, mut pool) = (instance(), pool());
        instance.annotations_mut().insert(annotations::DELETE_FOR_MOVE.to_owned(), String::new());
        pool.annotations_mut().insert(annotations::DELETE_FOR_MOVE.to_owned(), String::new());
        assert_eq!(machine_deletion_warning(&instance, Some(&machine("the-owner", false))), None);
        assert_eq!(pool_deletion_warning(&pool, Some(&machine_pool(false))), None);
    }

    #[test]
    fn warnings_have_at_most_120_characters() {
        let warning = pool_deletion_warning(&pool(), Some(&machine_pool(false))).unwrap();
        let other = machine_deletion_warning(&instance(), Some(&machine("the-owner", false))).unwrap();
        assert!(warning.len() <= 120 && other.len() <= 120, "{} and {}", warning.len(), other.len());
    }
}
