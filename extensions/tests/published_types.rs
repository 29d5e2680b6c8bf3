//! The types of requests and responses have exactly the fields of those that Cluster API publishes.
//!
//! `fixtures/hooks-v1.14.2.json` has the fields of the Go types by reflection; `tests/tools/conditions/hooks` writes it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what these tests share fails as they do")]

use std::{any::type_name, collections::BTreeMap};

use capasg_extensions::protocol::{
    ClusterRequest, CommonResponse, DiscoverVariablesRequest, DiscoverVariablesResponse, DiscoveryResponse,
    GeneratePatchesRequest, GeneratePatchesResponse, GenerateUpgradePlanRequest, GenerateUpgradePlanResponse,
    Hook, RetryResponse, UpgradeRequest, UpgradedRequest, ValidateTopologyRequest,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
struct Field {
    #[serde(rename = "type")]
    type_: String,
    #[serde(default)]
    optional: bool,
}

type Published = BTreeMap<String, BTreeMap<String, Field>>;

fn published() -> Published {
    serde_json::from_str(include_str!("fixtures/hooks-v1.14.2.json")).unwrap()
}

/// An object of a type: every field, or those that are always written.
fn object(types: &Published, name: &str, all: bool) -> Value {
    // The server writes these two into every response, and reads them from every request.
    let by_server = |field: &str| is_root(name) && ["apiVersion", "kind"].contains(&field);
    let fields = types[name].iter().filter(|(_, field)| all || !field.optional);
    let fields = fields.filter(|(field, _)| !by_server(field));
    let object: Map<String, Value> =
        fields.map(|(name, field)| (name.clone(), value(types, name, &field.type_, all))).collect();
    Value::Object(object)
}

fn is_root(name: &str) -> bool {
    name.ends_with("Request") || name.ends_with("Response")
}

fn value(published: &Published, name: &str, type_: &str, all: bool) -> Value {
    if let Some(element) = type_.strip_prefix("[]") {
        return json!([value(published, name, element, all), value(published, name, element, all)]);
    }
    match (name, type_) {
        ("status", _) => json!("Failure"),
        ("failurePolicy", _) => json!("Ignore"),
        ("patchType", _) => json!("JSONPatch"),
        (_, "string") => json!(format!("a {name}")),
        (_, "base64") => json!("e30="),
        (_, "int32") => json!(7),
        (_, "bool") => json!(true),
        (_, "map[string]string") => json!({"a": "b"}),
        // Of a Cluster, only what hooks read is kept.
        ("cluster", "any") => json!({"metadata": {"name": "a"}}),
        (_, "any") => json!({"metadata": {"name": "a"}, "unknown": [1, null]}),
        _ => object(published, type_, all),
    }
}

/// What the Rust type reads of such an object, it writes.
fn same<T: DeserializeOwned + Serialize>(types: &Published, name: &str) {
    assert!(types[name].contains_key("apiVersion") && types[name].contains_key("kind"), "{name}");
    for all in [true, false] {
        let published = object(types, name, all);
        let read: T = serde_json::from_value(published.clone())
            .unwrap_or_else(|error| panic!("{} does not read {name}: {error}", type_name::<T>()));
        assert_eq!(serde_json::to_value(&read).unwrap(), published, "{name} as {}", type_name::<T>());
    }
}

// Rules: R2
#[test]
fn every_type_has_the_published_fields() {
    let types = published();
    same::<DiscoveryResponse>(&types, "DiscoveryResponse");
    same::<DiscoverVariablesRequest>(&types, "DiscoverVariablesRequest");
    same::<DiscoverVariablesResponse>(&types, "DiscoverVariablesResponse");
    same::<GeneratePatchesRequest>(&types, "GeneratePatchesRequest");
    same::<GeneratePatchesResponse>(&types, "GeneratePatchesResponse");
    same::<ValidateTopologyRequest>(&types, "ValidateTopologyRequest");
    same::<CommonResponse>(&types, "ValidateTopologyResponse");
    for hook in [Hook::BeforeClusterCreate, Hook::AfterControlPlaneInitialized, Hook::BeforeClusterDelete] {
        same::<ClusterRequest>(&types, &format!("{hook}Request"));
    }
    for hook in [Hook::BeforeClusterUpgrade, Hook::BeforeControlPlaneUpgrade, Hook::BeforeWorkersUpgrade] {
        same::<UpgradeRequest>(&types, &format!("{hook}Request"));
    }
    for hook in [Hook::AfterControlPlaneUpgrade, Hook::AfterWorkersUpgrade, Hook::AfterClusterUpgrade] {
        same::<UpgradedRequest>(&types, &format!("{hook}Request"));
    }
    same::<CommonResponse>(&types, "AfterControlPlaneInitializedResponse");
    for hook in [
        Hook::BeforeClusterCreate,
        Hook::BeforeClusterUpgrade,
        Hook::BeforeControlPlaneUpgrade,
        Hook::AfterControlPlaneUpgrade,
        Hook::BeforeWorkersUpgrade,
        Hook::AfterWorkersUpgrade,
        Hook::AfterClusterUpgrade,
        Hook::BeforeClusterDelete,
    ] {
        same::<RetryResponse>(&types, &format!("{hook}Response"));
    }
    same::<GenerateUpgradePlanRequest>(&types, "GenerateUpgradePlanRequest");
    same::<GenerateUpgradePlanResponse>(&types, "GenerateUpgradePlanResponse");
}

#[test]
fn every_hook_is_one_that_core_publishes() {
    let types = published();
    for hook in Hook::ALL {
        assert!(types.contains_key(&format!("{hook}Request")), "{hook}");
        assert!(types.contains_key(&format!("{hook}Response")), "{hook}");
    }
    let requests = types.keys().filter(|name| name.ends_with("Request")).count();
    assert_eq!(requests, Hook::ALL.len() + 1, "and discovery");
}

// Rules: R8
#[test]
fn unknown_fields_and_empty_lists_of_go_are_read() {
    let read: GeneratePatchesRequest =
        serde_json::from_value(json!({"settings": null, "items": null, "variables": null, "later": {}}))
            .unwrap();
    assert_eq!(read, GeneratePatchesRequest::default());
    let read: UpgradeRequest =
        serde_json::from_value(json!({"cluster": {"spec": {"later": 1}}, "workersUpgrades": [{"later": 1}]}))
            .unwrap();
    assert_eq!(read.workers_upgrades.len(), 1);
}
