//! Describes of groups and their instances.

use std::collections::{BTreeMap, BTreeSet};

use super::{Group, Membership, group::TemplateVersion, members};
use crate::{
    ApiError, Tree,
    ec2::Instance,
    pages::Page,
    region::{State, View},
    time::timestamp,
};

pub(crate) fn groups(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    let names: BTreeSet<String> = params.texts_of("AutoScalingGroupNames").into_iter().collect();
    let limit = usize::try_from(params.number_of("MaxRecords").unwrap_or(50)).unwrap_or(50).clamp(50, 100);
    if names.len() > limit {
        return Err(ApiError::validation(format!(
            "The number of group names that may be passed in is limited to {limit}"
        )));
    }
    let page = Page::records(params, 50, 100)?;
    let filters = params.items_of("Filters");
    for filter in filters {
        let name = filter.text_of("Name").unwrap_or_default();
        if !(name == "tag-key" || name == "tag-value" || name.starts_with("tag:")) {
            return Err(ApiError::validation(format!(
                "Filter type {name} is not correct. Allowed Filter types are: tag-key tag-value tag:<tag-key>"
            )));
        }
    }
    let with_instances = params.flag_of("IncludeInstances") != Some(false);
    let chosen = view.state.groups.values().filter(|group| {
        (names.is_empty() || names.contains(&group.name))
            && filters.iter().all(|filter| matches(group, filter))
    });
    let entries = chosen.map(|group| (group.name.clone(), render(view.state, group, with_instances)));
    Ok(page.reply(view.settings, "AutoScalingGroups", entries.collect()))
}

fn matches(group: &Group, filter: &Tree) -> bool {
    let wanted = filter.texts_of("Values");
    let name = filter.text_of("Name").unwrap_or_default();
    match name.strip_prefix("tag:") {
        Some(key) => group.tags.get(key).is_some_and(|tag| wanted.contains(&tag.value)),
        None if name == "tag-key" => group.tags.keys().any(|key| wanted.contains(key)),
        None => group.tags.values().any(|tag| wanted.contains(&tag.value)),
    }
}

fn render(state: &State, group: &Group, with_instances: bool) -> Tree {
    let zones: BTreeSet<&String> = group
        .subnets
        .iter()
        .filter_map(|id| state.network.subnets.get(id))
        .map(|subnet| &subnet.zone)
        .collect();
    let (source, launch) = group.source.render();
    let suspended = group
        .suspended
        .iter()
        .map(|(name, reason)| Tree::new().with("ProcessName", name).with("SuspensionReason", reason));
    let mut tree = Tree::new()
        .with("AutoScalingGroupName", &group.name)
        .with("AutoScalingGroupARN", &group.arn)
        .with(source, launch)
        .with("MinSize", group.min)
        .with("MaxSize", group.max)
        .with("DesiredCapacity", group.desired)
        .with("AvailabilityZones", Tree::list(zones))
        .with("LoadBalancerNames", Vec::<Tree>::new())
        .with("TargetGroupARNs", Vec::<Tree>::new())
        .with("CreatedTime", timestamp(group.created))
        .with("SuspendedProcesses", Tree::list(suspended))
        .with("VPCZoneIdentifier", group.subnets.join(","))
        .with("EnabledMetrics", Vec::<Tree>::new())
        .with("Tags", super::tags::render(group))
        .with_opt("Status", group.status.as_deref());
    for (name, value) in &group.attributes {
        tree.set(name, value.clone());
    }
    let instances = members(state, group).map(|(instance, membership)| self::instance(instance, membership));
    tree.set("Instances", Tree::list(instances.filter(|_| with_instances)));
    tree
}

fn template(template: &TemplateVersion) -> Tree {
    Tree::new()
        .with("LaunchTemplateId", &template.id)
        .with("LaunchTemplateName", &template.name)
        .with("Version", template.number)
}

/// An instance as it is listed in its group.
fn instance(instance: &Instance, membership: &Membership) -> Tree {
    Tree::new()
        .with("InstanceId", &instance.id)
        .with("InstanceType", &instance.kind)
        .with("AvailabilityZone", &instance.zone)
        .with("LifecycleState", membership.lifecycle.as_str())
        .with("HealthStatus", if membership.healthy { "Healthy" } else { "Unhealthy" })
        .with("ProtectedFromScaleIn", membership.protected)
        .with_opt("LaunchTemplate", membership.template.as_ref().map(template))
}

/// `DescribeAutoScalingInstances`: over all groups; unknown ids are left out.
pub(crate) fn instances(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    let wanted = params.texts_of("InstanceIds");
    if wanted.len() > 50 {
        return Err(ApiError::validation(
            "The number of instance ids that may be passed in is limited to 50",
        ));
    }
    let page = Page::records(params, 50, 50)?;
    let mut entries = BTreeMap::new();
    for group in view.state.groups.values() {
        for (instance, membership) in members(view.state, group) {
            if wanted.is_empty() || wanted.contains(&instance.id) {
                let tree = Tree::new()
                    .with("InstanceId", &instance.id)
                    .with("InstanceType", &instance.kind)
                    .with("AutoScalingGroupName", &group.name)
                    .with("AvailabilityZone", &instance.zone)
                    .with("LifecycleState", membership.lifecycle.as_str())
                    .with("HealthStatus", if membership.healthy { "HEALTHY" } else { "UNHEALTHY" })
                    .with("ProtectedFromScaleIn", membership.protected)
                    .with_opt("LaunchTemplate", membership.template.as_ref().map(template));
                entries.insert(instance.id.clone(), tree);
            }
        }
    }
    Ok(page.reply(view.settings, "AutoScalingInstances", entries.into_iter().collect()))
}
