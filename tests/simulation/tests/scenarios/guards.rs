//! What operators allow the pools of a namespace, and what happens to pools that use something else.

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    conditions::{CLOUD_REACHABLE, GROUP_READY, LAUNCH_TEMPLATE_READY},
    names::annotations,
    pool::ImageUpdatePolicy,
};
use capasg_fake_aws::{Fault, LogFilter, Settings};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::{SOON, reach, running_with};

fn setup() -> Setup {
    Setup { settings: Settings { accept_any_id: true, ..Settings::default() }, ..Setup::default() }
}

/// A world of an operator who says nothing.
fn world() -> World {
    let world = World::new(setup());
    world.delete_guard("everything");
    world
}

fn message(world: &World, pool: &Pool, condition: &str) -> Result<String> {
    Ok(world.condition(pool, condition).with_context(|| condition.to_owned())?.message)
}

/// Without a guard, a pool has no instance profile but that of nodes, and makes nothing with another one; once a guard allows
/// it, it continues.
// Rules: T3
#[tokio::test(start_paused = true)]
async fn without_a_guard_no_foreign_instance_profile_is_launched() -> Result<()> {
    let mut world = world();
    let own = world.add_pool_with("own", 1, |spec| {
        spec.machine.iam_instance_profile = Some("nodes.cluster-api-provider-aws.sigs.k8s.io".to_owned());
    });
    reach(&mut world, &own, 1).await?;
    let mark = world.mark();
    let foreign = world.add_pool_with("foreign", 2, |spec| {
        spec.machine.iam_instance_profile =
            Some("arn:aws:iam::123456789012:instance-profile/admin".to_owned());
    });
    world
        .run_until("it is told", SOON, |world| {
            world.says(&foreign, LAUNCH_TEMPLATE_READY, "False", "NotAllowed")
        })
        .await?;
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    let told = message(&world, &foreign, LAUNCH_TEMPLATE_READY)?;
    ensure!(told.contains("spec.machine.iamInstanceProfile") && told.contains("ASGGuard"), "{told}");
    world.guard("profiles", json!({"instanceProfiles": ["adm*"]}));
    reach(&mut world, &foreign, 2).await?;
    world.finish()
}

/// A Region that is not allowed is not called at all; a pool of it can be deleted.
// Rules: T3
#[tokio::test(start_paused = true)]
async fn a_region_that_is_not_allowed_is_not_called() -> Result<()> {
    let mut world = world();
    world.guard("regions", json!({"regions": ["us-*"]}));
    let mark = world.mark();
    let pool = world.add_pool("workers", 2);
    world
        .run_until("it is told", SOON, |world| world.says(&pool, CLOUD_REACHABLE, "False", "NotAllowed"))
        .await?;
    world.run_for(TimeDelta::minutes(20)).await?;
    let calls = world.simulator.log(&LogFilter::default().since(mark));
    ensure!(calls.is_empty(), "{} calls", calls.len());
    world.guard("regions", json!({"regions": ["eu-*"]}));
    reach(&mut world, &pool, 2).await?;
    // A pool whose Region is withdrawn keeps what it has, and can be deleted.
    world.guard("regions", json!({"regions": []}));
    world
        .run_until("it is told", SOON, |world| world.says(&pool, CLOUD_REACHABLE, "False", "NotAllowed"))
        .await?;
    ensure!(world.in_service(&pool).len() == 2);
    world.delete_machine_pool(&pool);
    world.run_until("it is deleted", SOON, |world| world.pool(&pool).is_none()).await?;
    ensure!(world.simulator.leftovers(None).is_empty(), "nothing is left");
    Ok(())
}

/// Each resource that AWS resolves is checked once it is known; a pool that has it already keeps what runs, launches nothing
/// more, and terminates what is removed.
// Rules: T3
#[tokio::test(start_paused = true)]
async fn a_guard_that_comes_later_stops_launches_and_nothing_else() -> Result<()> {
    let cases: [(Value, &str); 6] = [
        (json!({"subnetIDs": ["subnet-00000000"]}), GROUP_READY),
        (json!({"vpcIDs": ["vpc-00000000"]}), GROUP_READY),
        (json!({"securityGroupIDs": []}), LAUNCH_TEMPLATE_READY),
        (json!({"sshKeyNames": ["ops"]}), LAUNCH_TEMPLATE_READY),
        (json!({"kmsKeyIDs": []}), LAUNCH_TEMPLATE_READY),
        (json!({"instanceProfiles": ["other"]}), LAUNCH_TEMPLATE_READY),
    ];
    for (guard, condition) in cases {
        let (mut world, pool) = running_with(setup(), 3, |spec| {
            spec.machine.ssh_key_name = Some("mine".to_owned());
            spec.machine.iam_instance_profile = Some("nodes".to_owned());
            let mut root = spec.machine.root_volume.clone().unwrap_or_default();
            root.kms_key_id = Some("alias/mine".to_owned());
            spec.machine.root_volume = Some(root);
        })
        .await?;
        let before = world.in_service(&pool);
        world.guard("later", guard.clone());
        world
            .run_until("it is told", SOON, |world| world.says(&pool, condition, "False", "NotAllowed"))
            .await
            .with_context(|| guard.to_string())?;
        let mark = world.mark();
        world.scale(&pool, 5);
        world.kill_process();
        world.run_for(TimeDelta::minutes(20)).await?;
        ensure!(world.in_service(&pool) == before, "{guard}: nothing is launched: {}", world.describe());
        let calls: Vec<String> = world.mutations_since(mark).into_iter().map(|call| call.action).collect();
        ensure!(calls.iter().all(|action| !action.starts_with("Create")), "{guard}: {calls:?}");
        world.scale(&pool, 2);
        world
            .run_until("it shrinks", SOON, |world| world.in_service(&pool).len() == 2)
            .await
            .with_context(|| guard.to_string())?;
        world.scale(&pool, 4);
        world.run_for(TimeDelta::minutes(10)).await?;
        ensure!(world.in_service(&pool).len() == 2, "{guard}: nothing is launched");
        world.delete_guard("later");
        reach(&mut world, &pool, 4).await.with_context(|| guard.to_string())?;
        world.finish()?;
    }
    Ok(())
}

/// Limits of size count what pools request, the oldest pool first; nothing is terminated because of them.
// Rules: T3
#[tokio::test(start_paused = true)]
async fn limits_of_size_stop_growth_and_terminate_nothing() -> Result<()> {
    let mut world = world();
    world.guard("size", json!({"limits": {"maxReplicasPerPool": 3, "maxReplicas": 5, "maxPools": 2}}));
    let first = world.add_pool("first", 9);
    world.run_until("it has three", SOON, |world| world.in_service(&first).len() == 3).await?;
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(world.in_service(&first).len() == 3);
    let told = message(&world, &first, GROUP_READY)?;
    ensure!(told.contains("at most 3 replicas of a pool"), "{told}");
    world.scale(&first, 3);
    reach(&mut world, &first, 3).await?;
    let second = world.add_pool("second", 3);
    world.run_until("it has two", SOON, |world| world.in_service(&second).len() == 2).await?;
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(world.in_service(&second).len() == 2);
    let third = world.add_pool("third", 1);
    world
        .run_until("it is told", SOON, |world| world.says(&third, GROUP_READY, "False", "NotAllowed"))
        .await?;
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(world.in_service(&third).is_empty());
    // A limit below what runs terminates nothing.
    let before = world.in_service(&first);
    world.guard("size", json!({"limits": {"maxReplicasPerPool": 1}}));
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(world.in_service(&first) == before);
    world.delete_guard("size");
    reach(&mut world, &second, 3).await?;
    reach(&mut world, &third, 1).await
}

/// Limits of size apply to whatever requests replicas, and a pool that a namespace may not have creates nothing.
// Rules: T3
#[tokio::test(start_paused = true)]
async fn limits_of_size_apply_whatever_requests_replicas() -> Result<()> {
    let mut world = world();
    world.guard("size", json!({"limits": {"maxReplicasPerPool": 3, "maxPools": 1}}));
    let first = world.add_pool_with("first", 0, |spec| spec.min_size = Some(9));
    world.run_until("it has three", SOON, |world| world.in_service(&first).len() == 3).await?;
    let told = message(&world, &first, GROUP_READY)?;
    ensure!(told.contains("at most 3 replicas of a pool"), "{told}");
    for (minimum, managed) in [(Some("8"), None), (None, Some("somebody"))] {
        world.edit_machine_pool(&first, |owner| {
            let annotations = owner.annotations_mut();
            for (key, value) in
                [(annotations::AUTOSCALER_MIN_SIZE, minimum), (annotations::REPLICAS_MANAGED_BY, managed)]
            {
                match value {
                    Some(value) => annotations.insert(key.to_owned(), value.to_owned()),
                    None => annotations.remove(key),
                };
            }
        });
        world.run_for(TimeDelta::minutes(10)).await?;
        let group = world.group(&first).context("a group")?;
        ensure!(world.in_service(&first).len() == 3 && group.max <= 3, "{minimum:?} {managed:?}: {group:?}");
    }
    let mark = world.mark();
    let second = world.add_pool("second", 0);
    world
        .run_until("it is told", SOON, |world| world.says(&second, GROUP_READY, "False", "NotAllowed"))
        .await?;
    let told = message(&world, &second, GROUP_READY)?;
    ensure!(told.contains("at most 1 pools") && told.contains("creates nothing"), "{told}");
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    world.delete_machine_pool(&second);
    world.run_until("it is deleted", SOON, |world| world.pool(&second).is_none()).await
}

/// A rollout of a pool at its limit replaces without surge, so that the pool never has more, however often it rolls out.
// Rules: T3
#[tokio::test(start_paused = true)]
async fn a_rollout_of_a_pool_at_its_limit_has_no_surge() -> Result<()> {
    // The budget of its invariants is that of the replicas that the MachinePool requests.
    let mut world = World::new(Setup { invariants: false, ..setup() });
    world.guard("size", json!({"limits": {"maxReplicasPerPool": 3}}));
    let pool = world.add_pool("workers", 9);
    world.run_until("it has three", SOON, |world| world.in_service(&pool).len() == 3).await?;
    for image in ["ami-0b1c2d3e", "ami-0a1b2c3d"] {
        let before = world.in_service(&pool);
        world.edit_pool(&pool, |pool| pool.spec.machine.image.id = Some(image.to_owned()));
        for _ in 0..120 {
            world.run_for(TimeDelta::seconds(30)).await?;
            let desired = world.group(&pool).context("a group")?.desired;
            ensure!(desired <= 3, "{image}: desired capacity {desired}");
        }
        let after = world.in_service(&pool);
        ensure!(after.len() == 3 && after.is_disjoint(&before), "{before:?} {after:?}");
    }
    world.delete_guard("size");
    reach(&mut world, &pool, 9).await
}

/// The replicas of a namespace are limited in whatever order its pools grow.
// Rules: T3
#[tokio::test(start_paused = true)]
async fn an_older_pool_does_not_get_what_a_younger_one_has() -> Result<()> {
    let mut world = world();
    world.guard("size", json!({"limits": {"maxReplicas": 5}}));
    let older = world.add_pool("older", 0);
    world.run_for(TimeDelta::minutes(1)).await?;
    let younger = world.add_pool("younger", 5);
    reach(&mut world, &younger, 5).await?;
    world.scale(&older, 5);
    world
        .run_until("it is told", SOON, |world| world.says(&older, GROUP_READY, "False", "NotAllowed"))
        .await?;
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.in_service(&older).is_empty() && world.in_service(&younger).len() == 5);
    world.scale(&younger, 2);
    world.run_until("it grows", TimeDelta::hours(1), |world| world.in_service(&older).len() == 3).await?;
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.in_service(&older).len() == 3 && world.in_service(&younger).len() == 2);
    Ok(())
}

/// An image that a user writes into the status is not launched while the parameter of the spec cannot be read.
// Rules: T3
#[tokio::test(start_paused = true)]
async fn an_image_of_the_status_is_not_launched() -> Result<()> {
    let (mut world, pool) = running_with(setup(), 2, |spec| {
        spec.machine.image.id = None;
        spec.machine.image.ssm_parameter = Some("/images/node/v{version}".to_owned());
        spec.machine.image.update_policy = Some(ImageUpdatePolicy::RollOut);
    })
    .await?;
    world.fault(Fault::error("GetParameter", 400, "ThrottlingException", "Rate exceeded").times(None));
    world.kill_process();
    world.edit_pool(&pool, |pool| {
        let image = pool.status.get_or_insert_default().image.get_or_insert_default();
        image.available_id = Some("ami-0b1c2d3e".to_owned());
    });
    world.run_for(TimeDelta::hours(1)).await?;
    world.scale(&pool, 3);
    reach(&mut world, &pool, 3).await?;
    ensure!(world.instances(&pool).iter().all(|one| one.image == "ami-0a1b2c3d"), "{}", world.describe());
    Ok(())
}
