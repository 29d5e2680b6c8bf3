//! How refreshes ended, and which of them are for the wish: all of it follows from what AWS lists, and from the one
//! refresh that the status names as ended by us.

use capasg_api::pool::RolloutWait;
use capasg_cloud::{InstanceRefresh, Launch, RefreshStatus};
use chrono::TimeDelta;

use super::super::super::state::{Case, TemplateView};
use super::super::{
    launch_template::stamps,
    machines::LIST_LAG,
    members,
    rollout::{self, Outdated},
};

/// Refreshes that succeed and leave instances outdated: the second within this time is the last.
const IN_VAIN: TimeDelta = TimeDelta::hours(1);

/// The newest refresh that was for the wish, if it is over.
pub(super) fn last<'a>(case: &Case<'a>, wished: Option<&Launch>) -> Option<&'a InstanceRefresh> {
    let wished = wished?;
    let all = &case.observed.refreshes.as_ref()?.refreshes;
    let newest = all.iter().find(|refresh| is_for_wish(case, refresh, wished, &Outdated::default()));
    newest.filter(|refresh| refresh.status.is_over())
}

/// Whether a refresh replaces by the wish.
///
/// One with a desired configuration does if its version would not make an instance outdated and it launches the same
/// types. One without launches whatever the group launches; it is for the wish if a version of the wish was there when it
/// started. A wish that went back to an older version is not told apart from that: such a refresh goes on, and what it
/// leaves outdated is refreshed after it.
pub(super) fn is_for_wish(
    case: &Case<'_>,
    refresh: &InstanceRefresh,
    wished: &Launch,
    outdated: &Outdated,
) -> bool {
    let (Some(wish), TemplateView::Present { id, versions, .. }) =
        (rollout::wish(case.desired, case.observed), &case.observed.template)
    else {
        return true;
    };
    let stamps = stamps(case.observed);
    let Some(launch) = &refresh.desired else {
        let Some(started) = refresh.started_at else { return true };
        return stamps.iter().any(|(number, stamp)| {
            let created = versions.get(number).map(|version| version.created_at);
            !stamp.outdated_under(&wish) && created.is_some_and(|created| created <= started)
        });
    };
    if launch == wished {
        return true;
    }
    let version = launch.template.version.filter(|_| launch.template.id == *id);
    let same = version.and_then(|version| stamps.get(&version)).is_some_and(|it| !it.outdated_under(&wish));
    let types = |launch: &Launch| launch.mixed.as_ref().map(|mixed| mixed.instance_types.clone());
    // Without a policy the type is in the version, and shows in what it launched.
    let launched_others = members::live(case.observed).any(|(member, m)| {
        let from = m.instance.as_ref().and_then(|instance| instance.template.as_ref());
        from.is_some_and(|(_, from)| Some(*from) == version) && outdated.is_outdated(member)
    });
    same && types(launch) == types(wished) && !launched_others
}

/// Whether the end of a refresh is one of the rollout that is under way: a wish that comes back later, or that a person
/// lets go on by taking the mark off, begins anew.
pub(super) fn counts(case: &Case<'_>, refresh: &InstanceRefresh) -> bool {
    let revision = rollout::revision(case.desired, case.observed);
    let told = case.memory.rollout.as_ref().filter(|told| told.to_hash == revision);
    let told = told.filter(|told| told.waiting_for != Some(RolloutWait::Correction));
    told.and_then(|told| told.started_at)
        .zip(refresh.ended_at)
        .is_some_and(|(started, ended)| ended >= started)
}

/// Whether the status names it as ended by us, or about to be: how it ends is no failure then.
pub(super) fn is_by_us(case: &Case<'_>, refresh: &InstanceRefresh) -> bool {
    let told = case.memory.rollout.as_ref().and_then(|told| told.ended_refresh_id.as_ref());
    told == Some(&refresh.id)
}

/// Whether it ended as we asked. One that fails does so by itself, whatever was told before.
pub(super) fn was_by_us(case: &Case<'_>, refresh: &InstanceRefresh) -> bool {
    is_by_us(case, refresh) && refresh.status != RefreshStatus::Failed
}

/// Whether the view of the group is younger than a refresh's end.
pub(super) fn is_shown(case: &Case<'_>, refresh: &InstanceRefresh) -> bool {
    let seen = case.observed.group.as_of();
    refresh.ended_at.zip(seen).is_none_or(|(ended, seen)| seen - ended >= LIST_LAG)
}

/// Whether refreshes for the wish succeeded twice not long ago, and instances are outdated all the same.
pub(super) fn is_in_vain(case: &Case<'_>, wished: &Launch) -> bool {
    let all = case.observed.refreshes.iter().flat_map(|view| view.refreshes.iter());
    let lately = |refresh: &&InstanceRefresh| {
        refresh.status == RefreshStatus::Successful
            && refresh.ended_at.is_some_and(|ended| case.now - ended < IN_VAIN)
            && counts(case, refresh)
            && is_for_wish(case, refresh, wished, &Outdated::default())
    };
    all.filter(lately).count() >= 2
}
