//! Decides about Machines that a `MachineHealthCheck` finds unhealthy: core only sets a condition on those of a pool,
//! and this controller replaces them (D15). It deletes the Machine, so that core drains its Node, and the group
//! launches a replacement.

use crate::kubernetes::DeletionReason;
use crate::machine_pool::decide::availability::disrupts;
use crate::machine_pool::decide::disruption_budget::Budget;
use crate::machine_pool::decide::machines::deletion::delete_machine;
use crate::machine_pool::decide::termination_order::{choose, missing_for_order};
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Input, Outdated, Part, PoolInstance};

/// The instances whose Machines wait for remediation, and are not being deleted.
fn unhealthy<'a>(input: &Input<'a>) -> Vec<(&'a String, &'a PoolInstance)> {
    let waits = |instance: &PoolInstance| {
        let needed = instance.machine.as_ref().is_some_and(|machine| machine.needs_remediation);
        needed && !instance.is_deleting() && !instance.is_paused()
    };
    instances::live(input.observed).filter(|(_, instance)| waits(instance)).collect()
}

/// Deletes unhealthy Machines within the budget. Returns whether any is to be deleted, now or once more facts are
/// known.
///
/// The budget is max(1, `maxUnavailable`), so that a pool of one can be remediated. Other instances that are being
/// deleted, have not joined yet or are missing count, so that a pool whose new instances never join does not lose all
/// its instances, unless the health check finds those unhealthy as well; its own limit on unhealthy Machines applies
/// first. Machines with a Node count against `spec.disruption.maxDisrupted` as well; they do not wait for a window.
#[must_use]
pub fn decide(input: &Input<'_>, target: i32, outdated: &Outdated) -> (Part, bool) {
    let Input { desired, observed, .. } = *input;
    let waiting = unhealthy(input);
    if !desired.remediate || waiting.is_empty() {
        return (Part::default(), false);
    }
    let mut part = Part { in_transition: true, ..Part::default() };
    let joined = |instance: &PoolInstance| instance.machine.as_ref().is_some_and(|machine| machine.has_node);
    let under_way = instances::live(observed)
        .filter(|(id, m)| {
            m.is_deleting() || (!joined(m) && !waiting.iter().any(|(unhealthy, _)| unhealthy == id))
        })
        .count();
    let missing = usize::try_from(target - instances::live_count(observed)).unwrap_or(0);
    // The surge of a rollout is not part of the replicas: one that never launches or joins must not delay remediation.
    let surge = usize::try_from(target - desired.replicas).unwrap_or(0);
    let budget = usize::try_from(desired.rollout.max_unavailable).unwrap_or(0).max(1);
    let room = budget.saturating_sub((under_way + missing).saturating_sub(surge));
    let (joined, unjoined): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(_, m)| disrupts(m));
    let of_unjoined = room.min(unjoined.len());
    let of_joined = (room - of_unjoined).min(Budget::of(input).room()).min(joined.len());
    if of_unjoined + of_joined == 0 {
        return (part, false);
    }
    part.needs = missing_for_order(input);
    if !part.needs.is_empty() {
        return (part, true);
    }
    let order = desired.scale_in_order;
    let mut chosen = choose(unjoined, of_unjoined, order, outdated);
    chosen.extend(choose(joined, of_joined, order, outdated));
    for id in chosen {
        if let Some(machine) = observed.instances.get(id).and_then(|m| m.machine.as_ref()) {
            part.push(delete_machine(input, machine, DeletionReason::Unhealthy));
        }
    }
    (part, true)
}
