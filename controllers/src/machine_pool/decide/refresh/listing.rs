//! The listing of a group's refreshes: for how long it is believed, and whether it shows by now what AWS was asked for.

use capasg_api::pool::{RolloutType, RolloutWait};
use capasg_cloud::{InstanceRefresh, LifecycleState, RefreshStatus};
use chrono::{DateTime, TimeDelta, Utc};

use super::super::super::state::Case;
use super::super::machines::LIST_LAG;
use super::Standing;

/// How often a refresh under way is looked at.
pub(super) const LOOK: TimeDelta = TimeDelta::seconds(15);
/// The same while it bakes.
const BAKES: TimeDelta = TimeDelta::seconds(60);
/// A listing that is older than this is read again before a refresh is started.
const START: TimeDelta = TimeDelta::seconds(60);
/// Else a listing is believed for this long.
const BELIEVED: TimeDelta = TimeDelta::hours(1);
/// A listing that is older than this is read again before a refresh is ended: it may have turned round by itself.
const END: TimeDelta = TimeDelta::seconds(5);

/// For how long the listing is believed; `None` if none is asked for. It `matters` while AWS is the one to replace, and
/// what runs or what the group launches may not be what is wished.
pub(super) fn believed(
    case: &Case<'_>,
    standing: &Standing,
    active: Option<&InstanceRefresh>,
    matters: bool,
) -> Option<TimeDelta> {
    let memory = case.memory;
    match (standing, active) {
        (_, Some(refresh)) if refresh.status == RefreshStatus::Baking => Some(BAKES),
        (_, Some(_)) => Some(LOOK),
        (Standing::Start, _) => Some(START),
        (Standing::Unread, _) => Some(LIST_LAG),
        _ if is_behind(case, memory.refresh_asked, LIST_LAG) => Some(LIST_LAG),
        _ if refresh_shows(case) => Some(LOOK),
        _ if matters || was_followed(case) || memory.launch_refused => {
            Some(if is_behind(case, memory.began, LIST_LAG) { LIST_LAG } else { BELIEVED })
        }
        _ => None,
    }
}

/// Whether a refresh shows in what it ends, whoever asked for it.
fn refresh_shows(case: &Case<'_>) -> bool {
    case.observed.members.values().any(|m| {
        m.lifecycle().is_some_and(LifecycleState::is_terminating)
            && m.asg_machine.as_ref().is_some_and(|machine| machine.refreshed)
    })
}

/// Whether the status told of a refresh, whatever the strategy is by now.
fn was_followed(case: &Case<'_>) -> bool {
    case.memory.rollout.as_ref().is_some_and(|told| {
        told.type_ == RolloutType::InstanceRefresh || told.waiting_for == Some(RolloutWait::Refresh)
    })
}

/// Whether the listing may not show yet what AWS was asked for, by us or by the process before this one. A refresh that
/// fails at once would be asked for again, and one that is not wanted any more would go on.
pub(super) fn is_behind(case: &Case<'_>, since: Option<DateTime<Utc>>, lag: TimeDelta) -> bool {
    let listed = case.observed.refreshes.as_ref().map(|view| view.as_of);
    listed.zip(since).is_some_and(|(listed, since)| listed - since < lag)
}

/// Whether the listing is at least this old, or was never read.
pub(super) fn is_as_old_as(case: &Case<'_>, age: TimeDelta) -> bool {
    case.observed.refreshes.as_ref().is_none_or(|view| case.now - view.as_of >= age)
}

/// Whether what is listed is from just now.
pub(super) fn is_fresh(case: &Case<'_>) -> bool {
    !is_as_old_as(case, END)
}
