//! Open lifecycle actions: completed, abandoned, kept alive.

use chrono::Duration;

use super::{Lifecycle, Membership, activities, ends, group_not_found, hooks, membership};
use crate::{ApiError, Tree, events::Event, region::Region};

/// Finds the open action that a request names by token or by instance, as instance id and token.
fn find(region: &Region, params: &Tree) -> Result<(String, String), ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default();
    let hook = params.text_of("LifecycleHookName").unwrap_or_default();
    let group = region.state.groups.get(name).ok_or_else(|| group_not_found(name))?;
    let (token, wanted) = (params.text_of("LifecycleActionToken"), params.text_of("InstanceId"));
    if token.is_none() && wanted.is_none() {
        return Err(ApiError::validation("Either LifecycleActionToken or InstanceId must be specified."));
    }
    for (instance, own) in super::members(&region.state, group) {
        let action = own
            .actions
            .iter()
            .find(|action| action.hook == hook && token.is_none_or(|token| token == action.token));
        if let Some(action) = action.filter(|_| wanted.is_none_or(|wanted| wanted == instance.id)) {
            return Ok((instance.id.clone(), action.token.clone()));
        }
    }
    Err(ApiError::validation(match (token, wanted) {
        (Some(token), _) => format!("No active Lifecycle Action found with token {token}"),
        (None, id) => format!("No active Lifecycle Action found with instance ID {}", id.unwrap_or_default()),
    }))
}

pub(crate) fn complete(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let result = params.text_of("LifecycleActionResult").unwrap_or_default();
    hooks::check_result(result)?;
    let (id, token) = find(region, params)?;
    close(region, &id, &token, result);
    Ok(Tree::new())
}

pub(crate) fn heartbeat(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let (id, token) = find(region, params)?;
    let now = region.now;
    let timeout = region
        .state
        .groups
        .get(params.text_of("AutoScalingGroupName").unwrap_or_default())
        .and_then(|group| group.hooks.get(params.text_of("LifecycleHookName").unwrap_or_default()))
        .map_or(3600, |hook| hook.timeout);
    let action =
        membership(region, &id).and_then(|own| own.actions.iter_mut().find(|action| action.token == token));
    if let Some(action) = action {
        action.deadline = (now + Duration::seconds(timeout)).min(action.latest);
    }
    Ok(Tree::new())
}

/// Closes an action. `ABANDON` ends a launch, and skips what else would hold an end; the last `CONTINUE` goes on.
pub(crate) fn close(region: &mut Region, id: &str, token: &str, result: &str) {
    let Some(own) = membership(region, id) else { return };
    own.actions.retain(|action| action.token != token);
    let abandoned = result == "ABANDON";
    match own.lifecycle {
        Lifecycle::PendingWait if abandoned => abandon(region, id, token),
        Lifecycle::PendingWait if own.actions.is_empty() => {
            own.lifecycle = Lifecycle::PendingProceed;
            region.schedule(region.settings.step_millis, Event::InService(id.to_owned()));
        }
        Lifecycle::TerminatingWait if abandoned || own.actions.is_empty() => ends::proceed(region, id),
        _ => {}
    }
}

fn abandon(region: &mut Region, id: &str, token: &str) {
    let Some((name, activity)) =
        membership(region, id).map(|own: &mut Membership| (own.group.clone(), own.activity.take()))
    else {
        return;
    };
    let words = format!(
        "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token {token} was abandoned: \
         Heartbeat Timeout or Completed with ABANDON Result"
    );
    if let Some(sequence) = activity {
        activities::finish(region, &name, sequence, activities::Status::Cancelled, Some(&words));
    }
    ends::begin(region, id, &words);
}

/// Deletes a hook; its open actions are completed: launches abandoned, ends continued.
pub(crate) fn delete(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default().to_owned();
    let hook = params.text_of("LifecycleHookName").unwrap_or_default();
    let group = region.state.groups.get_mut(&name).ok_or_else(|| group_not_found(&name))?;
    let Some(removed) = group.hooks.remove(hook) else {
        return Err(ApiError::validation(format!(
            "No Lifecycle Hook found with name: {hook} for group: {name}"
        )));
    };
    let result = if removed.transition == hooks::LAUNCHING { "ABANDON" } else { "CONTINUE" };
    for id in group.members.clone() {
        let open = membership(region, &id).and_then(|own| {
            own.actions.iter().find(|action| action.hook == hook).map(|action| action.token.clone())
        });
        if let Some(token) = open {
            close(region, &id, &token, result);
        }
    }
    Ok(Tree::new())
}

/// A deadline of an action passes; heartbeats may have moved it.
pub(crate) fn deadline(region: &mut Region, id: &str, token: &str) {
    let now = region.now;
    let Some(own) = membership(region, id) else { return };
    let Some(action) = own.actions.iter().find(|action| action.token == token).cloned() else { return };
    let due = action.deadline.min(action.latest);
    if now < due {
        region.schedule_at(due, Event::HookDeadline(id.to_owned(), token.to_owned()));
        return;
    }
    own.timed_out = true;
    let name = own.group.clone();
    let hook = region.state.groups.get(&name).and_then(|group| group.hooks.get(&action.hook));
    let result = hook.map_or_else(|| "ABANDON".to_owned(), |hook| hook.default_result.clone());
    close(region, id, token, &result);
}
