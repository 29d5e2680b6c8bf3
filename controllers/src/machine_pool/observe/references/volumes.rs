//! Whether the volumes of a spec fit the image, before AWS is asked to launch them, and which of them a node stores the data
//! of pods on.

use capasg_api::{
    conditions::{Finding, LAUNCH_TEMPLATE_READY},
    pool::{MachineTemplate, ResolvedVolume},
    reasons::launch_template_ready::{DEVICE_NAME_CONFLICT, VOLUME_NOT_FOUND, VOLUME_TOO_SMALL},
};
use capasg_cloud::{ImageVolume, Inventory, is_same_device};

use super::place::Place;
use crate::machine_pool::model::{References, ResolvedImage};

impl References {
    /// Reports volumes that AWS cannot launch, and determines the ephemeral storage of a node.
    pub(super) async fn check_volumes(&mut self, place: &Place<'_>) {
        let machine = &place.spec().machine;
        let image = self.image.clone();
        if let Some(image) = &image {
            if let Some(message) = too_small(place.inventory, machine, image).await {
                self.miss(LAUNCH_TEMPLATE_READY, VOLUME_TOO_SMALL, message);
            }
            match conflict(machine, image) {
                Some(Conflict { message, is_rejected: true }) => {
                    self.miss(LAUNCH_TEMPLATE_READY, DEVICE_NAME_CONFLICT, message);
                }
                // AWS launches both, and some operating systems tell them apart.
                Some(Conflict { message, .. }) => {
                    self.find(Finding::new(LAUNCH_TEMPLATE_READY, false, DEVICE_NAME_CONFLICT, message));
                }
                None => {}
            }
        }
        match ephemeral_storage(machine, image.as_ref()) {
            Storage::Gib(gib) => self.ephemeral_storage_gib = Some(gib),
            Storage::OfSnapshot(id) => {
                let read = place.inventory.snapshot_gib(&id).await;
                if let Err(error) = &read {
                    self.retry(error);
                }
                self.ephemeral_storage_gib = read.ok().flatten();
                self.ephemeral_storage_is_unread = self.ephemeral_storage_gib.is_none();
            }
            Storage::Unknown => {}
            // Nodes work, and an autoscaler has to be told.
            Storage::None(message) => {
                self.find(Finding::new(LAUNCH_TEMPLATE_READY, false, VOLUME_NOT_FOUND, message));
            }
        }
    }
}

/// A device name of a data volume that is also that of a volume of the image.
struct Conflict {
    message: String,
    /// Whether AWS rejects it: two mappings for one device name.
    is_rejected: bool,
}

/// The first conflict of the names in `dataVolumes` with those of the image. The name of another volume of the image is
/// none: it overrides that volume.
fn conflict(machine: &MachineTemplate, image: &ResolvedImage) -> Option<Conflict> {
    let names = machine.data_volumes.iter().map(|volume| volume.device_name.as_str());
    let of_root = names.clone().find(|name| image.is_root(name)).map(|name| Conflict {
        message: format!(
            "spec.machine.dataVolumes has {name}, and {} is the root device of image {}. Use spec.machine.rootVolume for \
             the root volume, or another device name.",
            image.root_device, image.id
        ),
        is_rejected: name == image.root_device,
    });
    // EC2 rejects a snapshot for a device that the image maps to the instance store.
    let of_instance_store = || {
        let mut volumes = machine.data_volumes.iter().filter(|volume| volume.snapshot_id.is_some());
        let name =
            volumes.find(|volume| image.maps_instance_store(&volume.device_name))?.device_name.as_str();
        Some(Conflict {
            message: format!(
                "spec.machine.dataVolumes has {name} with a snapshotID, and image {} maps this device to a volume of the \
                 instance store. Use another device name.",
                image.id
            ),
            is_rejected: true,
        })
    };
    of_root.or_else(of_instance_store).or_else(|| {
        let other = |name: &str| {
            let mut volumes = image.other_volumes().map(|(of_image, _)| of_image);
            let of_image = volumes.find(|of_image| *of_image != name && is_same_device(of_image, name))?;
            Some(format!(
                "spec.machine.dataVolumes has {name}, and image {} has a volume on {of_image}, which may be the same \
                 device for the operating system. Use {of_image} to override the volume of the image, or another device \
                 name.",
                image.id
            ))
        };
        let message = names.clone().filter(|name| image.volume(name).is_none()).find_map(other)?;
        Some(Conflict { message, is_rejected: false })
    })
}

/// The first volume that is smaller than its snapshot. A size that cannot be read is validated by AWS.
async fn too_small(
    inventory: &Inventory,
    machine: &MachineTemplate,
    image: &ResolvedImage,
) -> Option<String> {
    let root = std::iter::once(machine.root_volume());
    for volume in root.chain(machine.data_volumes()) {
        let Some(size) = volume.settings.size_gib else { continue };
        let Some(snapshot) = snapshot(&volume, image).filter(|snapshot| !snapshot.fits(size)) else {
            continue;
        };
        let least = inventory.snapshot_gib(snapshot.id).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "failed to read the snapshot; AWS validates the volume");
            None
        });
        let Some(least) = least.filter(|least| size < *least) else { continue };
        let (path, of_image) = match &volume.device_name {
            None => ("spec.machine.rootVolume".to_owned(), format!(" of image {}", image.id)),
            Some(name) if volume.snapshot_id.is_none() => {
                (format!("spec.machine.dataVolumes[{name}]"), format!(" of image {}", image.id))
            }
            Some(name) => (format!("spec.machine.dataVolumes[{name}]"), String::new()),
        };
        return Some(format!(
            "{path}.sizeGiB is {size}, and snapshot {}{of_image} has {least} GiB: a volume cannot be smaller than its \
             snapshot. Set sizeGiB to {least} or more.",
            snapshot.id
        ));
    }
    None
}

/// The snapshot that a volume is created from.
struct VolumeSnapshot<'a> {
    id: &'a str,
    /// The size of the volume in the image, which its snapshot does not exceed.
    most: Option<i32>,
}

impl VolumeSnapshot<'_> {
    /// Whether a size is known to be sufficient.
    fn fits(&self, size: i32) -> bool {
        self.most.is_some_and(|most| size >= most)
    }
}

fn snapshot<'a>(volume: &'a ResolvedVolume, image: &'a ResolvedImage) -> Option<VolumeSnapshot<'a>> {
    if let Some(id) = &volume.snapshot_id {
        return Some(VolumeSnapshot { id, most: None });
    }
    let of_image: &ImageVolume = match &volume.device_name {
        None => image.root_volume()?,
        Some(name) => image.volume(name)?,
    };
    Some(VolumeSnapshot { id: of_image.snapshot_id.as_deref()?, most: of_image.size_gib })
}

/// The ephemeral storage of a node.
#[derive(Debug, PartialEq, Eq)]
enum Storage {
    /// The size of the volume in GiB.
    Gib(i32),
    /// That of this snapshot.
    OfSnapshot(String),
    /// It cannot be known: the image was not read, or it is a volume of the instance store.
    Unknown,
    /// There is no such volume.
    None(String),
}

/// The size of the volume that `ephemeralStorageDeviceName` names, which is the root volume if it names none. EC2 tells
/// device names apart and attaches both volumes, so that one with exactly this name comes before those which may be the
/// same device for the operating system.
fn ephemeral_storage(machine: &MachineTemplate, image: Option<&ResolvedImage>) -> Storage {
    let known = |size: Option<i32>| size.map_or(Storage::Unknown, Storage::Gib);
    let of_root = || {
        let of_image = image.and_then(ResolvedImage::root_volume).and_then(|volume| volume.size_gib);
        known(machine.root_volume().settings.size_gib.or(of_image))
    };
    let Some(name) = machine.ephemeral_storage_device_name.as_deref() else { return of_root() };
    let is_named = |device: &str| without_folder(device) == without_folder(name);
    let may_be = |device: &str| is_same_device(device, name);
    if image.is_some_and(|image| is_named(&image.root_device)) {
        return of_root();
    }
    let volumes = machine.data_volumes();
    let of_spec = |is_meant: &dyn Fn(&str) -> bool| {
        let is_meant = |volume: &&ResolvedVolume| volume.device_name.as_deref().is_some_and(is_meant);
        let volume = volumes.iter().find(is_meant)?;
        Some(match (volume.settings.size_gib, &volume.snapshot_id) {
            (None, Some(id)) => Storage::OfSnapshot(id.clone()),
            (size, _) => {
                let overridden = || image?.volume(volume.device_name.as_deref()?)?.size_gib;
                known(size.or_else(overridden))
            }
        })
    };
    if let Some(storage) = of_spec(&is_named) {
        return storage;
    }
    // It may have a volume with exactly this name.
    let Some(image) = image else { return Storage::Unknown };
    let of_image = |is_meant: &dyn Fn(&str) -> bool| {
        image.other_volumes().find(|(own, _)| is_meant(own)).map(|(_, own)| known(own.size_gib))
    };
    of_image(&is_named)
        .or_else(|| image.is_root(name).then(of_root))
        .or_else(|| of_spec(&may_be))
        .or_else(|| of_image(&may_be))
        .or_else(|| image.is_instance_store(name).then_some(Storage::Unknown))
        .unwrap_or_else(|| {
            Storage::None(format!(
                "spec.machine.ephemeralStorageDeviceName is {name}, and neither image {} nor spec.machine.dataVolumes has a \
                 volume with this device name: status.capacity has no ephemeral-storage. Correct the field, or remove it \
                 for the root volume.",
                image.id
            ))
        })
}

/// `xvdb` of `/dev/xvdb`: the field may name a volume either way.
fn without_folder(device: &str) -> &str {
    device.strip_prefix("/dev/").unwrap_or(device)
}

#[cfg(test)]
mod tests {
    use capasg_api::pool::{DataVolume, RootVolume};

    use super::*;

    fn bottlerocket() -> ResolvedImage {
        ResolvedImage::with_volumes("/dev/xvda", &[("/dev/xvda", 2), ("/dev/xvdb", 20)])
    }

    fn machine(volumes: &[(&str, Option<i32>, Option<&str>)]) -> MachineTemplate {
        let volume = |(name, size_gib, snapshot): &(&str, Option<i32>, Option<&str>)| DataVolume {
            device_name: (*name).to_owned(),
            size_gib: *size_gib,
            snapshot_id: snapshot.map(str::to_owned),
            ..DataVolume::default()
        };
        MachineTemplate { data_volumes: volumes.iter().map(volume).collect(), ..MachineTemplate::default() }
    }

    fn conflict_of(names: &[&str], image: &ResolvedImage) -> Option<(bool, String)> {
        let volumes: Vec<_> = names.iter().map(|name| (*name, Some(100), None)).collect();
        conflict(&machine(&volumes), image).map(|found| (found.is_rejected, found.message))
    }

    #[test]
    fn a_data_volume_has_no_name_of_the_root_device() {
        let image = ResolvedImage::with_volumes("/dev/sda1", &[("/dev/sda1", 8)]);
        let (is_rejected, message) = conflict_of(&["/dev/sda1"], &image).unwrap();
        assert!(is_rejected);
        assert_eq!(
            message,
            "spec.machine.dataVolumes has /dev/sda1, and /dev/sda1 is the root device of image ami-0a1b2c3d. Use \
             spec.machine.rootVolume for the root volume, or another device name."
        );
        for name in ["/dev/xvda", "/dev/sda"] {
            assert!(
                !conflict_of(&["/dev/sdf", name], &image).unwrap().0,
                "AWS launches {name} as a second volume"
            );
        }
        assert_eq!(conflict_of(&["/dev/sdb", "/dev/xvdc", "/dev/sda2"], &image), None);
    }

    #[test]
    fn a_data_volume_overrides_that_of_the_image_by_its_exact_name_alone() {
        assert_eq!(conflict_of(&["/dev/xvdb", "/dev/sdc"], &bottlerocket()), None);
        let (is_rejected, message) = conflict_of(&["/dev/sdb"], &bottlerocket()).unwrap();
        assert!(!is_rejected);
        assert!(message.contains("Use /dev/xvdb to override the volume of the image"), "{message}");
        // Instance store volumes need no mapping, and have none on most types.
        let mut store = bottlerocket();
        store.block_devices[1].volume = None;
        store.block_devices[1].virtual_name = Some("ephemeral0".to_owned());
        assert_eq!(conflict_of(&["/dev/sdb"], &store), None);
        assert_eq!(conflict_of(&["/dev/xvdb"], &store), None, "an EBS volume instead");
        let of_snapshot = conflict(&machine(&[("/dev/xvdb", Some(100), Some("snap-1"))]), &store).unwrap();
        assert!(
            of_snapshot.is_rejected && of_snapshot.message.contains("instance store"),
            "{}",
            of_snapshot.message
        );
    }

    #[test]
    fn only_a_size_below_that_of_the_image_may_be_too_small() {
        let image = bottlerocket();
        let of = |machine: &MachineTemplate, size: i32| -> Vec<String> {
            let volumes = std::iter::once(machine.root_volume()).chain(machine.data_volumes());
            let snapshots = volumes.map(|volume| {
                let found = snapshot(&volume, &image).filter(|own| !own.fits(size));
                found.map_or_else(|| "-".to_owned(), |own| own.id.to_owned())
            });
            snapshots.collect()
        };
        let volumes = machine(&[("/dev/xvdb", None, None), ("/dev/xvdc", None, None)]);
        assert_eq!(of(&volumes, 20), ["-", "-", "-"]);
        assert_eq!(of(&volumes, 10), ["-", "snap-of-/dev/xvdb", "-"]);
        assert_eq!(of(&volumes, 1), ["snap-of-/dev/xvda", "snap-of-/dev/xvdb", "-"]);
        let own = machine(&[("/dev/xvdb", None, Some("snap-1"))]);
        assert_eq!(of(&own, 65_536), ["-", "snap-1"], "its size is not known");
    }

    #[test]
    fn the_named_volume_is_the_ephemeral_storage() {
        let storage = |name: Option<&str>, mut machine: MachineTemplate| {
            machine.ephemeral_storage_device_name = name.map(str::to_owned);
            ephemeral_storage(&machine, Some(&bottlerocket()))
        };
        let sized = MachineTemplate {
            root_volume: Some(RootVolume { size_gib: Some(4), ..RootVolume::default() }),
            ..machine(&[])
        };
        for name in [None, Some("/dev/xvda"), Some("/dev/sda1")] {
            assert_eq!(storage(name, machine(&[])), Storage::Gib(2), "{name:?}");
            assert_eq!(storage(name, sized.clone()), Storage::Gib(4), "{name:?}");
        }
        assert_eq!(storage(Some("/dev/xvdb"), sized), Storage::Gib(20), "of the image");
        let overridden = machine(&[("/dev/xvdb", Some(100), None), ("/dev/xvdc", Some(7), None)]);
        assert_eq!(storage(Some("/dev/xvdb"), overridden.clone()), Storage::Gib(100));
        assert_eq!(storage(Some("/dev/sdc"), overridden), Storage::Gib(7), "another name of it");
        let of_snapshot = machine(&[("/dev/xvdb", None, Some("snap-1"))]);
        assert_eq!(storage(Some("/dev/xvdb"), of_snapshot), Storage::OfSnapshot("snap-1".to_owned()));
        let of_both = machine(&[("/dev/xvdb", Some(30), Some("snap-1"))]);
        assert_eq!(storage(Some("/dev/xvdb"), of_both), Storage::Gib(30));
        // The exact name counts before another name of the same device.
        let alias = machine(&[("/dev/sdb", Some(500), None)]);
        assert_eq!(storage(Some("/dev/xvdb"), alias.clone()), Storage::Gib(20), "the volume of the image");
        assert_eq!(storage(Some("/dev/sdb"), alias), Storage::Gib(500));
        let both = machine(&[("/dev/sdb", Some(7), None), ("/dev/xvdb", Some(100), None)]);
        for name in ["/dev/xvdb", "xvdb"] {
            assert_eq!(storage(Some(name), both.clone()), Storage::Gib(100), "{name}");
        }
        assert_eq!(storage(Some("sdb"), both), Storage::Gib(7));
        let of_root = machine(&[("/dev/sda1", Some(50), None)]);
        assert_eq!(
            storage(Some("/dev/sda1"), of_root.clone()),
            Storage::Gib(50),
            "a volume of its own for AWS"
        );
        assert_eq!(storage(Some("/dev/sda"), of_root), Storage::Gib(2), "the root volume");
        let Storage::None(message) = storage(Some("/dev/xvdd"), machine(&[])) else {
            panic!("there is none")
        };
        assert_eq!(
            message,
            "spec.machine.ephemeralStorageDeviceName is /dev/xvdd, and neither image ami-0a1b2c3d nor \
             spec.machine.dataVolumes has a volume with this device name: status.capacity has no ephemeral-storage. \
             Correct the field, or remove it for the root volume."
        );
    }

    #[test]
    fn what_is_not_known_is_not_reported() {
        let named = |name: &str| MachineTemplate {
            ephemeral_storage_device_name: Some(name.to_owned()),
            ..machine(&[("/dev/xvdc", Some(7), None)])
        };
        assert_eq!(ephemeral_storage(&named("/dev/xvdb"), None), Storage::Unknown, "the image was not read");
        assert_eq!(ephemeral_storage(&named("/dev/xvdc"), None), Storage::Gib(7));
        assert_eq!(ephemeral_storage(&named("/dev/sdc"), None), Storage::Unknown, "the image may have it");
        assert_eq!(ephemeral_storage(&machine(&[]), None), Storage::Unknown);
        let mut store = bottlerocket();
        store.block_devices[1].volume = None;
        store.block_devices[1].virtual_name = Some("ephemeral0".to_owned());
        assert_eq!(ephemeral_storage(&named("/dev/xvdb"), Some(&store)), Storage::Unknown, "instance store");
    }
}
