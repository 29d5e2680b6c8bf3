//! Decides about the group's existence, ownership and settings (bounds apart: those belong to `capacity`).

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::{CreateGroup, Group, GroupChange, GroupTag, Write};

use super::super::state::{Case, Desired, GroupView, Observed, Obstacle, Plan};
use super::{external, launch_template::Pin, machines, members};
use crate::names::{account_of, recorded_keys};
use capasg_api::names::tags::OWNER_ID;

/// `SetInstanceProtection` takes at most this many.
const PROTECT_AT_MOST: usize = 50;

/// What the group's view allows.
pub enum Standing<'a> {
    /// It is there and ours: go on.
    Ours(&'a Group),
    /// Nothing can be done about instances now.
    Wait,
}

/// Decides whether there is a group of ours to work on, and plans its creation if there should be one.
pub fn standing<'a>(case: &Case<'a>, pin: &Pin, plan: &mut Plan) -> Standing<'a> {
    let Case { desired, observed, .. } = *case;
    match &observed.group {
        GroupView::Unknown => {
            plan.in_transition = true;
            Standing::Wait
        }
        GroupView::Absent { settled, .. } => {
            plan.in_transition = true;
            if *settled {
                absent(case, pin, plan);
            }
            Standing::Wait
        }
        GroupView::Present { group, .. } => {
            if let Some(obstacle) = foreign(desired, group) {
                plan.obstacle = Some(obstacle);
                return Standing::Wait;
            }
            if group.is_deleting() {
                plan.in_transition = true;
                return Standing::Wait;
            }
            Standing::Ours(group)
        }
    }
}

/// Whether the group of our name belongs to somebody else, or lives in another account than the pool's.
#[must_use]
pub fn foreign(desired: &Desired, group: &Group) -> Option<Obstacle> {
    let owner = group.tags.get(OWNER_ID).map(|tag| &tag.value);
    if owner != Some(&desired.owner_id) {
        return Some(Obstacle::ForeignGroup { found: owner.cloned() });
    }
    let recorded = desired.provider_id.as_deref().and_then(account_of)?;
    let found = group.account()?;
    (recorded != found)
        .then(|| Obstacle::WrongAccount { credentials: found.to_owned(), group: recorded.to_owned() })
}

/// The group is not there: create it, but re-create it only after the account, the group itself and its machines were
/// asked, since wrong credentials or an empty answer look the same (design section 4, "Identity").
fn absent(case: &Case<'_>, pin: &Pin, plan: &mut Plan) {
    let desired = case.desired;
    if !confirmed_absent(case, plan) || desired.settings.subnets.is_empty() {
        return;
    }
    let Pin::Version(template) = pin else { return };
    plan.cloud(Write::CreateGroup(Box::new(CreateGroup {
        name: desired.group.clone(),
        capacity: external::at_creation(desired),
        settings: desired.settings.with_template(template.clone()),
        tags: desired.tags.clone(),
        hooks: desired.hook.clone().into_iter().collect(),
    })));
    if !desired.suspended_processes.is_empty() {
        plan.cloud(Write::SuspendProcesses {
            group: desired.group.clone(),
            processes: desired.suspended_processes.clone(),
        });
    }
}

/// Whether a group that once existed is really gone. Asks for what it takes to tell.
pub fn confirmed_absent(case: &Case<'_>, plan: &mut Plan) -> bool {
    let Case { desired, observed, memory, .. } = *case;
    let Some(recorded) = desired.provider_id.as_deref().and_then(account_of) else {
        return true;
    };
    match &observed.account {
        None => {
            plan.needs.account = true;
            return false;
        }
        Some(account) if account != recorded => {
            plan.obstacle =
                Some(Obstacle::WrongAccount { credentials: account.clone(), group: recorded.to_owned() });
            return false;
        }
        Some(_) => {}
    }
    if !observed.fresh_group {
        plan.needs.fresh_group = true;
        return false;
    }
    let mut running = Vec::new();
    for (id, member) in &observed.members {
        let Some(missing_since) = memory.first_seen.get(id) else { continue };
        match member.is_gone_since(*missing_since) {
            None => {
                plan.needs.facts.insert(id.clone());
            }
            Some(false) => {
                machines::ask_again(case, id, member, plan);
                running.push(id.clone());
            }
            Some(true) => {}
        }
    }
    if !running.is_empty() {
        plan.obstacle = Some(Obstacle::GroupGoneInstancesRun { instances: running });
        return false;
    }
    plan.needs.facts.is_empty()
}

/// Plans one update for what differs between the group and the wish. Only on a settled view: an older one would
/// repeat what was just written.
pub fn settings(desired: &Desired, group: &Group, pin: &Pin, plan: &mut Plan) {
    let wanted = &desired.settings;
    let have = &group.settings;
    let template = match pin {
        Pin::Version(version) => version.clone(),
        Pin::Unchanged => have.launch.template.clone(),
    };
    let launch = wanted.with_template(template).launch;
    let change = GroupChange {
        launch: differs(&launch, &have.launch).filter(|launch| launch.template.version.is_some()),
        subnets: differs(&wanted.subnets, &have.subnets).filter(|subnets| !subnets.is_empty()),
        health_check_types: differs(&wanted.health_check_types, &have.health_check_types),
        health_check_grace_period: differs(
            &wanted.health_check_grace_period,
            &have.health_check_grace_period,
        ),
        default_cooldown: differs(&wanted.default_cooldown, &have.default_cooldown),
        default_instance_warmup: differs(&wanted.default_instance_warmup, &have.default_instance_warmup)
            .map(|seconds| seconds.unwrap_or(-1)),
        protect_new_instances: differs(&true, &have.protect_new_instances),
        ..GroupChange::default()
    };
    if !change.is_empty() {
        plan.cloud(Write::UpdateGroup { group: desired.group.clone(), change: Box::new(change) });
    }
}

/// Plans what the group carries beside its settings: tags, suspended processes, protection, our hook.
pub fn attachments(desired: &Desired, observed: &Observed, group: &Group, plan: &mut Plan) {
    tags(desired, group, plan);
    processes(desired, group, plan);
    protection(desired, observed, plan);
    hook(desired, observed, plan);
}

fn differs<T: PartialEq + Clone>(wanted: &T, have: &T) -> Option<T> {
    (wanted != have).then(|| wanted.clone())
}

/// Our tags are put right; tags of others are left alone, but one of ours that is no longer wished is removed. Ours
/// are the ones the pool wrote: without a record of its own that is every tag with our prefix or that the wish names.
fn tags(desired: &Desired, group: &Group, plan: &mut Plan) {
    let wrong: BTreeMap<String, GroupTag> = desired
        .tags
        .iter()
        .filter(|(key, tag)| group.tags.get(*key) != Some(tag))
        .map(|(key, tag)| (key.clone(), tag.clone()))
        .collect();
    if !wrong.is_empty() {
        plan.cloud(Write::TagGroup { group: desired.group.clone(), tags: wrong });
    }
    let before = recorded_keys(&group.tags);
    let stale: BTreeSet<String> = before
        .into_iter()
        .filter(|key| !desired.tags.contains_key(key) && group.tags.contains_key(key))
        .collect();
    if !stale.is_empty() {
        plan.cloud(Write::UntagGroup { group: desired.group.clone(), keys: stale });
    }
}

/// Suspends what the wish names. Processes suspended by AWS or by a person stay so, and show in status.
fn processes(desired: &Desired, group: &Group, plan: &mut Plan) {
    let missing: BTreeSet<String> = desired
        .suspended_processes
        .iter()
        .filter(|name| !group.suspended_processes.contains_key(*name))
        .cloned()
        .collect();
    if !missing.is_empty() {
        plan.cloud(Write::SuspendProcesses { group: desired.group.clone(), processes: missing });
    }
}

/// The group never picks (D13): an instance in service that is not protected (adopted, returned from standby) becomes so.
fn protection(desired: &Desired, observed: &Observed, plan: &mut Plan) {
    let bare: Vec<String> = members::in_service(observed)
        .filter(|(_, instance)| !instance.protected)
        .map(|(id, _)| id.clone())
        .collect();
    for chunk in bare.chunks(PROTECT_AT_MOST) {
        plan.cloud(Write::SetInstanceProtection {
            group: desired.group.clone(),
            instances: chunk.iter().cloned().collect(),
            protected: true,
        });
    }
}

/// Our terminate hook, once it was read; hooks of others are left alone.
fn hook(desired: &Desired, observed: &Observed, plan: &mut Plan) {
    let Some(have) = &observed.hook else {
        plan.needs.hook = true;
        return;
    };
    match (&desired.hook, have) {
        (Some(wanted), have) if have.as_ref() != Some(wanted) => {
            plan.cloud(Write::PutLifecycleHook { group: desired.group.clone(), hook: wanted.clone() });
        }
        (None, Some(have)) => {
            plan.cloud(Write::DeleteLifecycleHook { group: desired.group.clone(), hook: have.name.clone() });
        }
        _ => {}
    }
}
