//! The changes that a preview reports.

use capasg_api::pool::PendingChange;
use capasg_cloud::{Group, LaunchTemplateVersion};

use crate::machine_pool::decide::launch_template;
use crate::machine_pool::decide::pending::{change, in_place, outdates, sorted};
use crate::machine_pool::decide::rollout::outdated;
use crate::machine_pool::decide::settings::{self, LAUNCH_TEMPLATE, NOTHING, content};
use crate::machine_pool::model::ownership::template_not_owned;
use crate::machine_pool::model::template_versions::{is_ours, pinned_content, pinned_stamp, pinned_version};
use crate::machine_pool::model::{
    Comparison, Desired, DesiredLaunch, Input, Known, Observed, Outdated, OutdatedReason,
};

/// What is created when the preview ends.
pub(super) fn creations(desired: &Desired, observed: &Observed) -> Vec<PendingChange> {
    let template = matches!(observed.template, Known::Absent)
        .then(|| change("launch template", NOTHING, &desired.template, "Creates".to_owned()));
    let group = change("Auto Scaling group", NOTHING, &desired.group, "Creates".to_owned());
    [Some(group), template].into_iter().flatten().collect()
}

/// The changes that are made when the preview ends, by path, and the group compared with the spec.
pub(super) fn changes(input: &Input<'_>, group: &Group) -> (Vec<PendingChange>, Comparison) {
    let wanted = Desired { previews: false, ..input.desired.clone() };
    let input = Input { desired: &wanted, ..*input };
    let (pin, _) = launch_template::decide(&input);
    let mut compared = settings::compare(&input, group, &pin, false).comparison(&input);
    for difference in &mut compared.differences {
        // The report of the previous leader does not show which changes of the spec the preview held then.
        difference.is_drift = input.memory.drift.agreed(&difference.path) == Some(&difference.wanted);
    }
    let outdated = outdated::outdated(&wanted, input.observed, input.now);
    let mut changes = content_changes(&wanted, input.observed, &outdated);
    // What another actor set is also named itself: nothing records what it was made of.
    let is_by_others = launches_from_others(input.observed);
    let by_content = !changes.is_empty() && !is_by_others;
    for difference in &compared.differences {
        // A change of the version follows from the changes of its content.
        let is_version = difference.path == LAUNCH_TEMPLATE;
        if changes.iter().any(|change| change.path == difference.path) || (is_version && by_content) {
            continue;
        }
        let removed = outdated.with(OutdatedReason::TypeRemoved);
        let effect = if difference.path.starts_with("spec.instanceTypes") && removed > 0 {
            outdates(removed)
        } else {
            in_place()
        };
        changes.push(change(&difference.path, &difference.seen, &difference.wanted, effect));
    }
    let creates = matches!(wanted.launch, DesiredLaunch::Known { .. })
        && template_not_owned(&wanted, input.observed).is_none();
    if is_by_others && creates && changes.iter().all(|change| change.path != LAUNCH_TEMPLATE) {
        // The version of the spec does not exist yet.
        let ours = input.observed.template.present().map_or("", |template| &template.id);
        let seen = settings::template_text(&group.settings.launch.template, ours);
        changes.push(change(LAUNCH_TEMPLATE, &seen, "a new version", in_place()));
    }
    (sorted(changes), compared)
}

/// Whether the group launches from what another actor set: a version without a record of this controller, `$Latest`,
/// `$Default`, or another launch template. A version that is still to be read is unknown.
fn launches_from_others(observed: &Observed) -> bool {
    let Some(template) = observed.template.present() else { return false };
    let Some(pinned) = pinned_version(observed) else { return true };
    let is_read = |version: &&LaunchTemplateVersion| version.content.is_some();
    template.versions.get(&pinned).filter(is_read).is_some_and(|version| !is_ours(version))
}

/// The changes of the launch template's content. User data is secret: only the fact that it changes is reported. It is
/// never read, so that the user data of another actor's version are always replaced.
fn content_changes(wanted: &Desired, observed: &Observed, outdated: &Outdated) -> Vec<PendingChange> {
    let DesiredLaunch::Known { data, stamp, .. } = &wanted.launch else { return Vec::new() };
    let (content, pinned) = (pinned_content(observed), pinned_stamp(observed));
    let stamp = stamp.clone().following(pinned.as_ref());
    let count = outdated.with(OutdatedReason::ImageChanged) + outdated.with(OutdatedReason::TemplateChanged);
    // A version of another actor has no stamp: which instances are outdated shows whether the difference counts.
    let rolls = pinned.as_ref().map_or(count > 0, |pinned| pinned.rollout != stamp.rollout);
    let effect = |outdates_some: bool| if outdates_some { outdates(count) } else { in_place() };
    let differences = content.map(|content| content::compare(data, content)).unwrap_or_default();
    let mut changes: Vec<PendingChange> = differences
        .iter()
        .map(|one| change(&one.path, &one.seen, &one.wanted, effect(rolls && one.outdates)))
        .collect();
    let Some(pinned) = pinned else {
        if launches_from_others(observed) {
            changes.push(change("bootstrap data", "set by another actor, not read", "not shown", in_place()));
        }
        return changes;
    };
    if pinned.bootstrap_data != stamp.bootstrap_data {
        let effect = effect(pinned.outdated_under(&stamp));
        let new = if wanted.rotates {
            "changed, not shown; a new bootstrap token is also pending"
        } else {
            "changed, not shown"
        };
        changes.push(change("bootstrap data", "not shown", new, effect));
    }
    if rolls && !differences.iter().any(|one| one.outdates) {
        // The Kubernetes version, or another selector for the same security groups: a version contains neither.
        let path = "spec.machine.securityGroups, or spec.template.spec.version of the MachinePool";
        changes.push(change(path, "not shown", "changed, not shown", effect(true)));
    }
    changes
}
