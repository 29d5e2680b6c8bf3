//! Follows the instances that AWS terminates: starts the drain of those whose termination this controller did not
//! request, extends the lifecycle action of our hook during the drain, and completes it afterwards.

use capasg_api::names::TERMINATE_HOOK;
use capasg_cloud::{LifecycleState, Write};
use chrono::{DateTime, TimeDelta, Utc};

use crate::backoff::remaining;
use crate::kubernetes::DeletionReason;
use crate::machine_pool::decide::machines::{creation, deletion, facts};
use crate::machine_pool::decide::timing::TERMINATION_REPEAT;
use crate::machine_pool::model::{Desired, Input, MachineRef, Part, PoolInstance};

/// How long core may take to give up a drain after its timeout, before the lifecycle action is completed.
const CORE_GRACE: TimeDelta = TimeDelta::seconds(30);

/// Decides about each of these instances.
#[must_use]
pub fn decide(input: &Input<'_>) -> Part {
    let mut part = Part::default();
    for (id, instance) in input.observed.instances.iter().filter(|(_, m)| !m.is_paused()) {
        if let Some(state) = instance.lifecycle().filter(|state| state.is_terminating()) {
            part.in_transition = true;
            part.merge(follow(input, id, instance, state));
        }
    }
    part
}

/// Decides about one instance that terminates.
fn follow(input: &Input<'_>, id: &str, instance: &PoolInstance, state: &LifecycleState) -> Part {
    let Input { desired, observed, now, .. } = *input;
    let is_terminated = facts::is_terminated(input, id, instance);
    // The cache may not show the ASGMachine: its Machine is deleted before it.
    let machine = instance.machine.as_ref().or_else(|| observed.unmatched_machine(id));
    let wait_for_drain = creation::wait_for_drain(input, id, instance);
    let waits_for_core = match &instance.asg_machine {
        Some(own) => own.deleting_since.is_none(),
        None => machine.is_some() || wait_for_drain.is_some(),
    };
    let mut part = match is_terminated {
        // Its Node can be drained only if the instance still runs.
        Some(is_terminated) if waits_for_core => {
            deletion::delete(input, instance, is_terminated, DeletionReason::Terminated)
        }
        _ => Part::default(),
    };
    if waits_for_core {
        part.merge(facts::read_terminating(input, id, instance));
    }
    if *state == LifecycleState::TerminatingWait {
        let rest = rest_of_drain(desired, machine, now);
        let has_passed = rest.is_some_and(|rest| rest <= TimeDelta::zero());
        let is_drained = !waits_for_core || is_terminated == Some(true) || has_passed;
        part.merge(answer_hook(input, id, is_drained));
        if let Some(rest) = rest.or(wait_for_drain).filter(|_| !is_drained) {
            part.requeue_within(rest);
        }
    }
    part
}

/// For how much longer a drain may go on: zero or less, once it has exceeded its limit. If core has the same limit, core gives
/// up by itself, and gets time to report so (D14).
fn rest_of_drain(desired: &Desired, machine: Option<&MachineRef>, now: DateTime<Utc>) -> Option<TimeDelta> {
    let core = desired.timeouts.and_then(|timeouts| timeouts.node_drain_timeout_seconds);
    let is_cores = core.is_some_and(|seconds| TimeDelta::seconds(i64::from(seconds)) == desired.drain_limit);
    let limit = desired.drain_limit + if is_cores { CORE_GRACE } else { TimeDelta::zero() };
    machine.and_then(|machine| machine.deleting_since).map(|since| since + limit - now)
}

/// Completes the lifecycle action once the Node is drained, and extends it after half its timeout before.
fn answer_hook(input: &Input<'_>, id: &str, is_drained: bool) -> Part {
    let Input { desired, memory, now, .. } = *input;
    let wanted = desired.hook.as_ref().map_or(60, |hook| hook.heartbeat_timeout);
    let actions = &memory.lifecycle_actions;
    // An instance that is held already has the timeout that the hook had at its last heartbeat.
    let timeout = i64::from(actions.heartbeat_timeout().map_or(wanted, |known| known.min(wanted)));
    let pause = if is_drained { TERMINATION_REPEAT } else { TimeDelta::seconds(timeout / 2) };
    let last = if is_drained { actions.completed_at(id) } else { actions.extended_at(id) };
    if let Some(wait) = last.and_then(|at| remaining(at + pause, now, pause)) {
        return Part::requeue(wait);
    }
    let (group, hook, instance) = (desired.group.clone(), TERMINATE_HOOK.to_owned(), id.to_owned());
    let mut part = Part::of(if is_drained {
        Write::CompleteLifecycleAction { group, hook, instance }
    } else {
        Write::RecordLifecycleActionHeartbeat { group, hook, instance }
    });
    part.requeue_within(pause);
    part
}
