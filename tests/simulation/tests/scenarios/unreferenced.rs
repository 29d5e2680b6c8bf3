//! Pools with instances that no MachinePool refers to: nodes are drained, Machines are released, and `Ready` says why.

use anyhow::{Result, ensure};
use capasg_fake_aws::{Service, Tree};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

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
