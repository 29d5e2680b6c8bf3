//! The defaults of `v1alpha1` as literals: docs/contributors/decisions-api.md ("Defaults belong to the version of the API").

#![cfg(test)]

use std::collections::BTreeMap;

use capasg_api::{ASGMachinePoolSpec, crd};
use capasg_test_objects::{minimal_pool, with};
use serde_json::{Value, json};

/// The default of each field. A change of one changes what existing pools do.
const DEFAULTS: [(&str, &str); 38] = [
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
    ("nodeStartupTimeoutSeconds", "600"),
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

/// What identifies an entry, and the default that another field or object has.
const OTHERWISE: [&str; 2] = ["machine.dataVolumes[].deviceName", "minSize"];

/// `status.effective` of a spec that sets nothing but what shows every default: a field of our own that is missing in it
/// is missing here as well.
fn effective() -> BTreeMap<String, String> {
    let volume = json!([{ "deviceName": "/dev/xvdb", "sizeGiB": 8 }]);
    let pool = with(minimal_pool(), "spec/machine/dataVolumes", volume);
    let pool = with(pool, "spec/instancesDistribution", json!({}));
    let refreshing = with(pool.clone(), "spec/rollout/strategy/type", "InstanceRefresh");
    let mut found = BTreeMap::new();
    for pool in [refreshing, pool] {
        let spec: ASGMachinePoolSpec = serde_json::from_value(pool["spec"].clone()).unwrap();
        leaves("", &serde_json::to_value(spec.effective(None, 0)).unwrap(), &mut found);
    }
    for path in OTHERWISE {
        assert!(found.remove(path).is_some(), "{path}");
    }
    found
}

/// Each value by its path; lists of texts are joined.
fn leaves(path: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                leaves(&path, value, found);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for item in items {
                leaves(&format!("{path}[]"), item, found);
            }
        }
        Value::Array(items) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            found.insert(path.to_owned(), texts.join(", "));
        }
        Value::String(text) => drop(found.insert(path.to_owned(), text.clone())),
        other => drop(found.insert(path.to_owned(), other.to_string())),
    }
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

fn literals() -> BTreeMap<String, String> {
    DEFAULTS.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_defaults_of_a_version_do_not_change() {
    assert_eq!(effective(), literals());
}

#[test]
fn descriptions_name_the_defaults_that_apply() {
    let told: BTreeMap<String, String> = descriptions()
        .into_iter()
        .filter(|(path, _)| !NOT_RESOLVED.contains(&path.as_str()))
        .filter_map(|(path, text)| Some((path, described(&text)?)))
        .collect();
    assert_eq!(told, literals());
}

#[test]
fn a_default_is_read_from_a_description() {
    assert_eq!(described("What. Defaults to `Ignore`. Changes apply.").as_deref(), Some("Ignore"));
    assert_eq!(described("What. Defaults to 3600, as in AWS.").as_deref(), Some("3600"));
    assert_eq!(described("What. Defaults to `spec.group.x`, or to the grace period."), None);
    assert_eq!(described("What. Defaults to none."), None);
}
