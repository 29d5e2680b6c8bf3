//! Restores what an ASGMachine needs to be drained, released and moved with its pool, and what tools that restore backups
//! remove: the reference to its pool, and our finalizer. Also its label for the MachinePool, if another one owns the pool now.

use capasg_api::{capi::owner_reference_to_pool, names::must_format_value};
use kube::ResourceExt;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::model::{AsgMachineRef, Blocker, Input, Part};

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
        let is_complete = machine.has_owner && machine.has_finalizer && is_labelled;
        !is_complete && machine.deleting_since.is_none() && !machine.paused
    };
    let listed = input.observed.instances.values().filter(|instance| instance.listed.is_some());
    let machines = listed.filter_map(|instance| instance.asg_machine.as_ref());
    Part::of_all(machines.filter(lacks).map(|machine| KubeWrite::RestoreAsgMachine {
        machine: input.key(&machine.name),
        uid: machine.uid.clone(),
        owner: owner.clone(),
        pool_name: pool_name.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capasg_api::capi::{MachinePool, MachinePoolSpec};

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
}
