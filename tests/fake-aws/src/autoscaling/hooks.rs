//! Lifecycle hooks: defined on a group, opened as actions when an instance passes, closed by their time-outs.

use std::collections::BTreeMap;

use chrono::Duration;

use super::{Action, Lifecycle, activities, group_not_found, hook::Hook, membership, modifiable};
use crate::{
    ApiError, Tree,
    events::Event,
    happening::What,
    region::{Region, View},
};

/// The transition of hooks that hold launches.
pub(crate) const LAUNCHING: &str = "autoscaling:EC2_INSTANCE_LAUNCHING";
/// The transition of hooks that hold ends.
pub(crate) const TERMINATING: &str = "autoscaling:EC2_INSTANCE_TERMINATING";

/// Hooks of one group.
const LIMIT: usize = 50;
/// No heartbeats keep an action open for longer: 48 hours.
const LONGEST_SECONDS: i64 = 172_800;

impl Hook {
    /// Reads a hook, starting from the one that it changes.
    fn read(tree: &Tree, before: Option<&Self>) -> Result<Self, ApiError> {
        let transition = tree.text_of("LifecycleTransition").or(before.map(|hook| hook.transition.as_str()));
        let transition =
            transition.filter(|transition| [LAUNCHING, TERMINATING].contains(transition)).ok_or_else(
                || ApiError::validation(format!("LifecycleTransition must be {LAUNCHING} or {TERMINATING}")),
            )?;
        let timeout = tree.number_of("HeartbeatTimeout").or(before.map(|hook| hook.timeout)).unwrap_or(3600);
        if !(30..=7200).contains(&timeout) {
            return Err(ApiError::validation("HeartbeatTimeout must be between 30 and 7200 seconds"));
        }
        let default_result = tree
            .text_of("DefaultResult")
            .or(before.map(|hook| hook.default_result.as_str()))
            .unwrap_or("ABANDON");
        check_result(default_result)?;
        let mut rest = before.map(|hook| hook.rest.clone()).unwrap_or_default();
        for name in ["NotificationTargetARN", "RoleARN", "NotificationMetadata"] {
            if let Some(value) = tree.get(name) {
                rest.insert(name.to_owned(), value.clone());
            }
        }
        Ok(Self {
            transition: transition.to_owned(),
            timeout,
            default_result: default_result.to_owned(),
            rest,
        })
    }

    fn global_timeout(&self) -> i64 {
        (100 * self.timeout).min(LONGEST_SECONDS)
    }

    fn render(&self, group: &str, name: &str) -> Tree {
        let mut tree = Tree::new()
            .with("LifecycleHookName", name)
            .with("AutoScalingGroupName", group)
            .with("LifecycleTransition", &self.transition)
            .with("HeartbeatTimeout", self.timeout)
            .with("GlobalTimeout", self.global_timeout())
            .with("DefaultResult", &self.default_result);
        for (name, value) in &self.rest {
            tree.set(name, value.clone());
        }
        tree
    }
}

pub(crate) fn check_result(result: &str) -> Result<(), ApiError> {
    if ["CONTINUE", "ABANDON"].contains(&result) {
        return Ok(());
    }
    Err(ApiError::validation("The lifecycle action result must be CONTINUE or ABANDON"))
}

fn check_name(name: &str) -> Result<(), ApiError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/".contains(&byte);
    if !name.is_empty() && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(ApiError::validation("A lifecycle hook's name must match [A-Za-z0-9\\-_\\/]+"))
}

/// The hooks that come with a group's creation.
pub(crate) fn specified(items: &[Tree]) -> Result<BTreeMap<String, Hook>, ApiError> {
    let mut hooks = BTreeMap::new();
    for item in items {
        let name = item.text_of("LifecycleHookName").unwrap_or_default();
        check_name(name)?;
        hooks.insert(name.to_owned(), Hook::read(item, None)?);
    }
    if hooks.len() > LIMIT {
        return Err(ApiError::refused(
            "LimitExceeded",
            "You have reached the maximum number of lifecycle hooks",
        ));
    }
    Ok(hooks)
}

pub(crate) fn put(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("LifecycleHookName").unwrap_or_default();
    check_name(name)?;
    let group = modifiable(region, params.text_of("AutoScalingGroupName").unwrap_or_default())?;
    let before = group.hooks.get(name);
    if before.is_none() && group.hooks.len() >= LIMIT {
        return Err(ApiError::refused(
            "LimitExceeded",
            "You have reached the maximum number of lifecycle hooks",
        ));
    }
    let hook = Hook::read(params, before)?;
    group.hooks.insert(name.to_owned(), hook);
    Ok(Tree::new())
}

pub(crate) fn describe(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default();
    let group = view.state.groups.get(name).ok_or_else(|| group_not_found(name))?;
    let wanted = params.texts_of("LifecycleHookNames");
    let hooks = group.hooks.iter().filter(|(hook, _)| wanted.is_empty() || wanted.contains(hook));
    Ok(Tree::new().with("LifecycleHooks", Tree::list(hooks.map(|(hook, facts)| facts.render(name, hook)))))
}

/// Opens the actions of a transition and puts the instance into its waiting state; false if there is no such hook,
/// or the group is being deleted, which does not wait for hooks.
pub(crate) fn open(region: &mut Region, id: &str, transition: &str) -> bool {
    let now = region.now;
    let Some(name) = membership(region, id).map(|own| own.group.clone()) else { return false };
    let Some(group) = region.state.groups.get(&name).filter(|group| !group.deleting()) else { return false };
    let hooks: Vec<(String, Hook)> = group
        .hooks
        .iter()
        .filter(|(_, hook)| hook.transition == transition)
        .map(|(name, hook)| (name.clone(), hook.clone()))
        .collect();
    if hooks.is_empty() {
        return false;
    }
    let mut actions = Vec::new();
    for (hook, facts) in hooks {
        let action = Action {
            hook,
            token: region.ids.uuid(),
            deadline: now + Duration::seconds(facts.timeout),
            latest: now + Duration::seconds(facts.global_timeout()),
        };
        region.schedule_at(action.deadline, Event::HookDeadline(id.to_owned(), action.token.clone()));
        actions.push(action);
    }
    let Some(own) = membership(region, id) else { return false };
    own.lifecycle = if transition == LAUNCHING { Lifecycle::PendingWait } else { Lifecycle::TerminatingWait };
    let hooks: Vec<String> = actions.iter().map(|action| action.hook.clone()).collect();
    own.actions = actions;
    let activity = own.activity;
    if transition == TERMINATING {
        own.held = Some((now, hooks.clone()));
        region.tell(|_| Some(What::Held { id: id.to_owned(), hooks }));
    }
    if let Some(sequence) = activity {
        activities::waiting(region, &name, sequence);
    }
    region.emit_actions(id);
    true
}
