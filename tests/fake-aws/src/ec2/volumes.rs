//! The EBS volumes of an instance: those of its image, as the mappings of the launch template change them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Image, Network, Snapshot};
use crate::Tree;

/// An EBS volume of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// For example `/dev/xvda`.
    pub device_name: String,
    /// In GiB.
    pub size: u32,
    /// For example `gp3`.
    pub volume_type: String,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// The key that the launch template names.
    pub kms_key_id: Option<String>,
    /// The snapshot that it is made from.
    pub snapshot: Option<String>,
    /// Whether it ends with its instance.
    pub delete_on_termination: bool,
}

/// What the image says of a device.
struct Mapped {
    size: u32,
    volume_type: String,
    encrypted: bool,
    snapshot: Option<Snapshot>,
    delete_on_termination: bool,
}

/// The volumes of an instance that is launched from the image and the data of a launch template, or why EC2 launches none.
///
/// "Block device mappings" of the EC2 user guide: a mapping overrides that of the image with the same device name, and what
/// it does not set is that of the image. Names are compared as texts: `/dev/sdb` beside `/dev/xvdb` is another volume.
pub(crate) fn launched(network: &Network, image: Option<&Image>, data: &Tree) -> Result<Vec<Volume>, String> {
    // An image that only its ID is known of (`acceptAnyId`).
    let Some(image) = image else { return Ok(Vec::new()) };
    let mut of_image: BTreeMap<String, Mapped> = BTreeMap::new();
    for device in image.devices() {
        let Some(own) = device.ebs else { continue };
        let mapped = Mapped {
            size: own.volume_size,
            volume_type: own.volume_type,
            encrypted: own.encrypted,
            snapshot: own.snapshot,
            delete_on_termination: own.delete_on_termination,
        };
        of_image.insert(device.device_name, mapped);
    }
    let (mut volumes, mut named) = (Vec::new(), BTreeSet::new());
    for mapping in data.items_of("BlockDeviceMappings") {
        let name = mapping.text_of("DeviceName").unwrap_or_default();
        if !named.insert(name) {
            return Err(format!("{name} is being assigned to multiple times."));
        }
        let before = of_image.remove(name);
        if let Some(ebs) = mapping.get("Ebs") {
            volumes.push(merged(network, name, ebs, before.as_ref())?);
        }
    }
    volumes.extend(of_image.into_iter().map(|(device_name, own)| Volume {
        device_name,
        size: own.size,
        volume_type: own.volume_type,
        encrypted: own.encrypted,
        kms_key_id: None,
        snapshot: own.snapshot.map(|snapshot| snapshot.id),
        delete_on_termination: own.delete_on_termination,
    }));
    volumes.sort_by(|one, other| one.device_name.cmp(&other.device_name));
    Ok(volumes)
}

fn merged(network: &Network, name: &str, ebs: &Tree, before: Option<&Mapped>) -> Result<Volume, String> {
    let named = ebs.text_of("SnapshotId");
    // The snapshot of a test that did not put it is as large as its volume.
    let other = named.map(|id| network.snapshot(id).ok_or_else(|| id.to_owned()));
    let (snapshot, encrypted) = match (&other, before) {
        (Some(Ok(snapshot)), _) => (Some(snapshot.clone()), false),
        (None, Some(before)) => (before.snapshot.clone(), before.encrypted),
        (Some(Err(_)), _) | (None, None) => (None, false),
    };
    let asked = ebs.number_of("VolumeSize").and_then(|size| u32::try_from(size).ok());
    let of_image = before.filter(|_| named.is_none()).map(|before| before.size);
    let size = asked.or(of_image).or_else(|| snapshot.as_ref().map(|snapshot| snapshot.volume_size));
    if size.is_none() && named.is_none() {
        return Err(format!("Either snapshot ID or volume size must be provided for: {name}"));
    }
    let size = size.unwrap_or(1);
    if let Some(Snapshot { id, volume_size }) = snapshot.as_ref().filter(|own| size < own.volume_size) {
        return Err(format!(
            "Volume of size {size}GB is smaller than snapshot '{id}', expect size >= {volume_size}GB"
        ));
    }
    Ok(Volume {
        device_name: name.to_owned(),
        size,
        volume_type: ebs
            .text_of("VolumeType")
            .or(before.map(|before| before.volume_type.as_str()))
            .unwrap_or("gp2")
            .to_owned(),
        encrypted: encrypted || ebs.flag_of("Encrypted") == Some(true),
        kms_key_id: ebs.text_of("KmsKeyId").map(str::to_owned),
        snapshot: named.map(str::to_owned).or(snapshot.map(|snapshot| snapshot.id)),
        delete_on_termination: ebs
            .flag_of("DeleteOnTermination")
            .or(before.map(|before| before.delete_on_termination))
            .unwrap_or(true),
    })
}
