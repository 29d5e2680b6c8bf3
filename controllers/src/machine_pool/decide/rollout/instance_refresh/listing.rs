//! The listing of a group's refreshes: for how long it is believed, and whether it shows by now what was requested of AWS.

use capasg_api::pool::{RolloutType, RolloutWait};
use capasg_cloud::{InstanceRefresh, LifecycleState, RefreshStatus};
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::decide::rollout::instance_refresh::state::State;
use crate::machine_pool::model::{Input, LIST_LAG};

/// How often a refresh under way is read.
pub(super) const POLL: TimeDelta = TimeDelta::seconds(15);
/// The same while it bakes.
const BAKES: TimeDelta = TimeDelta::seconds(60);
/// A listing that is older than this is read again before a refresh is started.
const START: TimeDelta = TimeDelta::seconds(60);
/// Else a listing is believed for this long.
const BELIEVED: TimeDelta = TimeDelta::hours(1);
/// A listing that is older than this is read again before a refresh is stopped: it may have changed by itself.
const STOP: TimeDelta = TimeDelta::seconds(5);

/// For how long the listing is believed; `None` if none is read. It `matters` while AWS is the one to replace, and
/// what runs or what the group launches may not be what is desired.
pub(super) fn believed(
    input: &Input<'_>,
    state: &State,
    active: Option<&InstanceRefresh>,
    matters: bool,
) -> Option<TimeDelta> {
    let memory = input.memory;
    match (state, active) {
        (_, Some(refresh)) if refresh.status == RefreshStatus::Baking => Some(BAKES),
        (_, Some(_)) => Some(POLL),
        (State::Start, _) => Some(START),
        (State::Unread, _) => Some(LIST_LAG),
        _ if is_behind(input, memory.refreshes.start_requested_at(), LIST_LAG) => Some(LIST_LAG),
        _ if refresh_shows(input) => Some(POLL),
        _ if matters || was_followed(input) || memory.refreshes.is_launch_change_rejected() => {
            Some(if is_behind(input, memory.began(), LIST_LAG) { LIST_LAG } else { BELIEVED })
        }
        _ => None,
    }
}

/// Whether a refresh shows in what it terminates, whoever requested it.
fn refresh_shows(input: &Input<'_>) -> bool {
    input.observed.instances.values().any(|m| {
        m.lifecycle().is_some_and(LifecycleState::is_terminating)
            && m.asg_machine.as_ref().is_some_and(|machine| machine.refreshed)
    })
}

/// Whether the status reported a refresh, whatever the strategy is by now.
fn was_followed(input: &Input<'_>) -> bool {
    input.memory.rollout.reported().is_some_and(|status| {
        status.type_ == RolloutType::InstanceRefresh || status.waiting_for == Some(RolloutWait::Refresh)
    })
}

/// Whether the listing may not show yet what was requested of AWS, by us or by the previous leader. A refresh that
/// fails at once would be requested again, and one that is not wanted any more would go on.
pub(super) fn is_behind(input: &Input<'_>, since: Option<DateTime<Utc>>, lag: TimeDelta) -> bool {
    let listed = input.observed.refreshes.as_ref().map(|view| view.as_of);
    listed.zip(since).is_some_and(|(listed, since)| listed - since < lag)
}

/// Whether the listing is at least this old, or was never read.
pub(super) fn is_as_old_as(input: &Input<'_>, age: TimeDelta) -> bool {
    input.observed.refreshes.as_ref().is_none_or(|view| input.now - view.as_of >= age)
}

/// Whether what is listed is from just now.
pub(super) fn is_fresh(input: &Input<'_>) -> bool {
    !is_as_old_as(input, STOP)
}
