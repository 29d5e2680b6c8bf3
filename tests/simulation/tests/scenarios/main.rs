//! Scenarios in virtual time: each test tells what happens to a pool and what must come of it. Rules of the provider
//! contract are named by their IDs.

mod adoption;
mod at_size;
mod bad_input;
mod block_move;
mod bootstrap;
mod capacity;
mod cloud_ends;
mod compared;
mod concerns;
mod crashes;
mod deletion;
mod disruption;
mod drift;
mod effective;
mod endings;
mod events;
mod external;
mod faults;
mod generated;
mod guards;
mod identities;
mod identity;
mod images;
mod interplay;
mod interrupted;
mod launches;
mod moves;
mod network;
mod nodes;
mod origins;
mod pause;
mod preview;
mod properties;
mod quiet;
mod reads;
mod refresh;
mod refresh_cancelled;
mod refresh_ends;
mod refresh_turns;
mod refusals;
mod rejected_writes;
mod remediation;
mod restored;
mod rollout;
mod scale_in;
mod scaling;
mod second_manager;
mod simulation;
mod status_limits;
mod surge;
mod unreached;
mod unreferenced;
mod upgrade;
mod user_data;
mod volumes;
mod zones;

use anyhow::Result;
use capasg_api::conditions::NODES_READY;
use capasg_fake_aws::Tree;
use capasg_simulation::{Pool, Setup, World};
use capasg_test_objects::is_long;
use chrono::TimeDelta;

/// Long enough for anything that does not wait for somebody.
const SOON: TimeDelta = TimeDelta::minutes(15);

/// A world with one pool that is `Running`.
async fn running(setup: Setup, replicas: i32) -> Result<(World, Pool)> {
    running_with(setup, replicas, |_| {}).await
}

async fn running_with(
    setup: Setup,
    replicas: i32,
    edit: impl FnOnce(&mut capasg_api::ASGMachinePoolSpec),
) -> Result<(World, Pool)> {
    let mut world = World::new(setup);
    let pool = world.add_pool_with("workers", replicas, edit);
    reach(&mut world, &pool, usize::try_from(replicas)?).await?;
    Ok((world, pool))
}

/// Runs until the pool is `Running` with that many instances and the controllers have nothing more to do.
async fn reach(world: &mut World, pool: &Pool, replicas: usize) -> Result<()> {
    world.run_until(&format!("{replicas} running"), SOON, |world| world.is_running(pool, replicas)).await?;
    world.run_for(TimeDelta::seconds(90)).await?;
    anyhow::ensure!(world.is_running(pool, replicas), "did not stay running\n{}", world.describe());
    // What is true for so long is reported.
    let told = world.says(pool, NODES_READY, "True", "NodesReady");
    anyhow::ensure!(told || world.is_paused(), "its ready Nodes are not reported\n{}", world.describe());
    Ok(())
}

/// The numbers of the writes since a mark that changed something: a crash after another one is a crash after the one before.
fn changing_writes(world: &World, mark: usize) -> Vec<usize> {
    let writes = world.journal.since(mark).into_iter().enumerate();
    writes.filter(|(_, entry)| entry.changed).map(|(index, _)| index + 1).collect()
}

/// The writes or calls of a life at which something is tried: all of them in the long form, else one of so many.
fn some_of(all: Vec<usize>, every: usize) -> impl Iterator<Item = usize> {
    all.into_iter().step_by(if is_long() { 1 } else { every })
}

/// The parameters of a call that names a pool's group.
fn group_params(world: &World, pool: &Pool) -> Tree {
    Tree::new().with("AutoScalingGroupName", world.group_name(pool))
}

/// The ids that our calls ended since a mark, with whether desired capacity shrank by them.
fn ended_since(world: &World, mark: u64) -> Vec<(String, bool)> {
    let calls = world.calls_since(mark, Some("TerminateInstanceInAutoScalingGroup"));
    let effective = calls.into_iter().filter(|call| call.outcome == capasg_fake_aws::Outcome::Ok);
    effective
        .flat_map(|call| {
            let shrinks = call.params["ShouldDecrementDesiredCapacity"] == "true";
            call.instances.into_iter().map(move |id| (id, shrinks))
        })
        .collect()
}
