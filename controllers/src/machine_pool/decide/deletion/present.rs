//! A deletion while the group exists: stops launches, drains, terminates drained instances, then deletes the group by
//! force.

use std::collections::BTreeSet;

use capasg_api::names::TERMINATE_HOOK;
use capasg_cloud::{Group, GroupChange, Write};
use chrono::TimeDelta;

use crate::kubernetes::DeletionReason;
use crate::machine_pool::decide::deletion::remaining::{Waiting, draining, release};
use crate::machine_pool::decide::machines::{deletion, departures, time_limits};
use crate::machine_pool::decide::termination::{lifecycle_actions, requests};
use crate::machine_pool::model::{DeletionPhase, Desired, Input, Part, Phase, Plan, PoolInstance};

/// How often Machines are read whose deletion may not wake the pool.
const UNMATCHED_MACHINES: TimeDelta = TimeDelta::seconds(5);

/// Drains and terminates, or deletes the group.
pub(super) fn decide(input: &Input<'_>, group: &Group, waiting: Waiting) -> Plan {
    let Input { desired, observed, .. } = *input;
    let mut plan = Plan::of_deletion(DeletionPhase::DeletingGroup);
    if group.is_deleting() {
        plan.add(Phase::Departures, release(input, waiting));
        return plan;
    }
    let settled = observed.group.is_settled();
    if settled {
        plan.add(Phase::StopLaunches, stop_launches(desired, group));
    }
    // A Machine that core has not created cannot be waited for: its ASGMachine is deleted directly. A Machine whose
    // ASGMachine is deleted already still deletes its Node.
    let left = !observed.unmatched_machines.is_empty()
        || observed.instances.values().any(|m| m.asg_machine.is_some());
    if waiting == Waiting::ForMachines && left {
        plan.deletion = Some(draining(observed));
        plan.add(Phase::Drains, drains(input));
        if settled {
            plan.add(Phase::Terminations, requests::decide(input, group, 0, false));
            plan.add(Phase::LifecycleActions, lifecycle_actions::decide(input));
        }
        plan.add(Phase::Departures, departures::decide(input, true));
        if !observed.unmatched_machines.is_empty() {
            // Without its MachinePool, the pool of a deleted Machine is unknown.
            plan.requeue_within(UNMATCHED_MACHINES);
        }
    } else if settled {
        plan.add(Phase::Removal, delete_group(desired, group));
    }
    plan
}

/// Stops launches into a group that is to be deleted: suspends `Launch`, and sets `MinSize` 0.
fn stop_launches(desired: &Desired, group: &Group) -> Part {
    let mut part = Part::default();
    if !group.suspended_processes.contains_key("Launch") {
        part.push(Write::SuspendProcesses {
            group: desired.group.clone(),
            processes: BTreeSet::from(["Launch".to_owned()]),
        });
    }
    if group.capacity.min != 0 {
        let change =
            GroupChange { min: Some(0), desired: Some(group.capacity.desired), ..GroupChange::default() };
        part.push(Write::UpdateGroup { group: desired.group.clone(), change: Box::new(change) });
    }
    part
}

/// Copies the timeouts to the Machines, then deletes them.
fn drains(input: &Input<'_>) -> Part {
    let mut part = time_limits::decide(input);
    let has_machine = |m: &&PoolInstance| m.asg_machine.is_some() && !m.is_paused();
    for instance in input.observed.instances.values().filter(has_machine) {
        let without_drain = !input.desired.drain_on_deletion;
        part.merge(deletion::delete(input, instance, without_drain, DeletionReason::PoolDeleted));
    }
    part
}

fn delete_group(desired: &Desired, group: &Group) -> Part {
    let mut part = Part::default();
    if desired.hook.is_some() && !group.instances.is_empty() {
        // This completes the lifecycle actions that the hook still holds, so that the deletion does not wait for them.
        part.push(Write::DeleteLifecycleHook {
            group: desired.group.clone(),
            hook: TERMINATE_HOOK.to_owned(),
        });
    }
    part.push(Write::DeleteGroup { group: desired.group.clone(), force: true });
    part
}
