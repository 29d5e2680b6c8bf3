//! Scale-ins of many: the right ones go, each once, whatever comes in between.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use capasg_api::names::{annotations, machine_name};
use capasg_fake_aws::{Effect, Fault, Service};
use capasg_simulation::{Drain, Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt;

use crate::{SOON, ended_since, reach, running};

const END: &str = "TerminateInstanceInAutoScalingGroup";

fn leaving(world: &World, pool: &Pool) -> BTreeSet<String> {
    let machines = world.machines(pool).into_iter();
    machines.filter(|(_, machine)| machine.is_deleting()).map(|(name, _)| name).collect()
}

fn marked(world: &World, pool: &Pool) -> usize {
    world.machines(pool).values().filter(|machine| machine.has_delete_annotation()).count()
}

fn names(ids: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    ids.into_iter().map(|id| machine_name("workers", &id)).collect()
}

/// 20 shrink to 8 while calls fail: each victim ends drained and shrinks the pool once.
async fn shrinks_through(seed: u64, faults: impl FnOnce(&World)) -> Result<()> {
    let (mut world, pool) = running(Setup::seed(seed), 20).await?;
    let (mark, before) = (world.mark(), world.in_service(&pool));
    faults(&world);
    world.scale(&pool, 8);
    reach(&mut world, &pool, 8).await?;
    let gone: BTreeSet<String> = before.difference(&world.in_service(&pool)).cloned().collect();
    ensure!(gone.len() == 12, "{} went, and others came (seed {seed})", gone.len());
    ensure!(world.group(&pool).context("the group")?.desired == 8, "the pool shrank once for each");
    for id in &gone {
        let drains = world.drains(&machine_name("workers", id));
        ensure!(matches!(drains[..], [Drain::Done(_)]), "{id}: {drains:?} (seed {seed})");
    }
    let ended: BTreeSet<String> = ended_since(&world, mark).into_iter().map(|(id, _)| id).collect();
    ensure!(ended.is_subset(&gone), "{ended:?} (seed {seed})");
    world.finish()
}

// Pains: P16, W11
#[tokio::test(start_paused = true)]
async fn a_batch_whose_reply_is_lost_decrements_once() -> Result<()> {
    for seed in 0..5 {
        shrinks_through(seed, |world| world.fault(Fault::new(END, Effect::LoseReply))).await?;
    }
    Ok(())
}

// Pains: P16, W11
#[tokio::test(start_paused = true)]
async fn a_batch_whose_request_is_lost_is_repeated() -> Result<()> {
    for seed in 0..5 {
        shrinks_through(seed, |world| world.fault(Fault::new(END, Effect::LoseRequest))).await?;
    }
    Ok(())
}

// Pains: P16, W11
#[tokio::test(start_paused = true)]
async fn throttling_only_delays_a_scale_in() -> Result<()> {
    for seed in 0..5 {
        shrinks_through(seed, |world| {
            let throttled = |action| Fault::error(action, 400, "Throttling", "Rate exceeded");
            world.fault(throttled(END).times(Some(2)));
            world.fault(throttled("CompleteLifecycleAction").after(5).times(Some(4)));
            world.fault(throttled("DescribeAutoScalingGroups").after(3).times(Some(2)));
        })
        .await?;
    }
    Ok(())
}

/// A batch is refused whole: after that each goes alone, so that the odd one holds nobody up.
// Pains: P16, W11
#[tokio::test(start_paused = true)]
async fn a_batch_with_a_rejected_instance_is_split() -> Result<()> {
    let absent = "Instance Id not found - No managed instance found for instance ID: i-0";
    for (seed, words) in [(0, absent), (1, absent), (2, "Instances are odd"), (3, "Instances are odd")] {
        shrinks_through(seed, |world| world.fault(Fault::error(END, 400, "ValidationError", words))).await?;
    }
    Ok(())
}

/// Victims that fail while they are drained are still the ones that go. AWS puts another in the place of the one that it
/// ends itself, so that one more than chosen may go for it, never more.
// Pains: P16, W11
#[tokio::test(start_paused = true)]
async fn victims_that_become_unhealthy_stay_the_victims() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 9).await?;
        world.set_drain_seconds(120);
        let before = world.in_service(&pool);
        world.scale(&pool, 6);
        world.run_until("three leave", SOON, |world| leaving(world, &pool).len() == 3).await?;
        let victims = leaving(&world, &pool);
        let sick = victims.first().context("a victim")?.clone();
        world.mark_unhealthy(&sick);
        let other = victims.last().context("another")?.clone();
        let id = other.rsplit_once("i-").map(|(_, id)| format!("i-{id}")).unwrap_or_default();
        if seed % 2 == 0 {
            let params = capasg_fake_aws::Tree::new()
                .with("InstanceId", id)
                .with("HealthStatus", "Unhealthy")
                .with("ShouldRespectGracePeriod", false);
            world.aws(Service::AutoScaling, "SetInstanceHealth", params)?;
        } else {
            world.simulator.kill(&world.scope(), &id);
        }
        reach(&mut world, &pool, 6).await?;
        let after = world.in_service(&pool);
        let gone = names(before.difference(&after).cloned());
        ensure!(gone.is_superset(&victims), "{gone:?} without all of {victims:?} (seed {seed})");
        ensure!(gone.len() <= victims.len() + 1, "{gone:?} instead of {victims:?} (seed {seed})");
        ensure!(world.group(&pool).context("the group")?.desired == 6, "as asked");
        world.finish()?;
    }
    Ok(())
}

/// The process dies between marks and deletions, and replicas rise again: the marks go, and nobody else.
// Pains: P16, P45
#[tokio::test(start_paused = true)]
async fn victims_not_deleted_yet_are_released_when_replicas_rise() -> Result<()> {
    let mut seen = 0;
    for seed in 0..20 {
        let (mut world, pool) = running(Setup::seed(seed), 10).await?;
        let (mark, before) = (world.mark(), world.in_service(&pool));
        let writes = usize::try_from(world.random.below(4))?;
        world.crash_after(2 + writes);
        world.scale(&pool, 4);
        world.run_until("some are marked", SOON, |world| marked(world, &pool) > 0).await?;
        let begun = leaving(&world, &pool).len();
        seen += usize::from(begun == 0);
        world.scale(&pool, 10);
        reach(&mut world, &pool, 10).await?;
        let ended = ended_since(&world, mark);
        ensure!(ended.iter().all(|(_, shrinks)| !shrinks), "nothing shrank: {ended:?} (seed {seed})");
        ensure!(marked(&world, &pool) == 0, "no mark is left (seed {seed})");
        if ended.is_empty() {
            ensure!(world.in_service(&pool) == before, "the same run (seed {seed})");
        }
        world.finish()?;
    }
    ensure!(seen > 0, "in no run were there marks without deletions");
    Ok(())
}

/// Replicas rise to a number in between while drains run: those that drain go and are replaced as far as wanted, nobody
/// else is chosen.
// Pains: P16, W11
#[tokio::test(start_paused = true)]
async fn only_draining_victims_are_terminated_after_replicas_rise() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 20).await?;
        world.set_drain_seconds(120);
        let (mark, before) = (world.mark(), world.in_service(&pool));
        world.scale(&pool, 10);
        world.run_until("ten leave", SOON, |world| leaving(world, &pool).len() == 10).await?;
        let victims = leaving(&world, &pool);
        world.scale(&pool, 16);
        reach(&mut world, &pool, 16).await?;
        let gone = names(before.difference(&world.in_service(&pool)).cloned());
        ensure!(gone == victims, "{gone:?} instead of {victims:?} (seed {seed})");
        let ended = ended_since(&world, mark);
        let shrunk = ended.iter().filter(|(_, shrinks)| *shrinks).count();
        ensure!((ended.len(), shrunk) == (10, 4), "{ended:?} (seed {seed})");
        world.finish()?;
    }
    Ok(())
}

/// The Cluster Autoscaler marks a Machine and lowers replicas by one, again and again without waiting.
// Pains: P45
#[tokio::test(start_paused = true)]
async fn annotated_machines_are_the_victims_of_quick_single_steps() -> Result<()> {
    for seed in 0..10 {
        let (mut world, pool) = running(Setup::seed(seed), 12).await?;
        world.set_drain_seconds(60);
        let (mark, all) = (world.mark(), world.in_service(&pool));
        let unwanted: Vec<String> = all.iter().rev().take(6).cloned().collect();
        for (done, id) in unwanted.iter().enumerate() {
            let machine = world.machine_of(&pool, id)?;
            world.edit_machine(&machine, |machine| {
                machine.annotations_mut().insert(annotations::DELETE_MACHINE.to_owned(), "now".to_owned());
            });
            world.scale(&pool, 11 - i32::try_from(done)?);
            let pause = i64::try_from(world.random.below(5_000))?;
            world.run_for(TimeDelta::milliseconds(pause)).await?;
        }
        reach(&mut world, &pool, 6).await?;
        let ended: BTreeSet<String> = ended_since(&world, mark).into_iter().map(|(id, _)| id).collect();
        ensure!(ended == unwanted.iter().cloned().collect(), "{ended:?} (seed {seed})");
        world.finish()?;
    }
    Ok(())
}
