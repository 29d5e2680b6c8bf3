//! The gate of add-ons through the hooks that consult it.

use std::sync::{Arc, atomic::Ordering};

use serde_json::{Value, json};

use super::*;
use crate::{
    names::events,
    testing::{World, annotated, blocks, call, request},
};

const STEP: &str = "v1.36.3";

/// An add-on whose release is ready for a version.
fn addon(name: &str, version: &str) -> AddonFacts {
    let release = ReleaseFacts {
        name: format!("{name}-prod"),
        is_ready: true,
        reason: "Ready".into(),
        kubernetes_version: Some(version.into()),
        ..ReleaseFacts::default()
    };
    AddonFacts { name: name.into(), reason: "UpToDate".into(), release: Some(release) }
}

fn changed(mut addon: AddonFacts, change: impl FnOnce(&mut ReleaseFacts)) -> AddonFacts {
    change(addon.release.as_mut().unwrap());
    addon
}

fn world(phase: Phase, addons: &[AddonFacts]) -> Arc<World> {
    let world = World::empty();
    world.set_addons(phase, addons);
    world
}

async fn answered(world: &Arc<World>, hook: Hook) -> Value {
    call(&world.extension(), hook, &request(hook, json!({}))).await
}

// Rules: R6
#[tokio::test]
async fn a_step_waits_for_the_releases_that_ask_and_requests_their_change() {
    let ready = addon("ready", STEP);
    let newer = addon("newer", "v1.37.0");
    let behind = addon("behind", "v1.35.1");
    let upgrading = changed(addon("upgrading", STEP), |release| {
        (release.is_ready, release.reason) = (false, "HelmReleasePending".into());
    });
    let refused = AddonFacts {
        reason: "VersionNotAvailable".into(),
        ..changed(addon("refused", "v1.35.1"), |release| release.next = Some(STEP.into()))
    };
    let missing = AddonFacts { name: "missing".into(), ..AddonFacts::default() };
    let all = [behind, missing, newer, ready, refused, upgrading];
    for hook in [Hook::BeforeClusterUpgrade, Hook::BeforeControlPlaneUpgrade] {
        let world = world(Phase::BeforeControlPlaneUpgrade, &all);
        let response = answered(&world, hook).await;
        assert!(blocks(&response), "{hook}");
        assert_eq!(
            response["message"],
            "HelmChartProxies whose releases are not ready for v1.36.3: behind (UpToDate), missing, \
             refused (VersionNotAvailable), upgrading (HelmReleasePending)"
        );
        assert_eq!(answered(&world, hook).await, response, "the same answer");
        let request =
            ReleaseRequest { namespace: "teams".into(), name: "behind-prod".into(), next: STEP.into() };
        assert_eq!(world.requested(), [request.clone(), request], "until it is in the status");
        world.set_addons(Phase::BeforeControlPlaneUpgrade, &[addon("behind", STEP)]);
        assert!(!blocks(&answered(&world, hook).await));
        assert!(world.requested().is_empty());
    }
    let world = world(Phase::BeforeControlPlaneUpgrade, &all);
    for hook in [Hook::AfterControlPlaneUpgrade, Hook::BeforeWorkersUpgrade, Hook::BeforeClusterDelete] {
        assert!(!blocks(&answered(&world, hook).await), "another phase: {hook}");
    }
}

#[tokio::test]
async fn an_upgrade_over_several_versions_waits_for_the_first_step() {
    let world = world(Phase::BeforeControlPlaneUpgrade, &[addon("csi", "v1.34.1")]);
    let hook = Hook::BeforeClusterUpgrade;
    let steps = json!({"controlPlaneUpgrades": [{"version": "v1.35.9"}, {"version": STEP}]});
    let response = call(&world.extension(), hook, &request(hook, steps)).await;
    assert!(response["message"].as_str().unwrap().contains("not ready for v1.35.9: csi"), "{response}");
    assert_eq!(world.requested()[0].next, "v1.35.9");
}

#[tokio::test]
async fn nothing_is_requested_before_users_allow_the_step() {
    let world = world(Phase::BeforeControlPlaneUpgrade, &[addon("csi", "v1.35.1")]);
    let extension = world.extension();
    let hook = Hook::BeforeControlPlaneUpgrade;
    let settings = json!({"requireApproval": "true"});
    let waits = call(&extension, hook, &request(hook, json!({"settings": settings}))).await;
    assert!(blocks(&waits) && world.requested().is_empty());
    // Its deadline begins with the approval.
    for _ in 0..10 {
        world.pass(20);
        assert!(blocks(&call(&extension, hook, &request(hook, json!({"settings": settings}))).await));
    }
    let approved = json!({crate::names::annotations::UPGRADE_APPROVED: STEP});
    let approved = annotated(hook, &approved, &settings);
    assert!(blocks(&call(&extension, hook, &approved).await));
    assert_eq!(world.requested().len(), 1);
    for _ in 0..3 {
        world.pass(20);
        call(&extension, hook, &approved).await;
    }
    assert!(!blocks(&call(&extension, hook, &approved).await), "an hour");
}

#[tokio::test]
async fn workers_wait_after_a_step_until_the_releases_are_ready_for_it() {
    let world = world(Phase::AfterControlPlaneUpgrade, &[addon("cni", "v1.35.1")]);
    let hook = Hook::AfterControlPlaneUpgrade;
    let response = answered(&world, hook).await;
    assert!(blocks(&response));
    assert_eq!(
        response["message"],
        "HelmChartProxies whose releases are not ready for v1.36.3: cni (UpToDate)"
    );
    assert!(world.requested().is_empty(), "the control plane reports it");
    world.set_addons(Phase::AfterControlPlaneUpgrade, &[addon("cni", STEP)]);
    assert!(!blocks(&answered(&world, hook).await));
    assert!(!world.reasons().contains(&events::UPGRADE_VERIFIED), "no node was compared");
}

// Rules: R11
#[tokio::test]
async fn a_deletion_waits_until_releases_and_what_they_have_in_the_cloud_are_gone() {
    let going = changed(addon("csi", STEP), |release| {
        (release.is_ready, release.reason) = (false, "HelmReleasePending".into());
    });
    let remains = |name: &str| {
        changed(addon(name, STEP), |release| {
            release.reason = "CloudResourcesRemain".into();
            release.remaining = Some("objects remain: Service web/nginx".into());
        })
    };
    let gone = AddonFacts { name: "logs".into(), ..AddonFacts::default() };
    let hook = Hook::BeforeClusterDelete;
    let world = world(Phase::BeforeClusterDelete, &[going, remains("ingress"), gone.clone(), remains("web")]);
    let extension = world.extension();
    let now = request(hook, json!({}));
    let response = call(&extension, hook, &now).await;
    assert!(blocks(&response));
    assert_eq!(
        response["message"],
        "HelmChartProxies whose releases are not uninstalled: csi (HelmReleasePending), ingress \
         (CloudResourcesRemain), web (CloudResourcesRemain); objects remain: Service web/nginx"
    );
    world.set_addons(Phase::BeforeClusterDelete, std::slice::from_ref(&gone));
    assert!(!blocks(&call(&extension, hook, &now).await));
    world.set_addons(Phase::BeforeClusterDelete, &[gone, remains("ingress")]);
    for _ in 0..4 {
        assert!(blocks(&call(&extension, hook, &now).await));
        world.pass(15);
    }
    assert!(!blocks(&call(&extension, hook, &now).await), "an hour");
    let notices = world.notices.lock().unwrap();
    let late = notices.iter().find(|notice| notice.reason == events::HOOK_TIMED_OUT).unwrap();
    assert!(late.message.contains("Service web/nginx"), "{}", late.message);
}

// Rules: R11
#[tokio::test]
async fn add_ons_that_cannot_be_read_hold_a_step_and_a_deletion_until_the_deadline() {
    let world = World::empty();
    world.addons_fail.store(true, Ordering::SeqCst);
    let approval = json!({"settings": {"requireApproval": "true"}});
    for hook in [Hook::BeforeControlPlaneUpgrade, Hook::BeforeClusterDelete] {
        let extension = world.extension();
        for _ in 0..4 {
            let response = answered(&world, hook).await;
            assert!(blocks(&response), "{hook}");
            assert_eq!(response["message"], "HelmChartProxies cannot be read");
            world.pass(15);
        }
        assert!(!blocks(&answered(&world, hook).await), "{hook}: an hour");
        let approved = !blocks(&call(&extension, hook, &request(hook, approval.clone())).await);
        assert_eq!(approved, hook == Hook::BeforeClusterDelete, "a read that fails passes no approval");
        *world.record.lock().unwrap() = None;
    }
    let hook = Hook::AfterWorkersUpgrade;
    assert!(!blocks(&answered(&world, hook).await), "no phase begins there");
}
