//! Suspended processes, and what happens when they resume.

use super::{group_not_found, members, modifiable};
use crate::{ApiError, Tree, events::Event, region::Region, time::timestamp};

/// Every process that can be suspended.
const PROCESSES: [&str; 9] = [
    "Launch",
    "Terminate",
    "AddToLoadBalancer",
    "AlarmNotification",
    "AZRebalance",
    "HealthCheck",
    "InstanceRefresh",
    "ReplaceUnhealthy",
    "ScheduledActions",
];

/// The processes that a request names; none named means all.
fn named(params: &Tree) -> Result<Vec<String>, ApiError> {
    let names = params.texts_of("ScalingProcesses");
    if let Some(unknown) = names.iter().find(|name| !PROCESSES.contains(&name.as_str())) {
        return Err(ApiError::validation(format!("Invalid scaling process: {unknown}")));
    }
    Ok(if names.is_empty() { PROCESSES.map(str::to_owned).to_vec() } else { names })
}

pub(crate) fn suspend(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default();
    let processes = named(params)?;
    let reason = format!("User suspended at {}", timestamp(region.now));
    let group = region.state.groups.get_mut(name).ok_or_else(|| group_not_found(name))?;
    if group.deleting() {
        return Err(ApiError::validation(
            "Processes may not be suspended while the AutoScaling group is pending delete",
        ));
    }
    for process in processes {
        group.suspended.entry(process).or_insert_with(|| reason.clone());
    }
    Ok(Tree::new())
}

pub(crate) fn resume(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default().to_owned();
    let processes = named(params)?;
    let now = region.now;
    let group = modifiable(region, &name)?;
    group.suspended.retain(|process, _| !processes.contains(process));
    group.launch_after = now;
    group.failing_since = None;
    let Some(group) = region.state.groups.get(&name) else { return Ok(Tree::new()) };
    let mut looks = Vec::new();
    for (instance, own) in members(&region.state, group) {
        if !own.healthy {
            looks.push(Event::Replace(instance.id.clone()));
        } else if !instance.exists() || instance.impaired {
            looks.push(Event::HealthCheck(instance.id.clone()));
        }
    }
    for event in looks {
        region.schedule(region.settings.replace_millis, event);
    }
    region.reconsider(&name);
    Ok(Tree::new())
}
