//! The image that instances are launched from, and its volumes.

use capasg_cloud::{ImageBlockDevice, ImageVolume, is_same_device};

/// An image, as AWS describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedImage {
    /// The image's ID.
    pub id: String,
    /// `RootDeviceName`.
    pub root_device: String,
    /// `Architecture`, for example `x86_64`.
    pub architecture: Option<String>,
    /// Whether it boots Windows.
    pub is_windows: bool,
    /// The root volume, and all other block devices.
    pub block_devices: Vec<ImageBlockDevice>,
}

impl ResolvedImage {
    /// Whether a device name may be that of the root volume.
    #[must_use]
    pub fn is_root(&self, device_name: &str) -> bool {
        is_same_device(device_name, &self.root_device)
    }

    /// The root volume. Some images have it under another name than that of their root device.
    #[must_use]
    pub fn root_volume(&self) -> Option<&ImageVolume> {
        self.root().map(|(_, volume)| volume)
    }

    /// The EBS volumes beside the root volume, by device name.
    pub fn other_volumes(&self) -> impl Iterator<Item = (&str, &ImageVolume)> {
        let root = self.root().map(|(name, _)| name);
        self.volumes().filter(move |(name, _)| Some(*name) != root)
    }

    /// The EBS volume with exactly this device name: AWS overrides no other.
    #[must_use]
    pub fn volume(&self, device_name: &str) -> Option<&ImageVolume> {
        self.volumes().find(|(name, _)| *name == device_name).map(|(_, volume)| volume)
    }

    /// Whether it maps a volume of the instance store to the device.
    #[must_use]
    pub fn is_instance_store(&self, device_name: &str) -> bool {
        let mut devices = self.block_devices.iter().filter(|device| device.virtual_name.is_some());
        devices.any(|device| is_same_device(&device.device_name, device_name))
    }

    /// Whether it maps a volume of the instance store to the device of exactly this name.
    #[must_use]
    pub fn maps_instance_store(&self, device_name: &str) -> bool {
        let mut devices = self.block_devices.iter().filter(|device| device.virtual_name.is_some());
        devices.any(|device| device.device_name == device_name)
    }

    fn root(&self) -> Option<(&str, &ImageVolume)> {
        let by_name = self.volumes().find(|(name, _)| *name == self.root_device);
        by_name.or_else(|| self.volumes().find(|(name, _)| self.is_root(name)))
    }

    fn volumes(&self) -> impl Iterator<Item = (&str, &ImageVolume)> {
        self.block_devices.iter().filter_map(|own| Some((own.device_name.as_str(), own.volume.as_ref()?)))
    }
}

#[cfg(test)]
impl ResolvedImage {
    /// An image with EBS volumes of these sizes, each of a snapshot of its own.
    #[must_use]
    pub fn with_volumes(root_device: &str, volumes: &[(&str, i32)]) -> Self {
        let device = |(device_name, gib): &(&str, i32)| ImageBlockDevice {
            device_name: (*device_name).to_owned(),
            virtual_name: None,
            volume: Some(ImageVolume {
                size_gib: Some(*gib),
                volume_type: Some("gp2".to_owned()),
                encrypted: false,
                snapshot_id: Some(format!("snap-of-{device_name}")),
                delete_on_termination: true,
            }),
        };
        Self {
            id: "ami-0a1b2c3d".to_owned(),
            root_device: root_device.to_owned(),
            architecture: None,
            is_windows: false,
            block_devices: volumes.iter().map(device).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_gib(root_device: &str, volumes: &[(&str, i32)]) -> Option<i32> {
        ResolvedImage::with_volumes(root_device, volumes).root_volume()?.size_gib
    }

    #[test]
    fn the_root_volume_is_that_of_the_root_device() {
        assert_eq!(root_gib("/dev/xvda", &[("/dev/xvdb", 1), ("/dev/xvda", 2)]), Some(2));
        assert_eq!(
            root_gib("/dev/sda1", &[("/dev/xvda", 1), ("/dev/sda1", 2)]),
            Some(2),
            "the exact name first"
        );
        assert_eq!(root_gib("/dev/sda1", &[("/dev/sdb", 1), ("/dev/sda", 2)]), Some(2), "another name of it");
        assert_eq!(root_gib("/dev/xvda", &[("/dev/xvdb", 1)]), None);
    }

    #[test]
    fn every_volume_is_the_root_volume_or_another_one() {
        for (volumes, others) in [
            (["/dev/sda1", "/dev/sdb", "/dev/xvda"], ["/dev/sdb", "/dev/xvda"]),
            (["/dev/xvdb", "/dev/sda", "/dev/xvdc"], ["/dev/xvdb", "/dev/xvdc"]),
        ] {
            let image = ResolvedImage::with_volumes("/dev/sda1", &volumes.map(|name| (name, 1)));
            assert_eq!(image.other_volumes().map(|(name, _)| name).collect::<Vec<_>>(), others);
        }
    }

    #[test]
    fn a_volume_of_the_instance_store_is_no_volume() {
        let volumes = [("/dev/sda1", 8), ("/dev/sdb", 1), ("/dev/sdc", 1)];
        let mut image = ResolvedImage::with_volumes("/dev/sda1", &volumes);
        image.block_devices[1].virtual_name = Some("ephemeral0".to_owned());
        image.block_devices.iter_mut().skip(1).for_each(|device| device.volume = None);
        assert!(image.is_instance_store("/dev/xvdb") && !image.is_instance_store("/dev/sdc"));
        assert_eq!((image.other_volumes().count(), image.volume("/dev/sdb")), (0, None));
    }
}
