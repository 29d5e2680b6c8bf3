//! What a client that reaches the port of the hooks can have written: nothing that the API server does not confirm.

use std::sync::{Arc, atomic::Ordering};

use capasg_api::names::addons::Phase;
use serde_json::{Value, json};

use crate::{
    Extension,
    names::{annotations, events},
    ports::{AddonFacts, ReleaseFacts},
    protocol::Hook,
    testing::{World, annotated, blocks, call, ready_pool, request},
};

/// The hooks that say something of one Cluster.
fn of_a_cluster() -> impl Iterator<Item = Hook> {
    Hook::ALL.into_iter().filter(|hook| hook.name().starts_with("Before") || hook.name().starts_with("After"))
}

/// A world with the Cluster of requests of a hook, a pool that is not ready, and an add-on that is not ready for a step.
fn world(hook: Hook) -> Arc<World> {
    let world = World::with_pool(capasg_test_objects::with(ready_pool("a"), "status/conditions", json!([])));
    let release = ReleaseFacts { name: "cni-prod".into(), ..ReleaseFacts::default() };
    let addon = AddonFacts { name: "cni".into(), release: Some(release), ..AddonFacts::default() };
    for phase in Phase::ALL {
        world.set_addons(phase, std::slice::from_ref(&addon));
    }
    *world.live.lock().unwrap() = Some(request(hook, json!({}))["cluster"].clone());
    world
}

/// Whether anything was written, or remembered of Clusters that exist.
fn wrote(world: &World, extension: &Extension) -> bool {
    let records = world.record.lock().unwrap().is_some() || extension.services().blocks.remembered() > 0;
    records || !world.reasons().is_empty() || !world.requested().is_empty()
}

#[tokio::test]
async fn a_request_for_a_cluster_that_does_not_exist_writes_nothing() {
    for hook in of_a_cluster() {
        for (field, value) in [("uid", "random"), ("uid", ""), ("name", "other"), ("namespace", "other")] {
            let world = world(hook);
            let extension = world.extension();
            let protected = json!({annotations::DELETION_PROTECTION: "true"});
            let mut posted = annotated(hook, &protected, &json!({}));
            posted["cluster"]["metadata"][field] = json!(value);
            let response = call(&extension, hook, &posted).await;
            assert_eq!(response["status"], "Failure", "{hook}, {field}: {response}");
            assert!(response["message"].as_str().unwrap().starts_with("the API server has no Cluster"));
            assert!(!wrote(&world, &extension), "{hook}, {field}: {:?}", world.reasons());
        }
    }
}

#[tokio::test]
async fn annotations_of_a_request_have_no_effect() {
    let hook = Hook::BeforeClusterDelete;
    let of = |value: &str| json!({annotations::DELETION_PROTECTION: value});
    for (live, posted) in [("true", "false"), ("false", "true")] {
        let world = World::empty();
        *world.live.lock().unwrap() = Some(annotated(hook, &of(live), &json!({}))["cluster"].clone());
        let extension = world.extension();
        let response = call(&extension, hook, &annotated(hook, &of(posted), &json!({}))).await;
        assert_eq!(blocks(&response), live == "true");
        assert_eq!(wrote(&world, &extension), live == "true");
        let skipped = annotated(hook, &json!({annotations::SKIP_HOOK: hook.name()}), &json!({}));
        assert_eq!(blocks(&call(&extension, hook, &skipped).await), live == "true");
        assert!(!world.reasons().contains(&events::HOOK_SKIPPED));
    }
}

#[tokio::test]
async fn a_version_that_the_cluster_does_not_request_reaches_no_release() {
    let hook = Hook::BeforeControlPlaneUpgrade;
    let (ready, newer) = (json!({}), "v1.37.0");
    let posts: [(Hook, Value); 3] = [
        (hook, json!({"toKubernetesVersion": newer})),
        (Hook::BeforeClusterUpgrade, json!({"controlPlaneUpgrades": [{"version": newer}]})),
        (hook, json!({"toKubernetesVersion": "no version"})),
    ];
    for (hook, more) in posts {
        let world = world(hook);
        world.set_pools(Vec::new());
        let extension = world.extension();
        let mut posted = request(hook, more);
        posted["cluster"]["spec"]["topology"]["version"] = json!(newer);
        let response = call(&extension, hook, &posted).await;
        assert_eq!(response["status"], "Failure", "{response}");
        assert!(!wrote(&world, &extension));
        // The one that the Cluster requests does.
        assert!(blocks(&call(&extension, hook, &request(hook, ready.clone())).await));
        let requested = world.requested();
        assert_eq!(requested.iter().map(|one| one.next.as_str()).collect::<Vec<_>>(), ["v1.36.3"]);
    }
}

/// The record of a Cluster is for the version that it requests: an early call begins no deadline of a later upgrade.
#[tokio::test]
async fn a_deadline_does_not_begin_before_the_upgrade_is_requested() {
    let hook = Hook::BeforeClusterUpgrade;
    let world = world(hook);
    let live = |version: &str| {
        let mut cluster = request(hook, json!({}))["cluster"].clone();
        cluster["spec"]["topology"]["version"] = json!(version);
        *world.live.lock().unwrap() = Some(cluster);
    };
    live("v1.35.1");
    let extension = world.extension();
    for to in ["v1.36.3", "v1.35.1"].repeat(3) {
        let mut early = request(hook, json!({"toKubernetesVersion": to}));
        early["cluster"]["spec"]["topology"]["version"] = json!("v1.36.3");
        call(&extension, hook, &early).await;
        world.pass(20);
    }
    live("v1.36.3");
    assert!(blocks(&call(&extension, hook, &request(hook, json!({}))).await), "its deadline begins now");
}

#[tokio::test]
async fn a_moment_of_life_that_is_not_reached_is_not_reported() {
    for (hook, pointer) in
        [(Hook::BeforeClusterDelete, "deletionTimestamp"), (Hook::AfterControlPlaneInitialized, "conditions")]
    {
        let world = world(hook);
        let mut live = request(hook, json!({}))["cluster"].clone();
        for part in ["metadata", "status"] {
            live[part].as_object_mut().map(|part| part.remove(pointer));
        }
        live["metadata"]["annotations"] = json!({annotations::DELETION_PROTECTION: "true"});
        *world.live.lock().unwrap() = Some(live);
        let extension = world.extension();
        assert_eq!(call(&extension, hook, &request(hook, json!({}))).await["status"], "Failure", "{hook}");
        assert!(!wrote(&world, &extension), "{hook}");
    }
}

/// The answer is that of before; nothing that is claimed meanwhile counts later.
#[tokio::test]
async fn while_clusters_cannot_be_read_hooks_answer_and_write_nothing() {
    for hook in of_a_cluster() {
        let world = world(hook);
        let extension = world.extension();
        let plain = request(hook, json!({}));
        let read = call(&extension, hook, &plain).await;
        world.cluster_fails.store(true, Ordering::SeqCst);
        let (extension, plain) = (world.extension(), plain);
        world.notices.lock().unwrap().clear();
        *world.record.lock().unwrap() = None;
        world.requested();
        assert_eq!(call(&extension, hook, &plain).await, read, "{hook}");
        let skipped = annotated(hook, &json!({annotations::SKIP_HOOK: hook.name()}), &json!({}));
        assert_eq!(call(&extension, hook, &skipped).await["status"], "Success", "{hook}");
        assert!(!wrote(&world, &extension), "{hook}");
        // A technical block ends at its deadline also then.
        for _ in 0..5 {
            call(&extension, hook, &plain).await;
            world.pass(15);
        }
        assert!(!blocks_now(&call(&extension, hook, &plain).await), "{hook}");
        assert!(!wrote(&world, &extension), "{hook}");
    }
}

fn blocks_now(response: &Value) -> bool {
    response["retryAfterSeconds"].as_i64().is_some_and(|seconds| seconds > 0)
}
