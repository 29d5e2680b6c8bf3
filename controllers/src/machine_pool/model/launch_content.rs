//! Hashes of a launch template's content: one of all that a version holds, one of what makes an instance outdated.

use std::collections::BTreeSet;

use capasg_api::ASGMachinePoolSpec;
use capasg_cloud::LaunchTemplateData;
use serde_json::json;

use crate::machine_pool::model::stamp::hash_json;

/// What EC2 gives a gp3 volume that sets neither.
const GP3_IOPS: i32 = 3000;
const GP3_THROUGHPUT: i32 = 125;

/// Hash of all that a version holds, the user data by their own hash.
#[must_use]
pub fn content_hash(data: &LaunchTemplateData, user_data: &str) -> String {
    hash_json(&json!([content(data), user_data]))
}

/// Everything in a version except its user data.
fn content(data: &LaunchTemplateData) -> serde_json::Value {
    json!({
        "image": data.image_id,
        "instanceType": data.instance_type,
        "securityGroups": data.security_group_ids,
        "tags": data.tags,
        "machine": machine(data),
    })
}

/// Hash of what makes an instance outdated. Security groups count as the spec names them, so that a group that is
/// tagged later does not start a rollout. Tags and the first instance type do not count.
#[must_use]
pub fn rollout_hash(data: &LaunchTemplateData, spec: &ASGMachinePoolSpec, version: Option<&str>) -> String {
    let mut groups: Vec<String> =
        spec.machine.security_groups.iter().map(|group| json!(group).to_string()).collect();
    groups.sort_unstable();
    groups.dedup();
    hash_json(&json!({
        "image": data.image_id,
        "securityGroups": groups,
        "version": version,
        "machine": machine(data),
    }))
}

/// Whether instances of two versions differ in nothing that makes an instance outdated, as far as the versions show it:
/// user data and the Kubernetes version are not compared. Different texts for the same are no difference.
#[must_use]
pub fn launches_the_same(one: &LaunchTemplateData, other: &LaunchTemplateData) -> bool {
    let compared = |data: &LaunchTemplateData| {
        let groups: BTreeSet<String> = data.security_group_ids.iter().cloned().collect();
        json!([data.image_id, groups, machine(&canonical(data.without_user_data()))])
    };
    compared(one) == compared(other)
}

/// The content with one text for each thing that EC2 accepts in several: ARNs, the order of devices, and values that EC2
/// applies if none is set. What instances have is the same.
fn canonical(mut data: LaunchTemplateData) -> LaunchTemplateData {
    // The names of instance profiles are unique within the account, whatever their path is.
    data.iam_instance_profile = data.iam_instance_profile.map(|profile| match profile.rsplit_once('/') {
        Some((_, name)) if profile.starts_with("arn:") => name.to_owned(),
        _ => profile,
    });
    data.block_devices.sort_by(|a, b| a.device_name.cmp(&b.device_name));
    for device in &mut data.block_devices {
        if device.volume_type == "gp3" {
            device.iops = device.iops.filter(|iops| *iops != GP3_IOPS);
            device.throughput_mibps = device.throughput_mibps.filter(|mibps| *mibps != GP3_THROUGHPUT);
        }
        // Both leave it to the account and the snapshot.
        device.encrypted = device.encrypted.filter(|encrypted| *encrypted);
        device.kms_key_id = device.kms_key_id.take().map(|key| {
            let name =
                if key.starts_with("arn:") { key.rsplit(':').next().unwrap_or_default() } else { &key };
            name.strip_prefix("key/").unwrap_or(name).to_owned()
        });
    }
    let options = &mut data.metadata_options;
    for (option, default) in [
        (&mut options.http_endpoint, "enabled"),
        (&mut options.http_protocol_ipv6, "disabled"),
        (&mut options.instance_metadata_tags, "disabled"),
    ] {
        if option.is_empty() {
            default.clone_into(option);
        }
    }
    data
}

/// The volumes of the image that are only encrypted follow from the image and from the encryption of the root volume: a
/// version of an earlier release does not have them, and counts as the same.
fn machine(data: &LaunchTemplateData) -> serde_json::Value {
    let devices: Vec<_> = data
        .block_devices
        .iter()
        .filter(|device| !device.only_encrypts())
        .map(|d| {
            json!([
                d.device_name,
                d.size_gib,
                d.volume_type,
                d.iops,
                d.throughput_mibps,
                d.encrypted,
                d.kms_key_id,
                d.snapshot_id,
                d.delete_on_termination
            ])
        })
        .collect();
    let options = &data.metadata_options;
    json!({
        "profile": data.iam_instance_profile,
        "key": data.key_name,
        "devices": devices,
        "metadata": [
            options.http_tokens, options.http_put_response_hop_limit, options.http_endpoint,
            options.http_protocol_ipv6, options.instance_metadata_tags
        ],
    })
}

#[cfg(test)]
mod tests {
    use capasg_cloud::BlockDevice;

    use super::*;
    use crate::machine_pool::decide::testing::data;
    use crate::machine_pool::model::ResolvedImage;

    fn content(edit: impl FnOnce(&mut LaunchTemplateData)) -> LaunchTemplateData {
        let device = |name: &str| BlockDevice {
            device_name: name.to_owned(),
            size_gib: Some(20),
            volume_type: "gp3".to_owned(),
            iops: None,
            throughput_mibps: None,
            encrypted: Some(true),
            kms_key_id: Some("alias/nodes".to_owned()),
            snapshot_id: None,
            delete_on_termination: true,
        };
        let mut content = data();
        content.block_devices = vec![device("/dev/xvda"), device("/dev/xvdb")];
        content.iam_instance_profile = Some("nodes".to_owned());
        content.security_group_ids = vec!["sg-1".to_owned(), "sg-2".to_owned()];
        edit(&mut content);
        content
    }

    /// An upgrade makes nothing outdated: a version of an earlier release does not have these mappings.
    #[test]
    fn volumes_of_the_image_that_are_encrypted_are_no_difference() {
        let image = ResolvedImage::with_volumes("/dev/xvda", &[("/dev/xvdc", 20)]);
        let volume = image.volume("/dev/xvdc").unwrap();
        let hashes = |data: &LaunchTemplateData| {
            let spec = ASGMachinePoolSpec::default();
            (content_hash(data, ""), rollout_hash(data, &spec, None))
        };
        let before = content(|_| {});
        let encrypted = content(|data| {
            data.block_devices.push(BlockDevice::encrypting("/dev/xvdc", volume, None));
        });
        assert!(launches_the_same(&encrypted, &before));
        assert_eq!(hashes(&encrypted), hashes(&before));
        let set = content(|data| {
            let device = BlockDevice {
                volume_type: "gp3".to_owned(),
                ..BlockDevice::encrypting("/dev/xvdc", volume, None)
            };
            data.block_devices.push(device);
        });
        assert!(!launches_the_same(&set, &before));
        assert_ne!(hashes(&set).1, hashes(&before).1);
    }

    #[test]
    fn another_text_for_the_same_is_no_difference() {
        type Edit = fn(&mut LaunchTemplateData);
        let same: [Edit; 8] = [
            |d| d.security_group_ids.reverse(),
            |d| d.block_devices.reverse(),
            |d| d.block_devices[0].iops = Some(3000),
            |d| d.block_devices[1].throughput_mibps = Some(125),
            |d| d.block_devices[0].kms_key_id = Some("arn:aws:kms:eu-west-1:1:alias/nodes".to_owned()),
            |d| d.iam_instance_profile = Some("arn:aws:iam::1:instance-profile/team/nodes".to_owned()),
            |d| d.metadata_options.http_protocol_ipv6.clear(),
            |d| d.metadata_options.instance_metadata_tags.clear(),
        ];
        for (number, edit) in same.into_iter().enumerate() {
            assert!(launches_the_same(&content(edit), &content(|_| {})), "edit {number}");
        }
        let other: [Edit; 6] = [
            |d| drop(d.security_group_ids.pop()),
            |d| drop(d.block_devices.pop()),
            |d| d.block_devices[0].iops = Some(4000),
            |d| d.block_devices[0].kms_key_id = Some("arn:aws:kms:eu-west-1:1:alias/other".to_owned()),
            |d| d.iam_instance_profile = Some("arn:aws:iam::1:instance-profile/nodes/other".to_owned()),
            |d| d.metadata_options.http_tokens.clear(),
        ];
        for (number, edit) in other.into_iter().enumerate() {
            assert!(!launches_the_same(&content(edit), &content(|_| {})), "edit {number}");
        }
    }
}
