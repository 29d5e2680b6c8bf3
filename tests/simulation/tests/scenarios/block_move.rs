//! `clusterctl move` is held back while an end is in flight, and no longer.

use anyhow::{Context, Result, ensure};
use capasg_api::names::annotations;
use capasg_fake_aws::{Effect, Fault};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt;

use crate::{SOON, reach, running};

const END: &str = "TerminateInstanceInAutoScalingGroup";
const HELD: &str = "blocking a move";
const LET_GO: &str = "unblocking a move";

fn held(world: &World, pool: &Pool) -> bool {
    world.pool(pool).is_some_and(|pool| pool.annotations().contains_key(annotations::BLOCK_MOVE))
}

fn pause(world: &World, paused: bool) {
    world.edit_cluster(|cluster| cluster.spec.paused = Some(paused));
}

/// Where writes whose words begin so stand in the journal.
fn places(world: &World, what: &str) -> Vec<usize> {
    let entries = world.journal.since(0).into_iter().enumerate();
    entries.filter(|(_, entry)| entry.changed && entry.what.starts_with(what)).map(|(at, _)| at).collect()
}

/// The writes that these tests are about, with their times.
fn story(world: &World) -> String {
    let told = [HELD, LET_GO, "recording the termination", END];
    let entries =
        world.journal.since(0).into_iter().filter(|one| told.iter().any(|what| one.what.starts_with(what)));
    let lines: Vec<String> = entries.map(|one| format!("{} {} {}", one.at, one.what, one.changed)).collect();
    lines.join("\n")
}

/// Set before the mark of the first end, gone after the last: two writes a scale-in, however many ends it has.
// Rules: F5
#[tokio::test(start_paused = true)]
async fn block_move_lasts_from_before_a_termination_until_it_is_observed() -> Result<()> {
    for seed in 0..8 {
        let (mut world, pool) = running(Setup::seed(seed), 4).await?;
        ensure!(places(&world, HELD).is_empty(), "nothing has ended yet");
        world.scale(&pool, 2);
        reach(&mut world, &pool, 2).await?;
        let (held_at, let_go) = (places(&world, HELD), places(&world, LET_GO));
        let (marks, ends) = (places(&world, "recording the termination"), places(&world, END));
        ensure!(!ends.is_empty() && held_at.len() == let_go.len(), "{held_at:?} {let_go:?} {ends:?}");
        ensure!(held_at.len() <= ends.len(), "seed {seed}: more writes than ends: {}", story(&world));
        for at in marks.iter().chain(&ends) {
            let within = held_at.iter().zip(&let_go).any(|(from, to)| from < at && at < to);
            ensure!(within, "seed {seed}: a write at {at} is outside of {held_at:?} to {let_go:?}");
        }
        ensure!(!held(&world, &pool), "let go");
        world.finish()?;
    }
    Ok(())
}

/// clusterctl pauses the Cluster and then waits: the annotation goes although all else stands still.
// Rules: F5
#[tokio::test(start_paused = true)]
async fn a_paused_pool_removes_block_move_once_the_termination_is_observed() -> Result<()> {
    let effects =
        [Effect::None, Effect::LoseReply, Effect::LoseRequest, Effect::ApplyLate { after_millis: 8_000 }];
    for (seed, effect) in (0..).zip(effects.iter().cycle()).take(12) {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        world.fault(Fault::new(END, effect.clone()));
        world.scale(&pool, 2);
        world.run_until("an end is in flight", SOON, |world| held(world, &pool)).await?;
        let asked = world.now();
        pause(&world, true);
        // A reconcile that runs when the pause comes may still end.
        world.run_for(TimeDelta::seconds(1)).await?;
        let (mark, writes) = (world.mark(), world.journal.len());
        world.run_until("a move may go on", TimeDelta::minutes(2), |world| !held(world, &pool)).await?;
        ensure!(world.now() - asked <= TimeDelta::seconds(61), "after {}", world.now() - asked);
        world.run_for(TimeDelta::minutes(5)).await?;
        ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
        let others: Vec<String> = world.journal.since(writes).into_iter().map(|entry| entry.what).collect();
        ensure!(
            others.iter().all(|what| what.starts_with(LET_GO) || what.contains("status")),
            "seed {seed}: {others:?}"
        );
        pause(&world, false);
        reach(&mut world, &pool, 2).await?;
        world.finish()?;
    }
    Ok(())
}

/// AWS does not answer: a move waits for a minute at most, and asks for nothing.
// Rules: F5
#[tokio::test(start_paused = true)]
async fn block_move_lasts_at_most_a_minute_while_aws_is_unreachable() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    world.scale(&pool, 2);
    world.run_until("an end is in flight", SOON, |world| held(world, &pool)).await?;
    world.fault(Fault::error("*", 503, "ServiceUnavailable", "Service is unavailable").times(None));
    pause(&world, true);
    let paused = world.now();
    world.run_until("a move may go on", TimeDelta::minutes(3), |world| !held(world, &pool)).await?;
    ensure!(world.now() - paused <= TimeDelta::seconds(61), "after {}", world.now() - paused);
    ensure!(world.machines(&pool).len() >= 2, "nothing was given up");
    Ok(())
}

/// The process dies after any write of a scale-in, and the Cluster is paused: its successor lets the move go on.
// Rules: F5
#[tokio::test(start_paused = true)]
async fn the_next_leader_removes_block_move() -> Result<()> {
    let (mut seen, mut died) = (0, 0);
    for write in 1..=14 {
        let (mut world, pool) = running(Setup::seed(7), 3).await?;
        let restarts = world.restarts;
        world.crash_after(write);
        world.scale(&pool, 2);
        world
            .run_until("the process died", TimeDelta::minutes(5), |world| world.restarts > restarts)
            .await
            .ok();
        died += world.restarts - restarts;
        seen += usize::from(held(&world, &pool));
        pause(&world, true);
        world.run_for(TimeDelta::seconds(1)).await?;
        let mark = world.mark();
        world.run_for(TimeDelta::seconds(65)).await?;
        ensure!(!held(&world, &pool), "write {write}: it is held back\n{}", world.describe());
        ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
        pause(&world, false);
        reach(&mut world, &pool, 2).await.with_context(|| format!("write {write}"))?;
        world.finish()?;
    }
    ensure!(died > 8 && seen >= 2, "{died} deaths, {seen} with an end in flight: what was tried?");
    Ok(())
}

/// What somebody else put there stays.
// Rules: F5
#[tokio::test(start_paused = true)]
async fn the_block_move_annotation_of_another_actor_is_kept() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    world.edit_pool(&pool, |pool| {
        pool.annotations_mut().insert(annotations::BLOCK_MOVE.to_owned(), "backup".to_owned());
    });
    world.scale(&pool, 2);
    reach(&mut world, &pool, 2).await?;
    pause(&world, true);
    world.run_for(TimeDelta::minutes(5)).await?;
    let value = world.pool(&pool).and_then(|pool| pool.annotations().get(annotations::BLOCK_MOVE).cloned());
    ensure!(value.as_deref() == Some("backup"), "{value:?}");
    ensure!(places(&world, HELD).is_empty() && places(&world, LET_GO).is_empty(), "it was written");
    world.finish()
}
