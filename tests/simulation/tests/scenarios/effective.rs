//! `status.effective`: which values apply.

use anyhow::{Context, Result, ensure};
use capasg_api::pool::{DeletionPolicy, EffectiveSettings, RolloutStrategy};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::{SOON, reach, running};

fn effective(world: &World, pool: &Pool) -> Option<EffectiveSettings> {
    world.pool(pool)?.status.as_ref()?.effective.as_deref().cloned()
}

fn surge(world: &World, pool: &Pool) -> Option<i32> {
    Some(effective(world, pool)?.rollout.strategy.rolling_update.max_surge)
}

#[tokio::test(start_paused = true)]
async fn the_values_that_apply_are_reported_and_follow_spec_and_replicas_alone() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let first = effective(&world, &pool).context("effective")?;
    let spec = world.pool(&pool).context("the pool")?.spec.clone();
    ensure!(first == spec.effective(None, 2), "{first:?}");
    ensure!(first.drain.timeout_seconds == 3600 && first.max_size.is_none(), "{first:?}");

    world.edit_pool(&pool, |pool| {
        let rollout = pool.spec.rollout.get_or_insert_default();
        let strategy: &mut RolloutStrategy = rollout.strategy.get_or_insert_default();
        strategy.rolling_update.get_or_insert_default().max_surge =
            Some(IntOrString::String("50%".to_owned()));
    });
    world.scale(&pool, 5);
    reach(&mut world, &pool, 5).await?;
    ensure!(surge(&world, &pool) == Some(3), "{:?}", effective(&world, &pool));

    let writes = world.journal.len();
    world.run_for(TimeDelta::hours(2)).await?;
    ensure!(world.journal.since(writes).is_empty(), "{:?}", world.journal.since(writes));
    world.finish()
}

/// A user who wants to keep the group after all sees whether the edit arrived.
#[tokio::test(start_paused = true)]
async fn a_policy_that_is_edited_during_a_deletion_is_reported() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 1).await?;
    for machine in world.machines(&pool).keys() {
        world.block_drain(machine, true);
    }
    world.delete_machine_pool(&pool);
    world.run_for(TimeDelta::minutes(5)).await?;
    world.edit_pool(&pool, |pool| pool.spec.deletion_policy = Some(DeletionPolicy::Orphan));
    let orphan = |world: &World| {
        effective(world, &pool).is_some_and(|effective| effective.deletion_policy == DeletionPolicy::Orphan)
    };
    world.run_until("told", SOON, orphan).await?;
    world.finish()
}
