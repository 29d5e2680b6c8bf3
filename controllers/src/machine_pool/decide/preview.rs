//! `changePolicy: Preview`: the wish is held to what AWS has, so that everything that follows from it writes nothing, and
//! what would change is told. Capacity, drains and ends are no part of that and go on.

use capasg_api::pool::{MOST_PENDING_CHANGES, PendingChange, RolloutMode};
use capasg_cloud::{Group, LaunchTemplateVersion};

use super::super::{
    desired::content_hash,
    stamp::Stamp,
    state::{Case, Desired, GroupView, LaunchWish, Observed, Plan, TemplateView, WantedSettings},
};
use super::{
    differences::{self, NOTHING, content},
    group,
    launch_template::{self, pinned_stamp, pinned_version},
    rollout::{self, Outdated, OutdatedReason},
};

/// Longest value that is shown, in characters.
const LONGEST: usize = 512;

/// What is held, and what would change; that is `None` while it is not known.
pub type Held = (Desired, Option<Vec<PendingChange>>);

/// Holds the wish to what AWS has, if differences are only shown; `None` if they are put right.
#[must_use]
pub fn hold(case: &Case<'_>) -> Option<Held> {
    let Case { desired, observed, .. } = *case;
    if !desired.previews {
        return None;
    }
    let mut held = desired.clone();
    held.rollout.mode = RolloutMode::Paused;
    match &observed.group {
        GroupView::Present { group, .. } if group::foreign(desired, group).is_none() => {
            held.launch = held_launch(desired, observed);
            hold_settings(&mut held, observed, group);
            Some((held, Some(changes(case, group))))
        }
        // Nothing of it is ours to hold; whether it can become ours is told by `adoption`.
        GroupView::Present { .. } => Some((held, None)),
        other => {
            // Nothing is made without a version.
            held.launch = LaunchWish::Unknown;
            let absent = matches!(other, GroupView::Absent { .. });
            Some((held, absent.then(|| creations(desired, observed))))
        }
    }
}

/// What the pinned version holds, with the user data of now, as long as these differ by their tokens alone: what is
/// launched must be able to join. A rendered edit of the bootstrap config waits, and with it its tokens.
fn held_launch(desired: &Desired, observed: &Observed) -> LaunchWish {
    let LaunchWish::Known { data, stamp: wish, has_user_data } = &desired.launch else {
        return LaunchWish::Unknown;
    };
    let content = pinned(observed).and_then(|version| version.content.as_ref());
    let (Some(content), Some(pinned)) = (content, pinned_stamp(observed)) else { return LaunchWish::Unknown };
    if pinned.bootstrap_data != wish.bootstrap_data {
        return LaunchWish::Unknown;
    }
    let mut held = content.as_ref().clone();
    held.user_data = data.user_data.clone();
    let stamp = Stamp { content: content_hash(&held, &desired.user_data_hash), ..pinned };
    LaunchWish::Known { data: Box::new(held), stamp, has_user_data: *has_user_data }
}

fn hold_settings(held: &mut Desired, observed: &Observed, group: &Group) {
    let seen = group.settings.clone();
    let own_type = pinned(observed).and_then(|version| version.content.as_ref());
    let launched = own_type.map(|content| content.instance_type.clone()).into_iter();
    let launched = launched.chain(seen.launch.mixed.iter().flat_map(|mixed| mixed.instance_types.clone()));
    for one in launched {
        if !held.instance_types.contains(&one) {
            held.instance_types.push(one);
        }
    }
    held.settings = WantedSettings {
        mixed: seen.launch.mixed,
        subnets: seen.subnets,
        health_check_types: seen.health_check_types,
        health_check_grace_period: seen.health_check_grace_period,
        default_cooldown: seen.default_cooldown,
        default_instance_warmup: seen.default_instance_warmup,
        protect_new_instances: seen.protect_new_instances,
    };
    held.tags.clone_from(&group.tags);
    if let Some(hook) = &observed.hook {
        held.hook.clone_from(hook);
    }
}

fn pinned(observed: &Observed) -> Option<&LaunchTemplateVersion> {
    let TemplateView::Present { versions, .. } = &observed.template else { return None };
    versions.get(&pinned_version(observed)?)
}

fn creations(desired: &Desired, observed: &Observed) -> Vec<PendingChange> {
    let template = matches!(observed.template, TemplateView::Absent)
        .then(|| change("launch template", NOTHING, &desired.template, "Creates".to_owned()));
    let group = change("Auto Scaling group", NOTHING, &desired.group, "Creates".to_owned());
    [Some(group), template].into_iter().flatten().collect()
}

/// Everything that would change, by path.
fn changes(case: &Case<'_>, group: &Group) -> Vec<PendingChange> {
    let wish = Desired { previews: false, ..case.desired.clone() };
    let case = Case { desired: &wish, ..*case };
    let pin = launch_template::decide(&wish, case.observed, &mut Plan::default());
    let mut told = Plan::default();
    differences::compare(&case, group, &pin, false).tell(&case, &mut told);
    let outdated = rollout::outdated(&wish, case.observed, case.now);
    let mut changes = content_changes(&wish, case.observed, &outdated);
    let by_content = !changes.is_empty();
    for difference in told.differences {
        // A version follows from what it holds.
        let is_version = difference.path == differences::LAUNCH_TEMPLATE;
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
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes.truncate(MOST_PENDING_CHANGES);
    changes
}

/// What the launch template would hold instead. User data are secret: only that they change is told.
fn content_changes(wish: &Desired, observed: &Observed, outdated: &Outdated) -> Vec<PendingChange> {
    let LaunchWish::Known { data, stamp, .. } = &wish.launch else { return Vec::new() };
    let content = pinned(observed).and_then(|version| version.content.as_ref());
    let (Some(content), Some(pinned)) = (content, pinned_stamp(observed)) else { return Vec::new() };
    let stamp = stamp.clone().following(Some(&pinned));
    let rolls = pinned.rollout != stamp.rollout;
    let count = outdated.with(OutdatedReason::ImageChanged) + outdated.with(OutdatedReason::TemplateChanged);
    let effect = |outdates_some: bool| if outdates_some { outdates(count) } else { in_place() };
    let members = content::compare(data, content);
    let mut changes: Vec<PendingChange> = members
        .iter()
        .map(|member| change(&member.path, &member.seen, &member.wanted, effect(rolls && member.outdates)))
        .collect();
    if pinned.bootstrap_data != stamp.bootstrap_data {
        let effect = effect(pinned.outdated_under(&stamp));
        changes.push(change("bootstrap data", "not shown", "changed, not shown", effect));
    }
    if rolls && !members.iter().any(|member| member.outdates) {
        // The Kubernetes version, or another way to name the same security groups: a version holds neither.
        changes.push(change(
            "spec.machine, or the MachinePool's version",
            "not shown",
            "changed",
            effect(true),
        ));
    }
    changes
}

pub(super) fn in_place() -> String {
    "InPlace".to_owned()
}

pub(super) fn outdates(count: usize) -> String {
    format!("Outdates {count} instances")
}

pub(super) fn change(path: &str, from: &str, to: &str, effect: String) -> PendingChange {
    let shown = |text: &str| text.chars().take(LONGEST).collect::<String>();
    PendingChange { path: shown(path), from: shown(from), to: shown(to), effect }
}
