//! Machine images with their block devices, and the snapshots of these.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Tree;

/// Size in GiB of the root volume of an image without block devices of its own.
const ROOT_GIB: u32 = 20;

/// A machine image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    /// For example `ami-0a1b2c3d`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// Device name of the root volume.
    pub root_device: String,
    /// All block devices; an image with none has a root volume of 20 GiB.
    #[serde(default)]
    pub block_devices: Vec<ImageDevice>,
    /// Whether it boots Windows.
    #[serde(default)]
    pub windows: bool,
    /// Whether it is still copied: nothing can be launched from it.
    #[serde(default)]
    pub pending: bool,
    /// Whether it is shared without its snapshots, as public images are.
    #[serde(default)]
    pub private_snapshots: bool,
    /// Tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// A block device of an image. One with neither a volume nor a virtual name is suppressed (`NoDevice`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageDevice {
    /// For example `/dev/xvdb`.
    pub device_name: String,
    /// `ephemeral0` and so on: a volume of the instance store.
    #[serde(default)]
    pub virtual_name: Option<String>,
    /// An EBS volume.
    #[serde(default)]
    pub ebs: Option<ImageVolume>,
}

/// An EBS volume that instances of an image have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageVolume {
    /// In GiB.
    pub volume_size: u32,
    /// For example `gp2`.
    pub volume_type: String,
    /// Whether its snapshot is encrypted.
    #[serde(default)]
    pub encrypted: bool,
    /// What it is made from.
    #[serde(default)]
    pub snapshot: Option<Snapshot>,
    /// Whether it ends with its instance.
    pub delete_on_termination: bool,
}

/// A snapshot of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Snapshot {
    /// For example `snap-0a1b2c3d`.
    pub id: String,
    /// In GiB: no volume made from it may be smaller.
    pub volume_size: u32,
}

impl ImageVolume {
    /// A volume of type gp2 that ends with its instance.
    #[must_use]
    pub fn new(volume_size: u32, snapshot: Option<Snapshot>) -> Self {
        let volume_type = "gp2".to_owned();
        Self { volume_size, volume_type, encrypted: false, snapshot, delete_on_termination: true }
    }
}

impl ImageDevice {
    /// An EBS volume.
    #[must_use]
    pub fn volume(device_name: &str, volume: ImageVolume) -> Self {
        Self { device_name: device_name.to_owned(), virtual_name: None, ebs: Some(volume) }
    }
}

impl Image {
    /// `State`.
    pub(crate) fn state(&self) -> &'static str {
        if self.pending { "pending" } else { "available" }
    }

    /// An image with the usual root device.
    #[must_use]
    pub fn new(id: &str, name: &str, architecture: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            architecture: architecture.to_owned(),
            root_device: "/dev/xvda".to_owned(),
            block_devices: Vec::new(),
            windows: false,
            pending: false,
            private_snapshots: false,
            tags: BTreeMap::new(),
        }
    }

    /// The same with EBS volumes, each with its device name, its size, and that of the snapshot that it is made from. The
    /// first is the root volume. Bottlerocket has `/dev/xvda` with 2 and 2 GiB, and `/dev/xvdb` with 20 and 1.
    #[must_use]
    pub fn with_volumes(mut self, volumes: &[(&str, u32, u32)]) -> Self {
        let number = self.id.trim_start_matches("ami-").to_owned();
        let devices = volumes.iter().enumerate().map(|(index, (device_name, volume_size, snapshot_size))| {
            let snapshot = Snapshot { id: format!("snap-{number}{index:x}"), volume_size: *snapshot_size };
            ImageDevice::volume(device_name, ImageVolume::new(*volume_size, Some(snapshot)))
        });
        self.block_devices = devices.collect();
        if let Some((root, ..)) = volumes.first() {
            (*root).clone_into(&mut self.root_device);
        }
        self
    }

    /// Its block devices.
    pub(crate) fn devices(&self) -> Vec<ImageDevice> {
        if self.block_devices.is_empty() {
            let root = ImageVolume { volume_type: "gp3".to_owned(), ..ImageVolume::new(ROOT_GIB, None) };
            return vec![ImageDevice::volume(&self.root_device, root)];
        }
        self.block_devices.clone()
    }

    pub(super) fn snapshots(&self) -> impl Iterator<Item = (&Snapshot, bool)> {
        let volumes = self.block_devices.iter().filter_map(|device| device.ebs.as_ref());
        volumes.filter_map(|volume| Some((volume.snapshot.as_ref()?, volume.encrypted)))
    }
}

impl ImageDevice {
    pub(super) fn render(&self) -> Tree {
        let is_suppressed = self.ebs.is_none() && self.virtual_name.is_none();
        let ebs = self.ebs.as_ref().map(|volume| {
            Tree::new()
                .with("DeleteOnTermination", volume.delete_on_termination)
                .with_opt("SnapshotId", volume.snapshot.as_ref().map(|snapshot| snapshot.id.as_str()))
                .with("VolumeSize", volume.volume_size)
                .with("VolumeType", &volume.volume_type)
                .with("Encrypted", volume.encrypted)
        });
        Tree::new()
            .with("DeviceName", &self.device_name)
            .with_opt("VirtualName", self.virtual_name.as_deref())
            .with_opt("Ebs", ebs)
            .with_opt("NoDevice", is_suppressed.then_some(""))
    }
}
