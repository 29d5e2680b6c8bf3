//! What many pools read: while nothing changes, after a restart, and until a killed instance is noticed.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use capasg_simulation::{Pool, Random, Setup, World};
use chrono::TimeDelta;

/// Rules are checked after each action elsewhere, at sizes where that costs little. AWS notices a killed instance as fast
/// as on the real parts.
fn setup(seed: u64) -> Setup {
    let mut setup = Setup { seed, watch: false, invariants: false, meanwhile_percent: 0, ..Setup::default() };
    setup.settings.detect_millis = 1_000;
    setup
}

async fn running_pools(world: &mut World, count: usize, replicas: i32) -> Result<Vec<Pool>> {
    let pools: Vec<Pool> =
        (0..count).map(|number| world.add_pool(&format!("pool-{number:03}"), replicas)).collect();
    settle(world, &pools, replicas).await?;
    Ok(pools)
}

/// Runs until all pools run, looked at seldom: it costs more than the run.
async fn settle(world: &mut World, pools: &[Pool], replicas: i32) -> Result<()> {
    let replicas = usize::try_from(replicas)?;
    for _ in 0..120 {
        if pools.iter().all(|pool| world.is_running(pool, replicas)) {
            return world.run_for(TimeDelta::minutes(3)).await;
        }
        world.run_for(TimeDelta::seconds(30)).await?;
    }
    anyhow::bail!("not all run within an hour")
}

fn counted(world: &World, mark: u64) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for call in world.calls_since(mark, None) {
        *counts.entry(call.action).or_default() += 1;
    }
    counts
}

// Pains: P21, P49
#[tokio::test(start_paused = true)]
async fn a_hundred_pools_make_at_most_36_calls_in_ten_idle_minutes() -> Result<()> {
    let mut world = World::new(setup(1));
    running_pools(&mut world, 100, 2).await?;
    let mark = world.mark();
    world.run_for(TimeDelta::minutes(10)).await?;
    let counts = counted(&world, mark);
    ensure!(counts.values().sum::<usize>() <= 36, "{counts:?}");
    // An hour of them has what is read once an hour.
    let mark = world.mark();
    world.run_for(TimeDelta::minutes(60)).await?;
    let mut counts = counted(&world, mark);
    println!("in an hour: {counts:?}");
    let hooks = counts.remove("DescribeLifecycleHooks").unwrap_or(0);
    ensure!(hooks <= 112, "each pool's hook is read once: {hooks}");
    ensure!(counts.values().sum::<usize>() <= 6 * 42, "{counts:?}");
    Ok(())
}

// Pains: P21
#[tokio::test(start_paused = true)]
async fn a_restart_with_105_pools_reads_less_than_60_times_in_a_minute() -> Result<()> {
    let mut world = World::new(setup(2));
    let pools = running_pools(&mut world, 105, 1).await?;
    // What every pool of kubeadm has: instances of other versions than the group is pinned to.
    for pool in &pools[..80] {
        world.rotate_token(pool);
    }
    world.run_for(TimeDelta::minutes(5)).await?;
    let mark = world.mark();
    world.kill_process();
    world.run_for(TimeDelta::minutes(1)).await?;
    let counts = counted(&world, mark);
    println!("in the first minute after a restart: {counts:?}");
    ensure!(counts.values().sum::<usize>() < 60, "{counts:?}");
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    // A change that follows is carried out with all that it requires.
    let pool = &pools[0];
    world.edit_pool(pool, |own| own.spec.machine.image.id = Some("ami-0b1c2d3e".to_owned()));
    world
        .run_until("the new image runs", TimeDelta::minutes(30), |world| {
            world.instances(pool).iter().all(|one| one.image == "ami-0b1c2d3e") && world.is_running(pool, 1)
        })
        .await
}

// Pains: P32
#[tokio::test(start_paused = true)]
async fn killed_instances_leave_the_list_within_25_seconds() -> Result<()> {
    let mut world = World::new(setup(3));
    let pools = running_pools(&mut world, 8, 3).await?;
    let random = Random::new(3);
    let mut taken = Vec::new();
    for pool in &pools {
        world.run_for(TimeDelta::milliseconds(1_000 + random.below(19_000).cast_signed())).await?;
        let id = world.instances(pool)[0].id.clone();
        let lists = |world: &World| {
            let list = world.pool(pool).map(|own| own.spec.provider_id_list.clone()).unwrap_or_default();
            list.iter().any(|provider_id| provider_id.ends_with(&id))
        };
        ensure!(lists(&world), "{id} is in the list");
        let killed = world.now();
        world.simulator.kill(&world.scope(), &id);
        world.run_until("it left the list", TimeDelta::minutes(2), |world| !lists(world)).await?;
        taken.push((world.now() - killed).num_milliseconds());
    }
    taken.sort_unstable();
    println!("killed instances left the list after {taken:?} ms");
    ensure!(taken.last().is_some_and(|longest| *longest <= 25_000), "{taken:?}");
    Ok(())
}
