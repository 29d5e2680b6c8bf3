//! How many replicas are requested, and for how long an older fact may still be acted on.

use capasg_api::{ASGMachinePool, capi::MachinePool};
use chrono::TimeDelta;

/// For how long after a change of replicas an older wish may still be acted on: a decision that was made is carried out.
/// It begins when the caches show the change: a watch that stalls for minutes (`Act::Freeze`) keeps the older wish.
pub(crate) const GRACE: TimeDelta = TimeDelta::seconds(10);

/// What nobody tells of is seen by a poll, at most a minute later.
pub(crate) const UNSEEN: TimeDelta = TimeDelta::seconds(90);

/// The same where events announce what AWS does, but not what others request: five minutes later.
pub(crate) const UNSEEN_WITH_EVENTS: TimeDelta = TimeDelta::seconds(330);

/// The replicas that are asked for, within the limits of the spec.
pub(crate) fn within_limits(pool: &ASGMachinePool, owner: &MachinePool) -> i32 {
    let limits = pool.spec.limits(Some(owner));
    limits.max.map_or(owner.replicas(), |max| owner.replicas().min(max)).max(limits.min)
}
