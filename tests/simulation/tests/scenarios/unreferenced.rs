//! Pools with instances that no MachinePool refers to: nodes are drained, Machines are released, and `Ready` says why. And
//! pools to which another MachinePool refers than before.

use anyhow::{Context as _, Result, ensure};
use capasg_api::names::{labels, must_format_value};
use capasg_fake_aws::{Service, Tree};
use capasg_simulation::{Drain, Pool, Setup, World};
use chrono::TimeDelta;
use kube::{Resource as _, ResourceExt as _};

use crate::{SOON, ended_since, reach, running};

/// The MachinePool refers to another pool from now on.
fn refer(world: &World, pool: &Pool, name: &str) {
    world.edit_machine_pool(pool, |own| {
        name.clone_into(&mut own.spec.template.spec.infrastructure_ref.name);
    });
}

/// Waits until `Ready` names the group and its instances.
async fn reported(world: &mut World, pool: &Pool, instances: &str) -> Result<()> {
    let group = world.group_name(pool);
    let is_reported = |world: &World| {
        world.condition(pool, "Ready").is_some_and(|ready| {
            ready.status == "False"
                && [group.as_str(), instances, "Delete the ASGMachinePool"]
                    .iter()
                    .all(|part| ready.message.contains(part))
        })
    };
    world.run_until("it is reported", TimeDelta::minutes(3), is_reported).await
}

/// A Machine that a user deletes, and an instance that AWS replaces: both are drained, and the group keeps its size.
// Rules: C1, D10, D11
#[tokio::test(start_paused = true)]
async fn nodes_of_a_pool_without_a_machine_pool_are_drained() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    refer(&world, &pool, "another");
    reported(&mut world, &pool, "has 3 instances").await?;
    ensure!(world.says(&pool, "GroupReady", "False", "NoMachinePool"), "{}", world.describe());
    let before = world.in_service(&pool);
    let ids: Vec<&String> = before.iter().collect();
    let (by_user, by_aws) = (ids[0].clone(), ids[1].clone());
    let machine = world.machine_of(&pool, &by_user)?;
    let mark = world.mark();
    world.delete_machine(&machine);
    let is_replaced = |world: &World| {
        let now = world.in_service(&pool);
        now.len() == 3 && !now.contains(&by_user) && !world.machines(&pool).contains_key(&machine)
    };
    world.run_until("it is terminated", SOON, is_replaced).await?;
    ensure!(ended_since(&world, mark) == [(by_user.clone(), false)], "{}", world.describe());
    ensure!(!world.drains(&machine).is_empty(), "{machine} was not drained\n{}", world.describe());

    let machine = world.machine_of(&pool, &by_aws)?;
    let health = Tree::new()
        .with("InstanceId", by_aws.as_str())
        .with("HealthStatus", "Unhealthy")
        .with("ShouldRespectGracePeriod", false);
    world.aws(Service::AutoScaling, "SetInstanceHealth", health)?;
    world.kill_process();
    let is_replaced = |world: &World| {
        let now = world.in_service(&pool);
        now.len() == 3 && !now.contains(&by_aws) && !world.machines(&pool).contains_key(&machine)
    };
    world.run_until("it is replaced", SOON, is_replaced).await?;
    ensure!(!world.drains(&machine).is_empty(), "{machine} was not drained\n{}", world.describe());
    reported(&mut world, &pool, "has 3 instances").await?;

    refer(&world, &pool, &pool.key.name);
    reach(&mut world, &pool, 3).await?;
    world.finish()
}

/// The way out that the message names.
// Rules: C1, E1
#[tokio::test(start_paused = true)]
async fn a_pool_without_a_machine_pool_is_drained_when_it_is_deleted() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    refer(&world, &pool, "another");
    reported(&mut world, &pool, "has 3 instances").await?;
    let machines: Vec<String> = world.machines(&pool).into_keys().collect();
    world.delete_pool(&pool);
    world.run_until("it is deleted", SOON, |world| world.pool(&pool).is_none()).await?;
    for machine in &machines {
        ensure!(!world.drains(machine).is_empty(), "{machine} was drained\n{}", world.describe());
    }
    world.finish()
}

/// Nobody refers to the pool, its owner reference is removed, and its Cluster is gone as well.
// Rules: C1, E4
#[tokio::test(start_paused = true)]
async fn a_group_without_a_machine_pool_and_a_cluster_is_reported() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    refer(&world, &pool, "another");
    world.edit_pool(&pool, |own| own.metadata.owner_references = None);
    world.vanish_cluster();
    reported(&mut world, &pool, "3 instances: nothing changes, since its Cluster does not exist").await?;
    ensure!(world.says(&pool, "GroupReady", "False", "NoMachinePool"), "{}", world.describe());
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(world.in_service(&pool).len() == 3, "nothing ends without a deletion\n{}", world.describe());
    world.finish()
}

/// Two pools that run. The rules know a pool by its first MachinePool.
async fn two_running() -> Result<(World, Pool, Pool)> {
    both_running("workers", "others").await
}

async fn both_running(name: &str, other: &str) -> Result<(World, Pool, Pool)> {
    let mut world = World::new(Setup { watch: false, invariants: false, ..Setup::default() });
    let (pool, other) = (world.add_pool(name, 3), world.add_pool(other, 3));
    for pool in [&pool, &other] {
        reach(&mut world, pool, 3).await?;
    }
    Ok((world, pool, other))
}

/// The pool with the MachinePool of another one.
fn with_machine_pool_of(pool: &Pool, other: &Pool) -> Pool {
    Pool { machine_pool: other.machine_pool.clone(), config: other.config.clone(), ..pool.clone() }
}

/// Waits until the ASGMachines of a pool have the label of its MachinePool.
async fn relabelled(world: &mut World, pool: &Pool) -> Result<()> {
    let label = must_format_value(&pool.machine_pool.name);
    let is_relabelled = |world: &World| {
        let machines = world.asg_machines(pool);
        machines.values().all(|machine| machine.labels().get(labels::POOL_NAME) == Some(&label))
    };
    world.run_until("the ASGMachines are relabelled", SOON, is_relabelled).await
}

/// Waits for a scale-in to one node: those that go are drained.
async fn scaled_in(world: &mut World, pool: &Pool, machines: &[String]) -> Result<()> {
    let is_left = |world: &World| world.in_service(pool).len() == 1 && world.asg_machines(pool).len() == 1;
    world.run_until("one is left", SOON, is_left).await?;
    let left = world.machines(pool);
    for machine in machines.iter().filter(|machine| !left.contains_key(*machine)) {
        let drains = world.drains(machine);
        ensure!(matches!(drains[..], [Drain::Done(_)]), "{machine}: {drains:?}\n{}", world.describe());
    }
    Ok(())
}

/// Two MachinePools swap their pools, and a user removes the owner references, as the message says: Machines and instances stay,
/// they are counted for the other MachinePool, and drained.
// Rules: C1, D3, D7
#[tokio::test(start_paused = true)]
async fn what_runs_stays_and_is_drained_when_two_machine_pools_swap_their_pools() -> Result<()> {
    let (mut world, pool, other) = two_running().await?;
    let (before, machines) = (world.in_service(&pool), world.machines(&pool));
    let machines: Vec<String> = machines.into_keys().collect();
    refer(&world, &pool, &other.key.name);
    refer(&world, &other, &pool.key.name);
    let (owner, new) = (&pool.machine_pool.name, &other.machine_pool.name);
    let remedy = format!("remove the entry of MachinePool {owner} from metadata.ownerReferences");
    reported(&mut world, &pool, &remedy).await?;
    reported(&mut world, &pool, &format!("MachinePool {new} refers to it")).await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    ensure!(world.says(&pool, "GroupReady", "False", "NoMachinePool"), "core does not replace the owner");
    for pool in [&pool, &other] {
        world.edit_pool(pool, |own| own.metadata.owner_references = None);
    }
    let pool = with_machine_pool_of(&pool, &other);
    reach(&mut world, &pool, 3).await?;
    ensure!(world.in_service(&pool) == before, "instances are replaced\n{}", world.describe());
    ensure!(world.machines(&pool).keys().eq(machines.iter()), "so are Machines\n{}", world.describe());
    world.scale(&pool, 1);
    scaled_in(&mut world, &pool, &machines).await?;
    world.finish()
}

/// Core is down after it has set the other owner: the Machines have the label of the MachinePool before.
// Rules: C1, D3, D7
#[tokio::test(start_paused = true)]
async fn machines_that_core_has_not_relabelled_yet_are_drained() -> Result<()> {
    let (mut world, before, other) = two_running().await?;
    let machines: Vec<String> = world.machines(&before).into_keys().collect();
    world.stop_core(true);
    refer(&world, &before, &other.key.name);
    refer(&world, &other, &before.key.name);
    let owner = world.machine_pool(&other).context("the MachinePool")?;
    let owner = owner.controller_owner_ref(&()).context("its UID")?;
    world.edit_pool(&before, |own| own.metadata.owner_references = Some(vec![owner]));
    let pool = with_machine_pool_of(&before, &other);
    relabelled(&mut world, &pool).await?;
    world.scale(&pool, 1);
    let are_deleted = |world: &World| world.machines(&before).values().any(|machine| machine.is_deleting());
    world.run_until("Machines are deleted", SOON, are_deleted).await?;
    world.stop_core(false);
    scaled_in(&mut world, &pool, &machines).await?;
    world.finish()
}

/// A MachinePool leaves its pool for another one, whose name begins alike: the names of Machines are truncated.
// Rules: C1, D5
#[tokio::test(start_paused = true)]
async fn machines_of_a_pool_whose_name_begins_alike_are_left_alone() -> Result<()> {
    let short = "w".repeat(43);
    let (mut world, pool, other) = both_running(&short, &format!("{short}-x")).await?;
    let (machines, before) = (world.machines(&other), world.in_service(&other));
    refer(&world, &pool, &other.key.name);
    refer(&world, &other, "nowhere");
    world.edit_pool(&other, |own| own.metadata.owner_references = None);
    let other = with_machine_pool_of(&other, &pool);
    relabelled(&mut world, &other).await?;
    world.run_for(TimeDelta::minutes(15)).await?;
    ensure!(world.in_service(&other) == before, "instances ended\n{}", world.describe());
    let left: Vec<String> = world.machines(&other).into_keys().collect();
    ensure!(machines.keys().all(|name| left.contains(name)), "Machines ended\n{}", world.describe());
    world.finish()
}
