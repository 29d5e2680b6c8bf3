//! Chooses the victims of a scale-in: they are annotated durably, then their Machines are deleted (D7, D8).

use std::collections::BTreeSet;

use crate::kubernetes::{DeletionReason, KubeWrite};
use crate::machine_pool::decide::availability::disrupts;
use crate::machine_pool::decide::disruption_budget::Budget;
use crate::machine_pool::decide::machines::deletion::delete_machine;
use crate::machine_pool::decide::termination_order::choose;
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Input, Outdated, Part, PoolInstance};
use crate::names::SCALE_IN_VALUE;

/// Chooses `excess` victims, annotates those that the budget allows, deletes their Machines, and removes our annotation
/// from others. Returns whether no victim is to be chosen. A victim that waits for the budget is not annotated: one that
/// has not joined may appear meanwhile, and comes first. A scale-in does not wait for a window, since a user requests it.
pub(super) fn decide(input: &Input<'_>, excess: usize, outdated: &Outdated) -> (Part, bool) {
    let observed = input.observed;
    let mut part = Part::default();
    let deleting = instances::live(observed).filter(|(_, m)| m.is_deleting()).count();
    let count = excess.saturating_sub(deleting);
    let has_obsolete_annotation =
        || instances::live(observed).any(|(_, m)| has_our_annotation(m) && !m.is_deleting());
    if count == 0 && !has_obsolete_annotation() {
        return (part, true);
    }
    // With a stale cache the second pass would choose other victims, and with a stale view too many: more replicas may
    // be desired by now, and another actor may have detached instances.
    if !observed.live_machines || (count > 0 && !input.fresh_group()) {
        part.needs.live_machines = true;
        part.needs.fresh_group = count > 0;
        return (part, false);
    }
    let candidates = instances::live(observed).filter(|(_, m)| !m.is_deleting() && !m.is_paused()).collect();
    let chosen = choose(candidates, count, input.desired.scale_in_order, outdated);
    let begun = within_budget(input, &chosen, outdated);
    let mut deletions = Vec::new();
    for (id, instance) in instances::live(observed).filter(|(_, m)| !m.is_deleting()) {
        // D9: a Machine that core has not created yet is waited for.
        let Some(machine) = &instance.machine else { continue };
        let annotate = |annotated| KubeWrite::AnnotateDeleteMachine {
            machine: input.key(&machine.name),
            uid: machine.uid.clone(),
            annotated,
        };
        if begun.contains(id) {
            if machine.delete_annotation.is_none() {
                part.push(annotate(true));
            }
            deletions.push(delete_machine(input, machine, DeletionReason::ScaleIn));
        } else if !chosen.contains(id) && has_our_annotation(instance) {
            part.push(annotate(false));
        }
    }
    part.merge(Part::of_all(deletions));
    (part, count == 0)
}

/// The victims whose Machines may be deleted now. Those that have not joined do not wait for the budget, unless
/// `do-not-disrupt` keeps them for last.
fn within_budget<'a>(
    input: &Input<'a>,
    chosen: &BTreeSet<&'a String>,
    outdated: &Outdated,
) -> BTreeSet<&'a String> {
    let room = Budget::of(input).room();
    if room >= chosen.len() {
        return chosen.clone();
    }
    let victims = instances::live(input.observed).filter(|(id, _)| chosen.contains(id));
    let (joined, unjoined): (Vec<_>, Vec<_>) = victims.partition(|(_, m)| disrupts(m));
    let others: Vec<_> = joined.iter().filter(|(_, m)| !m.has_do_not_disrupt()).map(|(id, _)| *id).collect();
    let mut begun = choose(joined, room, input.desired.scale_in_order, outdated);
    let others_wait = others.iter().any(|id| !begun.contains(id));
    let unjoined = unjoined.into_iter().filter(|(_, m)| !(others_wait && m.has_do_not_disrupt()));
    begun.extend(unjoined.map(|(id, _)| id));
    begun
}

fn has_our_annotation(instance: &PoolInstance) -> bool {
    instance.machine.as_ref().and_then(|m| m.delete_annotation.as_deref()) == Some(SCALE_IN_VALUE)
}
