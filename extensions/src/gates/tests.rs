//! Gates and policies through the hooks that consult them.

mod deadlines;
mod verified;

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use capasg_api::names::addons::Phase;
use capasg_test_objects::with;
use serde_json::{Value, json};

use super::aws;
use crate::{
    blocks::Cause,
    names::{annotations, events},
    ports::{AddonFacts, MachineFacts, Outcome, ReleaseFacts},
    protocol::Hook,
    testing::{World, annotated, blocks, call, condition, ready_pool, request},
};

const BEFORE: [Hook; 3] =
    [Hook::BeforeClusterUpgrade, Hook::BeforeControlPlaneUpgrade, Hook::BeforeWorkersUpgrade];

fn rolling_pool(name: &str) -> Value {
    with(ready_pool(name), "status/rollout", json!({"type": "RollingUpdate", "total": 3, "outdated": 1}))
}

fn degraded_pool(name: &str) -> Value {
    with(ready_pool(name), "status/conditions", json!([condition("Ready", "False")]))
}

async fn answered(world: &Arc<World>, hook: Hook, settings: Value) -> Value {
    call(&world.extension(), hook, &request(hook, json!({"settings": settings}))).await
}

#[tokio::test]
async fn a_cluster_without_our_pools_is_never_delayed() {
    let world = World::empty();
    let settings = json!({"requireApproval": "true", "maintenanceWindows": "[{schedule: '0 0 29 2 *', durationSeconds: 900}]"});
    *world.machines.lock().unwrap() =
        vec![MachineFacts { name: "a".into(), control_plane: true, ..MachineFacts::default() }];
    for hook in Hook::ALL
        .into_iter()
        .filter(|hook| hook.name().starts_with("Before") || hook.name().starts_with("After"))
    {
        let response = answered(&world, hook, settings.clone()).await;
        assert_eq!(response["status"], "Success", "{hook}");
        assert_eq!(response["retryAfterSeconds"].as_i64().unwrap_or(0), 0, "{hook}: {response}");
        assert_eq!(response["kind"], format!("{hook}Response"));
    }
    assert_eq!(world.reasons(), [events::CONTROL_PLANE_INITIALIZED]);
}

// Rules: R6
#[tokio::test]
async fn steps_wait_for_pools_that_roll_out_or_are_not_ready_and_name_them() {
    let world = World::with_pool(rolling_pool("workers"));
    let deleted = with(degraded_pool("deleted"), "metadata/deletionTimestamp", json!("2026-03-01T00:00:00Z"));
    world.set_pools(vec![rolling_pool("b"), degraded_pool("a"), ready_pool("c"), deleted]);
    let extension = world.extension();
    for hook in BEFORE {
        let first = call(&extension, hook, &request(hook, json!({}))).await;
        assert!(blocks(&first), "{hook}");
        assert_eq!(
            first["message"],
            "ASGMachinePools that are not ready: a; ASGMachinePools that are rolling out: b"
        );
        world.pass(1);
        assert_eq!(call(&extension, hook, &request(hook, json!({}))).await, first, "the same answer");
    }
    let stale = with(ready_pool("a"), "metadata/generation", json!(4));
    world.set_pools(vec![stale]);
    world.pass(1);
    let response = answered(&world, Hook::BeforeClusterUpgrade, json!({})).await;
    assert_eq!(response["message"], "ASGMachinePools whose current spec has not been observed: a");
    world.set_pools(vec![ready_pool("a")]);
    for hook in BEFORE {
        assert!(!blocks(&call(&extension, hook, &request(hook, json!({}))).await), "{hook}");
    }
    // Core calls one hook of a Cluster at a time.
    assert_eq!(world.reasons().iter().filter(|reason| **reason == events::HOOK_UNBLOCKED).count(), 1);
}

// Rules: R17
#[tokio::test]
async fn an_approval_is_for_a_version_and_never_lapses() {
    let world = World::with_pool(ready_pool("a"));
    let extension = world.extension();
    let settings = json!({"requireApproval": "true"});
    let hook = Hook::BeforeClusterUpgrade;
    let waiting = request(hook, json!({"settings": settings}));
    let response = call(&extension, hook, &waiting).await;
    assert!(blocks(&response));
    assert!(response["message"].as_str().unwrap().starts_with("the upgrade to v1.36.3 is not approved"));
    for _ in 0..70 {
        world.pass(25);
        assert!(blocks(&call(&extension, hook, &waiting).await));
    }
    assert!(world.reasons().contains(&events::HOOK_BLOCKED_FOR_LONG), "it is reported after a day");
    let other = annotated(hook, &json!({annotations::UPGRADE_APPROVED: "v1.36.2"}), &settings);
    assert!(blocks(&call(&extension, hook, &other).await));
    let approved = json!({annotations::UPGRADE_APPROVED: "v1.36.3"});
    for hook in BEFORE {
        assert!(!blocks(&call(&extension, hook, &annotated(hook, &approved, &settings)).await), "{hook}");
    }
    // A step to an intermediate version needs no approval of its own.
    let mut step = annotated(Hook::BeforeControlPlaneUpgrade, &approved, &settings);
    step["toKubernetesVersion"] = json!("v1.35.9");
    assert!(!blocks(&call(&extension, Hook::BeforeControlPlaneUpgrade, &step).await));
}

#[tokio::test]
async fn steps_begin_in_maintenance_windows_only() {
    let world = World::with_pool(ready_pool("a"));
    let extension = world.extension();
    // It is Monday, 12:00 UTC.
    let settings = json!({"maintenanceWindows": "[{schedule: '0 13 * * 1', durationSeconds: 3600}]"});
    for hook in BEFORE {
        let response = call(&extension, hook, &request(hook, json!({"settings": settings}))).await;
        assert!(blocks(&response), "{hook}");
        assert_eq!(response["message"], "no maintenance window is open");
        let own =
            json!({annotations::MAINTENANCE_WINDOWS: "[{schedule: '0 11 * * *', durationSeconds: 7200}]"});
        assert!(!blocks(&call(&extension, hook, &annotated(hook, &own, &settings)).await), "{hook}");
    }
    world.pass(60);
    for hook in BEFORE {
        assert!(
            !blocks(&call(&extension, hook, &request(hook, json!({"settings": settings}))).await),
            "{hook}"
        );
    }
}

#[tokio::test]
async fn workers_wait_until_a_pool_may_replace_instances() {
    let closed = json!({"windows": [{"schedule": "0 22 * * *", "durationSeconds": 3600}]});
    let night = with(ready_pool("night"), "spec/disruption", closed);
    let world = World::with_pool(night.clone());
    let response = answered(&world, Hook::BeforeWorkersUpgrade, json!({})).await;
    assert!(blocks(&response));
    assert_eq!(response["message"], "no ASGMachinePool has an open window (spec.disruption.windows)");
    assert!(!blocks(&answered(&world, Hook::BeforeControlPlaneUpgrade, json!({})).await));
    world.set_pools(vec![night, ready_pool("any")]);
    assert!(!blocks(&answered(&world, Hook::BeforeWorkersUpgrade, json!({})).await));
}

// Rules: R10
#[tokio::test]
async fn a_control_plane_that_is_reported_again_is_recorded_again() {
    let world = World::empty();
    let extension = world.extension();
    let hook = Hook::AfterControlPlaneInitialized;
    let first = call(&extension, hook, &request(hook, json!({}))).await;
    assert_eq!(call(&extension, hook, &request(hook, json!({}))).await, first);
    assert_eq!(first["status"], "Success");
    assert_eq!(first.get("retryAfterSeconds"), None, "the hook cannot block");
    // The publisher makes one event of equal notices.
    assert_eq!(world.reasons(), [events::CONTROL_PLANE_INITIALIZED; 2]);
}

// Rules: R11
#[tokio::test]
async fn a_protected_cluster_is_not_deleted_and_others_are() {
    let hook = Hook::BeforeClusterDelete;
    let orphan = with(degraded_pool("kept"), "spec/deletionPolicy", json!("Orphan"));
    let world = World::with_pool(orphan);
    let extension = world.extension();
    for value in ["true", " true "] {
        let protected = annotated(hook, &json!({annotations::DELETION_PROTECTION: value}), &json!({}));
        assert!(blocks(&call(&extension, hook, &protected).await));
    }
    assert!(!blocks(&call(&extension, hook, &request(hook, json!({}))).await), "pools do not block");
    assert!(world.reasons().contains(&events::GROUPS_KEPT));
    world.set_pools(Vec::new());
    let protected = annotated(hook, &json!({annotations::DELETION_PROTECTION: "true"}), &json!({}));
    assert!(blocks(&call(&extension, hook, &protected).await), "also without pools");
    // Pools that cannot be read do not hold a deletion, and not an approved one.
    for keeps in [json!({}), json!({"onBlockTimeout": "Block"})] {
        world.fails.store(true, Ordering::SeqCst);
        assert!(!blocks(&call(&extension, hook, &request(hook, json!({"settings": keeps}))).await));
        assert!(blocks(&call(&extension, hook, &protected).await));
        world.fails.store(false, Ordering::SeqCst);
    }
}

/// A mistake in an annotation may protect: it blocks as what users decide does.
#[tokio::test]
async fn an_invalid_annotation_blocks_with_an_event_until_it_is_corrected() {
    let world = World::with_pool(degraded_pool("a"));
    let windows = json!({annotations::MAINTENANCE_WINDOWS: "nights"});
    let protection = json!({annotations::DELETION_PROTECTION: "yes"});
    for (hook, mistake) in
        BEFORE.map(|hook| (hook, &windows)).into_iter().chain([(Hook::BeforeClusterDelete, &protection)])
    {
        let (extension, mistaken) = (world.extension(), annotated(hook, mistake, &json!({})));
        let response = call(&extension, hook, &mistaken).await;
        assert!(blocks(&response), "{hook}");
        let message = response["message"].as_str().unwrap();
        assert!(message.contains(mistake.as_object().unwrap().keys().next().unwrap()), "{message}");
        // What else blocks is reported, too.
        let is_degraded = hook != Hook::BeforeClusterDelete;
        assert_eq!(message.contains("ASGMachinePools that are not ready: a"), is_degraded, "{message}");
        assert!(world.reasons().contains(&events::HOOK_BLOCKED));
        for _ in 0..70 {
            world.pass(25);
            assert!(
                blocks(&call(&extension, hook, &mistaken).await),
                "{hook}: it does not end by a deadline"
            );
        }
        assert!(world.reasons().contains(&events::HOOK_BLOCKED_FOR_LONG), "{hook}");
        assert!(!blocks(
            &call(&extension, hook, &request(hook, json!({"settings": {"degradedPoolTimeoutSeconds": "0"}})))
                .await
        ));
        world.notices.lock().unwrap().clear();
        *world.record.lock().unwrap() = None;
    }
}

// Rules: R18
#[tokio::test]
async fn the_annotation_skips_a_hook_whatever_it_would_answer() {
    let world = World::with_pool(degraded_pool("a"));
    let extension = world.extension();
    let hook = Hook::BeforeClusterUpgrade;
    let invalid = json!({"unknown": ""});
    let skip = |names: &str| annotated(hook, &json!({annotations::SKIP_HOOK: names}), &invalid);
    let response = call(&extension, hook, &skip("BeforeClusterDelete, beforeclusterupgrade")).await;
    assert!(!blocks(&response));
    let response = call(&extension, hook, &skip("BeforeClusterDelete")).await;
    assert_eq!(response["status"], "Failure", "{response}");
    assert!(response["message"].as_str().unwrap().starts_with("setting unknown: is unknown"));
    let outcomes: Vec<_> = world.outcomes.lock().unwrap().iter().map(|(_, outcome)| *outcome).collect();
    assert_eq!(outcomes, [Outcome::Skipped, Outcome::InvalidSettings]);
    assert_eq!(world.reasons(), [events::HOOK_SKIPPED]);
}

/// An add-on that asks for each phase and is not ready.
fn set_addons(world: &World) {
    let release = Some(ReleaseFacts::default());
    let addon = AddonFacts { name: "cni".into(), release, ..AddonFacts::default() };
    for phase in Phase::ALL {
        world.set_addons(phase, std::slice::from_ref(&addon));
    }
}

/// What a hook does not check, it cannot see to end.
#[tokio::test]
async fn a_hook_blocks_for_each_of_its_causes_and_for_no_other() {
    let closed = json!([{"schedule": "0 22 * * *", "durationSeconds": 3600}]);
    let windows = |pool: Value| with(pool, "spec/disruption", json!({"windows": closed.clone()}));
    let outdated = |name: &str, control_plane| MachineFacts {
        name: name.into(),
        control_plane,
        of_pool: !control_plane,
        ..MachineFacts::default()
    };
    let stale = with(ready_pool("stale"), "metadata/generation", json!(4));
    let pools = [stale, degraded_pool("degraded"), rolling_pool("rolling"), ready_pool("ready")];
    let settings = json!({
        "requireApproval": "true", "maintenanceWindows": "[{schedule: '0 13 * * 1', durationSeconds: 3600}]",
    });
    let found = |world: &World| {
        let record = world.record.lock().unwrap().take();
        record.map(|record| record.causes.into_keys().collect::<Vec<_>>()).unwrap_or_default()
    };
    for hook in Hook::ALL {
        let mut causes = BTreeSet::new();
        for unreadable in [false, true] {
            // Nothing of what is requested exists there.
            let (world, _) = aws::testing::world(aws::testing::Region::default());
            let pools = pools.iter().cloned().chain([aws::testing::pool("surging", 1)]);
            world.set_pools(pools.map(windows).collect());
            *world.machines.lock().unwrap() = vec![outdated("cp", true), outdated("node", false)];
            set_addons(&world);
            world.fails.store(unreadable, Ordering::SeqCst);
            let mut body = annotated(hook, &json!({annotations::DELETION_PROTECTION: "true"}), &settings);
            let topology = &aws::testing::creation(&aws::testing::workers())["cluster"]["spec"]["topology"];
            body["cluster"]["spec"]["topology"] = topology.clone();
            let _ = world.extension().call(hook, body.to_string().as_bytes(), crate::DEFAULT_BUDGET).await;
            causes.extend(found(&world));
            let mistakes =
                json!({annotations::DELETION_PROTECTION: "?", annotations::MAINTENANCE_WINDOWS: "?"});
            body["cluster"]["metadata"]["annotations"] = mistakes;
            let _ = world.extension().call(hook, body.to_string().as_bytes(), crate::DEFAULT_BUDGET).await;
            causes.extend(found(&world));
        }
        // Add-ons count if nothing else blocks.
        let world = World::empty();
        set_addons(&world);
        let body = request(hook, json!({})).to_string();
        let _ = world.extension().call(hook, body.as_bytes(), crate::DEFAULT_BUDGET).await;
        causes.extend(found(&world));
        assert_eq!(causes, Cause::of(hook).iter().copied().collect(), "{hook}");
    }
}
