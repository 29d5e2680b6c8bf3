//! Pools of hundreds: what rollouts and scale-ins cost, counted call by call.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Instant,
};

use anyhow::{Result, ensure};
use capasg_api::{
    ASGMachine,
    names::machine_name,
    pool::{RollingUpdate, Rollout, RolloutStrategy},
};
use capasg_simulation::{Drain, Pool, Setup, World};
use capasg_test_objects::is_long;
use chrono::TimeDelta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::ended_since;

const NEW_IMAGE: &str = "ami-0b1c2d3e";
const GROUPS: &str = "DescribeAutoScalingGroups";
const MACHINES: &str = "DescribeInstances";
/// Image, subnets, template, versions and hooks: each is believed for minutes, so that together they are no more.
const OTHER_READS: usize = 15;
const CHANGE: &str = "UpdateAutoScalingGroup";
const END: &str = "TerminateInstanceInAutoScalingGroup";

/// Rules are checked after each action elsewhere, at sizes where that costs little.
fn setup(seed: u64) -> Setup {
    Setup { seed, watch: false, meanwhile_percent: 0, ..Setup::default() }
}

/// Runs until a condition holds that costs too much to look at after each action.
async fn until(
    world: &mut World,
    what: &str,
    within: TimeDelta,
    pause: TimeDelta,
    mut done: impl FnMut(&World) -> bool,
) -> Result<()> {
    let end = world.now() + within;
    while !done(world) {
        ensure!(world.now() < end, "not within {within}: {what}");
        world.run_for(pause).await?;
    }
    Ok(())
}

/// Successful and failed calls since a mark, by operation.
fn counted(world: &World, mark: u64) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for call in world.calls_since(mark, None) {
        *counts.entry(call.action).or_default() += 1;
    }
    counts
}

async fn roll(size: usize, surge: i32) -> Result<()> {
    let replicas = i32::try_from(size)?;
    let mut world = World::new(setup(1));
    let pool = world.add_pool_with("workers", replicas, |spec| {
        let rolling = RollingUpdate {
            max_surge: Some(IntOrString::Int(surge)),
            max_unavailable: Some(IntOrString::Int(0)),
        };
        let strategy = RolloutStrategy { rolling_update: Some(rolling), ..RolloutStrategy::default() };
        spec.rollout = Some(Rollout { strategy: Some(strategy), ..Rollout::default() });
    });
    let quarter = TimeDelta::seconds(15);
    until(&mut world, "it runs", TimeDelta::minutes(30), quarter, |world| world.is_running(&pool, size))
        .await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    let (mark, start, clock) = (world.mark(), world.now(), Instant::now());
    world.edit_pool(&pool, |pool| pool.spec.machine.image.id = Some(NEW_IMAGE.to_owned()));
    until(&mut world, "all are new", TimeDelta::hours(4), quarter, |world| {
        world.is_running(&pool, size) && world.instances(&pool).iter().all(|one| one.image == NEW_IMAGE)
    })
    .await?;
    let took = (world.now() - start).num_seconds();
    let counts = counted(&world, mark);
    println!("maxSurge {surge}: {size} instances in {took} s of virtual time, {:.0?} real", clock.elapsed());
    table(&counts);
    let (mutations, reads) = (mutations(&world, mark), counts.values().sum::<usize>());
    let reads = reads - mutations;
    // Groups that change are polled every 5 s; a poll that finds new instances asks for up to 200 of them at once.
    // So is each group, whether it changes or not, every 18 s.
    let polls = usize::try_from(took / 5 + took / 18)? + 2;
    let machines = counts.get(MACHINES).copied().unwrap_or(0);
    println!(
        "  {mutations} mutations, {reads} reads in the time of {polls} polls, {machines} for new instances"
    );
    ensure!(mutations <= 3 * size, "{mutations} mutations for {size} instances");
    let groups = counts.get(GROUPS).copied().unwrap_or(0);
    // A change of capacity is read back at once.
    let changes = counts.get(CHANGE).copied().unwrap_or(0);
    ensure!(groups <= polls + changes, "{groups} reads of the group in the time of {polls} polls");
    let arrivals = arrivals(&world, &pool);
    ensure!(machines <= arrivals, "{machines} reads of machines, which came in {arrivals} polls");
    ensure!(reads <= groups + machines + OTHER_READS, "{reads} reads");
    ensure!(ended_since(&world, mark).len() == size, "each was ended once");
    Ok(())
}

/// How many polls found new instances: each gets its `ASGMachine` at once.
fn arrivals(world: &World, pool: &Pool) -> usize {
    let made = |machine: &Arc<ASGMachine>| machine.metadata.creation_timestamp.clone();
    world.asg_machines(pool).values().map(made).collect::<BTreeSet<_>>().len()
}

fn table(counts: &BTreeMap<String, usize>) {
    for (action, count) in counts {
        println!("  {count:>5} {action}");
    }
}

fn mutations(world: &World, mark: u64) -> usize {
    world.mutations_since(mark).len()
}

// Pains: W11
#[tokio::test(start_paused = true)]
async fn a_rollout_replaces_many_instances_one_by_one() -> Result<()> {
    roll(if is_long() { 100 } else { 40 }, 1).await
}

// Pains: W11
#[tokio::test(start_paused = true)]
async fn a_rollout_replaces_one_hundred_instances_ten_by_ten() -> Result<()> {
    roll(100, 10).await
}

/// A running pool of a thousand, the rate limit as shipped.
async fn thousand(seed: u64) -> Result<(World, Pool)> {
    let mut world = World::new(setup(seed));
    for (number, zone) in ["a", "b", "c"].into_iter().enumerate() {
        let subnet = capasg_fake_aws::ec2::Subnet {
            id: ["subnet-0a1b2c3d", "subnet-0b1c2d3e", "subnet-0c1d2e3f"][number].to_owned(),
            vpc: "vpc-0a1b2c3d".to_owned(),
            zone: format!("eu-west-1{zone}"),
            cidr: format!("10.{number}.0.0/16"),
            addresses: 4_000,
            tags: BTreeMap::new(),
        };
        world.simulator.put_subnet(&world.scope(), subnet);
    }
    let pool = world.add_pool("workers", 1_000);
    let pause = TimeDelta::seconds(30);
    until(&mut world, "a thousand run", TimeDelta::minutes(60), pause, |world| {
        world.is_running(&pool, 1_000)
    })
    .await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    Ok((world, pool))
}

fn zones(world: &World, pool: &Pool) -> BTreeMap<String, usize> {
    let mut zones = BTreeMap::new();
    for one in world.instances(pool) {
        *zones.entry(one.zone).or_default() += 1;
    }
    zones
}

// Pains: P16, W11
#[tokio::test(start_paused = true)]
async fn a_scale_in_from_1000_by_300_terminates_in_batches() -> Result<()> {
    let clock = Instant::now();
    let (mut world, pool) = thousand(1).await?;
    println!("a thousand run after {:.0?} real", clock.elapsed());
    let (mark, start, clock) = (world.mark(), world.now(), Instant::now());
    world.scale(&pool, 700);
    until(&mut world, "700 run", TimeDelta::minutes(60), TimeDelta::seconds(15), |world| {
        world.is_running(&pool, 700)
    })
    .await?;
    let took = (world.now() - start).num_seconds();
    println!("1 000 shrunk by 300 in {took} s of virtual time, {:.0?} real", clock.elapsed());
    let counts = counted(&world, mark);
    table(&counts);
    let ended = ended_since(&world, mark);
    ensure!(ended.len() == 300 && ended.iter().all(|(_, shrinks)| *shrinks), "{} ended", ended.len());
    let ids: BTreeSet<&String> = ended.iter().map(|(id, _)| id).collect();
    ensure!(ids.len() == 300, "each once");
    let undrained =
        |id: &&&String| !matches!(world.drains(&machine_name("workers", id.as_str()))[..], [Drain::Done(_)]);
    ensure!(!ids.iter().any(|id| undrained(&id)), "all were drained");
    ensure!(counts.get(END).copied().unwrap_or(0) <= 6, "batches of up to 100");
    // Hooks have no batch: each instance is completed by a call of its own, within the shared rate limit.
    ensure!(mutations(&world, mark) <= 300 + 10, "{} mutations", mutations(&world, mark));
    let spread = zones(&world, &pool);
    ensure!(spread.values().all(|count| (232..=235).contains(count)), "{spread:?}");
    Ok(())
}

/// No list of groups contains hooks. Of a restart with 82 pools each hook is read once, and not all at once.
// Pains: W11
#[tokio::test(start_paused = true)]
async fn a_restart_reads_the_hook_of_each_pool_once() -> Result<()> {
    const POOLS: usize = 82;
    const READ: &str = "DescribeLifecycleHooks";
    let mut world = World::new(setup(1));
    let pools: Vec<Pool> = (0..POOLS).map(|number| world.add_pool(&format!("pool-{number}"), 1)).collect();
    until(&mut world, "all run", TimeDelta::minutes(60), TimeDelta::seconds(30), |world| {
        pools.iter().all(|pool| world.is_running(pool, 1))
    })
    .await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    let mark = world.mark();
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(
        world.calls_since(mark, Some(READ)).is_empty(),
        "a new group has the hook that it was created with"
    );
    let mark = world.mark();
    world.kill_process();
    world.run_for(TimeDelta::minutes(30)).await?;
    let reads = world.calls_since(mark, Some(READ));
    let groups: BTreeSet<String> =
        reads.iter().map(|read| read.params["AutoScalingGroupName"].to_string()).collect();
    ensure!((reads.len(), groups.len()) == (POOLS, POOLS), "{} reads of {} hooks", reads.len(), groups.len());
    let at_once = |read: &capasg_fake_aws::LogEntry| {
        let others = reads.iter().filter(|other| (other.time - read.time).abs() < TimeDelta::seconds(5));
        others.count()
    };
    let most = reads.iter().map(at_once).max().unwrap_or(0);
    ensure!(most <= POOLS / 3, "{most} within ten seconds");
    ensure!(mutations(&world, mark) == 0, "{:?}", world.mutations_since(mark));
    Ok(())
}
