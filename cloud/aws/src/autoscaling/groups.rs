//! Groups: create, change, delete and describe.

use std::collections::BTreeSet;

use aws_sdk_autoscaling::{
    Client,
    types::{InstanceLifecyclePolicy, InstanceMaintenancePolicy, RetentionAction, RetentionTriggers},
};
use capasg_cloud::{
    CreateGroup, Group, GroupChange, MaintenancePolicy, Page, Result, WriteReply, health_check_type,
};

use super::{
    hooks, launch,
    launch::{Before, LaunchMembers},
    reply, tags,
};
use crate::call::{call, done};

/// The most groups that one describe names and returns; the default is 50 (`DescribeAutoScalingGroups` in the Auto
/// Scaling API reference).
const MAX_GROUPS: i32 = 100;

/// `CreateAutoScalingGroup`.
pub(crate) async fn create(client: &Client, api: &'static str, create: &CreateGroup) -> Result<WriteReply> {
    let CreateGroup { name, capacity, settings, tags, hooks } = create;
    let LaunchMembers { template, mixed } = launch::members(&settings.launch, Before::Nothing);
    let request = client
        .create_auto_scaling_group()
        .auto_scaling_group_name(name)
        .min_size(capacity.min)
        .max_size(capacity.max)
        .desired_capacity(capacity.desired)
        .set_launch_template(template)
        .set_mixed_instances_policy(mixed)
        .vpc_zone_identifier(comma_joined(&settings.subnets))
        .health_check_type(health_check_type(&settings.health_check_types))
        .health_check_grace_period(settings.health_check_grace_period)
        .default_cooldown(settings.default_cooldown)
        .set_default_instance_warmup(settings.default_instance_warmup)
        .new_instances_protected_from_scale_in(settings.protect_new_instances)
        .set_tags(some(tags.iter().map(|(key, tag)| tags::tag(name, key, tag))))
        .set_lifecycle_hook_specification_list(some(hooks.iter().map(hooks::specification)));
    // Boxed, like the other calls whose request is large.
    done(api, request.send()).await
}

/// `UpdateAutoScalingGroup`: absent members stay as they are.
pub(crate) async fn update(
    client: &Client,
    api: &'static str,
    group: &str,
    change: &GroupChange,
) -> Result<WriteReply> {
    let (template, mixed) = match &change.launch {
        Some(desired) => {
            let LaunchMembers { template, mixed } = launch::members(desired, Before::Group);
            (template, mixed)
        }
        None => (None, None),
    };
    let request = client
        .update_auto_scaling_group()
        .auto_scaling_group_name(group)
        .set_min_size(change.min)
        .set_max_size(change.max)
        .set_desired_capacity(change.desired)
        .set_launch_template(template)
        .set_mixed_instances_policy(mixed)
        .set_vpc_zone_identifier(change.subnets.as_ref().map(comma_joined))
        .set_health_check_type(change.health_check_types.as_ref().map(health_check_type))
        .set_health_check_grace_period(change.health_check_grace_period)
        .set_default_cooldown(change.default_cooldown)
        .set_default_instance_warmup(change.default_instance_warmup)
        .set_new_instances_protected_from_scale_in(change.protect_new_instances)
        .set_capacity_rebalance(change.capacity_rebalance)
        .set_instance_maintenance_policy(change.maintenance_policy.map(maintenance_policy))
        .set_instance_lifecycle_policy(change.retains_abandoned.map(lifecycle_policy));
    done(api, request.send()).await
}

fn maintenance_policy(policy: MaintenancePolicy) -> InstanceMaintenancePolicy {
    InstanceMaintenancePolicy::builder()
        .min_healthy_percentage(policy.min_healthy_percentage)
        .max_healthy_percentage(policy.max_healthy_percentage)
        .build()
}

fn lifecycle_policy(retains: bool) -> InstanceLifecyclePolicy {
    let action = if retains { RetentionAction::Retain } else { RetentionAction::Terminate };
    let triggers = RetentionTriggers::builder().terminate_hook_abandon(action).build();
    InstanceLifecyclePolicy::builder().retention_triggers(triggers).build()
}

/// `DeleteAutoScalingGroup`.
pub(crate) async fn delete(
    client: &Client,
    api: &'static str,
    group: &str,
    force: bool,
) -> Result<WriteReply> {
    let request = client.delete_auto_scaling_group().auto_scaling_group_name(group).force_delete(force);
    done(api, request.send()).await
}

/// `DescribeAutoScalingGroups` by name. Without names it would list every group of the region.
pub(crate) async fn describe(
    client: &Client,
    names: &[String],
    token: Option<String>,
) -> Result<Page<Group>> {
    let api = "DescribeAutoScalingGroups";
    if names.is_empty() {
        return Ok(Page::last(Vec::new()));
    }
    let request = client
        .describe_auto_scaling_groups()
        .set_auto_scaling_group_names(Some(names.to_vec()))
        .max_records(MAX_GROUPS)
        .set_next_token(token);
    let reply = call(api, request.send()).await?;
    let items = reply.auto_scaling_groups().iter().map(|group| reply::group(api, group));
    Ok(Page { items: items.collect::<Result<_>>()?, next_token: reply.next_token })
}

fn comma_joined(items: &BTreeSet<String>) -> String {
    items.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

/// A list member, absent if empty.
fn some<T>(items: impl Iterator<Item = T>) -> Option<Vec<T>> {
    let items: Vec<T> = items.collect();
    (!items.is_empty()).then_some(items)
}
