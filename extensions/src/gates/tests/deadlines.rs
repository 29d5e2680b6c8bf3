//! Deadlines, and what ends blocks.

use super::*;

// Rules: R17
#[tokio::test]
async fn a_technical_block_ends_at_its_deadline_unless_the_setting_keeps_it() {
    let world = World::with_pool(degraded_pool("a"));
    let extension = world.extension();
    let hook = Hook::BeforeClusterUpgrade;
    let now = request(hook, json!({}));
    assert!(blocks(&call(&extension, hook, &now).await));
    world.pass(9);
    assert!(blocks(&call(&extension, hook, &now).await));
    world.pass(1);
    let keeps = request(hook, json!({"settings": {"onBlockTimeout": "Block"}}));
    assert!(blocks(&call(&extension, hook, &keeps).await));
    for _ in 0..2 {
        assert!(!blocks(&call(&extension, hook, &now).await), "10 minutes");
        world.pass(1);
    }
    assert!(world.reasons().contains(&events::HOOK_TIMED_OUT));
    // A rollout has more time.
    world.set_pools(vec![rolling_pool("a")]);
    assert!(blocks(&call(&extension, hook, &now).await));
    for _ in 0..3 {
        world.pass(20);
        call(&extension, hook, &now).await;
    }
    assert!(!blocks(&call(&extension, hook, &now).await), "an hour");
}

// Rules: R17
#[tokio::test]
async fn the_deadline_does_not_begin_again_with_another_replica() {
    let world = World::with_pool(degraded_pool("a"));
    // Each answer is that of a replica that has just started.
    assert!(blocks(&answered(&world, Hook::BeforeClusterUpgrade, json!({})).await));
    world.pass(9);
    assert!(blocks(&answered(&world, Hook::BeforeClusterUpgrade, json!({})).await));
    world.pass(1);
    assert!(!blocks(&answered(&world, Hook::BeforeClusterUpgrade, json!({})).await));
}

// Rules: R17
#[tokio::test]
async fn a_deadline_counts_from_the_last_beginning_of_a_block() {
    let world = World::with_pool(degraded_pool("a"));
    let hook = Hook::BeforeClusterUpgrade;
    let settings = json!({"requireApproval": "true"});
    let waiting = request(hook, json!({"settings": settings}));
    // Two replicas, of which the second sees that the pool was ready.
    let (one, two) = (world.extension(), world.extension());
    assert!(blocks(&call(&one, hook, &waiting).await));
    world.pass(1);
    world.set_pools(vec![ready_pool("a")]);
    assert!(blocks(&call(&two, hook, &waiting).await));
    world.pass(27);
    world.set_pools(vec![degraded_pool("a")]);
    let approved = annotated(hook, &json!({annotations::UPGRADE_APPROVED: "v1.36.3"}), &settings);
    for extension in [&one, &two] {
        assert!(blocks(&call(extension, hook, &approved).await), "the pool is degraded since now");
    }
    world.pass(10);
    for extension in [&one, &two] {
        assert!(!blocks(&call(extension, hook, &approved).await));
    }
}

// Rules: R17
#[tokio::test]
async fn a_deadline_that_passed_does_not_begin_again_while_the_hook_waits_for_a_user() {
    let world = World::with_pool(degraded_pool("a"));
    let hook = Hook::BeforeClusterUpgrade;
    let settings = json!({"requireApproval": "true"});
    let waiting = request(hook, json!({"settings": settings}));
    let both = "ASGMachinePools that are not ready: a; the upgrade";
    let response = answered(&world, hook, settings.clone()).await;
    assert!(response["message"].as_str().unwrap().starts_with(both), "{response}");
    let extension = world.extension();
    for _ in 0..20 {
        world.pass(10);
        // The same replica, and one that has just started.
        for response in
            [call(&extension, hook, &waiting).await, answered(&world, hook, settings.clone()).await]
        {
            let message = response["message"].as_str().unwrap();
            assert!(
                blocks(&response) && message.starts_with("the upgrade to v1.36.3 is not approved"),
                "{message}"
            );
        }
    }
    let approved = annotated(hook, &json!({annotations::UPGRADE_APPROVED: "v1.36.3"}), &settings);
    assert!(!blocks(&call(&extension, hook, &approved).await));
}

// Rules: R17
#[tokio::test]
async fn a_cause_that_timed_out_delays_an_upgrade_once() {
    let world = World::with_pool(rolling_pool("a"));
    let extension = world.extension();
    let (first, settings) = (Hook::BeforeClusterUpgrade, json!({"settings": {"blockTimeoutSeconds": "600"}}));
    assert!(blocks(&call(&extension, first, &request(first, settings.clone())).await));
    world.pass(10);
    for version in ["v1.35.4", "v1.36.3"] {
        for hook in BEFORE {
            let mut step = request(hook, settings.clone());
            step["toKubernetesVersion"] = json!(version);
            assert!(!blocks(&call(&extension, hook, &step).await), "{hook} to {version}");
            world.pass(40);
        }
    }
    // The next upgrade waits again, and so does this one once the rollout has ended.
    let mut next = request(first, settings.clone());
    next["cluster"]["spec"]["topology"]["version"] = json!("v1.37.0");
    assert!(blocks(&call(&extension, first, &next).await));
    world.set_pools(vec![ready_pool("a")]);
    assert!(!blocks(&call(&extension, first, &next).await));
    world.set_pools(vec![rolling_pool("a")]);
    assert!(blocks(&call(&extension, first, &next).await));
}

#[tokio::test]
async fn each_end_of_a_block_is_reported_with_its_version_by_any_replica() {
    let world = World::with_pool(degraded_pool("a"));
    let hook = Hook::BeforeControlPlaneUpgrade;
    for version in ["v1.35.4", "v1.36.3"] {
        let step = request(hook, json!({"toKubernetesVersion": version}));
        world.set_pools(vec![degraded_pool("a")]);
        assert!(blocks(&call(&world.extension(), hook, &step).await));
        world.set_pools(vec![ready_pool("a")]);
        for _ in 0..2 {
            assert!(!blocks(&call(&world.extension(), hook, &step).await));
        }
    }
    let notices = world.notices.lock().unwrap();
    let ends: Vec<_> = notices.iter().filter(|notice| notice.reason == events::HOOK_UNBLOCKED).collect();
    let messages: Vec<_> = ends.iter().map(|notice| (notice.message.as_str(), notice.is_change)).collect();
    assert_eq!(
        messages,
        [
            ("BeforeControlPlaneUpgrade no longer blocks (v1.35.4)", true),
            ("BeforeControlPlaneUpgrade no longer blocks (v1.36.3)", true)
        ]
    );
    // The second block is published although the first one was moments before.
    let begins = notices.iter().filter(|notice| notice.reason == events::HOOK_BLOCKED && notice.is_change);
    assert_eq!(begins.count(), 2);
}

#[tokio::test]
async fn objects_that_cannot_be_read_block_until_the_deadline_and_keep_the_policies() {
    let world = World::empty();
    world.fails.store(true, Ordering::SeqCst);
    let extension = world.extension();
    let hook = Hook::BeforeClusterUpgrade;
    let plain = request(hook, json!({}));
    let response = call(&extension, hook, &plain).await;
    assert!(blocks(&response));
    assert_eq!(response["message"], "ASGMachinePools cannot be read");
    for _ in 0..4 {
        world.pass(15);
        call(&extension, hook, &plain).await;
    }
    assert!(!blocks(&call(&extension, hook, &plain).await));
    // An approval is required only if the Cluster may have pools.
    let mut approval = request(hook, json!({"settings": {"requireApproval": "true"}}));
    assert!(!blocks(&call(&extension, hook, &approval).await));
    approval["cluster"]["spec"]["topology"]["workers"] = json!({"machinePools": [{"name": "a"}]});
    assert!(blocks(&call(&extension, hook, &approval).await));
}

// Rules: R8
#[tokio::test]
async fn a_pool_of_another_version_blocks_until_the_deadline_and_others_are_checked() {
    let world = World::with_pool(degraded_pool("a"));
    *world.undecoded.lock().unwrap() = vec!["b".into()];
    let hook = Hook::BeforeWorkersUpgrade;
    let response = answered(&world, hook, json!({})).await;
    assert_eq!(
        response["message"],
        "ASGMachinePools that this version of the extension cannot read: b; ASGMachinePools that are not ready: a"
    );
    for _ in 0..4 {
        world.pass(15);
        answered(&world, hook, json!({})).await;
    }
    assert!(!blocks(&answered(&world, hook, json!({})).await));
}
