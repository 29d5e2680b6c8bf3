//! Groups as `DescribeAutoScalingGroups` shows them, as the port's.
//!
//! Optional members have their documented defaults. The SDK fills required members that AWS does not send with zeros and
//! empty strings; a group or instance without its name is an error, since what is not recognised would be created again.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_autoscaling::types::{
    AutoScalingGroup, Instance as AwsInstance, InstanceLifecyclePolicy, InstanceMaintenancePolicy,
    RetentionAction,
};
use capasg_cloud::{
    Capacity, Group, GroupSettings, GroupTag, HealthStatus, Instance, LifecycleState, MaintenancePolicy,
    Result, health_checks,
};

use super::launch;
use crate::call::unreadable;

/// One group of a response to `api`.
pub(crate) fn group(api: &'static str, group: &AutoScalingGroup) -> Result<Group> {
    Ok(Group {
        name: promised(api, "AutoScalingGroupName", group.auto_scaling_group_name())?,
        arn: group.auto_scaling_group_arn().unwrap_or_default().to_owned(),
        capacity: Capacity {
            min: group.min_size().unwrap_or_default(),
            max: group.max_size().unwrap_or_default(),
            desired: group.desired_capacity().unwrap_or_default(),
        },
        settings: settings(group),
        zones: group.availability_zones().iter().cloned().collect(),
        status: group.status().map(str::to_owned),
        suspended_processes: suspended_processes(group),
        tags: tags(group),
        instances: instances(api, group.instances())?,
    })
}

fn promised(api: &'static str, member: &str, value: Option<&str>) -> Result<String> {
    let value = value.filter(|value| !value.is_empty());
    value.map(str::to_owned).ok_or_else(|| unreadable(api, member))
}

fn settings(group: &AutoScalingGroup) -> GroupSettings {
    GroupSettings {
        launch: launch::launch(group),
        subnets: comma_separated(group.vpc_zone_identifier()),
        health_check_types: health_checks(group.health_check_type().unwrap_or_default()),
        health_check_grace_period: group.health_check_grace_period().unwrap_or_default(),
        default_cooldown: group.default_cooldown().unwrap_or_default(),
        default_instance_warmup: group.default_instance_warmup().filter(|seconds| *seconds >= 0),
        protect_new_instances: group.new_instances_protected_from_scale_in().unwrap_or_default(),
        capacity_rebalance: group.capacity_rebalance().unwrap_or_default(),
        maintenance_policy: group.instance_maintenance_policy().and_then(maintenance_policy),
        retains_abandoned: group.instance_lifecycle_policy().is_some_and(retains_abandoned),
    }
}

fn maintenance_policy(policy: &InstanceMaintenancePolicy) -> Option<MaintenancePolicy> {
    let found = MaintenancePolicy {
        min_healthy_percentage: policy.min_healthy_percentage()?,
        max_healthy_percentage: policy.max_healthy_percentage()?,
    };
    (found != MaintenancePolicy::NONE).then_some(found)
}

fn retains_abandoned(policy: &InstanceLifecyclePolicy) -> bool {
    let action = policy.retention_triggers().and_then(|triggers| triggers.terminate_hook_abandon());
    action == Some(&RetentionAction::Retain)
}

fn comma_separated(value: Option<&str>) -> BTreeSet<String> {
    let parts = value.unwrap_or_default().split(',').map(str::trim);
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn suspended_processes(group: &AutoScalingGroup) -> BTreeMap<String, String> {
    let named = group.suspended_processes().iter().filter_map(|process| {
        Some((process.process_name()?.to_owned(), process.suspension_reason().unwrap_or_default().to_owned()))
    });
    named.collect()
}

fn tags(group: &AutoScalingGroup) -> BTreeMap<String, GroupTag> {
    let keyed = group.tags().iter().filter_map(|tag| {
        let value = tag.value().unwrap_or_default().to_owned();
        let propagate = tag.propagate_at_launch().unwrap_or_default();
        Some((tag.key()?.to_owned(), GroupTag { value, propagate }))
    });
    keyed.collect()
}

fn instances(api: &'static str, listed: &[AwsInstance]) -> Result<Vec<Instance>> {
    let mut instances: Vec<Instance> =
        listed.iter().map(|listed| instance(api, listed)).collect::<Result<_>>()?;
    instances.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(instances)
}

fn instance(api: &'static str, listed: &AwsInstance) -> Result<Instance> {
    let template = listed.launch_template();
    let template_id = template.and_then(|template| template.launch_template_id());
    Ok(Instance {
        id: promised(api, "Instances.InstanceId", listed.instance_id())?,
        instance_type: listed.instance_type().map(str::to_owned),
        zone: listed.availability_zone().unwrap_or_default().to_owned(),
        lifecycle: LifecycleState::parse(listed.lifecycle_state().map_or("", |state| state.as_str())),
        health: health(listed.health_status()),
        template: template_id.map(str::to_owned).zip(launch::version_number(template)),
        protected: listed.protected_from_scale_in().unwrap_or_default(),
    })
}

/// Examples show the value in upper case too; only `Unhealthy` has a consequence.
fn health(status: Option<&str>) -> HealthStatus {
    if status.is_some_and(|status| status.eq_ignore_ascii_case("unhealthy")) {
        HealthStatus::Unhealthy
    } else {
        HealthStatus::Healthy
    }
}
