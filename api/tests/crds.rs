//! The CRDs as they are shipped: rules that hold for every field of every kind.

#![cfg(test)]

use std::collections::BTreeSet;

use capasg_api::crd;
use capasg_test_objects::{cel_cases, schema_cases, valid_cases};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// As `CalculateCRDName` of core gives them (A2).
const NAMES: [&str; 5] = [
    "asgguards.infrastructure.cluster.x-k8s.io",
    "asgidentities.infrastructure.cluster.x-k8s.io",
    "asgmachinepools.infrastructure.cluster.x-k8s.io",
    "asgmachinepooltemplates.infrastructure.cluster.x-k8s.io",
    "asgmachines.infrastructure.cluster.x-k8s.io",
];

/// One schema node and where it stands, such as `ASGMachinePool.spec.subnets[].id`.
struct Node<'a> {
    path: String,
    schema: &'a Value,
}

fn crds() -> Vec<Value> {
    crd::crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect()
}

fn nodes(crds: &[Value]) -> Vec<Node<'_>> {
    let mut nodes = Vec::new();
    for crd in crds {
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap().to_owned();
        collect(kind, &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], &mut nodes);
    }
    assert!(nodes.len() > 120, "only {} nodes found", nodes.len());
    nodes
}

fn collect<'a>(path: String, schema: &'a Value, nodes: &mut Vec<Node<'a>>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(format!("{path}.{name}"), property, nodes);
    }
    if schema["items"].is_object() {
        collect(format!("{path}[]"), &schema["items"], nodes);
    }
    if schema["additionalProperties"].is_object() {
        collect(format!("{path}{{}}"), &schema["additionalProperties"], nodes);
    }
    nodes.push(Node { path, schema });
}

fn failing<'a>(nodes: &'a [Node<'_>], holds: impl Fn(&Node<'_>) -> bool) -> Vec<&'a str> {
    nodes.iter().filter(|node| !holds(node)).map(|node| node.path.as_str()).collect()
}

fn is(node: &Node<'_>, type_: &str) -> bool {
    node.schema["type"] == type_
}

fn has(node: &Node<'_>, keyword: &str) -> bool {
    !node.schema[keyword].is_null()
}

#[test]
fn config_crd_is_generated_from_the_types() {
    for (crd, (name, yaml)) in crd::crds().iter().zip(crd::crd_files().unwrap()) {
        let read: CustomResourceDefinition = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(&read, crd, "{name}");
        assert_eq!(name, format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural));
        assert!(!yaml.contains(".0\n"), "whole numbers have no fraction");
    }
}

// Rules: A1
#[test]
fn kinds_are_namespaced_with_a_status_subresource() {
    for crd in crds() {
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
        // What an operator says about namespaces is not in one of them.
        let is_of_operators = ["ASGIdentity", "ASGGuard"].contains(&kind);
        assert_eq!(crd["spec"]["scope"], if is_of_operators { "Cluster" } else { "Namespaced" });
        // Neither a template nor a guard has a state.
        let has_status = !kind.ends_with("Template") && kind != "ASGGuard";
        let status = if has_status { serde_json::json!({}) } else { Value::Null };
        assert_eq!(crd["spec"]["versions"][0]["subresources"]["status"], status);
        assert_eq!(crd["spec"]["names"].get("listKind"), None, "A5: the default is <Kind>List");
    }
}

// Rules: A2
#[test]
fn definition_names_are_what_core_calculates() {
    let names: Vec<String> =
        crds().iter().map(|crd| crd["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, NAMES);
}

// Rules: A3, A6, J1
#[test]
fn contract_label_names_the_one_served_version() {
    for crd in crds() {
        let versions = crd["spec"]["versions"].as_array().unwrap();
        assert_eq!(versions.len(), 1);
        assert_eq!(versions[0]["served"], true);
        assert_eq!(versions[0]["storage"], true);
        assert_eq!(crd["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"], versions[0]["name"]);
    }
}

// Rules: A8
#[test]
fn kinds_can_be_listed_by_category_and_short_name() {
    let names: Vec<Value> = crds().iter().map(|crd| crd["spec"]["names"].clone()).collect();
    let short: Vec<&Value> = names.iter().map(|names| &names["shortNames"][0]).collect();
    assert_eq!(short, ["asgg", "asgid", "asgmp", "asgmpt", "asgm"]);
    assert!(names.iter().all(|names| names["categories"] == serde_json::json!(["cluster-api"])));
}

// Rules: A9
#[test]
fn every_string_is_bounded() {
    let crds = crds();
    let bounded = |node: &Node<'_>| {
        !is(node, "string")
            || has(node, "maxLength")
            || has(node, "enum")
            || node.schema["format"] == "date-time"
    };
    assert_eq!(failing(&nodes(&crds), bounded), [""; 0]);
}

// Rules: A9
#[test]
fn every_list_is_bounded_and_says_how_it_merges() {
    let crds = crds();
    let bounded = |node: &Node<'_>| {
        !is(node, "array")
            || (has(node, "maxItems")
                && has(node, "items")
                && match node.schema["x-kubernetes-list-type"].as_str() {
                    Some("atomic" | "set") => true,
                    Some("map") => has(node, "x-kubernetes-list-map-keys"),
                    _ => false,
                })
    };
    assert_eq!(failing(&nodes(&crds), bounded), [""; 0]);
}

// Rules: A9
#[test]
fn every_map_is_bounded_and_says_how_it_merges() {
    let crds = crds();
    let bounded = |node: &Node<'_>| {
        !has(node, "additionalProperties")
            || (has(node, "maxProperties") && has(node, "x-kubernetes-map-type"))
    };
    assert_eq!(failing(&nodes(&crds), bounded), [""; 0]);
}

// Rules: A9
#[test]
fn every_number_of_a_spec_is_bounded() {
    let crds = crds();
    let bounded = |node: &Node<'_>| {
        !is(node, "integer")
            || !node.path.contains(".spec.")
            || (has(node, "minimum") && has(node, "maximum"))
    };
    assert_eq!(failing(&nodes(&crds), bounded), [""; 0]);
}

// Rules: A9
#[test]
fn limits_are_those_of_core() {
    let crds = crds();
    let nodes = nodes(&crds);
    let find = |path: &str| nodes.iter().find(|node| node.path == path).map(|node| node.schema).unwrap();
    assert_eq!(find("ASGMachinePool.spec.providerIDList")["maxItems"], 10_000);
    assert_eq!(find("ASGMachinePool.spec.providerIDList[]")["minLength"], 1);
    assert_eq!(find("ASGMachinePool.spec.providerIDList[]")["maxLength"], 512);
    assert_eq!(find("ASGMachine.spec.providerID")["maxLength"], 512);
    assert_eq!(find("ASGMachine.status.failureDomain")["maxLength"], 256);
}

// Rules: A10
#[test]
fn fields_that_core_reads_are_declared() {
    let crds = crds();
    let paths: BTreeSet<String> = nodes(&crds).into_iter().map(|node| node.path).collect();
    for path in [
        "ASGMachinePool.spec.providerIDList",
        "ASGMachinePool.status.ready",
        "ASGMachinePool.status.initialization.provisioned",
        "ASGMachinePool.status.replicas",
        "ASGMachinePool.status.infrastructureMachineKind",
        "ASGMachinePool.status.conditions",
        "ASGMachine.spec.providerID",
        "ASGMachine.status.initialization.provisioned",
        "ASGMachine.status.addresses",
        "ASGMachine.status.failureDomain",
        "ASGMachine.status.interruptible",
        "ASGMachine.status.conditions",
    ] {
        assert!(paths.contains(path), "{path} is missing");
    }
}

// Rules: B7
#[test]
fn no_status_has_a_failure_reason_or_message() {
    let crds = crds();
    let fine =
        |node: &Node<'_>| !node.path.ends_with(".failureReason") && !node.path.ends_with(".failureMessage");
    assert_eq!(failing(&nodes(&crds), fine), [""; 0]);
}

/// What a group or an instance cannot change in AWS; all else is edited in place, by people and by ClusterClass.
// Rules: B14
#[test]
fn only_immutable_fields_have_a_transition_rule() {
    let crds = crds();
    let fixed: BTreeSet<&str> = nodes(&crds)
        .iter()
        .filter_map(|node| {
            let rules = node.schema["x-kubernetes-validations"].as_array()?;
            let on_changes: Vec<&Value> = rules
                .iter()
                .filter(|rule| rule["rule"].as_str().is_some_and(|rule| rule.contains("oldSelf")))
                .collect();
            (!on_changes.is_empty()).then_some(on_changes)
        })
        .flatten()
        .filter_map(|rule| rule["message"].as_str()?.split(':').next())
        .map(|field| field.to_owned().leak() as &str)
        .collect();
    let wanted = ["spec.group.name", "spec.instanceID", "spec.providerID", "spec.region"];
    assert_eq!(fixed, BTreeSet::from(wanted));
}

// Rules: I1
#[test]
fn conditions_are_a_list_by_type() {
    let crds = crds();
    let nodes = nodes(&crds);
    let conditions: Vec<_> = nodes.iter().filter(|node| node.path.ends_with(".status.conditions")).collect();
    assert_eq!(conditions.len(), 3);
    for node in conditions {
        assert_eq!(node.schema["maxItems"], 32);
        assert_eq!(node.schema["x-kubernetes-list-type"], "map");
        assert_eq!(node.schema["x-kubernetes-list-map-keys"], serde_json::json!(["type"]));
    }
}

// Rules: J4
#[test]
fn nothing_is_defaulted_by_the_api_server() {
    let crds = crds();
    let plain = |node: &Node<'_>| {
        ["default", "nullable", "title", "oneOf", "anyOf"].iter().all(|word| !has(node, word))
    };
    assert_eq!(failing(&nodes(&crds), plain), [""; 0]);
}

/// What one pool has and its template lacks: the controller's fields, and a name that pools cannot share.
// Rules: J1, J3
#[test]
fn a_template_has_the_fields_of_a_pool_but_those_of_one_pool() {
    let crds = crds();
    let paths = |prefix: &str| -> BTreeSet<String> {
        let below = |node: Node<'_>| node.path.strip_prefix(prefix).map(str::to_owned);
        nodes(&crds).into_iter().filter_map(below).collect()
    };
    let (pool, template) = (paths("ASGMachinePool.spec"), paths("ASGMachinePoolTemplate.spec.template.spec"));
    let lacking: Vec<&str> = pool.difference(&template).map(String::as_str).collect();
    assert_eq!(
        lacking,
        [".adoptionPolicy", ".group.name", ".providerID", ".providerIDList", ".providerIDList[]"]
    );
    assert_eq!(template.difference(&pool).next(), None);
}

/// Beside these, every field has the limits, the required members and the words of the pool's.
// Rules: J2
#[test]
fn a_template_differs_from_a_pool_only_in_transition_rules() {
    let crds = crds();
    let nodes = nodes(&crds);
    let stripped = |node: &Node<'_>| {
        let mut schema = node.schema.as_object().unwrap().clone();
        for structure in ["properties", "items", "additionalProperties", "x-kubernetes-validations"] {
            schema.remove(structure);
        }
        schema
    };
    let rules = |node: &Node<'_>| -> Vec<String> {
        let rules = node.schema["x-kubernetes-validations"].as_array().into_iter().flatten();
        rules.map(|rule| rule["rule"].as_str().unwrap().to_owned()).collect()
    };
    let mut gone = Vec::new();
    for node in
        nodes.iter().filter(|node| node.path.starts_with("ASGMachinePoolTemplate.spec.template.spec."))
    {
        let path = node.path.replace("ASGMachinePoolTemplate.spec.template.", "ASGMachinePool.");
        let of_pool = nodes.iter().find(|node| node.path == path).unwrap();
        assert_eq!(stripped(node), stripped(of_pool), "{path}");
        let kept = rules(node);
        gone.extend(rules(of_pool).into_iter().filter(|rule| !kept.contains(rule)));
        assert!(!kept.iter().any(|rule| rule.contains("oldSelf")), "{path}: a template may be edited");
    }
    assert!(gone.iter().all(|rule| rule.contains("oldSelf")), "{gone:?}");
    assert!(gone.contains(&"self == oldSelf".to_owned()), "the rule on the region: {gone:?}");
}

#[test]
fn every_field_has_a_description() {
    let crds = crds();
    // Items and values are explained by their list or map; clusterctl would take `${` for a variable (K8).
    let explained = |node: &Node<'_>| match node.schema["description"].as_str() {
        Some(text) => text.ends_with('.') && !text.contains("${") && !text.contains('\n'),
        None => node.path.ends_with("[]") || node.path.ends_with("{}"),
    };
    assert_eq!(failing(&nodes(&crds), explained), [""; 0]);
}

#[test]
fn every_spec_field_describes_the_effect_of_a_change() {
    const EFFECTS: [&str; 6] =
        ["in place", "running instances outdated", "mmutable", "by the controller", "Reserved", "outdated."];
    let crds = crds();
    let told = |node: &Node<'_>| {
        let field = node.path.contains(".spec.") && !node.path.ends_with("[]") && !node.path.ends_with("{}");
        let text = node.schema["description"].as_str().unwrap_or_default();
        !field || EFFECTS.iter().any(|effect| text.contains(effect))
    };
    assert_eq!(failing(&nodes(&crds), told), [""; 0]);
}

#[test]
fn every_optional_field_describes_its_default() {
    const WORDS: [&str; 4] = ["Default", "Either this", "ritten by the controller", "Reserved"];
    let crds = crds();
    let nodes = nodes(&crds);
    let mut silent = Vec::new();
    let mut seen = 0;
    for parent in nodes.iter().filter(|node| node.path.contains(".spec")) {
        let required: Vec<&Value> = parent.schema["required"].as_array().into_iter().flatten().collect();
        for (name, field) in parent.schema["properties"].as_object().into_iter().flatten() {
            let text = field["description"].as_str().unwrap_or_default();
            let optional = !required.iter().any(|one| *one == name);
            seen += usize::from(optional);
            if optional && !WORDS.iter().any(|word| text.contains(word)) {
                silent.push(format!("{}.{name}: {text}", parent.path));
            }
        }
    }
    assert!(seen > 80, "only {seen} fields seen");
    assert_eq!(silent, [""; 0]);
}

/// What an earlier version wrote lacks the members of a later one, and is still written with each change of the object.
#[test]
fn no_member_of_the_effective_values_is_required() {
    let crds = crds();
    let below = |node: &&Node<'_>| node.path.contains(".status.effective");
    let (mut seen, mut required) = (0, Vec::new());
    for node in nodes(&crds).iter().filter(below) {
        seen += 1;
        if node.schema.get("required").is_some() {
            required.push(node.path.clone());
        }
    }
    assert!(seen > 30, "only {seen} seen");
    assert_eq!(required, [""; 0]);
}

#[test]
fn every_number_of_a_spec_has_a_unit() {
    const UNITS: [&str; 9] =
        ["econds", "GiB", "MiB", "per second", "ercentage", "instances", "replicas", "hops", "Machines"];
    let crds = crds();
    let told = |node: &Node<'_>| {
        let text = node.schema["description"].as_str().unwrap_or_default();
        // Items are explained by their list.
        let text = if node.path.ends_with("[]") { node.path.as_str() } else { text };
        !is(node, "integer") || !node.path.contains(".spec.") || UNITS.iter().any(|unit| text.contains(unit))
    };
    assert_eq!(failing(&nodes(&crds), told), [""; 0]);
}

#[test]
fn every_rule_has_a_message_with_its_field_and_a_rejected_case() {
    let crds = crds();
    let mut messages = BTreeSet::new();
    for node in nodes(&crds) {
        for rule in node.schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            let message = rule["message"].as_str().unwrap_or_default().to_owned();
            assert!(message.starts_with("spec."), "{}: {message:?}", node.path);
            messages.insert(message);
        }
    }
    let shown: BTreeSet<String> = cel_cases().iter().map(|case| case.message.clone()).collect();
    assert_eq!(shown, messages);
}

#[test]
fn case_names_are_unique() {
    let refused = [cel_cases(), schema_cases()].concat();
    let names: Vec<String> = (refused.into_iter().map(|case| case.name))
        .chain(valid_cases().into_iter().map(|case| case.name))
        .collect();
    let unique: BTreeSet<_> = names.iter().collect();
    assert_eq!(unique.len(), names.len());
}
