//! Replies of AWS operations as the port's types. A member that AWS promises must be there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use capasg_cloud::{
    ActivityStatus, BlockDevice, Capacity, CloudError, ErrorClass, Gpu, Group, GroupSettings, GroupTag,
    HealthStatus, Image, Instance, InstanceFacts, InstanceRefresh, InstanceState, InstanceType,
    InstancesDistribution, Launch, LaunchTemplate, LaunchTemplateData, LaunchTemplateVersion, LifecycleHook,
    LifecycleState, MaintenancePolicy, MetadataOptions, MixedInstances, Page, PurchaseOption, RefreshStatus,
    Result, ScalingActivity, SecurityGroup, Subnet, TemplateRef, UserData, Write, Written, health_checks,
    zone_and_subnet,
};
use capasg_fake_aws::Tree;
use chrono::{DateTime, Utc};

/// The reply to a write.
pub(super) fn written(write: &Write, reply: &Tree) -> Result<Written> {
    let api = write.api();
    match write {
        Write::CreateLaunchTemplate { .. } => {
            let template = member(api, reply, "LaunchTemplate")?;
            Ok(Written::Version {
                id: text(api, template, "LaunchTemplateId")?,
                number: number(api, template, "LatestVersionNumber")?,
                created_at: time(template, "CreateTime").unwrap_or_default(),
            })
        }
        Write::CreateLaunchTemplateVersion { id, .. } => {
            let version = member(api, reply, "LaunchTemplateVersion")?;
            Ok(Written::Version {
                id: id.clone(),
                number: number(api, version, "VersionNumber")?,
                created_at: time(version, "CreateTime").unwrap_or_default(),
            })
        }
        Write::DeleteLaunchTemplateVersions { .. } => {
            let kept = reply.items_of("UnsuccessfullyDeletedLaunchTemplateVersions");
            let refused = kept
                .iter()
                .filter_map(|item| item.get("ResponseError"))
                .find(|error| error.text_of("Code") != Some("launchTemplateVersionDoesNotExist"));
            match refused {
                None => Ok(Written::Done),
                Some(error) => Err(CloudError {
                    api,
                    class: ErrorClass::Invalid,
                    code: error.text_of("Code").unwrap_or_default().to_owned(),
                    message: error.text_of("Message").unwrap_or_default().to_owned(),
                    outcome_unknown: false,
                    request_id: None,
                }),
            }
        }
        _ => Ok(Written::Done),
    }
}

/// One page of a listing.
pub(super) fn page<T>(
    api: &'static str,
    reply: &Tree,
    list: &str,
    item: fn(&'static str, &Tree) -> Result<T>,
) -> Result<Page<T>> {
    Ok(Page {
        items: reply.items_of(list).iter().map(|tree| item(api, tree)).collect::<Result<_>>()?,
        next_token: reply.text_of("NextToken").map(str::to_owned),
    })
}

fn unreadable(api: &'static str, name: &str) -> CloudError {
    CloudError::unanswered(api, "UnreadableReply", &format!("the response has no {name}"))
}

fn member<'a>(api: &'static str, tree: &'a Tree, name: &str) -> Result<&'a Tree> {
    tree.get(name).ok_or_else(|| unreadable(api, name))
}

fn text(api: &'static str, tree: &Tree, name: &str) -> Result<String> {
    tree.text_of(name).map(str::to_owned).ok_or_else(|| unreadable(api, name))
}

fn number<N: TryFrom<i64>>(api: &'static str, tree: &Tree, name: &str) -> Result<N> {
    small(tree, name).ok_or_else(|| unreadable(api, name))
}

fn small<N: TryFrom<i64>>(tree: &Tree, name: &str) -> Option<N> {
    tree.number_of(name).and_then(|number| number.try_into().ok())
}

fn maybe(tree: &Tree, name: &str) -> Option<String> {
    tree.text_of(name).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn time(tree: &Tree, name: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(tree.text_of(name)?).ok().map(|time| time.with_timezone(&Utc))
}

fn split(tree: &Tree, name: &str) -> BTreeSet<String> {
    let parts = tree.text_of(name).unwrap_or_default().split(',').map(str::trim);
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn tags(tree: &Tree) -> BTreeMap<String, String> {
    let tags = tree.items_of("Tags").iter();
    tags.filter_map(|tag| Some((maybe(tag, "Key")?, tag.text_of("Value").unwrap_or_default().to_owned())))
        .collect()
}

pub(super) fn group(api: &'static str, tree: &Tree) -> Result<Group> {
    let tags = tree.items_of("Tags").iter().filter_map(|tag| {
        let value = tag.text_of("Value").unwrap_or_default().to_owned();
        let propagate = tag.flag_of("PropagateAtLaunch").unwrap_or_default();
        Some((maybe(tag, "Key")?, GroupTag { value, propagate }))
    });
    let suspended = tree.items_of("SuspendedProcesses").iter().filter_map(|process| {
        Some((
            maybe(process, "ProcessName")?,
            process.text_of("SuspensionReason").unwrap_or_default().to_owned(),
        ))
    });
    let mut instances: Vec<Instance> =
        tree.items_of("Instances").iter().map(|item| instance(api, item)).collect::<Result<_>>()?;
    instances.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(Group {
        name: text(api, tree, "AutoScalingGroupName")?,
        arn: text(api, tree, "AutoScalingGroupARN")?,
        capacity: Capacity {
            min: number(api, tree, "MinSize")?,
            max: number(api, tree, "MaxSize")?,
            desired: number(api, tree, "DesiredCapacity")?,
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
            maintenance_policy: tree.get("InstanceMaintenancePolicy").and_then(|policy| {
                Some(MaintenancePolicy {
                    min_healthy_percentage: small(policy, "MinHealthyPercentage")?,
                    max_healthy_percentage: small(policy, "MaxHealthyPercentage")?,
                })
            }),
        },
        zones: tree.texts_of("AvailabilityZones").into_iter().collect(),
        status: maybe(tree, "Status"),
        suspended_processes: suspended.collect(),
        tags: tags.collect(),
        instances,
    })
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
        on_demand_allocation_strategy: maybe(found, "OnDemandAllocationStrategy")
            .unwrap_or_else(|| "prioritized".to_owned()),
        spot_allocation_strategy: maybe(found, "SpotAllocationStrategy")
            .unwrap_or_else(|| "lowest-price".to_owned()),
        spot_max_price: maybe(found, "SpotMaxPrice"),
    };
    Launch {
        template: template_ref(policy.at("LaunchTemplate.LaunchTemplateSpecification")),
        mixed: Some(MixedInstances {
            instance_types: overrides.iter().filter_map(|item| maybe(item, "InstanceType")).collect(),
            distribution,
        }),
    }
}

fn template_ref(tree: Option<&Tree>) -> TemplateRef {
    TemplateRef {
        id: tree.and_then(|tree| maybe(tree, "LaunchTemplateId")).unwrap_or_default(),
        version: tree.and_then(|tree| tree.number_of("Version")),
    }
}

fn instance(api: &'static str, tree: &Tree) -> Result<Instance> {
    let template = tree.get("LaunchTemplate");
    let launched_from =
        template.map(|template| (maybe(template, "LaunchTemplateId"), template.number_of("Version")));
    Ok(Instance {
        id: text(api, tree, "InstanceId")?,
        instance_type: maybe(tree, "InstanceType"),
        zone: text(api, tree, "AvailabilityZone")?,
        lifecycle: LifecycleState::parse(&text(api, tree, "LifecycleState")?),
        health: match tree.text_of("HealthStatus") {
            Some(status) if status.eq_ignore_ascii_case("unhealthy") => HealthStatus::Unhealthy,
            _ => HealthStatus::Healthy,
        },
        template: launched_from.and_then(|(id, version)| id.zip(version)),
        protected: tree.flag_of("ProtectedFromScaleIn").unwrap_or_default(),
    })
}

pub(super) fn hook(api: &'static str, tree: &Tree) -> Result<LifecycleHook> {
    Ok(LifecycleHook {
        name: text(api, tree, "LifecycleHookName")?,
        transition: text(api, tree, "LifecycleTransition")?,
        heartbeat_timeout: number(api, tree, "HeartbeatTimeout")?,
        default_result: text(api, tree, "DefaultResult")?,
    })
}

pub(super) fn activity(api: &'static str, tree: &Tree) -> Result<ScalingActivity> {
    let (zone, subnet) = tree.text_of("Details").map(zone_and_subnet).unwrap_or_default();
    Ok(ScalingActivity {
        id: text(api, tree, "ActivityId")?,
        status: ActivityStatus::parse(&text(api, tree, "StatusCode")?),
        status_message: maybe(tree, "StatusMessage"),
        description: maybe(tree, "Description"),
        cause: text(api, tree, "Cause")?,
        zone,
        subnet,
        started_at: time(tree, "StartTime").ok_or_else(|| unreadable(api, "StartTime"))?,
    })
}

pub(super) fn refresh(api: &'static str, tree: &Tree) -> Result<InstanceRefresh> {
    Ok(InstanceRefresh {
        id: text(api, tree, "InstanceRefreshId")?,
        status: RefreshStatus::parse(tree.text_of("Status").unwrap_or_default()),
        reason: maybe(tree, "StatusReason"),
        started_at: time(tree, "StartTime"),
        ended_at: time(tree, "EndTime"),
        percentage: small(tree, "PercentageComplete"),
        to_update: small(tree, "InstancesToUpdate"),
        min_healthy_percentage: tree.get("Preferences").and_then(|own| small(own, "MinHealthyPercentage")),
        desired: tree.get("DesiredConfiguration").map(launch),
        rollback_reason: tree.get("RollbackDetails").and_then(|details| maybe(details, "RollbackReason")),
    })
}

pub(super) fn facts(api: &'static str, tree: &Tree) -> Result<InstanceFacts> {
    let state = tree.at("State.Name").and_then(Tree::text).ok_or_else(|| unreadable(api, "State.Name"))?;
    Ok(InstanceFacts {
        id: text(api, tree, "InstanceId")?,
        state: match state {
            "pending" => InstanceState::Pending,
            "shutting-down" | "terminated" => InstanceState::Terminated,
            "stopping" | "stopped" => InstanceState::Stopped,
            _ => InstanceState::Running,
        },
        private_ip: maybe(tree, "PrivateIpAddress"),
        ipv6: maybe(tree, "Ipv6Address").into_iter().collect(),
        private_dns: maybe(tree, "PrivateDnsName"),
        public_ip: maybe(tree, "PublicIpAddress"),
        public_dns: maybe(tree, "PublicDnsName"),
        purchase: match tree.text_of("InstanceLifecycle") {
            None => PurchaseOption::OnDemand,
            Some("spot") => PurchaseOption::Spot,
            Some(_) => PurchaseOption::Scheduled,
        },
        launched_at: time(tree, "LaunchTime"),
        tags: tags(tree),
    })
}

pub(super) fn template(api: &'static str, tree: &Tree) -> Result<LaunchTemplate> {
    Ok(LaunchTemplate {
        id: text(api, tree, "LaunchTemplateId")?,
        name: text(api, tree, "LaunchTemplateName")?,
        latest_version: number(api, tree, "LatestVersionNumber")?,
        default_version: number(api, tree, "DefaultVersionNumber")?,
        tags: tags(tree),
    })
}

pub(super) fn version(api: &'static str, tree: &Tree) -> Result<LaunchTemplateVersion> {
    Ok(LaunchTemplateVersion {
        number: number(api, tree, "VersionNumber")?,
        description: maybe(tree, "VersionDescription"),
        image_id: tree.at("LaunchTemplateData.ImageId").and_then(Tree::text).map(str::to_owned),
        content: tree.get("LaunchTemplateData").map(|data| Arc::new(content(data))),
        created_at: time(tree, "CreateTime").unwrap_or_default(),
    })
}

fn content(tree: &Tree) -> LaunchTemplateData {
    let nothing = Tree::new();
    let options = tree.get("MetadataOptions").unwrap_or(&nothing);
    let option = |name: &str| options.text_of(name).unwrap_or_default().to_owned();
    let device = |mapping: &Tree| {
        let ebs = mapping.get("Ebs")?;
        Some(BlockDevice {
            device_name: maybe(mapping, "DeviceName")?,
            size_gib: small(ebs, "VolumeSize"),
            volume_type: maybe(ebs, "VolumeType").unwrap_or_default(),
            iops: small(ebs, "Iops"),
            throughput_mibps: small(ebs, "Throughput"),
            encrypted: ebs.flag_of("Encrypted"),
            kms_key_id: maybe(ebs, "KmsKeyId"),
            snapshot_id: maybe(ebs, "SnapshotId"),
            delete_on_termination: ebs.flag_of("DeleteOnTermination").unwrap_or(true),
        })
    };
    let profile = tree.get("IamInstanceProfile");
    LaunchTemplateData {
        image_id: maybe(tree, "ImageId").unwrap_or_default(),
        instance_type: maybe(tree, "InstanceType").unwrap_or_default(),
        iam_instance_profile: profile.and_then(|own| maybe(own, "Name").or_else(|| maybe(own, "Arn"))),
        key_name: maybe(tree, "KeyName"),
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
    }
}

pub(super) fn subnet(api: &'static str, tree: &Tree) -> Result<Subnet> {
    Ok(Subnet {
        id: text(api, tree, "SubnetId")?,
        zone: text(api, tree, "AvailabilityZone")?,
        vpc: text(api, tree, "VpcId")?,
    })
}

pub(super) fn security_group(api: &'static str, tree: &Tree) -> Result<SecurityGroup> {
    Ok(SecurityGroup {
        id: text(api, tree, "GroupId")?,
        name: text(api, tree, "GroupName")?,
        vpc: text(api, tree, "VpcId")?,
    })
}

pub(super) fn image(api: &'static str, tree: &Tree) -> Result<Image> {
    Ok(Image {
        id: text(api, tree, "ImageId")?,
        root_device_name: maybe(tree, "RootDeviceName"),
        architecture: maybe(tree, "Architecture"),
        is_windows: tree.text_of("Platform") == Some("windows"),
        root_volume_gib: tree
            .items_of("BlockDeviceMappings")
            .iter()
            .find(|mapping| mapping.text_of("DeviceName") == tree.text_of("RootDeviceName"))
            .and_then(|mapping| small(mapping.get("Ebs")?, "VolumeSize")),
    })
}

pub(super) fn instance_type(api: &'static str, tree: &Tree) -> Result<InstanceType> {
    let nothing = Tree::new();
    let inner = |name: &str| tree.get(name).unwrap_or(&nothing);
    let gpus = inner("GpuInfo").items_of("Gpus").iter().map(|gpu| Gpu {
        manufacturer: maybe(gpu, "Manufacturer").unwrap_or_default(),
        count: small(gpu, "Count").unwrap_or_default(),
    });
    let neuron = inner("NeuronInfo").items_of("NeuronDevices");
    let devices = |device: &Tree| small::<i32>(device, "Count").unwrap_or_default();
    let cores = |device: &Tree| device.get("CoreInfo").and_then(|info| small(info, "Count")).unwrap_or(0);
    Ok(InstanceType {
        name: text(api, tree, "InstanceType")?,
        vcpus: number(api, inner("VCpuInfo"), "DefaultVCpus")?,
        memory_mib: number(api, inner("MemoryInfo"), "SizeInMiB")?,
        architectures: inner("ProcessorInfo").texts_of("SupportedArchitectures").into_iter().collect(),
        gpus: gpus.collect(),
        neuron_devices: neuron.iter().map(devices).sum(),
        neuron_cores: neuron.iter().map(|device| devices(device) * cores(device)).sum(),
    })
}
