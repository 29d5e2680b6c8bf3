//! Rolling updates with a surge above one: what happens to it when the rollout is paused, stopped, reverted or scaled, and
//! when AWS or the process fails.

use anyhow::{Context, Result, ensure};
use capasg_api::{
    conditions::UP_TO_DATE,
    names::events,
    pool::{Disruption, RolloutMode},
};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::rollout::{NEW_IMAGE, available, budget, roll, run_for_a_while, set_image, started_once};
use crate::{SOON, ended_since, running_with};

const REPLICAS: i32 = 6;
const SURGE: i32 = 3;

/// Six replicas that are replaced three at a time, none of them before its replacement is available.
async fn six(seed: u64) -> Result<(World, Pool)> {
    running_with(Setup::seed(seed), REPLICAS, |spec| budget(spec, SURGE, 0)).await
}

async fn rolls(world: &mut World, pool: &Pool) -> Result<()> {
    roll(world, pool, 6, NEW_IMAGE, 6, 9).await
}

/// How many terminations decremented desired capacity.
fn decrements(world: &World, mark: u64) -> usize {
    ended_since(world, mark).iter().filter(|(_, shrinks)| *shrinks).count()
}

// Rules: H3, H7
#[tokio::test(start_paused = true)]
async fn the_surge_exists_at_once_and_three_are_replaced_at_a_time() -> Result<()> {
    for seed in 0..3 {
        let (mut world, pool) = six(seed).await?;
        let (mark, begin) = (world.mark(), world.now());
        set_image(&world, &pool, NEW_IMAGE);
        world.run_until("the whole surge", SOON, |world| world.instances(&pool).len() == 9).await?;
        ensure!(ended_since(&world, mark).is_empty(), "nothing is replaced before");
        let leaving = |world: &World| world.machines(&pool).values().filter(|one| one.is_deleting()).count();
        let mut most = 0;
        world
            .run_until("the first are replaced", SOON, |world| {
                most = most.max(leaving(world));
                !ended_since(world, mark).is_empty()
            })
            .await?;
        ensure!(most == 3, "{most} at a time");
        rolls(&mut world, &pool).await?;
        let ended = ended_since(&world, mark);
        ensure!(ended.len() == 6 && decrements(&world, mark) == 3, "each once, and the surge: {ended:?}");
        let took = world.now() - begin;
        ensure!(took < TimeDelta::minutes(20), "two rounds instead of six: {took}");
        world.finish()?;
    }
    Ok(())
}

// Rules: H3
#[tokio::test(start_paused = true)]
async fn a_percentage_refers_to_the_replicas_as_they_change() -> Result<()> {
    let (mut world, pool) = six(0).await?;
    world.edit_pool(&pool, |pool| {
        let rolling = pool.spec.rollout.as_mut().and_then(|rollout| rollout.strategy.as_mut());
        let rolling = rolling.and_then(|strategy| strategy.rolling_update.as_mut());
        rolling.expect("the budget").max_surge = Some(IntOrString::String("50%".to_owned()));
    });
    set_image(&world, &pool, NEW_IMAGE);
    world.run_until("a surge of three", SOON, |world| world.instances(&pool).len() == 9).await?;
    world.scale(&pool, 2);
    roll(&mut world, &pool, 2, NEW_IMAGE, 0, 9).await?;
    let mark = world.mark();
    set_image(&world, &pool, "ami-0d1e2f3a");
    roll(&mut world, &pool, 2, "ami-0d1e2f3a", 2, 3).await?;
    ensure!(ended_since(&world, mark).len() == 2);
    world.finish()
}

/// What has joined is kept, the surge included: the rollout resumes with it.
// Rules: H3
// Pains: P54
#[tokio::test(start_paused = true)]
async fn a_pause_drains_what_has_begun_and_no_more() -> Result<()> {
    for seed in 0..3 {
        let (mut world, pool) = six(seed).await?;
        let mode = |world: &World, mode| {
            world.edit_pool(&pool, |pool| pool.spec.rollout.get_or_insert_default().mode = Some(mode));
        };
        set_image(&world, &pool, NEW_IMAGE);
        world.run_until("the surge works", SOON, |world| available(world, &pool) == 9).await?;
        mode(&world, RolloutMode::Paused);
        world
            .run_until("it is paused", SOON, |world| {
                world.says(&pool, UP_TO_DATE, "False", "RolloutPaused")
                    && world.machines(&pool).values().all(|one| !one.is_deleting())
            })
            .await?;
        world.run_for(TimeDelta::minutes(2)).await?;
        let (mark, old) = (world.mark(), |world: &World| {
            world.instances(&pool).iter().filter(|one| one.image != NEW_IMAGE).count()
        });
        let left = old(&world);
        world.run_for(TimeDelta::minutes(30)).await?;
        ensure!(ended_since(&world, mark).is_empty() && old(&world) == left, "{}", world.describe());
        mode(&world, RolloutMode::Automatic);
        rolls(&mut world, &pool).await?;
        world.finish()?;
    }
    Ok(())
}

// Rules: H3
// Pains: W8
#[tokio::test(start_paused = true)]
async fn a_stopped_rollout_gives_the_whole_surge_back_and_resumes_with_a_retry_token() -> Result<()> {
    let (mut world, pool) = six(0).await?;
    let old = world.in_service(&pool);
    world.mute("*", true);
    set_image(&world, &pool, NEW_IMAGE);
    world.run_for(TimeDelta::minutes(60)).await?;
    ensure!(world.says(&pool, UP_TO_DATE, "False", "ProgressDeadlineExceeded"), "{}", world.describe());
    ensure!(world.in_service(&pool) == old, "the surge alone is terminated\n{}", world.describe());
    ensure!(world.events(events::ROLLOUT_STOPPED).len() == 1, "once");
    world.mute("*", false);
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.in_service(&pool) == old, "it stays stopped\n{}", world.describe());
    world.edit_pool(&pool, |pool| pool.spec.retry_token = Some("1".to_owned()));
    rolls(&mut world, &pool).await?;
    world.finish()
}

/// A part of the surge can be launched: as many are replaced at a time.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn a_surge_that_is_launched_in_part_is_used_in_part() -> Result<()> {
    let (mut world, pool) = six(0).await?;
    world.simulator.set_capacity(&world.scope(), "*", "*", Some(7));
    set_image(&world, &pool, NEW_IMAGE);
    let mut broken = None;
    world
        .run_until("all are new", TimeDelta::hours(3), |world| {
            let works = available(world, &pool);
            if works < 6 {
                broken.get_or_insert_with(|| format!("{works} work\n{}", world.describe()));
            }
            broken.is_some() || world.instances(&pool).iter().all(|one| one.image == NEW_IMAGE)
        })
        .await?;
    ensure!(broken.is_none(), "{}", broken.unwrap_or_default());
    world.simulator.set_capacity(&world.scope(), "*", "*", None);
    rolls(&mut world, &pool).await?;
    world.finish()
}

// Rules: H3
#[tokio::test(start_paused = true)]
async fn a_change_that_is_reverted_gives_the_whole_surge_back() -> Result<()> {
    let (mut world, pool) = six(0).await?;
    let (mark, before) = (world.mark(), world.in_service(&pool));
    set_image(&world, &pool, NEW_IMAGE);
    world.run_until("the surge is there", SOON, |world| world.instances(&pool).len() == 9).await?;
    set_image(&world, &pool, "ami-0a1b2c3d");
    roll(&mut world, &pool, 6, "ami-0a1b2c3d", 6, 9).await?;
    ensure!(world.in_service(&pool) == before && decrements(&world, mark) == 3, "{}", world.describe());
    world.finish()
}

/// Restarts and failovers at any point, and instances that die.
// Rules: D11, H3
#[tokio::test(start_paused = true)]
async fn a_surge_above_one_survives_restarts_and_failures() -> Result<()> {
    for seed in 0..6 {
        let (mut world, pool) = six(seed).await?;
        set_image(&world, &pool, NEW_IMAGE);
        for round in 0..8 {
            run_for_a_while(&mut world).await?;
            if round == 4 {
                let victim = world.in_service(&pool).pop_first().context("an instance")?;
                world.simulator.kill(&world.scope(), &victim);
            }
            world.kill_process();
        }
        roll(&mut world, &pool, 6, NEW_IMAGE, 0, 9).await?;
        started_once(&world)?;
        world.finish()?;
    }
    Ok(())
}

/// The limit on disruptions is lower than the surge: all new instances exist, and one is replaced at a time.
// Rules: H3, H7
#[tokio::test(start_paused = true)]
async fn max_disrupted_applies_beside_a_surge_above_one() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), REPLICAS, |spec| {
        budget(spec, SURGE, 0);
        spec.disruption =
            Some(Disruption { max_disrupted: Some(IntOrString::Int(1)), ..Disruption::default() });
    })
    .await?;
    set_image(&world, &pool, NEW_IMAGE);
    world.run_until("the whole surge", SOON, |world| available(world, &pool) == 9).await?;
    let mut most = 0;
    world
        .run_until("all are new", TimeDelta::hours(1), |world| {
            most = most.max(world.machines(&pool).values().filter(|one| one.is_deleting()).count());
            world.is_running(&pool, 6) && world.instances(&pool).iter().all(|one| one.image == NEW_IMAGE)
        })
        .await?;
    ensure!(most == 1, "{most} at a time");
    world.finish()
}
