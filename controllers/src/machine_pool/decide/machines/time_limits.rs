//! Copies the `MachinePool`'s timeouts for deletions to its Machines (D14).

use capasg_api::capi::MachineDeletion;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::model::{Input, Part, PoolInstance};

/// EC2 reclaims a Spot instance two minutes after its interruption notice: no drain may take longer.
const SPOT_WARNING_SECONDS: i32 = 120;

/// Copies them, also to Machines that are being deleted, since core does not. A timeout that the `MachinePool` no
/// longer has is removed, except the one that core defaults.
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

/// The timeouts for one Machine. After a Spot interruption notice they are at most two minutes.
#[must_use]
pub fn limits(instance: &PoolInstance, wanted: MachineDeletion) -> MachineDeletion {
    if !instance.is_interrupted() {
        return wanted;
    }
    // 0 is no timeout.
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
