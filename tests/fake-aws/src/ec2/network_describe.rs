//! Describes of what a region has: VPCs, subnets, security groups and instance types.

use std::collections::{BTreeMap, BTreeSet};

use super::{Accelerators, Filters, dry_run, tags};
use crate::{ApiError, Tree, pages::Page, region::View};

/// Ids that were asked for but do not exist fail the whole call.
fn all_known<T>(
    wanted: &[String],
    known: &BTreeMap<String, T>,
    code: &str,
    what: &str,
) -> Result<(), ApiError> {
    match wanted.iter().find(|id| !known.contains_key(*id)) {
        Some(id) => Err(ApiError::refused(code, format!("The {what} '{id}' does not exist"))),
        None => Ok(()),
    }
}

pub(crate) fn vpcs(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let wanted = params.texts_of("VpcIds");
    all_known(&wanted, &view.state.network.vpcs, "InvalidVpcID.NotFound", "vpc ID")?;
    let filters = Filters::read(params, &["vpc-id", "cidr"])?;
    let page = Page::results(params, 5, 1000)?;
    let entries = view.state.network.vpcs.iter().filter(|(id, cidr)| {
        (wanted.is_empty() || wanted.contains(id))
            && filters.match_all(&BTreeMap::new(), |name| match name {
                "vpc-id" => vec![(*id).clone()],
                _ => vec![(*cidr).clone()],
            })
    });
    let entries = entries.map(|(id, cidr)| {
        let tree = Tree::new()
            .with("VpcId", id)
            .with("CidrBlock", cidr)
            .with("State", "available")
            .with("OwnerId", &view.scope.account)
            .with("IsDefault", true);
        (id.clone(), tree)
    });
    Ok(page.reply(view.settings, "Vpcs", entries.collect()))
}

pub(crate) fn subnets(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let wanted = params.texts_of("SubnetIds");
    let known = &view.state.network.subnets;
    all_known(&wanted, known, "InvalidSubnetID.NotFound", "subnet ID")?;
    let filters = Filters::read(
        params,
        &["subnet-id", "vpc-id", "availability-zone", "availabilityZone", "state", "cidr-block"],
    )?;
    let page = Page::results(params, 5, 1000)?;
    let entries = known.values().filter(|subnet| {
        (wanted.is_empty() || wanted.contains(&subnet.id))
            && filters.match_all(&subnet.tags, |name| {
                let value = match name {
                    "subnet-id" => &subnet.id,
                    "vpc-id" => &subnet.vpc,
                    "state" => "available",
                    "cidr-block" => &subnet.cidr,
                    _ => &subnet.zone,
                };
                vec![value.to_owned()]
            })
    });
    let entries = entries.map(|subnet| {
        let taken = view
            .state
            .instances
            .values()
            .filter(|instance| instance.subnet == subnet.id && instance.exists());
        let tree = Tree::new()
            .with("SubnetId", &subnet.id)
            .with("SubnetArn", crate::region::arn(view.scope, "ec2", &format!("subnet/{}", subnet.id)))
            .with("VpcId", &subnet.vpc)
            .with("AvailabilityZone", &subnet.zone)
            .with("CidrBlock", &subnet.cidr)
            .with("AvailableIpAddressCount", subnet.addresses.saturating_sub(taken.count()))
            .with("MapPublicIpOnLaunch", false)
            .with("State", "available")
            .with("OwnerId", &view.scope.account)
            .with("Tags", tags::render(&subnet.tags));
        (subnet.id.clone(), tree)
    });
    Ok(page.reply(view.settings, "Subnets", entries.collect()))
}

pub(crate) fn security_groups(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let known = &view.state.network.security_groups;
    let (wanted, names) = (params.texts_of("GroupIds"), params.texts_of("GroupNames"));
    if let Some(id) = wanted.iter().find(|id| !known.contains_key(*id)) {
        return Err(ApiError::refused(
            "InvalidGroup.NotFound",
            format!("The security group '{id}' does not exist"),
        ));
    }
    if let Some(name) = names.iter().find(|name| !known.values().any(|group| group.name == **name)) {
        return Err(ApiError::refused(
            "InvalidGroup.NotFound",
            format!("The security group '{name}' does not exist"),
        ));
    }
    let filters = Filters::read(params, &["group-id", "group-name", "vpc-id", "owner-id"])?;
    let page = Page::results(params, 5, 1000)?;
    let entries = known.values().filter(|group| {
        (wanted.is_empty() || wanted.contains(&group.id))
            && (names.is_empty() || names.contains(&group.name))
            && filters.match_all(&group.tags, |name| {
                let value = match name {
                    "group-id" => &group.id,
                    "group-name" => &group.name,
                    "owner-id" => &view.scope.account,
                    _ => &group.vpc,
                };
                vec![value.to_owned()]
            })
    });
    let entries = entries.map(|group| {
        let tree = Tree::new()
            .with("GroupId", &group.id)
            .with("GroupName", &group.name)
            .with("VpcId", &group.vpc)
            .with("Description", &group.name)
            .with("OwnerId", &view.scope.account)
            .with("Tags", tags::render(&group.tags));
        (group.id.clone(), tree)
    });
    Ok(page.reply(view.settings, "SecurityGroups", entries.collect()))
}

pub(crate) fn security_group_vpc_associations(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let filters = Filters::read(params, &["group-id", "vpc-id", "state"])?;
    let page = Page::results(params, 5, 1000)?;
    let groups = view.state.network.security_groups.values();
    let pairs = groups.flat_map(|group| group.associated_vpcs.iter().map(move |vpc| (&group.id, vpc)));
    let entries = pairs.filter(|(group, vpc)| {
        filters.match_all(&BTreeMap::new(), |name| match name {
            "group-id" => vec![(*group).clone()],
            "vpc-id" => vec![(*vpc).clone()],
            _ => vec!["associated".to_owned()],
        })
    });
    let entries = entries.map(|(group, vpc)| {
        let tree = Tree::new()
            .with("GroupId", group)
            .with("VpcId", vpc)
            .with("VpcOwnerId", &view.scope.account)
            .with("State", "associated")
            .with("GroupOwnerId", &view.scope.account);
        (format!("{group}/{vpc}"), tree)
    });
    Ok(page.reply(view.settings, "SecurityGroupVpcAssociations", entries.collect()))
}

pub(crate) fn instance_types(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let wanted = params.texts_of("InstanceTypes");
    let known = &view.state.network.instance_types;
    let missing: Vec<&String> = wanted.iter().filter(|name| !known.contains_key(*name)).collect();
    if !missing.is_empty() {
        return Err(ApiError::refused(
            "InvalidInstanceType",
            format!("The following supplied instance types do not exist: {missing:?}").replace('"', ""),
        ));
    }
    let filters = Filters::read(params, &["instance-type", "processor-info.supported-architecture"])?;
    let page = Page::results(params, 5, 100)?;
    let entries = known.values().filter(|kind| {
        (wanted.is_empty() || wanted.contains(&kind.name))
            && filters.match_all(&BTreeMap::new(), |name| {
                vec![if name == "instance-type" { kind.name.clone() } else { kind.architecture.clone() }]
            })
    });
    let entries = entries.map(|kind| {
        let network = Tree::new()
            .with("EfaSupported", kind.efa_interfaces > 0)
            .with_opt("EfaInfo", efa_info(kind.efa_interfaces));
        let tree = Tree::new()
            .with("InstanceType", &kind.name)
            .with("VCpuInfo", Tree::new().with("DefaultVCpus", kind.vcpus))
            .with("MemoryInfo", Tree::new().with("SizeInMiB", kind.memory_mib))
            .with("ProcessorInfo", Tree::new().with("SupportedArchitectures", vec![&kind.architecture]))
            .with("NetworkInfo", network)
            .with_opt("GpuInfo", kind.devices.as_ref().and_then(gpu_info))
            .with_opt("NeuronInfo", kind.devices.as_ref().and_then(neuron_info));
        (kind.name.clone(), tree)
    });
    Ok(page.reply(view.settings, "InstanceTypes", entries.collect()))
}

/// Every zone with a subnet offers every type of the region.
pub(crate) fn instance_type_offerings(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let location = params.text_of("LocationType").unwrap_or("region");
    let network = &view.state.network;
    let places: BTreeSet<&str> = match location {
        "region" => [view.scope.region.as_str()].into(),
        "availability-zone" => network.subnets.values().map(|subnet| subnet.zone.as_str()).collect(),
        other => {
            return Err(ApiError::refused(
                "InvalidParameterValue",
                format!("The location type '{other}' is invalid"),
            ));
        }
    };
    let filters = Filters::read(params, &["instance-type", "location"])?;
    let page = Page::results(params, 5, 1000)?;
    let pairs = network.instance_types.keys().flat_map(|kind| places.iter().map(move |place| (kind, *place)));
    let entries = pairs.filter(|(kind, place)| {
        filters.match_all(&BTreeMap::new(), |name| {
            vec![if name == "instance-type" { (*kind).clone() } else { (*place).to_owned() }]
        })
    });
    let entries = entries.map(|(kind, place)| {
        let tree =
            Tree::new().with("InstanceType", kind).with("LocationType", location).with("Location", place);
        (format!("{kind}/{place}"), tree)
    });
    Ok(page.reply(view.settings, "InstanceTypeOfferings", entries.collect()))
}

fn efa_info(interfaces: u32) -> Option<Tree> {
    (interfaces > 0).then(|| Tree::new().with("MaximumEfaInterfaces", interfaces))
}

fn gpu_info(devices: &Accelerators) -> Option<Tree> {
    let device = Tree::new()
        .with("Name", &devices.name)
        .with("Manufacturer", devices.manufacturer.as_ref()?)
        .with("Count", devices.count)
        .with("MemoryInfo", Tree::new().with("SizeInMiB", devices.size));
    let memory = devices.count * devices.size;
    Some(Tree::new().with("Gpus", vec![device]).with("TotalGpuMemoryInMiB", memory))
}

fn neuron_info(devices: &Accelerators) -> Option<Tree> {
    if devices.manufacturer.is_some() {
        return None;
    }
    let cores = Tree::new().with("Count", devices.size).with("Version", 2);
    let device = Tree::new().with("Name", &devices.name).with("Count", devices.count).with("CoreInfo", cores);
    Some(Tree::new().with("NeuronDevices", vec![device]))
}
