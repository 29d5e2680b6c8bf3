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
