//! Images, and the parameters that name them.

use aws_sdk_ssm::Client as SsmClient;
use capasg_cloud::{ErrorClass, Image, Result};

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
    let image = reply.images().iter().find_map(|image| {
        Some(Image {
            id: image.image_id()?.to_owned(),
            root_device_name: image.root_device_name().map(str::to_owned),
            architecture: image.architecture().map(|value| value.as_str().to_owned()),
            is_windows: image.platform().is_some_and(|platform| platform.as_str() == "windows"),
            root_volume_gib: image
                .block_device_mappings()
                .iter()
                .find(|mapping| {
                    mapping.device_name().is_some() && mapping.device_name() == image.root_device_name()
                })
                .and_then(|mapping| mapping.ebs()?.volume_size()),
        })
    });
    Ok(image)
}

/// SSM `GetParameter`, without decryption: an image id is no secret.
pub(crate) async fn parameter(client: &SsmClient, name: &str) -> Result<Option<String>> {
    let api = "GetParameter";
    match call(api, client.get_parameter().name(name).send()).await {
        Err(error) if error.class == ErrorClass::NotFound => Ok(None),
        reply => Ok(reply?.parameter.and_then(|parameter| parameter.value)),
    }
}
