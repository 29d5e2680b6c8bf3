//! Decides about the group's existence, ownership and settings (bounds apart: those belong to `capacity`).

use capasg_cloud::{CreateGroup, Group, Write};

use super::super::state::{Case, Desired, GroupView, Obstacle, Plan};
use super::{adoption, external, launch_template::Pin, machines};
use crate::names::account_of;
use capasg_api::names::tags::OWNER_ID;

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
            // A preview makes none, so that nothing is about to change.
            plan.in_transition = !(desired.previews && *settled);
            if *settled {
                absent(case, pin, plan);
            }
            Standing::Wait
        }
        GroupView::Present { group, .. } => {
            if let Some(obstacle) = foreign(desired, group) {
                if adoption::is_asked_for(desired, &obstacle) {
                    adoption::decide(case, group, plan);
                } else {
                    plan.obstacle = Some(obstacle);
                }
                return Standing::Wait;
            }
            if adoption::is_fresh(case, plan) {
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
                machines::ask_again(case, id, member, machines::MISSING_FOR, plan);
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
