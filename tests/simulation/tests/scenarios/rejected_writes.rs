//! Writes that the API server rejects for as long as a user does nothing: by an admission policy, a webhook, a quota. They are in a
//! condition, and delay nothing that does not depend on them.

use anyhow::{Context as _, Result, ensure};
use capasg_api::conditions::{NODES_READY, READY, STALLED};
use capasg_controllers::kubernetes::KubeWrite;
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

use crate::{SOON, reach, running};

/// A write that fails for two minutes is reported; backoff may be between.
const REPORTED: TimeDelta = TimeDelta::minutes(10);

/// About half of the instances: the last digit of their ID, with which the names of their objects end, is even.
fn is_kept(instance: &str) -> bool {
    instance.ends_with(['0', '2', '4', '6', '8', 'a', 'c', 'e'])
}

async fn is_reported(world: &mut World, pool: &Pool, words: &str) -> Result<()> {
    let reported = |world: &World| world.says(pool, NODES_READY, "False", "WriteRejected");
    world.run_until("it is reported", REPORTED, reported).await?;
    let told = world.condition(pool, NODES_READY).context("NodesReady")?;
    ensure!(told.message.contains(words) && told.message.contains("denied by policy"), "{}", told.message);
    ensure!(world.says(pool, STALLED, "True", "Stalled"), "{}", world.describe());
    ensure!(world.condition(pool, READY).is_some_and(|ready| ready.status == "False"), "not Ready");
    Ok(())
}

/// A quota for ASGMachines: what exists works on, and the cause is reported in the words of the API server.
#[tokio::test(start_paused = true)]
async fn a_rejected_creation_is_reported_and_recovers() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.api.reject_writes(Some(|write| matches!(write, KubeWrite::CreateAsgMachine(_))));
    world.scale(&pool, 3);
    is_reported(&mut world, &pool, "creating ASGMachine").await?;
    ensure!(world.in_service(&pool).len() == 3, "AWS launched it\n{}", world.describe());
    world.api.reject_writes(None);
    world.run_until("it runs", SOON, |world| world.is_running(&pool, 3)).await?;
    reach(&mut world, &pool, 3).await?;
    world.finish()
}

/// A webhook rejects every write to one ASGMachine: the others are terminated, and their statuses are written.
#[tokio::test(start_paused = true)]
async fn one_object_whose_writes_are_rejected_delays_no_other() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let before = world.in_service(&pool);
    world.api.reject_writes(Some(|write| {
        matches!(write, KubeWrite::AnnotateTerminationRequested { instance, .. } if is_kept(instance))
    }));
    for machine in world.machines(&pool).keys() {
        world.delete_machine(machine);
    }
    let others_ended = |world: &World| {
        let now = world.in_service(&pool);
        before.iter().filter(|id| !is_kept(id)).all(|id| !now.contains(id))
    };
    world.run_until("the others are terminated", SOON, others_ended).await?;
    if before.iter().any(|id| is_kept(id)) {
        is_reported(&mut world, &pool, "recording the termination request").await?;
        ensure!(
            before.iter().filter(|id| is_kept(id)).all(|id| world.in_service(&pool).contains(id)),
            "it waits"
        );
    }
    world.api.reject_writes(None);
    world
        .run_until("all are replaced", SOON, |world| {
            world.is_running(&pool, 3) && world.in_service(&pool).is_disjoint(&before)
        })
        .await?;
    world.finish()
}

/// The statuses of some ASGMachines are rejected: those of others, of the pool, and of other pools are written.
#[tokio::test(start_paused = true)]
async fn a_rejected_status_of_an_instance_delays_no_other() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.api.reject_writes(Some(|write| {
        let KubeWrite::PatchAsgMachineStatus { machine, .. } = write else { return false };
        machine.name.starts_with("batch-i-") && is_kept(&machine.name)
    }));
    let batch = world.add_pool("batch", 8);
    let others_written = |world: &World| {
        let machines = world.asg_machines(&batch);
        machines.len() == 8 && machines.iter().all(|(name, one)| is_kept(name) || one.status.is_some())
    };
    world.run_until("the other statuses are written", SOON, others_written).await?;
    world.scale(&pool, 3);
    reach(&mut world, &pool, 3).await?;
    let machines = world.asg_machines(&batch);
    let rejected = machines.iter().filter(|(_, one)| one.status.is_none()).count();
    ensure!((1..8).contains(&rejected), "{rejected} of 8 are rejected");
    ensure!(world.condition(&batch, READY).is_some(), "its status is written\n{}", world.describe());
    world.api.reject_writes(None);
    world.run_until("it runs", SOON, |world| world.is_running(&batch, 8)).await?;
    world.finish()
}

/// `spec.providerIDList` is rejected: the status is written, says so, and does not report a new pool as provisioned.
#[tokio::test(start_paused = true)]
async fn rejected_provider_ids_are_reported_and_recover() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.api.reject_writes(Some(|write| matches!(write, KubeWrite::PatchPoolProviderIds { .. })));
    let batch = world.add_pool("batch", 1);
    world.scale(&pool, 3);
    for pool in [&pool, &batch] {
        is_reported(&mut world, pool, "writing provider IDs").await?;
    }
    let status = |world: &World, pool: &Pool| {
        world.pool(pool).and_then(|pool| pool.status.clone()).unwrap_or_default()
    };
    ensure!(status(&world, &pool).initialization.provisioned && status(&world, &pool).desired_replicas == 3);
    ensure!(!status(&world, &batch).initialization.provisioned && !status(&world, &batch).ready);
    world.api.reject_writes(None);
    reach(&mut world, &pool, 3).await?;
    world.run_until("it runs", SOON, |world| world.is_running(&batch, 1)).await?;
    world.finish()
}
