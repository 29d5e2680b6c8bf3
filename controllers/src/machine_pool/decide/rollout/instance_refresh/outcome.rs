//! How instance refreshes ended, and which of them are for the desired state, by AWS's listing and by the one that the
//! status reports as stopped by this controller.

use std::collections::BTreeMap;

use capasg_api::pool::RolloutWait;
use capasg_cloud::{InstanceRefresh, Launch, LaunchTemplateVersion, RefreshStatus};
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::decide::rollout::outdated::desired_age;
use crate::machine_pool::model::adoption::adopted_from;
use crate::machine_pool::model::revision::{desired_stamp, revision};
use crate::machine_pool::model::template_versions::{differ_in_user_data_alone, pinned_stamp, stamps};
use crate::machine_pool::model::{Input, Known, LIST_LAG, ObservedTemplate, Outdated, instances};

/// Of instance refreshes that succeed and leave instances outdated, the second within this time is the last.
const WITHOUT_EFFECT: TimeDelta = TimeDelta::hours(1);

/// The newest instance refresh that was for the desired state, if it has ended. One of another actor that this controller
/// stopped hides no earlier one that ended since this controller last started one.
pub(super) fn last<'a>(input: &Input<'a>, wanted: Option<&Launch>) -> Option<&'a InstanceRefresh> {
    let wanted = wanted?;
    let all = &input.observed.refreshes.as_ref()?.refreshes;
    let mut for_desired =
        all.iter().filter(|refresh| is_for_desired(input, refresh, wanted, &Outdated::default()));
    let newest = for_desired.next().filter(|refresh| refresh.status.is_finished())?;
    let started = input.memory.refreshes.start_requested_at().filter(|_| was_by_us(input, newest));
    let is_since = |refresh: &&InstanceRefresh| {
        let is_later = refresh.ended_at.zip(started).is_some_and(|(end, start)| end > start);
        is_later && !input.memory.refreshes.is_stopped(&refresh.id)
    };
    Some(for_desired.find(is_since).unwrap_or(newest))
}

/// Whether an instance refresh is for the desired state.
///
/// One that names a configuration is, if its version would not make an instance outdated, does not have the previous
/// content of a Secret that a user provides, and has the same overrides. AWS rejects an update of the group during it, so
/// that the instances that it launches would never get the new content, such as a token that is still valid.
///
/// One that names none launches what the group launches, which must not make instances outdated either; it is for the
/// desired state if a version of that existed when it started, or ended without a start. That is also so after a return to
/// an older version: such an instance refresh continues, and another one follows for what it leaves outdated.
///
/// One for a launch template that was deleted is, if it ended in the rollout of the desired state.
pub(super) fn is_for_desired(
    input: &Input<'_>,
    refresh: &InstanceRefresh,
    wanted: &Launch,
    outdated: &Outdated,
) -> bool {
    let (Some(stamp), Known::Present(ObservedTemplate { id, versions, .. })) =
        (desired_stamp(input.desired, input.observed), &input.observed.template)
    else {
        return true;
    };
    if is_of_deleted_template(input, refresh, id, versions) {
        return counts(input, refresh);
    }
    let stamps = stamps(input.observed);
    let Some(launch) = &refresh.desired else {
        if pinned_stamp(input.observed).is_some_and(|pinned| pinned.outdated_under(&stamp)) {
            return false;
        }
        // One that was cancelled while it was pending has no start.
        let Some(at) = refresh.started_at.or(refresh.ended_at) else { return true };
        return stamps.iter().any(|(number, of_version)| {
            let created = versions.get(number).map(|version| version.created_at);
            !of_version.outdated_under(&stamp) && created.is_some_and(|created| created <= at)
        });
    };
    if launch == wanted {
        return true;
    }
    let version = launch.template.version.filter(|_| launch.template.id == *id);
    let same = version.and_then(|version| stamps.get(&version)).is_some_and(|it| !it.outdated_under(&stamp));
    let has_previous_user_data = !input.desired.rotates
        && version
            .zip(wanted.template.version)
            .is_some_and(|(its, wanted)| differ_in_user_data_alone(input.observed, its, wanted));
    let overrides = |launch: &Launch| {
        launch.mixed.as_ref().map(|mixed| (mixed.instance_types.clone(), mixed.other_members.clone()))
    };
    // Without a mixed instances policy the type is part of the version, and is seen from the instances that it
    // launched.
    let launched_others = instances::live(input.observed).any(|(instance, m)| {
        let from = m.listed.as_ref().and_then(|instance| instance.template.as_ref());
        from.is_some_and(|(_, from)| Some(*from) == version) && outdated.is_outdated(instance)
    });
    same && !has_previous_user_data && overrides(launch) == overrides(wanted) && !launched_others
}

/// Whether it was for a launch template of the pool before this one, which another actor deleted: what it launched cannot be
/// compared. All versions of this one were created later.
fn is_of_deleted_template(
    input: &Input<'_>,
    refresh: &InstanceRefresh,
    template: &str,
    versions: &BTreeMap<i64, LaunchTemplateVersion>,
) -> bool {
    let adopted = adopted_from(input.observed.group.present());
    let is_other = refresh.desired.as_ref().is_none_or(|launch| {
        launch.template.id != template && !adopted.contains(launch.template.id.as_str())
    });
    let began = refresh.started_at.or(refresh.ended_at);
    let is_later = |version: &LaunchTemplateVersion| began.is_some_and(|began| version.created_at > began);
    is_other && !versions.is_empty() && versions.values().all(is_later)
}

/// Whether what an instance refresh launches is outdated by the stamps alone: what the group is to launch is not known while AWS
/// rejects the content of the spec.
pub(super) fn launches_outdated(input: &Input<'_>, refresh: &InstanceRefresh) -> bool {
    let ours = input.observed.template.present().map(|template| &template.id);
    let stamp = match &refresh.desired {
        Some(launch) => {
            let version = launch.template.version.filter(|_| Some(&launch.template.id) == ours);
            version.and_then(|version| stamps(input.observed).remove(&version))
        }
        None => pinned_stamp(input.observed),
    };
    let wanted = desired_stamp(input.desired, input.observed);
    stamp.zip(wanted).is_some_and(|(stamp, wanted)| stamp.outdated_under(&wanted))
}

/// How far the clocks of the host and of AWS may be apart.
const CLOCKS_APART: TimeDelta = TimeDelta::seconds(20);

/// Whether the status reports that a rollout of the desired state has begun.
pub(super) fn is_begun(input: &Input<'_>) -> bool {
    let revision = revision(input.desired, input.observed);
    let reported = input.memory.rollout.reported_for(revision.as_ref());
    reported.is_some_and(|status| status.started_at.is_some())
}

/// When this process requested an instance refresh for the desired state. The answer may be lost, and the report may fail
/// or follow after its end.
pub fn requested_at(input: &Input<'_>) -> Option<DateTime<Utc>> {
    let requested = input.memory.refreshes.start_of_rollout();
    requested.filter(|requested| input.now - *requested <= desired_age(input))
}

/// Whether the result of an instance refresh counts for the rollout in progress, or for the one that is about to begin: an
/// edit may be reverted before an instance refresh of the earlier rollout ends. A desired state that returns later, or
/// whose rollout a user continues by removing the annotation, starts again.
pub(super) fn counts(input: &Input<'_>, refresh: &InstanceRefresh) -> bool {
    let revision = revision(input.desired, input.observed);
    let reported = input.memory.rollout.reported_for(revision.as_ref());
    let reported = reported.filter(|status| status.waiting_for != Some(RolloutWait::Correction));
    let reported = reported.and_then(|status| status.started_at.or(status.waiting_since));
    let started = reported.into_iter().chain(requested_at(input)).min();
    let Some((started, ended)) = started.zip(refresh.ended_at) else { return false };
    // The rollout is timed by the clock of the host, the refresh by that of AWS: one that began with the rollout counts, although
    // it seems to have ended before. If this process saw it end, the clock of the host decides, unless it was set back since.
    // One that was cancelled while it was pending has no start.
    let began_with = refresh.started_at.unwrap_or(ended) + CLOCKS_APART >= started;
    let seen = input.memory.refreshes.seen_ended_at(&refresh.id).filter(|_| started <= input.now);
    let ended_since = match seen {
        Some(seen) => seen >= started && ended + CLOCKS_APART >= started,
        None => ended >= started,
    };
    ended_since || began_with
}

/// Whether the status reports it as stopped by this controller, or about to be: then its end is no failure.
pub(super) fn is_by_us(input: &Input<'_>, refresh: &InstanceRefresh) -> bool {
    let reported = input.memory.rollout.reported().and_then(|status| status.ended_refresh_id.as_ref());
    reported == Some(&refresh.id)
}

/// Whether it ended as this controller requested. A failure is never requested, and what ended before the request was
/// made is not ended by it.
pub(super) fn was_by_us(input: &Input<'_>, refresh: &InstanceRefresh) -> bool {
    // The rollout that it was stopped for may be over, and its status gone.
    (is_by_us(input, refresh) || input.memory.refreshes.is_stopped(&refresh.id))
        && refresh.status != RefreshStatus::Failed
        && !input.memory.refreshes.is_only_announced(&refresh.id)
}

/// Whether the view of the group is newer than the end of an instance refresh.
pub(super) fn is_shown(input: &Input<'_>, refresh: &InstanceRefresh) -> bool {
    let seen = input.observed.group.as_of();
    refresh.ended_at.zip(seen).is_none_or(|(ended, seen)| seen - ended >= LIST_LAG)
}

/// Whether instance refreshes for the desired state succeeded twice recently, although instances are still outdated.
pub(super) fn is_without_effect(input: &Input<'_>, wanted: &Launch) -> bool {
    let all = input.observed.refreshes.iter().flat_map(|view| view.refreshes.iter());
    let lately = |refresh: &&InstanceRefresh| {
        refresh.status == RefreshStatus::Successful
            && refresh.ended_at.is_some_and(|ended| input.now - ended < WITHOUT_EFFECT)
            && counts(input, refresh)
            && is_for_desired(input, refresh, wanted, &Outdated::default())
    };
    all.filter(lately).count() >= 2
}
