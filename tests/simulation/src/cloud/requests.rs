//! The port's writes and selectors as parameters of AWS operations.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine, engine::general_purpose::STANDARD};
use capasg_cloud::{
    BlockDevice, CreateGroup, GroupChange, GroupTag, Launch, LaunchTemplateData, LifecycleHook,
    MaintenancePolicy, Selector, StartRefresh, TemplateRef, Write, health_check_type,
};
use capasg_fake_aws::{Service, Tree};

/// The service and the parameters of a write.
pub(super) fn write(write: &Write) -> (Service, Tree) {
    let group = |name: &str| Tree::new().with("AutoScalingGroupName", name);
    let held = |name: &str, hook: &str, instance: &str| {
        group(name).with("LifecycleHookName", hook).with("InstanceId", instance)
    };
    let params = match write {
        Write::CreateLaunchTemplate { name, data, description, tags: own, client_token } => Tree::new()
            .with("LaunchTemplateName", name)
            .with("LaunchTemplateData", template_data(data))
            .with("VersionDescription", description)
            .with("ClientToken", client_token)
            .with("TagSpecifications", vec![tag_specification("launch-template", own)]),
        Write::CreateLaunchTemplateVersion { id, data, description, client_token } => Tree::new()
            .with("LaunchTemplateId", id)
            .with("LaunchTemplateData", template_data(data))
            .with("VersionDescription", description)
            .with("ClientToken", client_token),
        Write::DeleteLaunchTemplateVersions { id, versions } => {
            Tree::new().with("LaunchTemplateId", id).with("Versions", Tree::list(versions.iter().copied()))
        }
        Write::DeleteLaunchTemplate { id } => Tree::new().with("LaunchTemplateId", id),
        Write::CreateGroup(create) => create_group(create),
        Write::UpdateGroup { group, change } => update_group(group, change),
        Write::SetDesiredCapacity { group: name, desired } => {
            group(name).with("DesiredCapacity", *desired).with("HonorCooldown", false)
        }
        Write::TerminateInstances { group: name, instances, decrement } => group(name)
            .with("InstanceIds", Tree::list(instances))
            .with("ShouldDecrementDesiredCapacity", *decrement),
        Write::SetInstanceProtection { group: name, instances, protected } => {
            group(name).with("InstanceIds", Tree::list(instances)).with("ProtectedFromScaleIn", *protected)
        }
        Write::SuspendProcesses { group: name, processes }
        | Write::ResumeProcesses { group: name, processes } => {
            group(name).with("ScalingProcesses", Tree::list(processes))
        }
        Write::StartInstanceRefresh(start) => start_refresh(start),
        Write::CancelInstanceRefresh { group: name } => {
            group(name).with("WaitForTransitioningInstances", true)
        }
        Write::RollbackInstanceRefresh { group: name } => group(name),
        Write::PutLifecycleHook { group: name, hook: wanted } => {
            hook(wanted).with("AutoScalingGroupName", name)
        }
        Write::DeleteLifecycleHook { group: name, hook } => group(name).with("LifecycleHookName", hook),
        Write::CompleteLifecycleAction { group, hook, instance } => {
            held(group, hook, instance).with("LifecycleActionResult", "CONTINUE")
        }
        Write::RecordLifecycleActionHeartbeat { group, hook, instance } => held(group, hook, instance),
        Write::TagGroup { group, tags } => Tree::new().with("Tags", group_tags(group, tags)),
        Write::UntagGroup { group, keys } => {
            let keys = keys.iter().map(|key| tagged(group).with("Key", key));
            Tree::new().with("Tags", Tree::list(keys))
        }
        Write::DeleteGroup { group: name, force } => group(name).with("ForceDelete", *force),
    };
    (service(write), params)
}

/// A write in few words for journals; never its user data.
pub(super) fn describe(write: &Write) -> String {
    let api = write.api();
    match write {
        Write::TerminateInstances { instances, decrement, .. } => {
            let ids: Vec<&str> = instances.iter().map(String::as_str).collect();
            format!("{api} {} decrement={decrement}", ids.join(","))
        }
        Write::SetDesiredCapacity { desired, .. } => format!("{api} {desired}"),
        Write::StartInstanceRefresh(start) => {
            let desired = start.desired.as_ref().map(|launch| launch.template.version.unwrap_or_default());
            format!("{api} desired={desired:?}")
        }
        Write::UpdateGroup { change, .. } => {
            format!("{api} min={:?} max={:?} desired={:?}", change.min, change.max, change.desired)
        }
        Write::CompleteLifecycleAction { instance, .. }
        | Write::RecordLifecycleActionHeartbeat { instance, .. } => format!("{api} {instance}"),
        _ => api.to_owned(),
    }
}

fn service(write: &Write) -> Service {
    if write.group().is_some() { Service::AutoScaling } else { Service::Ec2 }
}

fn create_group(create: &CreateGroup) -> Tree {
    let CreateGroup { name, capacity, settings, tags, hooks } = create;
    let mut params = Tree::new()
        .with("AutoScalingGroupName", name)
        .with("MinSize", capacity.min)
        .with("MaxSize", capacity.max)
        .with("DesiredCapacity", capacity.desired)
        .with("VPCZoneIdentifier", joined(&settings.subnets))
        .with("HealthCheckType", health_check_type(&settings.health_check_types))
        .with("HealthCheckGracePeriod", settings.health_check_grace_period)
        .with("DefaultCooldown", settings.default_cooldown)
        .with_opt("DefaultInstanceWarmup", settings.default_instance_warmup)
        .with("NewInstancesProtectedFromScaleIn", settings.protect_new_instances)
        .with("Tags", group_tags(name, tags));
    if !hooks.is_empty() {
        params.set("LifecycleHookSpecificationList", Tree::list(hooks.iter().map(hook)));
    }
    launch(params, &settings.launch, None)
}

fn start_refresh(start: &StartRefresh) -> Tree {
    let StartRefresh { group, desired, preferences: wanted } = start;
    let mut preferences = Tree::new()
        .with("MinHealthyPercentage", wanted.min_healthy_percentage)
        .with_opt("MaxHealthyPercentage", wanted.max_healthy_percentage)
        .with_opt("InstanceWarmup", wanted.instance_warmup)
        .with_opt("CheckpointDelay", wanted.checkpoint_delay)
        .with_opt("BakeTime", wanted.bake_time)
        .with("SkipMatching", wanted.skip_matching)
        .with("AutoRollback", wanted.auto_rollback)
        .with("ScaleInProtectedInstances", &wanted.protected_instances)
        .with("StandbyInstances", &wanted.standby_instances);
    if !wanted.checkpoint_percentages.is_empty() {
        let percentages = Tree::list(wanted.checkpoint_percentages.iter().copied());
        preferences.set("CheckpointPercentages", percentages);
    }
    if !wanted.alarms.is_empty() {
        preferences.set("AlarmSpecification", Tree::new().with("Alarms", Tree::list(&wanted.alarms)));
    }
    let desired = desired.as_ref().map(|desired| launch(Tree::new(), desired, None));
    Tree::new()
        .with("AutoScalingGroupName", group)
        .with("Strategy", "Rolling")
        .with_opt("DesiredConfiguration", desired)
        .with("Preferences", preferences)
}

fn update_group(group: &str, change: &GroupChange) -> Tree {
    let params = Tree::new()
        .with("AutoScalingGroupName", group)
        .with_opt("MinSize", change.min)
        .with_opt("MaxSize", change.max)
        .with_opt("DesiredCapacity", change.desired)
        .with_opt("VPCZoneIdentifier", change.subnets.as_ref().map(joined))
        .with_opt("HealthCheckType", change.health_check_types.as_ref().map(health_check_type))
        .with_opt("HealthCheckGracePeriod", change.health_check_grace_period)
        .with_opt("DefaultCooldown", change.default_cooldown)
        .with_opt("DefaultInstanceWarmup", change.default_instance_warmup)
        .with_opt("NewInstancesProtectedFromScaleIn", change.protect_new_instances)
        .with_opt("CapacityRebalance", change.capacity_rebalance)
        .with_opt("InstanceMaintenancePolicy", change.maintenance_policy.map(maintenance_policy));
    match &change.launch {
        // The empty string takes a price away that the group may have.
        Some(wanted) => launch(params, wanted, Some("")),
        None => params,
    }
}

fn maintenance_policy(policy: MaintenancePolicy) -> Tree {
    Tree::new()
        .with("MinHealthyPercentage", policy.min_healthy_percentage)
        .with("MaxHealthyPercentage", policy.max_healthy_percentage)
}

fn launch(params: Tree, launch: &Launch, no_price: Option<&str>) -> Tree {
    let template = template_ref(&launch.template);
    let Some(mixed) = &launch.mixed else { return params.with("LaunchTemplate", template) };
    let wanted = &mixed.distribution;
    let price = wanted.spot_max_price.as_deref().or(no_price);
    let distribution = Tree::new()
        .with("OnDemandBaseCapacity", wanted.on_demand_base_capacity)
        .with("OnDemandPercentageAboveBaseCapacity", wanted.on_demand_percentage_above_base_capacity)
        .with("OnDemandAllocationStrategy", &wanted.on_demand_allocation_strategy)
        .with("SpotAllocationStrategy", &wanted.spot_allocation_strategy)
        .with_opt("SpotMaxPrice", price);
    let overrides = mixed.instance_types.iter().map(|kind| Tree::new().with("InstanceType", kind));
    let template =
        Tree::new().with("LaunchTemplateSpecification", template).with("Overrides", Tree::list(overrides));
    params.with(
        "MixedInstancesPolicy",
        Tree::new().with("LaunchTemplate", template).with("InstancesDistribution", distribution),
    )
}

fn template_ref(template: &TemplateRef) -> Tree {
    Tree::new().with("LaunchTemplateId", &template.id).with_opt("Version", template.version)
}

fn hook(hook: &LifecycleHook) -> Tree {
    Tree::new()
        .with("LifecycleHookName", &hook.name)
        .with("LifecycleTransition", &hook.transition)
        .with("HeartbeatTimeout", hook.heartbeat_timeout)
        .with("DefaultResult", &hook.default_result)
}

fn tagged(group: &str) -> Tree {
    Tree::new().with("ResourceId", group).with("ResourceType", "auto-scaling-group")
}

fn group_tags(group: &str, tags: &BTreeMap<String, GroupTag>) -> Tree {
    Tree::list(tags.iter().map(|(key, tag)| {
        tagged(group).with("Key", key).with("Value", &tag.value).with("PropagateAtLaunch", tag.propagate)
    }))
}

fn tag_specification(resource: &str, tags: &BTreeMap<String, String>) -> Tree {
    let tags = tags.iter().map(|(key, value)| Tree::new().with("Key", key).with("Value", value));
    Tree::new().with("ResourceType", resource).with("Tags", Tree::list(tags))
}

fn template_data(data: &LaunchTemplateData) -> Tree {
    let user_data = data.user_data.expose();
    let options = &data.metadata_options;
    let profile = data.iam_instance_profile.as_ref().map(|profile| {
        let member = if profile.starts_with("arn:") { "Arn" } else { "Name" };
        Tree::new().with(member, profile)
    });
    let mut tree = Tree::new()
        .with("ImageId", &data.image_id)
        .with("InstanceType", &data.instance_type)
        .with_opt("IamInstanceProfile", profile)
        .with_opt("KeyName", data.key_name.as_deref())
        .with("BlockDeviceMappings", Tree::list(data.block_devices.iter().map(block_device)))
        .with(
            "MetadataOptions",
            Tree::new()
                .with("HttpTokens", &options.http_tokens)
                .with("HttpPutResponseHopLimit", options.http_put_response_hop_limit)
                .with("HttpEndpoint", &options.http_endpoint)
                .with("HttpProtocolIpv6", &options.http_protocol_ipv6)
                .with("InstanceMetadataTags", &options.instance_metadata_tags),
        )
        .with(
            "TagSpecifications",
            vec![tag_specification("instance", &data.tags), tag_specification("volume", &data.tags)],
        );
    if !data.security_group_ids.is_empty() {
        tree.set("SecurityGroupIds", Tree::list(&data.security_group_ids));
    }
    if !user_data.is_empty() {
        tree.set("UserData", STANDARD.encode(user_data));
    }
    tree
}

fn block_device(device: &BlockDevice) -> Tree {
    let ebs = Tree::new()
        .with_opt("VolumeSize", device.size_gib)
        .with("VolumeType", &device.volume_type)
        .with_opt("Iops", device.iops)
        .with_opt("Throughput", device.throughput_mibps)
        .with_opt("Encrypted", device.encrypted)
        .with_opt("KmsKeyId", device.kms_key_id.as_deref())
        .with_opt("SnapshotId", device.snapshot_id.as_deref())
        .with("DeleteOnTermination", device.delete_on_termination);
    Tree::new().with("DeviceName", &device.device_name).with("Ebs", ebs)
}

fn joined(items: &BTreeSet<String>) -> String {
    items.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

/// A filter that any of the values matches.
pub(super) fn filter<'a>(name: &str, values: impl IntoIterator<Item = &'a String>) -> Tree {
    Tree::new().with("Name", name).with("Values", Tree::list(values))
}

/// The filters that say what a selector says.
pub(super) fn filters(selector: &Selector, id: &str) -> Vec<Tree> {
    match selector {
        Selector::Ids(ids) => vec![filter(id, ids)],
        Selector::Name(name) => vec![filter("group-name", [name])],
        Selector::Tags(tags) => tags
            .iter()
            .map(|(key, value)| match value.as_str() {
                "" => filter("tag-key", [key]),
                _ => filter(&format!("tag:{key}"), [value]),
            })
            .collect(),
    }
}
