//! New instances that are outdated on arrival: AWS launched them from another version than the group is pinned to, so
//! that replacing more instances would not end.

use std::collections::BTreeSet;

use capasg_api::{conditions, pool::RolloutType, reasons::up_to_date};

use crate::machine_pool::model::revision::revision;
use crate::machine_pool::model::template_versions::{pinned_version, version_of};
use crate::machine_pool::model::{Input, Outdated, OutdatedReason, instances};

/// Whether more instances of this rollout than its surge were already outdated when AWS launched them. At most one more
/// is replaced.
#[must_use]
pub fn are_too_many(input: &Input<'_>, outdated: &Outdated) -> bool {
    let most = usize::try_from(input.desired.rollout.max_surge).unwrap_or(0);
    input.desired.rollout.type_ == RolloutType::RollingUpdate
        && outdated.count() > 0
        && outdated_on_arrival(input, outdated).len() > most
}

/// Whether the previous leader stopped the rollout for that, by the pool's condition.
#[must_use]
pub fn stopped_it(input: &Input<'_>) -> bool {
    let status = input.objects.pool.status.as_ref();
    let condition = status.and_then(|status| conditions::get(&status.conditions, conditions::UP_TO_DATE));
    condition.is_some_and(|condition| condition.reason == up_to_date::UNEXPECTED_LAUNCH_TEMPLATE_VERSION)
}

/// The instances that were launched during the rollout and are outdated by their launch template version, those that are
/// terminated by now included.
#[must_use]
pub fn outdated_on_arrival(input: &Input<'_>, outdated: &Outdated) -> BTreeSet<String> {
    let Some(revision) = revision(input.desired, input.observed) else { return BTreeSet::new() };
    let progress = &input.memory.rollout_progress;
    // A rollout that a user continues counts from the beginning.
    if progress.was_stopped() && !input.is_rollout_stopped() {
        return BTreeSet::new();
    }
    let by_version = |id: &str| {
        matches!(outdated.reason(id), Some(OutdatedReason::ImageChanged | OutdatedReason::TemplateChanged))
    };
    let pinned = launched_as_pinned(input);
    let now = instances::live(input.observed)
        .map(|(id, _)| id)
        .filter(|id| by_version(id) && progress.is_new(&revision, id) && !pinned.contains(*id));
    let mut all = progress.outdated_on_arrival(&revision);
    all.extend(now.cloned());
    all
}

/// The instances of a version that another actor pinned the group to by number, now or until shortly before: AWS launched
/// what the group specified. The controller corrects the version, so that those that replace them are up to date. None if
/// the other actor does so again and again.
#[must_use]
pub fn launched_as_pinned(input: &Input<'_>) -> BTreeSet<String> {
    let Input { observed, memory, now, .. } = *input;
    let current = pinned_version(observed);
    let progress = &memory.rollout_progress;
    if progress.is_contested() {
        return BTreeSet::new();
    }
    let is_pinned = |version| current == Some(version) || progress.was_pinned_by_others(version, now);
    instances::live(observed)
        .filter(|(_, instance)| version_of(observed, instance).is_some_and(is_pinned))
        .map(|(id, _)| id.clone())
        .collect()
}
