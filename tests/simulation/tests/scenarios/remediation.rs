//! Machines that a `MachineHealthCheck` marks, and the limits of drains.

use anyhow::{Context, Result, ensure};
use capasg_api::{conditions::REMEDIATING, pool::RemediationPolicy};
use capasg_simulation::{Drain, Setup, World};
use chrono::TimeDelta;

use crate::{SOON, ended_since, reach, running, running_with};

// Rules: D15
// Pains: P36
#[tokio::test(start_paused = true)]
async fn an_unhealthy_machine_is_drained_and_replaced() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        let mark = world.mark();
        let machine = world.machines(&pool).into_keys().next().context("a Machine")?;
        world.mark_unhealthy(&machine);
        world
            .run_until("it is told", SOON, |world| world.says(&pool, REMEDIATING, "True", "Remediating"))
            .await?;
        world.run_until("it is gone", SOON, |world| !world.machines(&pool).contains_key(&machine)).await?;
        reach(&mut world, &pool, 3).await?;
        ensure!(
            matches!(world.drains(&machine)[..], [Drain::Done(_)]),
            "its Node answered, so it was drained"
        );
        let ended = ended_since(&world, mark);
        ensure!(ended.len() == 1 && !ended[0].1, "replaced, not taken away: {ended:?}");
        ensure!(world.says(&pool, REMEDIATING, "False", "NotRemediating"));
        world.finish()?;
    }
    Ok(())
}

// Rules: D15
#[tokio::test(start_paused = true)]
async fn unhealthy_machines_are_replaced_one_after_another() -> Result<()> {
    for replicas in [1, 4] {
        let (mut world, pool) = running(Setup::default(), replicas).await?;
        let marked: Vec<String> = world.machines(&pool).into_keys().collect();
        for machine in &marked {
            world.mark_unhealthy(machine);
        }
        let mut most = 0;
        world
            .run_until("all are replaced", TimeDelta::minutes(40), |world| {
                let machines = world.machines(&pool);
                most = most.max(machines.values().filter(|machine| machine.is_deleting()).count());
                machines.keys().all(|name| !marked.contains(name))
            })
            .await?;
        ensure!(most == 1, "{most} went at the same time");
        reach(&mut world, &pool, usize::try_from(replicas)?).await?;
        world.finish()?;
    }
    Ok(())
}

/// A network that was cut and heals: the marks stay, and are nobody's wish any more.
// Rules: D15
#[tokio::test(start_paused = true)]
async fn an_unhealthy_machine_that_recovers_before_its_turn_is_kept() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 4).await?;
    let marked: Vec<String> = world.machines(&pool).into_keys().collect();
    for machine in &marked {
        world.mark_unhealthy(machine);
    }
    let going = |world: &World| world.machines(&pool).values().filter(|m| m.is_deleting()).count();
    world.run_until("the first goes", SOON, |world| going(world) == 1).await?;
    for machine in &marked {
        world.recover(machine);
    }
    reach(&mut world, &pool, 4).await?;
    let left = world.machines(&pool).into_keys().filter(|name| marked.contains(name)).count();
    ensure!(left == 3, "{left} of 4 stayed");
    ensure!(world.says(&pool, REMEDIATING, "False", "NotRemediating"));
    world.finish()
}

// Rules: D15
#[tokio::test(start_paused = true)]
async fn remediation_policy_ignore_keeps_an_unhealthy_machine() -> Result<()> {
    let (mut world, pool) =
        running_with(Setup::default(), 2, |spec| spec.remediation_policy = Some(RemediationPolicy::Ignore))
            .await?;
    let machine = world.machines(&pool).into_keys().next().context("a Machine")?;
    world.mark_unhealthy(&machine);
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(world.machines(&pool).get(&machine).is_some_and(|machine| !machine.is_deleting()));
    let told = world.condition(&pool, REMEDIATING).context("Remediating")?;
    ensure!(told.status == "False" && told.message.contains(&machine), "{told:?}");
    world.edit_pool(&pool, |pool| pool.spec.remediation_policy = None);
    world.run_until("it goes", SOON, |world| !world.machines(&pool).contains_key(&machine)).await?;
    reach(&mut world, &pool, 2).await?;
    world.finish()
}

// Rules: D15
#[tokio::test(start_paused = true)]
async fn a_remediation_survives_a_restart() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        let mark = world.mark();
        let machine = world.machines(&pool).into_keys().next().context("a Machine")?;
        world.mark_unhealthy(&machine);
        for _ in 0..5 {
            let pause = i64::try_from(world.random.below(20))?;
            world.run_for(TimeDelta::seconds(pause)).await?;
            world.kill_process();
        }
        world.run_until("it is gone", SOON, |world| !world.machines(&pool).contains_key(&machine)).await?;
        reach(&mut world, &pool, 3).await?;
        ensure!(ended_since(&world, mark).len() == 1, "{:?} (seed {seed})", ended_since(&world, mark));
        world.finish()?;
    }
    Ok(())
}

// Rules: D14
#[tokio::test(start_paused = true)]
async fn the_machine_pools_drain_timeout_ends_a_blocked_drain() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let limits = |world: &capasg_simulation::World| -> Vec<Option<i32>> {
        let machines = world.machines(&pool).into_values();
        machines
            .map(|machine| machine.spec.deletion.and_then(|limits| limits.node_drain_timeout_seconds))
            .collect()
    };
    let set = |world: &capasg_simulation::World, seconds: Option<i32>| {
        world.edit_machine_pool(&pool, |own| {
            own.spec.template.spec.deletion.get_or_insert_default().node_drain_timeout_seconds = seconds;
        });
    };
    set(&world, Some(120));
    world.run_until("all have it", SOON, |world| limits(world) == [Some(120); 3]).await?;
    world.block_drain("*", true);
    let victim = world.machines(&pool).into_keys().next().context("a Machine")?;
    world.delete_machine(&victim);
    world.run_until("it is gone", SOON, |world| !world.machines(&pool).contains_key(&victim)).await?;
    ensure!(matches!(world.drains(&victim)[..], [Drain::TimedOut(_)]), "{:?}", world.drains(&victim));
    reach(&mut world, &pool, 3).await?;
    ensure!(limits(&world) == [Some(120); 3], "the new one has it, too");
    // A limit that is set while the drain runs counts, too.
    set(&world, None);
    world.run_until("none has it", SOON, |world| limits(world) == [None; 3]).await?;
    let victim = world.machines(&pool).into_keys().next().context("a Machine")?;
    world.delete_machine(&victim);
    world.run_for(TimeDelta::minutes(30)).await?;
    ensure!(world.machines(&pool).contains_key(&victim), "it drains without a limit");
    set(&world, Some(60));
    world.run_until("it is gone", SOON, |world| !world.machines(&pool).contains_key(&victim)).await?;
    let (mark, writes) = (world.mark(), world.journal.len());
    reach(&mut world, &pool, 3).await?;
    world.run_for(TimeDelta::minutes(5)).await?;
    let again = world.journal.since(writes).into_iter().filter(|entry| entry.what.contains("timeouts"));
    ensure!(again.count() <= 1, "written once for the new Machine (calls {})", world.mark() - mark);
    world.finish()
}
