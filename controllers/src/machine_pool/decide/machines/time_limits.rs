//! Hands the `MachinePool`'s time limits for deletions to its Machines (D14).

use capasg_api::capi::MachineDeletion;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::model::{Input, Part, PoolInstance};

/// EC2 takes a Spot instance back two minutes after its notice: nothing waits for a drain longer than that.
const SPOT_WARNING_SECONDS: i32 = 120;

/// Hands them down, also to Machines that are being deleted: core does not. A limit that the `MachinePool` no longer has is
/// removed, except the one that core defaults.
#[must_use]
pub fn decide(input: &Input<'_>) -> Part {
    let mut part = Part::default();
    let Some(wanted) = input.desired.timeouts else { return part };
    for instance in input.observed.instances.values().filter(|m| !m.is_paused()) {
        let Some(machine) = &instance.machine else { continue };
        let mut deletion = limits(instance, wanted);
        deletion.node_deletion_timeout_seconds =
            wanted.node_deletion_timeout_seconds.or(machine.timeouts.node_deletion_timeout_seconds);
        if deletion != machine.timeouts {
            part.push(KubeWrite::PatchMachineTimeouts {
                machine: input.key(&machine.name),
                uid: machine.uid.clone(),
                deletion,
            });
        }
    }
    part
}

/// The limits for one Machine: a drain that takes longer than an interruption would outlive the machine.
#[must_use]
pub fn limits(instance: &PoolInstance, wanted: MachineDeletion) -> MachineDeletion {
    if !instance.is_interrupted() {
        return wanted;
    }
    // 0 is no limit.
    let shorter = |seconds: Option<i32>| {
        Some(
            seconds
                .filter(|seconds| *seconds > 0)
                .map_or(SPOT_WARNING_SECONDS, |own| own.min(SPOT_WARNING_SECONDS)),
        )
    };
    MachineDeletion {
        node_drain_timeout_seconds: shorter(wanted.node_drain_timeout_seconds),
        node_volume_detach_timeout_seconds: shorter(wanted.node_volume_detach_timeout_seconds),
        ..wanted
    }
}
