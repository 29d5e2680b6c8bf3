//! What is verified after steps.

use super::*;

#[tokio::test]
async fn upgrades_are_verified_by_what_nodes_report() {
    let machine = |name: &str, control_plane, version: &str| MachineFacts {
        name: name.into(),
        control_plane,
        of_pool: !control_plane,
        deleting: false,
        kubelet_version: Some(version.into()),
    };
    let world = World::with_pool(with(ready_pool("a"), "status/version", json!("v1.36.3")));
    *world.machines.lock().unwrap() = vec![machine("cp", true, "v1.35.1"), machine("node", false, "v1.36.3")];
    let response = answered(&world, Hook::AfterControlPlaneUpgrade, json!({})).await;
    assert!(blocks(&response));
    assert_eq!(response["message"], "control plane Machines whose nodes do not report v1.36.3: cp");
    assert!(!blocks(&answered(&world, Hook::AfterWorkersUpgrade, json!({})).await));
    assert!(blocks(&answered(&world, Hook::AfterClusterUpgrade, json!({})).await));
    *world.machines.lock().unwrap() = vec![machine("cp", true, "v1.36.3"), machine("node", false, "v1.35.1")];
    assert!(!blocks(&answered(&world, Hook::AfterControlPlaneUpgrade, json!({})).await));
    let response = answered(&world, Hook::AfterWorkersUpgrade, json!({})).await;
    assert_eq!(response["message"], "Machines of ASGMachinePools whose nodes do not report v1.36.3: node");
    world.machines.lock().unwrap()[1].deleting = true;
    world.notices.lock().unwrap().clear();
    assert!(!blocks(&answered(&world, Hook::AfterClusterUpgrade, json!({})).await));
    assert_eq!(world.reasons(), [events::UPGRADE_VERIFIED]);
}

#[tokio::test]
async fn nothing_is_verified_that_was_not_seen() {
    let machine = |name: &str, control_plane| MachineFacts {
        name: name.into(),
        control_plane,
        of_pool: !control_plane,
        deleting: false,
        kubelet_version: Some("v1.36.3".into()),
    };
    let world = World::with_pool(ready_pool("a"));
    let after = [Hook::AfterControlPlaneUpgrade, Hook::AfterWorkersUpgrade, Hook::AfterClusterUpgrade];
    for hook in after {
        assert!(!blocks(&answered(&world, hook, json!({})).await), "{hook}");
    }
    assert!(world.reasons().is_empty(), "there are no Machines");
    // A managed control plane has none.
    *world.machines.lock().unwrap() = vec![machine("node", false)];
    for hook in after {
        answered(&world, hook, json!({})).await;
    }
    let messages: Vec<_> =
        world.notices.lock().unwrap().iter().map(|notice| notice.message.clone()).collect();
    assert_eq!(messages, ["all nodes of ASGMachinePools report v1.36.3"; 2]);
    for (pool, expected) in [
        (
            with(ready_pool("a"), "status/replicas", json!(2)),
            "not each instance of the ASGMachinePools has a Machine",
        ),
        (
            with(ready_pool("a"), "status/version", json!("v1.35.1")),
            "ASGMachinePools that do not have the version v1.36.3: a",
        ),
        (
            with(
                with(ready_pool("a"), "spec/machine/image", json!({"id": "ami-2"})),
                "status/image",
                json!({"id": "ami-1"}),
            ),
            "ASGMachinePools that do not use the image of their spec: a",
        ),
    ] {
        world.set_pools(vec![pool]);
        *world.record.lock().unwrap() = None;
        for hook in [Hook::AfterWorkersUpgrade, Hook::AfterClusterUpgrade] {
            let response = answered(&world, hook, json!({})).await;
            assert!(blocks(&response));
            assert_eq!(response["message"], expected);
        }
    }
}
