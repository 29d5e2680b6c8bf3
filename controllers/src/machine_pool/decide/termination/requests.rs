//! Terminates the instances whose ASGMachine is being deleted: drained by core, or deleted directly by a user (D12).

use std::collections::BTreeSet;

use capasg_cloud::{Group, Write};
use chrono::TimeDelta;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::decide::termination::in_flight::requested_at;
use crate::machine_pool::decide::timing::TERMINATION_REPEAT;
use crate::machine_pool::model::{Input, Part, PoolInstance, instances};

/// At most this many instances are terminated in one step.
const AT_MOST: usize = 100;

/// Requests the terminations that are due.
///
/// Decrements desired capacity for `desired - target` terminations; the group replaces the other instances. So the reason
/// of each deletion (scale-in, rollout, user) need not be recorded (D10). Where the group `shrinks` by itself to its desired
/// capacity, the instances beyond it come first, without a decrement: the group would terminate as many others, and not
/// replace them. It has some after a decrement for an instance that AWS had just begun to terminate. It does not shrink
/// during an instance refresh, nor where AWS launches before it terminates.
#[must_use]
pub fn decide(input: &Input<'_>, group: &Group, target: i32, shrinks: bool) -> Part {
    let now = input.now;
    let (mut part, due) = due(input);
    if due.is_empty() {
        return part;
    }
    if !input.fresh_group() {
        part.needs.fresh_group = true;
        return part;
    }
    let left = input.memory.capacity.recently_left(now);
    let desired = left.map_or(group.capacity.desired, |left| left.min(group.capacity.desired));
    let excess = usize::try_from(desired - target).unwrap_or(0);
    // No decrement while reads may not show a decrement of the previous leader: it would be made twice.
    if excess > 0
        && let Some(wait) = input.memory.behind_previous_leader(now)
    {
        part.requeue_within(wait);
        return part;
    }
    for (_, instance) in &due {
        if let Some(machine) = &instance.asg_machine {
            part.push(KubeWrite::AnnotateTerminationRequested {
                machine: input.key(&machine.name),
                uid: machine.uid.clone(),
                instance: machine.instance_id.clone(),
                at: now,
            });
        }
    }
    // Only live instances count towards desired capacity, which a decrement lowers; those in standby do not.
    let (counted, uncounted): (Vec<_>, Vec<_>) = due.into_iter().partition(|(_, m)| m.is_live());
    let beyond = instances::live_count(input.observed) - group.capacity.desired;
    let beyond = if shrinks && excess > 0 { usize::try_from(beyond).unwrap_or(0) } else { 0 };
    let (beyond, counted) = counted.split_at(beyond.min(counted.len()));
    let (decremented, replaced) = counted.split_at(excess.min(counted.len()));
    let ids = |instances: &[(&String, &PoolInstance)]| {
        instances.iter().map(|(id, _)| (*id).clone()).collect::<Vec<_>>()
    };
    part.merge(terminate(input, &ids(beyond), false));
    part.merge(terminate(input, &ids(decremented), true));
    part.merge(terminate(input, &[ids(replaced), ids(&uncounted)].concat(), false));
    part
}

/// The instances that are to be terminated now, and when to requeue for the others.
fn due<'a>(input: &Input<'a>) -> (Part, Vec<(&'a String, &'a PoolInstance)>) {
    let mut part = Part::default();
    let mut due = Vec::new();
    for (id, instance) in &input.observed.instances {
        let stays = instance.lifecycle().is_some_and(|state| !state.is_terminating());
        if !stays || !instance.is_drained() || instance.is_paused() {
            continue;
        }
        part.in_transition = true;
        let requested = requested_at(input, id, instance);
        match requested.map(|at| at + TERMINATION_REPEAT - input.now).filter(|wait| *wait > TimeDelta::zero())
        {
            Some(wait) => part.requeue_within(wait),
            None => due.push((id, instance)),
        }
    }
    (part, due)
}

/// Requests terminations in batches; after a failure of an instance, its termination is requested alone, so that it does
/// not delay the others.
fn terminate(input: &Input<'_>, ids: &[String], decrement: bool) -> Part {
    let failed = &input.memory.failed_calls;
    let (alone, together): (Vec<&String>, Vec<&String>) =
        ids.iter().partition(|id| failed.terminates_alone(id));
    Part::of_all(together.chunks(AT_MOST).chain(alone.chunks(1)).map(|chunk| Write::TerminateInstances {
        group: input.desired.group.clone(),
        instances: chunk.iter().map(|id| (*id).clone()).collect::<BTreeSet<_>>(),
        decrement,
    }))
}
