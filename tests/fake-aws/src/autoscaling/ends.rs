//! Ends of instances: exact ones by call, and the way of every end through the hooks to the last step.

use super::{
    Lifecycle,
    activities::{self, Status},
    hooks, instance_not_found, membership,
};
use crate::{
    ApiError, BatchEnds, Tree,
    ec2::{Ec2State, instances},
    events::Event,
    happening::What,
    region::Region,
    time::timestamp,
};

/// `TerminateInstanceInAutoScalingGroup`, for one instance or a batch.
pub(crate) fn terminate(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let decrement = params.flag_of("ShouldDecrementDesiredCapacity") == Some(true);
    let group = params.text_of("AutoScalingGroupName");
    let batch = params.get("InstanceIds").is_some();
    let mut ids = match (params.text_of("InstanceId"), batch) {
        (Some(id), false) => vec![id.to_owned()],
        (None, true) if group.is_some() => params.texts_of("InstanceIds"),
        (None, true) => {
            return Err(ApiError::validation(
                "AutoScalingGroupName is required when InstanceIds is specified.",
            ));
        }
        _ => {
            return Err(ApiError::validation("Exactly one of InstanceId and InstanceIds must be specified."));
        }
    };
    let known = |region: &Region, id: &str| {
        let own = region.state.instances.get(id).and_then(|instance| instance.group.as_ref());
        own.is_some_and(|own| group.is_none_or(|name| name == own.group))
    };
    if batch && region.settings.batch_ends == BatchEnds::Partial {
        ids.retain(|id| known(region, id));
    }
    if let Some(id) = ids.iter().find(|id| !known(region, id)) {
        return Err(instance_not_found(id));
    }
    let mut seen = std::collections::BTreeSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    if decrement {
        lower_desired(region, &ids)?;
    } else {
        check_states(region, &ids)?;
    }
    let cause = format!(
        "At {} instance was taken out of service in response to a user request.",
        timestamp(region.now)
    );
    let mut trees = Vec::new();
    for id in &ids {
        begin(region, id, &cause);
        trees.extend(running_activity(region, id));
    }
    Ok(if batch {
        Tree::new().with("Activities", trees)
    } else {
        Tree::new().with_opt("Activity", trees.into_iter().next())
    })
}

fn check_states(region: &Region, ids: &[String]) -> Result<(), ApiError> {
    for id in ids {
        let Some(own) = region.state.instances.get(id).and_then(|instance| instance.group.as_ref()) else {
            continue;
        };
        let deleting = region.state.groups.get(&own.group).is_some_and(super::Group::deleting);
        if deleting {
            return Err(ApiError::validation(
                "The AutoScaling group may not be modified while it is pending delete",
            ));
        }
        if matches!(own.lifecycle, Lifecycle::EnteringStandby | Lifecycle::Detaching) {
            return Err(ApiError::refused(
                "ScalingActivityInProgress",
                format!("A scaling activity is in progress for instance {id} and blocks this action"),
            ));
        }
    }
    Ok(())
}

/// Lowers desired by as many as the ends take away; nothing changes if the minimum would be violated.
fn lower_desired(region: &mut Region, ids: &[String]) -> Result<(), ApiError> {
    check_states(region, ids)?;
    let mut by = 0;
    let mut name = None;
    for id in ids {
        let Some(own) = region.state.instances.get(id).and_then(|instance| instance.group.as_ref()) else {
            continue;
        };
        // Standby does not count in desired; whether a repeated end does is not documented.
        if own.lifecycle.counts() || own.lifecycle.ending() && region.settings.repeated_end_decrements {
            by += 1;
        }
        name = Some(own.group.clone());
    }
    let Some(group) = name.and_then(|name| region.state.groups.get_mut(&name)) else { return Ok(()) };
    if by > 0 && group.desired - by < group.min {
        return Err(ApiError::validation(format!(
            "Currently, desiredSize equals minSize ({}). Terminating instance without replacement will violate group's \
             min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.",
            group.min
        )));
    }
    group.desired -= by;
    group.blocked_at = None;
    Ok(())
}

fn running_activity(region: &Region, id: &str) -> Option<Tree> {
    let own = region.state.instances.get(id)?.group.as_ref()?;
    let group = region.state.groups.get(&own.group)?;
    let activity = group.activities.get(&own.activity?)?;
    Some(activity.render(group))
}

/// Starts the end of a member; one that is ending already goes on as it is.
pub(crate) fn begin(region: &mut Region, id: &str, cause: &str) {
    let Some(own) = membership(region, id) else { return };
    if own.lifecycle.ending() {
        return;
    }
    own.lifecycle = Lifecycle::Terminating;
    own.cause = Some(cause.to_owned());
    own.actions.clear();
    let (name, launch) = (own.group.clone(), own.activity.take());
    if let Some(group) = region.state.groups.get_mut(&name) {
        group.replacing.remove(id);
    }
    region.tell(|_| Some(What::Ending { id: id.to_owned(), group: name.clone(), cause: cause.to_owned() }));
    if let Some(sequence) = launch {
        activities::finish(
            region,
            &name,
            sequence,
            Status::Cancelled,
            Some("The instance was ended while it was launched."),
        );
    }
    let sequence = activities::begin(region, &name, &format!("Terminating EC2 instance: {id}"), cause, None);
    if let Some(own) = membership(region, id) {
        own.activity = Some(sequence);
    }
    let now = region.now;
    if let Some(group) = region.state.groups.get_mut(&name) {
        group.scaled = Some(now);
    }
    region.schedule(region.settings.step_millis, Event::TerminatingStep(id.to_owned()));
    region.reconsider(&name);
}

/// A `Terminating` instance meets its group's hooks, or goes on.
pub(crate) fn step(region: &mut Region, id: &str) {
    let waiting = membership(region, id).is_some_and(|own| own.lifecycle == Lifecycle::Terminating);
    if waiting && !hooks::open(region, id, hooks::TERMINATING) {
        proceed(region, id);
    }
}

/// The hooks are done: the machine shuts down, or has done so already.
pub(crate) fn proceed(region: &mut Region, id: &str) {
    let Some(instance) = region.state.instances.get_mut(id) else { return };
    let Some(own) = instance.group.as_mut() else { return };
    own.lifecycle = Lifecycle::TerminatingProceed;
    own.actions.clear();
    if instance.state == Ec2State::Terminated {
        region.schedule(region.settings.step_millis, Event::Leave(id.to_owned()));
    } else {
        instances::shut_down(region, id);
    }
}

/// A member's machine is gone; its end is complete if nothing holds the record.
pub(crate) fn machine_ended(region: &mut Region, id: &str) {
    if membership(region, id).is_some_and(|own| own.lifecycle == Lifecycle::TerminatingProceed) {
        leave(region, id);
    }
}

/// An ended instance leaves its group.
pub(crate) fn leave(region: &mut Region, id: &str) {
    let Some(own) = region.state.instances.get_mut(id).and_then(|instance| instance.group.take()) else {
        return;
    };
    region.tell(|_| Some(What::Left { id: id.to_owned() }));
    if let Some(sequence) = own.activity {
        activities::finish(region, &own.group, sequence, Status::Successful, None);
    }
    if let Some(group) = region.state.groups.get_mut(&own.group) {
        group.members.remove(id);
        if group.deleting() && group.members.is_empty() {
            region.schedule(region.settings.delete_millis, Event::Deleted(own.group.clone()));
        }
    }
    region.schedule(region.settings.forget_millis, Event::Forget(id.to_owned()));
    region.reconsider(&own.group);
}

/// Ends a member without its hooks, open ones included: the group is deleted by force.
pub(crate) fn force(region: &mut Region, id: &str) {
    let cause = format!("At {} the group was deleted by force.", timestamp(region.now));
    begin(region, id, &cause);
    if membership(region, id).is_some_and(|own| own.lifecycle == Lifecycle::TerminatingWait) {
        proceed(region, id);
    }
}
