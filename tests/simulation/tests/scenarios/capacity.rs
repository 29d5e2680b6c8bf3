//! What a node of a pool would have, told before there is one (G5).

use anyhow::{Context, Result, ensure};
use capasg_api::{ASGMachinePoolStatus, conditions::READY, pool::InstanceTypeEntry};
use capasg_fake_aws::Fault;
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

use crate::{SOON, reach, running, running_with};

const API: &str = "DescribeInstanceTypes";

fn status(world: &World, pool: &Pool) -> Result<ASGMachinePoolStatus> {
    world.pool(pool).and_then(|pool| pool.status.clone()).context("a status")
}

fn told(world: &World, pool: &Pool) -> Result<Vec<(String, String)>> {
    Ok(status(world, pool)?.capacity.into_iter().collect())
}

fn expected(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, quantity)| ((*name).to_owned(), (*quantity).to_owned())).collect()
}

// Rules: G5
// Pains: P29
#[tokio::test(start_paused = true)]
async fn an_empty_pool_reports_the_capacity_of_a_node() -> Result<()> {
    let types = ["m7i.xlarge", "c7i.2xlarge"].map(InstanceTypeEntry::new).to_vec();
    let (mut world, pool) = running_with(Setup::default(), 0, |spec| spec.instance_types = types).await?;
    let least = [("cpu", "4"), ("ephemeral-storage", "20Gi"), ("memory", "16384Mi")];
    ensure!(told(&world, &pool)? == expected(&least), "{:?}", told(&world, &pool)?);
    let info = status(&world, &pool)?.node_info.context("nodeInfo")?;
    let words = (info.architecture.as_deref(), info.operating_system.as_deref());
    ensure!(words == (Some("amd64"), Some("linux")), "{info:?}");

    world.edit_pool(&pool, |pool| {
        pool.spec.instance_types = vec![InstanceTypeEntry::new("g5.xlarge")];
        pool.spec.machine.root_volume.get_or_insert_default().size_gib = Some(80);
    });
    let gpu = [("cpu", "4"), ("ephemeral-storage", "80Gi"), ("memory", "16384Mi"), ("nvidia.com/gpu", "1")];
    world
        .run_until("the new type is told", SOON, |world| {
            told(world, &pool).is_ok_and(|told| told == expected(&gpu))
        })
        .await?;
    world.edit_pool(&pool, |pool| pool.spec.instance_types = vec![InstanceTypeEntry::new("m7i.xlarge")]);
    world
        .run_until("the GPU is gone again", SOON, |world| {
            told(world, &pool).is_ok_and(|told| told.len() == 3)
        })
        .await?;
    ensure!(world.calls_since(0, Some(API)).len() == 2, "each type is read once");
    world.finish()
}

// Rules: G5
#[tokio::test(start_paused = true)]
async fn twenty_pools_read_instance_types_twice_in_half_a_day() -> Result<()> {
    let mut world = World::new(Setup::default());
    let pools: Vec<Pool> = (0..20).map(|index| world.add_pool(&format!("pool-{index}"), 0)).collect();
    for pool in &pools {
        world.run_until("told", SOON, |world| told(world, pool).is_ok_and(|told| !told.is_empty())).await?;
    }
    world.run_for(TimeDelta::hours(12)).await?;
    let reads = world.calls_since(0, Some(API)).len();
    ensure!(reads <= 2, "{reads} reads");
    world.finish()
}

/// A role from before this permission was needed: everything but the capacity works, and one event says what to allow.
// Rules: G5
#[tokio::test(start_paused = true)]
async fn a_missing_permission_affects_status_capacity_alone() -> Result<()> {
    let mut world = World::new(Setup::default());
    let denied = Fault::error(API, 403, "UnauthorizedOperation", "You are not authorized to do this.");
    world.fault(denied.times(None));
    let pool = world.add_pool("workers", 2);
    reach(&mut world, &pool, 2).await?;
    world.run_for(TimeDelta::hours(1)).await?;
    ensure!(told(&world, &pool)?.is_empty(), "nothing is made up");
    ensure!(world.condition(&pool, READY).is_some_and(|ready| ready.status == "True"), "the pool is well");
    let events = world.events("CallRejected");
    ensure!(events.len() == 1 && events[0].contains(API), "{events:?}");
    let tries = world.calls_since(0, Some(API)).len();
    // After 30 s, then at intervals that double up to 10 min.
    ensure!((2..=10).contains(&tries), "{tries} tries in an hour");
    world.simulator.clear_faults(None);
    world
        .run_until("capacity is told", SOON, |world| told(world, &pool).is_ok_and(|told| !told.is_empty()))
        .await?;
    world.finish()
}

/// AWS that does not answer this question holds nothing up.
// Rules: G5
#[tokio::test(start_paused = true)]
async fn scaling_does_not_wait_for_status_capacity() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 1).await?;
    let before = told(&world, &pool)?;
    world.fault(Fault::error(API, 503, "Unavailable", "try again").times(None));
    world.edit_pool(&pool, |pool| pool.spec.instance_types.push(InstanceTypeEntry::new("m6i.xlarge")));
    world.scale(&pool, 3);
    reach(&mut world, &pool, 3).await?;
    ensure!(told(&world, &pool)? == before, "what was known stands until more is known");
    world.finish()
}
