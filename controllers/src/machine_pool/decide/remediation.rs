//! Decides about Machines that a `MachineHealthCheck` wants replaced: core only marks those of a pool, the pool replaces
//! them (D15). The Machine is deleted, so that core drains its Node if that still answers, and the group launches
//! another in its place.

use crate::kubernetes::DeletionReason;
use crate::machine_pool::decide::availability::disrupts;
use crate::machine_pool::decide::disruption_budget::Budget;
use crate::machine_pool::decide::machines::deletion::delete_machine;
use crate::machine_pool::decide::selection::{choose, missing_for_selection};
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Input, Outdated, Part, PoolInstance};

/// The Machines that wait for remediation: marked, and not leaving yet.
fn unhealthy<'a>(input: &Input<'a>) -> Vec<(&'a String, &'a PoolInstance)> {
    let marked = |instance: &PoolInstance| {
        let marked = instance.machine.as_ref().is_some_and(|machine| machine.needs_remediation);
        marked && !instance.is_deleting() && !instance.is_paused()
    };
    instances::live(input.observed).filter(|(_, instance)| marked(instance)).collect()
}

/// Deletes marked Machines within the pool's budget. With it comes whether any is to be deleted, now or once more is known.
///
/// The budget is max(1, `maxUnavailable`), so that a pool of one can be remediated, whatever else is being replaced
/// counted in: instances that leave, that have not joined yet, and that are missing. So a pool whose new instances never
/// join is not eaten up, unless the health check marks those as well; its own limit on unhealthy Machines comes before.
/// Machines with a Node count against `spec.disruption.maxDisrupted` as well; they do not wait for a window.
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
        .filter(|(id, m)| m.is_deleting() || (!joined(m) && !waiting.iter().any(|(marked, _)| marked == id)))
        .count();
    let missing = usize::try_from(target - instances::live_count(observed)).unwrap_or(0);
    // The surge of a rollout is nobody's replica: one that never launches or joins must not hold remediation up.
    let surge = usize::try_from(target - desired.replicas).unwrap_or(0);
    let budget = usize::try_from(desired.rollout.max_unavailable).unwrap_or(0).max(1);
    let room = budget.saturating_sub((under_way + missing).saturating_sub(surge));
    let (joined, unjoined): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(_, m)| disrupts(m));
    let of_unjoined = room.min(unjoined.len());
    let of_joined = (room - of_unjoined).min(Budget::of(input).room()).min(joined.len());
    if of_unjoined + of_joined == 0 {
        return (part, false);
    }
    part.needs = missing_for_selection(input);
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
