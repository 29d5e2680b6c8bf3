//! The objects that a deletion waits for.

use crate::kubernetes::DeletionReason;
use crate::machine_pool::decide::machines::deletion;
use crate::machine_pool::model::{DeletionPhase, Input, Observed, Part};

/// What a deletion may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Machines are drained first.
    ForMachines,
    /// The Cluster object is deleted, so that core drains nothing (E4, E6).
    ForNothing,
}

/// The phase that waits for the remaining Machines (or ASGMachines).
pub(super) fn draining(observed: &Observed) -> DeletionPhase {
    let of_instances = observed.instances.values().filter_map(|m| {
        let machine = m.machine.as_ref().map(|machine| machine.name.clone());
        machine.or_else(|| m.asg_machine.as_ref().map(|machine| machine.name.clone()))
    });
    let others = observed.unmatched_machines.iter().map(|machine| machine.name.clone());
    DeletionPhase::DrainingMachines(of_instances.chain(others).collect())
}

/// Releases the ASGMachines of a group that is deleted or being deleted. If one is not being deleted yet, its Machine
/// is deleted without a drain; without a Cluster, core does not reconcile Machines, so that the ASGMachine is deleted
/// directly.
pub(super) fn release(input: &Input<'_>, waiting: Waiting) -> Part {
    let mut part = Part::default();
    for instance in input.observed.instances.values().filter(|m| m.listed.is_none() && !m.is_paused()) {
        let Some(machine) = &instance.asg_machine else { continue };
        part.merge(if machine.deleting_since.is_some() {
            Part::of_all(deletion::release_deleted(input, instance))
        } else if waiting == Waiting::ForMachines {
            deletion::delete(input, instance, true, DeletionReason::PoolDeleted)
        } else {
            Part::of(deletion::delete_asg_machine(input, machine))
        });
    }
    part
}
