//! How many instances each Availability Zone has, after rollouts and with `zoneRebalancePolicy`.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use capasg_api::{
    conditions::UP_TO_DATE,
    pool::{SubnetSelector, ZoneRebalancePolicy},
};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

use crate::rollout::{NEW_IMAGE, available, is_rolled_out, set_image};
use crate::{ended_since, running, running_with};

/// The number of instances in each zone, the most first; zones without any included.
fn zones(world: &World, pool: &Pool) -> Vec<usize> {
    let mut zones: BTreeMap<String, usize> = BTreeMap::new();
    for instance in world.instances(pool) {
        *zones.entry(instance.zone).or_default() += 1;
    }
    let mut counts: Vec<usize> = zones.into_values().collect();
    counts.resize(3, 0);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

/// All subnets; the pools of these tests begin with the first one.
fn all_subnets() -> Vec<SubnetSelector> {
    capasg_simulation::pool_spec().subnets
}

/// A pool of four in one zone, to which two are added.
async fn out_of_balance(policy: ZoneRebalancePolicy) -> Result<(World, Pool)> {
    let (world, pool) = running_with(Setup::default(), 4, |spec| {
        spec.subnets.truncate(1);
        spec.zone_rebalance_policy = Some(policy);
    })
    .await?;
    world.edit_pool(&pool, |pool| pool.spec.subnets = all_subnets());
    Ok((world, pool))
}

/// With the default surge of one, over three zones.
// Rules: H7
#[tokio::test(start_paused = true)]
async fn zones_are_balanced_after_a_rolling_update() -> Result<()> {
    for (seed, replicas) in (0..).zip([2, 3, 4, 5, 6, 7, 3, 3]) {
        let (mut world, pool) = running(Setup::seed(seed), replicas).await?;
        set_image(&world, &pool, NEW_IMAGE);
        let count = usize::try_from(replicas)?;
        world
            .run_until("it is rolled out", TimeDelta::hours(2), |world| {
                is_rolled_out(world, &pool, count, NEW_IMAGE)
            })
            .await?;
        let zones = zones(&world, &pool);
        ensure!(zones[0] <= zones[2] + 1, "{replicas} replicas, seed {seed}: {zones:?}");
    }
    Ok(())
}

/// One at a time, drained, and never fewer available than replicas.
#[tokio::test(start_paused = true)]
async fn zones_out_of_balance_are_balanced_within_the_budget() -> Result<()> {
    let (mut world, pool) = out_of_balance(ZoneRebalancePolicy::Replace).await?;
    let mark = world.mark();
    world.run_for(TimeDelta::minutes(4)).await?;
    ensure!(zones(&world, &pool) == [4, 0, 0], "a scale-out may balance them: {:?}", zones(&world, &pool));
    let end = world.now() + TimeDelta::hours(1);
    while zones(&world, &pool) != [2, 1, 1] || world.instances(&pool).len() != 4 {
        ensure!(world.now() < end, "{:?}", zones(&world, &pool));
        world.run_for(TimeDelta::seconds(5)).await?;
        ensure!(available(&world, &pool) >= 4, "fewer are available than replicas");
        ensure!(world.instances(&pool).len() <= 6, "one surge, and one that is terminating");
    }
    world.run_for(TimeDelta::minutes(30)).await?;
    ensure!(zones(&world, &pool) == [2, 1, 1], "{:?}", zones(&world, &pool));
    ensure!(world.says(&pool, UP_TO_DATE, "True", "UpToDate"));
    let ended = ended_since(&world, mark);
    ensure!(ended.len() == 2, "no more than needed: {ended:?}");
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn zones_out_of_balance_are_kept_by_default() -> Result<()> {
    let (mut world, pool) = out_of_balance(ZoneRebalancePolicy::Ignore).await?;
    world.run_for(TimeDelta::hours(1)).await?;
    ensure!(zones(&world, &pool) == [4, 0, 0], "{:?}", zones(&world, &pool));
    world.finish()
}
