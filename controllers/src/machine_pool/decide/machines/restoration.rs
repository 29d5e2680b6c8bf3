//! Restores what an ASGMachine needs to be drained, released and moved with its pool, and what tools that restore backups
//! remove: the reference to its pool, and our finalizer. Also its label for the MachinePool, and the owner reference of its
//! Machine, if another one owns the pool now.

use capasg_api::{
    capi::{is_owned_by, owner_reference_to_pool, without_other_machine_pools},
    names::must_format_value,
};
use kube::{Resource, ResourceExt};

use crate::kubernetes::KubeWrite;
use crate::machine_pool::model::{AsgMachineRef, Blocker, Input, Part, PoolInstance};

/// Restores the ASGMachines of instances of the group that lack any of it, if the pool owns the group. The API server accepts no
/// finalizer for one that is being deleted.
#[must_use]
pub fn restore(input: &Input<'_>, blocker: Option<&Blocker>) -> Part {
    let Some(owner) = owner_reference_to_pool(&input.objects.pool) else { return Part::default() };
    if blocker.is_some_and(Blocker::is_not_owned) {
        return Part::default();
    }
    // Core creates and counts Machines by this label, and makes the MachinePool their owner: with that of the MachinePool
    // before, a missing Machine would not be created, and the garbage collector would delete all of them with that MachinePool.
    // Core takes over the Machine of a relabelled ASGMachine, since both have the same name (D5): nothing is drained for it.
    let pool_name = input.objects.machine_pool.as_ref().map(|owner| must_format_value(&owner.name_any()));
    let lacks = |machine: &&AsgMachineRef| {
        let is_labelled = pool_name.is_none() || machine.pool_name == pool_name;
        !(machine.has_owner && machine.has_finalizer && is_labelled)
    };
    let machines = restored(input).filter_map(|instance| instance.asg_machine.as_ref());
    let mut part = Part::of_all(machines.filter(lacks).map(|machine| KubeWrite::RestoreAsgMachine {
        machine: input.key(&machine.name),
        uid: machine.uid.clone(),
        owner: owner.clone(),
        pool_name: pool_name.clone(),
    }));
    part.merge(take_over(input));
    part
}

/// The instances whose ASGMachines are restored.
fn restored<'a>(input: &Input<'a>) -> impl Iterator<Item = &'a PoolInstance> {
    let is_kept = |machine: &AsgMachineRef| machine.deleting_since.is_none() && !machine.paused;
    let listed = input.observed.instances.values().filter(|instance| instance.listed.is_some());
    listed.filter(move |instance| instance.asg_machine.as_ref().is_some_and(is_kept))
}

/// Makes the MachinePool the controller of Machines that another one controls. Core does so by a server-side apply, which
/// removes the reference to the MachinePool before only if nobody else wrote that. But a move and a restored backup create
/// Machines with it, and the API server rejects a second controller.
fn take_over(input: &Input<'_>) -> Part {
    let machine_pool = input.objects.machine_pool.as_ref();
    let owner = machine_pool.and_then(|machine_pool| machine_pool.controller_owner_ref(&()));
    // The garbage collector deletes a Machine whose owner does not exist: the cache may still have a MachinePool that was
    // deleted, while the pool references its successor of the same name.
    let owner = owner.filter(|owner| is_owned_by(&input.objects.pool.metadata, &owner.uid));
    let Some(owner) = owner else { return Part::default() };
    let machines = restored(input).filter_map(|instance| instance.machine.as_ref());
    let kept = machines.filter(|machine| machine.deleting_since.is_none());
    Part::of_all(kept.filter_map(|machine| {
        Some(KubeWrite::PatchMachineOwners {
            machine: input.key(&machine.name),
            uid: machine.uid.clone(),
            resource_version: machine.resource_version.clone(),
            owners: without_other_machine_pools(&machine.owners, &owner)?,
        })
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capasg_api::capi::{MachinePool, MachinePoolSpec};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    use super::*;
    use crate::machine_pool::decide::testing::Stage;
    use crate::machine_pool::model::Step;

    /// The labels that are written, by the ASGMachine.
    fn written(stage: &Stage) -> Vec<(String, Option<String>)> {
        let steps = restore(&stage.input(), None).steps.into_iter();
        let restored = steps.filter_map(|step| match step {
            Step::Kubernetes(KubeWrite::RestoreAsgMachine { machine, pool_name, .. }) => {
                Some((machine.name, pool_name))
            }
            _ => None,
        });
        restored.collect()
    }

    // Rules: D3
    #[test]
    fn d3_asg_machines_have_the_label_of_the_machine_pool_that_refers_to_the_pool_now() {
        let mut stage = Stage::new(3);
        Arc::make_mut(&mut stage.objects.pool).metadata.uid = Some("uid".to_owned());
        for (id, name) in [("i-1", "old"), ("i-2", "new"), ("i-3", "old")] {
            stage.instance(id).asg_machine.as_mut().unwrap().pool_name = Some(name.to_owned());
        }
        stage.drained("i-3");
        assert!(written(&stage).is_empty(), "no MachinePool refers to the pool");
        let owner = MachinePool::new("new", MachinePoolSpec::default());
        stage.objects.machine_pool = Some(Arc::new(owner));
        assert_eq!(written(&stage), [("p-i-1".to_owned(), Some("new".to_owned()))]);
    }

    fn machine_pool(name: &str) -> MachinePool {
        let mut machine_pool = MachinePool::new(name, MachinePoolSpec::default());
        machine_pool.metadata.uid = Some(format!("uid-{name}"));
        machine_pool
    }

    /// The owner references that are written, by the Machine.
    fn owned(stage: &Stage) -> Vec<(String, Vec<OwnerReference>)> {
        let steps = restore(&stage.input(), None).steps.into_iter();
        let owned = steps.filter_map(|step| match step {
            Step::Kubernetes(KubeWrite::PatchMachineOwners { machine, owners, .. }) => {
                Some((machine.name, owners))
            }
            _ => None,
        });
        owned.collect()
    }

    // Rules: D3
    #[test]
    fn d3_machines_are_controlled_by_the_machine_pool_that_refers_to_the_pool_now() {
        let (old, new) = (machine_pool("old"), machine_pool("new"));
        let of_old = old.controller_owner_ref(&()).unwrap();
        let of_new = new.controller_owner_ref(&()).unwrap();
        // A MachinePool of another group is another kind.
        let kept = OwnerReference { api_version: "example.com/v1".to_owned(), ..of_old.clone() };
        let mut stage = Stage::new(6);
        for number in 1..=5 {
            let owner = if number == 2 { &of_new } else { &of_old };
            let machine = stage.instance(&format!("i-{number}")).machine.as_mut().unwrap();
            machine.owners = vec![owner.clone(), kept.clone()];
        }
        stage.draining("i-3");
        stage.instance("i-4").asg_machine.as_mut().unwrap().paused = true;
        stage.instance("i-5").listed = None;
        let pool = Arc::make_mut(&mut stage.objects.pool);
        pool.metadata.uid = Some("uid".to_owned());
        pool.metadata.owner_references = Some(vec![of_old.clone()]);
        assert!(owned(&stage).is_empty(), "no MachinePool refers to the pool");
        stage.objects.machine_pool = Some(Arc::new(new));
        assert!(owned(&stage).is_empty(), "the pool has another owner");
        Arc::make_mut(&mut stage.objects.pool).metadata.owner_references = Some(vec![of_new.clone()]);
        assert_eq!(owned(&stage), [("p-i-1".to_owned(), vec![kept, of_new])]);
    }
}
