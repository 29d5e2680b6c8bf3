//! Images, their snapshots, and the parameters that name them.

use aws_sdk_ec2::types::{BlockDeviceMapping, ImageState, Snapshot};
use aws_sdk_ssm::Client as SsmClient;
use capasg_cloud::{ErrorClass, Image, ImageBlockDevice, ImageVolume, Result};

use crate::call::call;

/// `DescribeImages` of one image; `None` if no such image is available to these credentials.
pub(crate) async fn image(client: &aws_sdk_ec2::Client, id: &str) -> Result<Option<Image>> {
    let api = "DescribeImages";
    // A deprecated image still launches.
    let request = client.describe_images().image_ids(id).include_deprecated(true);
    let reply = match call(api, request.send()).await {
        // InvalidAMIID.NotFound; InvalidAMIID.Unavailable is one that was deregistered.
        Err(error) if error.class == ErrorClass::NotFound || error.code == "InvalidAMIID.Unavailable" => {
            return Ok(None);
        }
        reply => reply?,
    };
    // Nothing can be launched from an image that is still copied, that failed, or that is disabled.
    let usable = |image: &&aws_sdk_ec2::types::Image| {
        image.state().is_none_or(|state| *state == ImageState::Available)
    };
    let image = reply.images().iter().filter(usable).find_map(|image| {
        Some(Image {
            id: image.image_id()?.to_owned(),
            root_device_name: image.root_device_name().map(str::to_owned),
            architecture: image.architecture().map(|value| value.as_str().to_owned()),
            is_windows: image.platform().is_some_and(|platform| platform.as_str() == "windows"),
            block_devices: image.block_device_mappings().iter().filter_map(block_device).collect(),
        })
    });
    Ok(image)
}

fn block_device(mapping: &BlockDeviceMapping) -> Option<ImageBlockDevice> {
    Some(ImageBlockDevice {
        device_name: mapping.device_name()?.to_owned(),
        virtual_name: mapping.virtual_name().map(str::to_owned),
        volume: mapping.ebs().map(|ebs| ImageVolume {
            size_gib: ebs.volume_size(),
            volume_type: ebs.volume_type().map(|value| value.as_str().to_owned()),
            encrypted: ebs.encrypted().unwrap_or_default(),
            snapshot_id: ebs.snapshot_id().map(str::to_owned),
            delete_on_termination: ebs.delete_on_termination().unwrap_or(true),
        }),
    })
}

/// `DescribeSnapshots` of one snapshot; `None` if no such snapshot is available to these credentials.
pub(crate) async fn snapshot_gib(client: &aws_sdk_ec2::Client, id: &str) -> Result<Option<i32>> {
    match call("DescribeSnapshots", client.describe_snapshots().snapshot_ids(id).send()).await {
        Err(error) if error.class == ErrorClass::NotFound => Ok(None),
        reply => Ok(reply?.snapshots().iter().find_map(Snapshot::volume_size)),
    }
}

/// SSM `GetParameter`, without decryption: an image id is no secret.
pub(crate) async fn parameter(client: &SsmClient, name: &str) -> Result<Option<String>> {
    let api = "GetParameter";
    match call(api, client.get_parameter().name(name).send()).await {
        Err(error) if error.class == ErrorClass::NotFound => Ok(None),
        reply => Ok(reply?.parameter.and_then(|parameter| parameter.value)),
    }
}
