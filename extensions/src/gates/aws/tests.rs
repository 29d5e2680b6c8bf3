//! What is checked in AWS, through the hooks that check it.

mod identities;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use capasg_api::identity::IdentityRequest;
use capasg_test_objects::with;
use serde_json::{Value, json};

use super::testing::{Region, creation, pool, region, template, workers, world};
use crate::{
    lookups::Question,
    names::events,
    ports::Kind,
    protocol::Hook,
    testing::{World, annotated, call, request},
};

/// The message with which a hook blocks, and `None` if it does not.
async fn block(world: &Arc<World>, hook: Hook, request: &Value) -> Option<String> {
    let response = call(&world.extension(), hook, request).await;
    assert_eq!(response["status"], "Success", "{response}");
    let blocks = response["retryAfterSeconds"].as_i64().unwrap_or(0) > 0;
    blocks.then(|| response["message"].as_str().unwrap().to_owned())
}

async fn created(change: impl FnOnce(&mut Region)) -> Option<String> {
    let mut region = region();
    change(&mut region);
    let (world, _) = world(region);
    block(&world, Hook::BeforeClusterCreate, &creation(&workers())).await
}

#[tokio::test]
async fn a_creation_waits_for_what_it_names_in_aws() {
    assert_eq!(created(|_| {}).await, None);
    for (change, expected) in [
        (
            Box::new(|region: &mut Region| {
                region.subnets.remove("subnet-0b1c2d3e");
            }) as Box<dyn FnOnce(&mut Region)>,
            "subnets of machine pool workers do not exist in eu-west-1: subnet-0b1c2d3e",
        ),
        (
            Box::new(|region| {
                region.groups.clear();
            }),
            "security groups of machine pool workers do not exist in eu-west-1: sg-0a1b2c3d",
        ),
        (
            Box::new(|region| {
                region.groups.insert("sg-0a1b2c3d", "vpc-2");
            }),
            "subnets and security groups of machine pool workers are in more than one VPC: vpc-1, vpc-2",
        ),
        (
            Box::new(|region| region.images.clear()),
            "images of machine pool workers do not exist in eu-west-1: /images/node/v1.36.3",
        ),
        (
            Box::new(|region| {
                region.types.remove("m7i.large");
            }),
            "no instance type of machine pool workers is offered in these zones: eu-west-1b",
        ),
        (
            Box::new(|region| region.types.clear()),
            "no instance type of machine pool workers is offered in eu-west-1",
        ),
        (
            Box::new(|region| {
                region.subnets.insert("subnet-0a1b2c3d", ("vpc-1", "eu-west-1a", 1));
                region.subnets.insert("subnet-0b1c2d3e", ("vpc-1", "eu-west-1b", 1));
            }),
            "the subnets have fewer free addresses than new instances of machine pool workers",
        ),
    ] {
        assert_eq!(created(change).await.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn a_type_that_one_zone_does_not_offer_does_not_block() {
    assert_eq!(created(|region| drop(region.types.remove("m7a.large"))).await, None);
}

#[tokio::test]
async fn pools_that_share_subnets_need_their_addresses_together() {
    let (world, _) = world(region());
    let pools = |replicas: i32| {
        let pool = |name: &str| json!({"class": "default", "name": name, "replicas": replicas});
        creation(&json!([pool("a"), pool("b")]))
    };
    assert_eq!(block(&world, Hook::BeforeClusterCreate, &pools(10)).await, None);
    let message = block(&world, Hook::BeforeClusterCreate, &pools(11)).await;
    let expected =
        "the subnets have fewer free addresses than new instances of machine pool a, machine pool b";
    assert_eq!(message.as_deref(), Some(expected));
}

#[tokio::test]
async fn subnets_by_tags_may_be_created_later() {
    let (world, _) = world(Region { subnets: BTreeMap::new(), ..region() });
    let tags = with(template(), "spec/template/spec/subnets", json!([{"tags": {"role": "private"}}]));
    world.objects.lock().unwrap().insert((Kind::PoolTemplate, "teams/workers".to_owned()), tags);
    assert_eq!(block(&world, Hook::BeforeClusterCreate, &creation(&workers())).await, None);
}

#[tokio::test]
async fn what_aws_does_not_answer_does_not_block_and_is_reported() {
    let (world, _) = world(Region { denies: true, ..Region::default() });
    assert_eq!(block(&world, Hook::BeforeClusterCreate, &creation(&workers())).await, None);
    let notices = world.notices.lock().unwrap();
    assert_eq!(notices[0].reason, events::NOT_CHECKED);
    assert_eq!(
        notices[0].message,
        "not checked in AWS, since it does not answer or denies access: identity, images, instance types, quotas, \
         security groups, subnets; the log of the extension has the errors"
    );
}

#[tokio::test]
async fn a_creation_without_our_pools_or_without_access_to_aws_is_not_checked() {
    let (with_aws, _) = world(Region::default());
    let others = creation(&json!([{"class": "other", "name": "workers", "replicas": 3}]));
    assert_eq!(block(&with_aws, Hook::BeforeClusterCreate, &others).await, None);
    let no_topology = request(Hook::BeforeClusterCreate, json!({}));
    assert_eq!(block(&with_aws, Hook::BeforeClusterCreate, &no_topology).await, None);
    assert!(with_aws.reasons().is_empty());
    *with_aws.lookups.lock().unwrap() = None;
    assert_eq!(block(&with_aws, Hook::BeforeClusterCreate, &creation(&workers())).await, None);
    assert!(with_aws.reasons().is_empty());
}

#[tokio::test]
async fn a_technical_block_ends_by_its_deadline_and_by_break_glass() {
    let (world, _) = world(Region { images: BTreeSet::new(), ..region() });
    let extension = world.extension();
    let hook = Hook::BeforeClusterCreate;
    let retry = async |request: &Value| call(&extension, hook, request).await["retryAfterSeconds"].clone();
    let request = creation(&workers());
    assert_eq!(retry(&request).await, 15);
    let mut skipped = request.clone();
    let annotations =
        annotated(hook, &json!({crate::names::annotations::SKIP_HOOK: "BeforeClusterCreate"}), &json!({}));
    skipped["cluster"]["metadata"] = annotations["cluster"]["metadata"].clone();
    assert_eq!(retry(&skipped).await, 0);
    assert_eq!(retry(&request).await, 15);
    world.pass(25);
    assert_eq!(retry(&request).await, 15);
    world.pass(25);
    assert_eq!(retry(&request).await, 15);
    world.pass(10);
    assert_eq!(retry(&request).await, 0);
    assert!(world.reasons().contains(&events::HOOK_TIMED_OUT));
    let mut kept = request;
    kept["settings"] = json!({"onBlockTimeout": "Block"});
    assert_eq!(retry(&kept).await, 15);
}

/// A request for a Cluster that is upgraded to v1.37.0.
fn of_upgrade(hook: Hook, more: Value) -> Value {
    let mut request = request(hook, more);
    request["cluster"]["spec"]["topology"]["version"] = json!("v1.37.0");
    request
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_waits_for_the_images_of_the_versions_that_workers_get() {
    let (world, aws) = world(region());
    world.set_pools(vec![pool("workers", 1)]);
    for hook in [Hook::BeforeClusterUpgrade, Hook::BeforeControlPlaneUpgrade] {
        let to = |version: &str, workers: &[&str]| {
            let steps: Vec<Value> = workers.iter().map(|version| json!({"version": version})).collect();
            of_upgrade(hook, json!({"toKubernetesVersion": version, "workersUpgrades": steps}))
        };
        assert_eq!(block(&world, hook, &to("v1.36.3", &[])).await, None);
        let expected = "images of ASGMachinePool workers do not exist in eu-west-1: /images/node/v1.37.0";
        assert_eq!(block(&world, hook, &to("v1.37.0", &[])).await.as_deref(), Some(expected));
        assert_eq!(block(&world, hook, &to("v1.36.3", &["v1.37.0"])).await.as_deref(), Some(expected));
        // Workers skip the version of this step.
        assert_eq!(block(&world, hook, &to("v1.35.9", &["v1.36.3"])).await, None);
    }
    let hook = Hook::BeforeWorkersUpgrade;
    let next = of_upgrade(hook, json!({"toKubernetesVersion": "v1.37.0"}));
    assert!(block(&world, hook, &next).await.is_some());
    aws.lock().unwrap().images.insert("/images/node/v1.37.0");
    tokio::time::advance(std::time::Duration::from_secs(15)).await;
    assert_eq!(block(&world, hook, &next).await, None, "the image exists now");
}

#[tokio::test(start_paused = true)]
async fn workers_wait_for_the_addresses_of_their_surge() {
    let (world, aws) = world(region());
    let hook = Hook::BeforeWorkersUpgrade;
    let of = |pool: Value| with(pool, "status/desiredReplicas", json!(30));
    world.set_pools(vec![of(pool("a", 10)), of(pool("b", 11))]);
    let expected =
        "the subnets have fewer free addresses than new instances of ASGMachinePool a, ASGMachinePool b";
    let request = request(hook, json!({}));
    assert_eq!(block(&world, hook, &request).await.as_deref(), Some(expected));
    aws.lock().unwrap().subnets.insert("subnet-0a1b2c3d", ("vpc-1", "eu-west-1a", 11));
    tokio::time::advance(std::time::Duration::from_secs(15)).await;
    assert_eq!(block(&world, hook, &request).await, None);
    // Without a surge no address is required.
    aws.lock().unwrap().subnets.clear();
    tokio::time::advance(std::time::Duration::from_secs(15)).await;
    for without_surge in [
        pool("a", 0),
        with(pool("a", 1), "spec/rollout/strategy/type", json!("OnDelete")),
        with(pool("a", 1), "spec/rollout/mode", json!("Paused")),
        with(pool("a", 1), "status/replicasManagedBy", json!("cluster-autoscaler")),
        with(pool("a", 1), "status/desiredReplicas", json!(0)),
    ] {
        world.set_pools(vec![without_surge]);
        assert_eq!(block(&world, hook, &request).await, None);
    }
    // A surge replaces instances, and there are three.
    aws.lock().unwrap().subnets.insert("subnet-0a1b2c3d", ("vpc-1", "eu-west-1a", 3));
    tokio::time::advance(std::time::Duration::from_secs(15)).await;
    world.set_pools(vec![pool("a", 100)]);
    assert_eq!(block(&world, hook, &request).await, None);
}

#[tokio::test(start_paused = true)]
async fn free_addresses_outside_of_the_failure_domains_do_not_count() {
    let (world, aws) = world(region());
    let hook = Hook::BeforeWorkersUpgrade;
    aws.lock().unwrap().subnets.insert("subnet-0a1b2c3d", ("vpc-1", "eu-west-1a", 0));
    let used = json!([{"id": "subnet-0a1b2c3d", "availabilityZone": "eu-west-1a"}]);
    world.set_pools(vec![with(pool("a", 1), "status/subnets", used)]);
    let expected = "the subnets have fewer free addresses than new instances of ASGMachinePool a";
    assert_eq!(block(&world, hook, &request(hook, json!({}))).await.as_deref(), Some(expected));
}

const QUOTA: &str = "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances";

#[tokio::test(start_paused = true)]
async fn a_creation_waits_for_the_vcpus_of_its_replicas() {
    let (world, aws) = world(region());
    let set =
        |code: &'static str, value: i64, used: i64| aws.lock().unwrap().quotas.insert(code, (value, used));
    let pools = json!([
        {"class": "default", "name": "a", "replicas": 3}, {"class": "default", "name": "b", "replicas": 2},
    ]);
    let (hook, request) = (Hook::BeforeClusterCreate, creation(&pools));
    set("L-1216C47A", 32, 23);
    let expected = format!(
        "new instances of machine pool a, machine pool b require at least 10 vCPUs in eu-west-1, but the quota \
         L-1216C47A ({QUOTA}) of 32 vCPUs has fewer left: request a higher quota, or reduce replicas or maxSurge"
    );
    assert_eq!(block(&world, hook, &request).await, Some(expected.clone()));
    set("L-1216C47A", 32, 32);
    tokio::time::advance(std::time::Duration::from_secs(15)).await;
    assert_eq!(block(&world, hook, &request).await, Some(expected), "the message is stable");
    set("L-1216C47A", 33, 23);
    tokio::time::advance(std::time::Duration::from_secs(15)).await;
    assert_eq!(block(&world, hook, &request).await, None);

    // The same with Spot instances.
    let distribution = json!({"onDemandPercentageAboveBaseCapacity": 0});
    let spot = with(template(), "spec/template/spec/instancesDistribution", distribution);
    world.objects.lock().unwrap().insert((Kind::PoolTemplate, "teams/workers".to_owned()), spot);
    set("L-1216C47A", 0, 0);
    tokio::time::advance(std::time::Duration::from_secs(15)).await;
    assert_eq!(block(&world, hook, &request).await, None);
    set("L-34B43A08", 9, 0);
    tokio::time::advance(std::time::Duration::from_secs(15)).await;
    let message = block(&world, hook, &request).await.unwrap();
    let quota = "L-34B43A08 (All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests) of 9 vCPUs";
    assert!(message.contains(quota), "{message}");

    // A quota that cannot be read does not block.
    let (world, _) = super::testing::world(Region { denies_quotas: true, ..region() });
    assert_eq!(block(&world, hook, &request).await, None);
    let notices = world.notices.lock().unwrap();
    assert_eq!(notices[0].reason, events::NOT_CHECKED);
    assert!(notices[0].message.contains("denies access: quotas; the log"), "{}", notices[0].message);
}

#[tokio::test(start_paused = true)]
async fn workers_wait_for_the_vcpus_of_their_surge() {
    let (world, aws) = world(region());
    let set = |value: i64, used: i64| aws.lock().unwrap().quotas.insert("L-1216C47A", (value, used));
    let (hook, request) = (Hook::BeforeWorkersUpgrade, request(Hook::BeforeWorkersUpgrade, json!({})));
    // The second pool has 3 instances to replace.
    world.set_pools(vec![pool("a", 1), pool("b", 10)]);
    set(16, 9);
    let expected = format!(
        "new instances of ASGMachinePool a, ASGMachinePool b require at least 8 vCPUs in eu-west-1, but the quota \
         L-1216C47A ({QUOTA}) of 16 vCPUs has fewer left: request a higher quota, or reduce replicas or maxSurge"
    );
    assert_eq!(block(&world, hook, &request).await, Some(expected));
    set(16, 8);
    tokio::time::advance(std::time::Duration::from_secs(15)).await;
    assert_eq!(block(&world, hook, &request).await, None);
    set(0, 0);
    tokio::time::advance(std::time::Duration::from_secs(15)).await;
    for without_surge in [
        pool("a", 0),
        with(pool("a", 1), "spec/rollout/strategy/type", json!("InstanceRefresh")),
        with(pool("a", 1), "spec/rollout/mode", json!("Paused")),
        with(pool("a", 1), "status/replicasManagedBy", json!("cluster-autoscaler")),
    ] {
        world.set_pools(vec![without_surge]);
        assert_eq!(block(&world, hook, &request).await, None);
    }
}

fn plan_request(workers: &str) -> Value {
    let hook = Hook::GenerateUpgradePlan;
    let versions = json!({"kubernetesVersions": "v1.34.1,v1.34.2,v1.35.1,v1.35.2,v1.36.3,v1.37.0"});
    let more = json!({
        "settings": versions, "fromControlPlaneKubernetesVersion": "v1.33.1", "fromWorkersKubernetesVersion": workers,
        "toKubernetesVersion": "v1.37.0",
    });
    request(hook, more)
}

// Rules: R13
#[tokio::test(start_paused = true)]
async fn plans_have_the_newest_versions_with_images() {
    let (world, aws) = world(Region {
        images: ["/images/node/v1.34.2", "/images/node/v1.35.1", "/images/node/v1.36.3"].into(),
        ..region()
    });
    world.set_pools(vec![pool("workers", 1)]);
    let hook = Hook::GenerateUpgradePlan;
    let versions = |response: &Value, field: &str| -> Vec<String> {
        let steps = response[field].as_array().unwrap_or_else(|| panic!("{response}"));
        steps.iter().map(|step| step["version"].as_str().unwrap().to_owned()).collect()
    };
    let plan = call(&world.extension(), hook, &plan_request("v1.33.1")).await;
    // The target is what the user requests: the upgrade to it waits for its image.
    assert_eq!(versions(&plan, "controlPlaneUpgrades"), ["v1.34.2", "v1.35.1", "v1.36.3", "v1.37.0"]);
    assert_eq!(versions(&plan, "workersUpgrades"), ["v1.36.3", "v1.37.0"]);

    // The control plane passes a version that workers skip.
    aws.lock().unwrap().images.remove("/images/node/v1.35.1");
    tokio::time::advance(std::time::Duration::from_secs(15)).await;
    let plan = call(&world.extension(), hook, &plan_request("v1.33.1")).await;
    assert_eq!(versions(&plan, "controlPlaneUpgrades"), ["v1.34.2", "v1.35.2", "v1.36.3", "v1.37.0"]);
    aws.lock().unwrap().images.remove("/images/node/v1.36.3");
    tokio::time::advance(std::time::Duration::from_secs(15)).await;
    let plan = call(&world.extension(), hook, &plan_request("v1.33.1")).await;
    assert_eq!(plan["status"], "Failure");
    assert_eq!(
        plan["message"],
        "the workers have to be upgraded to a 1.36 version, but the setting kubernetesVersions contains none for which \
         all images of the ASGMachinePools exist"
    );
}

// Rules: R7
#[tokio::test(start_paused = true)]
async fn a_hook_waits_for_reads_that_wait_for_the_rate_limit() {
    let queue = std::time::Duration::from_secs(20);
    let (world, _) = world(Region { images: BTreeSet::new(), queue, ..region() });
    let (hook, request) = (Hook::BeforeClusterCreate, creation(&workers()));
    let expected = "what pools require is being read from AWS: images, quotas";
    assert_eq!(block(&world, hook, &request).await.as_deref(), Some(expected));
    assert!(!world.reasons().contains(&events::NOT_CHECKED));
    tokio::time::advance(queue).await;
    let message = block(&world, hook, &request).await.unwrap();
    assert!(message.starts_with("images of machine pool workers do not exist"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_longer_than_a_minute_or_for_a_silent_aws_does_not_block() {
    let queue = std::time::Duration::from_mins(10);
    let (world, _) = super::testing::world(Region { queue, ..region() });
    let (hook, request) = (Hook::BeforeClusterCreate, creation(&workers()));
    assert!(block(&world, hook, &request).await.is_some());
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    assert_eq!(block(&world, hook, &request).await, None);
    assert!(world.reasons().contains(&events::NOT_CHECKED));
    // Nothing of the region was answered: images alone are asked for.
    let (world, _) = super::testing::world(Region { queue, ..region() });
    world.set_pools(vec![pool("workers", 1)]);
    let hook = Hook::BeforeClusterUpgrade;
    assert_eq!(block(&world, hook, &crate::testing::request(hook, json!({}))).await, None);
}

// Rules: R13
#[tokio::test(start_paused = true)]
async fn a_plan_waits_for_the_images_that_it_depends_on() {
    let queue = std::time::Duration::from_secs(20);
    let images = ["/images/node/v1.34.2", "/images/node/v1.35.1", "/images/node/v1.36.3"].into();
    let (world, _) = world(Region { images, queue, ..region() });
    world.set_pools(vec![pool("workers", 1)]);
    let extension = world.extension();
    // Another hook has read from this region meanwhile.
    let lookups = world.lookups.lock().unwrap().clone().unwrap();
    let hook = Hook::GenerateUpgradePlan;
    let request = plan_request("v1.33.1");
    let other = async {
        tokio::task::yield_now().await;
        let place = lookups.place(&IdentityRequest::default(), "eu-west-1").await.unwrap();
        lookups.ask(&[Question::Identity { place }].into()).await
    };
    let (plan, _) = tokio::join!(call(&extension, hook, &request), other);
    assert_eq!(plan["status"], "Failure");
    assert_eq!(plan["message"], "the images of the ASGMachinePools are being read from AWS");
    tokio::time::advance(queue).await;
    let plan = call(&extension, hook, &request).await;
    assert_eq!(plan["controlPlaneUpgrades"][1]["version"], "v1.35.1");
}
