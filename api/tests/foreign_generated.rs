//! Thousands of odd objects of others, read as the watches read them.

#![cfg(test)]

use std::fmt::Debug;

use capasg_api::{
    ASGMachinePoolSpec,
    capi::{Cluster, Machine, MachinePool, pause_state, spec_of},
};
use capasg_test_objects::{foreign, minimal_pool};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Resource, ResourceExt,
    core::{DeserializeGuard, DynamicObject, ObjectList, PartialObjectMeta, WatchEvent},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const OBJECTS: u64 = 10_000;

/// Reads the objects of a kind by themselves, as a watch does, and all at once, as the list before it does. Answers
/// those that could be read; the others are left out and said.
fn watched<K>(objects: &[Value], kind: &str) -> (usize, Vec<K>)
where
    K: DeserializeOwned + Clone + Debug + Resource,
{
    let of_kind: Vec<&Value> = objects.iter().filter(|object| object["kind"] == kind).collect();
    for object in &of_kind {
        let event = json!({"type": "MODIFIED", "object": object});
        let event: Result<WatchEvent<DeserializeGuard<K>>, _> = serde_json::from_value(event);
        assert!(matches!(event, Ok(WatchEvent::Modified(_))), "the watch stops at {object}: {event:?}");
    }
    let list = json!({"metadata": {"resourceVersion": "1"}, "items": of_kind});
    let list: ObjectList<DeserializeGuard<K>> = serde_json::from_value(list).unwrap();
    assert_eq!(list.items.len(), of_kind.len());
    (of_kind.len(), list.items.into_iter().filter_map(|item| item.0.ok()).collect())
}

// Rules: C4
#[test]
fn no_generated_object_of_another_kind_stops_a_watch() {
    let objects: Vec<Value> = (0..OBJECTS).map(foreign).collect();
    let spec: ASGMachinePoolSpec = serde_json::from_value(minimal_pool()["spec"].clone()).unwrap();

    let (all, clusters) = watched::<Cluster>(&objects, "Cluster");
    assert!(all > 1_000 && clusters.len() * 3 > all && clusters.len() < all, "{} of {all}", clusters.len());
    for cluster in &clusters {
        let _ = (cluster.is_infrastructure_ready(), pause_state(Some(cluster), cluster.annotations()));
    }

    let (all, pools) = watched::<MachinePool>(&objects, "MachinePool");
    assert!(all > 1_000 && pools.len() * 3 > all && pools.len() < all, "{} of {all}", pools.len());
    for pool in &pools {
        let _ = (pool.replicas(), pool.replicas_managed_by(), pool.version(), pool.failure_domains());
        let _ = (pool.data_secret_name(), pool.bootstrap_config(), pool.infrastructure_pool());
        let _ = (pool.node_drain_timeout_seconds(), spec.limits(Some(pool)));
    }

    let (all, machines) = watched::<Machine>(&objects, "Machine");
    assert!(all > 1_000 && machines.len() * 3 > all && machines.len() < all, "{} of {all}", machines.len());
    for machine in &machines {
        let _ = (machine.node_name(), machine.is_ready(), machine.is_deleting());
        let _ = (machine.has_delete_annotation(), machine.needs_remediation());
    }

    // Bootstrap configurations are read as they are, and of Secrets the metadata alone are watched.
    let (all, configs) = watched::<DynamicObject>(&objects, "KubeadmConfig");
    assert_eq!(configs.len(), all);
    for config in &configs {
        let _ = spec_of(config);
    }
    for secret in objects.iter().filter(|object| object["kind"] == "Secret") {
        let event = json!({"type": "ADDED", "object": secret});
        let event: Result<WatchEvent<PartialObjectMeta<Secret>>, _> = serde_json::from_value(event);
        assert!(matches!(event, Ok(WatchEvent::Added(_))), "the watch stops at {secret}: {event:?}");
    }
}
