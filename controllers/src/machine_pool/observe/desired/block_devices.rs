//! The block devices of the launch template: the volumes of the spec, and the other volumes of the image, which are encrypted
//! as the root volume is.

use capasg_api::pool::{MachineTemplate, ResolvedVolume, VolumeSettings};
use capasg_cloud::{BlockDevice, ImageVolume};

use crate::machine_pool::model::ResolvedImage;

/// The mappings, that of the root device first. AWS takes what they do not set from those of the image.
pub(super) fn block_devices(machine: &MachineTemplate, image: &ResolvedImage) -> Vec<BlockDevice> {
    let (root, data_volumes) = (machine.root_volume(), machine.data_volumes());
    let is_set = |name: &str| data_volumes.iter().any(|volume| volume.device_name.as_deref() == Some(name));
    let of_image = image.other_volumes().filter(|(name, _)| !is_set(name));
    let mut of_image: Vec<BlockDevice> =
        of_image.filter_map(|(name, volume)| encrypting(&root.settings, name, volume)).collect();
    of_image.sort_by(|one, other| one.device_name.cmp(&other.device_name));
    std::iter::once(device(&root, &image.root_device))
        .chain(data_volumes.iter().map(|v| device(v, v.device_name.as_deref().unwrap_or_default())))
        .chain(of_image)
        .collect()
}

/// The mapping that encrypts a volume of the image, if it needs one: that of an encrypted snapshot is encrypted anyway, with
/// the key of the snapshot.
fn encrypting(root: &VolumeSettings, device_name: &str, volume: &ImageVolume) -> Option<BlockDevice> {
    let is_needed = root.encrypted == Some(true) && (!volume.encrypted || root.kms_key_id.is_some());
    is_needed.then(|| BlockDevice::encrypting(device_name, volume, root.kms_key_id.clone()))
}

fn device(volume: &ResolvedVolume, device_name: &str) -> BlockDevice {
    let settings = &volume.settings;
    BlockDevice {
        device_name: device_name.to_owned(),
        size_gib: settings.size_gib,
        volume_type: settings.volume_type.as_str().to_owned(),
        iops: settings.iops,
        throughput_mibps: settings.throughput_mibps,
        encrypted: settings.encrypted,
        kms_key_id: settings.kms_key_id.clone(),
        snapshot_id: volume.snapshot_id.clone(),
        delete_on_termination: settings.delete_on_termination,
    }
}

#[cfg(test)]
mod tests {
    use capasg_api::pool::{DataVolume, RootVolume, VolumeEncryption};

    use super::*;

    fn bottlerocket() -> ResolvedImage {
        ResolvedImage::with_volumes("/dev/xvda", &[("/dev/xvdb", 20), ("/dev/xvda", 2)])
    }

    /// Device name, size, type, whether it is encrypted, and the key, of each mapping.
    fn mappings(machine: &MachineTemplate, image: &ResolvedImage) -> Vec<String> {
        let shown = |own: BlockDevice| {
            assert_eq!(own.snapshot_id, None, "the account may have no access to the snapshot of an image");
            let size = own.size_gib.map_or_else(|| "-".to_owned(), |gib| gib.to_string());
            let key = own.kms_key_id.unwrap_or_default();
            format!("{} {size} {} {:?} {key}", own.device_name, own.volume_type, own.encrypted)
        };
        block_devices(machine, image).into_iter().map(shown).collect()
    }

    fn root(edit: impl FnOnce(&mut RootVolume)) -> MachineTemplate {
        let mut root = RootVolume::default();
        edit(&mut root);
        MachineTemplate { root_volume: Some(root), ..MachineTemplate::default() }
    }

    #[test]
    fn the_other_volumes_of_an_image_are_encrypted_as_its_root_volume() {
        let image = bottlerocket();
        let of_root = "/dev/xvda - gp3 Some(true) ";
        assert_eq!(mappings(&MachineTemplate::default(), &image), [of_root, "/dev/xvdb 20  Some(true) "]);
        let keyed = root(|root| root.kms_key_id = Some("alias/nodes".to_owned()));
        let of_keyed = ["/dev/xvda - gp3 Some(true) alias/nodes", "/dev/xvdb 20  Some(true) alias/nodes"];
        assert_eq!(mappings(&keyed, &image), of_keyed);
        let free = root(|root| root.encryption = Some(VolumeEncryption::AccountDefault));
        assert_eq!(mappings(&free, &image), ["/dev/xvda - gp3 None "]);

        let mut encrypted = bottlerocket();
        encrypted.block_devices[0].volume.as_mut().unwrap().encrypted = true;
        assert_eq!(mappings(&MachineTemplate::default(), &encrypted), [of_root], "it is encrypted anyway");
        assert_eq!(mappings(&keyed, &encrypted), of_keyed, "with another key");
    }

    #[test]
    fn a_volume_of_the_spec_overrides_that_of_the_image_with_its_name() {
        let volume = |name: &str| DataVolume {
            device_name: name.to_owned(),
            size_gib: Some(100),
            ..DataVolume::default()
        };
        let machine = |name: &str| MachineTemplate { data_volumes: vec![volume(name)], ..root(|_| {}) };
        let of_root = "/dev/xvda - gp3 Some(true) ";
        assert_eq!(
            mappings(&machine("/dev/xvdb"), &bottlerocket()),
            [of_root, "/dev/xvdb 100 gp3 Some(true) "]
        );
        // Two volumes for AWS.
        assert_eq!(
            mappings(&machine("/dev/sdb"), &bottlerocket()),
            [of_root, "/dev/sdb 100 gp3 Some(true) ", "/dev/xvdb 20  Some(true) "]
        );
    }

    #[test]
    fn an_image_with_a_root_volume_alone_gets_one_mapping() {
        for (root_device, volume) in [("/dev/sda1", "/dev/sda1"), ("/dev/sda1", "/dev/sda")] {
            let mut image = ResolvedImage::with_volumes(root_device, &[(volume, 8), ("/dev/sdb", 1)]);
            image.block_devices[1].volume = None;
            image.block_devices[1].virtual_name = Some("ephemeral0".to_owned());
            assert_eq!(mappings(&MachineTemplate::default(), &image), ["/dev/sda1 - gp3 Some(true) "]);
        }
        let none = ResolvedImage::with_volumes("/dev/xvda", &[]);
        assert_eq!(mappings(&MachineTemplate::default(), &none).len(), 1);
    }
}
