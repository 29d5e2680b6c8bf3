//! Instance refreshes that do not go well, are overtaken by another wish, or outlive a process.

use anyhow::{Context, Result, ensure};
use capasg_api::{
    conditions::{ROLLING_OUT, UP_TO_DATE},
    names::{annotations, events},
    pool::{InstanceRefresh, OnRefreshFailure},
};
use capasg_fake_aws::{Effect, Fault, Outcome, Service};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt;

use crate::{
    SOON, changing_writes, group_params,
    refresh::{Data, NEW, OLD, done, message, quick, refreshed_pool, set_image, starts, statuses, until_all},
    some_of,
};

const NEWER: &str = "ami-0d1e2f3a";

/// With an alarm that fails it.
fn alarmed(on_failure: OnRefreshFailure) -> InstanceRefresh {
    InstanceRefresh { alarms: Some(vec!["errors".to_owned()]), on_failure: Some(on_failure), ..quick() }
}

fn alarm(world: &World, on: bool) {
    world.simulator.set_alarm(&world.scope(), "errors", on);
}

fn mark(world: &World, pool: &Pool) -> Option<String> {
    world.pool(pool)?.annotations().get(annotations::ROLLOUT_STOPPED).cloned()
}

async fn under_way(world: &mut World, count: usize) -> Result<()> {
    world.run_until("a refresh is under way", SOON, |world| starts(world).len() == count).await?;
    world.run_for(TimeDelta::seconds(40)).await
}

/// A refresh that fails is told once, in AWS's words, and never repeated by itself; a person lets it go on.
// Pains: W26
#[tokio::test(start_paused = true)]
async fn a_failed_refresh_is_not_repeated_without_a_request() -> Result<()> {
    for data in [Data::Fixed, Data::Rotating] {
        let (mut world, pool) =
            refreshed_pool(Setup::default(), data, 3, alarmed(OnRefreshFailure::Stop)).await?;
        set_image(&world, &pool, NEW);
        under_way(&mut world, 1).await?;
        alarm(&world, true);
        world
            .run_until("it is told", SOON, |world| {
                world.says(&pool, UP_TO_DATE, "False", "InstanceRefreshFailed")
            })
            .await?;
        let told = message(&world, &pool, UP_TO_DATE);
        ensure!(told.contains("Failed: Alarm errors went into the ALARM state"), "{told}");
        ensure!(mark(&world, &pool).is_some());
        ensure!(world.events(events::ROLLOUT_STOPPED).len() == 1);
        // What AWS has begun is drained all the same.
        world
            .run_until("nothing drains any more", SOON, |world| {
                world.says(&pool, ROLLING_OUT, "False", "NotRollingOut")
            })
            .await?;
        for _ in 0..3 {
            world.rotate_token(&pool);
            world.kill_process();
            world.run_for(TimeDelta::hours(1)).await?;
        }
        ensure!(starts(&world).len() == 1, "{} starts ({data:?})", starts(&world).len());
        ensure!(world.events(events::ROLLOUT_STOPPED).len() == 1, "told once");
        // The alarm is still on: it fails once more, and stops once more.
        world.edit_pool(&pool, |pool| {
            pool.annotations_mut().remove(annotations::ROLLOUT_STOPPED);
        });
        world.run_until("it is tried again", SOON, |world| starts(world).len() == 2).await?;
        world.run_until("it is told again", SOON, |world| mark(world, &pool).is_some()).await?;
        alarm(&world, false);
        world.run_for(TimeDelta::hours(1)).await?;
        ensure!(starts(&world).len() == 2, "{data:?}");
        world.edit_pool(&pool, |pool| pool.spec.retry_token = Some("1".to_owned()));
        until_all(&mut world, &pool, 3, NEW).await?;
        ensure!(starts(&world).len() == 3 && mark(&world, &pool).is_none(), "{data:?}");
        world.finish()?;
    }
    Ok(())
}

/// AWS takes back what it replaced; the pool says so, and stays as it was until the spec changes.
// Pains: W7
#[tokio::test(start_paused = true)]
async fn a_failed_refresh_is_rolled_back_by_aws() -> Result<()> {
    let (mut world, pool) =
        refreshed_pool(Setup::default(), Data::Fixed, 3, alarmed(OnRefreshFailure::RollBack)).await?;
    set_image(&world, &pool, NEW);
    under_way(&mut world, 1).await?;
    ensure!(starts(&world)[0].params["Preferences"]["AutoRollback"] == "true");
    world.run_for(TimeDelta::seconds(40)).await?;
    alarm(&world, true);
    world
        .run_until("it is told", TimeDelta::hours(1), |world| {
            world.says(&pool, UP_TO_DATE, "False", "RolledBack")
        })
        .await?;
    ensure!(world.instances(&pool).iter().all(|one| one.image == OLD), "all is as it was");
    ensure!(world.events(events::ROLLOUT_ROLLED_BACK).len() == 1);
    ensure!(message(&world, &pool, UP_TO_DATE).contains("Alarm errors"));
    world.run_for(TimeDelta::hours(2)).await?;
    ensure!(starts(&world).len() == 1);
    alarm(&world, false);
    set_image(&world, &pool, NEWER);
    until_all(&mut world, &pool, 3, NEWER).await?;
    ensure!(starts(&world).len() == 2 && mark(&world, &pool).is_none());
    world.finish()
}

/// A change in the middle: the refresh for the older wish ends, and one for the newest follows.
// Pains: P10
#[tokio::test(start_paused = true)]
async fn a_change_during_a_refresh_is_never_lost() -> Result<()> {
    for data in [Data::Fixed, Data::Rotating] {
        for seed in 0..3 {
            let (mut world, pool) = refreshed_pool(Setup::seed(seed), data, 4, quick()).await?;
            set_image(&world, &pool, NEW);
            under_way(&mut world, 1).await?;
            set_image(&world, &pool, NEWER);
            world.run_for(TimeDelta::seconds(3)).await?;
            if seed == 1 {
                world.kill_process();
            }
            until_all(&mut world, &pool, 4, NEWER).await?;
            ensure!(done(&world, "CancelInstanceRefresh").len() == 1, "{data:?} {seed}");
            ensure!(starts(&world).len() == 2, "{data:?} {seed}: {:?}", starts(&world).len());
            ensure!(mark(&world, &pool).is_none());
            world.finish()?;
        }
    }
    Ok(())
}

/// A change that is taken back in the middle is rolled back by AWS, and by nobody twice.
// Pains: P10
#[tokio::test(start_paused = true)]
async fn a_change_reverted_during_a_refresh_is_rolled_back() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 4, quick()).await?;
    set_image(&world, &pool, NEW);
    under_way(&mut world, 1).await?;
    set_image(&world, &pool, OLD);
    until_all(&mut world, &pool, 4, OLD).await?;
    ensure!(done(&world, "RollbackInstanceRefresh").len() == 1);
    ensure!(starts(&world).len() == 1 && done(&world, "CancelInstanceRefresh").is_empty());
    // The same wish comes back: a person's edit begins anew.
    set_image(&world, &pool, NEW);
    until_all(&mut world, &pool, 4, NEW).await?;
    ensure!(starts(&world).len() == 2 && mark(&world, &pool).is_none());
    world.finish()
}

/// Where AWS has no way back, the refresh is cancelled and another brings the old state back.
// Pains: P10
#[tokio::test(start_paused = true)]
async fn a_reverted_change_without_a_rollback_target_is_refreshed() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Rotating, 4, quick()).await?;
    set_image(&world, &pool, NEW);
    under_way(&mut world, 1).await?;
    set_image(&world, &pool, OLD);
    until_all(&mut world, &pool, 4, OLD).await?;
    ensure!(done(&world, "RollbackInstanceRefresh").is_empty());
    world.finish()
}

/// Tags and new types in the middle roll nothing and cancel nothing; AWS takes them once it may.
// Rules: H2
// Pains: P4
#[tokio::test(start_paused = true)]
async fn a_change_that_rolls_nothing_does_not_disturb_a_refresh() -> Result<()> {
    for data in [Data::Fixed, Data::Rotating] {
        let (mut world, pool) = refreshed_pool(Setup::default(), data, 3, quick()).await?;
        set_image(&world, &pool, NEW);
        under_way(&mut world, 1).await?;
        world.edit_pool(&pool, |pool| {
            pool.spec.tags = [("team".to_owned(), "a".to_owned())].into();
            pool.spec.max_size = Some(9);
        });
        until_all(&mut world, &pool, 3, NEW).await?;
        ensure!(starts(&world).len() == 1 && done(&world, "CancelInstanceRefresh").is_empty(), "{data:?}");
        let refused = world.calls_since(0, Some("UpdateAutoScalingGroup"));
        ensure!(refused.iter().all(|call| call.outcome == Outcome::Ok), "an update was refused ({data:?})");
        world.run_for(TimeDelta::minutes(5)).await?;
        let newest = world.dump().templates[0].versions.keys().next_back().copied().context("a version")?;
        ensure!(world.group(&pool).is_some_and(|group| group.template.1 == newest.to_string()), "{data:?}");
        world.finish()?;
    }
    Ok(())
}

/// A status that AWS comes up with later counts as unfinished: nothing is started or ended beside it.
// Pains: W9
#[tokio::test(start_paused = true)]
async fn an_unknown_refresh_status_counts_as_unfinished() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 3, quick()).await?;
    set_image(&world, &pool, NEW);
    under_way(&mut world, 1).await?;
    let group = world.group_name(&pool);
    world.simulator.disguise_refresh(&world.scope(), &group, Some("Levitating"));
    set_image(&world, &pool, NEWER);
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(statuses(&world, &pool) == ["Levitating"]);
    ensure!(starts(&world).len() == 1 && done(&world, "CancelInstanceRefresh").is_empty());
    ensure!(message(&world, &pool, ROLLING_OUT).contains("Levitating"));
    world.simulator.disguise_refresh(&world.scope(), &group, None);
    until_all(&mut world, &pool, 3, NEWER).await?;
    world.finish()
}

/// Somebody cancels it in AWS: that is meant, and not undone.
// Pains: W26
#[tokio::test(start_paused = true)]
async fn a_refresh_cancelled_by_another_actor_stays_cancelled() -> Result<()> {
    for data in [Data::Fixed, Data::Rotating] {
        let (mut world, pool) = refreshed_pool(Setup::default(), data, 4, quick()).await?;
        set_image(&world, &pool, NEW);
        under_way(&mut world, 1).await?;
        world.aws(Service::AutoScaling, "CancelInstanceRefresh", group_params(&world, &pool))?;
        world.run_until("it is told", SOON, |world| mark(world, &pool).is_some()).await?;
        ensure!(message(&world, &pool, UP_TO_DATE).contains("Cancelled due to user request"));
        world.kill_process();
        world.run_for(TimeDelta::hours(2)).await?;
        ensure!(starts(&world).len() == 1, "{data:?}");
        set_image(&world, &pool, NEWER);
        until_all(&mut world, &pool, 4, NEWER).await?;
        world.finish()?;
    }
    Ok(())
}

/// AWS refuses to start one: told in its words, tried again slowly, and at once when a person changes something.
// Rules: I4
#[tokio::test(start_paused = true)]
async fn a_rejected_refresh_start_is_reported_and_retried_rarely() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 2, quick()).await?;
    let effect = Effect::Error {
        status: 400,
        code: "ValidationError".to_owned(),
        message: "not like this".to_owned(),
    };
    world.fault(Fault { times: None, ..Fault::new("StartInstanceRefresh", effect) });
    set_image(&world, &pool, NEW);
    world
        .run_until("it is told", SOON, |world| message(world, &pool, "GroupReady").contains("not like this"))
        .await?;
    world.run_for(TimeDelta::hours(1)).await?;
    let tries = world.calls_since(0, Some("StartInstanceRefresh")).len();
    ensure!((2..=12).contains(&tries), "{tries} tries in an hour");
    world.simulator.clear_faults(None);
    until_all(&mut world, &pool, 2, NEW).await?;
    world.finish()
}

/// One refresh, and everything new, whenever the process dies: state is AWS's own.
async fn survive(data: Data, seed: u64, every: usize) -> Result<()> {
    let roll = async |world: &mut World, pool: &Pool| -> Result<()> {
        set_image(world, pool, NEW);
        until_all(world, pool, 3, NEW).await
    };
    let writes = {
        let (mut world, pool) = refreshed_pool(Setup::seed(seed), data, 3, quick()).await?;
        let before = world.journal.len();
        roll(&mut world, &pool).await?;
        changing_writes(&world, before)
    };
    ensure!(writes.len() > 10, "only {} writes: what is looped over?", writes.len());
    for write in some_of(writes, every) {
        let (mut world, pool) = refreshed_pool(Setup::seed(seed), data, 3, quick()).await?;
        world.crash_after(write);
        roll(&mut world, &pool)
            .await
            .with_context(|| format!("crash after write {write}, {data:?}, seed {seed}"))?;
        ensure!(world.restarts == 1, "it crashed {} times", world.restarts);
        ensure!(
            starts(&world).len() == 1,
            "crash after write {write}, {data:?}: {} starts",
            starts(&world).len()
        );
        world.finish()?;
    }
    Ok(())
}

// Pains: W8
#[tokio::test(start_paused = true)]
async fn a_refresh_survives_a_crash_after_any_write() -> Result<()> {
    survive(Data::Fixed, 1, 2).await
}

// Pains: W8
#[tokio::test(start_paused = true)]
async fn a_refresh_with_token_rotations_survives_a_crash_after_any_write() -> Result<()> {
    survive(Data::Rotating, 2, 3).await
}

/// Reads lag, and a reply is lost: still one refresh.
// Pains: W8
#[tokio::test(start_paused = true)]
async fn lost_replies_and_stale_reads_start_no_second_refresh() -> Result<()> {
    for data in [Data::Fixed, Data::Rotating] {
        let mut setup = Setup::seed(5);
        setup.settings.read_lag_millis = 3_000;
        setup.settings.read_lag_jitter = true;
        let (mut world, pool) = refreshed_pool(setup, data, 3, quick()).await?;
        world.fault(Fault::new("StartInstanceRefresh", Effect::LoseReply));
        set_image(&world, &pool, NEW);
        until_all(&mut world, &pool, 3, NEW).await?;
        world.run_for(TimeDelta::hours(1)).await?;
        ensure!(statuses(&world, &pool) == ["Successful"], "{:?} ({data:?})", statuses(&world, &pool));
        world.finish()?;
    }
    Ok(())
}
