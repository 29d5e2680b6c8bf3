//! Follows instances that the group does not list any more: deletes the Machines of those that AWS or another actor
//! removed, and releases the ASGMachines of terminated ones (D10, D11).

use capasg_cloud::LifecycleState;
use chrono::{DateTime, TimeDelta, Utc};

use crate::kubernetes::DeletionReason;
use crate::machine_pool::decide::machines::{deletion, facts};
use crate::machine_pool::decide::timing::MISSING_FOR;
use crate::machine_pool::model::provider_ids::{certain_list, recently_listed};
use crate::machine_pool::model::{Blocker, GroupView, Input, LIST_LAG, Needs, Part, PoolInstance};

/// EC2 is read again this long after an answer without the instance: it may not know an instance yet that was just
/// launched.
const UNKNOWN_FOR: TimeDelta = TimeDelta::seconds(5);

/// Decides about each instance. One that another actor detached while it was drained still runs: its ASGMachine is kept
/// until the instance is terminated or attached again, unless the pool is being deleted, which does not wait for
/// detached instances.
#[must_use]
pub fn decide(input: &Input<'_>, pool_is_deleted: bool) -> Part {
    let observed = input.observed;
    let listed = &input.objects.pool.spec.provider_id_list;
    let is_certain = certain_list(observed, listed, input.memory).is_some();
    let mut part = Part::needing(Needs { live_machines: !is_certain, ..Needs::default() });
    if !observed.group.is_settled() {
        return part;
    }
    if recently_listed(observed, input.memory).next().is_some() {
        // Only a later view shows whether the group still has them.
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

/// The decision about one instance, and whether it runs detached.
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
        // The view may lag, so EC2 is read before the Machine is deleted.
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

/// Whether a drained instance that its group does not list is terminated: EC2 describes it so, or the view is
/// sufficiently newer than AWS's answer to our call. The annotation on its ASGMachine does not prove it: the call may
/// never have been made, and another actor may have detached the instance since. A pool that is being deleted waits no
/// longer than listings lag.
fn has_left(input: &Input<'_>, pool_is_deleted: bool, id: &str, instance: &PoolInstance) -> bool {
    let accepted = input.memory.terminations.accepted_at(id);
    let is_behind = |(accepted, seen): (DateTime<Utc>, DateTime<Utc>)| seen - accepted >= LIST_LAG;
    accepted.zip(input.observed.group.as_of()).is_some_and(is_behind)
        || instance.is_terminated_since(input.first_seen(id)) == Some(true)
        || (pool_is_deleted && input.now - input.first_seen(id) >= MISSING_FOR)
}
