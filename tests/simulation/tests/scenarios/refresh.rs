//! Instance refreshes that go well: what is started, what AWS replaces, and what goes on meanwhile.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use capasg_api::{
    ASGMachinePoolSpec,
    conditions::{ROLLING_OUT, UP_TO_DATE},
    names::{annotations, events},
    pool::{
        InstanceRefresh, OnRefreshFailure, Rollout, RolloutMode, RolloutStrategy, RolloutType, RolloutWait,
    },
};
use capasg_fake_aws::{Fault, LogEntry, Outcome, Service, Tree};
use capasg_simulation::{Drain, Pool, Setup, World};
use chrono::TimeDelta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::{SOON, ended_since, group_params, reach};

pub const OLD: &str = "ami-0a1b2c3d";
pub const NEW: &str = "ami-0b1c2d3e";

/// Whether bootstrap data rotate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// A person's Secret.
    Fixed,
    /// kubeadm's.
    Rotating,
}

/// What AWS is told where a test says nothing else: no warm-up.
pub fn quick() -> InstanceRefresh {
    InstanceRefresh { instance_warmup_seconds: Some(0), ..InstanceRefresh::default() }
}

pub fn refreshed(spec: &mut ASGMachinePoolSpec, preferences: InstanceRefresh) {
    let strategy = RolloutStrategy {
        type_: Some(RolloutType::InstanceRefresh),
        instance_refresh: Some(preferences),
        ..RolloutStrategy::default()
    };
    spec.rollout.get_or_insert_default().strategy = Some(strategy);
}

/// A running pool that AWS refreshes with these preferences.
pub async fn refreshed_pool(
    setup: Setup,
    data: Data,
    replicas: i32,
    preferences: InstanceRefresh,
) -> Result<(World, Pool)> {
    let mut world = World::new(setup);
    let pool = add(&mut world, data, replicas, |spec| refreshed(spec, preferences)).await?;
    Ok((world, pool))
}

/// A running pool with such bootstrap data.
pub async fn add(
    world: &mut World,
    data: Data,
    replicas: i32,
    edit: impl FnOnce(&mut ASGMachinePoolSpec),
) -> Result<Pool> {
    let pool = world.add_pool_with("workers", replicas, edit);
    if data == Data::Fixed {
        let secret = pool.config.name.clone();
        world.edit_machine_pool(&pool, |own| {
            let bootstrap = &mut own.spec.template.spec.bootstrap;
            bootstrap.config_ref = None;
            bootstrap.data_secret_name = Some(secret);
        });
    }
    reach(world, &pool, usize::try_from(replicas)?).await?;
    Ok(pool)
}

pub fn set_image(world: &World, pool: &Pool, image: &str) {
    world.edit_pool(pool, |pool| pool.spec.machine.image.id = Some(image.to_owned()));
}

/// All run the image, and everything says so.
pub fn is_all(world: &World, pool: &Pool, replicas: usize, image: &str) -> bool {
    world.is_running(pool, replicas)
        && world.instances(pool).iter().all(|one| one.image == image)
        && world.says(pool, UP_TO_DATE, "True", "UpToDate")
        && world.says(pool, ROLLING_OUT, "False", "NotRollingOut")
}

pub async fn until_all(world: &mut World, pool: &Pool, replicas: usize, image: &str) -> Result<()> {
    world
        .run_until("the image is everywhere", TimeDelta::hours(2), |world| {
            is_all(world, pool, replicas, image)
        })
        .await
}

/// The calls of an operation that AWS carried out.
pub fn done(world: &World, action: &str) -> Vec<LogEntry> {
    let calls = world.calls_since(0, Some(action)).into_iter();
    calls.filter(|call| call.outcome == Outcome::Ok).collect()
}

pub fn starts(world: &World) -> Vec<LogEntry> {
    done(world, "StartInstanceRefresh")
}

/// The version that a start names.
fn desired_version(start: &LogEntry) -> Option<String> {
    Some(start.params["DesiredConfiguration"]["LaunchTemplate"]["Version"].as_str()?.to_owned())
}

fn group_version(world: &World, pool: &Pool) -> Option<String> {
    Some(world.group(pool)?.template.1)
}

/// The statuses of the group's refreshes, newest first.
pub fn statuses(world: &World, pool: &Pool) -> Vec<String> {
    let reply = world.aws(Service::AutoScaling, "DescribeInstanceRefreshes", group_params(world, pool));
    let refreshes = reply.map(|reply| reply.items_of("InstanceRefreshes").to_vec()).unwrap_or_default();
    refreshes.iter().filter_map(|one| one.text_of("Status")).map(str::to_owned).collect()
}

pub fn message(world: &World, pool: &Pool, condition: &str) -> String {
    world.condition(pool, condition).map(|found| found.message).unwrap_or_default()
}

/// With data that stay as they are, AWS is told which version to launch, and the group names the old one until all is
/// done: so there is a way back, and nothing half-made is launched.
// Rules: H3
// Pains: W7
#[tokio::test(start_paused = true)]
async fn a_refresh_names_its_version_and_drains_every_node() -> Result<()> {
    for seed in 0..3 {
        let (mut world, pool) = refreshed_pool(Setup::seed(seed), Data::Fixed, 4, quick()).await?;
        let mark = world.mark();
        let before: BTreeSet<String> = world.machines(&pool).into_keys().collect();
        set_image(&world, &pool, NEW);
        world
            .run_until("it is under way", SOON, |world| {
                world.says(&pool, ROLLING_OUT, "True", "RollingOut") && !starts(world).is_empty()
            })
            .await?;
        ensure!(group_version(&world, &pool).as_deref() == Some("1"), "left alone until it succeeds");
        let status = world.pool(&pool).and_then(|pool| pool.status.clone()?.rollout).context("no rollout")?;
        ensure!(status.type_ == RolloutType::InstanceRefresh, "{status:?}");
        ensure!(status.waiting_for == Some(RolloutWait::Refresh), "{status:?}");
        until_all(&mut world, &pool, 4, NEW).await?;
        let started = starts(&world);
        ensure!(started.len() == 1, "{started:?}");
        ensure!(desired_version(&started[0]).as_deref() == Some("2"), "{:?}", started[0].params);
        let preferences = &started[0].params["Preferences"];
        ensure!(
            preferences["ScaleInProtectedInstances"] == "Refresh" && preferences["SkipMatching"] == "true"
        );
        ensure!(group_version(&world, &pool).as_deref() == Some("2"), "by AWS's own doing");
        ensure!(ended_since(&world, mark).is_empty(), "AWS ends them, not we");
        for machine in before {
            ensure!(matches!(world.drains(&machine)[..], [Drain::Done(_)]), "{machine} was drained");
        }
        ensure!(world.events(events::ROLLOUT_STARTED).len() == 1);
        ensure!(world.events(events::ROLLOUT_COMPLETED).len() == 1);
        world.run_for(TimeDelta::minutes(5)).await?;
        let mark = world.mark();
        world.run_for(TimeDelta::minutes(20)).await?;
        let after = world.calls_since(mark, Some("DescribeInstanceRefreshes"));
        ensure!(after.is_empty(), "nobody asks for refreshes any more: {}", after.len());
        ensure!(world.mutations_since(mark).is_empty());
        world.finish()?;
    }
    Ok(())
}

/// Data that rotate need a template that can be updated at any time, which AWS refuses beside a desired configuration.
// Rules: H2
// Pains: P7, P8
#[tokio::test(start_paused = true)]
async fn token_rotations_do_not_disturb_a_refresh() -> Result<()> {
    let preferences = InstanceRefresh { on_failure: Some(OnRefreshFailure::RollBack), ..quick() };
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Rotating, 4, preferences).await?;
    for _ in 0..3 {
        world.rotate_token(&pool);
        world.run_for(TimeDelta::minutes(8)).await?;
    }
    ensure!(starts(&world).is_empty(), "a token is no reason");
    set_image(&world, &pool, NEW);
    world.run_until("it is under way", SOON, |world| !starts(world).is_empty()).await?;
    world.rotate_token(&pool);
    world.run_for(TimeDelta::seconds(60)).await?;
    let told = message(&world, &pool, ROLLING_OUT);
    ensure!(told.contains("onFailure RollBack has no effect"), "{told}");
    until_all(&mut world, &pool, 4, NEW).await?;
    let started = starts(&world);
    ensure!(started.len() == 1 && started[0].params["DesiredConfiguration"].is_null(), "{started:?}");
    ensure!(started[0].params["Preferences"]["AutoRollback"] == "false");
    let refused = world.calls_since(0, Some("UpdateAutoScalingGroup"));
    ensure!(refused.iter().all(|call| call.outcome == Outcome::Ok), "an update was refused");
    world.finish()
}

/// What AWS launches beyond desired capacity is its own to end.
// Rules: H7
#[tokio::test(start_paused = true)]
async fn surplus_instances_of_a_refresh_are_not_terminated_by_us() -> Result<()> {
    for data in [Data::Fixed, Data::Rotating] {
        let preferences = InstanceRefresh {
            min_healthy_percentage: Some(100),
            max_healthy_percentage: Some(150),
            ..quick()
        };
        let (mut world, pool) = refreshed_pool(Setup::default(), data, 4, preferences).await?;
        let mark = world.mark();
        set_image(&world, &pool, NEW);
        let mut most = 0;
        world
            .run_until("the image is everywhere", TimeDelta::hours(1), |world| {
                most = most.max(world.in_service(&pool).len());
                is_all(world, &pool, 4, NEW)
            })
            .await?;
        ensure!(most > 4, "it launched some before ({data:?})");
        ensure!(ended_since(&world, mark).is_empty(), "{:?}", ended_since(&world, mark));
        let sizes = world.calls_since(mark, Some("SetDesiredCapacity")).len();
        ensure!(sizes == 0, "nobody changes sizes");
        world.finish()?;
    }
    Ok(())
}

/// Replicas go up and down in the middle, exactly.
// Rules: G1
#[tokio::test(start_paused = true)]
async fn a_pool_is_scaled_during_a_refresh() -> Result<()> {
    for (data, replicas) in [(Data::Fixed, 6), (Data::Fixed, 2), (Data::Rotating, 6), (Data::Rotating, 2)] {
        let (mut world, pool) = refreshed_pool(Setup::default(), data, 4, quick()).await?;
        set_image(&world, &pool, NEW);
        world.run_until("it is under way", SOON, |world| !starts(world).is_empty()).await?;
        world.run_for(TimeDelta::seconds(20)).await?;
        let mark = world.mark();
        world.scale(&pool, replicas);
        until_all(&mut world, &pool, usize::try_from(replicas)?, NEW).await?;
        let shrunk = ended_since(&world, mark).into_iter().filter(|(_, shrinks)| *shrinks).count();
        ensure!(shrunk == usize::try_from((4 - replicas).max(0))?, "{shrunk} for {replicas} ({data:?})");
        ensure!(starts(&world).len() == 1, "{data:?}");
        world.finish()?;
    }
    Ok(())
}

// Rules: H3
#[tokio::test(start_paused = true)]
async fn checkpoints_and_bake_time_are_reported_and_waited_for() -> Result<()> {
    let preferences = InstanceRefresh {
        checkpoint_percentages: Some(vec![50, 100]),
        checkpoint_delay_seconds: Some(1800),
        bake_time_seconds: Some(3600),
        ..quick()
    };
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 4, preferences).await?;
    set_image(&world, &pool, NEW);
    world
        .run_until("the checkpoint", TimeDelta::hours(1), |world| {
            message(world, &pool, ROLLING_OUT).contains("checkpoint of 50%")
        })
        .await?;
    let status = world.pool(&pool).and_then(|pool| pool.status.clone()?.rollout).context("no rollout")?;
    ensure!(status.percentage == Some(50) && status.outdated == 2, "{status:?}");
    let told = message(&world, &pool, ROLLING_OUT);
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(message(&world, &pool, ROLLING_OUT) == told, "the same as long as nothing happens");
    world
        .run_until("it bakes", TimeDelta::hours(1), |world| {
            message(world, &pool, ROLLING_OUT).contains("Baking")
        })
        .await?;
    ensure!(world.says(&pool, ROLLING_OUT, "True", "RollingOut"), "not over before AWS says so");
    world.kill_process();
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(message(&world, &pool, ROLLING_OUT).contains("Baking"), "also to a new process");
    until_all(&mut world, &pool, 4, NEW).await?;
    ensure!(starts(&world).len() == 1);
    world.finish()
}

/// `disruption.maxDisrupted` bounds what AWS may take away at once.
#[tokio::test(start_paused = true)]
async fn the_budget_raises_the_minimum_healthy_percentage() -> Result<()> {
    let preferences = InstanceRefresh { min_healthy_percentage: Some(0), ..quick() };
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 4, preferences).await?;
    world.edit_pool(&pool, |pool| {
        pool.spec.disruption.get_or_insert_default().max_disrupted = Some(IntOrString::Int(1));
    });
    set_image(&world, &pool, NEW);
    let mut fewest = 4;
    world
        .run_until("the image is everywhere", TimeDelta::hours(1), |world| {
            fewest = fewest.min(world.in_service(&pool).len());
            is_all(world, &pool, 4, NEW)
        })
        .await?;
    ensure!(starts(&world)[0].params["Preferences"]["MinHealthyPercentage"] == "75");
    ensure!(fewest == 3, "{fewest} were left");
    world.finish()
}

/// Nothing starts while rollouts are paused.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn no_refresh_starts_in_a_pause() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 3, quick()).await?;
    let mode = |world: &World, mode| {
        world.edit_pool(&pool, |pool| pool.spec.rollout.get_or_insert_default().mode = Some(mode));
    };
    mode(&world, RolloutMode::Paused);
    set_image(&world, &pool, NEW);
    world
        .run_until("it waits", SOON, |world| world.says(&pool, UP_TO_DATE, "False", "RolloutPaused"))
        .await?;
    world.run_for(TimeDelta::hours(1)).await?;
    ensure!(starts(&world).is_empty() && group_version(&world, &pool).as_deref() == Some("1"));
    mode(&world, RolloutMode::Automatic);
    until_all(&mut world, &pool, 3, NEW).await?;
    world.finish()
}

/// An empty pool has nothing to refresh: its group is pinned at once.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn an_empty_pool_gets_its_version_without_a_refresh() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 0, quick()).await?;
    set_image(&world, &pool, NEW);
    world
        .run_until("it is pinned", SOON, |world| group_version(world, &pool).as_deref() == Some("2"))
        .await?;
    world.scale(&pool, 2);
    until_all(&mut world, &pool, 2, NEW).await?;
    ensure!(starts(&world).is_empty());
    world.finish()
}

/// A replacement that somebody asks for concerns one instance, which AWS's refreshes would skip.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn one_instance_is_replaced_on_request_without_a_refresh() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 3, quick()).await?;
    let (name, machine) = world.asg_machines(&pool).into_iter().next().context("an ASGMachine")?;
    world.annotate_asg_machine(&name, annotations::REPLACE);
    let id = machine.spec.instance_id.clone();
    world
        .run_until("it is replaced", SOON, |world| {
            !world.in_service(&pool).contains(&id) && world.is_running(&pool, 3)
        })
        .await?;
    ensure!(starts(&world).is_empty());
    world.finish()
}

/// Somebody else manages replicas: the refresh goes on all the same, and desired capacity is theirs.
// Rules: G2
#[tokio::test(start_paused = true)]
async fn a_pool_with_externally_managed_replicas_is_refreshed() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 3, quick()).await?;
    world.edit_machine_pool(&pool, |own| {
        own.metadata
            .annotations
            .get_or_insert_default()
            .insert(annotations::REPLICAS_MANAGED_BY.to_owned(), "somebody".to_owned());
    });
    world
        .run_until("it is handed over", SOON, |world| {
            let status = world.pool(&pool).and_then(|pool| pool.status.clone());
            status.is_some_and(|status| status.replicas_managed_by.is_some())
        })
        .await?;
    set_image(&world, &pool, NEW);
    world.run_until("it is under way", SOON, |world| !starts(world).is_empty()).await?;
    world.aws(
        Service::AutoScaling,
        "SetDesiredCapacity",
        group_params(&world, &pool).with("DesiredCapacity", 4),
    )?;
    until_all(&mut world, &pool, 4, NEW).await?;
    world.finish()
}

/// The strategy changes in the middle: AWS finishes, and nobody replaces beside it.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn a_strategy_change_during_a_refresh_replaces_nothing_twice() -> Result<()> {
    for data in [Data::Fixed, Data::Rotating] {
        let (mut world, pool) = refreshed_pool(Setup::default(), data, 4, quick()).await?;
        set_image(&world, &pool, NEW);
        world.run_until("it is under way", SOON, |world| !starts(world).is_empty()).await?;
        world.run_for(TimeDelta::seconds(30)).await?;
        world.edit_pool(&pool, |pool| pool.spec.rollout = Some(Rollout::default()));
        world.kill_process();
        let mark = world.mark();
        until_all(&mut world, &pool, 4, NEW).await?;
        ensure!(ended_since(&world, mark).is_empty(), "AWS finishes what it began ({data:?})");
        world.finish()?;
    }
    Ok(())
}

/// AWS denies to list a refresh that is known to be in progress: nothing is replaced beside it.
// Pains: W26
#[tokio::test(start_paused = true)]
async fn a_denied_listing_does_not_end_a_refresh_in_progress() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 4, quick()).await?;
    set_image(&world, &pool, NEW);
    world.run_until("it is under way", SOON, |world| !starts(world).is_empty()).await?;
    world.run_for(TimeDelta::seconds(30)).await?;
    world.edit_pool(&pool, |pool| pool.spec.rollout = Some(Rollout::default()));
    set_image(&world, &pool, OLD);
    world.run_for(TimeDelta::seconds(20)).await?;
    let denied = "is not authorized to perform: autoscaling:DescribeInstanceRefreshes";
    world.fault(Fault::error("DescribeInstanceRefreshes", 403, "AccessDenied", denied).times(None));
    world.run_for(TimeDelta::minutes(10)).await?;
    world.simulator.clear_faults(None);
    until_all(&mut world, &pool, 4, OLD).await?;
    world.finish()
}

/// A pool that goes while it is refreshed goes drained, and leaves nothing.
// Rules: E2
#[tokio::test(start_paused = true)]
async fn a_pool_is_deleted_during_a_refresh() -> Result<()> {
    for data in [Data::Fixed, Data::Rotating] {
        let (mut world, pool) = refreshed_pool(Setup::default(), data, 3, quick()).await?;
        set_image(&world, &pool, NEW);
        world.run_until("it is under way", SOON, |world| !starts(world).is_empty()).await?;
        world.run_for(TimeDelta::seconds(30)).await?;
        world.delete_machine_pool(&pool);
        world.run_until("everything is gone", SOON, |world| world.is_gone(&pool)).await?;
        let left = world.simulator.leftovers(None);
        ensure!(left.is_empty(), "{left:?}");
        world.finish()?;
    }
    Ok(())
}

/// Somebody starts a refresh in AWS: each instance is drained, and our own rolling update waits for its end.
// Pains: P12
#[tokio::test(start_paused = true)]
async fn a_refresh_by_another_actor_is_drained_and_not_disturbed() -> Result<()> {
    let (mut world, pool) = crate::running(Setup::default(), 3).await?;
    let before: BTreeSet<String> = world.machines(&pool).into_keys().collect();
    let preferences = Tree::new().with("ScaleInProtectedInstances", "Refresh").with("InstanceWarmup", 0);
    let specification = Tree::new()
        .with("LaunchTemplateId", world.dump().templates[0].id.as_str())
        .with("Version", group_version(&world, &pool).context("a version")?);
    let start = group_params(&world, &pool)
        .with("DesiredConfiguration", Tree::new().with("LaunchTemplate", specification))
        .with("Preferences", preferences);
    world.aws(Service::AutoScaling, "StartInstanceRefresh", start)?;
    world.run_for(TimeDelta::seconds(20)).await?;
    set_image(&world, &pool, NEW);
    until_all(&mut world, &pool, 3, NEW).await?;
    for machine in before {
        ensure!(matches!(world.drains(&machine)[..], [Drain::Done(_)]), "{machine} was drained");
    }
    let refused = world.calls_since(0, Some("UpdateAutoScalingGroup")).into_iter();
    let refused = refused.filter(|call| call.outcome != Outcome::Ok).count();
    ensure!(refused <= 1, "AWS refused {refused} updates");
    ensure!(statuses(&world, &pool) == ["Successful"], "{:?}", statuses(&world, &pool));
    world.finish()
}

/// Where AWS does not tell of refreshes, only what concerns them waits.
#[tokio::test(start_paused = true)]
async fn a_denied_read_of_refreshes_does_not_block_a_scale_in() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Rotating, 4, quick()).await?;
    let denied = "is not authorized to perform: autoscaling:DescribeInstanceRefreshes";
    world.fault(Fault::error("DescribeInstanceRefreshes", 403, "AccessDenied", denied).times(None));
    set_image(&world, &pool, NEW);
    world.run_for(TimeDelta::minutes(2)).await?;
    world.scale(&pool, 3);
    world.run_until("it is smaller", SOON, |world| world.in_service(&pool).len() == 3).await?;
    ensure!(starts(&world).is_empty());
    let mark = world.mark();
    world.run_for(TimeDelta::hours(2)).await?;
    let asked = world.calls_since(mark, Some("DescribeInstanceRefreshes")).len();
    // Every 10 min, as every pool is reconciled, and a few times when something woke it.
    ensure!((1..=24).contains(&asked), "{asked} times in two hours");
    world.simulator.clear_faults(None);
    until_all(&mut world, &pool, 3, NEW).await
}

/// What is due at a time is done then: here, a drain that reaches its limit while our hook holds the instance.
#[tokio::test(start_paused = true)]
async fn a_denied_read_of_refreshes_does_not_delay_what_is_due() -> Result<()> {
    let limit = TimeDelta::minutes(13);
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Rotating, 4, quick()).await?;
    world.edit_pool(&pool, |pool| {
        let timeout_seconds = i32::try_from(limit.num_seconds()).ok();
        pool.spec.drain = Some(capasg_api::pool::Drain { timeout_seconds, ..Default::default() });
    });
    let denied = "is not authorized to perform: autoscaling:DescribeInstanceRefreshes";
    world.fault(Fault::error("DescribeInstanceRefreshes", 403, "AccessDenied", denied).times(None));
    set_image(&world, &pool, NEW);
    world.run_for(TimeDelta::minutes(30)).await?;
    let (machine, own) = world.asg_machines(&pool).into_iter().next().context("an instance")?;
    world.block_drain(&machine, true);
    let unhealthy = Tree::new()
        .with("InstanceId", &own.spec.instance_id)
        .with("HealthStatus", "Unhealthy")
        .with("ShouldRespectGracePeriod", false);
    world.aws(Service::AutoScaling, "SetInstanceHealth", unhealthy)?;
    let (mark, began) = (world.mark(), world.now());
    let completed = |world: &World| world.calls_since(mark, Some("CompleteLifecycleAction"));
    world.run_until("the hook is completed", SOON, |world| !completed(world).is_empty()).await?;
    let took = completed(&world)[0].time - began;
    ensure!(took > limit && took < limit + TimeDelta::minutes(3), "after {} s", took.num_seconds());
    Ok(())
}
