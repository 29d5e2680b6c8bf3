//! Which outdated instances a rolling update may replace now, and which ones block it.

use capasg_api::capi::NodeState;

use crate::machine_pool::decide::availability::{becomes_available, disrupts, is_available};
use crate::machine_pool::decide::disruption_budget::Budget;
use crate::machine_pool::decide::rollout::outdated::to_replace;
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Desired, Input, Outdated, PoolInstance, ReplicaOwner};

/// Instances of one kind, and how many of them may be replaced.
type Candidates<'a> = (Vec<(&'a String, &'a PoolInstance)>, usize);

/// How many of the replicas may be unavailable. If another actor manages them there is no surge, so that it is at least
/// one.
fn max_unavailable(desired: &Desired) -> i32 {
    match desired.owner {
        ReplicaOwner::MachinePool => desired.rollout.max_unavailable,
        _ => desired.rollout.max_unavailable.max(1),
    }
}

/// The outdated instances that may be replaced now: those whose Nodes have not joined, those that fail, and those that are
/// available. `None` if no instance may be.
pub(super) fn candidates<'a>(input: &Input<'a>, outdated: &'a Outdated) -> Option<[Candidates<'a>; 3]> {
    let Input { desired, observed, .. } = *input;
    let staying: Vec<(&String, &PoolInstance)> =
        instances::live(observed).filter(|(_, m)| !m.is_deleting()).collect();
    let least = usize::try_from(desired.replicas - max_unavailable(desired)).unwrap_or(0);
    let available = staying.iter().filter(|(_, m)| is_available(input, m)).count();
    let old: Vec<(&String, &PoolInstance)> =
        to_replace(input, outdated).filter(|(_, m)| !m.is_deleting()).collect();
    // D9: a Machine that core has not created yet is waited for. Whatever the reason is for which it is not replaced, an
    // instance that is not available takes no other's place.
    let is_replaced = |id: &String| old.iter().any(|(replaced, m)| *replaced == id && m.machine.is_some());
    let kept_failing = staying.iter().filter(|(id, m)| !is_available(input, m) && !is_replaced(id)).count();
    let room = staying.len().saturating_sub(least + kept_failing);
    if room == 0 {
        return None;
    }
    let only_do_not_disrupt = old.iter().all(|(_, m)| m.has_do_not_disrupt());
    let (put_off, others): (Vec<_>, Vec<_>) = old
        .into_iter()
        .filter(|(_, m)| m.machine.is_some())
        .partition(|(_, m)| m.has_do_not_disrupt() && !only_do_not_disrupt);
    let (working, idle): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, m)| is_available(input, m));
    let (idle, unjoined): (Vec<_>, Vec<_>) = idle.into_iter().partition(|(_, m)| disrupts(m));
    let allowed = Budget::of(input).room_of_rollouts();
    let unjoined_room = room.min(unjoined.len());
    let idle_room = (room - unjoined_room).min(idle.len()).min(allowed);
    let working_room = (room - unjoined_room - idle_room)
        .min(available.saturating_sub(least))
        .min(working.len())
        .min(allowed - idle_room);
    if unjoined_room + idle_room + working_room > 0 {
        return Some([(unjoined, unjoined_room), (idle, idle_room), (working, working_room)]);
    }
    // Else one that `do-not-disrupt` keeps would stop the rollout, although nothing runs on it.
    let blocking: Vec<_> = put_off.into_iter().filter(|(_, m)| never_joined(m)).collect();
    if blocking.is_empty() || is_under_way(input, outdated) {
        return None;
    }
    Some([(blocking, 1), (idle, 0), (working, 0)])
}

/// The outdated instances that block an open rollout until a user replaces them or they recover: they are not available
/// and are not replaced, and no other can be.
pub(super) fn blocking(input: &Input<'_>, outdated: &Outdated) -> Vec<String> {
    let is_replaced = |id: &String, instance: &PoolInstance| {
        let mut replaced = to_replace(input, outdated).map(|(replaced, _)| replaced);
        let is_chosen = instance.machine.is_some() && !instance.has_do_not_disrupt();
        is_chosen && replaced.any(|replaced| replaced == id)
    };
    let kept: Vec<String> = instances::live(input.observed)
        .filter(|(id, m)| outdated.is_outdated(id) && !is_available(input, m) && !is_replaced(id, m))
        .map(|(id, _)| id.clone())
        .collect();
    let waits = !kept.is_empty() && !is_under_way(input, outdated) && candidates(input, outdated).is_none();
    if waits { kept } else { Vec::new() }
}

/// Whether core reports that its Node has not joined, so that nothing runs on it.
fn never_joined(instance: &PoolInstance) -> bool {
    instance.machine.as_ref().is_some_and(|machine| machine.node.state == NodeState::NotJoined)
}

/// Whether a drain, a launch or a start is in progress, after which another instance may be replaced.
fn is_under_way(input: &Input<'_>, outdated: &Outdated) -> bool {
    let desired = input.observed.group.present().map_or(0, |group| group.capacity.desired);
    let is_changing = |id: &str, instance: &PoolInstance| {
        let starts = !outdated.is_outdated(id) && !is_available(input, instance);
        let drains = instance.is_deleting() && !instance.is_paused();
        starts || drains || becomes_available(input, instance)
    };
    instances::live_count(input.observed) < desired
        || instances::live(input.observed).any(|(id, instance)| is_changing(id, instance))
}
