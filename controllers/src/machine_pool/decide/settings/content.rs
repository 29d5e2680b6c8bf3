//! Compares the content of a launch template version with the desired one, by fields of the spec. This is only
//! reported: whether a version is created follows from hashes.

use capasg_cloud::{BlockDevice, LaunchTemplateData};

use crate::machine_pool::decide::settings::text::{NOTHING, maybe, tag_path};

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDifference {
    /// Path of the spec.
    pub path: String,
    /// The value in the version.
    pub seen: String,
    /// What is desired.
    pub wanted: String,
    /// Whether it makes instances outdated.
    pub outdates: bool,
}

/// The differences, except user data.
#[must_use]
pub fn compare(wanted: &LaunchTemplateData, seen: &LaunchTemplateData) -> Vec<FieldDifference> {
    let mut list = List(Vec::new());
    list.add("spec.machine.image", &wanted.image_id, &seen.image_id);
    let (profile, had) = (&wanted.iam_instance_profile, &seen.iam_instance_profile);
    list.add("spec.machine.iamInstanceProfile", &maybe(profile.as_ref()), &maybe(had.as_ref()));
    let (key, had) = (&wanted.key_name, &seen.key_name);
    list.add("spec.machine.sshKeyName", &maybe(key.as_ref()), &maybe(had.as_ref()));
    list.add(
        "spec.machine.securityGroups",
        &joined(&wanted.security_group_ids),
        &joined(&seen.security_group_ids),
    );
    devices(&mut list, &of_spec(&wanted.block_devices), &of_spec(&seen.block_devices));
    metadata(&mut list, wanted, seen);
    // These change in place: instances that are launched later have them.
    list.in_place("spec.instanceTypes", &wanted.instance_type, &seen.instance_type);
    for key in wanted.tags.keys().chain(seen.tags.keys().filter(|key| !wanted.tags.contains_key(*key))) {
        let (wanted, had) = (wanted.tags.get(key), seen.tags.get(key));
        list.in_place(&tag_path(key), &maybe(wanted), &maybe(had));
    }
    list.0
}

struct List(Vec<FieldDifference>);

impl List {
    fn add(&mut self, path: &str, wanted: &str, seen: &str) {
        self.push(path, wanted, seen, true);
    }

    fn in_place(&mut self, path: &str, wanted: &str, seen: &str) {
        self.push(path, wanted, seen, false);
    }

    fn push(&mut self, path: &str, wanted: &str, seen: &str, outdates: bool) {
        if wanted != seen {
            let (seen, wanted) = (seen.to_owned(), wanted.to_owned());
            self.0.push(FieldDifference { path: path.to_owned(), seen, wanted, outdates });
        }
    }
}

/// The devices that a field of the spec sets: not the other volumes of the image.
fn of_spec(devices: &[BlockDevice]) -> Vec<&BlockDevice> {
    devices.iter().filter(|device| !device.only_encrypts()).collect()
}

/// The first device is the image's root device.
fn devices(list: &mut List, wanted: &[&BlockDevice], seen: &[&BlockDevice]) {
    let root = wanted.first().map(|device| &device.device_name);
    let path = |device: &BlockDevice| {
        if root == Some(&device.device_name) {
            "spec.machine.rootVolume".to_owned()
        } else {
            format!("spec.machine.dataVolumes[{}]", device.device_name)
        }
    };
    for device in wanted {
        match seen.iter().find(|had| had.device_name == device.device_name) {
            Some(had) => volume(list, &path(device), device, had),
            None => list.add(&path(device), &summary(device), NOTHING),
        }
    }
    for had in seen.iter().filter(|had| wanted.iter().all(|device| device.device_name != had.device_name)) {
        list.add(&path(had), NOTHING, &summary(had));
    }
}

fn volume(list: &mut List, path: &str, wanted: &BlockDevice, seen: &BlockDevice) {
    let fields = fields(wanted).into_iter().zip(fields(seen));
    for ((name, wanted), (_, seen)) in fields {
        list.add(&format!("{path}.{name}"), &wanted, &seen);
    }
}

fn fields(device: &BlockDevice) -> [(&'static str, String); 8] {
    let encryption = if device.encrypted == Some(true) { "Encrypted" } else { "AccountDefault" };
    let end = if device.delete_on_termination { "Delete" } else { "Retain" };
    [
        ("sizeGiB", maybe(device.size_gib.as_ref())),
        ("type", device.volume_type.clone()),
        ("iops", maybe(device.iops.as_ref())),
        ("throughputMiBps", maybe(device.throughput_mibps.as_ref())),
        ("encryption", encryption.to_owned()),
        ("kmsKeyID", maybe(device.kms_key_id.as_ref())),
        ("snapshotID", maybe(device.snapshot_id.as_ref())),
        ("onTermination", end.to_owned()),
    ]
}

fn summary(device: &BlockDevice) -> String {
    let set = fields(device).into_iter().filter(|(_, value)| value != NOTHING);
    set.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

fn metadata(list: &mut List, wanted: &LaunchTemplateData, seen: &LaunchTemplateData) {
    let (wanted, seen) = (&wanted.metadata_options, &seen.metadata_options);
    let hops = |options: &capasg_cloud::MetadataOptions| options.http_put_response_hop_limit.to_string();
    for (name, wanted, seen) in [
        ("httpTokens", &wanted.http_tokens, &seen.http_tokens),
        ("httpPutResponseHopLimit", &hops(wanted), &hops(seen)),
        ("httpEndpoint", &wanted.http_endpoint, &seen.http_endpoint),
        ("httpProtocolIPv6", &wanted.http_protocol_ipv6, &seen.http_protocol_ipv6),
    ] {
        list.add(&format!("spec.machine.metadataOptions.{name}"), wanted, seen);
    }
    // No field of the spec sets it.
    let (wanted, seen) = (&wanted.instance_metadata_tags, &seen.instance_metadata_tags);
    list.add("InstanceMetadataTags of the launch template", wanted, seen);
}

fn joined(items: &[String]) -> String {
    if items.is_empty() { NOTHING.to_owned() } else { items.join(", ") }
}
