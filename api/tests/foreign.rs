//! What is read of Cluster API's own objects, from JSON as its API server returns it.

#![cfg(test)]

use std::collections::BTreeMap;

use capasg_api::{
    ASGMachine, ASGMachinePool, ASGMachineSpec,
    capi::{
        self, Cluster, Machine, MachinePool, bootstrap_resource, is_owned_by, machine_owner,
        owner_machine_pool, owner_reference_to_pool, pause_state, pool_owner_of_machine,
        region_of_aws_cluster, spec_of, vpc_of_aws_cluster,
    },
    names::{annotations, labels, tags},
};
use capasg_test_objects::{minimal_pool, with};
use kube::core::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// An object of core's, as typed as we read it.
fn object<K: DeserializeOwned>(kind: &str, metadata: Value, spec: Value, status: Value) -> K {
    let object = json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind });
    let parts = [("metadata", metadata), ("spec", spec), ("status", status)];
    let object = parts.into_iter().fold(object, |object, (path, part)| with(object, path, part));
    serde_json::from_value(object).unwrap()
}

fn cluster(spec: Value, status: Value) -> Cluster {
    object("Cluster", json!({ "name": "prod" }), spec, status)
}

fn machine_pool(annotations: Value, spec: Value) -> MachinePool {
    object("MachinePool", with(json!({ "name": "workers" }), "annotations", annotations), spec, json!({}))
}

fn machine(metadata: Value, status: Value) -> Machine {
    object("Machine", metadata, json!({ "clusterName": "prod" }), status)
}

fn pool(metadata: Value) -> ASGMachinePool {
    serde_json::from_value(with(minimal_pool(), "metadata", metadata)).unwrap()
}

fn owner(api_version: &str, kind: &str, uid: &str, controller: bool) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "name": "x", "uid": uid, "controller": controller })
}

#[test]
fn the_vpc_of_a_cluster_is_that_of_its_aws_cluster() {
    let of = |api_group: &str, kind: &str| {
        let reference = json!({ "apiGroup": api_group, "kind": kind, "name": "prod" });
        cluster(json!({ "infrastructureRef": reference }), json!({}))
    };
    let aws = of("infrastructure.cluster.x-k8s.io", "AWSCluster");
    assert_eq!(aws.aws_cluster().map(|reference| reference.name.as_str()), Some("prod"));
    assert!(of("infrastructure.cluster.x-k8s.io", "DevCluster").aws_cluster().is_none());
    assert!(cluster(json!({}), json!({})).aws_cluster().is_none());
    let vpc = |id: &str| vpc_of_aws_cluster(&json!({ "network": { "vpc": { "id": id } } }));
    assert_eq!(vpc("vpc-1").as_deref(), Some("vpc-1"));
    assert!(vpc("").is_none() && vpc_of_aws_cluster(&json!({})).is_none());
    let region = |name: &str| region_of_aws_cluster(&json!({ "region": name }));
    assert_eq!(region("us-east-1").as_deref(), Some("us-east-1"));
    assert!(region("").is_none() && region_of_aws_cluster(&json!({})).is_none());
}

// Rules: C3
#[test]
fn a_cluster_without_infrastructure_is_not_waited_for() {
    let reference =
        json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": "prod" });
    let waiting = cluster(json!({ "infrastructureRef": reference }), json!({}));
    assert!(!waiting.is_infrastructure_ready());
    let provisioned = json!({ "initialization": { "infrastructureProvisioned": true } });
    assert!(cluster(json!({ "infrastructureRef": reference }), provisioned).is_infrastructure_ready());
    assert!(cluster(json!({}), json!({})).is_infrastructure_ready());
    assert!(cluster(json!({ "infrastructureRef": {} }), Value::Null).is_infrastructure_ready());
}

// Rules: F1, M3
#[test]
fn any_of_three_settings_pauses() {
    let running = cluster(json!({ "paused": false }), json!({}));
    let paused = cluster(json!({ "paused": true }), json!({}));
    let annotated = |key: &str| BTreeMap::from([(key.to_owned(), String::new())]);
    let none = BTreeMap::new();
    assert!(!pause_state(Some(&running), &none).is_paused());
    assert!(!pause_state(None, &none).is_paused());
    assert!(pause_state(Some(&paused), &none).is_paused());
    assert!(pause_state(Some(&running), &annotated(annotations::PAUSED)).is_paused());
    assert!(pause_state(None, &annotated(annotations::DELETE_FOR_MOVE)).is_paused());
}

// Rules: B12
#[test]
fn replicas_default_to_one() {
    assert_eq!(machine_pool(json!({}), json!({ "clusterName": "prod" })).replicas(), 1);
    assert_eq!(machine_pool(json!({}), json!({ "replicas": 0 })).replicas(), 0);
}

// Rules: G2
#[test]
fn any_manager_of_replicas_but_false_counts() {
    let managed = |value: &str| {
        let pool = machine_pool(json!({ annotations::REPLICAS_MANAGED_BY: value }), json!({}));
        pool.replicas_managed_by().map(str::to_owned)
    };
    assert_eq!(managed("external-autoscaler").as_deref(), Some("external-autoscaler"));
    assert_eq!(managed("").as_deref(), Some(""));
    assert_eq!(managed("false"), None);
    assert_eq!(machine_pool(json!({}), json!({})).replicas_managed_by(), None);
}

// Rules: G3
#[test]
fn the_specs_bounds_take_precedence_over_the_autoscalers() {
    let annotated = json!({ annotations::AUTOSCALER_MIN_SIZE: "2", annotations::AUTOSCALER_MAX_SIZE: "9" });
    let owner = machine_pool(annotated, json!({}));
    let odd = machine_pool(json!({ annotations::AUTOSCALER_MAX_SIZE: "many" }), json!({}));
    let spec = pool(json!({ "name": "workers" })).spec;
    let bounds = |spec: &capasg_api::ASGMachinePoolSpec, owner: Option<&MachinePool>| {
        let limits = spec.limits(owner);
        (limits.min, limits.max)
    };
    assert_eq!(bounds(&spec, None), (0, None));
    assert_eq!(bounds(&spec, Some(&odd)), (0, None));
    assert_eq!(bounds(&spec, Some(&owner)), (2, Some(9)));
    let own = capasg_api::ASGMachinePoolSpec { min_size: Some(0), max_size: Some(3), ..spec };
    assert_eq!(bounds(&own, Some(&owner)), (0, Some(3)));
    let limits = own.limits(None);
    assert!(limits.contain(0) && limits.contain(3) && !limits.contain(4) && !limits.contain(-1));
}

#[test]
fn the_owner_data_that_a_pool_needs_are_found() {
    let pool = machine_pool(
        json!({}),
        json!({
            "clusterName": "prod",
            "failureDomains": ["eu-west-1a"],
            "template": { "spec": {
                "version": "v1.33.2",
                "bootstrap": {
                    "dataSecretName": "workers",
                    "configRef": { "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "workers" },
                },
                "deletion": { "nodeDrainTimeoutSeconds": 600 },
                "taints": [{ "key": "unknown to us" }],
            } },
        }),
    );
    assert_eq!(pool.version(), Some("v1.33.2"));
    assert_eq!(pool.data_secret_name(), Some("workers"));
    assert_eq!(pool.failure_domains(), ["eu-west-1a"]);
    assert_eq!(pool.node_drain_timeout_seconds(), Some(600));
    let resource = bootstrap_resource(pool.bootstrap_config().unwrap(), "v1beta2");
    assert_eq!(
        (resource.api_version.as_str(), resource.plural.as_str()),
        ("bootstrap.cluster.x-k8s.io/v1beta2", "kubeadmconfigs")
    );

    let bare =
        machine_pool(json!({}), json!({ "template": { "spec": { "bootstrap": { "dataSecretName": "" } } } }));
    assert_eq!((bare.data_secret_name(), bare.bootstrap_config(), bare.version()), (None, None, None));
    assert_eq!(bare.node_drain_timeout_seconds(), None);
}

// Rules: A3
#[test]
fn the_newest_version_of_the_newest_contract_is_read() {
    let labels = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
    };
    let both = labels(&[
        ("cluster.x-k8s.io/v1beta1", "v1"),
        ("cluster.x-k8s.io/v1beta2", "v1alpha3_v1beta1_v1beta2"),
    ]);
    assert_eq!(capi::contract_version(&both), Some("v1beta2"));
    assert_eq!(capi::contract_version(&labels(&[("cluster.x-k8s.io/v1beta1", "v1beta1_v1")])), Some("v1"));
    assert_eq!(capi::contract_version(&labels(&[("cluster.x-k8s.io/v1alpha4", "v1alpha4")])), None);
    assert_eq!(capi::contract_version(&labels(&[("cluster.x-k8s.io/v1beta2", "")])), None);
}

// Rules: C4
#[test]
fn a_machine_pool_leads_only_to_a_pool_of_our_kind() {
    let to = |group: &str, kind: &str| {
        let reference = json!({ "apiGroup": group, "kind": kind, "name": "workers" });
        let pool =
            machine_pool(json!({}), json!({ "template": { "spec": { "infrastructureRef": reference } } }));
        pool.infrastructure_pool().map(str::to_owned)
    };
    assert_eq!(to("infrastructure.cluster.x-k8s.io", "ASGMachinePool").as_deref(), Some("workers"));
    assert_eq!(to("infrastructure.cluster.x-k8s.io", "AWSMachinePool"), None);
    assert_eq!(to("example.com", "ASGMachinePool"), None);
    assert_eq!(machine_pool(json!({}), json!({})).infrastructure_pool(), None);
}

// Rules: D3
#[test]
fn an_instance_carries_the_labels_that_core_looks_for() {
    let labels = labels::of_machine("prod", &"p".repeat(70));
    assert_eq!(labels["cluster.x-k8s.io/cluster-name"], "prod");
    assert!(labels["cluster.x-k8s.io/pool-name"].starts_with("hash_"));
}

#[test]
fn a_bootstrap_object_of_any_kind_gives_its_spec() {
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
        "metadata": { "name": "workers" }, "spec": { "format": "cloud-config" },
    }))
    .unwrap();
    assert_eq!(spec_of(&object), &json!({ "format": "cloud-config" }));
}

#[test]
fn machines_report_joined_healthy_and_deleting() {
    let fresh = machine(json!({ "name": "m" }), Value::Null);
    assert!(!fresh.has_node() && !fresh.is_ready() && !fresh.is_deleting() && !fresh.has_delete_annotation());
    assert!(!fresh.needs_remediation());
    let condition = |type_: &str, status: &str| json!({ "type": type_, "status": status, "reason": "X", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let joined = machine(
        json!({
            "name": "m",
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "annotations": { annotations::DELETE_MACHINE: "" },
        }),
        json!({
            "nodeRef": { "name": "ip-10-0-0-1" },
            "conditions": [
                condition("Ready", "True"),
                condition("HealthCheckSucceeded", "False"),
                condition("OwnerRemediated", "False"),
            ],
        }),
    );
    assert_eq!(joined.node_name(), Some("ip-10-0-0-1"));
    assert!(joined.is_ready() && joined.is_deleting() && joined.has_delete_annotation());
    assert!(joined.needs_remediation());
    let recovered = json!({ "conditions": [condition("HealthCheckSucceeded", "True"), condition("OwnerRemediated", "False")] });
    assert!(!machine(json!({ "name": "m" }), recovered).needs_remediation(), "nobody takes the mark off");
}

// Rules: C1, J5
#[test]
fn only_a_controlling_machine_pool_owns_a_pool() {
    let of = |owners: Value| {
        let pool = pool(json!({ "name": "workers", "ownerReferences": owners }));
        owner_machine_pool(&pool).map(|owner| owner.uid.clone())
    };
    let topology = owner("cluster.x-k8s.io/v1beta2", "Cluster", "c", false);
    assert_eq!(of(json!([topology])), None);
    assert_eq!(of(json!([owner("cluster.x-k8s.io/v1beta2", "MachinePool", "p", false)])), None);
    assert_eq!(of(json!([owner("example.com/v1", "MachinePool", "p", true)])), None);
    assert_eq!(
        of(json!([topology, owner("cluster.x-k8s.io/v1beta1", "MachinePool", "p", true)])).as_deref(),
        Some("p")
    );
}

// Rules: D4
#[test]
fn an_instance_is_owned_by_its_pool_but_controlled_by_its_machine() {
    let pool = pool(json!({ "name": "workers", "uid": "pool-uid" }));
    let reference = owner_reference_to_pool(&pool).unwrap();
    assert_eq!((reference.kind.as_str(), reference.controller), ("ASGMachinePool", None));

    let mut instance = ASGMachine::new("workers-i-1", ASGMachineSpec::new("eu-west-1a", "i-1"));
    instance.metadata.owner_references = Some(vec![reference]);
    assert!(machine_owner(&instance).is_none());
    assert_eq!(pool_owner_of_machine(&instance).unwrap().uid, "pool-uid");
    let machine = owner("cluster.x-k8s.io/v1beta2", "Machine", "m", true);
    instance.metadata.owner_references.as_mut().unwrap().push(serde_json::from_value(machine).unwrap());
    assert_eq!(machine_owner(&instance).unwrap().uid, "m");
    assert!(is_owned_by(&instance.metadata, "pool-uid") && !is_owned_by(&instance.metadata, "other"));
    assert_eq!(capi::GROUP, "cluster.x-k8s.io");
}

#[test]
fn a_user_cannot_override_the_tags_of_a_pool() {
    let user = [("Name", "mine"), ("team", "a"), (tags::OWNER_ID, "forged")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    let all = tags::of_pool(&user, "owner", "default", "prod", "workers");
    assert_eq!(all["Name"], "mine");
    assert_eq!(all["team"], "a");
    assert_eq!(all[tags::OWNER_ID], "owner");
    assert_eq!(all["kubernetes.io/cluster/prod"], "owned");
    let plain = tags::of_pool(&BTreeMap::new(), "owner", "default", "prod", &"p".repeat(300));
    assert_eq!(plain["Name"].len(), 256);
}
