//! Objects of others by the thousand, as the controllers meet them: whole, with parts missing, or with something else
//! where something was.

use serde_json::{Value, json};

use super::random::Random;

/// A foreign object of a seed: a Cluster, MachinePool, Machine, bootstrap configuration or Secret.
///
/// Its metadata are such as every API server lets in; what is below `spec`, `status` and `data` is anything.
#[must_use]
pub fn foreign(seed: u64) -> Value {
    let random = &mut Random::new(seed);
    let kinds: [fn() -> Value; 5] = [cluster, machine_pool, machine, kubeadm_config, secret];
    let mut object = random.one_of(&kinds)();
    object["metadata"]["name"] = json!(format!("odd-{seed}"));
    for _ in 0..random.index(5) {
        let roots: Vec<String> = object
            .as_object()
            .into_iter()
            .flat_map(|members| members.keys())
            .filter(|name| !["apiVersion", "kind", "metadata", "type"].contains(&name.as_str()))
            .cloned()
            .collect();
        if roots.is_empty() {
            break;
        }
        let root = random.one_of(&roots).clone();
        if random.chance(10) {
            if let Some(members) = object.as_object_mut() {
                members.remove(&root);
            }
        } else {
            make_odd(random, &mut object[root]);
        }
    }
    if random.chance(30) {
        let names = ["labels", "annotations", "ownerReferences", "finalizers"];
        let name = *random.one_of(&names);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove(name);
        }
    }
    object
}

/// Changes one thing somewhere below.
fn make_odd(random: &mut Random, value: &mut Value) {
    if random.chance(75) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                let names: Vec<String> = members.keys().cloned().collect();
                let name = random.one_of(&names);
                if random.chance(20) {
                    members.remove(name);
                } else {
                    make_odd(random, &mut members[name]);
                }
                return;
            }
            Value::Array(items) if !items.is_empty() => {
                let at = random.index(items.len());
                make_odd(random, &mut items[at]);
                return;
            }
            _ => {}
        }
    }
    let others = [
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(1.5),
        json!(9_223_372_036_854_775_807_i64),
        json!(""),
        json!("x".repeat(300)),
        json!("é漢🦀\u{0}"),
        json!("2026-13-45T99:00:00Z"),
        json!([]),
        json!([null]),
        json!({}),
        json!({"": null, "unknown": {"to": ["us"]}}),
        json!([[{"a": 1}]]),
    ];
    *value = random.one_of(&others).clone();
}

fn object(api_version: &str, kind: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "labels": {"cluster.x-k8s.io/cluster-name": "odd", "cluster.x-k8s.io/pool-name": "odd"},
            "annotations": {
                "cluster.x-k8s.io/paused": "",
                "cluster.x-k8s.io/replicas-managed-by": "somebody",
                "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "many",
            },
            "finalizers": ["example.com/kept"],
            "ownerReferences": [{"apiVersion": "v1/v2/v3", "kind": "MachinePool", "name": "", "uid": "u", "controller": true}],
        },
    })
}

fn cluster() -> Value {
    let mut cluster = object("cluster.x-k8s.io/v1beta2", "Cluster");
    cluster["spec"] = json!({
        "paused": false,
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": "odd"},
        "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "odd"},
        "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
        "topology": {"classRef": {"name": "odd"}, "version": "v1.36.3"},
    });
    cluster["status"] = json!({
        "initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true},
        "conditions": [condition("Available")],
        "phase": "Provisioned",
    });
    cluster
}

fn machine_pool() -> Value {
    let mut pool = object("cluster.x-k8s.io/v1beta2", "MachinePool");
    pool["spec"] = json!({
        "clusterName": "odd",
        "replicas": 3,
        "failureDomains": ["eu-west-1a"],
        "providerIDList": ["aws:///eu-west-1a/i-1"],
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "clusterName": "odd",
                "version": "v1.36.3",
                "bootstrap": {
                    "dataSecretName": "odd",
                    "configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "odd"},
                },
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ASGMachinePool", "name": "odd",
                },
                "deletion": {
                    "nodeDrainTimeoutSeconds": 60,
                    "nodeVolumeDetachTimeoutSeconds": 60,
                    "nodeDeletionTimeoutSeconds": 10,
                },
                "minReadySeconds": 5,
            },
        },
    });
    pool["status"] = json!({
        "replicas": 3,
        "phase": "Running",
        "nodeRefs": [{"name": "ip-10-0-0-1"}],
        "initialization": {"infrastructureProvisioned": true, "bootstrapDataSecretCreated": true},
        "conditions": [condition("Ready")],
    });
    pool
}

fn machine() -> Value {
    let mut machine = object("cluster.x-k8s.io/v1beta2", "Machine");
    machine["spec"] = json!({
        "clusterName": "odd",
        "bootstrap": {"dataSecretName": "odd"},
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ASGMachine", "name": "odd-i-1"},
        "providerID": "aws:///eu-west-1a/i-1",
        "version": "v1.36.3",
        "deletion": {"nodeDrainTimeoutSeconds": 60, "nodeVolumeDetachTimeoutSeconds": 60},
    });
    machine["status"] = json!({
        "nodeRef": {"name": "ip-10-0-0-1"},
        "phase": "Running",
        "conditions": [condition("Ready"), condition("HealthCheckSucceeded"), condition("OwnerRemediated")],
        "deletion": {"nodeDrainStartTime": "2026-05-01T10:00:00Z"},
    });
    machine
}

fn kubeadm_config() -> Value {
    let mut config = object("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig");
    config["spec"] = json!({
        "format": "cloud-config",
        "joinConfiguration": {"discovery": {"bootstrapToken": {"token": "abcdef.0123456789abcdef"}}},
        "preKubeadmCommands": ["true"],
    });
    config["status"] = json!({"dataSecretName": "odd", "initialization": {"dataSecretCreated": true}});
    config
}

fn secret() -> Value {
    let mut secret = object("v1", "Secret");
    secret["type"] = json!("cluster.x-k8s.io/secret");
    secret["data"] = json!({"value": "I2Nsb3VkLWNvbmZpZwo=", "format": "Y2xvdWQtY29uZmln"});
    secret
}

fn condition(type_: &str) -> Value {
    json!({
        "type": type_,
        "status": "False",
        "reason": "Because",
        "message": "words",
        "lastTransitionTime": "2026-05-01T10:00:00Z",
        "observedGeneration": 1,
    })
}
