//! What `status.rollout` reports: what a rollout waits for, and since when.

use std::collections::BTreeSet;

use capasg_api::{
    pool::{RolloutStatus, RolloutWait},
    time::to_second,
};
use chrono::TimeDelta;

use crate::machine_pool::decide::availability::is_available;
use crate::machine_pool::decide::rollout::instance_refresh;
use crate::machine_pool::decide::rollout::outdated::most_common_revision;
use crate::machine_pool::model::revision::revision;
use crate::machine_pool::model::{Input, Outdated, RolloutPhase, instances};

/// What `status.rollout` reports, with what it reported before; `None` while nothing is outdated. A time changes only
/// with the fact that it belongs to.
pub(super) fn status(
    input: &Input<'_>,
    outdated: &Outdated,
    counts: &Counts,
    phase: Option<&RolloutPhase>,
) -> Option<RolloutStatus> {
    let Input { desired, observed, now, .. } = *input;
    let phase = phase?;
    let to_hash = revision(desired, observed);
    let updated = i32::try_from(counts.available.len()).unwrap_or(i32::MAX);
    let left = counts.outdated;
    let before = input.memory.rollout.reported_for(to_hash.as_ref());
    let under_way = before.filter(|before| before.started_at.is_some());
    let waiting_for = match (phase, under_way) {
        // The desired state is the same, but new to this leader.
        (RolloutPhase::Settling, Some(before)) => before.waiting_for,
        _ => waits_for(phase),
    };
    let memory = &input.memory.rollout_progress;
    let progressed_at = if to_hash.as_ref().is_some_and(|to_hash| memory.knows(to_hash)) {
        memory.made_at(&counts.available, left, now)
    } else {
        // A new leader knows the numbers alone.
        let is_progress = before.is_none_or(|before| updated > before.updated || left < before.outdated);
        is_progress.then_some(now)
    };
    let restarted_at = progressed_at.filter(|_| waiting_for == Some(RolloutWait::NewInstances));
    let since = before
        .filter(|before| before.waiting_for == waiting_for)
        .and_then(|before| restarted_at.map(to_second).or(before.waiting_since));
    let began = matches!(phase, RolloutPhase::Rolling { .. } | RolloutPhase::Refreshing { .. });
    // A stopped rollout that continues starts again.
    let continues = waiting_for != Some(RolloutWait::Correction);
    let before_start =
        before.filter(|before| before.waiting_for != Some(RolloutWait::Correction) || !continues);
    let started_at = before_start.and_then(|before| before.started_at);
    // An instance refresh that ends before this is reported counts as well.
    let requested = instance_refresh::requested_at(input);
    Some(RolloutStatus {
        type_: desired.rollout.type_,
        from_hash: most_common_revision(desired, observed, outdated).or_else(|| to_hash.clone()),
        to_hash,
        total: instances::live_count(observed),
        updated,
        outdated: left,
        started_at: started_at.or_else(|| began.then(|| to_second(requested.unwrap_or(now)))),
        percentage: match phase {
            RolloutPhase::Refreshing { percentage, .. } => *percentage,
            _ => None,
        },
        waiting_for,
        waiting_since: waiting_for.map(|_| since.unwrap_or_else(|| to_second(now))),
        // `follow` sets it.
        ended_refresh_id: None,
        next_window: match phase {
            RolloutPhase::Closed { next, .. } => next.as_ref().map(|(at, _)| *at),
            _ => None,
        },
    })
}

/// How far a rollout has come.
pub(super) struct Counts {
    /// The up-to-date instances that are available.
    pub available: BTreeSet<String>,
    /// The number of outdated instances.
    pub outdated: i32,
}

impl Counts {
    pub(super) fn of(input: &Input<'_>, outdated: &Outdated) -> Self {
        let live = || instances::live(input.observed);
        let available = live().filter(|(id, m)| outdated.is_up_to_date(id) && is_available(input, m));
        Self {
            available: available.map(|(id, _)| id.clone()).collect(),
            outdated: instances::count(live().filter(|(id, _)| outdated.is_outdated(id))),
        }
    }
}

/// How much longer the rollout may wait for new instances; zero or less once the deadline has passed.
pub(super) fn left(input: &Input<'_>, status: Option<&RolloutStatus>) -> Option<TimeDelta> {
    let status = status.filter(|status| status.waiting_for == Some(RolloutWait::NewInstances))?;
    Some(status.waiting_since? + input.desired.rollout.progress_deadline - input.now)
}

fn waits_for(phase: &RolloutPhase) -> Option<RolloutWait> {
    Some(match phase {
        RolloutPhase::OnDelete => RolloutWait::Deletion,
        RolloutPhase::Settling => RolloutWait::StableSpec,
        RolloutPhase::Held | RolloutPhase::Unread | RolloutPhase::Rejected => RolloutWait::Group,
        RolloutPhase::Paused { .. } => RolloutWait::Resume,
        RolloutPhase::Closed { .. } => RolloutWait::Window,
        RolloutPhase::Stopped { .. } | RolloutPhase::WindowsUnsupported { .. } => RolloutWait::Correction,
        RolloutPhase::Refreshing { .. } => RolloutWait::Refresh,
        RolloutPhase::Rolling { awaits_new: true, .. } => RolloutWait::NewInstances,
        RolloutPhase::Rolling { draining, .. } if !draining.is_empty() => RolloutWait::Drains,
        RolloutPhase::Rolling { kept, .. } if !kept.is_empty() => RolloutWait::UnavailableInstances,
        RolloutPhase::OutOfBudget | RolloutPhase::Rolling { out_of_budget: true, .. } => RolloutWait::Budget,
        RolloutPhase::Rolling { .. } => return None,
    })
}
