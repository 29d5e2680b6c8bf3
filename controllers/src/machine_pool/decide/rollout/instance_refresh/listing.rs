//! The listing of a group's instance refreshes: for how long it is used, and whether it shows what AWS was requested to
//! do.

use capasg_api::pool::{RolloutType, RolloutWait};
use capasg_cloud::{InstanceRefresh, RefreshStatus};
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::decide::rollout::instance_refresh::state::State;
use crate::machine_pool::model::{Input, LIST_LAG, unless_set_back};

/// How often an instance refresh in progress is read.
pub(super) const POLL: TimeDelta = TimeDelta::seconds(15);
/// How often it is read during its bake time.
const BAKE_POLL: TimeDelta = TimeDelta::seconds(60);
/// How long a listing is used otherwise.
const MAX_AGE: TimeDelta = TimeDelta::hours(1);
/// A listing that is older than this is read again before an instance refresh is started or stopped: another actor may
/// have cancelled it, it may have ended, or a request whose answer was lost may have arrived late.
const MAX_AGE_TO_ACT: TimeDelta = TimeDelta::seconds(5);

/// Maximum age of the listing before it is read again; `None` if it is not needed. `matters`: the pool uses instance
/// refreshes, and instances or the configuration of the group are not as desired.
pub(super) fn max_age(
    input: &Input<'_>,
    state: &State,
    active: Option<&InstanceRefresh>,
    matters: bool,
) -> Option<TimeDelta> {
    let memory = input.memory;
    match (state, active) {
        (_, Some(refresh)) if refresh.status == RefreshStatus::Baking => Some(BAKE_POLL),
        (_, Some(_)) => Some(POLL),
        (State::Start, _) => Some(MAX_AGE_TO_ACT),
        (State::Unread, _) => Some(LIST_LAG),
        _ if is_behind(input, memory.refreshes.start_requested_at(), LIST_LAG) => Some(LIST_LAG),
        _ if input.observed.has_terminations_by_refresh() => Some(POLL),
        _ if matters || was_reported(input) || memory.refreshes.is_launch_change_rejected() => {
            Some(if is_behind(input, memory.began(), LIST_LAG) { LIST_LAG } else { MAX_AGE })
        }
        _ => None,
    }
}

/// Whether an instance refresh may be in progress although none is listed: one was reported, or terminates instances, and
/// the listing is missing or too old.
#[must_use]
pub fn may_be_missing(input: &Input<'_>) -> bool {
    let age = max_age(input, &State::Idle, None, false);
    (was_reported(input) || input.observed.has_terminations_by_refresh())
        && age.is_some_and(|age| is_as_old_as(input, age))
}

/// Whether the status reported an instance refresh, whatever the strategy is now.
#[must_use]
pub fn was_reported(input: &Input<'_>) -> bool {
    input.memory.rollout.reported().is_some_and(|status| {
        status.type_ == RolloutType::InstanceRefresh || status.waiting_for == Some(RolloutWait::Refresh)
    })
}

/// Whether the listing may not show yet what this process or the previous leader requested. Otherwise an instance
/// refresh that fails at once would be requested again, and an obsolete one would continue.
pub(super) fn is_behind(input: &Input<'_>, since: Option<DateTime<Utc>>, lag: TimeDelta) -> bool {
    let listed = input.observed.refreshes.as_ref().map(|view| view.as_of);
    listed.zip(since).is_some_and(|(listed, since)| listed - since < lag)
}

/// Whether the listing is at least this old, or was never read. One that was read for this decision is as new as a
/// listing can be, however long its request waited for the rate limit.
pub(super) fn is_as_old_as(input: &Input<'_>, age: TimeDelta) -> bool {
    let is_old = |as_of| {
        let is_recent = unless_set_back(as_of, input.now).is_some_and(|as_of| input.now - as_of < age);
        !input.observed.refreshes_were_read && !is_recent
    };
    input.observed.refreshes.as_ref().is_none_or(|view| is_old(view.as_of))
}

/// Whether the listing was read just now.
pub(super) fn is_fresh(input: &Input<'_>) -> bool {
    !is_as_old_as(input, MAX_AGE_TO_ACT)
}
