//! Images with their block devices, the snapshots of these, and the mappings of a launch template that encrypt them.

use anyhow::Result;
use capasg_cloud::{BlockDevice, ErrorClass, Image, ImageBlockDevice, ImageVolume, Write};

use crate::{
    fixtures::{TEMPLATE, map, template_data},
    replay::{Replay, Reply, refused, sent},
};

fn volume(device_name: &str, size_gib: i32, snapshot_id: Option<&str>) -> ImageBlockDevice {
    let volume = ImageVolume {
        size_gib: Some(size_gib),
        volume_type: None,
        encrypted: false,
        snapshot_id: snapshot_id.map(str::to_owned),
        delete_on_termination: true,
    };
    ImageBlockDevice { device_name: device_name.to_owned(), virtual_name: None, volume: Some(volume) }
}

#[tokio::test]
async fn every_block_device_of_an_image_is_read() -> Result<()> {
    let images = "<DescribeImagesResponse><imagesSet><item><imageId>ami-1</imageId><rootDeviceName>/dev/xvda\
                  </rootDeviceName><architecture>arm64</architecture><platform>windows</platform>\
                  <blockDeviceMapping>\
                  <item><deviceName>/dev/sdb</deviceName><ebs><volumeSize>5</volumeSize><volumeType>io2</volumeType>\
                  <encrypted>true</encrypted><deleteOnTermination>false</deleteOnTermination></ebs></item>\
                  <item><deviceName>/dev/xvda</deviceName><ebs><volumeSize>30</volumeSize>\
                  <snapshotId>snap-1</snapshotId></ebs></item>\
                  <item><deviceName>/dev/sdc</deviceName><virtualName>ephemeral0</virtualName></item>\
                  <item><deviceName>/dev/sdd</deviceName><noDevice></noDevice></item>\
                  </blockDeviceMapping></item></imagesSet></DescribeImagesResponse>";
    let replay = Replay::new([Reply::ok(images)]);
    let image = replay.cloud().image("ami-1").await?;
    let data = ImageVolume {
        size_gib: Some(5),
        volume_type: Some("io2".to_owned()),
        encrypted: true,
        snapshot_id: None,
        delete_on_termination: false,
    };
    let without = |device_name: &str, virtual_name: Option<&str>| ImageBlockDevice {
        device_name: device_name.to_owned(),
        virtual_name: virtual_name.map(str::to_owned),
        volume: None,
    };
    let expected = Image {
        id: "ami-1".to_owned(),
        root_device_name: Some("/dev/xvda".to_owned()),
        architecture: Some("arm64".to_owned()),
        is_windows: true,
        block_devices: vec![
            ImageBlockDevice { volume: Some(data), ..without("/dev/sdb", None) },
            volume("/dev/xvda", 30, Some("snap-1")),
            without("/dev/sdc", Some("ephemeral0")),
            without("/dev/sdd", None),
        ],
    };
    assert_eq!(image, Some(expected));
    assert_eq!(replay.only()?.members, map(&[("ImageId.1", "ami-1"), ("IncludeDeprecated", "true")]));
    Ok(())
}

/// `Image.State` in the EC2 API reference.
#[tokio::test]
async fn an_image_that_is_not_available_counts_as_missing() -> Result<()> {
    let found = async |state: &str| {
        let item = format!("<item><imageId>ami-1</imageId><imageState>{state}</imageState></item>");
        let images =
            format!("<DescribeImagesResponse><imagesSet>{item}</imagesSet></DescribeImagesResponse>");
        Replay::new([Reply::ok(&images)]).cloud().image("ami-1").await
    };
    for state in ["pending", "failed", "invalid", "error", "disabled", "deregistered", "of-tomorrow"] {
        assert_eq!(found(state).await?, None, "{state}");
    }
    assert!(found("available").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn the_size_of_a_snapshot_is_read() -> Result<()> {
    let snapshots = "<DescribeSnapshotsResponse><snapshotSet><item><snapshotId>snap-1</snapshotId><volumeSize>20\
                     </volumeSize></item></snapshotSet></DescribeSnapshotsResponse>";
    let replay = Replay::new([Reply::ok(snapshots)]);
    assert_eq!(replay.cloud().snapshot_gib("snap-1").await?, Some(20));
    assert_eq!(replay.only()?.members, map(&[("SnapshotId.1", "snap-1")]));
    let absent = Reply::ec2_error(400, "InvalidSnapshot.NotFound", "The snapshot 'snap-1' does not exist.");
    assert_eq!(Replay::new([absent]).cloud().snapshot_gib("snap-1").await?, None);
    let denied = Reply::ec2_error(403, "UnauthorizedOperation", "You are not authorized.");
    let error = refused(Replay::new([denied]).cloud().snapshot_gib("snap-1").await)?;
    assert_eq!(error.class, ErrorClass::Denied);
    Ok(())
}

/// Everything that such a mapping does not set stays as the image has it.
#[tokio::test]
async fn a_mapping_that_encrypts_a_volume_of_the_image_sets_nothing_else() -> Result<()> {
    let mut data = template_data("");
    let of_image = volume("/dev/xvdb", 20, Some("snap-1")).volume;
    let key = Some("alias/nodes".to_owned());
    data.block_devices =
        of_image.iter().map(|volume| BlockDevice::encrypting("/dev/xvdb", volume, key.clone())).collect();
    assert!(data.block_devices.iter().all(BlockDevice::only_encrypts));
    let (_, mut members) = sent(&Write::CreateLaunchTemplateVersion {
        id: TEMPLATE.to_owned(),
        data: Box::new(data),
        description: "d".to_owned(),
        client_token: "t".to_owned(),
    })
    .await?;
    let mapping = "LaunchTemplateData.BlockDeviceMapping.";
    members.retain(|name, _| name.starts_with(mapping));
    let expected = [
        ("1.DeviceName", "/dev/xvdb"),
        ("1.Ebs.VolumeSize", "20"),
        ("1.Ebs.Encrypted", "true"),
        ("1.Ebs.KmsKeyId", "alias/nodes"),
        ("1.Ebs.DeleteOnTermination", "true"),
    ];
    let expected = expected.map(|(name, value)| (format!("{mapping}{name}"), value.to_owned()));
    assert_eq!(members, expected.into());
    Ok(())
}
