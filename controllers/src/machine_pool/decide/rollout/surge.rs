//! The surge of a rolling update: instances beyond the replicas (H7).

use capasg_api::pool::RolloutType;
use capasg_cloud::Group;
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::decide::availability::disrupts;
use crate::machine_pool::decide::rollout::outdated::to_replace;
use crate::machine_pool::decide::rollout::permission::Permission;
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Input, Outdated, ReplicaOwner};

/// The number of instances beyond the replicas: as many as are still to be replaced, at most `maxSurge`. An instance
/// counts until it is drained, so that the last ones are terminated without a replacement, and exactly the surge is
/// removed.
#[must_use]
pub fn surge(input: &Input<'_>, group: &Group, outdated: &Outdated, permission: Permission) -> i32 {
    let desired = input.desired;
    // Desired capacity is not increased if another actor manages it (G2).
    let may_grow = desired.owner == ReplicaOwner::MachinePool && desired.replicas > 0;
    if !may_grow {
        return 0;
    }
    let most = desired.rollout.max_surge.min(left(input, outdated));
    let had = most.min((group.capacity.desired - desired.replicas).max(0));
    match permission {
        Permission::Open if misses_launches(input) => had.min(beyond_replicas(input)),
        Permission::Open => most,
        // Neither increased nor reduced: a change during a rollout, or a new leader, must not waste it.
        Permission::Settling(_) | Permission::Held => had,
        // This may last, and surplus instances must be terminated.
        Permission::Stalled => {
            let new = instances::live(input.observed).filter(|(id, _)| !outdated.is_outdated(id));
            had.min(instances::count(new))
        }
        // The termination of joined instances would be a disruption, which is not allowed now.
        Permission::Paused | Permission::Closed(_) => had.min(joined_beyond_replicas(input)),
        Permission::Stopped | Permission::Rejected | Permission::Refreshing => 0,
    }
}

/// How long until the surge of an open rollout is given up, or requested again, although nothing else changes.
#[must_use]
pub fn until_next(input: &Input<'_>, permission: Permission) -> Option<TimeDelta> {
    let Input { desired, memory, now, .. } = *input;
    let may_be_given_up = permission == Permission::Open && desired.rollout.max_unavailable > 0;
    may_be_given_up.then(|| memory.shortfall.until_next(desired.rollout.progress_deadline, now)).flatten()
}

/// How many instances are still to be replaced. While launch template versions are not read, at least as many as the
/// status reports: a failed read does not end a rollout, and a new leader knows no more than the status.
fn left(input: &Input<'_>, outdated: &Outdated) -> i32 {
    let counted = instances::count(to_replace(input, outdated).filter(|(_, m)| !m.is_drained()));
    let is_rolling_update = input.desired.rollout.type_ == RolloutType::RollingUpdate;
    if !is_rolling_update || outdated.unknown().is_empty() {
        return counted;
    }
    let reported = input.memory.rollout.reported();
    let reported = reported.filter(|reported| reported.type_ == RolloutType::RollingUpdate);
    counted.max(reported.map_or(0, |reported| reported.outdated))
}

/// Instances beyond the replicas that have joined and are not being deleted.
fn joined_beyond_replicas(input: &Input<'_>) -> i32 {
    let joined = instances::live(input.observed).filter(|(_, m)| disrupts(m) && !m.is_deleting());
    (instances::count(joined) - input.desired.replicas).max(0)
}

/// Whether the rollout continues without more surge: replicas may be unavailable, and launches have been missing for a
/// long time, now or recently. Otherwise the surge would be requested and given up repeatedly.
fn misses_launches(input: &Input<'_>) -> bool {
    let recently = |at: DateTime<Utc>| input.now - at < input.desired.rollout.progress_deadline;
    input.desired.rollout.max_unavailable > 0 && input.memory.shortfall.last_long().is_some_and(recently)
}

/// Live instances beyond the replicas.
fn beyond_replicas(input: &Input<'_>) -> i32 {
    (instances::live_count(input.observed) - input.desired.replicas).max(0)
}
