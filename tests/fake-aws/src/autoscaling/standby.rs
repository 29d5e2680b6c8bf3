//! Instances set aside: standby, detachment and attachment. None runs lifecycle hooks here.

use super::{
    Lifecycle, Membership,
    activities::{self, Status},
    instance_not_found, membership, modifiable,
};
use crate::{ApiError, Tree, ec2::Ec2State, events::Event, region::Region, time::timestamp};

/// Checks that every instance is in the group and in a state, and gives their ids.
fn chosen(
    region: &mut Region,
    params: &Tree,
    states: &[Lifecycle],
) -> Result<(String, Vec<String>), ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default().to_owned();
    modifiable(region, &name)?;
    let ids = params.texts_of("InstanceIds");
    if ids.is_empty() || ids.len() > 20 {
        return Err(ApiError::validation("Between 1 and 20 instance ids must be specified"));
    }
    for id in &ids {
        let own =
            membership(region, id).filter(|own| own.group == name).ok_or_else(|| instance_not_found(id))?;
        if !states.contains(&own.lifecycle) {
            let wanted: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
            return Err(ApiError::validation(format!(
                "The instance {id} is not in {}.",
                wanted.join(" or ")
            )));
        }
    }
    Ok((name, ids))
}

/// Lowers desired for instances that stop counting, or refuses because of the minimum.
fn lower(region: &mut Region, name: &str, params: &Tree, count: usize, verb: &str) -> Result<(), ApiError> {
    if params.flag_of("ShouldDecrementDesiredCapacity") != Some(true) {
        return Ok(());
    }
    let group = modifiable(region, name)?;
    let by = i64::try_from(count).unwrap_or(i64::MAX);
    if group.desired - by < group.min {
        return Err(ApiError::validation(format!(
            "AutoScalingGroup {name} has min-size={}, max-size={}, and desired-size={}. To {verb} {count} instance, \
             please update the AutoScalingGroup sizes appropriately.",
            group.min, group.max, group.desired
        )));
    }
    group.desired -= by;
    Ok(())
}

fn activity(region: &mut Region, name: &str, id: &str, what: &str) -> u64 {
    let cause =
        format!("At {} instance {id} was {what} in response to a user request.", timestamp(region.now));
    activities::begin(region, name, &format!("{what}: {id}"), &cause, None)
}

fn reply(region: &Region, name: &str, sequences: &[u64]) -> Tree {
    let group = region.state.groups.get(name);
    let activities = group.into_iter().flat_map(|group| {
        sequences
            .iter()
            .filter_map(|sequence| group.activities.get(sequence))
            .map(|activity| activity.render(group))
    });
    Tree::new().with("Activities", Tree::list(activities))
}

pub(crate) fn enter(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let (name, ids) = chosen(region, params, &[Lifecycle::InService])?;
    lower(region, &name, params, ids.len(), "move to standby")?;
    let mut sequences = Vec::new();
    for id in &ids {
        let sequence = activity(region, &name, id, "Moving EC2 instance to Standby");
        sequences.push(sequence);
        if let Some(own) = membership(region, id) {
            own.lifecycle = Lifecycle::EnteringStandby;
            own.activity = Some(sequence);
        }
        region.schedule(region.settings.step_millis, Event::Standby(id.clone()));
    }
    region.reconsider(&name);
    Ok(reply(region, &name, &sequences))
}

/// An instance is in standby.
pub(crate) fn reached(region: &mut Region, id: &str) {
    let Some(own) = membership(region, id).filter(|own| own.lifecycle == Lifecycle::EnteringStandby) else {
        return;
    };
    own.lifecycle = Lifecycle::Standby;
    let (name, activity) = (own.group.clone(), own.activity.take());
    if let Some(sequence) = activity {
        activities::finish(region, &name, sequence, Status::Successful, None);
    }
}

pub(crate) fn exit(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let (name, ids) = chosen(region, params, &[Lifecycle::Standby])?;
    let by = i64::try_from(ids.len()).unwrap_or(i64::MAX);
    let group = modifiable(region, &name)?;
    if group.desired + by > group.max {
        return Err(ApiError::validation(format!(
            "AutoScalingGroup {name} has min-size={}, max-size={}, and desired-size={}. To place into service {by} \
             instance, please update the AutoScalingGroup sizes appropriately.",
            group.min, group.max, group.desired
        )));
    }
    group.desired += by;
    let mut sequences = Vec::new();
    for id in &ids {
        let sequence = activity(region, &name, id, "Moving EC2 instance out of Standby");
        sequences.push(sequence);
        if let Some(own) = membership(region, id) {
            own.lifecycle = Lifecycle::Pending;
            own.activity = Some(sequence);
        }
        region.schedule(region.settings.step_millis, Event::InService(id.clone()));
    }
    Ok(reply(region, &name, &sequences))
}

pub(crate) fn detach(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let (name, ids) = chosen(region, params, &[Lifecycle::InService, Lifecycle::Standby])?;
    let counting =
        ids.iter().filter(|id| membership(region, id).is_some_and(|own| own.lifecycle.counts())).count();
    lower(region, &name, params, counting, "detach")?;
    let mut sequences = Vec::new();
    for id in &ids {
        let sequence = activity(region, &name, id, "Detaching EC2 instance");
        sequences.push(sequence);
        if let Some(own) = membership(region, id) {
            own.lifecycle = Lifecycle::Detaching;
            own.activity = Some(sequence);
        }
        region.schedule(region.settings.step_millis, Event::Detached(id.clone()));
    }
    region.reconsider(&name);
    Ok(reply(region, &name, &sequences))
}

/// An attached instance has no launch template in its group, whatever it was launched from.
pub(crate) fn attach(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default().to_owned();
    modifiable(region, &name)?;
    let ids = params.texts_of("InstanceIds");
    if ids.is_empty() || ids.len() > 20 {
        return Err(ApiError::validation("Between 1 and 20 instance ids must be specified"));
    }
    for id in &ids {
        let instance = region.state.instances.get(id).ok_or_else(|| instance_not_found(id))?;
        if instance.state != Ec2State::Running || instance.group.is_some() {
            return Err(ApiError::validation(format!(
                "The instance {id} is not running, or is in an Auto Scaling group already."
            )));
        }
    }
    let by = i64::try_from(ids.len()).unwrap_or(i64::MAX);
    let group = modifiable(region, &name)?;
    if group.desired + by > group.max {
        return Err(ApiError::validation(format!(
            "AutoScalingGroup {name} has min-size={}, max-size={}, and desired-size={}. To attach {by} instance, please \
             update the AutoScalingGroup sizes appropriately.",
            group.min, group.max, group.desired
        )));
    }
    group.desired += by;
    group.members.extend(ids.iter().cloned());
    let protected = group.flag("NewInstancesProtectedFromScaleIn");
    for id in &ids {
        let sequence = activity(region, &name, id, "Attaching an existing EC2 instance");
        let Some(instance) = region.state.instances.get_mut(id) else { continue };
        instance.tags.insert("aws:autoscaling:groupName".to_owned(), name.clone());
        instance.group = Some(Membership {
            group: name.clone(),
            lifecycle: Lifecycle::Pending,
            healthy: true,
            protected,
            template: None,
            in_service: None,
            actions: Vec::new(),
            activity: Some(sequence),
            cause: None,
            held: None,
            timed_out: false,
        });
        region.schedule(region.settings.step_millis, Event::InService(id.clone()));
    }
    Ok(Tree::new())
}

/// A detached instance runs on without its group.
pub(crate) fn detached(region: &mut Region, id: &str) {
    if membership(region, id).is_none_or(|own| own.lifecycle != Lifecycle::Detaching) {
        return;
    }
    let Some(instance) = region.state.instances.get_mut(id) else { return };
    instance.tags.remove("aws:autoscaling:groupName");
    let (gone, own) = (!instance.exists(), instance.group.take());
    let Some(own) = own else { return };
    if let Some(sequence) = own.activity {
        activities::finish(region, &own.group, sequence, Status::Successful, None);
    }
    if let Some(group) = region.state.groups.get_mut(&own.group) {
        group.members.remove(id);
        // A deletion that began meanwhile waits for nobody else.
        if group.deleting() && group.members.is_empty() {
            region.schedule(region.settings.delete_millis, Event::Deleted(own.group));
        }
    }
    if gone {
        region.schedule(region.settings.forget_millis, Event::Forget(id.to_owned()));
    }
}
