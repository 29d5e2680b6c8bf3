//! Restores what an ASGMachine needs to be drained, released and moved with its pool, and what tools that restore backups
//! remove: the reference to its pool, and our finalizer.

use capasg_api::capi::owner_reference_to_pool;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::model::{AsgMachineRef, Blocker, Input, Part};

/// Restores the ASGMachines of instances of the group that lack either, if the pool owns the group. The API server accepts no
/// finalizer for one that is being deleted.
#[must_use]
pub fn restore(input: &Input<'_>, blocker: Option<&Blocker>) -> Part {
    let Some(owner) = owner_reference_to_pool(&input.objects.pool) else { return Part::default() };
    if blocker.is_some_and(Blocker::is_not_owned) {
        return Part::default();
    }
    let lacks = |machine: &&AsgMachineRef| {
        let is_complete = machine.has_owner && machine.has_finalizer;
        !is_complete && machine.deleting_since.is_none() && !machine.paused
    };
    let listed = input.observed.instances.values().filter(|instance| instance.listed.is_some());
    let machines = listed.filter_map(|instance| instance.asg_machine.as_ref());
    Part::of_all(machines.filter(lacks).map(|machine| KubeWrite::RestoreAsgMachine {
        machine: input.key(&machine.name),
        uid: machine.uid.clone(),
        owner: owner.clone(),
    }))
}
