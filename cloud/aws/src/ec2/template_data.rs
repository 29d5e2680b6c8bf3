//! What a launch-template version holds, in EC2's form.

use std::collections::BTreeMap;

use super::filters::tag_map;
use aws_sdk_ec2::types::{
    InstanceType, LaunchTemplateBlockDeviceMapping, LaunchTemplateBlockDeviceMappingRequest,
    LaunchTemplateEbsBlockDeviceRequest, LaunchTemplateHttpTokensState,
    LaunchTemplateIamInstanceProfileSpecificationRequest, LaunchTemplateInstanceMetadataEndpointState,
    LaunchTemplateInstanceMetadataOptions as Options, LaunchTemplateInstanceMetadataOptionsRequest,
    LaunchTemplateInstanceMetadataProtocolIpv6, LaunchTemplateInstanceMetadataTagsState,
    LaunchTemplateTagSpecificationRequest, RequestLaunchTemplateData, ResourceType,
    ResponseLaunchTemplateData, Tag, VolumeType,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use capasg_cloud::{BlockDevice, LaunchTemplateData, MetadataOptions, UserData};

/// The members to send. User data is sent in base64.
pub(crate) fn request(data: &LaunchTemplateData) -> RequestLaunchTemplateData {
    RequestLaunchTemplateData::builder()
        .image_id(&data.image_id)
        .instance_type(InstanceType::from(data.instance_type.as_str()))
        .set_iam_instance_profile(data.iam_instance_profile.as_deref().map(instance_profile))
        .set_key_name(data.key_name.clone())
        .set_security_group_ids(some(data.security_group_ids.clone()))
        .set_block_device_mappings(some(data.block_devices.iter().map(block_device).collect()))
        .metadata_options(metadata_options(&data.metadata_options))
        .set_user_data(encoded(&data.user_data))
        .set_tag_specifications(tag_specifications(data))
        .build()
}

/// What a version holds, without its user data: absent members have the value that means so.
pub(crate) fn content(data: &ResponseLaunchTemplateData) -> LaunchTemplateData {
    let profile = data.iam_instance_profile();
    let options = data.metadata_options();
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    LaunchTemplateData {
        image_id: text(data.image_id()),
        instance_type: text(data.instance_type().map(InstanceType::as_str)),
        iam_instance_profile: profile.and_then(|own| own.name().or(own.arn())).map(str::to_owned),
        key_name: data.key_name().map(str::to_owned),
        security_group_ids: data.security_group_ids().to_vec(),
        block_devices: data.block_device_mappings().iter().filter_map(device).collect(),
        metadata_options: MetadataOptions {
            http_tokens: text(
                options.and_then(Options::http_tokens).map(LaunchTemplateHttpTokensState::as_str),
            ),
            http_put_response_hop_limit: options
                .and_then(Options::http_put_response_hop_limit)
                .unwrap_or_default(),
            http_endpoint: text(
                options
                    .and_then(Options::http_endpoint)
                    .map(LaunchTemplateInstanceMetadataEndpointState::as_str),
            ),
            http_protocol_ipv6: text(
                options
                    .and_then(Options::http_protocol_ipv6)
                    .map(LaunchTemplateInstanceMetadataProtocolIpv6::as_str),
            ),
            instance_metadata_tags: text(
                options
                    .and_then(Options::instance_metadata_tags)
                    .map(LaunchTemplateInstanceMetadataTagsState::as_str),
            ),
        },
        user_data: UserData::default(),
        tags: data
            .tag_specifications()
            .iter()
            .find(|own| own.resource_type() == Some(&ResourceType::Instance))
            .map(|own| tag_map(own.tags()))
            .unwrap_or_default(),
        spot: data
            .tag_specifications()
            .iter()
            .any(|own| own.resource_type() == Some(&ResourceType::SpotInstancesRequest)),
    }
}

fn device(mapping: &LaunchTemplateBlockDeviceMapping) -> Option<BlockDevice> {
    let ebs = mapping.ebs()?;
    Some(BlockDevice {
        device_name: mapping.device_name()?.to_owned(),
        size_gib: ebs.volume_size(),
        volume_type: ebs.volume_type().map(|value| value.as_str().to_owned()).unwrap_or_default(),
        iops: ebs.iops(),
        throughput_mibps: ebs.throughput(),
        encrypted: ebs.encrypted(),
        kms_key_id: ebs.kms_key_id().map(str::to_owned),
        snapshot_id: ebs.snapshot_id().map(str::to_owned),
        delete_on_termination: ebs.delete_on_termination().unwrap_or(true),
    })
}

/// User data as it is sent; `None` if there is none.
pub(crate) fn encoded(user_data: &UserData) -> Option<String> {
    let bytes = user_data.expose();
    (!bytes.is_empty()).then(|| STANDARD.encode(bytes))
}

/// Tags in EC2's form.
pub(crate) fn tags(tags: &BTreeMap<String, String>) -> Option<Vec<Tag>> {
    some(tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect())
}

fn instance_profile(name_or_arn: &str) -> LaunchTemplateIamInstanceProfileSpecificationRequest {
    let builder = LaunchTemplateIamInstanceProfileSpecificationRequest::builder();
    if name_or_arn.starts_with("arn:") { builder.arn(name_or_arn) } else { builder.name(name_or_arn) }.build()
}

fn block_device(device: &BlockDevice) -> LaunchTemplateBlockDeviceMappingRequest {
    let volume_type = Some(device.volume_type.as_str()).filter(|value| !value.is_empty());
    let ebs = LaunchTemplateEbsBlockDeviceRequest::builder()
        .set_volume_size(device.size_gib)
        .set_volume_type(volume_type.map(VolumeType::from))
        .set_iops(device.iops)
        .set_throughput(device.throughput_mibps)
        .set_encrypted(device.encrypted)
        .set_kms_key_id(device.kms_key_id.clone())
        .set_snapshot_id(device.snapshot_id.clone())
        .delete_on_termination(device.delete_on_termination)
        .build();
    LaunchTemplateBlockDeviceMappingRequest::builder().device_name(&device.device_name).ebs(ebs).build()
}

fn metadata_options(options: &MetadataOptions) -> LaunchTemplateInstanceMetadataOptionsRequest {
    LaunchTemplateInstanceMetadataOptionsRequest::builder()
        .http_tokens(LaunchTemplateHttpTokensState::from(options.http_tokens.as_str()))
        .http_put_response_hop_limit(options.http_put_response_hop_limit)
        .http_endpoint(LaunchTemplateInstanceMetadataEndpointState::from(options.http_endpoint.as_str()))
        .http_protocol_ipv6(LaunchTemplateInstanceMetadataProtocolIpv6::from(
            options.http_protocol_ipv6.as_str(),
        ))
        .instance_metadata_tags(LaunchTemplateInstanceMetadataTagsState::from(
            options.instance_metadata_tags.as_str(),
        ))
        .build()
}

/// The tags of what the template launches: instances, their volumes and network interfaces, and Spot Instance requests.
fn tag_specifications(data: &LaunchTemplateData) -> Option<Vec<LaunchTemplateTagSpecificationRequest>> {
    let tags = tags(&data.tags)?;
    let specification = |resource_type| {
        LaunchTemplateTagSpecificationRequest::builder()
            .resource_type(resource_type)
            .set_tags(Some(tags.clone()))
            .build()
    };
    let always = [ResourceType::Instance, ResourceType::Volume, ResourceType::NetworkInterface];
    let of_spot = data.spot.then_some(ResourceType::SpotInstancesRequest);
    Some(always.into_iter().chain(of_spot).map(specification).collect())
}

/// A list member, absent if empty.
fn some<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}
