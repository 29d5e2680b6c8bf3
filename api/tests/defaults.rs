//! The defaults of `v1alpha1` as literals: docs/decisions.md ("Defaults belong to the version of the API").

#![cfg(test)]

use std::collections::BTreeMap;

use capasg_api::{
    ASGMachinePoolSpec, crd,
    pool::{HealthCheckType, ScalingProcess},
};
use capasg_test_objects::{minimal_pool, with};
use serde_json::{Value, json};

/// The default of each field. A change of one changes what existing pools do.
const DEFAULTS: [(&str, &str); 37] = [
    ("adoptionPolicy", "Ignore"),
    ("changePolicy", "Apply"),
    ("deletionPolicy", "Delete"),
    ("drain.onCloudTermination", "Drain"),
    ("drain.onPoolDeletion", "Drain"),
    ("drain.timeoutSeconds", "3600"),
    ("group.defaultCooldownSeconds", "300"),
    ("group.healthCheckGracePeriodSeconds", "300"),
    ("group.healthCheckTypes", "EC2"),
    ("group.suspendedProcesses", "AZRebalance"),
    ("instancesDistribution.onDemandAllocationStrategy", "prioritized"),
    ("instancesDistribution.onDemandBaseCapacity", "0"),
    ("instancesDistribution.onDemandPercentageAboveBaseCapacity", "100"),
    ("instancesDistribution.spotAllocationStrategy", "price-capacity-optimized"),
    ("machine.dataVolumes[].encryption", "Encrypted"),
    ("machine.dataVolumes[].onTermination", "Delete"),
    ("machine.dataVolumes[].type", "gp3"),
    ("machine.image.updatePolicy", "WithVersion"),
    ("machine.metadataOptions.httpEndpoint", "enabled"),
    ("machine.metadataOptions.httpProtocolIPv6", "disabled"),
    ("machine.metadataOptions.httpPutResponseHopLimit", "1"),
    ("machine.metadataOptions.httpTokens", "required"),
    ("machine.rootVolume.encryption", "Encrypted"),
    ("machine.rootVolume.onTermination", "Delete"),
    ("machine.rootVolume.type", "gp3"),
    ("rebalanceRecommendationPolicy", "Ignore"),
    ("remediationPolicy", "Replace"),
    ("rollout.mode", "Automatic"),
    ("rollout.progressDeadlineSeconds", "1800"),
    ("rollout.strategy.instanceRefresh.minHealthyPercentage", "90"),
    ("rollout.strategy.instanceRefresh.onFailure", "Stop"),
    ("rollout.strategy.instanceRefresh.standbyInstances", "Wait"),
    ("rollout.strategy.rollingUpdate.maxSurge", "1"),
    ("rollout.strategy.rollingUpdate.maxUnavailable", "0"),
    ("rollout.strategy.type", "RollingUpdate"),
    ("scaleInOrder", "Oldest"),
    ("zoneRebalancePolicy", "Ignore"),
];

/// Defaults that AWS applies to a field that is not sent, and the time zone, which only a window resolves.
const NOT_RESOLVED: [&str; 7] = [
    "disruption.windows[].timeZone",
    "machine.dataVolumes[].iops",
    "machine.dataVolumes[].throughputMiBps",
    "machine.rootVolume.iops",
    "machine.rootVolume.throughputMiBps",
    "rollout.strategy.instanceRefresh.bakeTimeSeconds",
    "rollout.strategy.instanceRefresh.checkpointDelaySeconds",
];

/// What the accessors make of a spec that sets nothing. A new field of our own belongs here.
fn effective() -> BTreeMap<&'static str, String> {
    let volume = json!([{ "deviceName": "/dev/xvdb", "sizeGiB": 8 }]);
    let pool = with(minimal_pool(), "spec/machine/dataVolumes", volume);
    let spec: ASGMachinePoolSpec = serde_json::from_value(pool["spec"].clone()).unwrap();
    let (drain, distribution, rollout) = (spec.drain(None), spec.instances_distribution(), spec.rollout(0));
    let (options, refresh) = (spec.machine.metadata_options(), spec.instance_refresh());
    let encryption = |encrypted| if encrypted == Some(true) { "Encrypted" } else { "AccountDefault" };
    let end = |deleted| if deleted { "Delete" } else { "Retain" };
    let (root, data) = (spec.machine.root_volume().settings, spec.machine.data_volumes()[0].settings.clone());
    let checks: Vec<&str> = spec.health_check_types().into_iter().map(HealthCheckType::as_str).collect();
    let suspended: Vec<&str> = spec.suspended_processes().into_iter().map(ScalingProcess::as_str).collect();
    let base = distribution.on_demand_base_capacity;
    let above = distribution.on_demand_percentage_above_base_capacity;
    BTreeMap::from([
        ("adoptionPolicy", spec.adoption_policy().to_string()),
        ("changePolicy", spec.change_policy().to_string()),
        ("deletionPolicy", spec.deletion_policy().to_string()),
        ("drain.onCloudTermination", drain.on_cloud_termination.to_string()),
        ("drain.onPoolDeletion", drain.on_pool_deletion.to_string()),
        ("drain.timeoutSeconds", drain.timeout_seconds.to_string()),
        ("group.defaultCooldownSeconds", spec.default_cooldown_seconds().to_string()),
        ("group.healthCheckGracePeriodSeconds", spec.health_check_grace_period_seconds().to_string()),
        ("group.healthCheckTypes", checks.join(", ")),
        ("group.suspendedProcesses", suspended.join(", ")),
        (
            "instancesDistribution.onDemandAllocationStrategy",
            distribution.on_demand_allocation_strategy.to_string(),
        ),
        ("instancesDistribution.onDemandBaseCapacity", base.to_string()),
        ("instancesDistribution.onDemandPercentageAboveBaseCapacity", above.to_string()),
        ("instancesDistribution.spotAllocationStrategy", distribution.spot_allocation_strategy.to_string()),
        ("machine.dataVolumes[].encryption", encryption(data.encrypted).to_owned()),
        ("machine.dataVolumes[].onTermination", end(data.delete_on_termination).to_owned()),
        ("machine.dataVolumes[].type", data.volume_type.to_string()),
        ("machine.image.updatePolicy", spec.machine.image.update_policy().to_string()),
        ("machine.metadataOptions.httpEndpoint", options.http_endpoint.to_string()),
        ("machine.metadataOptions.httpProtocolIPv6", options.http_protocol_ipv6.to_string()),
        ("machine.metadataOptions.httpPutResponseHopLimit", options.http_put_response_hop_limit.to_string()),
        ("machine.metadataOptions.httpTokens", options.http_tokens.to_string()),
        ("machine.rootVolume.encryption", encryption(root.encrypted).to_owned()),
        ("machine.rootVolume.onTermination", end(root.delete_on_termination).to_owned()),
        ("machine.rootVolume.type", root.volume_type.to_string()),
        ("rebalanceRecommendationPolicy", spec.rebalance_recommendation_policy().to_string()),
        ("remediationPolicy", spec.remediation_policy().to_string()),
        ("rollout.mode", rollout.mode.to_string()),
        ("rollout.progressDeadlineSeconds", rollout.progress_deadline.num_seconds().to_string()),
        ("rollout.strategy.instanceRefresh.minHealthyPercentage", refresh.min_healthy_percentage.to_string()),
        ("rollout.strategy.instanceRefresh.onFailure", refresh.on_failure.to_string()),
        ("rollout.strategy.instanceRefresh.standbyInstances", refresh.standby_instances.to_string()),
        ("rollout.strategy.rollingUpdate.maxSurge", rollout.max_surge.to_string()),
        ("rollout.strategy.rollingUpdate.maxUnavailable", rollout.max_unavailable.to_string()),
        ("rollout.strategy.type", rollout.type_.to_string()),
        ("scaleInOrder", spec.scale_in_order().to_string()),
        ("zoneRebalancePolicy", spec.zone_rebalance_policy().to_string()),
    ])
}

/// The description of each field of a pool's spec.
fn descriptions() -> BTreeMap<String, String> {
    fn collect(path: &str, schema: &Value, found: &mut BTreeMap<String, String>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let text = property["description"].as_str().unwrap_or_default();
            found.insert(path.clone(), text.to_owned());
            collect(&path, property, found);
            collect(&format!("{path}[]"), &property["items"], found);
        }
    }
    let pool = crd::crds().into_iter().find(|crd| crd.spec.names.kind == "ASGMachinePool").unwrap();
    let pool = serde_json::to_value(pool).unwrap();
    let mut found = BTreeMap::new();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    collect("", pool.pointer(schema).unwrap(), &mut found);
    found
}

/// The value that a description names as the default: a value of an enum in backticks, or a number.
fn described(text: &str) -> Option<String> {
    let rest = text.split_once("Defaults to ")?.1;
    if let Some(quoted) = rest.strip_prefix('`') {
        let (value, _) = quoted.split_once('`')?;
        // A default that is another field is no value.
        return (!value.contains('.')).then(|| value.to_owned());
    }
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

#[test]
fn the_defaults_of_a_version_do_not_change() {
    let literal: BTreeMap<&str, String> =
        DEFAULTS.iter().map(|(path, value)| (*path, (*value).to_owned())).collect();
    assert_eq!(effective(), literal);
}

#[test]
fn descriptions_name_the_defaults_that_apply() {
    let told: BTreeMap<String, String> = descriptions()
        .into_iter()
        .filter(|(path, _)| !NOT_RESOLVED.contains(&path.as_str()))
        .filter_map(|(path, text)| Some((path, described(&text)?)))
        .collect();
    let literal: BTreeMap<String, String> =
        DEFAULTS.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    assert_eq!(told, literal);
}

#[test]
fn a_default_is_read_from_a_description() {
    assert_eq!(described("What. Defaults to `Ignore`. Changes apply.").as_deref(), Some("Ignore"));
    assert_eq!(described("What. Defaults to 3600, as in AWS.").as_deref(), Some("3600"));
    assert_eq!(described("What. Defaults to `spec.group.x`, or to the grace period."), None);
    assert_eq!(described("What. Defaults to none."), None);
}
