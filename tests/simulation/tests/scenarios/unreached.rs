//! Pools that are deleted while AWS answers none of their calls.

use anyhow::{Context, Result, ensure};
use capasg_api::{ASGMachinePool, conditions::DELETING, names::annotations, pool::DeletionPolicy};
use capasg_fake_aws::{Effect, Fault};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt as _;

use crate::SOON;

const MINUTE: TimeDelta = TimeDelta::minutes(1);

fn every_call(effect: &Effect) -> Fault {
    Fault::new("*", effect.clone()).times(None)
}

fn error(status: u16, code: &str) -> Effect {
    Effect::Error { status, code: code.to_owned(), message: "Rejected.".to_owned() }
}

fn marked(world: &World, pool: &Pool) -> bool {
    world.pool(pool).is_some_and(|pool| pool.annotations().contains_key(annotations::NOTHING_CREATED))
}

/// A pool with our finalizer, for which AWS has answered no call.
async fn unreached(setup: Setup, effect: &Effect, policy: DeletionPolicy) -> Result<(World, Pool)> {
    let mut world = World::new(setup);
    world.fault(every_call(effect));
    let pool = world.add_pool_with("workers", 3, |spec| spec.deletion_policy = Some(policy));
    world.run_for(TimeDelta::minutes(3)).await?;
    let claimed =
        world.pool(&pool).is_some_and(|pool| pool.annotations().contains_key(annotations::OWNER_ID));
    ensure!(claimed, "it has its owner ID\n{}", world.describe());
    Ok((world, pool))
}

async fn nothing_is_left(world: &mut World) -> Result<()> {
    world.run_for(TimeDelta::minutes(2)).await?;
    let left = world.simulator.leftovers(None);
    ensure!(left.is_empty(), "left in the cloud: {left:?}\n{}", world.describe());
    world.finish()
}

/// A wrong Region, one that the account has not enabled, rejected credentials, a network without a route: what is wrong may
/// be what cannot be changed, so that the pool has to be deleted.
// Rules: E3
#[tokio::test(start_paused = true)]
async fn a_pool_that_never_reached_aws_is_deleted_at_once() -> Result<()> {
    let effects = [
        error(401, "AuthFailure"),
        error(403, "OptInRequired"),
        error(403, "InvalidClientTokenId"),
        error(403, "AccessDenied"),
        error(503, "ServiceUnavailable"),
        Effect::LoseRequest,
    ];
    for (seed, effect) in (0..).zip(&effects) {
        for policy in [DeletionPolicy::Delete, DeletionPolicy::Orphan] {
            let (mut world, pool) = unreached(Setup::seed(seed), effect, policy).await?;
            if seed % 2 == 1 {
                world.kill_process();
            }
            world.delete_machine_pool(&pool);
            world
                .run_until("it is gone", MINUTE, |world| world.is_let_go(&pool))
                .await
                .with_context(|| format!("{effect:?}, {policy:?}"))?;
            ensure!(world.mutations_since(0).is_empty(), "nothing was created: {effect:?}");
            nothing_is_left(&mut world).await?;
        }
    }
    Ok(())
}

/// A creation that was requested and not answered may have taken effect: the pool waits until AWS answers, across
/// restarts.
// Rules: E3, C6
#[tokio::test(start_paused = true)]
async fn a_creation_without_a_reply_is_never_left_behind() -> Result<()> {
    let effects = [Effect::LoseReply, Effect::LoseRequest, Effect::ApplyLate { after_millis: 9_000 }];
    for operation in ["CreateLaunchTemplate", "CreateAutoScalingGroup"] {
        for (seed, effect) in (0..).zip(&effects) {
            let mut world = World::new(Setup::seed(seed));
            world.fault(Fault::new(operation, effect.clone()));
            let pool = world.add_pool("workers", 3);
            world
                .run_until("it is requested", SOON, |world| !world.calls_since(0, Some(operation)).is_empty())
                .await?;
            world.fault(every_call(&error(401, "AuthFailure")));
            ensure!(!marked(&world, &pool), "recorded before the call");
            world.kill_process();
            world.delete_machine_pool(&pool);
            world.run_for(TimeDelta::minutes(20)).await?;
            ensure!(world.pool(&pool).is_some(), "{operation}, {effect:?}: it waits\n{}", world.describe());
            world.kill_process();
            world.simulator.clear_faults(None);
            world
                .run_until("everything is gone", TimeDelta::hours(1), |world| world.is_gone(&pool))
                .await
                .with_context(|| format!("{operation}, {effect:?}"))?;
            nothing_is_left(&mut world).await?;
        }
    }
    Ok(())
}

/// A creation takes effect only after its process died and the pool was deleted: AWS answers all other calls.
// Rules: E3, C6
#[tokio::test(start_paused = true)]
async fn a_creation_that_takes_effect_after_the_deletion_leaves_nothing() -> Result<()> {
    for operation in ["CreateLaunchTemplate", "CreateAutoScalingGroup"] {
        for after_millis in [500, 9_000, 19_000] {
            let mut world = World::new(Setup::default());
            world.fault(Fault::new(operation, Effect::ApplyLate { after_millis }));
            let pool = world.add_pool("workers", 2);
            world
                .run_until("it is requested", SOON, |world| !world.calls_since(0, Some(operation)).is_empty())
                .await?;
            world.kill_process();
            world.delete_machine_pool(&pool);
            world
                .run_until("everything is gone", TimeDelta::hours(1), |world| world.is_gone(&pool))
                .await
                .with_context(|| format!("{operation}, {after_millis} ms"))?;
            nothing_is_left(&mut world).await.with_context(|| format!("{operation}, {after_millis} ms"))?;
        }
    }
    Ok(())
}

/// Pools of an earlier release have no record of what was requested for them.
// Rules: E3
#[tokio::test(start_paused = true)]
async fn a_pool_of_an_earlier_release_waits_for_aws() -> Result<()> {
    let (mut world, pool) =
        unreached(Setup::default(), &error(401, "AuthFailure"), DeletionPolicy::Delete).await?;
    ensure!(marked(&world, &pool));
    world.edit_pool(&pool, |pool| drop(pool.annotations_mut().remove(annotations::NOTHING_CREATED)));
    world.kill_process();
    world.delete_machine_pool(&pool);
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(world.pool(&pool).is_some() && !marked(&world, &pool), "{}", world.describe());
    world.simulator.clear_faults(None);
    world.run_until("it is gone", TimeDelta::hours(1), |world| world.is_gone(&pool)).await?;
    nothing_is_left(&mut world).await
}

/// What a manifest does not name is removed, except the status.
fn remove_records(pool: &mut ASGMachinePool) {
    pool.annotations_mut().clear();
    (pool.spec.provider_id, pool.spec.provider_id_list) = (None, Vec::new());
}

/// The owner ID of a pool that runs.
fn owner_id(world: &World, pool: &Pool) -> Result<String> {
    let object = world.pool(pool).context("the pool")?;
    Ok(object.annotations().get(annotations::OWNER_ID).context("an owner ID")?.clone())
}

/// An operator restores the owner ID of a pool whose deletion waits for it.
async fn is_deleted_with(mut world: World, pool: &Pool, owner: String) -> Result<()> {
    ensure!(world.pool(pool).is_some() && !marked(&world, pool), "it waits\n{}", world.describe());
    ensure!(world.in_service(pool).len() == 2, "nothing is terminated\n{}", world.describe());
    world.edit_pool(pool, |pool| {
        pool.annotations_mut().insert(annotations::OWNER_ID.to_owned(), owner);
    });
    world.run_until("everything is gone", TimeDelta::hours(1), |world| world.is_gone(pool)).await?;
    nothing_is_left(&mut world).await
}

/// A tool replaces a pool that runs with its manifest (`kubectl replace`, Argo CD with `Replace=true`).
// Rules: E3
#[tokio::test(start_paused = true)]
async fn a_pool_that_was_replaced_counts_as_one_that_created_something() -> Result<()> {
    // The rules do not know a pool without the records of what it owns.
    let (mut world, pool) = crate::running(Setup { invariants: false, ..Setup::default() }, 2).await?;
    let owner = owner_id(&world, &pool)?;
    world.edit_pool(&pool, |pool| {
        remove_records(pool);
        pool.metadata.finalizers = None;
    });
    world.run_for(TimeDelta::minutes(3)).await?;
    ensure!(owner_id(&world, &pool)? != owner, "it has another owner ID\n{}", world.describe());
    world.delete_machine_pool(&pool);
    world.run_for(TimeDelta::minutes(20)).await?;
    is_deleted_with(world, &pool, owner).await
}

/// The records are lost while the pool is being deleted.
// Rules: E3
#[tokio::test(start_paused = true)]
async fn a_deletion_without_an_owner_id_waits_for_it() -> Result<()> {
    let (mut world, pool) = crate::running(Setup { invariants: false, ..Setup::default() }, 2).await?;
    let owner = owner_id(&world, &pool)?;
    world.edit_pool(&pool, remove_records);
    world.delete_pool(&pool);
    world.delete_machine_pool(&pool);
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(world.says(&pool, DELETING, "True", "GroupNotOwned"), "{}", world.describe());
    is_deleted_with(world, &pool, owner).await
}

/// The first creation removes the record, and a restart does not write it again.
// Rules: E3
#[tokio::test(start_paused = true)]
async fn the_record_is_removed_by_the_first_creation_and_stays_removed() -> Result<()> {
    let (mut world, pool) = crate::running(Setup::default(), 2).await?;
    ensure!(!marked(&world, &pool));
    world.kill_process();
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(!marked(&world, &pool));
    world.delete_machine_pool(&pool);
    world.run_until("everything is gone", SOON, |world| world.is_gone(&pool)).await?;
    nothing_is_left(&mut world).await
}
