//! Reads the facts of one pool from the caches and the inventory.

use std::{collections::BTreeSet, sync::Arc};

use capasg_api::names::TERMINATE_HOOK;
use capasg_cloud::{
    FactsView, Inventory, LaunchTemplateVersion, LifecycleHook, RefreshesView, Template, View,
};
use chrono::{DateTime, TimeDelta, Utc};

use crate::Context;
use crate::machine_pool::model::stamp::Stamp;
use crate::machine_pool::model::template_versions::is_ours;
use crate::machine_pool::model::{
    Desired, Ec2Answer, GroupView, Known, Machines, Observed, ObservedTemplate, PoolObjects, image_source,
};
use crate::machine_pool::observe::fetched::Fetched;
use crate::machine_pool::observe::instance_notices;
use crate::machine_pool::observe::instances::{join, launch_record};

/// A group that a poll read within this time is not read again: a request takes as long.
const JUST_NOW: TimeDelta = TimeDelta::seconds(1);

/// The launch template. Of many pools it is listed with its latest version alone, which suffices as long as the group is
/// pinned to that and nobody else created it.
pub async fn template(inventory: &Inventory, objects: &PoolObjects) -> Known<ObservedTemplate> {
    let Some((group, name)) = objects.cloud_names() else { return Known::Unread(None) };
    let mut read = inventory.template(&name).await;
    if let Ok(Some(found)) = &read
        && !found.has_all_versions
        && !suffices(found, &inventory.view(&group))
    {
        inventory.forget_template(&name);
        read = inventory.template(&name).await;
    }
    Known::of(read.map(|found| {
        found.map(|found| ObservedTemplate {
            id: found.template.id.clone(),
            tags: found.template.tags.clone(),
            default_version: found.template.default_version,
            versions: found.versions.clone(),
            has_all_versions: found.has_all_versions,
            as_of: found.as_of,
        })
    }))
}

/// Whether the versions that were listed show what a group launches. Decide requires the others if an instance was launched
/// from one of them.
fn suffices(listed: &Template, group: &View) -> bool {
    let pinned = group.group().map(|group| &group.settings.launch.template);
    let is_pinned = pinned.is_none_or(|launch| {
        let version = launch.version.filter(|_| launch.id == listed.template.id);
        version.is_some_and(|version| listed.versions.contains_key(&version))
    });
    is_pinned && listed.versions.values().all(is_ours)
}

/// The image of the pinned version, as long as the spec takes it from the same source. If the launch template was deleted:
/// the image that the status reports, if an instance was launched for the same source.
#[must_use]
pub fn pinned_image(
    inventory: &Inventory,
    objects: &PoolObjects,
    machines: &Machines,
    template: &Known<ObservedTemplate>,
    version: Option<&str>,
) -> Option<String> {
    let source = image_source(&objects.pool.spec, version)?;
    let versions = match template {
        Known::Present(ObservedTemplate { versions, .. }) => versions,
        Known::Absent => {
            let records = machines.asg_machines.iter().filter_map(|machine| launch_record(machine));
            let is_same = records.into_iter().any(|record| record.stamp().image_source == source);
            let reported = objects.pool.status.as_ref()?.image.as_ref()?;
            return is_same.then(|| reported.id.clone());
        }
        Known::Unread(_) => return None,
    };
    let image = |found: &LaunchTemplateVersion| {
        let stamp = Stamp::parse(found.description.as_deref()?)?;
        found.image_id.clone().filter(|_| stamp.image_source == source)
    };
    // A group that another actor set to `$Latest` has no pinned version: the newest version from the same source is
    // used.
    let pinned = pinned(inventory, objects, template);
    pinned.and_then(image).or_else(|| versions.values().rev().find_map(image))
}

/// The security groups of the version that the group is pinned to. If another actor set it to `$Latest`, those of our
/// newest version, which it launched from before.
#[must_use]
pub fn pinned_security_groups(
    inventory: &Inventory,
    objects: &PoolObjects,
    template: &Known<ObservedTemplate>,
) -> Option<BTreeSet<String>> {
    let Known::Present(ObservedTemplate { versions, .. }) = template else { return None };
    let ours = || versions.values().rev().find(|version| is_ours(version));
    let content = pinned(inventory, objects, template).or_else(ours)?.content.as_ref()?;
    Some(content.security_group_ids.iter().cloned().collect())
}

/// Whether the version that the group is pinned to boots Windows, or may do so since its image cannot be read.
pub async fn pins_windows(
    inventory: &Inventory,
    objects: &PoolObjects,
    template: &Known<ObservedTemplate>,
) -> bool {
    let version = pinned(inventory, objects, template);
    let Some(image) = version.and_then(|version| version.image_id.as_deref()) else { return false };
    !matches!(inventory.image(image).await, Ok(Some(image)) if !image.is_windows)
}

/// The version that the group is pinned to.
fn pinned<'a>(
    inventory: &Inventory,
    objects: &PoolObjects,
    template: &'a Known<ObservedTemplate>,
) -> Option<&'a LaunchTemplateVersion> {
    let Known::Present(ObservedTemplate { id, versions, .. }) = template else { return None };
    let (group, _) = objects.cloud_names()?;
    let view = inventory.view(&group);
    let launch = &view.group()?.settings.launch.template;
    versions.get(&launch.version.filter(|_| launch.id == *id)?)
}

/// The facts that decide requires.
pub async fn observed(
    context: &Context,
    inventory: &Inventory,
    desired: &Desired,
    template: Known<ObservedTemplate>,
    machines: &Machines,
    fetched: &Fetched,
) -> Observed {
    let group = match inventory.view(&desired.group) {
        View::Unknown => GroupView::Unknown,
        View::Absent { as_of, settled } => GroupView::Absent { as_of, settled },
        View::Present { group, as_of, settled } => GroupView::Present { group, as_of, settled },
    };
    let facts = |id: &str| match inventory.facts(id) {
        FactsView::Unknown => None,
        FactsView::Absent { as_of } => Some(Ec2Answer { facts: None, as_of }),
        FactsView::Present(facts) => Some(Ec2Answer { facts: Some(facts.facts.clone()), as_of: facts.as_of }),
    };
    let (mut instances, unmatched_machines) = join(group.present(), machines, facts);
    instance_notices::set_notices(inventory, machines, &mut instances);
    let hook = hook(inventory, &desired.group, fetched.hook).await;
    let hook_known_for =
        inventory.hooks_kept_for(&desired.group).and_then(|kept| TimeDelta::from_std(kept).ok());
    let now = context.clock.now();
    let fresh_group = is_fresh(&group, fetched, now);
    let group_was_read = was_read(&group, fetched);
    let refreshes = refreshes(inventory, &desired.group, fetched, now);
    let refreshes_were_read =
        fetched.refreshes.zip(refreshes.as_ref()).is_some_and(|(since, view)| view.as_of >= since);
    Observed {
        group,
        template,
        template_was_read: fetched.fresh_template,
        account: fetched.account.clone(),
        refreshes,
        refreshes_were_read,
        hook,
        hook_known_for,
        instances,
        live_machines: fetched.live_machines.is_some(),
        fresh_group,
        group_was_read,
        fresh_hook: fetched.fresh_hook,
        unmatched_machines,
    }
}

/// The group's instance refreshes as last read. If AWS denies to list them, the pool does not use them, and the last
/// listing has none in progress, there are none.
fn refreshes(
    inventory: &Inventory,
    group: &str,
    fetched: &Fetched,
    now: DateTime<Utc>,
) -> Option<RefreshesView> {
    if fetched.no_refreshes {
        return Some(RefreshesView { refreshes: Arc::default(), as_of: now });
    }
    inventory.known_refreshes(group)
}

/// Whether the group was read for this decision alone, or by a poll within the last second that shows all our writes.
/// An absent group is always read again.
fn is_fresh(group: &GroupView, fetched: &Fetched, now: DateTime<Utc>) -> bool {
    // Not if the clock was set back since.
    let just_seen = matches!(group, GroupView::Present { as_of, settled: true, .. }
        if (TimeDelta::zero()..JUST_NOW).contains(&(now - *as_of)));
    was_read(group, fetched) || just_seen
}

/// Whether the group was read for this decision alone. If another actor manages the replicas, only such a view is
/// recent enough: otherwise a recent write of theirs would be reverted (G2).
fn was_read(group: &GroupView, fetched: &Fetched) -> bool {
    fetched.fresh_group.is_some_and(|since| group.as_of().is_some_and(|as_of| as_of >= since))
}

/// Our lifecycle hook in AWS, if it is required, or known without a call.
async fn hook(inventory: &Inventory, group: &str, is_required: bool) -> Known<LifecycleHook> {
    let hooks = if is_required {
        inventory.hooks(group).await
    } else {
        match inventory.known_hooks(group) {
            Some(hooks) => Ok(hooks),
            None => return Known::Unread(None),
        }
    };
    Known::of(hooks.map(|hooks| hooks.iter().find(|hook| hook.name == TERMINATE_HOOK).cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_pool::decide::testing::{Stage, now};

    fn seen(ago: i64, settled: bool) -> GroupView {
        let mut stage = Stage::new(1);
        GroupView::Present {
            group: Arc::new(stage.group().clone()),
            as_of: now() - TimeDelta::milliseconds(ago),
            settled,
        }
    }

    #[test]
    fn w11_what_a_poll_has_just_read_is_not_read_again() {
        let nothing = Fetched::default();
        assert!(is_fresh(&seen(300, true), &nothing, now()));
        assert!(!is_fresh(&seen(300, false), &nothing, now()), "a write of ours may be missing");
        assert!(!is_fresh(&seen(1_000, true), &nothing, now()));
        let absent = GroupView::Absent { as_of: now(), settled: true };
        assert!(!is_fresh(&absent, &nothing, now()), "an absent group is always read again");
    }

    #[test]
    fn what_was_read_for_this_decision_is_fresh() {
        let wanted =
            |ago| Fetched { fresh_group: Some(now() - TimeDelta::milliseconds(ago)), ..Fetched::default() };
        assert!(is_fresh(&seen(5_000, false), &wanted(6_000), now()));
        assert!(!is_fresh(&seen(5_000, true), &wanted(4_000), now()), "the read failed");
    }
}
