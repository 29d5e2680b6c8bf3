//! The port's writes and selectors as parameters of AWS operations.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine, engine::general_purpose::STANDARD};
use capasg_cloud::{
    BlockDevice, CloudError, CreateGroup, GroupChange, GroupTag, Launch, LaunchTemplateData, LifecycleHook,
    MaintenancePolicy, Result, Selector, StartRefresh, TemplateRef, Write, health_check_type,
};
use capasg_fake_aws::{Service, Tree};

/// The service and the parameters of a write.
///
/// # Errors
/// What the provider does not send, as in the adapter over the SDK.
pub(super) fn write(write: &Write) -> Result<(Service, Tree)> {
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
            .with_opt("TagSpecifications", tag_specifications(&["launch-template"], own)),
        Write::CreateLaunchTemplateVersion { id, data, description, client_token } => Tree::new()
            .with("LaunchTemplateId", id)
            .with("LaunchTemplateData", template_data(data))
            .with("VersionDescription", description)
            .with("ClientToken", client_token),
        Write::DeleteLaunchTemplateVersions { id, versions } => {
            Tree::new().with("LaunchTemplateId", id).with_opt("Versions", some(versions.iter().copied()))
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
            if processes.is_empty() {
                return Err(CloudError::unsendable(
                    write.api(),
                    "no process is specified, which AWS treats as all processes",
                ));
            }
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
        Write::TagGroup { group, tags } => Tree::new().with("Tags", Tree::list(group_tags(group, tags))),
        Write::UntagGroup { group, keys } => {
            let keys = keys.iter().map(|key| tagged(group).with("Key", key));
            Tree::new().with("Tags", Tree::list(keys))
        }
        Write::DeleteGroup { group: name, force } => group(name).with("ForceDelete", *force),
    };
    Ok((service(write), params))
}

/// A list member, absent if empty.
pub(super) fn some<T: Into<Tree>>(items: impl IntoIterator<Item = T>) -> Option<Tree> {
    let list = Tree::list(items);
    (!list.items().is_empty()).then_some(list)
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
    let params = Tree::new()
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
        .with_opt("Tags", some(group_tags(name, tags)))
        .with_opt("LifecycleHookSpecificationList", some(hooks.iter().map(hook)));
    launch(params, &settings.launch, None)
}

fn start_refresh(start: &StartRefresh) -> Tree {
    let StartRefresh { group, desired, preferences: wanted } = start;
    let alarms = some(&wanted.alarms).map(|alarms| Tree::new().with("Alarms", alarms));
    let preferences = Tree::new()
        .with("MinHealthyPercentage", wanted.min_healthy_percentage)
        .with_opt("MaxHealthyPercentage", wanted.max_healthy_percentage)
        .with_opt("InstanceWarmup", wanted.instance_warmup)
        .with_opt("CheckpointPercentages", some(wanted.checkpoint_percentages.iter().copied()))
        .with_opt("CheckpointDelay", wanted.checkpoint_delay)
        .with_opt("BakeTime", wanted.bake_time)
        .with_opt("AlarmSpecification", alarms)
        .with("SkipMatching", wanted.skip_matching)
        .with("AutoRollback", wanted.auto_rollback)
        .with("ScaleInProtectedInstances", &wanted.protected_instances)
        .with("StandbyInstances", &wanted.standby_instances);
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
        .with_opt("InstanceMaintenancePolicy", change.maintenance_policy.map(maintenance_policy))
        .with_opt("InstanceLifecyclePolicy", change.retains_abandoned.map(lifecycle_policy));
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

fn lifecycle_policy(retains: bool) -> Tree {
    let action = if retains { "retain" } else { "terminate" };
    Tree::new().with("RetentionTriggers", Tree::new().with("TerminateHookAbandon", action))
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

fn group_tags(group: &str, tags: &BTreeMap<String, GroupTag>) -> impl Iterator<Item = Tree> {
    tags.iter().map(move |(key, tag)| {
        tagged(group).with("Key", key).with("Value", &tag.value).with("PropagateAtLaunch", tag.propagate)
    })
}

/// The same tags for each of these kinds of resources.
fn tag_specifications(resources: &[&str], tags: &BTreeMap<String, String>) -> Option<Tree> {
    let tags = some(tags.iter().map(|(key, value)| Tree::new().with("Key", key).with("Value", value)))?;
    let of = |resource: &&str| Tree::new().with("ResourceType", *resource).with("Tags", tags.clone());
    Some(Tree::list(resources.iter().map(of)))
}

fn template_data(data: &LaunchTemplateData) -> Tree {
    let user_data = data.user_data.expose();
    let options = &data.metadata_options;
    let profile = data.iam_instance_profile.as_ref().map(|profile| {
        let member = if profile.starts_with("arn:") { "Arn" } else { "Name" };
        Tree::new().with(member, profile)
    });
    let launched: &[&str] = if data.spot {
        &["instance", "volume", "network-interface", "spot-instances-request"]
    } else {
        &["instance", "volume", "network-interface"]
    };
    Tree::new()
        .with("ImageId", &data.image_id)
        .with("InstanceType", &data.instance_type)
        .with_opt("IamInstanceProfile", profile)
        .with_opt("KeyName", data.key_name.as_deref())
        .with_opt("SecurityGroupIds", some(&data.security_group_ids))
        .with_opt("BlockDeviceMappings", some(data.block_devices.iter().map(block_device)))
        .with(
            "MetadataOptions",
            Tree::new()
                .with("HttpTokens", &options.http_tokens)
                .with("HttpPutResponseHopLimit", options.http_put_response_hop_limit)
                .with("HttpEndpoint", &options.http_endpoint)
                .with("HttpProtocolIpv6", &options.http_protocol_ipv6)
                .with("InstanceMetadataTags", &options.instance_metadata_tags),
        )
        .with_opt("UserData", (!user_data.is_empty()).then(|| STANDARD.encode(user_data)))
        .with_opt("TagSpecifications", tag_specifications(launched, &data.tags))
}

fn block_device(device: &BlockDevice) -> Tree {
    let ebs = Tree::new()
        .with_opt("VolumeSize", device.size_gib)
        .with_opt("VolumeType", Some(device.volume_type.as_str()).filter(|value| !value.is_empty()))
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
    let values = values.into_iter().map(|value| literal(value));
    Tree::new().with("Name", name).with("Values", Tree::list(values))
}

/// The filters that say what a selector says; `name` is the filter by name, where the resource has one.
///
/// # Errors
/// What the provider does not send, as in the adapter over the SDK.
pub(super) fn filters(
    api: &'static str,
    selector: &Selector,
    id: &str,
    name: Option<&str>,
) -> Result<Vec<Tree>> {
    let filters = match selector {
        Selector::Ids(ids) if ids.is_empty() => Vec::new(),
        Selector::Ids(ids) => vec![filter(id, ids)],
        Selector::Name(own) => {
            let name =
                name.ok_or_else(|| CloudError::unsendable(api, "these resources are not selected by name"))?;
            vec![filter(name, [own])]
        }
        Selector::Tags(tags) => tags
            .iter()
            .map(|(key, value)| match value.as_str() {
                "" | "*" => filter("tag-key", [key]),
                _ => filter(&format!("tag:{key}"), [value]),
            })
            .collect(),
    };
    if filters.is_empty() {
        return Err(CloudError::unsendable(
            api,
            "the selector has neither an ID nor a tag, which EC2 treats as all resources",
        ));
    }
    Ok(filters)
}

/// The value with EC2's wildcards taken literally.
fn literal(value: &str) -> String {
    let escaped =
        |character| matches!(character, '*' | '?' | '\\').then_some('\\').into_iter().chain([character]);
    value.chars().flat_map(escaped).collect()
}
