//! Calls take time, and everything else goes on meanwhile: users, AWS, other pools, the process itself ends. Replies of the
//! API server are lost, caches show the past or miss what was between, and clocks are off.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use capasg_api::names::annotations;
use capasg_fake_aws::Fault;
use capasg_simulation::{Kind, Latency, Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt as _;

use crate::{SOON, reach};

/// Calls take up to four seconds.
fn slow(seed: u64) -> Setup {
    taking(seed, 4_000)
}

fn taking(seed: u64, typical_millis: u64) -> Setup {
    let latency = Latency { typical_millis, slow_per_thousand: 0, slow_millis: 0 };
    Setup { latency: Some(latency), ..Setup::seed(seed) }
}

async fn settle(world: &mut World, pool: &Pool, replicas: usize) -> Result<()> {
    world.run_until(&format!("{replicas} running"), SOON, |world| world.is_running(pool, replicas)).await
}

/// Whether a Machine is chosen for a scale-in.
fn has_chosen(world: &World, pool: &Pool) -> bool {
    let mut machines = world.machines(pool).into_values();
    machines.any(|machine| machine.annotations().contains_key(annotations::DELETE_MACHINE))
}

/// Create, grow, shrink, delete, each right at its end.
async fn life(world: &mut World) -> Result<()> {
    let pool = world.add_pool("workers", 2);
    settle(world, &pool, 2).await?;
    world.scale(&pool, 4);
    settle(world, &pool, 4).await?;
    world.rotate_token(&pool);
    world.scale(&pool, 1);
    settle(world, &pool, 1).await?;
    let dump = world.dump();
    ensure!(dump.groups.len() == 1 && dump.templates.len() == 1, "one of each\n{}", world.describe());
    world.delete_machine_pool(&pool);
    world.run_until("everything is gone", SOON, |world| world.is_gone(&pool)).await?;
    let left = world.simulator.leftovers(None);
    ensure!(left.is_empty(), "left in the cloud: {left:?}\n{}", world.describe());
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn pools_are_reconciled_side_by_side() -> Result<()> {
    let mut world = World::new(slow(1));
    let pools = [world.add_pool("one", 2), world.add_pool("two", 3)];
    world.run_until("both are reconciled", SOON, |world| world.under_way() == 2).await?;
    settle(&mut world, &pools[0], 2).await?;
    settle(&mut world, &pools[1], 3).await?;
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn a_user_acts_in_the_middle_of_a_reconcile() -> Result<()> {
    for seed in 0..4 {
        let mut world = World::new(slow(seed));
        let pool = world.add_pool("workers", 3);
        settle(&mut world, &pool, 3).await?;
        for replicas in [5, 2, 4] {
            world.scale(&pool, replicas);
            world.run_until("it is reconciled", SOON, |world| world.under_way() == 1).await?;
            world.run_for(TimeDelta::seconds(2)).await?;
        }
        reach(&mut world, &pool, 4).await?;
        world.finish().with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}

/// A request that was sent arrives, although the process that sent it is killed.
#[tokio::test(start_paused = true)]
async fn a_process_is_killed_while_its_calls_are_on_their_way() -> Result<()> {
    let mut landed: usize = 0;
    for seed in 0..40 {
        let mut world = World::new(slow(seed));
        let pool = world.add_pool("workers", 2);
        world.run_for(TimeDelta::milliseconds(1_000 + 900 * i64::try_from(seed)?)).await?;
        world.kill_process();
        ensure!(world.under_way() == 0, "what was under way ended with the process");
        landed += usize::from(world.has_late_writes());
        settle(&mut world, &pool, 2).await.with_context(|| format!("seed {seed}"))?;
        let dump = world.dump();
        ensure!(dump.groups.len() == 1 && dump.templates.len() == 1, "one of each\n{}", world.describe());
        world.finish()?;
    }
    ensure!(landed >= 3, "only {landed} processes had sent a write");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_life_whose_calls_take_time() -> Result<()> {
    for seed in 0..6 {
        let mut world = World::new(taking(seed, 150));
        life(&mut world).await.with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}

/// Writes to the API server take effect without an answer to the process, which goes on.
#[tokio::test(start_paused = true)]
async fn a_pool_survives_lost_replies_of_the_api_server() -> Result<()> {
    for seed in 0..8 {
        let mut world = World::new(taking(seed, 60));
        world.lose_kubernetes_replies(1 + u32::try_from(seed)?);
        let pool = world.add_pool("workers", 2);
        settle(&mut world, &pool, 2).await?;
        for replicas in [4, 1] {
            world.lose_kubernetes_replies(2);
            world.scale(&pool, replicas);
            settle(&mut world, &pool, usize::try_from(replicas)?).await?;
        }
        world.finish().with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}

/// The reply to the report that another actor manages the replicas is lost: no watch event follows the next one.
#[tokio::test(start_paused = true)]
async fn a_lost_reply_of_a_report_delays_no_hand_over() -> Result<()> {
    for lost in 0..4 {
        let mut world = World::new(taking(u64::from(lost), 60));
        let pool = world.add_pool("workers", 2);
        settle(&mut world, &pool, 2).await?;
        world.run_for(TimeDelta::minutes(5)).await?;
        world.lose_kubernetes_replies(lost);
        world.edit_machine_pool(&pool, |own| {
            own.annotations_mut()
                .insert(annotations::REPLICAS_MANAGED_BY.to_owned(), "autoscaler".to_owned());
        });
        let has_bounds = |world: &World| world.group(&pool).is_some_and(|group| group.max > 2);
        let begun = world.now();
        world.run_until("the group has their bounds", SOON, has_bounds).await?;
        let took = world.now() - begun;
        // The client waits a minute for a reply that is lost.
        ensure!(took < TimeDelta::minutes(5), "{lost} replies were lost: after {took}\n{}", world.describe());
        world.finish()?;
    }
    Ok(())
}

/// A watch that breaks and lists again shows nothing of what was between.
#[tokio::test(start_paused = true)]
async fn a_pool_survives_watches_that_list_again() -> Result<()> {
    for kind in Kind::ALL {
        let mut world = World::new(taking(3, 60));
        let pool = world.add_pool("workers", 3);
        settle(&mut world, &pool, 3).await?;
        world.freeze(kind, true);
        world.scale(&pool, 2);
        world.rotate_token(&pool);
        world.run_for(TimeDelta::seconds(20)).await?;
        world.list_again(kind);
        world.freeze(kind, false);
        settle(&mut world, &pool, 2).await.with_context(|| format!("{kind:?}"))?;
        world.finish()?;
    }
    Ok(())
}

/// A process begins with what was there half a minute ago.
#[tokio::test(start_paused = true)]
async fn a_pool_survives_a_process_that_begins_in_the_past() -> Result<()> {
    for seed in 0..4 {
        let mut world = World::new(taking(seed, 60));
        let pool = world.add_pool("workers", 2);
        settle(&mut world, &pool, 2).await?;
        world.scale(&pool, 4);
        world.run_for(TimeDelta::seconds(25)).await?;
        world.restart_in_the_past(TimeDelta::seconds(30), TimeDelta::seconds(10));
        settle(&mut world, &pool, 4).await?;
        world.finish().with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_pool_survives_a_clock_that_is_off() -> Result<()> {
    for off in [-15, 15] {
        let mut world = World::new(Setup { clock_off_seconds: off, ..taking(1, 60) });
        life(&mut world).await.with_context(|| format!("{off} s"))?;
    }
    let mut world = World::new(taking(2, 60));
    let pool = world.add_pool("workers", 2);
    settle(&mut world, &pool, 2).await?;
    world.scale(&pool, 1);
    world.run_for(TimeDelta::seconds(8)).await?;
    world.restart_with_clock_off(TimeDelta::hours(-1));
    settle(&mut world, &pool, 1).await?;
    world.restart_with_clock_off(TimeDelta::zero());
    reach(&mut world, &pool, 1).await?;
    world.finish()
}

/// A process whose caches show neither an ASGMachine nor the last list overwrites no list: the instance is held and runs.
#[tokio::test(start_paused = true)]
async fn a_list_that_the_caches_do_not_show_is_not_overwritten() -> Result<()> {
    let mut held: usize = 0;
    for seed in 0..6 {
        let mut world = World::new(taking(seed, 60));
        let pool = world.add_pool("workers", 2);
        settle(&mut world, &pool, 2).await?;
        world.run_for(TimeDelta::seconds(60)).await?;
        world.scale(&pool, 3);
        world.run_until("a third ASGMachine", SOON, |world| world.asg_machines(&pool).len() == 3).await?;
        world.scale(&pool, 2);
        let is_held = |world: &World| {
            let state = Some("Terminating:Wait");
            world.instances(&pool).iter().any(|one| one.lifecycle_state.as_deref() == state)
        };
        world.run_until("an instance is held", SOON, is_held).await?;
        world.restart_in_the_past(TimeDelta::seconds(50), TimeDelta::seconds(12));
        held += usize::from(is_held(&world));
        settle(&mut world, &pool, 2).await?;
        world.finish().with_context(|| format!("seed {seed}"))?;
    }
    ensure!(held >= 3, "only {held} instances were held at the restart");
    Ok(())
}

/// A termination that AWS failed is requested again within minutes, although the clock of the next process is an hour behind
/// the one that recorded the request, or is set back while that process runs.
#[tokio::test(start_paused = true)]
async fn a_clock_an_hour_back_does_not_delay_a_termination() -> Result<()> {
    terminates_with(|world| world.restart_with_clock_off(TimeDelta::hours(-1))).await?;
    terminates_with(|world| {
        world.restart_with_clock_off(TimeDelta::zero());
        world.set_clock_off(TimeDelta::hours(-1));
    })
    .await
}

async fn terminates_with(set_back: impl FnOnce(&mut World)) -> Result<()> {
    let mut world = World::new(taking(1, 60));
    let pool = world.add_pool("workers", 3);
    settle(&mut world, &pool, 3).await?;
    let fails = Fault::error("TerminateInstanceInAutoScalingGroup", 500, "InternalFailure", "try again");
    world.fault(fails.times(Some(1)));
    world.scale(&pool, 2);
    let is_requested = |world: &World| {
        let machines = world.asg_machines(&pool);
        machines.values().any(|one| one.annotations().contains_key(annotations::END_REQUESTED_AT))
    };
    world.run_until("a termination was requested", SOON, is_requested).await?;
    set_back(&mut world);
    let begun = world.now();
    world.run_until("it is terminated", SOON, |world| world.instances(&pool).len() == 2).await?;
    ensure!(world.now() - begun < TimeDelta::minutes(5), "after {}", world.now() - begun);
    world.restart_with_clock_off(TimeDelta::zero());
    reach(&mut world, &pool, 2).await?;
    world.finish()
}

/// A user takes a scale-in back while the calls before it take seconds: the reconcile that decided it deletes nothing any more.
#[tokio::test(start_paused = true)]
async fn a_scale_in_that_is_taken_back_meanwhile_deletes_nothing() -> Result<()> {
    for seed in 0..6 {
        let mut world = World::new(slow(seed));
        let pool = world.add_pool("workers", 3);
        settle(&mut world, &pool, 3).await?;
        world.run_for(TimeDelta::minutes(2)).await?;
        let before: Vec<String> = world.machines(&pool).into_keys().collect();
        world.scale(&pool, 1);
        world.run_until("a Machine is chosen", SOON, |world| has_chosen(world, &pool)).await?;
        world.scale(&pool, 3);
        world.run_for(TimeDelta::minutes(5)).await?;
        let after: Vec<String> = world.machines(&pool).into_keys().collect();
        ensure!(before == after, "seed {seed}: {before:?} became {after:?}\n{}", world.describe());
        world.finish()?;
    }
    Ok(())
}

/// A user deletes a Machine while the calls before a scale-in take seconds: it counts for the scale-in.
#[tokio::test(start_paused = true)]
async fn a_machine_that_a_user_deletes_meanwhile_counts_for_a_scale_in() -> Result<()> {
    for seed in 0..6 {
        let mut world = World::new(slow(seed));
        let pool = world.add_pool("workers", 5);
        settle(&mut world, &pool, 5).await?;
        world.run_for(TimeDelta::minutes(2)).await?;
        let before: BTreeSet<String> = world.machines(&pool).into_keys().collect();
        world.scale(&pool, 3);
        world.run_until("a Machine is chosen", SOON, |world| has_chosen(world, &pool)).await?;
        let of_a_user = world.machines(&pool).into_iter().find(|(_, machine)| {
            !machine.annotations().contains_key(annotations::DELETE_MACHINE) && !machine.is_deleting()
        });
        let (of_a_user, _) = of_a_user.context("a Machine stays")?;
        world.delete_machine(&of_a_user);
        world.run_for(TimeDelta::minutes(5)).await?;
        let after: BTreeSet<String> = world.machines(&pool).into_keys().collect();
        ensure!(
            after.len() == 3 && after.is_subset(&before),
            "seed {seed}: {before:?} became {after:?}\n{}",
            world.describe()
        );
        world.finish()?;
    }
    Ok(())
}
