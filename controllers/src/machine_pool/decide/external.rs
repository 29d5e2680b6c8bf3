//! Decides for a pool whose replicas somebody else manages through the group's desired capacity (G2), and about the
//! hand-over in both directions.
//!
//! Their desired capacity is the target. It is never sent, so that no call of ours can take back what they just wrote;
//! it is copied to the MachinePool's replicas; and what lives beyond it is drained and ended without shrinking it.

use capasg_api::{
    ASGMachinePoolSpec, ASGMachinePoolStatus,
    capi::MachinePool,
    pool::{MOST_REPLICAS, ReplicaLimits},
};
use capasg_cloud::{Capacity, Group, GroupChange, Write};
use chrono::TimeDelta;

use super::{
    super::state::{Bounds, Case, Desired, GroupView, Observed, Plan, ReplicaOwner},
    group,
};
use crate::kubernetes::KubeWrite;

/// The same number is not written to a MachinePool again before this passed: something that writes another, such as a
/// topology, would be answered without end.
const FOUGHT_OVER: TimeDelta = TimeDelta::seconds(60);

/// Fills in who says how many instances there are to be, and how many.
///
/// * Annotation set: the group's desired capacity counts, as soon as that was reported, which no crash forgets. Before,
///   it may hold our own surge or a scale-in under way: that is finished first, so that it is never copied back
///   ([`ReplicaOwner::Awaited`]). Until then the bounds let nobody set more.
/// * Annotation gone, replicas untouched: the MachinePool takes over what the group has ([`ReplicaOwner::Returning`]).
///   Replicas that were edited together with the annotation are a wish and count at once.
pub fn settle(
    desired: &mut Desired,
    observed: &Observed,
    spec: &ASGMachinePoolSpec,
    owner: &MachinePool,
    told: Told<'_>,
) {
    let group = observed.group.present().filter(|group| group::foreign(desired, group).is_none());
    let reported = told.before || told.status.is_some_and(|status| status.replicas_managed_by.is_some());
    desired.owner = if owner.replicas_managed_by().is_some() {
        let bounds = bounds(spec.limits(Some(owner)));
        match group {
            Some(group) if reported => {
                desired.replicas = group.capacity.desired;
                ReplicaOwner::External(bounds)
            }
            // A view from before our last write would hide a surge.
            Some(group) if observed.group.is_settled() && is_theirs(desired, group, bounds, told.status) => {
                desired.replicas = group.capacity.desired;
                ReplicaOwner::Announced
            }
            None if reported || matches!(observed.group, GroupView::Absent { .. }) => {
                ReplicaOwner::External(bounds)
            }
            _ => ReplicaOwner::Awaited,
        }
    } else {
        match group {
            Some(group) if reported && is_untouched(owner, told.status) => {
                desired.replicas = group.capacity.desired;
                ReplicaOwner::Returning
            }
            _ => ReplicaOwner::MachinePool,
        }
    };
    // Percentages are of the number that counts.
    desired.rollout = spec.rollout(desired.replicas);
    desired.disruption = spec.disruption(desired.replicas);
}

/// What was told of the owner before.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told<'a> {
    /// The last report, as a cache has it.
    pub status: Option<&'a ASGMachinePoolStatus>,
    /// Whether this process reported somebody else, which the cache may not show yet.
    pub before: bool,
}

/// The group's bounds: the spec's, which an external owner is bound by.
fn bounds(limits: ReplicaLimits) -> Bounds {
    let max = limits.max.unwrap_or(MOST_REPLICAS).max(limits.min);
    Bounds { min: limits.min, max }
}

/// Whether desired capacity holds nothing of ours any more. Where the status was lost, their bounds tell that it was
/// theirs before: a group that the MachinePool sizes has others.
fn is_theirs(
    desired: &Desired,
    group: &Group,
    bounds: Bounds,
    status: Option<&ASGMachinePoolStatus>,
) -> bool {
    let lost = status.is_none_or(|status| status.group.is_none());
    let Capacity { min, max, desired: has } = group.capacity;
    has <= desired.replicas || (lost && Bounds { min, max } == bounds)
}

/// Whether the MachinePool's replicas are still those that were last known to equal desired capacity.
fn is_untouched(owner: &MachinePool, status: Option<&ASGMachinePoolStatus>) -> bool {
    status.is_some_and(|status| status.desired_replicas == owner.replicas())
}

/// Capacity of a group that is created. It begins with the MachinePool's replicas whoever manages them later.
#[must_use]
pub fn at_creation(desired: &Desired) -> Capacity {
    let replicas = desired.replicas;
    match desired.owner {
        ReplicaOwner::External(Bounds { min, max }) => Capacity { min, max, desired: replicas },
        _ => Capacity { min: 0, max: replicas, desired: replicas },
    }
}

/// Plans the bounds of a group that somebody else sizes: alone, since AWS moves desired capacity into them by itself,
/// and a value of ours would undo what was just written. Then copies desired capacity to the MachinePool (G2), zero
/// included, so that core takes the Nodes away. Only from a settled view, and not from one that the bounds change.
pub fn bounds_and_replicas(case: &Case<'_>, bounds: Bounds, have: Capacity, plan: &mut Plan) {
    let Bounds { min, max } = bounds;
    if bounds == (Bounds { min: have.min, max: have.max }) {
        write_back(case, have.desired, plan);
    } else {
        let change = GroupChange { min: Some(min), max: Some(max), ..GroupChange::default() };
        plan.cloud(Write::UpdateGroup { group: case.desired.group.clone(), change: Box::new(change) });
        plan.in_transition = true;
    }
}

/// Hands the group's size back to the MachinePool. Tells whether it is handed over, by a view read for this alone: an
/// older one may lack what was written last.
pub fn hand_back(case: &Case<'_>, have: Capacity, plan: &mut Plan) -> bool {
    if !case.observed.group.is_settled() || !case.observed.fresh_group {
        plan.needs.fresh_group = true;
        return false;
    }
    write_back(case, have.desired, plan)
}

/// Copies desired capacity to the MachinePool's replicas, unless they are equal: then it tells so.
fn write_back(case: &Case<'_>, has: i32, plan: &mut Plan) -> bool {
    let Some(owner) = &case.desired.machine_pool else { return false };
    if owner.replicas == has {
        return true;
    }
    let written = case.memory.replicas_written.filter(|(replicas, _)| *replicas == has);
    if let Some(wait) = written.map(|(_, at)| at + FOUGHT_OVER - case.now).filter(|w| *w > TimeDelta::zero())
    {
        plan.look_again_within(wait);
        return false;
    }
    plan.kubernetes(KubeWrite::MachinePoolReplicas {
        machine_pool: case.key(&owner.name),
        uid: owner.uid.clone(),
        resource_version: owner.resource_version.clone(),
        replicas: has,
    });
    false
}

/// The annotation's value, as far as status has room for it; an empty one counts as well.
fn name_of(by: &str) -> String {
    if by.is_empty() { "true".to_owned() } else { by.chars().take(256).collect() }
}

/// Whether a report told of somebody else; `before` is what was told by this process until then.
#[must_use]
pub fn was_told(desired: &Desired, handed_back: bool, before: bool) -> bool {
    match desired.owner {
        ReplicaOwner::External(_) | ReplicaOwner::Announced => true,
        ReplicaOwner::Awaited => before,
        ReplicaOwner::Returning => !handed_back,
        ReplicaOwner::MachinePool => false,
    }
}

/// `status.replicasManagedBy` and `status.desiredReplicas`.
///
/// The number changes only when MachinePool and group agree, and the name stays until the group is `handed_back`: together
/// they tell at a hand-over whether somebody edited replicas meanwhile.
pub fn report(
    status: &mut ASGMachinePoolStatus,
    owner: &MachinePool,
    desired: Option<&Desired>,
    handed_back: bool,
) {
    let agreed = |desired: &Desired| desired.replicas == owner.replicas();
    match desired.map(|desired| (&desired.owner, desired)) {
        // Nothing is known now: it stays as it was.
        None if owner.replicas_managed_by().is_some() || status.replicas_managed_by.is_some() => {}
        Some((ReplicaOwner::External(_) | ReplicaOwner::Announced, desired)) => {
            status.replicas_managed_by = owner.replicas_managed_by().map(name_of);
            if agreed(desired) {
                status.desired_replicas = desired.replicas;
            }
        }
        Some((ReplicaOwner::Awaited, _)) => status.desired_replicas = owner.replicas(),
        // A view that equals replicas may be from before the last number that somebody set.
        Some((ReplicaOwner::Returning, _)) if !handed_back => {}
        _ => {
            status.replicas_managed_by = None;
            status.desired_replicas = owner.replicas();
        }
    }
}
