//! What a call of each hook costs the API server, counted.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::json;

use super::{KubeJournal, KubeReader, testing::ApiServer};
use crate::{
    Extension, Services,
    blocks::{Blocks, Cause},
    gates::Pools,
    names::annotations,
    protocol::Hook,
    testing::{TestClock, World, annotated, call, ready_pool, request},
};

/// The requests that calls of hooks cause in a replica that has just started, with those of its publisher.
async fn cost(
    api: &ApiServer,
    client: &kube::Client,
    calls: &[(Hook, serde_json::Value)],
) -> BTreeMap<String, usize> {
    let (journal, publisher) = KubeJournal::new(client.clone(), "a replica".to_owned());
    let world = World::empty();
    let services = Services {
        kubernetes: Arc::new(KubeReader(client.clone())),
        journal: Arc::new(journal),
        observer: Arc::clone(&world) as _,
        clock: Arc::new(TestClock(world)),
        gates: vec![Box::new(Pools)],
        blocks: Blocks::default(),
        lookups: None,
    };
    let extension = Extension::new(services, &Hook::ALL);
    api.requests();
    for (hook, request) in calls {
        assert_eq!(call(&extension, *hook, request).await["status"], "Success", "{hook}");
    }
    // The journal is dropped with it, and the publisher returns once it has published all.
    drop(extension);
    publisher.run().await;
    api.requests()
}

fn requests<const N: usize>(counted: [(&str, usize); N]) -> BTreeMap<String, usize> {
    counted.into_iter().map(|(request, count)| (request.to_owned(), count)).collect()
}

const STEPS: [Hook; 6] = [
    Hook::BeforeClusterUpgrade,
    Hook::BeforeControlPlaneUpgrade,
    Hook::AfterControlPlaneUpgrade,
    Hook::BeforeWorkersUpgrade,
    Hook::AfterWorkersUpgrade,
    Hook::AfterClusterUpgrade,
];

#[tokio::test]
async fn a_hook_of_a_cluster_without_pools_costs_one_list() {
    let (api, client) = ApiServer::start();
    for hook in STEPS {
        let cost = cost(&api, &client, &[(hook, request(hook, json!({})))]).await;
        assert_eq!(cost, requests([("GET asgmachinepools", 1)]), "{hook}");
    }
    // Each Cluster may be protected from deletion: another replica may have reported the block that ends here.
    let hook = Hook::BeforeClusterDelete;
    let cost_of_deletion = cost(&api, &client, &[(hook, request(hook, json!({})))]).await;
    assert_eq!(cost_of_deletion, requests([("GET asgmachinepools", 1), ("GET events", 1)]));
    for hook in [Hook::DiscoverVariables, Hook::GeneratePatches, Hook::ValidateTopology] {
        assert!(cost(&api, &client, &[(hook, request(hook, json!({})))]).await.is_empty(), "{hook}");
    }
    assert!(api.events().is_empty());
}

#[tokio::test]
async fn a_hook_of_a_cluster_with_pools_reads_events_of_its_own_causes_only() {
    let (api, client) = ApiServer::start();
    api.set_pools(vec![ready_pool("a")]);
    for hook in STEPS {
        let mut cost = cost(&api, &client, &[(hook, request(hook, json!({})))]).await;
        assert_eq!(cost.remove("GET asgmachinepools"), Some(1), "{hook}");
        let reads_machines = hook.name().starts_with("After");
        assert_eq!(cost.remove("GET machines"), reads_machines.then_some(1), "{hook}");
        assert_eq!(cost.remove("POST events"), reads_machines.then_some(1), "UpgradeVerified");
        // This extension does not ask AWS.
        let causes = Cause::of(hook).iter().filter(|cause| !cause.is_of_aws()).count();
        assert_eq!(cost, requests([("GET events", causes)]), "{hook}");
        assert!(causes <= 6, "{hook}");
    }
}

#[tokio::test]
async fn the_end_of_a_protection_that_another_replica_reported_is_published_without_pools() {
    let (api, client) = ApiServer::start();
    let hook = Hook::BeforeClusterDelete;
    let protected = annotated(hook, &json!({annotations::DELETION_PROTECTION: "true"}), &json!({}));
    cost(&api, &client, &[(hook, protected.clone())]).await;
    cost(&api, &client, &[(hook, request(hook, json!({})))]).await;
    let reasons: Vec<_> = api.events().into_values().map(|event| event["reason"].clone()).collect();
    assert!(
        reasons.contains(&json!("HookBlocked")) && reasons.contains(&json!("HookUnblocked")),
        "{reasons:?}"
    );
    // A replica that reported the block itself reads nothing to report its end.
    let (api, client) = ApiServer::start();
    let cost = cost(&api, &client, &[(hook, protected), (hook, request(hook, json!({})))]).await;
    assert_eq!(cost, requests([("GET asgmachinepools", 2), ("GET events", 1), ("POST events", 2)]));
}
