//! Hashes of a launch template's content: one of all that a version holds, one of what makes an instance outdated.

use std::collections::BTreeSet;

use capasg_api::ASGMachinePoolSpec;
use capasg_cloud::LaunchTemplateData;
use serde_json::json;

use crate::machine_pool::model::stamp::hash_json;

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
/// user data and the Kubernetes version are not compared.
#[must_use]
pub fn launches_the_same(one: &LaunchTemplateData, other: &LaunchTemplateData) -> bool {
    let compared = |data: &LaunchTemplateData| {
        let groups: BTreeSet<String> = data.security_group_ids.iter().cloned().collect();
        json!([data.image_id, groups, machine(data)])
    };
    compared(one) == compared(other)
}

fn machine(data: &LaunchTemplateData) -> serde_json::Value {
    let devices: Vec<_> = data
        .block_devices
        .iter()
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
