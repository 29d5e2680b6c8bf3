//! The rolling update: replaces outdated instances by deleting their Machines, a few at a time, so that core drains
//! their Nodes first. It remembers only since when the desired state has been the same: the progress follows from the
//! launch template versions of the instances.

use chrono::TimeDelta;

use crate::kubernetes::DeletionReason;
use crate::machine_pool::decide::machines::deletion::delete_machine;
use crate::machine_pool::decide::rollout::candidates::{candidates, until_next};
use crate::machine_pool::decide::rollout::outdated::to_replace;
use crate::machine_pool::decide::rollout::permission::Permission;
use crate::machine_pool::decide::termination_order::{choose_replaced, missing_for_order};
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Input, Outdated, Part, PoolInstance, ReplicaOwner};

/// Deletes the Machines of outdated instances within the budget.
///
/// As a Deployment does, it always keeps `replicas - maxUnavailable` instances in addition to those that are not
/// available and are not replaced themselves, so that a rollout stops if new instances fail. Outdated instances that are
/// not available are replaced first; of the available ones, that many stay available. Instances with a Node count
/// against the budget for all disruptions, and those with `do-not-disrupt` are replaced last.
#[must_use]
pub fn decide(input: &Input<'_>, outdated: &Outdated, permission: Permission) -> Part {
    let Input { desired, observed, .. } = *input;
    let mut part = Part::default();
    let may_replace = matches!(desired.owner, ReplicaOwner::MachinePool | ReplicaOwner::External(_));
    let staying: Vec<(&String, &PoolInstance)> =
        instances::live(observed).filter(|(_, m)| !m.is_deleting()).collect();
    if outdated.count() > 0 {
        // Also if nothing is replaced now: the number of updated instances is reported.
        part.merge(requeue_for_min_ready(input, &staying));
    }
    if !may_replace || to_replace(input, outdated).all(|(_, m)| m.is_deleting()) {
        return part;
    }
    if permission != Permission::Open {
        return part;
    }
    part.in_transition = true;
    let Some(candidates) = candidates(input, outdated) else {
        if let Some(wait) = until_next(input, outdated) {
            part.requeue_within(wait);
        }
        return part;
    };
    let needs = missing_for_order(input);
    if !needs.is_empty() {
        part.needs.merge(needs);
        return part;
    }
    let order = desired.scale_in_order;
    let chosen = candidates.map(|(of_kind, room)| choose_replaced(observed, of_kind, room, order, outdated));
    for id in chosen.iter().flatten() {
        if let Some(machine) = observed.instances.get(*id).and_then(|m| m.machine.as_ref()) {
            part.push(delete_machine(input, machine, DeletionReason::Outdated));
        }
    }
    part
}

/// Requeues when a Node has been ready for `minReadySeconds`, which no watch reports.
fn requeue_for_min_ready(input: &Input<'_>, staying: &[(&String, &PoolInstance)]) -> Part {
    let waits = staying.iter().filter_map(|(_, m)| {
        let machine = m.machine.as_ref().filter(|machine| machine.ready)?;
        Some(machine.ready_since? + input.desired.min_ready - input.now)
    });
    let requeue_after = waits.filter(|wait| *wait > TimeDelta::zero()).min();
    Part { requeue_after, ..Part::default() }
}
