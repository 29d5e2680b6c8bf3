//! Groups: created, updated, deleted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Group, attributes, ends, group_not_found, hooks, launch_source::LaunchSource, members, modifiable, tags,
};
use crate::{
    ApiError, Tree,
    ec2::{Subnet, template_data::plausible},
    events::Event,
    region::Region,
};

pub(crate) fn create(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default().to_owned();
    if !name.bytes().all(|byte| (33..=126).contains(&byte) && byte != b':') {
        return Err(ApiError::validation(
            "Group name must consist of printable ASCII characters without spaces and colons",
        ));
    }
    if let Some(group) = region.state.groups.get(&name) {
        let words = if group.deleting() {
            format!(
                "AutoScalingGroup by this name already exists and is pending delete. \
                 Please wait until Autoscaling completes the deletion process for group {name}"
            )
        } else {
            format!(
                "AutoScalingGroup by this name already exists - A group with the name {name} already exists"
            )
        };
        return Err(ApiError::refused("AlreadyExists", words));
    }
    if region.state.groups.len() >= region.settings.max_groups {
        return Err(ApiError::refused(
            "LimitExceeded",
            "You have reached the maximum number of Auto Scaling groups",
        ));
    }
    let (min, max) = (number(params, "MinSize"), number(params, "MaxSize"));
    let desired = params.number_of("DesiredCapacity").unwrap_or(min);
    check_bounds(min, max)?;
    check_desired(desired, min, max)?;
    let source = LaunchSource::read(&region.state, &region.settings, params, None)?.ok_or_else(|| {
        ApiError::validation(
            "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter.",
        )
    })?;
    let subnets = subnets(region, params.text_of("VPCZoneIdentifier").unwrap_or_default())?;
    let mut attributes = attributes::defaults();
    attributes::overlay(&mut attributes, params)?;
    let role = format!(
        "arn:{}:iam::{}:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
        region.scope.partition(),
        region.scope.account
    );
    attributes.insert("ServiceLinkedRoleARN".to_owned(), role.into());
    let tags = tags::specified(params.items_of("Tags"))?;
    let hooks = hooks::specified(params.items_of("LifecycleHookSpecificationList"))?;
    let resource = format!("autoScalingGroup:{}:autoScalingGroupName/{name}", region.ids.uuid());
    let group = Group {
        arn: region.arn("autoscaling", &resource),
        created: region.now,
        source,
        min,
        max,
        desired,
        subnets,
        attributes,
        tags,
        suspended: BTreeMap::new(),
        hooks,
        members: BTreeSet::new(),
        activities: BTreeMap::new(),
        refreshes: Vec::new(),
        status: None,
        failures: 0,
        failing_since: None,
        launch_after: region.now,
        scaled: None,
        rebalancing: None,
        replacing: BTreeMap::new(),
        rebalance_at: None,
        blocked_at: None,
        name: name.clone(),
    };
    region.state.groups.insert(name.clone(), group);
    region.schedule(region.settings.scaling_millis, Event::Tick(name));
    Ok(Tree::new())
}

pub(crate) fn update(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default().to_owned();
    let group = modifiable(region, &name)?;
    if params.get("LaunchTemplate").or(params.get("MixedInstancesPolicy")).is_some() {
        group.refuse_while_refreshed()?;
    }
    let (before, mut desired) = (group.source.clone(), group.desired);
    let min = params.number_of("MinSize").unwrap_or(group.min);
    let max = params.number_of("MaxSize").unwrap_or(group.max);
    let mut attributes = group.attributes.clone();
    check_bounds(min, max)?;
    match params.number_of("DesiredCapacity") {
        Some(wanted) => {
            check_desired(wanted, min, max)?;
            desired = wanted;
        }
        // Bounds alone move desired to the nearer of them.
        None => desired = desired.clamp(min, max),
    }
    let source = LaunchSource::read(&region.state, &region.settings, params, Some(&before))?;
    let subnets = params.text_of("VPCZoneIdentifier").map(|list| subnets(region, list)).transpose()?;
    attributes::overlay(&mut attributes, params)?;
    let now = region.now;
    let group = modifiable(region, &name)?;
    group.min = min;
    group.max = max;
    group.desired = desired;
    group.attributes = attributes;
    if let Some(source) = source {
        group.source = source;
    }
    if let Some(subnets) = subnets {
        group.subnets = subnets;
    }
    // Somebody changed something: the next launch is not made to wait for earlier failures.
    group.launch_after = now;
    group.failures = 0;
    group.blocked_at = None;
    region.schedule(region.settings.scaling_millis, Event::Tick(name));
    Ok(Tree::new())
}

pub(crate) fn delete(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default().to_owned();
    let force = params.flag_of("ForceDelete") == Some(true);
    let group = region.state.groups.get(&name).ok_or_else(|| group_not_found(&name))?;
    if group.deleting() {
        return Ok(Tree::new());
    }
    match group.attributes.get("DeletionProtection").and_then(Tree::text) {
        Some("prevent-all-deletion") => return Err(protected(&name, "prevent-all-deletion")),
        Some("prevent-force-deletion") if force => return Err(protected(&name, "prevent-force-deletion")),
        _ => {}
    }
    if !force {
        if members(&region.state, group).any(|(_, membership)| !membership.lifecycle.ending()) {
            return Err(ApiError::refused(
                "ResourceInUse",
                "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in the group.",
            ));
        }
        if !group.members.is_empty() {
            return Err(ApiError::refused(
                "ScalingActivityInProgress",
                "You cannot delete an AutoScalingGroup while there are scaling activities in progress for that group.",
            ));
        }
    }
    let ids: Vec<String> = group.members.iter().cloned().collect();
    if let Some(group) = region.state.groups.get_mut(&name) {
        group.status = Some("Delete in progress".to_owned());
        (group.min, group.max, group.desired) = (0, 0, 0);
    }
    if ids.is_empty() {
        region.schedule(region.settings.delete_millis, Event::Deleted(name));
    }
    for id in ids {
        ends::force(region, &id);
    }
    Ok(Tree::new())
}

/// The deletion of a group is complete.
pub(crate) fn vanish(region: &mut Region, name: &str) {
    if region.state.groups.get(name).is_some_and(|group| group.deleting() && group.members.is_empty()) {
        region.state.groups.remove(name);
    }
}

fn protected(name: &str, kind: &str) -> ApiError {
    ApiError::validation(format!(
        "The Auto Scaling group {name} has deletion protection {kind} and cannot be deleted"
    ))
}

fn number(params: &Tree, name: &str) -> i64 {
    params.number_of(name).unwrap_or_default()
}

fn check_bounds(min: i64, max: i64) -> Result<(), ApiError> {
    if min < 0 || max < 0 {
        return Err(ApiError::validation("MinSize and MaxSize must not be negative"));
    }
    if min > max {
        return Err(ApiError::validation(format!(
            "Max bound, {max}, must be greater than or equal to min bound, {min}"
        )));
    }
    Ok(())
}

fn check_desired(desired: i64, min: i64, max: i64) -> Result<(), ApiError> {
    if (min..=max).contains(&desired) {
        return Ok(());
    }
    Err(ApiError::validation(format!(
        "Desired capacity:{desired} must be between the specified min size:{min} and max size:{max}"
    )))
}

/// The subnets of a comma-separated list, each of which must exist; blanks around commas are fine.
fn subnets(region: &mut Region, list: &str) -> Result<Vec<String>, ApiError> {
    let ids: Vec<String> =
        list.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect();
    if ids.is_empty() {
        return Err(ApiError::validation("At least one Availability Zone or VPC Subnet is required."));
    }
    let network = Arc::make_mut(&mut region.state.network);
    for id in &ids {
        if network.subnets.contains_key(id) {
            continue;
        }
        if !(region.settings.accept_any_id && plausible(id, "subnet-")) {
            return Err(ApiError::validation(format!("The subnet ID '{id}' does not exist")));
        }
        let vpc = network.vpcs.keys().next().cloned().unwrap_or_default();
        let letter = ["a", "b", "c"][id.bytes().map(usize::from).sum::<usize>() % 3];
        let zone = format!("{}{letter}", region.scope.region);
        let cidr = "10.0.240.0/20".to_owned();
        let subnet = Subnet { id: id.clone(), vpc, zone, cidr, addresses: 4091, tags: BTreeMap::new() };
        network.subnets.insert(id.clone(), subnet);
    }
    let vpcs: BTreeSet<&String> =
        ids.iter().filter_map(|id| network.subnets.get(id)).map(|subnet| &subnet.vpc).collect();
    if vpcs.len() > 1 {
        return Err(ApiError::validation("All subnets of an Auto Scaling group must be in the same VPC"));
    }
    Ok(ids)
}
