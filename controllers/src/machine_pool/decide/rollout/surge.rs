//! The surge of a rolling update: instances beyond the replicas (H7).

use capasg_cloud::Group;
use chrono::{DateTime, Utc};

use crate::machine_pool::decide::availability::disrupts;
use crate::machine_pool::decide::rollout::outdated::to_replace;
use crate::machine_pool::decide::rollout::progress::Progress;
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Input, Outdated, ReplicaOwner};

/// The instances beyond the replicas that the rollout has at this moment: as many as are still to be replaced, at most
/// `maxSurge`. An instance counts until it is drained, so that the last ones leave without being replaced and the surge is
/// given back exactly.
#[must_use]
pub fn surge(input: &Input<'_>, group: &Group, outdated: &Outdated, progress: Progress) -> i32 {
    let desired = input.desired;
    // Desired capacity that another actor writes is never ours to raise (G2).
    let may_grow = desired.owner == ReplicaOwner::MachinePool && desired.replicas > 0;
    if !may_grow {
        return 0;
    }
    let left = instances::count(to_replace(input, outdated).filter(|(_, m)| !m.is_drained()));
    let most = desired.rollout.max_surge.min(left);
    let had = most.min((group.capacity.desired - desired.replicas).max(0));
    match progress {
        Progress::Open if misses_launches(input) => had.min(beyond_replicas(input)),
        Progress::Open => most,
        // Neither grown nor given back: a change in the middle of a rollout, or a new leader, must not waste it.
        Progress::Settling(_) | Progress::Held => had,
        // This may last, and replicas that are taken back must be terminated.
        Progress::Stalled => {
            let new = instances::live(input.observed).filter(|(id, _)| !outdated.is_outdated(id));
            had.min(instances::count(new))
        }
        // Giving back what has joined would disrupt when nothing may be disrupted.
        Progress::Paused | Progress::Closed(_) => had.min(joined_beyond_replicas(input)),
        Progress::Stopped | Progress::Rejected | Progress::Refreshing => 0,
    }
}

/// Instances beyond the replicas that have joined and stay.
fn joined_beyond_replicas(input: &Input<'_>) -> i32 {
    let joined = instances::live(input.observed).filter(|(_, m)| disrupts(m) && !m.is_deleting());
    (instances::count(joined) - input.desired.replicas).max(0)
}

/// Whether the rollout goes on without more surge: it may take replicas away, and launches have been missing for long,
/// now or not long ago. Otherwise it would request and give up by turns.
fn misses_launches(input: &Input<'_>) -> bool {
    let recently = |at: DateTime<Utc>| input.now - at < input.desired.rollout.progress_deadline;
    input.desired.rollout.max_unavailable > 0 && input.memory.shortfall.last_long().is_some_and(recently)
}

/// Instances that live beyond the replicas.
fn beyond_replicas(input: &Input<'_>) -> i32 {
    (instances::live_count(input.observed) - input.desired.replicas).max(0)
}
