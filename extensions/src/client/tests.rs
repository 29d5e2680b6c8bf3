//! What a call of each hook costs the API server, counted.

use std::{collections::BTreeMap, sync::Arc};

use capasg_test_objects::with;
use serde_json::json;

use super::{KubeJournal, KubeReader, testing::ApiServer};
use crate::{
    Extension, Services,
    blocks::Blocks,
    gates::{Addons, Pools},
    names::annotations,
    ports::Kubernetes as _,
    protocol::{Cluster, ClusterKey, Hook},
    testing::{TestClock, World, annotated, call, condition, ready_pool, request},
};

/// The requests that calls of hooks cause in a replica that has just started, with those of its publisher.
async fn cost(
    api: &ApiServer,
    client: &kube::Client,
    calls: &[(Hook, serde_json::Value)],
) -> BTreeMap<String, usize> {
    let (journal, publisher) = KubeJournal::new(client, "a replica");
    let world = World::empty();
    let services = Services {
        kubernetes: Arc::new(KubeReader(client.clone())),
        journal: Arc::new(journal),
        observer: Arc::clone(&world) as _,
        clock: Arc::new(TestClock(world)),
        gates: vec![Box::new(Pools), Box::new(Addons)],
        blocks: Blocks::default(),
        unread: Blocks::default(),
        lookups: None,
    };
    let extension = Extension::new(services, &Hook::ALL);
    api.requests();
    for (hook, request) in calls {
        api.set_cluster(request["cluster"].clone());
        assert_eq!(call(&extension, *hook, request).await["status"], "Success", "{hook}");
    }
    // The journal is dropped with it, and the publisher returns once it has published all.
    drop(extension);
    publisher.run().await;
    let mut counted = api.requests();
    // A request that says something of one Cluster costs a read of it.
    let topology = [Hook::DiscoverVariables, Hook::GeneratePatches, Hook::ValidateTopology];
    let read = calls.iter().filter(|(hook, _)| !topology.contains(hook)).count();
    assert_eq!(counted.remove("GET clusters").unwrap_or_default(), read);
    counted
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

/// At these hooks, add-ons may ask for a phase.
fn lists_charts(hook: Hook) -> Option<usize> {
    let before = [Hook::BeforeClusterUpgrade, Hook::BeforeControlPlaneUpgrade, Hook::BeforeClusterDelete];
    (before.contains(&hook) || hook == Hook::AfterControlPlaneUpgrade).then_some(1)
}

#[tokio::test]
async fn a_hook_of_a_cluster_without_pools_and_add_ons_costs_one_list_of_each_kind() {
    let (api, client) = ApiServer::start();
    for hook in STEPS {
        let mut cost = cost(&api, &client, &[(hook, request(hook, json!({})))]).await;
        assert_eq!(cost.remove("GET helmchartproxies"), lists_charts(hook), "{hook}");
        assert_eq!(cost, requests([("GET asgmachinepools", 1)]), "{hook}");
    }
    // Each Cluster may be protected from deletion: another replica may have reported the block that ends here.
    let hook = Hook::BeforeClusterDelete;
    let cost_of_deletion = cost(&api, &client, &[(hook, request(hook, json!({})))]).await;
    let expected = requests([("GET asgmachinepools", 1), ("GET helmchartproxies", 1), ("GET events", 1)]);
    assert_eq!(cost_of_deletion, expected);
    for hook in [Hook::DiscoverVariables, Hook::GeneratePatches, Hook::ValidateTopology] {
        assert!(cost(&api, &client, &[(hook, request(hook, json!({})))]).await.is_empty(), "{hook}");
    }
    assert!(api.events().is_empty());
}

#[tokio::test]
async fn a_hook_of_a_cluster_with_pools_reads_one_event() {
    let (api, client) = ApiServer::start();
    api.set_pools(vec![ready_pool("a")]);
    for hook in STEPS {
        let mut cost = cost(&api, &client, &[(hook, request(hook, json!({})))]).await;
        assert_eq!(cost.remove("GET helmchartproxies"), lists_charts(hook), "{hook}");
        let reads_machines = hook.name().starts_with("After");
        assert_eq!(cost.remove("GET machines"), reads_machines.then_some(1), "{hook}");
        assert_eq!(cost, requests([("GET asgmachinepools", 1), ("GET events", 1)]), "{hook}");
    }
    assert!(api.events().is_empty(), "nothing was verified");
}

// Rules: R17
#[tokio::test]
async fn a_record_is_written_when_it_changes() {
    let (api, client) = ApiServer::start();
    api.set_pools(vec![with(ready_pool("a"), "status/conditions", json!([condition("Ready", "False")]))]);
    let hook = Hook::BeforeClusterUpgrade;
    let blocked = || (hook, request(hook, json!({})));
    let cost_of_first = cost(&api, &client, &[blocked()]).await;
    let lists = [("GET asgmachinepools", 1), ("GET helmchartproxies", 1)];
    // The event for users, and the record.
    let events = [("GET events", 1), ("PATCH events", 1), ("POST events", 2)];
    assert_eq!(cost_of_first, requests([lists[0], lists[1], events[0], events[1], events[2]]));
    // Another replica reads the record, and publishes the same event.
    let cost_of_other = cost(&api, &client, &[blocked()]).await;
    assert_eq!(
        cost_of_other,
        requests([lists[0], lists[1], ("GET events", 2), ("PATCH events", 1), ("POST events", 1)])
    );
}

// Rules: R8
#[tokio::test]
async fn a_pool_that_cannot_be_decoded_hides_no_other() {
    let (api, client) = ApiServer::start();
    let newer = with(ready_pool("b"), "spec/deletionPolicy", json!("OfAnotherVersion"));
    api.set_pools(vec![newer, ready_pool("a")]);
    let cluster = ClusterKey { namespace: "teams".into(), name: "prod".into(), uid: "1".into() };
    let list = KubeReader(client).pools(&cluster).await.unwrap();
    let names: Vec<_> = list.pools.iter().map(kube::ResourceExt::name_any).collect();
    assert_eq!((names, list.undecoded), (vec!["a".to_owned()], vec!["b".to_owned()]));
}

#[tokio::test]
async fn a_cluster_is_that_of_the_same_namespace_name_and_uid_in_each_version() {
    let (api, client) = ApiServer::start();
    let reader = KubeReader(client);
    let claimed = |field: &str, value: serde_json::Value| {
        let mut cluster = request(Hook::BeforeClusterUpgrade, json!({}))["cluster"].clone();
        cluster["metadata"][field] = value;
        Cluster::from(cluster)
    };
    for version in ["v1beta2", "v1beta1"] {
        let mut live = request(Hook::BeforeClusterUpgrade, json!({}))["cluster"].clone();
        live["apiVersion"] = json!(format!("cluster.x-k8s.io/{version}"));
        live["metadata"]["annotations"] = json!({"a": "live"});
        api.set_cluster(live);
        let posted = claimed("annotations", json!({"a": "posted"}));
        let found = reader.cluster(&posted).await.unwrap().unwrap();
        assert_eq!(found.annotation("a"), Some("live"), "{version}");
        for (field, value) in
            [("uid", json!("2")), ("uid", json!(null)), ("name", json!("a")), ("namespace", json!("b"))]
        {
            assert_eq!(reader.cluster(&claimed(field, value)).await, Ok(None), "{version}, {field}");
        }
    }
}

#[tokio::test]
async fn machines_of_the_older_api_are_read_and_without_any_they_are_unreadable() {
    let (api, client) = ApiServer::start();
    let reader = KubeReader(client);
    let cluster = ClusterKey { namespace: "teams".into(), name: "prod".into(), uid: "1".into() };
    let machine = json!({"metadata": {"name": "a"}, "status": {"nodeInfo": {"kubeletVersion": "v1.34.8"}}});
    for version in ["v1beta2", "v1beta1"] {
        api.set_machines(version, vec![machine.clone()]);
        let machines = reader.machines(&cluster).await.unwrap();
        assert_eq!(machines[0].kubelet_version.as_deref(), Some("v1.34.8"), "{version}");
    }
    api.set_machines("v1", Vec::new());
    assert!(reader.machines(&cluster).await.is_err());
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
    // The same replica.
    let (api, client) = ApiServer::start();
    let cost = cost(&api, &client, &[(hook, protected), (hook, request(hook, json!({})))]).await;
    // The protection and its end, and the record twice, which is created once.
    let events = [("GET events", 2), ("PATCH events", 2), ("POST events", 3)];
    let lists = [("GET asgmachinepools", 2), ("GET helmchartproxies", 2)];
    assert_eq!(cost, requests([lists[0], lists[1], events[0], events[1], events[2]]));
}

#[tokio::test]
async fn a_release_that_asks_is_read_and_its_status_alone_is_written() {
    let (api, client) = ApiServer::start();
    let phases = json!({"asg.addons.cluster.x-k8s.io/phases": "before-control-plane-upgrade"});
    let status = json!({"matchingClusters": [{"name": "prod"}]});
    let chart = json!({"metadata": {"name": "csi", "annotations": phases}, "status": status});
    let label = json!({"helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name": "csi"});
    let release = json!({"metadata": {"name": "csi-prod", "labels": label}});
    api.set_addons(vec![chart], vec![release]);
    let hook = Hook::BeforeControlPlaneUpgrade;
    let calls = [(hook, request(hook, json!({})))];
    let mut counted = cost(&api, &client, &calls).await;
    assert_eq!(api.release()["status"], json!({"nextKubernetesVersion": "v1.36.3"}));
    assert_eq!(counted.remove("GET helmreleaseproxies"), Some(1));
    assert_eq!(counted.remove("PATCH helmreleaseproxies"), Some(1));
    // A request that is in the status is not repeated.
    let again = cost(&api, &client, &calls).await;
    assert_eq!((again["GET helmreleaseproxies"], again.get("PATCH helmreleaseproxies")), (1, None));
    let events = api.events();
    let reasons =
        |event: &serde_json::Value| event["reason"] == "HookBlocked" || event["reason"] == "HookRecord";
    assert!(events.values().all(reasons), "{events:?}");
}
