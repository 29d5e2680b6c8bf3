//! Decides about ends: our own exact ones, those that the cloud starts, and the completion of what our hook holds.

use std::collections::BTreeSet;

use capasg_api::names::TERMINATE_HOOK;
use capasg_cloud::{Group, LifecycleState, Write};
use chrono::{DateTime, TimeDelta, Utc};

use super::super::state::{Case, Desired, MachineRef, Member, Plan, reads_behind};
use super::in_flight;
use crate::kubernetes::{DeletionReason, KubeWrite};

/// An end that was asked for is not asked for again before this passed: a lost reply must not shrink a pool twice.
pub const END_REPEAT: TimeDelta = TimeDelta::seconds(60);
/// How long after its own limit core may take to give up a drain, before the hook is completed without it.
const CORE_GIVES_UP: TimeDelta = TimeDelta::seconds(30);
/// `TerminateInstanceInAutoScalingGroup` takes at most this many instances.
const ENDS_AT_MOST: usize = 100;

/// Ends the instances whose ASGMachine is being deleted (drained by core, or deleted directly by a person, D12).
///
/// The first `desired - target` shrink desired capacity, the rest is replaced: scale-in, a user's
/// `kubectl delete machine` and rollouts come out right from desired and target alone (D10).
pub fn ours(case: &Case<'_>, group: &Group, target: i32, plan: &mut Plan) {
    let Case { observed, now, .. } = *case;
    let mut due: Vec<(&String, &Member)> = Vec::new();
    for (id, member) in &observed.members {
        let standing = member.lifecycle().is_some_and(|state| !state.is_terminating());
        if !standing || !member.is_drained() || member.is_paused() {
            continue;
        }
        plan.in_transition = true;
        let asked = in_flight::asked_at(case, id, member);
        match asked.map(|at| at + END_REPEAT - now).filter(|wait| *wait > TimeDelta::zero()) {
            Some(wait) => plan.look_again_within(wait),
            None => due.push((id, member)),
        }
    }
    if due.is_empty() {
        return;
    }
    if !observed.fresh_group {
        plan.needs.fresh_group = true;
        return;
    }
    let left = case.memory.capacity.recently_left(now);
    let desired = left.map_or(group.capacity.desired, |left| left.min(group.capacity.desired));
    let excess = usize::try_from(desired - target).unwrap_or(0);
    // Nothing shrinks while reads may be behind what the process before this one wrote: each would shrink the pool once.
    if excess > 0
        && let Some(wait) = case.memory.began.and_then(|began| reads_behind(began, now))
    {
        plan.look_again_within(wait);
        return;
    }
    for (_, member) in &due {
        if let Some(machine) = &member.asg_machine {
            plan.kubernetes(KubeWrite::MarkEndRequested {
                machine: case.key(&machine.name),
                uid: machine.uid.clone(),
                instance: machine.instance.clone(),
                at: now,
            });
        }
    }
    // Only instances that are counted can shrink desired: standby ones are not.
    let (counted, uncounted): (Vec<_>, Vec<_>) = due.into_iter().partition(|(_, m)| m.is_live());
    let (shrinking, replaced) = counted.split_at(excess.min(counted.len()));
    let ids =
        |members: &[(&String, &Member)]| members.iter().map(|(id, _)| (*id).clone()).collect::<Vec<_>>();
    terminate(case, &ids(shrinking), true, plan);
    terminate(case, &[ids(replaced), ids(&uncounted)].concat(), false, plan);
}

fn terminate(case: &Case<'_>, ids: &[String], decrement: bool, plan: &mut Plan) {
    // A batch is refused whole: after a refusal each goes alone, so that one cannot hold the others up.
    let at_once = if case.memory.ends_refused { 1 } else { ENDS_AT_MOST };
    for chunk in ids.chunks(at_once) {
        plan.cloud(Write::TerminateInstances {
            group: case.desired.group.clone(),
            instances: chunk.iter().cloned().collect::<BTreeSet<_>>(),
            decrement,
        });
    }
}

/// Follows the instances that are ending in the group: starts the drain of those that we did not end, extends the
/// hook while the drain runs, completes it afterwards.
pub fn in_the_group(case: &Case<'_>, plan: &mut Plan) {
    let Case { desired, observed, now, .. } = *case;
    for (id, member) in observed.members.iter().filter(|(_, m)| !m.is_paused()) {
        let Some(state) = member.lifecycle().filter(|state| state.is_terminating()) else { continue };
        plan.in_transition = true;
        let gone = member.is_gone_since(case.first_seen(id));
        // The ASGMachine may be missing from the cache only: its Machine goes after it.
        let machine = member.machine.as_ref().or_else(|| observed.stray(id));
        let waits_for_core =
            member.asg_machine.as_ref().map_or(machine.is_some(), |own| own.deleting_since.is_none());
        if waits_for_core {
            match gone {
                // Whether the machine still runs decides whether its Node can be drained.
                None => {
                    plan.needs.facts.insert(id.clone());
                }
                Some(gone) => retire(case, member, gone, DeletionReason::Ended, plan),
            }
        }
        if *state == LifecycleState::TerminatingWait {
            let drained = !waits_for_core || gone == Some(true) || drain_limit_passed(desired, machine, now);
            answer_hook(case, id, drained, plan);
        }
    }
}

/// Deletes the Machine of an instance that ends or is gone; without a Machine, its ASGMachine (D11). While there is still
/// something to drain, a list says that there is no Machine: a cache may not show it yet.
pub fn retire(case: &Case<'_>, member: &Member, gone: bool, why: DeletionReason, plan: &mut Plan) {
    match (&member.machine, &member.asg_machine) {
        (Some(machine), _) => {
            let key = case.key(&machine.name);
            // Also when the drain already runs: evicting from a machine that is gone never ends.
            if gone && !machine.drain_excluded {
                plan.kubernetes(KubeWrite::ExcludeDrain { machine: key.clone(), uid: machine.uid.clone() });
            }
            if machine.deleting_since.is_none() {
                plan.kubernetes(KubeWrite::DeleteMachine { machine: key, uid: machine.uid.clone(), why });
            }
        }
        (None, Some(machine)) if machine.deleting_since.is_none() => {
            if !gone && !case.observed.live_machines {
                plan.needs.live_machines = true;
                return;
            }
            plan.kubernetes(KubeWrite::DeleteAsgMachine {
                machine: case.key(&machine.name),
                uid: machine.uid.clone(),
            });
        }
        _ => {}
    }
}

/// Whether a drain has taken as long as it may. Where that is core's own limit, core gives up by itself, and is given
/// time to say so (D14).
fn drain_limit_passed(desired: &Desired, machine: Option<&MachineRef>, now: DateTime<Utc>) -> bool {
    let core = desired.timeouts.and_then(|timeouts| timeouts.node_drain_timeout_seconds);
    let is_cores = core.is_some_and(|seconds| TimeDelta::seconds(i64::from(seconds)) == desired.drain_limit);
    let limit = desired.drain_limit + if is_cores { CORE_GIVES_UP } else { TimeDelta::zero() };
    machine.and_then(|machine| machine.deleting_since).is_some_and(|since| now >= since + limit)
}

/// Completes the hook's action once drained, and extends it at half its time-out before.
fn answer_hook(case: &Case<'_>, id: &str, drained: bool, plan: &mut Plan) {
    let Case { desired, memory, now, .. } = *case;
    let wanted = desired.hook.as_ref().map_or(60, |hook| hook.heartbeat_timeout);
    // What is held already keeps the time-out that the hook had at its last heartbeat.
    let timeout = i64::from(memory.hook_timeout.map_or(wanted, |known| known.min(wanted)));
    let pause = if drained { END_REPEAT } else { TimeDelta::seconds(timeout / 2) };
    let answered = if drained { &memory.completed } else { &memory.extended };
    let last = answered.get(id).copied();
    if let Some(wait) = last.map(|at| at + pause - now).filter(|wait| *wait > TimeDelta::zero()) {
        plan.look_again_within(wait);
        return;
    }
    let (group, hook, instance) = (desired.group.clone(), TERMINATE_HOOK.to_owned(), id.to_owned());
    plan.cloud(if drained {
        Write::CompleteLifecycleAction { group, hook, instance }
    } else {
        Write::RecordLifecycleActionHeartbeat { group, hook, instance }
    });
    plan.look_again_within(pause);
}
