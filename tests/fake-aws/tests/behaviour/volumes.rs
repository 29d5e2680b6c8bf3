//! Images with several block devices, and the volumes of instances that are launched from them.

use capasg_fake_aws::{
    Tree,
    ec2::{Image, ImageDevice, ImageVolume, Volume},
};

use crate::kit::{Kit, data, group, texts};

const IMAGE: &str = "ami-0e0e0e0e";

fn bottlerocket() -> Image {
    Image::new(IMAGE, "bottlerocket", "x86_64").with_volumes(&[("/dev/xvda", 2, 2), ("/dev/xvdb", 20, 1)])
}

fn mapping(name: &str, ebs: Tree) -> Tree {
    Tree::new().with("DeviceName", name).with("Ebs", ebs)
}

/// The volumes of an instance that is launched from the image with these mappings, or the words of the failed launch.
fn launch(kit: &Kit, image: Image, mappings: Vec<Tree>) -> Result<Vec<Volume>, String> {
    let data = data().with("ImageId", &image.id).with("BlockDeviceMappings", mappings);
    kit.simulator.put_image(&kit.scope, image);
    kit.template("nodes", data);
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 1));
    kit.seconds(3);
    let launched = kit.simulator.dump(None).remove(0).instances.pop();
    launched.map(|one| one.volumes).ok_or_else(|| {
        let activities = kit.activities("pool");
        activities[0].text_of("StatusMessage").unwrap_or_default().to_owned()
    })
}

/// Device name, size and whether it is encrypted, of each volume.
fn shown(volumes: &[Volume]) -> Vec<(&str, u32, bool)> {
    volumes.iter().map(|own| (own.device_name.as_str(), own.size, own.encrypted)).collect()
}

#[test]
fn block_devices_of_images_are_described() {
    let kit = Kit::new();
    let without = |name: &str, virtual_name: Option<&str>| ImageDevice {
        device_name: name.to_owned(),
        virtual_name: virtual_name.map(str::to_owned),
        ebs: None,
    };
    let mut windows = Image::new(IMAGE, "windows", "x86_64").with_volumes(&[("/dev/sda1", 30, 30)]);
    windows.windows = true;
    windows.block_devices.extend([without("xvdca", Some("ephemeral0")), without("xvdcb", None)]);
    kit.simulator.put_image(&kit.scope, windows);
    let reply = kit.ec2("DescribeImages", Tree::new().with("ImageIds", vec![IMAGE, "ami-0a1b2c3d"]));
    let [usual, windows] = reply.items_of("Images") else { panic!("{reply:?}") };
    assert_eq!(usual.get("Platform"), None);
    let root = &usual.items_of("BlockDeviceMappings")[0];
    assert_eq!(root.text_of("DeviceName"), Some("/dev/xvda"));
    assert_eq!(root.at("Ebs.VolumeSize").unwrap().text(), Some("20"));
    assert_eq!(
        (windows.text_of("Platform"), windows.text_of("RootDeviceName")),
        (Some("windows"), Some("/dev/sda1"))
    );
    let devices = windows.items_of("BlockDeviceMappings");
    assert_eq!(texts(devices, "DeviceName"), ["/dev/sda1", "xvdca", "xvdcb"]);
    assert_eq!(devices[0].at("Ebs.SnapshotId").unwrap().text(), Some("snap-0e0e0e0e0"));
    assert_eq!(devices[1].text_of("VirtualName"), Some("ephemeral0"));
    assert!(devices[2].get("NoDevice").is_some() && devices[1].get("NoDevice").is_none());
}

#[test]
fn snapshots_are_described_unless_they_are_not_shared() {
    let kit = Kit::new();
    let sizes = |ids: Vec<&str>| {
        let reply = kit.try_ec2("DescribeSnapshots", Tree::new().with("SnapshotIds", ids))?;
        Ok::<_, capasg_fake_aws::ApiError>(texts(reply.items_of("Snapshots"), "VolumeSize"))
    };
    kit.simulator.put_snapshot(&kit.scope, "snap-0a1b2c3d", 50);
    assert_eq!(sizes(vec!["snap-0e0e0e0e1"]).unwrap_err().code, "InvalidSnapshot.NotFound");
    kit.simulator.put_image(&kit.scope, bottlerocket());
    assert_eq!(sizes(vec!["snap-0e0e0e0e1", "snap-0a1b2c3d"]).unwrap(), ["50", "1"]);
    assert_eq!(sizes(Vec::new()).unwrap(), ["50", "2", "1"]);
    kit.simulator.put_image(&kit.scope, Image { private_snapshots: true, ..bottlerocket() });
    assert_eq!(sizes(vec!["snap-0e0e0e0e1"]).unwrap_err().code, "InvalidSnapshot.NotFound");
}

#[test]
fn a_mapping_changes_what_it_sets_of_a_volume_of_the_image() {
    let volumes = launch(&Kit::new(), bottlerocket(), Vec::new()).unwrap();
    assert_eq!(shown(&volumes), [("/dev/xvda", 2, false), ("/dev/xvdb", 20, false)]);
    let root = Tree::new().with("VolumeType", "gp3").with("Encrypted", true);
    let encrypted = Tree::new().with("Encrypted", true).with("KmsKeyId", "alias/nodes");
    let mappings = vec![mapping("/dev/xvda", root), mapping("/dev/xvdb", encrypted)];
    let volumes = launch(&Kit::new(), bottlerocket(), mappings).unwrap();
    assert_eq!(shown(&volumes), [("/dev/xvda", 2, true), ("/dev/xvdb", 20, true)]);
    let kept: Vec<_> =
        volumes.iter().map(|own| (own.volume_type.as_str(), own.snapshot.as_deref())).collect();
    assert_eq!(kept, [("gp3", Some("snap-0e0e0e0e0")), ("gp2", Some("snap-0e0e0e0e1"))]);
    assert_eq!(volumes[1].kms_key_id.as_deref(), Some("alias/nodes"));
    // EC2 compares the names as texts.
    let other = vec![mapping("/dev/sdb", Tree::new().with("VolumeSize", 8))];
    let volumes = launch(&Kit::new(), bottlerocket(), other).unwrap();
    assert_eq!(shown(&volumes), [("/dev/sdb", 8, false), ("/dev/xvda", 2, false), ("/dev/xvdb", 20, false)]);
    let none = vec![Tree::new().with("DeviceName", "/dev/xvdb").with("NoDevice", "")];
    let volumes = launch(&Kit::new(), bottlerocket(), none).unwrap();
    assert_eq!(shown(&volumes), [("/dev/xvda", 2, false)]);
}

#[test]
fn a_volume_of_an_encrypted_snapshot_is_encrypted() {
    let mut image = bottlerocket();
    image.block_devices[1].ebs.as_mut().unwrap().encrypted = true;
    image.block_devices.push(ImageDevice::volume("/dev/xvdc", ImageVolume::new(9, None)));
    let volumes = launch(&Kit::new(), image, Vec::new()).unwrap();
    assert_eq!(shown(&volumes), [("/dev/xvda", 2, false), ("/dev/xvdb", 20, true), ("/dev/xvdc", 9, false)]);
}

#[test]
fn mappings_that_ec2_cannot_launch_fail_the_launch() {
    let size = |gib: u32| Tree::new().with("VolumeSize", gib);
    for (mappings, words) in [
        (
            vec![mapping("/dev/xvda", size(1))],
            "Volume of size 1GB is smaller than snapshot 'snap-0e0e0e0e0', expect size >= 2GB",
        ),
        (
            vec![mapping("/dev/sdf", size(49).with("SnapshotId", "snap-0a1b2c3d"))],
            "Volume of size 49GB is smaller than snapshot 'snap-0a1b2c3d', expect size >= 50GB",
        ),
        (
            vec![mapping("/dev/xvda", size(8)), mapping("/dev/xvda", size(9))],
            "/dev/xvda is being assigned to multiple times.",
        ),
        (
            vec![mapping("/dev/sdf", Tree::new().with("Encrypted", true))],
            "Either snapshot ID or volume size must be provided for: /dev/sdf",
        ),
    ] {
        let kit = Kit::new();
        kit.simulator.put_snapshot(&kit.scope, "snap-0a1b2c3d", 50);
        let failed = launch(&kit, bottlerocket(), mappings).unwrap_err();
        assert_eq!(failed, format!("{words} Launching EC2 instance failed."));
    }
    // Below the size that the image has for the volume, and not below that of its snapshot.
    let volumes = launch(&Kit::new(), bottlerocket(), vec![mapping("/dev/xvdb", size(10))]).unwrap();
    assert_eq!(shown(&volumes), [("/dev/xvda", 2, false), ("/dev/xvdb", 10, false)]);
}
