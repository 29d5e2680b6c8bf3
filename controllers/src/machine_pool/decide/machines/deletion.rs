//! Deletes Machines, and releases ASGMachines.

use chrono::TimeDelta;

use crate::kubernetes::{DeletionReason, KubeWrite};
use crate::machine_pool::model::{AsgMachineRef, Input, MachineRef, Needs, Part, PoolInstance};

/// Core has at least this long before a lifecycle action is completed: a poll may show it after a minute, and then
/// core creates its Machine.
const CORE_STARTS: TimeDelta = TimeDelta::minutes(2);

/// Deletes a Machine: core drains its Node and then deletes the ASGMachine (D7).
#[must_use]
pub fn delete_machine(input: &Input<'_>, machine: &MachineRef, reason: DeletionReason) -> KubeWrite {
    KubeWrite::DeleteMachine { machine: input.key(&machine.name), uid: machine.uid.clone(), reason }
}

/// Deletes an ASGMachine directly.
#[must_use]
pub fn delete_asg_machine(input: &Input<'_>, machine: &AsgMachineRef) -> KubeWrite {
    KubeWrite::DeleteAsgMachine { machine: input.key(&machine.name), uid: machine.uid.clone() }
}

/// Deletes the Machine of an instance that terminates or is terminated; without a Machine, its ASGMachine (D11). If the
/// instance still runs, core may yet create the Machine, and then a live list must show that there is none: a cache may
/// not show it yet.
#[must_use]
pub fn delete(
    input: &Input<'_>,
    instance: &PoolInstance,
    is_terminated: bool,
    reason: DeletionReason,
) -> Part {
    let mut part = Part::default();
    match (&instance.machine, &instance.asg_machine) {
        (Some(machine), _) => {
            // Also if the drain is in progress: on a terminated instance it would never complete.
            if is_terminated && !machine.drain_excluded {
                part.push(KubeWrite::AnnotateExcludeNodeDraining {
                    machine: input.key(&machine.name),
                    uid: machine.uid.clone(),
                });
            }
            if machine.deleting_since.is_none() {
                part.push(delete_machine(input, machine, reason));
            }
        }
        (None, Some(machine)) if machine.deleting_since.is_none() => {
            if !is_terminated {
                let wait = if reason == DeletionReason::Terminated {
                    wait_for_machine(input, &machine.instance_id)
                } else {
                    wait_for_core(input, instance)
                };
                if let Some(wait) = wait {
                    return Part::requeue(wait);
                }
                if !input.observed.live_machines {
                    return Part::needing(Needs { live_machines: true, ..Needs::default() });
                }
            }
            part.push(delete_asg_machine(input, machine));
        }
        _ => {}
    }
    part
}

/// How long core may take to create a Machine, or to reconcile it for the first time: as long as a drain, but a shorter
/// drain limit does not make core faster.
fn longest_wait(input: &Input<'_>) -> TimeDelta {
    input.desired.drain_limit.max(CORE_STARTS)
}

/// For how much longer core may reconcile the Machine of an instance for the first time, as long as a drain at most: its
/// Node may have joined.
fn wait_for_core(input: &Input<'_>, instance: &PoolInstance) -> Option<TimeDelta> {
    let wait = instance.unreconciled_since? + longest_wait(input) - input.now;
    Some(wait).filter(|wait| *wait > TimeDelta::zero())
}

/// For how much longer core may create the Machine of an instance that terminates, and then drain its Node: it does not
/// drain that of an ASGMachine that is being deleted. The lifecycle hook holds the instance meanwhile. A core that is down
/// is waited for no longer than a drain.
pub(super) fn wait_for_machine(input: &Input<'_>, id: &str) -> Option<TimeDelta> {
    let instance = input.observed.instances.get(id);
    let has_owner =
        input.objects.machine_pool.as_ref().is_some_and(|owner| owner.metadata.deletion_timestamp.is_none());
    let creation = has_owner
        .then(|| input.first_seen(id) + longest_wait(input) - input.now)
        .filter(|wait| *wait > TimeDelta::zero());
    instance.and_then(|instance| wait_for_core(input, instance)).max(creation)
}

/// Releases an ASGMachine.
#[must_use]
pub fn release(input: &Input<'_>, machine: &AsgMachineRef) -> KubeWrite {
    KubeWrite::RemoveAsgMachineFinalizer {
        machine: input.key(&machine.name),
        uid: machine.uid.clone(),
        instance: machine.instance_id.clone(),
        terminated: has_terminated(input, &machine.instance_id),
    }
}

/// Whether the instance of a released ASGMachine has terminated, for users. AWS terminates the instances of a group that
/// is deleted; those of an orphaned group, and those that another actor detached, keep running.
fn has_terminated(input: &Input<'_>, id: &str) -> bool {
    let by_ec2 = input.observed.instances.get(id).and_then(|m| m.is_terminated_since(input.first_seen(id)));
    input.memory.terminations.accepted_at(id).is_some() || by_ec2.unwrap_or(!input.desired.orphan_on_deletion)
}

/// Releases the ASGMachine of a terminated instance, if it is being deleted.
#[must_use]
pub fn release_deleted(input: &Input<'_>, instance: &PoolInstance) -> Option<KubeWrite> {
    let machine = instance.asg_machine.as_ref().filter(|m| m.has_finalizer && m.deleting_since.is_some())?;
    Some(release(input, machine))
}
