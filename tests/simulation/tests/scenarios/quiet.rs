//! A settled pool costs nothing: no writes, and reads that are shared.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

use crate::{SOON, running};

/// Issue item 3: no resourceVersion changes, no mutation, at most one read a poll.
// Rules: I4
// Pains: P2, P21
#[tokio::test(start_paused = true)]
async fn a_running_pool_writes_nothing_and_reads_once_per_poll() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        // What is read again once, some time after the last change.
        world.run_for(TimeDelta::minutes(3)).await?;
        let (mark, writes, versions) = (world.mark(), world.journal.len(), world.api.versions());
        world.run_for(TimeDelta::minutes(30)).await?;
        let writes = world.journal.since(writes);
        ensure!(writes.is_empty(), "{writes:?}");
        ensure!(world.api.versions() == versions, "a resourceVersion changed");
        let mut by_action: BTreeMap<String, usize> = BTreeMap::new();
        for call in world.calls_since(mark, None) {
            *by_action.entry(call.action).or_default() += 1;
        }
        let polls = by_action.remove("DescribeAutoScalingGroups").unwrap_or(0);
        ensure!((99..=101).contains(&polls), "{polls} polls in 30 minutes");
        // Look-ups by id are believed for 10 minutes.
        let others: usize = by_action.values().sum();
        ensure!(others <= 6, "{by_action:?}");
        ensure!(world.is_running(&pool, 3), "it runs");
    }
    Ok(())
}

/// A poll is a call for each hundred pools.
// Pains: P21, P49
#[tokio::test(start_paused = true)]
async fn a_poll_of_101_pools_is_two_calls() -> Result<()> {
    let mut world = World::new(Setup { watch: false, meanwhile_percent: 0, ..Setup::default() });
    let pools: Vec<_> = (0..101).map(|number| world.add_pool(&format!("pool-{number:03}"), 1)).collect();
    let ready = |world: &World| {
        let ready =
            |pool: &Pool| world.pool(pool).is_some_and(|pool| pool.status.as_ref().is_some_and(|s| s.ready));
        pools.iter().all(ready) && world.dump().instances.len() == pools.len()
    };
    // Looked at seldom: it costs more than the run.
    for _ in 0..60 {
        if ready(&world) {
            break;
        }
        world.run_for(TimeDelta::seconds(30)).await?;
    }
    ensure!(ready(&world), "not all are ready");
    world.run_for(TimeDelta::minutes(5)).await?;
    let (mark, writes) = (world.mark(), world.journal.len());
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(world.journal.since(writes).is_empty(), "{:?}", world.journal.since(writes));
    let calls = world.calls_since(mark, Some("DescribeAutoScalingGroups"));
    ensure!((32..=36).contains(&calls.len()), "{} calls for 17 polls", calls.len());
    let others = world.calls_since(mark, None).len() - calls.len();
    ensure!(others <= 10, "{others} other calls");
    for pool in pools.iter().take(5) {
        world.run_until("it runs", SOON, |world| world.is_running(pool, 1)).await?;
    }
    Ok(())
}

/// A new process that finds everything in order writes nothing either.
// Rules: M4
#[tokio::test(start_paused = true)]
async fn the_next_leader_writes_nothing() -> Result<()> {
    for seed in 0..5 {
        let (mut world, _) = running(Setup::seed(seed), 3).await?;
        let writes = world.journal.len();
        world.kill_process();
        world.run_for(TimeDelta::minutes(10)).await?;
        let made: Vec<_> = world.journal.since(writes).into_iter().filter(|entry| entry.changed).collect();
        ensure!(made.is_empty(), "{made:?}");
    }
    Ok(())
}
