//! Nodes that do not join, are lost or are not ready: what a pool reports of them, and when.

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    conditions::{NODES_READY, READY, RECONCILING, SCALING_UP, STALLED},
    pool::Phase,
};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

use crate::{SOON, reach, running, running_with};

/// What is reported follows within this time.
const REPORTED: TimeDelta = TimeDelta::seconds(30);

/// What users and tools read: phase, reason of `NodesReady`, and the statuses of `Ready`, `Reconciling`, `Stalled` and
/// `ScalingUp`.
type Verdict = (Phase, String, [String; 4]);

fn verdict(world: &World, pool: &Pool) -> Result<Verdict> {
    let status =
        |type_: &'static str| -> Result<String> { Ok(world.condition(pool, type_).context(type_)?.status) };
    let own = world.pool(pool).and_then(|own| own.status.clone()).context("a status")?;
    Ok((
        own.phase.context("a phase")?,
        world.condition(pool, NODES_READY).context("NodesReady")?.reason,
        [status(READY)?, status(RECONCILING)?, status(STALLED)?, status(SCALING_UP)?],
    ))
}

fn expected(phase: Phase, reason: &str, statuses: [&str; 4]) -> Verdict {
    (phase, reason.to_owned(), statuses.map(str::to_owned))
}

fn settled() -> Verdict {
    expected(Phase::Running, "NodesReady", ["True", "False", "False", "False"])
}

/// A pool waits for Nodes, and nothing is wrong yet.
fn waiting() -> Verdict {
    expected(Phase::Scaling, "WaitingForNodes", ["True", "True", "False", "True"])
}

/// Nodes have been missing for longer than the timeout.
fn stalled(reason: &str) -> Verdict {
    expected(Phase::Degraded, reason, ["False", "False", "True", "True"])
}

/// The contract holds, whatever the Nodes do: core waits for these fields (B5, B6, B8).
fn is_provisioned(world: &World, pool: &Pool) -> bool {
    let status = world.pool(pool).and_then(|own| own.status.clone()).unwrap_or_default();
    status.ready && status.initialization.provisioned
}

async fn becomes(world: &mut World, pool: &Pool, verdict_of: &Verdict, within: TimeDelta) -> Result<()> {
    world
        .run_until(&format!("{verdict_of:?}"), within, |world| {
            verdict(world, pool).is_ok_and(|found| found == *verdict_of)
        })
        .await
}

// Rules: B8, I4
#[tokio::test(start_paused = true)]
async fn instances_that_never_join_stall_the_pool_after_ten_minutes() -> Result<()> {
    let mut world = World::new(Setup::default());
    world.mute("*", true);
    let pool = world.add_pool_with("workers", 2, |_| {});
    world.run_until("in service", SOON, |world| world.in_service(&pool).len() == 2).await?;
    let served = world.now();
    for (minute, verdict_of) in [(1, waiting()), (5, waiting()), (15, stalled("NodeStartupTimeout"))] {
        let left = served + TimeDelta::minutes(minute) - world.now();
        world.run_for(left).await?;
        let found = verdict(&world, &pool)?;
        ensure!(found == verdict_of, "after {minute} min: {found:?}\n{}", world.describe());
        ensure!(is_provisioned(&world, &pool), "after {minute} min");
        let published = world.events("NodesNotReady").len();
        ensure!(published == usize::from(verdict_of != waiting()), "after {minute} min: {published} events");
    }
    let told = world.condition(&pool, NODES_READY).context("NodesReady")?;
    for id in world.in_service(&pool) {
        ensure!(told.message.contains(&id), "{}", told.message);
    }
    // Another process reports the same, and writes nothing.
    let writes = world.journal.len();
    world.kill_process();
    world.run_for(TimeDelta::minutes(3)).await?;
    ensure!(verdict(&world, &pool)? == stalled("NodeStartupTimeout"));
    ensure!(world.journal.since(writes).iter().all(|entry| !entry.changed), "{}", world.describe());
    ensure!(world.events("NodesNotReady").len() == 1, "{:?}", world.events("NodesNotReady"));
    world.mute("*", false);
    becomes(&mut world, &pool, &settled(), TimeDelta::minutes(3)).await?;
    world.finish()
}

/// The bootstrap of each instance fails and shuts it down, so that none of them waits for as long as the timeout.
#[tokio::test(start_paused = true)]
async fn instances_that_terminate_before_their_nodes_join_stall_the_pool() -> Result<()> {
    let mut world = World::new(Setup::default());
    world.mute("*", true);
    let pool = world.add_pool("workers", 2);
    world.run_until("in service", SOON, |world| world.in_service(&pool).len() == 2).await?;
    let served = world.now();
    for _ in 0..4 {
        world.run_for(TimeDelta::minutes(3)).await?;
        let before = world.in_service(&pool);
        for id in &before {
            ensure!(world.simulator.kill(&world.scope(), id), "{id} runs");
        }
        let is_replaced = |world: &World| {
            let now = world.in_service(&pool);
            now.len() == 2 && now.is_disjoint(&before)
        };
        world.run_until("they are replaced", SOON, is_replaced).await?;
        let (took, found) = (world.now() - served, verdict(&world, &pool)?);
        if took < TimeDelta::minutes(9) {
            ensure!(found == waiting(), "after {took}: {found:?}\n{}", world.describe());
        } else if took > TimeDelta::minutes(11) {
            ensure!(found == stalled("NodeStartupTimeout"), "after {took}: {found:?}\n{}", world.describe());
        }
    }
    let told = world.condition(&pool, NODES_READY).context("NodesReady")?.message;
    ensure!(told.starts_with("Instances terminate before their Nodes are ready"), "{told}");
    ensure!(told.contains("describe-scaling-activities"), "{told}");
    // Another process continues with it, and publishes it no more.
    world.kill_process();
    let mut recovered = false;
    let end = world.now() + TimeDelta::minutes(3);
    world
        .run_until("another process reports", SOON, |world| {
            recovered |= verdict(world, &pool).is_ok_and(|found| found != stalled("NodeStartupTimeout"));
            world.now() >= end
        })
        .await?;
    ensure!(!recovered, "{}", world.describe());
    ensure!(world.events("NodesNotReady").len() == 1, "{:?}", world.events("NodesNotReady"));
    world.mute("*", false);
    becomes(&mut world, &pool, &settled(), TimeDelta::minutes(3)).await?;
    world.finish()
}

/// Not with the next event or resync: nothing else happens to the pool.
#[tokio::test(start_paused = true)]
async fn the_timeout_is_reported_when_it_passes() -> Result<()> {
    for restart in [false, true] {
        let mut world = World::new(Setup::default());
        world.mute("*", true);
        let pool = world.add_pool("workers", 1);
        world.run_until("in service", SOON, |world| world.in_service(&pool).len() == 1).await?;
        let served = world.now();
        if restart {
            world.run_for(TimeDelta::minutes(7)).await?;
            world.kill_process();
        }
        becomes(&mut world, &pool, &stalled("NodeStartupTimeout"), TimeDelta::minutes(11)).await?;
        let took = world.now() - served;
        // An instance is launched before it is in service, and its Machine is created after.
        ensure!((took - TimeDelta::minutes(10)).abs() < TimeDelta::seconds(60), "{took}");
        world.finish()?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_deleted_node_makes_an_instance_that_lost_its_node() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    ensure!(verdict(&world, &pool)? == settled(), "{:?}", verdict(&world, &pool)?);
    let id = world.in_service(&pool).into_iter().next().context("an instance")?;
    world.delete_node(&id);
    becomes(&mut world, &pool, &waiting(), REPORTED).await?;
    world.run_for(TimeDelta::minutes(9)).await?;
    ensure!(verdict(&world, &pool)? == waiting());
    becomes(&mut world, &pool, &stalled("NodeDeleted"), TimeDelta::minutes(2)).await?;
    let told = world.condition(&pool, NODES_READY).context("NodesReady")?;
    ensure!(told.message.contains(&id) && told.message.contains("1 of 3"), "{}", told.message);
    ensure!(world.events("NodesNotReady").iter().all(|note| note.contains(&id)));
    ensure!(world.events("NodesNotReady").len() == 1);
    // A user deletes the Machine, as the message says.
    let machine = world.machine_of(&pool, &id)?;
    world.delete_machine(&machine);
    reach(&mut world, &pool, 3).await?;
    ensure!(verdict(&world, &pool)? == settled(), "{}", world.describe());
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn half_of_the_nodes_not_ready_is_neither_running_nor_lost() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 4).await?;
    let half: Vec<String> = world.in_service(&pool).into_iter().take(2).collect();
    for id in &half {
        world.kubelet_down(id, true);
    }
    becomes(&mut world, &pool, &waiting(), REPORTED).await?;
    becomes(&mut world, &pool, &stalled("NodeNotReady"), TimeDelta::minutes(11)).await?;
    for id in &half {
        world.kubelet_down(id, false);
    }
    becomes(&mut world, &pool, &settled(), REPORTED).await?;
    world.finish()
}

/// It never reaches the timeout, and never stays `Running` while it is not ready.
#[tokio::test(start_paused = true)]
async fn a_node_that_flaps_stalls_nothing() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let id = world.in_service(&pool).into_iter().next().context("an instance")?;
    for _ in 0..5 {
        world.kubelet_down(&id, true);
        becomes(&mut world, &pool, &waiting(), REPORTED).await?;
        world.run_for(TimeDelta::minutes(4)).await?;
        world.kubelet_down(&id, false);
        becomes(&mut world, &pool, &settled(), REPORTED).await?;
    }
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_workload_cluster_is_unknown_and_never_lost() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.workload_unreachable(true);
    let unknown = expected(Phase::Unknown, "NodesReadyUnknown", ["True", "True", "False", "Unknown"]);
    becomes(&mut world, &pool, &unknown, REPORTED).await?;
    world.run_for(TimeDelta::minutes(30)).await?;
    ensure!(verdict(&world, &pool)? == unknown, "{}", world.describe());
    world.workload_unreachable(false);
    becomes(&mut world, &pool, &settled(), REPORTED).await?;
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn zero_disables_the_timeout_and_another_value_applies_in_place() -> Result<()> {
    let mut world = World::new(Setup::default());
    world.mute("*", true);
    let pool = world.add_pool_with("workers", 1, |spec| spec.node_startup_timeout_seconds = Some(0));
    world.run_until("in service", SOON, |world| world.in_service(&pool).len() == 1).await?;
    world.run_for(TimeDelta::hours(2)).await?;
    ensure!(verdict(&world, &pool)? == waiting(), "{}", world.describe());
    world.edit_pool(&pool, |pool| pool.spec.node_startup_timeout_seconds = Some(30));
    becomes(&mut world, &pool, &stalled("NodeStartupTimeout"), REPORTED).await?;
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_scaled_to_nothing_or_paused_waits_for_no_node() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.mute("*", true);
    world.scale(&pool, 3);
    becomes(&mut world, &pool, &stalled("NodeStartupTimeout"), TimeDelta::minutes(15)).await?;
    world.edit_cluster(|cluster| cluster.spec.paused = Some(true));
    let paused = |world: &World| {
        verdict(world, &pool).is_ok_and(|(phase, _, [_, reconciling, stalled, _])| {
            phase == Phase::Paused && reconciling == "False" && stalled == "False"
        })
    };
    world.run_until("paused", REPORTED, paused).await?;
    world.edit_cluster(|cluster| cluster.spec.paused = Some(false));
    becomes(&mut world, &pool, &stalled("NodeStartupTimeout"), TimeDelta::minutes(2)).await?;
    world.scale(&pool, 0);
    reach(&mut world, &pool, 0).await?;
    ensure!(verdict(&world, &pool)? == settled(), "{}", world.describe());
    world.finish()
}

/// A fix is rolled out: what it replaces must not fail the tools that wait for it.
#[tokio::test(start_paused = true)]
async fn a_rollout_that_replaces_what_never_joined_is_progress() -> Result<()> {
    let mut world = World::new(Setup::default());
    world.mute("*", true);
    let pool = world.add_pool("workers", 2);
    becomes(&mut world, &pool, &stalled("NodeStartupTimeout"), TimeDelta::minutes(15)).await?;
    world.mute("*", false);
    for id in world.in_service(&pool) {
        world.mute(&id, true);
    }
    world.edit_pool(&pool, |pool| pool.spec.machine.image.id = Some("ami-0b1c2d3e".to_owned()));
    let is_stalled = |world: &World| verdict(world, &pool).is_ok_and(|found| found.2[2] == "True");
    world.run_until("progress", REPORTED, |world| !is_stalled(world)).await?;
    let mut failed = false;
    world
        .run_until("it runs", TimeDelta::minutes(30), |world| {
            failed |= is_stalled(world);
            verdict(world, &pool).is_ok_and(|found| found == settled())
        })
        .await?;
    ensure!(!failed, "stalled meanwhile\n{}", world.describe());
    world.finish()
}

/// The new instances are those that do not join: this is reported before the progress deadline of the rollout.
#[tokio::test(start_paused = true)]
async fn a_rollout_whose_new_instances_do_not_join_stalls() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, |_| {}).await?;
    world.mute("*", true);
    world.edit_pool(&pool, |pool| pool.spec.machine.image.id = Some("ami-0b1c2d3e".to_owned()));
    let is_stalled = |world: &World| {
        world.says(&pool, NODES_READY, "False", "NodeStartupTimeout")
            && world.says(&pool, STALLED, "True", "Stalled")
    };
    world.run_until("it stalls", TimeDelta::minutes(15), is_stalled).await?;
    // The old ones serve: as many nodes are ready as are desired.
    ensure!(world.says(&pool, SCALING_UP, "False", "NotScalingUp"), "{}", world.describe());
    ensure!(world.says(&pool, READY, "False", "NotReady"));
    world.finish()
}
