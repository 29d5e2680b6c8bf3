//! Pauses and moves in the middle of everything: after any write, in any phase, with both managers running.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use capasg_api::conditions::UP_TO_DATE;
use capasg_fake_aws::{Effect, Fault, Outcome, Service, Tree};
use capasg_simulation::{Moved, Pair, Pool, Setup, World};
use chrono::TimeDelta;

use crate::rollout::{NEW_IMAGE, set_image};
use crate::{SOON, changing_writes, reach, running, some_of};

const END: &str = "TerminateInstanceInAutoScalingGroup";

/// Runs to a condition. If a pause comes in between: nothing happens while it lasts, and afterwards all goes on.
async fn phase(world: &mut World, what: &str, mut done: impl FnMut(&World) -> bool) -> Result<bool> {
    world.run_until(what, SOON, |world| done(world) || world.is_paused()).await?;
    if !world.is_paused() {
        return Ok(false);
    }
    // What was under way when the pause came may still have its effect.
    world.run_for(TimeDelta::seconds(1)).await?;
    let (mark, writes) = (world.mark(), world.journal.len());
    world.run_for(TimeDelta::minutes(3)).await?;
    ensure!(world.mutations_since(mark).is_empty(), "{what}: {:?}", world.mutations_since(mark));
    let quiet = |what: &String| what.contains("status") || what.starts_with("unblocking a move");
    let written: Vec<String> = world.journal.since(writes).into_iter().map(|entry| entry.what).collect();
    ensure!(written.iter().all(quiet), "{what}: {written:?}");
    world.edit_cluster(|cluster| cluster.spec.paused = None);
    world.run_until(what, SOON, done).await?;
    Ok(true)
}

/// Create, scale up, scale in, replace, delete. Answers whether it was paused.
async fn life(world: &mut World) -> Result<bool> {
    world.set_drain_seconds(5);
    let pool = world.add_pool("workers", 2);
    let mut paused = phase(world, "2 running", |world| world.is_running(&pool, 2)).await?;
    world.scale(&pool, 3);
    paused |= phase(world, "3 running", |world| world.is_running(&pool, 3)).await?;
    let (machine, _) = world.machines(&pool).into_iter().next().context("a Machine")?;
    world.delete_machine(&machine);
    let replaced =
        |world: &World| !world.machines(&pool).contains_key(&machine) && world.is_running(&pool, 3);
    paused |= phase(world, "it is replaced", replaced).await?;
    world.scale(&pool, 1);
    paused |= phase(world, "1 running", |world| world.is_running(&pool, 1)).await?;
    world.delete_machine_pool(&pool);
    paused |= phase(world, "everything is gone", |world| world.is_gone(&pool)).await?;
    ensure!(world.simulator.leftovers(None).is_empty(), "left in the cloud\n{}", world.describe());
    world.finish()?;
    Ok(paused)
}

// Rules: F1
#[tokio::test(start_paused = true)]
async fn a_pause_after_any_write_stops_all_and_breaks_nothing() -> Result<()> {
    let mut world = World::new(Setup::seed(3));
    life(&mut world).await?;
    let writes = changing_writes(&world, 0);
    ensure!(writes.len() > 30, "only {} writes: what is looped over?", writes.len());
    for write in some_of(writes, 4) {
        let mut world = World::new(Setup::seed(3));
        world.pause_after(write);
        let paused = life(&mut world).await.with_context(|| format!("pause after write {write}"))?;
        ensure!(paused, "no pause after write {write}");
    }
    Ok(())
}

/// What happens on both sides of a move: between pause and unpause nothing at all, afterwards only what is due.
async fn moved(pair: &mut Pair, pool: &Pool, replicas: usize) -> Result<u64> {
    let Moved { paused, paused_at, unpaused } = pair.clusterctl_move(pool).await?;
    // A reconcile that runs when the pause comes may still end; nothing is sent later.
    let during = pair.source.mutations_since(paused).into_iter().filter(|call| call.sequence <= unpaused);
    let late: Vec<_> = during.filter(|call| call.time - paused_at >= TimeDelta::seconds(1)).collect();
    ensure!(late.is_empty(), "{late:?}");
    let done = |pair: &Pair| pair.target.is_running(pool, replicas);
    pair.run_until(&format!("{replicas} running on the target"), SOON, done).await?;
    pair.run_for(TimeDelta::minutes(3)).await?;
    ensure!(done(pair), "did not stay running\n{}", pair.target.describe());
    ensure!(pair.source.pool(pool).is_none(), "left on the source");
    Ok(paused)
}

/// The ids that calls of either side ended, each once.
fn ended(world: &World) -> Result<BTreeSet<String>> {
    let calls = world.calls_since(0, Some(END)).into_iter();
    let ids: Vec<String> =
        calls.filter(|call| call.outcome == Outcome::Ok).flat_map(|call| call.instances).collect();
    let once: BTreeSet<String> = ids.iter().cloned().collect();
    ensure!(once.len() == ids.len(), "ended twice: {ids:?}");
    Ok(once)
}

// Rules: M2, M4, M8
// Pains: P22, P38
#[tokio::test(start_paused = true)]
async fn moving_a_settled_pool_changes_nothing_in_aws() -> Result<()> {
    for seed in 0..5 {
        let (source, pool) = running(Setup::seed(seed), 3).await?;
        let mut pair = Pair::new(source, seed + 100);
        let paused = moved(&mut pair, &pool, 3).await?;
        ensure!(pair.source.mutations_since(paused).is_empty(), "{:?}", pair.source.mutations_since(paused));
        pair.target.scale(&pool, 1);
        pair.run_until("1 running", SOON, |pair| pair.target.is_running(&pool, 1)).await?;
        ensure!(ended(&pair.target)?.len() == 2, "two went");
        pair.target.finish()?;
    }
    Ok(())
}

/// A move at any moment of a scale-in: those that were chosen go, each once, and nothing else does.
// Rules: M2, M4, M8
#[tokio::test(start_paused = true)]
async fn a_move_during_a_scale_in_keeps_the_chosen_victims() -> Result<()> {
    for seed in 0..24 {
        // Of two ages, which the target cannot tell: who was chosen is in the marks alone.
        let (mut source, pool) = running(Setup::seed(seed), 2).await?;
        source.scale(&pool, 5);
        reach(&mut source, &pool, 5).await?;
        source.set_drain_seconds(20);
        source.scale(&pool, 3);
        let wait = i64::try_from(source.random.below(45_000))?;
        source.run_for(TimeDelta::milliseconds(wait)).await?;
        let marked: BTreeSet<String> = source
            .machines(&pool)
            .into_iter()
            .filter(|(_, machine)| {
                machine.metadata.annotations.iter().flatten().any(|(_, value)| value == "capasg-scale-in")
            })
            .map(|(name, _)| name)
            .collect();
        let mut pair = Pair::new(source, seed + 200);
        pair.target.set_drain_seconds(20);
        moved(&mut pair, &pool, 3).await.with_context(|| format!("seed {seed}, moved after {wait} ms"))?;
        let gone = ended(&pair.target)?;
        ensure!(gone.len() == 2, "seed {seed}: {gone:?} ended");
        let chosen = |machine: &String| gone.iter().any(|id| machine.ends_with(id.as_str()));
        ensure!(marked.iter().all(chosen), "seed {seed}: {marked:?} were chosen, {gone:?} ended");
        let created = pair.target.calls_since(0, Some("CreateAutoScalingGroup")).len();
        ensure!(created == 1 && pair.target.dump().templates.len() == 1, "made anew");
        pair.target.finish()?;
    }
    Ok(())
}

/// The reply to an end is lost, or its effect comes late, and the move begins at once: it is not ended twice, and not
/// asked for again within a minute, also where clusterctl looked before the annotation was there.
// Rules: F5, M8
#[tokio::test(start_paused = true)]
async fn a_move_during_an_unanswered_termination_decrements_once() -> Result<()> {
    let effects =
        [Effect::LoseReply, Effect::LoseRequest, Effect::ApplyLate { after_millis: 9_000 }, Effect::None];
    for (seed, effect) in (0..).zip(effects.iter().cycle()).take(16) {
        let (mut source, pool) = running(Setup::seed(seed), 4).await?;
        source.fault(Fault::new(END, effect.clone()));
        source.scale(&pool, 3);
        source
            .run_until("an end was asked for", SOON, |world| !world.calls_since(0, Some(END)).is_empty())
            .await?;
        let mut pair = Pair::new(source, seed + 300);
        pair.looks_too_early = seed % 8 < 4;
        pair.target.set_drain_seconds(1);
        moved(&mut pair, &pool, 3).await.with_context(|| format!("seed {seed}, {effect:?}"))?;
        ensure!(pair.target.group(&pool).is_some_and(|group| group.desired == 3), "{effect:?}");
        let asked: Vec<_> = pair.target.calls_since(0, Some(END)).into_iter().map(|call| call.time).collect();
        let apart = asked.windows(2).all(|two| two[1] - two[0] >= TimeDelta::seconds(59));
        ensure!(apart, "seed {seed}, {effect:?}: asked for at {asked:?}");
        pair.target.finish()?;
    }
    Ok(())
}

/// An instance that the hook holds is drained and let go on the other side.
// Rules: M4, M8
#[tokio::test(start_paused = true)]
async fn an_instance_held_by_the_hook_is_completed_on_the_target() -> Result<()> {
    for seed in 0..4 {
        let (mut source, pool) = running(Setup::seed(seed), 3).await?;
        source.block_drain("*", true);
        let id = source.in_service(&pool).into_iter().next().context("an instance")?;
        let params = Tree::new()
            .with("InstanceId", &id)
            .with("HealthStatus", "Unhealthy")
            .with("ShouldRespectGracePeriod", false);
        source.aws(Service::AutoScaling, "SetInstanceHealth", params)?;
        let machine = source.machine_of(&pool, &id)?;
        source
            .run_until("it drains, and its successor has joined", SOON, |world| {
                let machines = world.machines(&pool);
                machines.get(&machine).is_some_and(|machine| machine.is_deleting())
                    && machines.values().filter(|machine| machine.is_ready()).count() >= 3
                    && world.in_service(&pool).len() == 3
            })
            .await?;
        let mut pair = Pair::new(source, seed + 400);
        let paused = moved(&mut pair, &pool, 3).await?;
        let answers = pair.target.calls_since(paused, Some("CompleteLifecycleAction"));
        ensure!(answers.len() == 1 && answers[0].instances == [id.clone()], "{answers:?}");
        ensure!(pair.target.calls_since(paused, Some(END)).is_empty(), "it ended others");
        pair.target.finish()?;
    }
    Ok(())
}

/// clusterctl knows no deletions: what was being deleted lives on, and nothing is launched or ended until it is asked for.
// Rules: M2, M8
#[tokio::test(start_paused = true)]
async fn a_pool_moved_during_its_deletion_changes_nothing_on_the_target() -> Result<()> {
    let (mut source, pool) = running(Setup::default(), 2).await?;
    source.block_drain("*", true);
    source.delete_machine_pool(&pool);
    source.run_for(TimeDelta::seconds(20)).await?;
    let before = source.in_service(&pool);
    let mut pair = Pair::new(source, 500);
    let paused = moved(&mut pair, &pool, 2).await?;
    pair.run_for(TimeDelta::minutes(10)).await?;
    ensure!(pair.target.mutations_since(paused).is_empty(), "{:?}", pair.target.mutations_since(paused));
    ensure!(pair.target.in_service(&pool) == before, "others run");
    ensure!(
        pair.target.says(&pool, "ScalingHealthy", "False", "ProcessesSuspended"),
        "{}",
        pair.target.describe()
    );
    pair.target.delete_machine_pool(&pool);
    pair.run_until("everything is gone", SOON, |pair| pair.target.is_gone(&pool)).await?;
    ensure!(pair.target.simulator.leftovers(None).is_empty(), "nothing is left");
    Ok(())
}

/// Back again: the first cluster takes the pool over as the second did.
// Rules: M4
#[tokio::test(start_paused = true)]
async fn a_pool_moves_to_the_target_and_back() -> Result<()> {
    let (source, pool) = running(Setup::default(), 2).await?;
    let mut pair = Pair::new(source, 600);
    let first = moved(&mut pair, &pool, 2).await?;
    std::mem::swap(&mut pair.source, &mut pair.target);
    moved(&mut pair, &pool, 2).await?;
    ensure!(pair.target.mutations_since(first).is_empty(), "{:?}", pair.target.mutations_since(first));
    pair.target.scale(&pool, 3);
    reach(&mut pair.target, &pool, 3).await
}

/// It was moved away, changed there, and comes back in the middle of the rollout: what the first manager remembers of its
/// launch template is an hour old.
// Rules: M4, M8
// Pains: P22
#[tokio::test(start_paused = true)]
async fn a_pool_that_comes_back_during_a_rollout_is_read_anew() -> Result<()> {
    for seed in 0..6 {
        let (source, pool) = running(Setup::seed(seed), 4).await?;
        let mut pair = Pair::new(source, seed + 700);
        moved(&mut pair, &pool, 4).await?;
        pair.target.set_drain_seconds(20);
        set_image(&pair.target, &pool, NEW_IMAGE);
        let made = |pair: &Pair| pair.target.instances(&pool).iter().any(|one| one.image == NEW_IMAGE);
        pair.run_until("the rollout is under way", SOON, made).await?;
        let wait = i64::try_from(pair.target.random.below(90))?;
        pair.run_for(TimeDelta::seconds(wait)).await?;
        std::mem::swap(&mut pair.source, &mut pair.target);
        pair.target.set_drain_seconds(20);
        let Moved { paused, .. } = pair.clusterctl_move(&pool).await?;
        let done = |pair: &Pair| {
            pair.target.is_running(&pool, 4)
                && pair.target.instances(&pool).iter().all(|one| one.image == NEW_IMAGE)
                && pair.target.says(&pool, UP_TO_DATE, "True", "UpToDate")
        };
        pair.run_until("all are replaced", SOON, done).await.with_context(|| format!("seed {seed}"))?;
        let created = pair.target.calls_since(paused, Some("CreateLaunchTemplateVersion"));
        ensure!(created.is_empty(), "seed {seed}: a move makes no version: {created:?}");
        pair.target.finish()?;
    }
    Ok(())
}

/// The manager of the target cannot read the launch template versions: until it can, it does not know what is up to date.
// Rules: M4
#[tokio::test(start_paused = true)]
async fn a_pool_is_not_up_to_date_before_its_versions_are_read() -> Result<()> {
    let (source, pool) = running(Setup::default(), 2).await?;
    let denied = Fault::error("DescribeLaunchTemplateVersions", 403, "UnauthorizedOperation", "no");
    source.fault(denied.times(None));
    let mut pair = Pair::new(source, 800);
    pair.clusterctl_move(&pool).await?;
    let status = |pair: &Pair| pair.target.condition(&pool, UP_TO_DATE).map(|found| found.status);
    let denied = |pair: &Pair| pair.target.says(&pool, "CloudReachable", "False", "AccessDenied");
    pair.run_until("the read is denied", SOON, denied).await?;
    for _ in 0..30 {
        pair.run_for(TimeDelta::seconds(10)).await?;
        let told = pair.target.pool(&pool).and_then(|own| Some(own.status.as_ref()?.up_to_date_replicas));
        ensure!(status(&pair).as_deref() == Some("Unknown") && told == Some(0), "{}", pair.target.describe());
    }
    pair.target.simulator.clear_faults(None);
    let known = |pair: &Pair| status(pair).as_deref() == Some("True");
    pair.run_until("the versions are read", TimeDelta::minutes(20), known).await
}
