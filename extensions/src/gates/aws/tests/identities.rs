//! With which identity AWS is asked, and what is said if it may not be asked.

use std::sync::{Mutex, atomic::Ordering};

use capasg_api::identity::ClusterIdentity;

use super::*;

const CREATE: Hook = Hook::BeforeClusterCreate;
const WORKERS: Hook = Hook::BeforeWorkersUpgrade;

/// A class whose `AWSCluster` names an identity, and patches.
fn with_class(world: &Arc<World>, identity: &Value, patches: &Value) {
    let mut objects = world.objects.lock().unwrap();
    let class = objects.get_mut(&(Kind::ClusterClass, "teams/prod".to_owned())).unwrap();
    class["spec"]["infrastructure"] = json!({"templateRef": {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSClusterTemplate", "name": "prod",
    }});
    class["spec"]["patches"] = patches.clone();
    let template = json!({"spec": {"template": {"spec": {"identityRef": identity}}}});
    objects.insert((Kind::ClusterTemplate, "teams/prod".to_owned()), template);
}

fn named(name: &str) -> Value {
    json!({"kind": "ASGIdentity", "name": name})
}

fn asked(region: &Arc<Mutex<Region>>) -> Vec<String> {
    std::mem::take(&mut region.lock().unwrap().asked).into_iter().collect()
}

fn notes(world: &Arc<World>) -> Vec<String> {
    let notices = std::mem::take(&mut *world.notices.lock().unwrap());
    assert!(notices.iter().all(|notice| notice.reason == events::NOT_CHECKED), "{notices:?}");
    notices.into_iter().map(|notice| notice.message).collect()
}

fn upgrade() -> Value {
    let mut request = request(WORKERS, json!({}));
    request["cluster"]["spec"]["infrastructureRef"] =
        json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": "prod"});
    request
}

#[tokio::test]
async fn a_planned_pool_is_checked_with_the_identity_of_its_template_or_its_class() {
    let (world, aws) = world(region());
    assert_eq!(block(&world, CREATE, &creation(&workers())).await, None);
    assert_eq!(asked(&aws), ["default"]);
    with_class(&world, &named("cluster"), &json!([]));
    assert_eq!(block(&world, CREATE, &creation(&workers())).await, None);
    assert_eq!(asked(&aws), ["cluster"]);
    let own = with(template(), "spec/template/spec/identityRef", named("own"));
    world.objects.lock().unwrap().insert((Kind::PoolTemplate, "teams/workers".to_owned()), own);
    assert_eq!(block(&world, CREATE, &creation(&workers())).await, None);
    assert_eq!((asked(&aws), notes(&world)), (vec!["own".to_owned()], Vec::new()));
}

#[tokio::test]
async fn patches_of_a_class_that_are_known_count_and_others_leave_the_check_out() {
    let patch = |selector: Value, change: Value| {
        let mut change = change;
        change["op"] = json!("add");
        change["path"] = json!("/spec/template/spec/identityRef");
        let selector = json!({"kind": "AWSClusterTemplate", "matchResources": selector});
        json!({"name": "a", "definitions": [{"selector": selector, "jsonPatches": [change]}]})
    };
    let of_cluster = || json!({"infrastructureCluster": true});
    let value = json!({"value": named("patched")});
    let pools = || json!({"machinePoolClass": {"names": ["default"]}});
    let external = |handler: &str| json!({"name": "e", "external": {"generatePatchesExtension": handler}});
    let unknown = "not checked in AWS: machine pool workers: patches may change spec.identityRef of AWSClusterTemplate prod: \
                   the identity is known once the Cluster is created";
    for (patches, expected) in [
        (json!([patch(of_cluster(), value.clone())]), Some("patched")),
        (json!([patch(pools(), value)]), Some("cluster")),
        (json!([patch(of_cluster(), json!({"valueFrom": {"template": "{}"}}))]), None),
        (json!([external("generate-patches.asg")]), Some("cluster")),
        (json!([external("patch.other")]), None),
    ] {
        let (world, aws) = world(region());
        with_class(&world, &named("cluster"), &patches);
        // A pool of which another extension may change everything is not checked at all.
        let hides_pools = patches[0]["external"]["generatePatchesExtension"] == "patch.other";
        assert_eq!(block(&world, CREATE, &creation(&workers())).await, None, "{patches}");
        let notes = notes(&world);
        match expected {
            Some(name) => assert_eq!((asked(&aws), notes), (vec![name.to_owned()], Vec::new()), "{patches}"),
            None if hides_pools => assert_eq!((asked(&aws).len(), notes.len()), (0, 0), "{patches}"),
            None => {
                assert_eq!((asked(&aws).len(), notes), (0, vec![unknown.to_owned()]), "{patches}");
            }
        }
    }
}

#[tokio::test]
async fn a_pool_is_checked_with_its_own_identity_or_that_of_its_cluster() {
    let (world, aws) = world(region());
    world.set_pools(vec![with(pool("a", 1), "spec/identityRef", named("own")), pool("b", 1)]);
    assert_eq!(block(&world, WORKERS, &upgrade()).await, None);
    assert_eq!(asked(&aws), ["of AWSCluster prod", "own"]);
    let requests = std::mem::take(&mut aws.lock().unwrap().requests);
    assert!(requests.iter().all(|request| request.namespace == "teams"), "{requests:?}");
    // An older core refers to a version.
    let mut older = upgrade();
    older["cluster"]["spec"] = json!({
        "topology": older["cluster"]["spec"]["topology"],
        "infrastructureRef": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSManagedCluster", "name": "prod",
        },
        "controlPlaneRef": {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "AWSManagedControlPlane", "name": "prod",
        },
    });
    block(&world, WORKERS, &older).await;
    let requests = std::mem::take(&mut aws.lock().unwrap().requests);
    let holders = requests.iter().filter_map(|request| match &request.cluster {
        ClusterIdentity::Of(holder) => Some(holder.kind.as_str()),
        _ => None,
    });
    assert_eq!(holders.collect::<BTreeSet<_>>(), ["AWSManagedControlPlane"].into());
}

#[tokio::test]
async fn what_may_not_be_asked_is_reported_in_words_and_does_not_block() {
    // Everything is missing in AWS.
    let (world, aws) = world(Region::default());
    let denied = |name: &str| with(pool(name, 1), "spec/identityRef", named("other"));
    world.set_pools(vec![denied("a"), denied("b")]);
    assert_eq!(block(&world, WORKERS, &upgrade()).await, None);
    let expected = "not checked in AWS: ASGMachinePool a, ASGMachinePool b: ASGIdentity other does not allow namespace teams";
    assert_eq!((asked(&aws).len(), notes(&world)), (0, vec![expected.to_owned()]));
    // The pool next to them is checked.
    world.set_pools(vec![denied("a"), pool("b", 1)]);
    let message = block(&world, WORKERS, &upgrade()).await.unwrap();
    assert!(message.contains("images of ASGMachinePool b do not exist"), "{message}");
    assert!(!message.contains("ASGMachinePool a"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn an_identity_that_is_not_read_in_time_does_not_block() {
    let (world, aws) = world(Region { hangs_identities: true, ..Region::default() });
    world.set_pools(vec![pool("a", 1)]);
    assert_eq!(block(&world, WORKERS, &upgrade()).await, None);
    let expected = "not checked in AWS: ASGMachinePool a: its identity was not read in time";
    assert_eq!((asked(&aws).len(), notes(&world)), (0, vec![expected.to_owned()]));
}

#[tokio::test]
async fn what_a_request_claims_of_its_cluster_gives_no_access_to_aws() {
    let (world, aws) = world(Region::default());
    world.set_pools(vec![pool("a", 1)]);
    world.cluster_fails.store(true, Ordering::SeqCst);
    assert_eq!(block(&world, WORKERS, &upgrade()).await, None);
    assert_eq!(block(&world, CREATE, &creation(&workers())).await, None);
    assert_eq!((asked(&aws).len(), aws.lock().unwrap().requests.len()), (0, 0));
}
