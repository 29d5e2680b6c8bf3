//! A backup is restored, or another tool rewrites objects: ASGMachines have lost the reference to their pool, our finalizer, or
//! both. They get both back, and nothing is drained for it.

use anyhow::{Result, ensure};
use capasg_api::{
    ASGMachine,
    capi::{belongs_to_pool, pool_owner_of_machine},
    names::finalizers,
};
use capasg_simulation::{Drain, Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt as _;

use crate::{SOON, reach};

/// What is lost.
type Loss = fn(&mut ASGMachine);

const LOSSES: [Loss; 3] = [
    |machine| machine.metadata.owner_references = None,
    |machine| machine.metadata.finalizers = None,
    |machine| (machine.metadata.owner_references, machine.metadata.finalizers) = (None, None),
];

fn is_complete(machine: &ASGMachine) -> bool {
    pool_owner_of_machine(machine).is_some()
        && machine.finalizers().iter().any(|finalizer| finalizer == finalizers::MACHINE)
}

fn are_complete(world: &World, pool: &Pool) -> bool {
    world.asg_machines(pool).values().all(|machine| is_complete(machine))
}

/// Runs on, with a name of any length; then a scale-in and the deletion drain as ever.
#[tokio::test(start_paused = true)]
async fn lost_references_and_finalizers_come_back_and_nothing_is_drained() -> Result<()> {
    for (seed, loss) in (0..).zip(LOSSES) {
        for name in ["workers", &"long-".repeat(12)] {
            let name = name.trim_end_matches('-');
            // The rules know Machines by the whole name of their pool.
            let mut world = World::new(Setup { invariants: name.len() < 40, ..Setup::seed(seed) });
            let pool = world.add_pool(name, 3);
            world.run_until("3 running", SOON, |world| world.is_running(&pool, 3)).await?;
            let (before, machines) = (world.in_service(&pool), world.machines(&pool));
            for machine in world.asg_machines(&pool).keys() {
                world.edit_asg_machine(machine, loss);
            }
            world.run_until("they are complete", SOON, |world| are_complete(world, &pool)).await?;
            world.run_for(TimeDelta::minutes(10)).await?;
            ensure!(world.in_service(&pool) == before, "the instances stay\n{}", world.describe());
            ensure!(world.machines(&pool).keys().eq(machines.keys()), "so do the Machines");
            for machine in machines.keys() {
                ensure!(world.drains(machine).is_empty(), "{machine} is drained (seed {seed}, {name})");
            }
            world.scale(&pool, 2);
            world.run_until("2 running", SOON, |world| world.is_running(&pool, 2)).await?;
            world.delete_machine_pool(&pool);
            world.run_until("everything is gone", SOON, |world| world.is_gone(&pool)).await?;
            for machine in machines.keys() {
                let drains = world.drains(machine);
                ensure!(
                    matches!(drains[..], [Drain::Done(_)]),
                    "{machine}: {drains:?} (seed {seed}, {name})"
                );
            }
            world.finish()?;
        }
    }
    Ok(())
}

/// The Machine of an ASGMachine without a reference is deleted: the instance is drained and terminated, not released.
#[tokio::test(start_paused = true)]
async fn an_asg_machine_without_a_reference_is_no_orphan() -> Result<()> {
    let mut world = World::new(Setup::default());
    let pool = world.add_pool("workers", 2);
    world.run_until("2 running", SOON, |world| world.is_running(&pool, 2)).await?;
    let before = world.in_service(&pool);
    let machines = world.asg_machines(&pool);
    let (machine, _) = machines.iter().next().ok_or_else(|| anyhow::anyhow!("an ASGMachine"))?;
    world.delete_machine(machine);
    world.edit_asg_machine(machine, |own| own.metadata.owner_references = None);
    let object = world.pool(&pool).ok_or_else(|| anyhow::anyhow!("the pool"))?;
    ensure!(world.asg_machines(&pool).values().all(|own| belongs_to_pool(own, &object)), "by its name");
    world
        .run_until("it is replaced", SOON, |world| {
            world.is_running(&pool, 2) && world.in_service(&pool) != before
        })
        .await?;
    ensure!(matches!(world.drains(machine)[..], [Drain::Done(_)]), "{:?}", world.drains(machine));
    let id = machine.rsplit_once("-i-").map(|(_, id)| format!("i-{id}")).unwrap_or_default();
    ensure!(!world.dump().instances.iter().any(|one| one.id == id && one.state == "running"), "{id} ended");
    reach(&mut world, &pool, 2).await?;
    world.finish()
}
