//! Determines the state of a group's instance refreshes, from which the next step follows.

use capasg_api::pool::{Opening, RolloutMode, RolloutType};
use capasg_cloud::{Group, InstanceRefresh, Launch, RefreshStatus};
use chrono::TimeDelta;

use crate::machine_pool::decide::disruption_budget::Budget;
use crate::machine_pool::decide::launch_template::Pin;
use crate::machine_pool::decide::rollout::instance_refresh::failure::RefreshFailure;
use crate::machine_pool::decide::rollout::instance_refresh::listing::{self, is_behind};
use crate::machine_pool::decide::rollout::instance_refresh::refresh::{Refresh, desired_launch};
use crate::machine_pool::decide::rollout::instance_refresh::state::{State, StopReason};
use crate::machine_pool::decide::rollout::instance_refresh::{outcome, preferences};
use crate::machine_pool::decide::rollout::outdated;
use crate::machine_pool::decide::timing::{HOLD, STABLE};
use crate::machine_pool::model::template_versions::pinned_stamp;
use crate::machine_pool::model::{
    DesiredLaunch, Input, LIST_LAG, Outdated, OutdatedReason, ReplicaOwner, instances,
};

/// A refresh in progress that was listed longer ago than this may have ended: AWS decides whether it accepts an update.
const LISTED_WITHIN: TimeDelta = TimeDelta::seconds(90);

/// Determines the state of a group's instance refreshes.
#[must_use]
pub fn assess<'a>(input: &Input<'a>, group: &Group, pin: &Pin, outdated: &Outdated) -> Refresh<'a> {
    let Input { desired, observed, memory, .. } = *input;
    let view = observed.refreshes.as_ref();
    let active = view.and_then(|view| view.refreshes.iter().find(|refresh| !refresh.status.is_finished()));
    let is_used = desired.rollout.type_ == RolloutType::InstanceRefresh;
    let wanted = desired_launch(input, pin);
    let differs = wanted.as_ref().is_none_or(|wanted| *wanted != group.settings.launch);
    let concerned = is_used
        && instances::live(observed)
            .any(|(id, _)| outdated.reason(id).is_some_and(OutdatedReason::is_of_launch_template));
    // A configuration that cannot be launched is no rollback.
    let launches_fail =
        memory.launches.are_failing() && instances::live_count(observed) < group.capacity.desired;
    let state = match active {
        Some(refresh) if is_used => {
            let is_rejected = matches!(pin, Pin::Previous(_));
            under_way(input, group, refresh, (wanted.as_ref(), is_rejected), outdated)
        }
        Some(_) => State::Active,
        None if concerned => between(input, group, wanted.as_ref()),
        None if let Some(cancelled) = cancelled(input, wanted.as_ref()).filter(|_| is_used) => {
            State::Failed(cancelled)
        }
        // AWS may have just launched another instance from the version of before.
        None if is_used && wanted.is_some() && differs && outcome::is_begun(input) => State::Held,
        None => State::Idle,
    };
    let max_age = listing::max_age(input, &state, active, concerned || (is_used && differs));
    // A listing that cannot be read must not keep a new bootstrap token from the group for longer.
    let awaits_listing = view.is_none() && memory.began().is_none_or(|began| input.now - began < HOLD);
    // An update that AWS would reject is not requested, nor one that would make a rollback to our version impossible.
    let holds_launch = (active.is_some_and(|refresh| refresh.desired.is_some())
        && !listing::is_as_old_as(input, LISTED_WITHIN))
        || (concerned && !desired.rotates && !launches_fail && pinned_stamp(observed).is_some())
        || (is_used && differs && awaits_listing);
    Refresh { active, state, holds_launch, max_age }
}

/// The state while an instance refresh is in progress and the pool uses instance refreshes. What the group is to launch is not
/// `wanted` while AWS rejects it.
fn under_way(
    input: &Input<'_>,
    group: &Group,
    refresh: &InstanceRefresh,
    (wanted, is_rejected): (Option<&Launch>, bool),
    outdated: &Outdated,
) -> State {
    // In a preview the desired state has what the group launches. That is no rollback, so that nothing is stopped.
    if input.desired.previews {
        return State::Active;
    }
    if let Some(why) = preferences::must_stop(input, refresh) {
        return State::ToStop(why);
    }
    let may_end =
        matches!(refresh.status, RefreshStatus::Pending | RefreshStatus::InProgress | RefreshStatus::Baking);
    if is_rejected && may_end && settling(input).is_none() && outcome::launches_outdated(input, refresh) {
        return State::ToStop(StopReason::Obsolete);
    }
    // A new desired state may change again, and an unknown one is no reason to stop. The budget does not depend on it.
    let Some(wanted) = wanted.filter(|wanted| {
        settling(input).is_none() && !outcome::is_for_desired(input, refresh, wanted, outdated)
    }) else {
        return if preferences::is_too_large(input, refresh) {
            State::ToStop(StopReason::Budget)
        } else {
            State::Active
        };
    };
    match refresh.status {
        RefreshStatus::Cancelling | RefreshStatus::Other(_) => State::Active,
        RefreshStatus::RollbackInProgress if group.settings.launch == *wanted => State::Active,
        RefreshStatus::Pending | RefreshStatus::InProgress | RefreshStatus::Baking
            if refresh.desired.is_some()
                && group.settings.launch == *wanted
                && !input.memory.refreshes.is_rollback_rejected()
                && may_begin(input) =>
        {
            State::RollBack
        }
        _ => State::ToStop(StopReason::Obsolete),
    }
}

/// The state while none is in progress and some instances are outdated.
fn between(input: &Input<'_>, group: &Group, wanted: Option<&Launch>) -> State {
    let Input { desired, observed, .. } = *input;
    let ended = outcome::last(input, wanted);
    if desired.rollout.mode == RolloutMode::Paused {
        return State::Paused;
    }
    if input.is_rollout_stopped() {
        return State::Stopped(Some(
            ended.and_then(RefreshFailure::of).unwrap_or_else(RefreshFailure::unknown),
        ));
    }
    if matches!(desired.launch, DesiredLaunch::Unknown) {
        return State::Held;
    }
    if let Some(wait) = settling(input) {
        return State::Settling(wait);
    }
    let counted = ended.filter(|refresh| outcome::counts(input, refresh));
    let failed =
        || counted.filter(|refresh| !outcome::was_by_us(input, refresh)).and_then(RefreshFailure::of);
    let requested = is_behind(input, input.memory.refreshes.start_requested_at(), LIST_LAG);
    if requested && counted.is_none() && wanted.is_some() {
        // It is reported as started, so that its result counts, whatever else is unknown yet.
        return State::Requested;
    }
    // AWS skips instances whose version is the group's, and each token makes another version. An instance refresh that
    // is in progress when windows are added continues until they close, and its failure counts.
    if desired.rotates && desired.disruption.opening(input.now) != Opening::Always {
        return failed().map_or(State::WindowsUnsupported, State::Failed);
    }
    let Some(wanted) = wanted else {
        return if outdated::desired_age(input) < HOLD { State::Held } else { State::Rejected };
    };
    let may_size = matches!(desired.owner, ReplicaOwner::MachinePool | ReplicaOwner::External(_));
    if !may_size || !observed.group.is_settled() || (desired.rotates && group.settings.launch != *wanted) {
        return State::Held;
    }
    if observed.refreshes.is_none() {
        return State::Unread;
    }
    if let Some(refresh) = counted {
        match failed() {
            Some(end) => return State::Failed(end),
            None if !outcome::is_shown(input, refresh) => return State::Unread,
            None if outcome::is_without_effect(input, wanted) => {
                return State::Failed(RefreshFailure::without_effect());
            }
            None => {}
        }
    }
    if requested {
        return State::Requested;
    }
    let opening = desired.disruption.opening(input.now);
    if !opening.is_open() {
        return State::Closed(opening);
    }
    if !observed.hook.is_read() || observed.hook.present() != desired.hook.as_ref() {
        // Without our hook, AWS terminates instances that are not drained.
        return State::Held;
    }
    if Budget::of(input).room_of_refreshes() == 0 { State::OutOfBudget } else { State::Start }
}

/// The instance refresh for the desired state that another actor cancelled, if that is not recorded yet: also if no
/// instance in service is outdated any more, so that none starts for one that returns to the group.
fn cancelled(input: &Input<'_>, wanted: Option<&Launch>) -> Option<RefreshFailure> {
    if input.is_rollout_stopped() || input.desired.previews {
        return None;
    }
    let refresh = outcome::last(input, wanted)?;
    let counts = refresh.status == RefreshStatus::Cancelled
        && outcome::counts(input, refresh)
        && !outcome::was_by_us(input, refresh);
    RefreshFailure::of(refresh).filter(|_| counts)
}

/// Whether a rollout may terminate instances now.
fn may_begin(input: &Input<'_>) -> bool {
    let desired = input.desired;
    desired.rollout.mode != RolloutMode::Paused && desired.disruption.opening(input.now).is_open()
}

/// How much longer the desired state may still change, since several objects are edited one after another.
fn settling(input: &Input<'_>) -> Option<TimeDelta> {
    Some(STABLE - outdated::desired_age(input)).filter(|wait| *wait > TimeDelta::zero())
}
