//! Replies to reads as the port's types.
//!
//! Missing members mean what they mean to the adapter over the SDK; `cloud/aws/tests/wire/agreement` compares the two.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use capasg_cloud::{
    ActivityStatus, BlockDevice, Capacity, CloudError, Gpu, Group, GroupSettings, GroupTag, HealthStatus,
    Image, ImageBlockDevice, ImageVolume, Instance, InstanceFacts, InstanceRefresh, InstanceState,
    InstanceType, InstancesDistribution, Launch, LaunchTemplate, LaunchTemplateData, LaunchTemplateVersion,
    LifecycleHook, LifecycleState, MaintenancePolicy, MetadataOptions, MixedInstances, Page, PurchaseOption,
    RefreshStatus, Result, ScalingActivity, SecurityGroup, Subnet, TemplateRef, UserData, health_checks,
    zone_and_subnet,
};
use capasg_fake_aws::Tree;
use chrono::{DateTime, Utc};

/// One page of a listing whose items must have what AWS promises.
pub(super) fn page<T>(
    api: &'static str,
    reply: &Tree,
    list: &str,
    item: fn(&'static str, &Tree) -> Result<T>,
) -> Result<Page<T>> {
    Ok(Page {
        items: reply.items_of(list).iter().map(|tree| item(api, tree)).collect::<Result<_>>()?,
        next_token: token(reply),
    })
}

/// One page of a listing without the items that cannot be identified.
pub(super) fn listing<T>(reply: &Tree, list: &str, item: fn(&Tree) -> Option<T>) -> Page<T> {
    Page { items: reply.items_of(list).iter().filter_map(item).collect(), next_token: token(reply) }
}

/// The token of the next page.
pub(super) fn token(reply: &Tree) -> Option<String> {
    own(reply, "NextToken")
}

fn unreadable(api: &'static str, name: &str) -> CloudError {
    CloudError::unanswered(api, "UnreadableReply", &format!("the response has no {name}"))
}

pub(super) fn member<'a>(api: &'static str, tree: &'a Tree, name: &str) -> Result<&'a Tree> {
    tree.get(name).ok_or_else(|| unreadable(api, name))
}

pub(super) fn text(api: &'static str, tree: &Tree, name: &str) -> Result<String> {
    own(tree, name).ok_or_else(|| unreadable(api, name))
}

pub(super) fn number<N: TryFrom<i64>>(api: &'static str, tree: &Tree, name: &str) -> Result<N> {
    small(tree, name).ok_or_else(|| unreadable(api, name))
}

fn small<N: TryFrom<i64>>(tree: &Tree, name: &str) -> Option<N> {
    tree.number_of(name).and_then(|number| number.try_into().ok())
}

fn own(tree: &Tree, name: &str) -> Option<String> {
    tree.text_of(name).map(str::to_owned)
}

fn or_empty(tree: &Tree, name: &str) -> String {
    own(tree, name).unwrap_or_default()
}

/// A text that is not empty.
fn filled(tree: &Tree, name: &str) -> Option<String> {
    own(tree, name).filter(|text| !text.is_empty())
}

pub(super) fn time(tree: &Tree, name: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(tree.text_of(name)?).ok().map(|time| time.with_timezone(&Utc))
}

fn split(tree: &Tree, name: &str) -> BTreeSet<String> {
    let parts = tree.text_of(name).unwrap_or_default().split(',').map(str::trim);
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn tags(tree: &Tree) -> BTreeMap<String, String> {
    let tags = tree.items_of("Tags").iter();
    tags.filter_map(|tag| Some((own(tag, "Key")?, or_empty(tag, "Value")))).collect()
}

pub(super) fn group(api: &'static str, tree: &Tree) -> Result<Group> {
    let tags = tree.items_of("Tags").iter().filter_map(|tag| {
        let propagate = tag.flag_of("PropagateAtLaunch").unwrap_or_default();
        Some((own(tag, "Key")?, GroupTag { value: or_empty(tag, "Value"), propagate }))
    });
    let suspended = tree.items_of("SuspendedProcesses").iter();
    let suspended = suspended
        .filter_map(|process| Some((own(process, "ProcessName")?, or_empty(process, "SuspensionReason"))));
    let name = filled(tree, "AutoScalingGroupName").ok_or_else(|| unreadable(api, "AutoScalingGroupName"))?;
    let mut instances: Vec<Instance> =
        tree.items_of("Instances").iter().map(|item| instance(api, item)).collect::<Result<_>>()?;
    instances.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(Group {
        name,
        arn: or_empty(tree, "AutoScalingGroupARN"),
        capacity: Capacity {
            min: small(tree, "MinSize").unwrap_or_default(),
            max: small(tree, "MaxSize").unwrap_or_default(),
            desired: small(tree, "DesiredCapacity").unwrap_or_default(),
        },
        settings: GroupSettings {
            launch: launch(tree),
            subnets: split(tree, "VPCZoneIdentifier"),
            health_check_types: health_checks(tree.text_of("HealthCheckType").unwrap_or_default()),
            health_check_grace_period: small(tree, "HealthCheckGracePeriod").unwrap_or_default(),
            default_cooldown: small(tree, "DefaultCooldown").unwrap_or_default(),
            default_instance_warmup: small(tree, "DefaultInstanceWarmup").filter(|seconds| *seconds >= 0),
            protect_new_instances: tree.flag_of("NewInstancesProtectedFromScaleIn").unwrap_or_default(),
            capacity_rebalance: tree.flag_of("CapacityRebalance").unwrap_or_default(),
            retains_abandoned: tree.get("InstanceLifecyclePolicy").is_some_and(|policy| {
                let triggers = policy.get("RetentionTriggers");
                triggers.and_then(|triggers| triggers.text_of("TerminateHookAbandon")) == Some("retain")
            }),
            maintenance_policy: tree.get("InstanceMaintenancePolicy").and_then(maintenance_policy),
        },
        zones: tree.texts_of("AvailabilityZones").into_iter().collect(),
        status: own(tree, "Status"),
        suspended_processes: suspended.collect(),
        tags: tags.collect(),
        instances,
    })
}

fn maintenance_policy(tree: &Tree) -> Option<MaintenancePolicy> {
    let found = MaintenancePolicy {
        min_healthy_percentage: small(tree, "MinHealthyPercentage")?,
        max_healthy_percentage: small(tree, "MaxHealthyPercentage")?,
    };
    (found != MaintenancePolicy::NONE).then_some(found)
}

fn launch(tree: &Tree) -> Launch {
    let Some(policy) = tree.get("MixedInstancesPolicy") else {
        return Launch { template: template_ref(tree.get("LaunchTemplate")), mixed: None };
    };
    let nothing = Tree::new();
    let overrides = policy.at("LaunchTemplate.Overrides").map_or(&[][..], Tree::items);
    let found = policy.get("InstancesDistribution").unwrap_or(&nothing);
    let distribution = InstancesDistribution {
        on_demand_base_capacity: small(found, "OnDemandBaseCapacity").unwrap_or(0),
        on_demand_percentage_above_base_capacity: small(found, "OnDemandPercentageAboveBaseCapacity")
            .unwrap_or(100),
        on_demand_allocation_strategy: own(found, "OnDemandAllocationStrategy")
            .unwrap_or_else(|| "prioritized".to_owned()),
        spot_allocation_strategy: own(found, "SpotAllocationStrategy")
            .unwrap_or_else(|| "lowest-price".to_owned()),
        spot_max_price: filled(found, "SpotMaxPrice"),
    };
    Launch {
        template: template_ref(policy.at("LaunchTemplate.LaunchTemplateSpecification")),
        mixed: Some(MixedInstances {
            instance_types: overrides.iter().filter_map(|item| own(item, "InstanceType")).collect(),
            other_members: overrides.iter().flat_map(other_members).collect(),
            distribution,
        }),
    }
}

/// The members of an override besides its type; an empty text is none.
fn other_members(tree: &Tree) -> impl Iterator<Item = String> {
    let members = tree.members().filter(|(name, value)| *name != "InstanceType" && value.text() != Some(""));
    members.map(|(name, _)| name.to_owned())
}

fn template_ref(tree: Option<&Tree>) -> TemplateRef {
    TemplateRef {
        id: tree.map(|tree| or_empty(tree, "LaunchTemplateId")).unwrap_or_default(),
        version: tree.and_then(|tree| tree.number_of("Version")),
    }
}

fn instance(api: &'static str, tree: &Tree) -> Result<Instance> {
    let template = tree.get("LaunchTemplate");
    let launched_from =
        template.map(|template| (own(template, "LaunchTemplateId"), template.number_of("Version")));
    Ok(Instance {
        id: filled(tree, "InstanceId").ok_or_else(|| unreadable(api, "Instances.InstanceId"))?,
        instance_type: own(tree, "InstanceType"),
        zone: or_empty(tree, "AvailabilityZone"),
        lifecycle: LifecycleState::parse(&or_empty(tree, "LifecycleState")),
        health: match tree.text_of("HealthStatus") {
            Some(status) if status.eq_ignore_ascii_case("unhealthy") => HealthStatus::Unhealthy,
            _ => HealthStatus::Healthy,
        },
        template: launched_from.and_then(|(id, version)| id.zip(version)),
        protected: tree.flag_of("ProtectedFromScaleIn").unwrap_or_default(),
    })
}

/// A hook; what AWS leaves out has its default.
pub(super) fn hook(tree: &Tree) -> Option<LifecycleHook> {
    Some(LifecycleHook {
        name: own(tree, "LifecycleHookName")?,
        transition: or_empty(tree, "LifecycleTransition"),
        heartbeat_timeout: small(tree, "HeartbeatTimeout").unwrap_or(3600),
        default_result: own(tree, "DefaultResult").unwrap_or_else(|| "ABANDON".to_owned()),
    })
}

pub(super) fn activity(tree: &Tree) -> Option<ScalingActivity> {
    let (zone, subnet) = tree.text_of("Details").map(zone_and_subnet).unwrap_or_default();
    Some(ScalingActivity {
        id: own(tree, "ActivityId")?,
        status: ActivityStatus::parse(&or_empty(tree, "StatusCode")),
        status_message: own(tree, "StatusMessage"),
        description: own(tree, "Description"),
        cause: or_empty(tree, "Cause"),
        zone,
        subnet,
        started_at: time(tree, "StartTime")?,
        ended_at: time(tree, "EndTime"),
    })
}

pub(super) fn refresh(api: &'static str, tree: &Tree) -> Result<InstanceRefresh> {
    Ok(InstanceRefresh {
        id: text(api, tree, "InstanceRefreshId")?,
        status: RefreshStatus::parse(tree.text_of("Status").unwrap_or_default()),
        reason: own(tree, "StatusReason"),
        started_at: time(tree, "StartTime"),
        ended_at: time(tree, "EndTime"),
        percentage: small(tree, "PercentageComplete"),
        to_update: small(tree, "InstancesToUpdate"),
        min_healthy_percentage: tree.get("Preferences").and_then(|own| small(own, "MinHealthyPercentage")),
        desired: tree.get("DesiredConfiguration").map(launch),
        rollback_reason: tree.get("RollbackDetails").and_then(|details| own(details, "RollbackReason")),
    })
}

/// An instance. EC2 gives empty strings for addresses that it does not have.
pub(super) fn facts(tree: &Tree) -> Option<InstanceFacts> {
    let interfaces = tree.items_of("NetworkInterfaces").iter();
    let addresses = interfaces.flat_map(|interface| interface.items_of("Ipv6Addresses")).chain([tree]);
    Some(InstanceFacts {
        id: own(tree, "InstanceId")?,
        state: match tree.at("State.Name").and_then(Tree::text) {
            Some("pending") => InstanceState::Pending,
            Some("shutting-down" | "terminated") => InstanceState::Terminated,
            Some("stopping" | "stopped") => InstanceState::Stopped,
            _ => InstanceState::Running,
        },
        private_ip: filled(tree, "PrivateIpAddress"),
        ipv6: addresses.filter_map(|address| filled(address, "Ipv6Address")).collect(),
        private_dns: filled(tree, "PrivateDnsName"),
        public_ip: filled(tree, "PublicIpAddress"),
        public_dns: filled(tree, "PublicDnsName"),
        purchase: match tree.text_of("InstanceLifecycle") {
            None => PurchaseOption::OnDemand,
            Some("spot") => PurchaseOption::Spot,
            Some(_) => PurchaseOption::Scheduled,
        },
        launched_at: time(tree, "LaunchTime"),
        tags: tags(tree),
    })
}

/// The template that was asked for by name.
pub(super) fn template(api: &'static str, name: &str, tree: &Tree) -> Result<LaunchTemplate> {
    Ok(LaunchTemplate {
        id: text(api, tree, "LaunchTemplateId")?,
        name: own(tree, "LaunchTemplateName").unwrap_or_else(|| name.to_owned()),
        latest_version: number(api, tree, "LatestVersionNumber")?,
        default_version: number(api, tree, "DefaultVersionNumber")?,
        tags: tags(tree),
    })
}

pub(super) fn latest_version(tree: &Tree) -> Option<(String, LaunchTemplateVersion)> {
    Some((own(tree, "LaunchTemplateId")?, version(tree)?))
}

pub(super) fn version(tree: &Tree) -> Option<LaunchTemplateVersion> {
    let data = tree.get("LaunchTemplateData");
    Some(LaunchTemplateVersion {
        number: tree.number_of("VersionNumber")?,
        description: own(tree, "VersionDescription"),
        image_id: data.and_then(|data| own(data, "ImageId")),
        content: data.map(|data| Arc::new(content(data))),
        created_at: time(tree, "CreateTime").unwrap_or_default(),
    })
}

fn content(tree: &Tree) -> LaunchTemplateData {
    let nothing = Tree::new();
    let options = tree.get("MetadataOptions").unwrap_or(&nothing);
    let option = |name: &str| or_empty(options, name);
    let device = |mapping: &Tree| {
        let ebs = mapping.get("Ebs")?;
        Some(BlockDevice {
            device_name: own(mapping, "DeviceName")?,
            size_gib: small(ebs, "VolumeSize"),
            volume_type: or_empty(ebs, "VolumeType"),
            iops: small(ebs, "Iops"),
            throughput_mibps: small(ebs, "Throughput"),
            encrypted: ebs.flag_of("Encrypted"),
            kms_key_id: own(ebs, "KmsKeyId"),
            snapshot_id: own(ebs, "SnapshotId"),
            delete_on_termination: ebs.flag_of("DeleteOnTermination").unwrap_or(true),
        })
    };
    let profile = tree.get("IamInstanceProfile");
    LaunchTemplateData {
        image_id: or_empty(tree, "ImageId"),
        instance_type: or_empty(tree, "InstanceType"),
        iam_instance_profile: profile
            .and_then(|profile| own(profile, "Name").or_else(|| own(profile, "Arn"))),
        key_name: own(tree, "KeyName"),
        security_group_ids: tree.texts_of("SecurityGroupIds"),
        block_devices: tree.items_of("BlockDeviceMappings").iter().filter_map(device).collect(),
        metadata_options: MetadataOptions {
            http_tokens: option("HttpTokens"),
            http_put_response_hop_limit: small(options, "HttpPutResponseHopLimit").unwrap_or_default(),
            http_endpoint: option("HttpEndpoint"),
            http_protocol_ipv6: option("HttpProtocolIpv6"),
            instance_metadata_tags: option("InstanceMetadataTags"),
        },
        user_data: UserData::default(),
        tags: tree
            .items_of("TagSpecifications")
            .iter()
            .find(|own| own.text_of("ResourceType") == Some("instance"))
            .map(tags)
            .unwrap_or_default(),
        spot: tree
            .items_of("TagSpecifications")
            .iter()
            .any(|own| own.text_of("ResourceType") == Some("spot-instances-request")),
    }
}

pub(super) fn subnet(tree: &Tree) -> Option<Subnet> {
    let (zone, vpc) = (or_empty(tree, "AvailabilityZone"), or_empty(tree, "VpcId"));
    Some(Subnet { id: own(tree, "SubnetId")?, zone, vpc })
}

pub(super) fn security_group(tree: &Tree) -> Option<SecurityGroup> {
    let (name, vpc) = (or_empty(tree, "GroupName"), or_empty(tree, "VpcId"));
    Some(SecurityGroup { id: own(tree, "GroupId")?, name, vpc })
}

pub(super) fn image(tree: &Tree) -> Option<Image> {
    if tree.text_of("State").is_some_and(|state| state != "available") {
        return None;
    }
    Some(Image {
        id: own(tree, "ImageId")?,
        root_device_name: own(tree, "RootDeviceName"),
        architecture: own(tree, "Architecture"),
        is_windows: tree.text_of("Platform") == Some("windows"),
        block_devices: tree.items_of("BlockDeviceMappings").iter().filter_map(image_block_device).collect(),
    })
}

fn image_block_device(tree: &Tree) -> Option<ImageBlockDevice> {
    Some(ImageBlockDevice {
        device_name: own(tree, "DeviceName")?,
        virtual_name: own(tree, "VirtualName"),
        volume: tree.get("Ebs").map(|ebs| ImageVolume {
            size_gib: small(ebs, "VolumeSize"),
            volume_type: own(ebs, "VolumeType"),
            encrypted: ebs.flag_of("Encrypted").unwrap_or_default(),
            snapshot_id: own(ebs, "SnapshotId"),
            delete_on_termination: ebs.flag_of("DeleteOnTermination").unwrap_or(true),
        }),
    })
}

pub(super) fn snapshot_gib(tree: &Tree) -> Option<i32> {
    small(tree, "VolumeSize")
}

pub(super) fn instance_type(api: &'static str, tree: &Tree) -> Result<InstanceType> {
    let nothing = Tree::new();
    let inner = |name: &str| tree.get(name).unwrap_or(&nothing);
    let (vcpus, memory) = (small(inner("VCpuInfo"), "DefaultVCpus"), small(inner("MemoryInfo"), "SizeInMiB"));
    // A type with a part of a GPU counts it in logical ones.
    let gpus = inner("GpuInfo").items_of("Gpus").iter().map(|gpu| Gpu {
        manufacturer: or_empty(gpu, "Manufacturer"),
        count: small(gpu, "Count")
            .filter(|count| *count > 0)
            .or_else(|| small(gpu, "LogicalGpuCount"))
            .unwrap_or_default(),
    });
    let neuron = inner("NeuronInfo").items_of("NeuronDevices").iter();
    let cores = |device: &Tree| {
        Some(small::<i32>(device, "Count")?.saturating_mul(small(device.get("CoreInfo")?, "Count")?))
    };
    Ok(InstanceType {
        name: text(api, tree, "InstanceType")?,
        vcpus: vcpus.ok_or_else(|| unreadable(api, "VCpuInfo.DefaultVCpus"))?,
        memory_mib: memory.ok_or_else(|| unreadable(api, "MemoryInfo.SizeInMiB"))?,
        architectures: inner("ProcessorInfo").texts_of("SupportedArchitectures").into_iter().collect(),
        gpus: gpus.collect(),
        neuron_devices: neuron
            .clone()
            .filter_map(|device| small(device, "Count"))
            .fold(0, i32::saturating_add),
        neuron_cores: neuron.filter_map(cores).fold(0, i32::saturating_add),
    })
}
