//! Auto Scaling groups: what is asked of them, what they launch and end, and what they tell of it.

pub(crate) mod activities;
mod activity;
mod attributes;
pub(crate) mod capacity;
pub(crate) mod describe;
pub(crate) mod ends;
mod group;
mod group_refresh;
pub(crate) mod groups;
pub(crate) mod health;
mod hook;
pub(crate) mod hook_actions;
pub(crate) mod hooks;
pub(crate) mod launch_source;
pub(crate) mod launches;
pub(crate) mod processes;
pub(crate) mod protection;
pub(crate) mod rebalance;
pub(crate) mod refresh;
pub(crate) mod refresh_calls;
pub(crate) mod refresh_run;
pub(crate) mod replacements;
mod scale_in;
mod source;
pub(crate) mod standby;
pub(crate) mod tags;

pub(crate) use group::{Action, Group, GroupTag, Lifecycle, Membership, TemplateVersion};

use crate::{
    ApiError,
    ec2::Instance,
    region::{Region, State},
};

/// The error of every write to a group that is not there.
pub(crate) fn group_not_found(name: &str) -> ApiError {
    ApiError::validation(format!("AutoScalingGroup name not found - AutoScalingGroup '{name}' not found"))
}

/// The error of every write to an instance that no group has.
pub(crate) fn instance_not_found(id: &str) -> ApiError {
    ApiError::validation(format!("Instance Id not found - No managed instance found for instance ID: {id}"))
}

/// A group that may be changed: present and not being deleted.
pub(crate) fn modifiable<'a>(region: &'a mut Region, name: &str) -> Result<&'a mut Group, ApiError> {
    let group = region.state.groups.get_mut(name).ok_or_else(|| group_not_found(name))?;
    if group.deleting() {
        return Err(ApiError::validation(
            "The AutoScaling group may not be modified while it is pending delete",
        ));
    }
    Ok(group)
}

/// The members of a group, in id order.
pub(crate) fn members<'a>(
    state: &'a State,
    group: &'a Group,
) -> impl Iterator<Item = (&'a Instance, &'a Membership)> {
    group.members.iter().filter_map(|id| {
        let instance = state.instances.get(id)?;
        instance.group.as_ref().map(|membership| (instance, membership))
    })
}

/// How many members count toward desired capacity.
pub(crate) fn counted(state: &State, group: &Group) -> usize {
    members(state, group).filter(|(_, membership)| membership.lifecycle.counts()).count()
}

/// What a group knows of an instance.
pub(crate) fn membership<'a>(region: &'a mut Region, id: &str) -> Option<&'a mut Membership> {
    region.state.instances.get_mut(id).and_then(|instance| instance.group.as_mut())
}
