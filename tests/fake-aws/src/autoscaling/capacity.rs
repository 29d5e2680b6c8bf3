//! Desired against actual capacity: set by calls, answered by launches and ends.

use super::{counted, launches, modifiable, rebalance, replacements, scale_in};
use crate::{ApiError, Tree, events::Event, region::Region};

pub(crate) fn set_desired(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default().to_owned();
    let wanted = params.number_of("DesiredCapacity").unwrap_or_default();
    let now = region.now;
    let group = modifiable(region, &name)?;
    if wanted > group.max {
        return Err(ApiError::validation(format!(
            "New SetDesiredCapacity value {wanted} is above max value {} for the AutoScalingGroup.",
            group.max
        )));
    }
    if wanted < group.min {
        return Err(ApiError::validation(format!(
            "New SetDesiredCapacity value {wanted} is below min value {} for the AutoScalingGroup.",
            group.min
        )));
    }
    if params.flag_of("HonorCooldown") == Some(true) {
        let cooldown = chrono::Duration::seconds(group.number("DefaultCooldown").unwrap_or(300));
        let running = group.activities.values().next_back().map(|activity| activity.id.clone());
        if let (Some(scaled), Some(activity)) = (group.scaled, running)
            && now - scaled < cooldown
        {
            return Err(ApiError::refused(
                "ScalingActivityInProgress",
                format!("Scaling activity {activity} is in progress and blocks this action"),
            ));
        }
    }
    group.desired = wanted;
    group.launch_after = now;
    group.blocked_at = None;
    region.schedule(region.settings.scaling_millis, Event::Tick(name));
    Ok(Tree::new())
}

/// A group compares what it has with what it should have.
pub(crate) fn tick(region: &mut Region, name: &str) {
    let Some(group) = region.state.groups.get(name).filter(|group| !group.deleting()) else { return };
    let have = counted(&region.state, group);
    let want = usize::try_from(group.desired).unwrap_or_default()
        + group.refresh_extra()
        + replacements::extra(&region.state, group);
    if have < want && !group.is_suspended("Launch") {
        if region.now < group.launch_after {
            let at = group.launch_after;
            region.schedule_at(at, Event::Tick(name.to_owned()));
            return;
        }
        launches::launch(region, name, want - have);
    } else if have > want && !group.is_suspended("Terminate") {
        let excess = have - want - rebalance::pending(&region.state, group);
        scale_in::end(region, name, excess);
    } else if have == want {
        rebalance::schedule(region, name);
    }
}
