//! Health: what the group's checks find, what callers report, and the replacement that follows.

use chrono::Duration;

use super::{Group, Lifecycle, group::Why, instance_not_found, membership, replacements};
use crate::{ApiError, Tree, events::Event, region::Region};

pub(crate) fn set(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let id = params.text_of("InstanceId").unwrap_or_default().to_owned();
    let healthy = match params.text_of("HealthStatus") {
        Some("Healthy") => true,
        Some("Unhealthy") => false,
        _ => return Err(ApiError::validation("HealthStatus must be Healthy or Unhealthy")),
    };
    let respect = params.flag_of("ShouldRespectGracePeriod") != Some(false);
    let Some(own) = membership(region, &id).cloned() else { return Err(instance_not_found(&id)) };
    let in_grace = region.state.groups.get(&own.group).is_some_and(|group| in_grace(region, group, &own));
    // Within the grace period the call has no effect, and no error either.
    if !healthy && respect && in_grace {
        return Ok(Tree::new());
    }
    mark(region, &id, healthy);
    Ok(Tree::new())
}

fn in_grace(region: &Region, group: &Group, own: &super::Membership) -> bool {
    let grace = Duration::seconds(group.number("HealthCheckGracePeriod").unwrap_or_default());
    own.in_service.is_none_or(|since| region.since(since) < grace)
}

fn mark(region: &mut Region, id: &str, healthy: bool) {
    let Some(own) = membership(region, id) else { return };
    own.healthy = healthy;
    if healthy {
        replacements::forget(region, id, Why::Unhealthy);
    } else {
        region.schedule(region.settings.replace_millis, Event::Replace(id.to_owned()));
    }
}

/// The group looks at an instance: a machine that does not run is unhealthy at once, an impaired one after the
/// grace period.
pub(crate) fn check(region: &mut Region, id: &str) {
    let Some(instance) = region.state.instances.get(id) else { return };
    let Some(own) = instance.group.as_ref().filter(|own| own.healthy) else { return };
    let Some(group) = region.state.groups.get(&own.group) else { return };
    // An instance in standby is not checked.
    if group.is_suspended("HealthCheck")
        || own.lifecycle.ending()
        || matches!(own.lifecycle, Lifecycle::Standby | Lifecycle::EnteringStandby | Lifecycle::Detaching)
    {
        return;
    }
    if !instance.exists() {
        mark(region, id, false);
    } else if instance.impaired {
        if in_grace(region, group, own) {
            region.schedule(region.settings.impaired_millis.max(1_000), Event::HealthCheck(id.to_owned()));
        } else {
            mark(region, id, false);
        }
    }
}

/// Ends an unhealthy instance, whatever its protection; the difference to desired brings the replacement, unless the
/// group has it launched first.
pub(crate) fn replace(region: &mut Region, id: &str) {
    let Some(own) = membership(region, id).filter(|own| !own.healthy) else { return };
    if own.lifecycle.ending() {
        return;
    }
    let name = own.group.clone();
    let is_out_of_service = matches!(own.lifecycle, Lifecycle::Standby | Lifecycle::Detaching);
    let suspended = region
        .state
        .groups
        .get(&name)
        .is_none_or(|group| group.is_suspended("ReplaceUnhealthy") || group.is_suspended("Terminate"));
    if suspended || is_out_of_service {
        replacements::forget(region, id, Why::Unhealthy);
    } else {
        replacements::begin(region, id, Why::Unhealthy);
    }
}
