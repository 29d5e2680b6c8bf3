//! Deletion in phases, and what it waits for.

use anyhow::{Context, Result, ensure};
use capasg_api::{
    conditions::DELETING,
    names::events,
    pool::{DeletionPolicy, Drain as DrainSpec, OnPoolDeletion},
};
use capasg_simulation::{Drain, Pool, Setup, World};
use chrono::TimeDelta;

use crate::{SOON, ended_since, running, running_with};

fn nothing_is_left(world: &World) -> Result<()> {
    let left = world.simulator.leftovers(None);
    ensure!(left.is_empty(), "left in the cloud: {left:?}\n{}", world.describe());
    world.finish()
}

async fn gone(world: &mut World, pool: &Pool) -> Result<()> {
    world.run_until("everything is gone", SOON, |world| world.is_gone(pool)).await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    nothing_is_left(world)
}

// Rules: E1, E2
// Pains: W13, W19
#[tokio::test(start_paused = true)]
async fn a_deletion_drains_then_deletes_group_and_template() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        let machines: Vec<String> = world.machines(&pool).into_keys().collect();
        world.delete_machine_pool(&pool);
        world
            .run_until("drains are waited for", SOON, |world| {
                world.says(&pool, DELETING, "True", "DrainingMachines")
            })
            .await?;
        let message = world.condition(&pool, DELETING).context("Deleting")?.message;
        ensure!(machines.iter().any(|name| message.contains(name.as_str())), "names no Machine: {message}");
        world
            .run_until("the group is deleted", SOON, |world| {
                world.says(&pool, DELETING, "True", "DeletingGroup")
            })
            .await?;
        gone(&mut world, &pool).await?;
        for machine in &machines {
            let drains = world.drains(machine);
            ensure!(matches!(drains[..], [Drain::Done(_)]), "{machine}: {drains:?} (seed {seed})");
        }
    }
    Ok(())
}

/// `kubectl delete machinepool --cascade=orphan`: the garbage collector takes the reference to the MachinePool off the pool,
/// and core deletes the pool nevertheless. Or a user deletes the pool, after the MachinePool is gone.
// Rules: D14, E1
#[tokio::test(start_paused = true)]
async fn a_pool_without_a_reference_to_its_machine_pool_is_drained() -> Result<()> {
    for is_gone_before in [false, true] {
        let (mut world, pool) = running(Setup::default(), 3).await?;
        let machines: Vec<String> = world.machines(&pool).into_keys().collect();
        if is_gone_before {
            world.vanish_machine_pool(&pool);
        } else {
            world.delete_machine_pool(&pool);
        }
        world.edit_pool(&pool, |own| own.metadata.owner_references = None);
        world.run_for(TimeDelta::minutes(2)).await?;
        world.delete_pool(&pool);
        gone(&mut world, &pool).await?;
        for machine in &machines {
            let drains = world.drains(machine);
            ensure!(matches!(drains[..], [Drain::Done(_)]), "{machine}: {drains:?} ({is_gone_before})");
        }
    }
    Ok(())
}

// Rules: E1, E5
// Pains: P39
#[tokio::test(start_paused = true)]
async fn a_blocked_drain_is_reported_and_delays_the_deletion() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let (machine, _) = world.machines(&pool).into_iter().next().context("a Machine")?;
    world.block_drain(&machine, true);
    world.delete_machine_pool(&pool);
    world.run_for(TimeDelta::hours(3)).await?;
    let message = world.condition(&pool, DELETING).context("Deleting")?.message;
    ensure!(message.contains(&machine), "does not name {machine}: {message}");
    let id = machine.rsplit_once("i-").map(|(_, id)| format!("i-{id}")).context("an id")?;
    ensure!(world.in_service(&pool).contains(&id), "{id} runs on\n{}", world.describe());
    world.block_drain(&machine, false);
    gone(&mut world, &pool).await
}

// Rules: E6
#[tokio::test(start_paused = true)]
async fn nothing_is_drained_when_the_cluster_is_deleted() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    world.block_drain("*", true);
    let machines: Vec<String> = world.machines(&pool).into_keys().collect();
    world.delete_cluster();
    gone(&mut world, &pool).await?;
    for machine in &machines {
        let drains = world.drains(machine);
        ensure!(matches!(drains[..], [Drain::Skipped(_)]), "{machine}: {drains:?}");
    }
    Ok(())
}

// Rules: E4
#[tokio::test(start_paused = true)]
async fn a_pool_is_deleted_without_its_machine_pool() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        world.vanish_machine_pool(&pool);
        gone(&mut world, &pool).await?;
    }
    Ok(())
}

// Rules: E4
#[tokio::test(start_paused = true)]
async fn a_pool_is_deleted_without_its_cluster_and_core() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.vanish_cluster();
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(world.in_service(&pool).len() == 2, "nothing ends without a deletion");
    world.delete_pool(&pool);
    world.run_until("the pool is gone", SOON, |world| world.pool(&pool).is_none()).await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    nothing_is_left(&world)
}

// Rules: E3
#[tokio::test(start_paused = true)]
async fn a_pool_that_created_nothing_is_deleted_at_once() -> Result<()> {
    let mut world = World::new(Setup::default());
    let pool = world.add_pool("workers", 3);
    world.vanish_machine_pool(&pool);
    world.run_for(TimeDelta::seconds(30)).await?;
    world.delete_pool(&pool);
    world.run_until("the pool is gone", SOON, |world| world.pool(&pool).is_none()).await?;
    ensure!(world.mutations_since(0).is_empty(), "nothing was made, so nothing is deleted");
    nothing_is_left(&world)
}

/// A deletion at every moment of a creation leaves nothing behind.
// Rules: E2
// Pains: P23
#[tokio::test(start_paused = true)]
async fn a_deletion_during_creation_leaves_nothing() -> Result<()> {
    for tenths in 0..60 {
        let mut world = World::new(Setup::seed(tenths));
        let pool = world.add_pool("workers", 3);
        world.run_for(TimeDelta::milliseconds(i64::try_from(tenths * tenths * 12)?)).await?;
        world.delete_machine_pool(&pool);
        gone(&mut world, &pool).await.with_context(|| format!("deleted as of {tenths}"))?;
    }
    Ok(())
}

/// A scale-in that runs when the deletion comes.
// Rules: E2
#[tokio::test(start_paused = true)]
async fn a_deletion_during_a_scale_in_leaves_nothing() -> Result<()> {
    for seed in 0..10 {
        let (mut world, pool) = running(Setup::seed(seed), 4).await?;
        world.set_drain_seconds(30);
        world.scale(&pool, 2);
        let pause = i64::try_from(world.random.below(60))?;
        world.run_for(TimeDelta::seconds(pause)).await?;
        world.delete_machine_pool(&pool);
        gone(&mut world, &pool).await.with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn orphan_keeps_all_in_aws_but_our_hook() -> Result<()> {
    let (mut world, pool) =
        running_with(Setup::default(), 3, |spec| spec.deletion_policy = Some(DeletionPolicy::Orphan)).await?;
    let (before, machines) = (world.in_service(&pool), world.machines(&pool));
    let tags = world.group(&pool).context("the group")?.tags;
    let mark = world.mark();
    world.delete_machine_pool(&pool);
    world
        .run_until("Kubernetes forgot it", SOON, |world| {
            world.pool(&pool).is_none()
                && world.machines(&pool).is_empty()
                && world.asg_machines(&pool).is_empty()
        })
        .await?;
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(world.in_service(&pool) == before, "all instances run on");
    ensure!(ended_since(&world, mark).is_empty(), "nothing was ended");
    let group = world.group(&pool).context("the group is kept")?;
    ensure!(group.hooks.is_empty(), "no hook is left to hold ends: {:?}", group.hooks);
    ensure!(group.tags == tags && group.desired == 3, "nobody else takes it: {group:?}");
    let drains: Vec<Drain> = machines.keys().flat_map(|machine| world.drains(machine)).collect();
    let skipped = drains.iter().all(|drain| matches!(drain, Drain::Skipped(_)));
    ensure!(machines.len() == 3 && skipped, "no Node is drained: {drains:?}");
    ensure!(world.instances(&pool).iter().all(|one| one.protected), "what runs stays protected");
    ensure!(
        world.events(events::INSTANCE_RELEASED).len() == 3,
        "{:?}",
        world.events(events::INSTANCE_RELEASED)
    );
    ensure!(world.events(events::INSTANCE_TERMINATED).is_empty(), "none is terminated");
    ensure!(world.has_template(&pool), "the launch template is kept");
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn on_pool_deletion_terminate_deletes_without_drains() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, |spec| {
        spec.drain =
            Some(DrainSpec { on_pool_deletion: Some(OnPoolDeletion::Terminate), ..DrainSpec::default() });
    })
    .await?;
    world.block_drain("*", true);
    world.delete_machine_pool(&pool);
    gone(&mut world, &pool).await
}

/// A user removed the finalizer of the pool: nothing reconciles its ASGMachines any more.
#[tokio::test(start_paused = true)]
async fn asg_machines_without_a_pool_are_released() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let (before, machines) = (world.in_service(&pool), world.asg_machines(&pool));
    world.vanish_pool(&pool);
    world.run_for(TimeDelta::minutes(2)).await?;
    ensure!(world.asg_machines(&pool).len() == 2, "only what is being deleted is released");
    let mark = world.mark();
    for name in machines.keys() {
        world.delete_asg_machine(name);
    }
    world.run_until("they are released", SOON, |world| world.asg_machines(&pool).is_empty()).await?;
    ensure!(world.mutations_since(mark).is_empty(), "AWS is left alone");
    ensure!(world.in_service(&pool) == before, "all instances run on");
    world.finish()
}
