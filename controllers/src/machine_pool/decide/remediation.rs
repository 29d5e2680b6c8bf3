//! Decides about Machines that a `MachineHealthCheck` wants replaced: core only marks those of a pool, the pool replaces
//! them (D15). The Machine is deleted, so that core drains its Node if that still answers, and the group launches
//! another in its place.

use super::super::state::{Case, Member, Plan};
use super::{
    budget::{Budget, disrupts},
    capacity, members,
    rollout::Outdated,
};
use crate::kubernetes::{DeletionReason, KubeWrite};

/// The Machines that wait for remediation: marked, and not leaving yet.
pub fn marked<'a>(case: &Case<'a>) -> impl Iterator<Item = (&'a String, &'a Member)> + use<'a> {
    members::live(case.observed).filter(|(_, member)| {
        let marked = member.machine.as_ref().is_some_and(|machine| machine.needs_remediation);
        marked && !member.is_leaving() && !member.is_paused()
    })
}

/// Deletes marked Machines within the pool's budget; tells whether it planned any.
///
/// The budget is max(1, `maxUnavailable`), so that a pool of one can be remediated, whatever else is being replaced
/// counted in: instances that leave, that have not joined yet, and that are missing. So a pool whose new instances never
/// join is not eaten up, unless the health check marks those as well; its own limit on unhealthy Machines comes before.
/// Machines with a Node count against `spec.disruption.maxDisrupted` as well; they do not wait for a window.
pub fn decide(case: &Case<'_>, target: i32, outdated: &Outdated, plan: &mut Plan) -> bool {
    let Case { desired, observed, .. } = *case;
    if !desired.remediate {
        return false;
    }
    let waiting: Vec<(&String, &Member)> = marked(case).collect();
    if waiting.is_empty() {
        return false;
    }
    plan.in_transition = true;
    let joined = |member: &Member| member.machine.as_ref().is_some_and(|machine| machine.has_node);
    let under_way = members::live(observed)
        .filter(|(id, m)| m.is_leaving() || (!joined(m) && !waiting.iter().any(|(marked, _)| marked == id)))
        .count();
    let missing = usize::try_from(target - members::live_count(observed)).unwrap_or(0);
    // The surge of a rollout is nobody's replica: one that never launches or joins must not hold remediation up.
    let surge = usize::try_from(target - desired.replicas).unwrap_or(0);
    let budget = usize::try_from(desired.rollout.max_unavailable).unwrap_or(0).max(1);
    let room = budget.saturating_sub((under_way + missing).saturating_sub(surge));
    let (joined, unjoined): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(_, m)| disrupts(m));
    let of_unjoined = room.min(unjoined.len());
    let of_joined = (room - of_unjoined).min(Budget::of(case).room()).min(joined.len());
    if of_unjoined + of_joined == 0 {
        return false;
    }
    if !members::may_be_chosen(case, plan) {
        return true;
    }
    let order = desired.scale_in_order;
    let mut chosen = capacity::choose(unjoined, of_unjoined, order, outdated);
    chosen.extend(capacity::choose(joined, of_joined, order, outdated));
    for id in chosen {
        if let Some(machine) = observed.members.get(id).and_then(|m| m.machine.as_ref()) {
            plan.kubernetes(KubeWrite::DeleteMachine {
                machine: case.key(&machine.name),
                uid: machine.uid.clone(),
                why: DeletionReason::Unhealthy,
            });
        }
    }
    true
}
