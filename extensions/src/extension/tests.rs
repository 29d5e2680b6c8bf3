//! Calls as core makes them, and as it does not.

use std::{collections::BTreeSet, sync::atomic::Ordering};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    protocol::FailurePolicy,
    testing::{World, call, ready_pool, request},
};

fn processed(reply: Reply) -> Value {
    match reply {
        Reply::Processed(body) => serde_json::from_slice(&body).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn discovery() -> Vec<u8> {
    json!({"apiVersion": API_VERSION, "kind": "DiscoveryRequest"}).to_string().into_bytes()
}

// Rules: R1, R3, R15
#[test]
fn discovery_has_every_implemented_hook() {
    let response = processed(World::empty().extension().discover(&discovery()));
    assert_eq!(response["apiVersion"], API_VERSION);
    assert_eq!((&response["kind"], &response["status"]), (&json!("DiscoveryResponse"), &json!("Success")));
    let handlers = response["handlers"].as_array().unwrap();
    assert_eq!(handlers.len(), Extension::implemented().len());
    for handler in handlers {
        assert_eq!(handler["requestHook"]["apiVersion"], API_VERSION);
        let hook: Hook = handler["requestHook"]["hook"].as_str().unwrap().parse().unwrap();
        assert_eq!(handler["name"], hook.handler());
        assert_eq!(handler["timeoutSeconds"], 10);
        let policy: FailurePolicy = serde_json::from_value(handler["failurePolicy"].clone()).unwrap();
        assert_eq!(policy, hook.failure_policy());
    }
    let implemented: BTreeSet<Hook> = Extension::implemented().into_iter().collect();
    assert_eq!(implemented, BTreeSet::from(Hook::ALL), "every hook has a handler");
}

// Rules: R12
#[tokio::test]
async fn only_what_is_advertised_is_discovered_and_all_is_served() {
    let world = World::empty();
    let Extension { services, .. } = world.extension();
    let services = Arc::into_inner(services).unwrap();
    let extension = Extension::new(services, &[Hook::BeforeClusterDelete]);
    let handlers = processed(extension.discover(&discovery()))["handlers"].clone();
    assert_eq!(handlers.as_array().unwrap().len(), 1);
    assert_eq!(handlers[0]["name"], "before-cluster-delete");
    let hook = extension.find("beforeclusterupgrade", "before-cluster-upgrade").unwrap();
    assert_eq!(call(&extension, hook, &request(hook, json!({}))).await["status"], "Success");
}

// Rules: R1
#[test]
fn handlers_are_found_by_hook_and_name() {
    let extension = World::empty().extension();
    let hook = Hook::AfterControlPlaneInitialized;
    assert_eq!(extension.find("aftercontrolplaneinitialized", "after-control-plane-initialized"), Some(hook));
    for (hook, handler) in [
        ("beforeclusterupgrade", "before-cluster-delete"),
        ("BeforeClusterUpgrade", "before-cluster-upgrade"),
        ("updatemachine", "update-machine"),
        ("", ""),
    ] {
        assert_eq!(extension.find(hook, handler), None, "{hook}/{handler}");
    }
}

#[tokio::test]
async fn what_is_no_request_of_the_hook_is_malformed_and_not_quoted() {
    let extension = World::empty().extension();
    let other = request(Hook::BeforeClusterDelete, json!({"cluster": "a secret"})).to_string();
    for body in ["", "{", "[]", "null", "\"a secret\"", "{\"kind\": \"BeforeClusterUpgradeRequest\"}", &other]
    {
        let reply = extension.call(Hook::BeforeClusterUpgrade, body.as_bytes(), DEFAULT_BUDGET).await;
        let Reply::Malformed(why) = reply else { panic!("{body}: {reply:?}") };
        assert!(!why.contains("secret"), "{why}");
    }
    assert!(matches!(extension.discover(b"{}"), Reply::Malformed(_)));
}

// Rules: R2
#[tokio::test]
async fn a_request_that_cannot_succeed_is_a_failure_in_words() {
    let extension = World::empty().extension();
    let hook = Hook::BeforeClusterUpgrade;
    for (more, message) in [
        (json!({"cluster": null}), "the request has no cluster with a name and a namespace"),
        (json!({"controlPlaneUpgrades": 7}), "the request is invalid: "),
    ] {
        let response = call(&extension, hook, &request(hook, more)).await;
        assert_eq!(response["status"], "Failure");
        assert!(response["message"].as_str().unwrap().starts_with(message), "{response}");
        assert_eq!(response["retryAfterSeconds"], 0);
    }
}

#[tokio::test]
async fn a_panic_is_a_failure_that_says_nothing_of_it() {
    let world = World::with_pool(ready_pool("a"));
    world.panics.store(true, Ordering::SeqCst);
    let extension = world.extension();
    let hook = Hook::BeforeClusterUpgrade;
    let response = call(&extension, hook, &request(hook, json!({}))).await;
    assert_eq!(response["status"], "Failure");
    assert!(!response.to_string().contains("secret"), "{response}");
    assert_eq!(*world.outcomes.lock().unwrap(), [(hook, Outcome::Panicked)]);
    world.panics.store(false, Ordering::SeqCst);
    assert_eq!(call(&extension, hook, &request(hook, json!({}))).await["status"], "Success");
}

// Rules: R7
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_ready_within_the_budget_blocks_or_fails() {
    let world = World::with_pool(ready_pool("a"));
    world.hangs.store(true, Ordering::SeqCst);
    let extension = world.extension();
    let hook = Hook::BeforeClusterUpgrade;
    let body = request(hook, json!({})).to_string();
    for (budget, expected) in [(2, 1500), (10, 9500), (3600, 29_500), (0, 100)] {
        let started = tokio::time::Instant::now();
        let reply = extension.call(hook, body.as_bytes(), Duration::from_secs(budget)).await;
        let response = processed(reply);
        assert!(started.elapsed().as_millis() <= expected, "{budget} s: {:?}", started.elapsed());
        assert_eq!((&response["status"], &response["retryAfterSeconds"]), (&json!("Success"), &json!(10)));
        assert_eq!(response["message"], "the objects of the Cluster were not read in time");
    }
    let busy = processed(extension.busy(Hook::GeneratePatches, Duration::ZERO));
    assert_eq!(busy["status"], "Failure");
}

// Rules: R7, R17
#[tokio::test(start_paused = true)]
async fn calls_that_are_late_or_too_many_block_until_their_deadline() {
    let hook = Hook::BeforeClusterUpgrade;
    let body = request(hook, json!({})).to_string();
    for is_busy in [false, true] {
        let world = World::with_pool(ready_pool("a"));
        world.hangs.store(true, Ordering::SeqCst);
        let extension = world.extension();
        let answer = async || {
            let body = body.as_bytes();
            processed(if is_busy {
                extension.call_busy(hook, body, DEFAULT_BUDGET).await
            } else {
                extension.call(hook, body, DEFAULT_BUDGET).await
            })
        };
        for _ in 0..4 {
            assert_eq!(answer().await["retryAfterSeconds"], 10, "busy: {is_busy}");
            world.pass(15);
        }
        assert!(world.record.lock().unwrap().as_ref().unwrap().is_blocking(hook));
        assert_eq!(answer().await["retryAfterSeconds"], 0, "busy: {is_busy}");
        let reasons = world.reasons();
        assert!(reasons.contains(&"HookBlocked") && reasons.contains(&"HookTimedOut"), "{reasons:?}");
    }
}

// Rules: R11
#[tokio::test]
async fn busy_calls_that_wait_for_nothing_that_is_read_are_answered() {
    let extension = World::empty().extension();
    let answer = async |hook: Hook, annotation: &str| {
        let annotations = json!({"asg.infrastructure.cluster.x-k8s.io/deletion-protection": annotation});
        let body = crate::testing::annotated(hook, &annotations, &json!({})).to_string();
        processed(extension.call_busy(hook, body.as_bytes(), DEFAULT_BUDGET).await)
    };
    assert_eq!(answer(Hook::BeforeClusterCreate, "false").await["retryAfterSeconds"], 0);
    // Add-ons may have to be uninstalled before.
    assert_eq!(answer(Hook::BeforeClusterDelete, "false").await["retryAfterSeconds"], 15);
    assert_eq!(answer(Hook::BeforeClusterDelete, "true").await["retryAfterSeconds"], 15);
    assert_eq!(answer(Hook::GeneratePatches, "false").await["status"], "Failure");
}

// Rules: R16
#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_known_to_have_no_pools_is_not_delayed_by_slow_reads() {
    let world = World::empty();
    world.machines_hang.store(true, Ordering::SeqCst);
    let extension = world.extension();
    let hook = Hook::AfterWorkersUpgrade;
    assert_eq!(call(&extension, hook, &request(hook, json!({}))).await["retryAfterSeconds"], 0);
    world.set_pools(vec![ready_pool("a")]);
    assert_eq!(call(&extension, hook, &request(hook, json!({}))).await["retryAfterSeconds"], 10);
}

// Rules: R7
#[tokio::test]
async fn what_is_remembered_or_repeated_of_a_request_is_short() {
    let world = World::empty();
    let extension = world.extension();
    let long = "x".repeat(100_000);
    let protection = json!({"asg.infrastructure.cluster.x-k8s.io/deletion-protection": "true"});
    let mut body = crate::testing::annotated(Hook::BeforeClusterDelete, &protection, &json!({}));
    let mut odd = body.clone();
    odd["cluster"]["metadata"]["uid"] = json!(long);
    let response = call(&extension, Hook::BeforeClusterDelete, &odd).await;
    assert_eq!(response["status"], "Failure", "no Cluster has it");
    assert!(response.to_string().len() < 2048);
    assert!(extension.services().blocks.current(*world.now.lock().unwrap()).is_empty());
    body["cluster"]["spec"]["topology"]["version"] = json!(long);
    assert!(call(&extension, Hook::BeforeClusterDelete, &body).await["retryAfterSeconds"].as_i64() > Some(0));
    let blocked = extension.services().blocks.current(*world.now.lock().unwrap());
    assert_eq!(blocked.len(), 1);
    assert!(world.record.lock().unwrap().as_ref().unwrap().version.len() <= 128);

    for (hook, more) in [
        (Hook::BeforeClusterUpgrade, json!({"toKubernetesVersion": long})),
        (Hook::GenerateUpgradePlan, json!({"toKubernetesVersion": long})),
        (Hook::BeforeClusterUpgrade, json!({"settings": {long.as_str(): ""}})),
        (Hook::BeforeClusterUpgrade, json!({"settings": {"kubernetesVersions": long}})),
        (Hook::BeforeClusterUpgrade, json!({"controlPlaneUpgrades": long})),
    ] {
        let response = call(&extension, hook, &request(hook, more)).await;
        assert_eq!(response["status"], "Failure");
        assert!(response.to_string().len() < 2048, "{hook}: {} bytes", response.to_string().len());
    }
    let mut body = request(Hook::BeforeClusterUpgrade, json!({}));
    world.set_pools(vec![ready_pool("a")]);
    let windows = format!("[{{schedule: '0 0 * * *', durationSeconds: 86400}}]{}", " ".repeat(100_000));
    body["cluster"]["metadata"]["annotations"] =
        json!({"asg.infrastructure.cluster.x-k8s.io/maintenance-windows": windows});
    let response = call(&extension, Hook::BeforeClusterUpgrade, &body).await;
    assert!(
        response["message"].as_str().unwrap().contains("must not have more than 65536 bytes"),
        "{response}"
    );
}

/// Any JSON, with the names that requests have among others.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "v1.36.3",
            "v1.35.1+a",
            "ASGMachinePoolTemplate",
            "infrastructure.cluster.x-k8s.io/v1alpha1",
            "asgInstances",
            "asgTags",
            "true"
        ])
        .prop_map(Value::from),
    ];
    let name = prop_oneof![
        prop::sample::select(vec![
            "metadata",
            "name",
            "namespace",
            "annotations",
            "spec",
            "template",
            "topology",
            "version",
            "kind",
            "apiVersion",
            "settings",
            "cluster",
            "items",
            "variables",
            "object",
            "value",
            "uid",
            "machine",
            "image",
            "instanceTypes",
            "holderReference",
            "kubernetesVersions",
            "toKubernetesVersion",
        ])
        .prop_map(str::to_owned),
        "[a-z]{1,6}",
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    // Rules: R6, R8
    /// Whatever a request contains: no panic, the kind of the hook, and the same bytes twice.
    #[test]
    fn any_request_is_answered_twice_alike(more in any_json(), cluster in any_json(), settings in any_json()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let world = World::with_pool(ready_pool("a"));
        let extension = world.extension();
        for hook in Extension::implemented() {
            let mut body = request(hook, more.clone());
            for (name, value) in [("cluster", &cluster), ("settings", &settings)] {
                if value.is_object() {
                    body[name] = value.clone();
                }
            }
            body["apiVersion"] = json!(API_VERSION);
            body["kind"] = json!(format!("{hook}Request"));
            let body = body.to_string();
            let answer = || runtime.block_on(extension.call(hook, body.as_bytes(), DEFAULT_BUDGET));
            let (first, second) = (answer(), answer());
            prop_assert_eq!(&first, &second);
            let response = processed(first);
            prop_assert_eq!(&response["kind"], &json!(format!("{hook}Response")));
        }
        prop_assert!(world.outcomes.lock().unwrap().iter().all(|(_, outcome)| *outcome != Outcome::Panicked));
    }
}
