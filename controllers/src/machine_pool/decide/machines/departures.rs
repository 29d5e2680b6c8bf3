//! Follows instances that leave their group: deletes the Machines of those that left without us, and releases the
//! ASGMachines of those that are terminated (D10, D11).

use capasg_cloud::LifecycleState;
use chrono::{DateTime, TimeDelta, Utc};

use crate::kubernetes::DeletionReason;
use crate::machine_pool::decide::machines::{deletion, facts};
use crate::machine_pool::decide::timing::MISSING_FOR;
use crate::machine_pool::model::provider_ids::recently_listed;
use crate::machine_pool::model::{Blocker, GroupView, Input, LIST_LAG, Part, PoolInstance};

/// An answer without the instance is requested again after this: EC2 may not know yet what was just launched.
const UNKNOWN_FOR: TimeDelta = TimeDelta::seconds(5);

/// An instance that another actor detached while it was drained runs on: its ASGMachine is held until it is terminated or
/// back, unless the whole pool is being deleted, which waits for no instance that its group does not have.
#[must_use]
pub fn decide(input: &Input<'_>, pool_is_deleted: bool) -> Part {
    let observed = input.observed;
    let mut part = Part::default();
    if !observed.group.is_settled() {
        return part;
    }
    if recently_listed(observed, input.memory).next().is_some() {
        // Only a much later view shows whether they left.
        part.in_transition = true;
        part.requeue_within(LIST_LAG);
    }
    let mut detached = Vec::new();
    for (id, instance) in observed.instances.iter().filter(|(_, m)| !m.is_paused()) {
        let (departure, is_detached) = departure(input, pool_is_deleted, id, instance);
        part.merge(departure);
        if is_detached {
            detached.push(id.clone());
        }
    }
    if !detached.is_empty() && matches!(observed.group, GroupView::Present { .. }) {
        part.blocker = Some(Blocker::Detached { instances: detached });
    }
    part.merge(without_asg_machine(input));
    part
}

/// What is done about one instance, and whether it runs detached.
fn departure(input: &Input<'_>, pool_is_deleted: bool, id: &str, instance: &PoolInstance) -> (Part, bool) {
    let is_terminated = instance.is_terminated_since(input.first_seen(id));
    let is_listed = instance.lifecycle().is_some_and(|state| *state != LifecycleState::Terminated);
    let detached = || (facts::read(input, id, instance, MISSING_FOR), true);
    if is_listed {
        return (released(input, instance, is_terminated == Some(true)), false);
    }
    if instance.is_drained() {
        if is_terminated == Some(false) && instance.listed.is_none() && !pool_is_deleted {
            return detached();
        }
        let has_left = has_left(input, pool_is_deleted, id, instance);
        let mut part = released(input, instance, has_left);
        if !has_left {
            part.merge(facts::read(input, id, instance, UNKNOWN_FOR));
        }
        return (part, false);
    }
    match is_terminated {
        // The list may lag, so EC2 is read before the Machine is deleted.
        None => (facts::read(input, id, instance, UNKNOWN_FOR), false),
        Some(true) => (deletion::delete(input, instance, true, DeletionReason::Terminated), false),
        Some(false) => detached(),
    }
}

/// Machines whose ASGMachine is deleted.
fn without_asg_machine(input: &Input<'_>) -> Part {
    let observed = input.observed;
    let mut machines = observed.unmatched_machines.iter().filter(|m| m.deleting_since.is_none()).peekable();
    let mut part = Part::default();
    if machines.peek().is_some() && !observed.live_machines {
        // The cache may show a new Machine before its ASGMachine.
        part.needs.live_machines = true;
        return part;
    }
    for machine in machines {
        part.push(deletion::delete_machine(input, machine, DeletionReason::Terminated));
    }
    part
}

fn released(input: &Input<'_>, instance: &PoolInstance, is_terminated: bool) -> Part {
    Part::of_all(deletion::release_deleted(input, instance).filter(|_| is_terminated))
}

/// Whether a drained instance that its group does not list (any more) is terminated: EC2 says so, or a view says so that
/// is well younger than AWS's answer to our call. The annotation on its ASGMachine does not say it: a termination that was
/// recorded may never have been requested, and another actor may have detached the instance since. A pool that is deleted
/// waits no longer than any list lags.
fn has_left(input: &Input<'_>, pool_is_deleted: bool, id: &str, instance: &PoolInstance) -> bool {
    let accepted = input.memory.terminations.accepted_at(id);
    let is_behind = |(accepted, seen): (DateTime<Utc>, DateTime<Utc>)| seen - accepted >= LIST_LAG;
    accepted.zip(input.observed.group.as_of()).is_some_and(is_behind)
        || instance.is_terminated_since(input.first_seen(id)) == Some(true)
        || (pool_is_deleted && input.now - input.first_seen(id) >= MISSING_FOR)
}
