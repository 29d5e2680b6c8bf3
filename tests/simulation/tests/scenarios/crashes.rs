//! The process dies after every single write of a pool's life, and another takes over (issue item 5).

use anyhow::{Context, Result, ensure};
use capasg_simulation::{Pool, Setup, World};

use crate::{SOON, changing_writes, some_of};

/// Create, scale up, scale in with drains, replace, delete.
async fn life(world: &mut World) -> Result<()> {
    world.set_drain_seconds(5);
    let pool = world.add_pool("workers", 2);
    settle(world, &pool, 2).await?;
    world.scale(&pool, 3);
    settle(world, &pool, 3).await?;
    let (machine, _) = world.machines(&pool).into_iter().next().context("a Machine")?;
    world.delete_machine(&machine);
    world
        .run_until("it is replaced", SOON, |world| {
            !world.machines(&pool).contains_key(&machine) && world.is_running(&pool, 3)
        })
        .await?;
    world.scale(&pool, 1);
    settle(world, &pool, 1).await?;
    let dump = world.dump();
    ensure!(dump.groups.len() == 1, "one group, not {:?}", dump.groups);
    ensure!(dump.templates.len() == 1, "one template, not {:?}", dump.templates);
    world.delete_machine_pool(&pool);
    world.run_until("everything is gone", SOON, |world| world.is_gone(&pool)).await?;
    let left = world.simulator.leftovers(None);
    ensure!(left.is_empty(), "left in the cloud: {left:?}\n{}", world.describe());
    world.finish()
}

async fn settle(world: &mut World, pool: &Pool, replicas: usize) -> Result<()> {
    world.run_until(&format!("{replicas} running"), SOON, |world| world.is_running(pool, replicas)).await
}

async fn crash_after_writes(seed: u64, every: usize) -> Result<()> {
    let mut world = World::new(Setup::seed(seed));
    life(&mut world).await?;
    let writes = changing_writes(&world, 0);
    ensure!(writes.len() > 30, "only {} writes: what is looped over?", writes.len());
    for write in some_of(writes, every) {
        let mut world = World::new(Setup::seed(seed));
        world.crash_after(write);
        life(&mut world).await.with_context(|| format!("crash after write {write}, seed {seed}"))?;
        ensure!(world.restarts == 1, "it crashed {} times", world.restarts);
    }
    Ok(())
}

// Rules: D5
#[tokio::test(start_paused = true)]
async fn a_pool_survives_a_crash_after_any_write() -> Result<()> {
    crash_after_writes(1, 2).await
}

#[tokio::test(start_paused = true)]
async fn a_pool_survives_a_crash_after_any_write_with_another_seed() -> Result<()> {
    crash_after_writes(2, 4).await
}

/// Each process dies after a few writes, from the first to the last. Two ends that come due together take three: both
/// marks and the call.
#[tokio::test(start_paused = true)]
async fn a_process_that_crashes_every_few_writes_converges() -> Result<()> {
    for seed in 0..6 {
        let mut world = World::new(Setup::seed(seed));
        world.crash_every(3 + usize::try_from(seed)?);
        life(&mut world).await.with_context(|| format!("seed {seed}"))?;
        ensure!(world.restarts > 5, "only {} crashes", world.restarts);
    }
    Ok(())
}

/// A process dies with a write in flight, which arrives after the next one has made the group.
// Rules: B5
#[tokio::test(start_paused = true)]
async fn a_status_that_arrives_late_does_not_take_ready_back() -> Result<()> {
    for count in 0..12 {
        let mut world = World::new(Setup::default());
        world.land_late(count, 17_000);
        let pool = world.add_pool("workers", 2);
        settle(&mut world, &pool, 2).await.with_context(|| format!("after {count} calls"))?;
        ensure!(world.restarts == 1, "it crashed {} times after {count} calls", world.restarts);
        world.finish().with_context(|| format!("after {count} calls"))?;
    }
    Ok(())
}
