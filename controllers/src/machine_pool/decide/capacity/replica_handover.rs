//! Decides for a pool whose replicas another actor manages by the group's desired capacity (G2), and about the
//! hand-over in both directions.
//!
//! Their desired capacity is the target. It is never sent, so that no call of this controller can revert it. It is
//! copied to the MachinePool's replicas, and instances beyond it are drained and terminated without a decrement.

use capasg_api::{
    ASGMachinePoolSpec, ASGMachinePoolStatus,
    capi::MachinePool,
    pool::{MAX_REPLICAS, ReplicaLimits},
};
use capasg_cloud::{Capacity, Group, GroupChange, Write};
use chrono::TimeDelta;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::model::ownership::is_owned;
use crate::machine_pool::model::{Bounds, Desired, GroupView, Input, Observed, Part, ReplicaOwner};

/// The same number is not written to a MachinePool again within this time: an actor that writes another number, such as
/// the topology controller, would otherwise be answered without end.
const CONTESTED: TimeDelta = TimeDelta::seconds(60);

/// The desired state with the owner of the replicas, and their number; unchanged if the MachinePool is deleted.
#[must_use]
pub fn settle(input: &Input<'_>) -> Desired {
    let Some(owner) = &input.objects.machine_pool else { return input.desired.clone() };
    let pool = &input.objects.pool;
    let reported = Reported {
        status: pool.status.as_ref(),
        before: input.memory.replicas.reported_external(),
        is_behind: own_write_is_hidden(input).is_some(),
    };
    settled(input.desired, input.observed, &pool.spec, owner, reported)
}

/// Sets the owner of the replicas, and their number.
///
/// * With the annotation, the group's desired capacity counts as soon as the status reports so. Before, it may include
///   our own surge or a scale-in in progress, which is completed first, so that it is never copied back
///   ([`ReplicaOwner::ExternalPending`]). Until then the bounds prevent an increase.
/// * If the annotation was removed and the replicas were not changed, the MachinePool gets the group's desired capacity
///   ([`ReplicaOwner::MachinePoolPending`]), within `minSize` and `maxSize`: another actor may have moved it out of them
///   just before. Replicas that were edited together with the annotation count at once.
#[must_use]
pub fn settled(
    desired: &Desired,
    observed: &Observed,
    spec: &ASGMachinePoolSpec,
    owner: &MachinePool,
    last: Reported<'_>,
) -> Desired {
    let mut desired = desired.clone();
    let bounds = bounds(spec.limits(Some(owner)));
    let group = observed.group.present().filter(|group| is_owned(&desired, group));
    let in_status = || last.status.is_some_and(|status| status.replicas_managed_by.is_some());
    let reported = last.before.unwrap_or_else(in_status);
    desired.owner = if owner.replicas_managed_by().is_some() {
        match group {
            Some(group) if reported => {
                desired.replicas = group.capacity.desired;
                ReplicaOwner::External(bounds)
            }
            // A view from before our last write may not show a surge.
            Some(group) if observed.group.is_settled() && is_theirs(&desired, group, bounds, last) => {
                desired.replicas = group.capacity.desired;
                ReplicaOwner::ExternalUnreported
            }
            None if reported || matches!(observed.group, GroupView::Absent { .. }) => {
                ReplicaOwner::External(bounds)
            }
            _ => ReplicaOwner::ExternalPending,
        }
    } else {
        match group {
            Some(group) if reported && is_untouched(owner, last.status) => {
                desired.replicas = group.capacity.desired.clamp(bounds.min, bounds.max);
                ReplicaOwner::MachinePoolPending
            }
            // What the other actor set last was not read yet, by a new leader for example.
            None if reported
                && is_untouched(owner, last.status)
                && !matches!(observed.group, GroupView::Absent { .. }) =>
            {
                ReplicaOwner::MachinePoolPending
            }
            _ => ReplicaOwner::MachinePool,
        }
    };
    // What a guard forbids is not launched; nothing is terminated because of it.
    let most = desired.ceiling.map(|ceiling| ceiling.max(group.map_or(0, |group| group.capacity.desired)));
    // Surges have to fit as well: otherwise they would count as what the pool has, and grow with each rollout.
    desired.ceiling = most;
    if let Some(most) = most {
        desired.replicas = desired.replicas.min(most);
        if let ReplicaOwner::External(bounds) = &mut desired.owner {
            (bounds.min, bounds.max) = (bounds.min.min(most), bounds.max.min(most));
        }
    }
    // Percentages refer to this number.
    desired.rollout = spec.rollout(desired.replicas);
    if let Some(most) = most {
        desired.rollout = desired.rollout.with_surge_up_to((most - desired.replicas).max(0));
    }
    desired.disruption = spec.disruption(desired.replicas);
    desired
}

/// The owner of the replicas as it was reported before.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reported<'a> {
    /// The last status, as the cache has it.
    pub status: Option<&'a ASGMachinePoolStatus>,
    /// Whether this process reported another actor last, which the cache may not show yet; `None` if it reported nothing
    /// yet.
    pub before: Option<bool>,
    /// Whether reads may not show the desired capacity that this controller wrote last.
    pub is_behind: bool,
}

/// For how much longer reads may not show the desired capacity that this controller wrote last, or the previous leader.
#[must_use]
pub fn own_write_is_hidden(input: &Input<'_>) -> Option<TimeDelta> {
    let Input { memory, now, .. } = *input;
    memory.capacity.reads_behind(now).max(memory.behind_previous_leader(now))
}

/// The group's bounds for an external owner: those of the spec.
fn bounds(limits: ReplicaLimits) -> Bounds {
    let max = limits.max.unwrap_or(MAX_REPLICAS).max(limits.min);
    Bounds { min: limits.min, max }
}

/// Whether desired capacity includes no surge or scale-in of ours. If the status was lost, the bounds show that the
/// other actor managed the replicas before: under a MachinePool a group has other bounds.
fn is_theirs(desired: &Desired, group: &Group, bounds: Bounds, last: Reported<'_>) -> bool {
    let is_lost = last.status.is_none_or(|status| status.group.is_none());
    let Capacity { min, max, desired: has } = group.capacity;
    (has <= desired.replicas && !last.is_behind) || (is_lost && Bounds { min, max } == bounds)
}

/// Whether the MachinePool's replicas are those that last equaled desired capacity.
fn is_untouched(owner: &MachinePool, status: Option<&ASGMachinePoolStatus>) -> bool {
    status.is_some_and(|status| status.desired_replicas == owner.replicas())
}

/// The capacity of a group that is created. It starts with the MachinePool's replicas, even if another actor manages
/// them later.
#[must_use]
pub fn at_creation(desired: &Desired) -> Capacity {
    let replicas = desired.replicas;
    match desired.owner {
        ReplicaOwner::External(Bounds { min, max }) => Capacity { min, max, desired: replicas },
        _ => Capacity { min: 0, max: replicas, desired: replicas },
    }
}

/// Plans the bounds of a group whose replicas another actor manages. They are sent without desired capacity, which AWS
/// moves into them by itself: a value of ours could revert a recent write. Then copies desired capacity to the
/// MachinePool (G2), zero included, so that core deletes the Nodes. Only from a settled view whose bounds are as
/// desired.
#[must_use]
pub fn bounds_and_replicas(input: &Input<'_>, bounds: Bounds, have: Capacity) -> Part {
    let Bounds { min, max } = bounds;
    if bounds == (Bounds { min: have.min, max: have.max }) {
        return write_back(input, have.desired).1;
    }
    let change = GroupChange { min: Some(min), max: Some(max), ..GroupChange::default() };
    let write = Write::UpdateGroup { group: input.desired.group.clone(), change: Box::new(change) };
    Part { in_transition: true, ..Part::of(write) }
}

/// Hands the replicas back to the MachinePool. Returns whether that is complete, by a view that was read for this
/// alone: an older one may not show the last write. While even that may not show what this controller wrote last, or the
/// previous leader, it waits: the surge of a rollout would become replicas.
#[must_use]
pub fn hand_back(input: &Input<'_>) -> (bool, Part) {
    if let Some(wait) = own_write_is_hidden(input) {
        return (false, Part::requeue(wait));
    }
    if !input.observed.group.is_settled() || !input.fresh_group() {
        return (false, Part::needing_group());
    }
    let (is_complete, mut part) = write_back(input, input.desired.replicas);
    if is_complete {
        // The MachinePool manages them once that is reported, which wakes nothing if the status says so already.
        part.requeue_within(TimeDelta::zero());
    }
    (is_complete, part)
}

/// Copies a number to the MachinePool's replicas. Returns whether they are equal.
fn write_back(input: &Input<'_>, replicas: i32) -> (bool, Part) {
    let Some(owner) = &input.desired.machine_pool else { return (false, Part::default()) };
    if owner.replicas == replicas {
        return (true, Part::default());
    }
    let written = input.memory.replicas.written_at(replicas);
    if let Some(wait) = written.map(|at| at + CONTESTED - input.now).filter(|w| *w > TimeDelta::zero()) {
        return (false, Part::requeue(wait));
    }
    let write = KubeWrite::PatchMachinePoolReplicas {
        machine_pool: input.key(&owner.name),
        uid: owner.uid.clone(),
        resource_version: owner.resource_version.clone(),
        replicas,
    };
    (false, Part::of(write))
}
