//! The names of fields and the words of enums, as docs/contributors/decisions-api.md ("Names of fields", "Names and values of enums") sets
//! them.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::crd;
use serde_json::{Value, json};

/// Enums of members of the AWS API: their values are AWS's.
const OF_AWS: [&str; 11] = [
    "ASGMachine.status.purchaseOption",
    "ASGMachinePool.spec.group.healthCheckTypes[]",
    "ASGMachinePool.spec.group.suspendedProcesses[]",
    "ASGMachinePool.spec.instancesDistribution.onDemandAllocationStrategy",
    "ASGMachinePool.spec.instancesDistribution.spotAllocationStrategy",
    "ASGMachinePool.spec.machine.dataVolumes[].type",
    "ASGMachinePool.spec.machine.metadataOptions.httpEndpoint",
    "ASGMachinePool.spec.machine.metadataOptions.httpProtocolIPv6",
    "ASGMachinePool.spec.machine.metadataOptions.httpTokens",
    "ASGMachinePool.spec.machine.rootVolume.type",
    "ASGMachinePool.spec.rollout.strategy.instanceRefresh.standbyInstances",
];

/// Enums of Kubernetes and Cluster API.
const OF_KUBERNETES: [&str; 7] = [
    "ASGGuard.spec.namespaces.selector.matchExpressions[].operator",
    "ASGIdentity.spec.allowedNamespaces.selector.matchExpressions[].operator",
    "ASGIdentity.status.conditions[].status",
    "ASGMachine.status.addresses[].type",
    "ASGMachine.status.conditions[].status",
    "ASGMachinePool.status.conditions[].status",
    "ASGMachinePool.status.identity.kind",
];

/// Other words for inaction than `Ignore`.
const INACTION: [&str; 13] = [
    "Disabled",
    "DoNothing",
    "Hold",
    "Inactive",
    "Keep",
    "Manual",
    "Never",
    "No",
    "NoAction",
    "None",
    "Nothing",
    "Off",
    "Skip",
];

/// Other words for a pause than `Paused`.
const PAUSE: [&str; 8] = ["Freeze", "Frozen", "Halted", "Held", "OnHold", "Pause", "Suspend", "Suspended"];

/// The schema of each field by its path, such as `ASGMachinePool.spec.subnets[].id`. Templates have those of pools.
fn fields() -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for crd in crd::crds() {
        let crd = serde_json::to_value(crd).unwrap();
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap().to_owned();
        if !kind.ends_with("Template") {
            collect(kind, &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], &mut found);
        }
    }
    found
}

fn collect(path: String, schema: &Value, found: &mut BTreeMap<String, Value>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(format!("{path}.{name}"), property, found);
    }
    if schema["items"].is_object() {
        collect(format!("{path}[]"), &schema["items"], found);
    }
    found.insert(path, schema.clone());
}

/// The values of each enum by its path. What is effective has the paths and values of the spec.
fn enums() -> BTreeMap<String, Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let values = |schema: Value| Some(schema["enum"].as_array()?.iter().map(text).collect());
    let fields = fields().into_iter().filter(|(path, _)| !path.contains(".status.effective."));
    fields.filter_map(|(path, schema)| Some((path, values(schema)?))).collect()
}

/// The last name of a path.
fn name_of(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or_default().trim_end_matches("[]")
}

fn is_camel_case(word: &str) -> bool {
    let letters = word.chars().all(|letter| letter.is_ascii_alphanumeric());
    let humps = word.chars().zip(word.chars().skip(1)).all(|pair| {
        let (one, next) = pair;
        !(one.is_ascii_uppercase() && next.is_ascii_uppercase())
    });
    word.starts_with(|first: char| first.is_ascii_uppercase()) && letters && humps
}

/// What is wrong with the values of an enum of our own.
fn faults(path: &str, values: &[String]) -> Vec<String> {
    let fault = |value: &String| {
        let value = value.as_str();
        if !is_camel_case(value) {
            Some(format!("{path}: {value} is not CamelCase"))
        } else if INACTION.contains(&value) {
            Some(format!("{path}: {value} is called Ignore"))
        } else if PAUSE.contains(&value) {
            Some(format!("{path}: {value} is called Paused"))
        } else if ["True", "False", "Yes", "Enabled"].contains(&value) {
            Some(format!("{path}: {value} does not name what happens"))
        } else {
            None
        }
    };
    values.iter().filter_map(fault).collect()
}

#[test]
fn own_enums_have_one_word_for_inaction_and_one_for_a_pause() {
    let all = enums();
    let foreign: BTreeSet<&str> = OF_AWS.into_iter().chain(OF_KUBERNETES).collect();
    let missing: Vec<&&str> = foreign.iter().filter(|path| !all.contains_key(**path)).collect();
    assert!(missing.is_empty(), "no enums, or none any more: {missing:?}");
    let own = || all.iter().filter(|(path, _)| !foreign.contains(path.as_str()));
    let wrong: Vec<String> = own().flat_map(|(path, values)| faults(path, values)).collect();
    assert_eq!(wrong, [""; 0]);
    let with = |word: &str| own().filter(|(_, values)| values.iter().any(|value| value == word)).count();
    assert!(with("Ignore") >= 5, "{} enums have Ignore", with("Ignore"));
    assert!(with("Paused") >= 2, "{} enums have Paused", with("Paused"));
}

#[test]
fn other_words_are_found() {
    for word in ["Skip", "Never", "Suspended", "ignore", "NONE", "roll-out", "False"] {
        assert_eq!(faults("spec.x", &[word.to_owned(), "Ignore".to_owned()]).len(), 1, "{word}");
    }
    assert_eq!(faults("spec.x", &["Replace".to_owned(), "RollOut".to_owned()]), [""; 0]);
}

/// The members of the requests that create and change groups and start instance refreshes, from AWS's service model.
fn members_of_aws() -> BTreeSet<String> {
    let facts = include_str!("../../tests/fake-aws/testdata/service-model-facts.json");
    let facts: Value = serde_json::from_str(facts).unwrap();
    [
        "CreateAutoScalingGroupType",
        "InstancesDistribution",
        "RefreshPreferences",
        "UpdateAutoScalingGroupType",
    ]
    .into_iter()
    .flat_map(|shape| {
        facts["services"]["autoscaling"]["shapes"][shape]["members"].as_object().unwrap().keys()
    })
    .cloned()
    .collect()
}

/// The name of a field as AWS would write it: `CapacityRebalance` of `ASGMachinePool.spec.capacityRebalance`.
fn as_member(path: &str) -> String {
    let (first, rest) = name_of(path).split_at(1);
    first.to_uppercase() + rest
}

#[test]
fn own_enums_do_not_have_the_name_of_a_member_of_aws() {
    let members = members_of_aws();
    assert!(members.contains(&as_member("ASGMachinePool.spec.capacityRebalance")));
    let is_others = |path: &str| OF_AWS.contains(&path) || OF_KUBERNETES.contains(&path);
    for path in enums().keys().filter(|path| !is_others(path)) {
        assert!(!members.contains(&as_member(path)), "{path} is a member of the AWS API");
    }
}

/// What is wrong with the name of a field of a spec.
fn fault_of_name(path: &str, schema: &Value) -> Option<String> {
    const TIMES: [&str; 8] =
        ["Cooldown", "Deadline", "Delay", "Lifetime", "Period", "Time", "Timeout", "Warmup"];
    let (name, is) = (name_of(path), |type_: &str| schema["type"] == type_);
    let ignores = schema["enum"].as_array().is_some_and(|values| values.contains(&Value::from("Ignore")));
    let begins = |prefix: &str| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    };
    if is("boolean") {
        Some(format!("{path} is a boolean, which cannot get a third value"))
    } else if ignores && !OF_AWS.contains(&path) && !name.ends_with("Policy") && !begins("on") {
        Some(format!("{path} has no name that ends with Policy or begins with on"))
    } else if is("integer") && TIMES.iter().any(|time| name.ends_with(time)) {
        Some(format!("{path} does not name its unit"))
    } else if is("array") && !name.ends_with('s') && !name.ends_with("List") && !path.ends_with("[]") {
        Some(format!("{path} is a list without a plural"))
    } else {
        None
    }
}

#[test]
fn names_of_fields_follow_the_rule() {
    let all = fields();
    let specs: Vec<_> = all.iter().filter(|(path, _)| path.contains(".spec.")).collect();
    assert!(specs.len() > 90, "{}", specs.len());
    let wrong: Vec<String> =
        specs.into_iter().filter_map(|(path, schema)| fault_of_name(path, schema)).collect();
    assert_eq!(wrong, [""; 0]);
    for (name, schema) in [
        ("enclaves", json!({ "type": "boolean" })),
        ("zoneRebalance", json!({ "type": "string", "enum": ["Ignore", "Replace"] })),
        ("once", json!({ "type": "string", "enum": ["Ignore", "Replace"] })),
        ("progressDeadline", json!({ "type": "integer" })),
        ("subnet", json!({ "type": "array" })),
    ] {
        assert!(fault_of_name(&format!("ASGMachinePool.spec.{name}"), &schema).is_some(), "{name}");
    }
}
