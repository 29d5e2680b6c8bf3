//! A pool's way to `Running`, and up and down from there.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use capasg_api::{names::annotations, pool::ScaleInOrder};
use capasg_simulation::{Drain, Kind, Lag, Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt;

use crate::{SOON, ended_since, reach, running, running_with};

// Rules: B12
#[tokio::test(start_paused = true)]
async fn a_pool_becomes_running_and_scales_out() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let mark = world.mark();
    world.scale(&pool, 5);
    reach(&mut world, &pool, 5).await?;
    let writes: Vec<String> = world.mutations_since(mark).into_iter().map(|call| call.action).collect();
    ensure!(writes.len() == 1, "one call grows a pool, not {writes:?}");
    world.finish()
}

// Rules: B12
#[tokio::test(start_paused = true)]
async fn an_empty_pool_scales_out_and_back_to_zero() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 0).await?;
    world.scale(&pool, 2);
    reach(&mut world, &pool, 2).await?;
    world.scale(&pool, 0);
    reach(&mut world, &pool, 0).await?;
    world.finish()
}

/// Annotated first, then the one that never joined.
// Rules: D8
// Pains: P45, W11
#[tokio::test(start_paused = true)]
async fn victims_are_the_annotated_then_those_that_never_joined() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 4).await?;
        let annotated = world.in_service(&pool).into_iter().next_back().context("an instance")?;
        let machine = world.machine_of(&pool, &annotated)?;
        world.edit_machine(&machine, |machine| {
            machine.annotations_mut().insert(annotations::DELETE_MACHINE.to_owned(), "yes".to_owned());
        });
        world.mute("*", true);
        world.scale(&pool, 5);
        world.run_until("5 in service", SOON, |world| world.in_service(&pool).len() == 5).await?;
        world.run_until("5 Machines", SOON, |world| world.machines(&pool).len() == 5).await?;
        let machines = world.machines(&pool);
        let silent =
            machines.values().find(|machine| !machine.has_node()).context("a Machine without Node")?;
        let silent = silent.name_any();
        let mark = world.mark();
        world.scale(&pool, 3);
        reach(&mut world, &pool, 3).await?;
        let ended: BTreeSet<String> = ended_since(&world, mark).into_iter().map(|(id, _)| id).collect();
        let victims: BTreeSet<String> =
            [annotated, silent.rsplit_once("i-").map(|(_, id)| format!("i-{id}")).unwrap_or_default()].into();
        ensure!(ended == victims, "ended {ended:?} instead of {victims:?} (seed {seed})");
        ensure!(ended_since(&world, mark).iter().all(|(_, shrinks)| *shrinks), "both shrink the pool");
        ensure!(matches!(world.drains(&machine)[..], [Drain::Done(_)]), "the annotated one was drained");
        ensure!(world.drains(&silent) == [Drain::Skipped("no Node has joined")], "nothing to drain");
    }
    Ok(())
}

// Rules: D8
// Pains: P44, P45, W11
#[tokio::test(start_paused = true)]
async fn a_scale_in_by_one_terminates_the_annotated_instance_alone() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    for target in [2, 1] {
        let chosen = world.in_service(&pool).into_iter().next_back().context("an instance")?;
        let machine = world.machine_of(&pool, &chosen)?;
        world.edit_machine(&machine, |machine| {
            machine.annotations_mut().insert(annotations::DELETE_MACHINE.to_owned(), String::new());
        });
        let mark = world.mark();
        world.scale(&pool, target);
        reach(&mut world, &pool, usize::try_from(target)?).await?;
        ensure!(ended_since(&world, mark) == [(chosen, true)], "the annotated one ended alone");
    }
    world.finish()
}

/// Victims are chosen from a live LIST, since a cache may not show the annotation yet.
// Rules: D8
#[tokio::test(start_paused = true)]
async fn an_annotation_that_the_cache_does_not_show_counts() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    world.api.set_lag(Kind::Machine, Lag { millis: 0, frozen: true });
    let chosen = world.in_service(&pool).into_iter().next_back().context("an instance")?;
    let machine = world.machine_of(&pool, &chosen)?;
    world.edit_machine(&machine, |machine| {
        machine.annotations_mut().insert(annotations::DELETE_MACHINE.to_owned(), String::new());
    });
    let mark = world.mark();
    world.scale(&pool, 2);
    world.run_until("one ended", SOON, |world| !ended_since(world, mark).is_empty()).await?;
    world.api.set_lag(Kind::Machine, Lag::default());
    reach(&mut world, &pool, 2).await?;
    ensure!(ended_since(&world, mark) == [(chosen, true)], "{:?}", ended_since(&world, mark));
    world.finish()
}

async fn by_age(order: ScaleInOrder) -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, |spec| {
        spec.subnets.truncate(1);
        spec.scale_in_order = Some(order);
    })
    .await?;
    let old = world.in_service(&pool);
    world.scale(&pool, 4);
    reach(&mut world, &pool, 4).await?;
    let new: BTreeSet<String> = world.in_service(&pool).difference(&old).cloned().collect();
    world.scale(&pool, 2);
    reach(&mut world, &pool, 2).await?;
    let left = world.in_service(&pool);
    let expected = if order == ScaleInOrder::Oldest { new } else { old };
    ensure!(left == expected, "{order:?}: {left:?} are left instead of {expected:?}");
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn victims_are_the_oldest_by_default() -> Result<()> {
    by_age(ScaleInOrder::Oldest).await
}

#[tokio::test(start_paused = true)]
async fn victims_are_the_newest_if_the_spec_says_so() -> Result<()> {
    by_age(ScaleInOrder::Newest).await
}

#[tokio::test(start_paused = true)]
async fn victims_come_from_the_zone_with_most_instances() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 5).await?;
    world.scale(&pool, 3);
    reach(&mut world, &pool, 3).await?;
    let zones: BTreeSet<String> = world.instances(&pool).into_iter().map(|one| one.zone).collect();
    ensure!(zones.len() == 3, "one instance is left in each zone, not {zones:?}");
    world.finish()
}

/// D7: the Machine goes first, core drains, and only then the instance ends.
// Rules: D7
// Pains: P16
#[tokio::test(start_paused = true)]
async fn nothing_is_terminated_while_a_disruption_budget_blocks() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    world.block_drain("*", true);
    let mark = world.mark();
    world.scale(&pool, 2);
    world.run_for(TimeDelta::minutes(30)).await?;
    ensure!(ended_since(&world, mark).is_empty(), "ended although the drain is blocked");
    ensure!(world.in_service(&pool).len() == 3, "all run");
    let leaving = world.machines(&pool).values().filter(|machine| machine.is_deleting()).count();
    ensure!(leaving == 1, "one Machine leaves, not {leaving}");
    world.block_drain("*", false);
    reach(&mut world, &pool, 2).await?;
    world.finish()
}

/// Issue scenario: 5 → 2 → 4 while drains run.
#[tokio::test(start_paused = true)]
async fn replicas_that_rise_during_drains_are_reached() -> Result<()> {
    for seed in 0..10 {
        let (mut world, pool) = running(Setup::seed(seed), 5).await?;
        world.set_drain_seconds(180);
        let mark = world.mark();
        world.scale(&pool, 2);
        world.run_until("a Machine leaves", SOON, |world| leaving(world, &pool) > 0).await?;
        let pause = i64::try_from(world.random.below(60))?;
        world.run_for(TimeDelta::seconds(pause)).await?;
        world.scale(&pool, 4);
        reach(&mut world, &pool, 4).await?;
        let ended = ended_since(&world, mark);
        let shrunk = ended.iter().filter(|(_, shrinks)| *shrinks).count();
        ensure!(ended.len() <= 3, "more than the victims ended: {ended:?} (seed {seed})");
        ensure!(shrunk == 1, "the pool shrank by {shrunk} (seed {seed})");
        let marked = world.machines(&pool).values().any(|m| m.has_delete_annotation());
        ensure!(!marked, "a mark was left behind (seed {seed})");
        world.finish()?;
    }
    Ok(())
}

fn leaving(world: &World, pool: &Pool) -> usize {
    world.machines(pool).values().filter(|machine| machine.is_deleting()).count()
}

/// Issue scenario: a user's `kubectl delete machine` is replaced, beside a scale-in that is not.
#[tokio::test(start_paused = true)]
async fn a_deleted_machine_is_replaced_during_a_scale_in() -> Result<()> {
    for seed in 0..10 {
        let (mut world, pool) = running(Setup::seed(seed), 5).await?;
        world.set_drain_seconds(60);
        let mark = world.mark();
        let before = world.in_service(&pool);
        world.scale(&pool, 4);
        world.run_until("the victim leaves", SOON, |world| leaving(world, &pool) == 1).await?;
        let mut machines = world.machines(&pool).into_iter();
        let (other, _) = machines.find(|(_, machine)| !machine.is_deleting()).context("another Machine")?;
        world.delete_machine(&other);
        reach(&mut world, &pool, 4).await?;
        let ended = ended_since(&world, mark);
        ensure!(ended.len() == 2, "the victim and the deleted one ended, not {ended:?}");
        ensure!(
            ended.iter().filter(|(_, shrinks)| *shrinks).count() == 1,
            "only one of them shrank the pool"
        );
        let new = world.in_service(&pool).difference(&before).count();
        ensure!(new == 1, "{new} were launched instead of 1 (seed {seed})");
        world.finish()?;
    }
    Ok(())
}

// Rules: D10
#[tokio::test(start_paused = true)]
async fn a_deleted_machine_is_drained_terminated_and_replaced() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let mark = world.mark();
    let (machine, _) = world.machines(&pool).into_iter().next().context("a Machine")?;
    world.delete_machine(&machine);
    world.run_until("it goes", SOON, |world| !world.machines(&pool).contains_key(&machine)).await?;
    reach(&mut world, &pool, 3).await?;
    ensure!(matches!(world.drains(&machine)[..], [Drain::Done(_)]), "it was drained");
    let ended = ended_since(&world, mark);
    ensure!(ended.len() == 1 && !ended[0].1, "one was replaced, not {ended:?}");
    world.finish()
}

/// Issue scenario: desired 5, three launched, replicas lowered to 3: nothing that runs ends.
#[tokio::test(start_paused = true)]
async fn launches_that_never_happened_are_withdrawn() -> Result<()> {
    for seed in 0..5 {
        let mut world = World::new(Setup::seed(seed));
        world.simulator.set_capacity(&world.scope(), "*", "*", Some(3));
        let pool = world.add_pool("workers", 5);
        world.run_until("3 in service", SOON, |world| world.in_service(&pool).len() == 3).await?;
        let before = world.in_service(&pool);
        world.run_for(TimeDelta::minutes(2)).await?;
        ensure!(world.group(&pool).context("the group")?.desired == 5, "five are wanted");
        world.scale(&pool, 3);
        reach(&mut world, &pool, 3).await?;
        ensure!(world.in_service(&pool) == before, "the three that ran still run (seed {seed})");
        ensure!(ended_since(&world, 0).is_empty(), "nothing was ended");
        world.finish()?;
    }
    Ok(())
}

/// The same, lowered below what runs: the rest ends drained and exactly.
#[tokio::test(start_paused = true)]
async fn replicas_can_fall_below_what_runs_while_launches_fail() -> Result<()> {
    let mut world = World::new(Setup::default());
    world.simulator.set_capacity(&world.scope(), "*", "*", Some(3));
    let pool = world.add_pool("workers", 5);
    world.run_until("3 in service", SOON, |world| world.in_service(&pool).len() == 3).await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    world.scale(&pool, 2);
    reach(&mut world, &pool, 2).await?;
    let ended = ended_since(&world, 0);
    ensure!(ended.len() == 1 && ended[0].1, "one ended and shrank the pool, not {ended:?}");
    world.finish()
}

/// Edits that come one after another: only the last counts.
// Rules: B12
#[tokio::test(start_paused = true)]
async fn many_edits_in_a_row_converge_to_the_last() -> Result<()> {
    for seed in 0..10 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        let mut last = 3;
        for _ in 0..8 {
            last = i32::try_from(world.random.below(7))?;
            world.scale(&pool, last);
            let pause = i64::try_from(world.random.below(40))?;
            world.run_for(TimeDelta::seconds(pause)).await?;
        }
        reach(&mut world, &pool, usize::try_from(last)?).await?;
        world.finish()?;
    }
    Ok(())
}
