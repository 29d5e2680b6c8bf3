//! A user who cancels an instance refresh has decided for this desired state.

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    conditions::{ROLLING_OUT, UP_TO_DATE},
    names::annotations,
};
use capasg_fake_aws::Service;
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt;

use crate::{
    SOON, group_params,
    refresh::{Data, NEW, message, quick, refreshed_pool, set_image, starts, until_all},
};

async fn cancel(world: &mut World, pool: &Pool) -> Result<()> {
    world.aws(Service::AutoScaling, "CancelInstanceRefresh", group_params(world, pool))?;
    let is_recorded = |world: &World| {
        world.pool(pool).is_some_and(|pool| pool.annotations().contains_key(annotations::ROLLOUT_STOPPED))
    };
    world.run_until("the cancellation is recorded", SOON, is_recorded).await
}

/// Nothing in service is outdated any more when the user cancels, and the last outdated instance returns from standby later.
// Pains: W26
#[tokio::test(start_paused = true)]
async fn an_instance_that_returns_starts_no_refresh_after_a_cancellation() -> Result<()> {
    for data in [Data::Fixed, Data::Rotating] {
        let (mut world, pool) = refreshed_pool(Setup::default(), data, 4, quick()).await?;
        let id = world.in_service(&pool).pop_first().context("an instance")?;
        let standby = group_params(&world, &pool).with("InstanceIds", vec![id.as_str()]);
        world.aws(
            Service::AutoScaling,
            "EnterStandby",
            standby.clone().with("ShouldDecrementDesiredCapacity", false),
        )?;
        world.run_for(TimeDelta::minutes(10)).await?;
        set_image(&world, &pool, NEW);
        let are_replaced = |world: &World| {
            let serving = world.in_service(&pool);
            let all = world.instances(&pool);
            serving.len() == 4
                && all.iter().filter(|own| serving.contains(&own.id)).all(|own| own.image == NEW)
        };
        world.run_until("the others are replaced", TimeDelta::hours(2), are_replaced).await?;
        let begun = starts(&world).len();
        cancel(&mut world, &pool).await?;
        world.aws(Service::AutoScaling, "ExitStandby", standby)?;
        for _ in 0..3 {
            world.rotate_token(&pool);
            world.kill_process();
            world.run_for(TimeDelta::hours(1)).await?;
        }
        ensure!(starts(&world).len() == begun, "{} starts ({data:?})", starts(&world).len());
        if world.in_service(&pool).contains(&id) {
            ensure!(world.says(&pool, UP_TO_DATE, "False", "InstanceRefreshFailed"), "{}", world.describe());
        } else {
            let told = message(&world, &pool, ROLLING_OUT);
            ensure!(told.contains("cancelled the instance refresh"), "{told}");
        }
        world.edit_pool(&pool, |pool| pool.spec.retry_token = Some("1".to_owned()));
        until_all(&mut world, &pool, 4, NEW).await?;
        world.finish()?;
    }
    Ok(())
}

/// Another strategy is another decision.
// Pains: W26
#[tokio::test(start_paused = true)]
async fn another_strategy_continues_after_a_cancellation() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 3, quick()).await?;
    set_image(&world, &pool, NEW);
    world.run_until("a refresh is under way", SOON, |world| starts(world).len() == 1).await?;
    world.run_for(TimeDelta::seconds(40)).await?;
    cancel(&mut world, &pool).await?;
    world.run_for(TimeDelta::hours(2)).await?;
    ensure!(starts(&world).len() == 1, "{} starts", starts(&world).len());
    world.edit_pool(&pool, |pool| {
        pool.spec.rollout.get_or_insert_default().strategy = None;
    });
    until_all(&mut world, &pool, 3, NEW).await?;
    ensure!(starts(&world).len() == 1, "{} starts", starts(&world).len());
    world.finish()
}
