//! Which outdated instances a rolling update may replace now, and which ones block it.

use capasg_api::capi::{Cluster, NodeState};
use capasg_cloud::LifecycleState;
use chrono::TimeDelta;

use crate::machine_pool::decide::availability::{becomes_available, disrupts, is_available};
use crate::machine_pool::decide::disruption_budget::Budget;
use crate::machine_pool::decide::rollout::outdated::{is_to_replace, to_replace};
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Desired, Input, Outdated, PoolInstance, ReplicaOwner};

/// No Node is expected any more of an instance that has had none for this long.
const JOINS_WITHIN: TimeDelta = TimeDelta::minutes(10);

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
    let never_joined =
        |m: &PoolInstance| until_never_joined(input, m).is_some_and(|wait| wait <= TimeDelta::zero());
    let blocking: Vec<_> = put_off.into_iter().filter(|(_, m)| never_joined(m)).collect();
    if blocking.is_empty() || is_under_way(input, outdated) {
        return None;
    }
    Some([(blocking, 1), (idle, 0), (working, 0)])
}

/// The outdated instances that block an open rollout until a user replaces them or they recover: they are not available
/// and are not replaced, and no other can be.
pub(super) fn blocking(input: &Input<'_>, outdated: &Outdated) -> Vec<String> {
    let is_chosen = |id: &str, m: &PoolInstance| {
        m.machine.is_some() && !m.has_do_not_disrupt() && is_to_replace(input, outdated, id, m)
    };
    let kept: Vec<String> = instances::live(input.observed)
        .filter(|(id, m)| outdated.is_outdated(id) && !is_available(input, m) && !is_chosen(id, m))
        .map(|(id, _)| id.clone())
        .collect();
    let waits = !kept.is_empty() && !is_under_way(input, outdated) && candidates(input, outdated).is_none();
    if waits { kept } else { Vec::new() }
}

/// How long until one of the instances that `do-not-disrupt` keeps may be replaced because its Node never joined.
pub(super) fn until_next(input: &Input<'_>, outdated: &Outdated) -> Option<TimeDelta> {
    let kept = to_replace(input, outdated).filter(|(_, m)| m.has_do_not_disrupt());
    kept.filter_map(|(_, m)| until_never_joined(input, m)).filter(|wait| *wait > TimeDelta::zero()).min()
}

/// How long until no Node is expected of an instance any more, so that nothing runs on it; `None` if core does not report
/// that none has joined. Core reports the same while it waits for the control plane, and after a move until it has looked.
fn until_never_joined(input: &Input<'_>, instance: &PoolInstance) -> Option<TimeDelta> {
    let cluster = input.objects.cluster.as_deref();
    let reported = instance.machine.as_ref().filter(|machine| machine.node.state == NodeState::NotJoined);
    reported.filter(|_| cluster.is_none_or(Cluster::is_control_plane_initialized))?;
    let initialized = cluster.and_then(Cluster::control_plane_initialized_at);
    let since = instance.awaits_node_since().into_iter().chain(initialized).max()?;
    Some(since + JOINS_WITHIN - input.now)
}

/// Whether a drain, a launch or a start is in progress, after which another instance may be replaced.
fn is_under_way(input: &Input<'_>, outdated: &Outdated) -> bool {
    let observed = input.observed;
    let desired = observed.group.present().map_or(0, |group| group.capacity.desired);
    let starts = |id: &str, m: &PoolInstance| {
        let is_new = !outdated.is_outdated(id) && !m.is_deleting() && !is_available(input, m);
        is_new || becomes_available(input, m)
    };
    // Until it is terminated, a drain takes room of the disruption budget.
    let drains = |m: &PoolInstance| {
        let is_terminating = m.lifecycle().is_some_and(LifecycleState::is_terminating) && disrupts(m);
        m.listed.is_some() && !m.is_paused() && !m.is_terminated() && (m.is_deleting() || is_terminating)
    };
    instances::live_count(observed) < desired
        || instances::live(observed).any(|(id, instance)| starts(id, instance))
        || observed.instances.values().any(drains)
}
