//! Follows a rollout: what `status.rollout` says of it, since when it waits, and whether it has waited for new instances
//! for longer than its progress deadline. Then it stops for good: the mark on the pool outlives a restart and a move.

use capasg_api::{
    pool::{RolloutStatus, RolloutWait},
    time::to_second,
};
use capasg_cloud::LifecycleState;
use chrono::TimeDelta;

use super::super::state::{Case, LaunchWish, RefreshEnd, RolloutPhase};
use super::{
    members,
    rolling::is_available,
    rollout::{self, Outdated},
};
use crate::kubernetes::KubeWrite;

/// Whether the rollout was stopped: by the mark on the pool, or by one that was just written and is not seen yet.
#[must_use]
pub fn is_stopped(case: &Case<'_>) -> bool {
    let Some(revision) = rollout::revision(case.desired, case.observed) else { return false };
    [&case.desired.stopped, &case.memory.stopped].into_iter().flatten().any(|mark| *mark == revision)
}

/// The mark, where it names something else than what is wished now, or there is nothing to roll out: it goes, so that the
/// next rollout is not stopped by it.
#[must_use]
pub fn stale_mark(case: &Case<'_>, phase: Option<&RolloutPhase>) -> Option<KubeWrite> {
    let mark = case.desired.stopped.as_ref()?;
    // Only a known wish, measured by a template that was read, can differ.
    if !matches!(case.desired.launch, LaunchWish::Known { .. }) || !case.observed.group.is_settled() {
        return None;
    }
    super::launch_template::pinned_stamp(case.observed)?;
    let revision = rollout::revision(case.desired, case.observed)?;
    let nothing_left = phase.is_none() && is_all_known(case);
    (*mark != revision || nothing_left).then(|| KubeWrite::RolloutStopped {
        pool: case.desired.pool.clone(),
        revision: None,
        why: String::new(),
        rolled_back: false,
    })
}

/// Whether nothing can be outdated that does not show: machines whose age is not read yet, or that are paused.
fn is_all_known(case: &Case<'_>) -> bool {
    members::live(case.observed).all(|(_, member)| member.facts.is_some() && !member.is_paused())
}

/// Why a rollout was stopped: by its deadline, unless the end of a refresh did it.
#[must_use]
pub fn why(deadline: TimeDelta, refresh: Option<&RefreshEnd>) -> String {
    refresh.map_or_else(
        || format!("no new instance became available for {} s", deadline.num_seconds()),
        |end| end.words.clone(),
    )
}

/// The mark that stops the rollout.
#[must_use]
pub fn mark(case: &Case<'_>, refresh: Option<&RefreshEnd>) -> Option<KubeWrite> {
    let revision = rollout::revision(case.desired, case.observed)?;
    let why = why(case.desired.rollout.progress_deadline, refresh);
    let rolled_back = refresh.is_some_and(|end| end.rolled_back);
    Some(KubeWrite::RolloutStopped {
        pool: case.desired.pool.clone(),
        revision: Some(revision),
        why,
        rolled_back,
    })
}

/// What `status.rollout` is to say, from what it said before; `None` while nothing is outdated. The same twice says the
/// same: a point in time changes only with what it belongs to.
#[must_use]
pub fn follow(case: &Case<'_>, outdated: &Outdated, phase: Option<&RolloutPhase>) -> Option<RolloutStatus> {
    let Case { desired, observed, now, .. } = *case;
    let phase = phase?;
    let to_hash = rollout::revision(desired, observed);
    let count = |matches: &dyn Fn(&String, &super::super::state::Member) -> bool| {
        members::count(members::live(observed).filter(|(id, m)| matches(id, m)))
    };
    let updated = count(&|id, m| !outdated.is_outdated(id) && is_available(case, m));
    let left = count(&|id, _| outdated.is_outdated(id));
    let before = case.memory.rollout.as_ref().filter(|before| before.to_hash == to_hash);
    let under_way = before.filter(|before| before.started_at.is_some());
    let waiting_for = match (phase, under_way) {
        // The wish is the same: only this process is new to it.
        (RolloutPhase::Settling, Some(before)) => before.waiting_for,
        _ => waits_for(phase),
    };
    let progressed = before.is_none_or(|before| updated > before.updated || left < before.outdated);
    let since = before
        .filter(|before| before.waiting_for == waiting_for)
        .filter(|_| waiting_for != Some(RolloutWait::NewInstances) || !progressed)
        .and_then(|before| before.waiting_since);
    let began = matches!(phase, RolloutPhase::Rolling { .. } | RolloutPhase::Refreshing { .. });
    // One that was stopped and goes on begins anew.
    let goes_on = waiting_for != Some(RolloutWait::Correction);
    let before_start =
        before.filter(|before| before.waiting_for != Some(RolloutWait::Correction) || !goes_on);
    let started_at = before_start.and_then(|before| before.started_at);
    // A refresh that ends before this is told counts as well: its start may have lost its reply.
    let waits_since = before_start.and_then(|before| before.waiting_since);
    let asked = case.memory.refresh_asked.filter(|asked| waits_since.is_some_and(|since| *asked >= since));
    Some(RolloutStatus {
        type_: desired.rollout.type_,
        from_hash: rollout::most_common_revision(desired, observed, outdated).or_else(|| to_hash.clone()),
        to_hash,
        total: members::live_count(observed),
        updated,
        outdated: left,
        started_at: started_at.or_else(|| began.then(|| to_second(asked.unwrap_or(now)))),
        percentage: match phase {
            RolloutPhase::Refreshing { percentage, .. } => *percentage,
            _ => None,
        },
        waiting_for,
        waiting_since: waiting_for.map(|_| since.unwrap_or_else(|| to_second(now))),
        // What follows a refresh fills it in.
        ended_refresh_id: None,
        next_window: match phase {
            RolloutPhase::Closed { next, .. } => next.as_ref().map(|(at, _)| *at),
            _ => None,
        },
    })
}

/// How much longer the rollout may wait for new instances; zero or less once the deadline has passed.
#[must_use]
pub fn left(case: &Case<'_>, status: Option<&RolloutStatus>) -> Option<TimeDelta> {
    let status = status.filter(|status| status.waiting_for == Some(RolloutWait::NewInstances))?;
    Some(status.waiting_since? + case.desired.rollout.progress_deadline - case.now)
}

fn waits_for(phase: &RolloutPhase) -> Option<RolloutWait> {
    Some(match phase {
        RolloutPhase::OnDelete => RolloutWait::Deletion,
        RolloutPhase::Settling => RolloutWait::StableSpec,
        RolloutPhase::Held | RolloutPhase::Refused => RolloutWait::Group,
        RolloutPhase::Paused { .. } => RolloutWait::Resume,
        RolloutPhase::Closed { .. } => RolloutWait::Window,
        RolloutPhase::Stopped { .. } => RolloutWait::Correction,
        RolloutPhase::Refreshing { .. } => RolloutWait::Refresh,
        RolloutPhase::Rolling { awaits_new: true, .. } => RolloutWait::NewInstances,
        RolloutPhase::Rolling { draining, .. } if !draining.is_empty() => RolloutWait::Drains,
        RolloutPhase::Rolling { out_of_budget: true, .. } => RolloutWait::Budget,
        RolloutPhase::Rolling { .. } => return None,
    })
}

/// Whether a rollout waits for instances that are up to date: launched and not available, or not launched at all.
#[must_use]
pub fn awaits_new(case: &Case<'_>, outdated: &Outdated) -> bool {
    let Some(group) = case.observed.group.present() else { return false };
    let new = |id: &String| !outdated.is_outdated(id);
    let starting = members::live(case.observed)
        .any(|(id, m)| new(id) && !is_available(case, m) && !is_settling(case, m));
    // One that ends before it worked is waited for as well: its replacement is no progress.
    let ending = case.observed.members.iter().any(|(id, m)| {
        new(id) && m.lifecycle().is_some_and(LifecycleState::is_terminating) && m.is_leaving()
    });
    starting || ending || members::live_count(case.observed) < group.capacity.desired
}

/// It only has to stay ready for `minReadySeconds`.
fn is_settling(case: &Case<'_>, member: &super::super::state::Member) -> bool {
    let machine = member.machine.as_ref().filter(|machine| machine.has_node && machine.ready);
    let ready_since = machine.and_then(|machine| machine.ready_since);
    ready_since.is_some_and(|since| case.now - since < case.desired.min_ready) && !member.is_leaving()
}
