//! Instance refreshes and what bounds every rollout: windows, pauses, budgets and previews hold for AWS as for ourselves,
//! and an end that we brought about is never taken for a failure.

use anyhow::{Context, Result, ensure};
use capasg_api::{
    ASGMachinePoolSpec,
    conditions::{READY, ROLLING_OUT, STALLED, UP_TO_DATE},
    names::{TERMINATE_HOOK, annotations, events},
    pool::{
        ChangePolicy, DeletionPolicy, Disruption, DisruptionWindow, InstanceRefresh, OnRefreshFailure,
        RolloutMode, RolloutStatus, RolloutStrategy, RolloutType, RolloutWait,
    },
};
use capasg_fake_aws::{Effect, Fault, LogEntry, Service};
use capasg_simulation::{Drain, Pool, Setup, World};
use chrono::{TimeDelta, Timelike};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use crate::{
    SOON, group_params,
    refresh::{
        Data, NEW, OLD, done, message, quick, refreshed, refreshed_pool, set_image, starts, statuses,
        until_all,
    },
};

const NEWER: &str = "ami-0d1e2f3a";

fn most(world: &World, pool: &Pool, disrupted: i32) {
    world.edit_pool(pool, |pool| {
        pool.spec.disruption.get_or_insert_default().max_disrupted = Some(IntOrString::Int(disrupted));
    });
}

fn mode(world: &World, pool: &Pool, mode: RolloutMode) {
    world.edit_pool(pool, |pool| pool.spec.rollout.get_or_insert_default().mode = Some(mode));
}

/// Each night from two o'clock, for an hour.
fn at_night(spec: &mut ASGMachinePoolSpec) {
    let window = DisruptionWindow {
        schedule: "0 2 * * *".to_owned(),
        duration_seconds: 3600,
        ..DisruptionWindow::default()
    };
    spec.disruption = Some(Disruption { windows: vec![window], ..Disruption::default() });
}

fn told(world: &World, pool: &Pool) -> Option<RolloutStatus> {
    world.pool(pool)?.status.clone()?.rollout
}

fn is_stopped(world: &World, pool: &Pool) -> bool {
    world.pool(pool).is_some_and(|pool| pool.annotations().contains_key(annotations::ROLLOUT_STOPPED))
}

/// How many run the image and serve.
fn serving(world: &World, pool: &Pool, image: &str) -> usize {
    let serving = world.in_service(pool);
    world.instances(pool).iter().filter(|one| one.image == image && serving.contains(&one.id)).count()
}

fn kept(start: &LogEntry) -> Option<&str> {
    start.params["Preferences"]["MinHealthyPercentage"].as_str()
}

async fn until_under_way(world: &mut World, count: usize) -> Result<()> {
    world.run_until("a refresh is under way", SOON, |world| starts(world).len() == count).await
}

/// A window closes in the middle: what drains goes on, nothing more is taken away, and the next one does the rest. A
/// manager that died meanwhile does the same, and nobody takes the end for a failure.
// Pains: P54, W8
#[tokio::test(start_paused = true)]
async fn a_closing_window_cancels_a_refresh_and_the_next_continues() -> Result<()> {
    for dies in [false, true] {
        let mut world = World::new(Setup::seed(7));
        let pool = crate::refresh::add(&mut world, Data::Fixed, 4, |spec| {
            refreshed(spec, quick());
            at_night(spec);
        })
        .await?;
        set_image(&world, &pool, NEW);
        world
            .run_until("it waits", SOON, |world| world.says(&pool, UP_TO_DATE, "False", "WaitingForWindow"))
            .await?;
        // One after another, and two are done when the window closes.
        world.set_drain_seconds(1500);
        world.run_until("it opens", TimeDelta::hours(3), |world| starts(world).len() == 1).await?;
        ensure!(world.now().hour() == 2, "{}", world.now());
        world
            .run_until("it closes", TimeDelta::minutes(70), |world| {
                world.says(&pool, UP_TO_DATE, "False", "WaitingForWindow")
            })
            .await?;
        let closed = world.now();
        ensure!((closed.hour(), closed.minute()) == (3, 0), "{closed}");
        if dies {
            world.kill_process();
        }
        world.run_for(TimeDelta::hours(1)).await?;
        let left = serving(&world, &pool, OLD);
        ensure!((1..4).contains(&left), "{left} are left\n{}", world.describe());
        ensure!(statuses(&world, &pool) == ["Cancelled"], "{:?}", statuses(&world, &pool));
        ensure!(done(&world, "CancelInstanceRefresh").len() == 1);
        let waits = told(&world, &pool).context("a rollout")?;
        ensure!(waits.waiting_for == Some(RolloutWait::Window) && waits.next_window.is_some(), "{waits:?}");
        ensure!(waits.ended_refresh_id.is_some(), "{waits:?}");
        ensure!(world.says(&pool, ROLLING_OUT, "False", "NotRollingOut"), "{}", world.describe());
        let (mark, writes) = (world.mark(), world.journal.len());
        world.run_for(TimeDelta::hours(10)).await?;
        ensure!(serving(&world, &pool, OLD) == left, "nothing is replaced while it is closed");
        ensure!(world.mutations_since(mark).is_empty() && world.journal.since(writes).is_empty());
        world.set_drain_seconds(5);
        world.run_for(TimeDelta::hours(11)).await?;
        until_all(&mut world, &pool, 4, NEW).await?;
        ensure!(starts(&world).len() == 2 && !is_stopped(&world, &pool), "{}", world.describe());
        ensure!(world.events(events::ROLLOUT_STOPPED).is_empty());
        ensure!(world.events(events::INSTANCE_REFRESH_STARTED).len() == 2);
        ensure!(world.events(events::INSTANCE_REFRESH_CANCELLATION_REQUESTED).len() == 1);
        world.finish()?;
    }
    Ok(())
}

/// Tokens make versions, and AWS replaces every instance whose version is not the group's: the next window would begin
/// with what this one replaced. So nothing is begun, and the pool says what to change.
#[tokio::test(start_paused = true)]
async fn windows_are_refused_for_refreshes_if_bootstrap_data_rotate() -> Result<()> {
    let mut world = World::new(Setup::seed(7));
    let pool = crate::refresh::add(&mut world, Data::Rotating, 3, |spec| {
        refreshed(spec, quick());
        at_night(spec);
    })
    .await?;
    set_image(&world, &pool, NEW);
    world
        .run_until("it is refused", SOON, |world| {
            world.says(&pool, UP_TO_DATE, "False", "WindowsNotSupported")
        })
        .await?;
    let told = message(&world, &pool, UP_TO_DATE);
    ensure!(told.contains("Remove spec.disruption.windows, or set spec.rollout.strategy.type"), "{told}");
    ensure!(world.says(&pool, READY, "False", "NotReady") && world.says(&pool, STALLED, "True", "Stalled"));
    world.run_for(TimeDelta::hours(30)).await?;
    ensure!(starts(&world).is_empty() && serving(&world, &pool, OLD) == 3, "{}", world.describe());
    world.edit_pool(&pool, |pool| pool.spec.disruption = None);
    until_all(&mut world, &pool, 3, NEW).await?;
    ensure!(starts(&world).len() == 1 && !is_stopped(&world, &pool), "{}", world.describe());
    world.finish()
}

/// `rollout.mode: Paused` in the middle is the same, at once and for as long as it lasts.
// Pains: P54
#[tokio::test(start_paused = true)]
async fn a_pause_cancels_a_refresh_and_the_rollout_continues_after_it() -> Result<()> {
    for data in [Data::Fixed, Data::Rotating] {
        let (mut world, pool) = refreshed_pool(Setup::default(), data, 4, quick()).await?;
        world.set_drain_seconds(120);
        set_image(&world, &pool, NEW);
        until_under_way(&mut world, 1).await?;
        world.run_until("one is new", SOON, |world| serving(world, &pool, NEW) == 1).await?;
        mode(&world, &pool, RolloutMode::Paused);
        world
            .run_until("it is cancelled", TimeDelta::minutes(10), |world| {
                statuses(world, &pool) == ["Cancelled"]
                    && world.says(&pool, UP_TO_DATE, "False", "RolloutPaused")
                    && world.says(&pool, ROLLING_OUT, "False", "NotRollingOut")
            })
            .await?;
        let left = serving(&world, &pool, OLD);
        world.kill_process();
        world.run_for(TimeDelta::hours(5)).await?;
        ensure!(serving(&world, &pool, OLD) == left && starts(&world).len() == 1, "{data:?}");
        ensure!(told(&world, &pool).is_some_and(|told| told.waiting_for == Some(RolloutWait::Resume)));
        world.kill_process();
        mode(&world, &pool, RolloutMode::Automatic);
        until_all(&mut world, &pool, 4, NEW).await?;
        ensure!(starts(&world).len() == 2 && !is_stopped(&world, &pool), "{data:?}");
        world.finish()?;
    }
    Ok(())
}

/// A pause that is taken back before AWS was told, or whose call was lost, is no failure either.
// Pains: W8
#[tokio::test(start_paused = true)]
async fn a_pause_that_is_reverted_at_any_time_is_no_failure() -> Result<()> {
    for seconds in [0, 1, 2, 3, 5, 8, 13, 21, 34] {
        let (mut world, pool) = refreshed_pool(Setup::seed(3), Data::Fixed, 3, quick()).await?;
        world.set_drain_seconds(60);
        set_image(&world, &pool, NEW);
        until_under_way(&mut world, 1).await?;
        world.run_for(TimeDelta::seconds(30)).await?;
        if seconds % 2 == 0 {
            world.fault(Fault::new("CancelInstanceRefresh", Effect::LoseReply));
        }
        mode(&world, &pool, RolloutMode::Paused);
        world.run_for(TimeDelta::seconds(seconds)).await?;
        mode(&world, &pool, RolloutMode::Automatic);
        until_all(&mut world, &pool, 3, NEW).await?;
        ensure!(!is_stopped(&world, &pool) && starts(&world).len() <= 2, "after {seconds} s");
        world.finish()?;
    }
    Ok(())
}

/// What was started for few replicas may take away too many of many: it is cancelled, and another one, with the budget of
/// now, does the rest.
// Pains: P54
#[tokio::test(start_paused = true)]
async fn more_replicas_or_a_smaller_budget_restart_a_refresh() -> Result<()> {
    // AWS goes on while nodes drain, and waits for the new ones to warm up.
    let preferences = InstanceRefresh {
        min_healthy_percentage: Some(0),
        instance_warmup_seconds: Some(120),
        ..InstanceRefresh::default()
    };
    for rises in [true, false] {
        let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 4, preferences.clone()).await?;
        most(&world, &pool, 2);
        set_image(&world, &pool, NEW);
        until_under_way(&mut world, 1).await?;
        ensure!(kept(&starts(&world)[0]) == Some("50"));
        world.run_for(TimeDelta::seconds(30)).await?;
        let replicas = if rises {
            world.scale(&pool, 12);
            12
        } else {
            most(&world, &pool, 1);
            4
        };
        until_under_way(&mut world, 2).await?;
        ensure!(kept(&starts(&world)[1]) == Some(if rises { "84" } else { "75" }));
        let mut fewest = replicas;
        let all = |world: &World| crate::refresh::is_all(world, &pool, replicas, NEW);
        world.run_until("all have come", SOON, |world| world.in_service(&pool).len() == replicas).await?;
        world
            .run_until("the image is everywhere", TimeDelta::hours(2), |world| {
                fewest = fewest.min(world.in_service(&pool).len());
                all(world)
            })
            .await?;
        ensure!(fewest >= replicas - if rises { 2 } else { 1 }, "{fewest} of {replicas} were left");
        ensure!(starts(&world).len() == 2 && !is_stopped(&world, &pool));
        ensure!(done(&world, "CancelInstanceRefresh").len() == 1);
        world.finish()?;
    }
    Ok(())
}

/// Another actor cancels a refresh just before we do: it was not ended by us, so that it is not repeated.
// Pains: W26
#[tokio::test(start_paused = true)]
async fn a_refresh_that_another_actor_cancels_just_before_us_is_not_repeated() -> Result<()> {
    for millis in [0, 500, 1_500, 2_500, 3_500] {
        let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 5, quick()).await?;
        set_image(&world, &pool, NEW);
        until_under_way(&mut world, 1).await?;
        world.run_for(TimeDelta::milliseconds(millis)).await?;
        world.aws(Service::AutoScaling, "CancelInstanceRefresh", group_params(&world, &pool))?;
        most(&world, &pool, 1);
        world.scale(&pool, 18);
        world.run_for(TimeDelta::minutes(20)).await?;
        let cancelled = done(&world, "CancelInstanceRefresh").len();
        ensure!(cancelled == 1 && starts(&world).len() == 1, "{millis} ms: {cancelled} were cancelled");
        ensure!(is_stopped(&world, &pool), "{millis} ms: {}", world.describe());
        world.finish()?;
    }
    Ok(())
}

/// A budget that allows more than the refresh takes, or a replica more, cancels nothing.
// Pains: P54
#[tokio::test(start_paused = true)]
async fn a_budget_change_that_the_refresh_meets_does_not_disturb_it() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 4, quick()).await?;
    most(&world, &pool, 2);
    world.set_drain_seconds(60);
    set_image(&world, &pool, NEW);
    until_under_way(&mut world, 1).await?;
    most(&world, &pool, 1);
    world.scale(&pool, 5);
    world.run_for(TimeDelta::seconds(60)).await?;
    most(&world, &pool, 4);
    until_all(&mut world, &pool, 5, NEW).await?;
    ensure!(starts(&world).len() == 1 && done(&world, "CancelInstanceRefresh").is_empty());
    world.finish()
}

/// Going back and forth: each refresh is ended for the other wish, and none of these ends stops the rollout.
// Pains: P10, W26
#[tokio::test(start_paused = true)]
async fn a_restored_spec_is_not_blocked_by_our_own_cancellation() -> Result<()> {
    for (data, other) in
        [(Data::Fixed, NEWER), (Data::Rotating, NEWER), (Data::Fixed, OLD), (Data::Rotating, OLD)]
    {
        for seconds in [12, 16, 25, 40] {
            let (mut world, pool) = refreshed_pool(Setup::seed(2), data, 4, quick()).await?;
            world.set_drain_seconds(60);
            set_image(&world, &pool, NEW);
            until_under_way(&mut world, 1).await?;
            world.run_for(TimeDelta::seconds(40)).await?;
            set_image(&world, &pool, other);
            world.run_for(TimeDelta::seconds(seconds)).await?;
            set_image(&world, &pool, NEW);
            until_all(&mut world, &pool, 4, NEW).await?;
            ensure!(!is_stopped(&world, &pool), "{data:?}, {other} after {seconds} s");
            ensure!(world.events(events::ROLLOUT_STOPPED).is_empty(), "{data:?}, {other} after {seconds} s");
            ensure!(world.events(events::ROLLOUT_ROLLED_BACK).is_empty(), "{data:?}, {other}, {seconds} s");
            world.finish()?;
        }
    }
    Ok(())
}

/// A preview starts nothing and ends nothing: what AWS does it goes on with, and the pool says so.
// Pains: P54
#[tokio::test(start_paused = true)]
async fn a_preview_starts_no_refresh_and_cancels_none() -> Result<()> {
    for data in [Data::Fixed, Data::Rotating] {
        let (mut world, pool) = refreshed_pool(Setup::default(), data, 3, quick()).await?;
        let policy = |world: &World, policy| {
            world.edit_pool(&pool, |pool| pool.spec.change_policy = Some(policy));
        };
        world.set_drain_seconds(120);
        set_image(&world, &pool, NEW);
        until_under_way(&mut world, 1).await?;
        world.run_for(TimeDelta::seconds(30)).await?;
        policy(&world, ChangePolicy::Preview);
        set_image(&world, &pool, NEWER);
        world
            .run_until("it says so", SOON, |world| {
                message(world, &pool, ROLLING_OUT).contains("spec.changePolicy")
            })
            .await?;
        world
            .run_until("AWS is done", TimeDelta::hours(1), |world| statuses(world, &pool) == ["Successful"])
            .await?;
        world.run_for(TimeDelta::hours(2)).await?;
        ensure!(starts(&world).len() == 1 && done(&world, "CancelInstanceRefresh").is_empty(), "{data:?}");
        ensure!(done(&world, "RollbackInstanceRefresh").is_empty(), "{data:?}");
        ensure!(world.instances(&pool).iter().all(|one| one.image == NEW), "{data:?}");
        world.set_drain_seconds(5);
        policy(&world, ChangePolicy::Apply);
        until_all(&mut world, &pool, 3, NEWER).await?;
        ensure!(starts(&world).len() == 2 && !is_stopped(&world, &pool), "{data:?}");
        world.finish()?;
    }
    Ok(())
}

/// A refresh that goes back goes back, whatever closes: a pool half-way is the worse state.
// Pains: W7
#[tokio::test(start_paused = true)]
async fn a_pause_does_not_cancel_a_rollback() -> Result<()> {
    let preferences = InstanceRefresh {
        alarms: Some(vec!["errors".to_owned()]),
        on_failure: Some(OnRefreshFailure::RollBack),
        ..quick()
    };
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 4, preferences).await?;
    world.set_drain_seconds(60);
    set_image(&world, &pool, NEW);
    until_under_way(&mut world, 1).await?;
    world.run_until("one is new", SOON, |world| serving(world, &pool, NEW) == 1).await?;
    world.simulator.set_alarm(&world.scope(), "errors", true);
    world.run_until("it goes back", SOON, |world| statuses(world, &pool) == ["RollbackInProgress"]).await?;
    // A listing from before is used for five seconds.
    world.run_for(TimeDelta::seconds(6)).await?;
    mode(&world, &pool, RolloutMode::Paused);
    world
        .run_until("it is back", TimeDelta::hours(1), |world| {
            statuses(world, &pool) == ["RollbackSuccessful"] && serving(world, &pool, OLD) == 4
        })
        .await?;
    ensure!(done(&world, "CancelInstanceRefresh").is_empty());
    mode(&world, &pool, RolloutMode::Automatic);
    world.run_until("it is told", SOON, |world| world.says(&pool, UP_TO_DATE, "False", "RolledBack")).await?;
    world.run_for(TimeDelta::hours(2)).await?;
    ensure!(starts(&world).len() == 1 && is_stopped(&world, &pool));
    world.finish()
}

/// A change that is taken back while no window is open is not rolled back then: that would replace nodes, too.
// Pains: P54
#[tokio::test(start_paused = true)]
async fn a_change_reverted_in_a_pause_replaces_nothing_during_it() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 4, quick()).await?;
    world.set_drain_seconds(60);
    set_image(&world, &pool, NEW);
    until_under_way(&mut world, 1).await?;
    world.run_until("one is new", SOON, |world| serving(world, &pool, NEW) == 1).await?;
    world.edit_pool(&pool, |pool| {
        pool.spec.rollout.get_or_insert_default().mode = Some(RolloutMode::Paused);
        pool.spec.machine.image.id = Some(OLD.to_owned());
    });
    world.run_for(TimeDelta::minutes(10)).await?;
    let new = serving(&world, &pool, NEW);
    world.run_for(TimeDelta::hours(2)).await?;
    ensure!(new > 0 && serving(&world, &pool, NEW) == new, "{new}\n{}", world.describe());
    ensure!(done(&world, "RollbackInstanceRefresh").is_empty() && starts(&world).len() == 1);
    mode(&world, &pool, RolloutMode::Automatic);
    until_all(&mut world, &pool, 4, OLD).await?;
    ensure!(!is_stopped(&world, &pool));
    world.finish()
}

/// Somebody takes our hook away: it is back before AWS ends anything for us.
// Pains: P16
#[tokio::test(start_paused = true)]
async fn a_deleted_hook_is_restored_before_a_refresh_starts() -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 3, quick()).await?;
    world.run_for(TimeDelta::minutes(10)).await?;
    let hook = group_params(&world, &pool).with("LifecycleHookName", TERMINATE_HOOK);
    world.aws(Service::AutoScaling, "DeleteLifecycleHook", hook)?;
    let mark = world.mark();
    let before: Vec<String> = world.machines(&pool).into_keys().collect();
    set_image(&world, &pool, NEW);
    until_all(&mut world, &pool, 3, NEW).await?;
    let calls = world.mutations_since(mark);
    let place = |action: &str| calls.iter().position(|call| call.action == action);
    let (put, start) = (place("PutLifecycleHook"), place("StartInstanceRefresh"));
    ensure!(put.is_some() && put < start, "{put:?} {start:?}");
    for machine in before {
        ensure!(matches!(world.drains(&machine)[..], [Drain::Done(_)]), "{machine} was drained");
    }
    world.finish()
}

/// Nodes of the new image never join, and the budget is smaller than their number: the correction goes through.
// Pains: P54, W26
#[tokio::test(start_paused = true)]
async fn a_refresh_after_a_failed_one_ignores_the_budget() -> Result<()> {
    let preferences = InstanceRefresh { alarms: Some(vec!["errors".to_owned()]), ..quick() };
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 4, preferences).await?;
    most(&world, &pool, 1);
    let old = world.in_service(&pool);
    set_image(&world, &pool, NEW);
    until_under_way(&mut world, 1).await?;
    world
        .run_until("two are new", SOON, |world| {
            for id in world.in_service(&pool).difference(&old) {
                world.mute(id, true);
            }
            serving(world, &pool, NEW) >= 2
        })
        .await?;
    world.simulator.set_alarm(&world.scope(), "errors", true);
    world.run_until("it is told", SOON, |world| is_stopped(world, &pool)).await?;
    world.run_for(TimeDelta::minutes(10)).await?;
    world.simulator.set_alarm(&world.scope(), "errors", false);
    set_image(&world, &pool, NEWER);
    until_all(&mut world, &pool, 4, NEWER).await?;
    ensure!(starts(&world).len() == 2 && !is_stopped(&world, &pool));
    world.finish()
}

/// A pool that is let go in the middle leaves no refresh behind that would end nodes undrained.
// Pains: P16
#[tokio::test(start_paused = true)]
async fn orphaning_a_pool_cancels_its_refresh() -> Result<()> {
    orphaned_during_a_refresh(None).await
}

/// The same, after the strategy has changed meanwhile.
// Pains: P16
#[tokio::test(start_paused = true)]
async fn orphaning_a_pool_cancels_the_refresh_of_an_earlier_strategy() -> Result<()> {
    orphaned_during_a_refresh(Some(RolloutType::RollingUpdate)).await
}

async fn orphaned_during_a_refresh(strategy: Option<RolloutType>) -> Result<()> {
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 4, quick()).await?;
    world.edit_pool(&pool, |pool| pool.spec.deletion_policy = Some(DeletionPolicy::Orphan));
    world.set_drain_seconds(60);
    let before = world.machines(&pool);
    set_image(&world, &pool, NEW);
    until_under_way(&mut world, 1).await?;
    let is_going = |machine: &capasg_api::capi::Machine| machine.metadata.deletion_timestamp.is_some();
    world
        .run_until("one drains", SOON, |world| world.machines(&pool).values().any(|one| is_going(one)))
        .await?;
    let drains: Vec<String> = world
        .machines(&pool)
        .into_iter()
        .filter(|(_, machine)| is_going(machine))
        .map(|(name, _)| name)
        .collect();
    ensure!(!drains.is_empty() && drains.len() < before.len(), "{drains:?}");
    if let Some(strategy) = strategy {
        let strategy = RolloutStrategy { type_: Some(strategy), ..RolloutStrategy::default() };
        world.edit_pool(&pool, |pool| {
            if let Some(rollout) = &mut pool.spec.rollout {
                rollout.strategy = Some(strategy);
            }
        });
        world.run_for(TimeDelta::seconds(5)).await?;
    }
    let group = group_params(&world, &pool);
    world.delete_machine_pool(&pool);
    world.run_until("the pool is gone", SOON, |world| world.pool(&pool).is_none()).await?;
    let reply = world.aws(Service::AutoScaling, "DescribeInstanceRefreshes", group)?;
    let newest = reply.items_of("InstanceRefreshes").first().and_then(|one| one.text_of("Status"));
    ensure!(newest == Some("Cancelled"), "{newest:?}");
    for machine in drains {
        ensure!(matches!(world.drains(&machine)[..], [Drain::Done(_)]), "{machine} was drained");
    }
    Ok(())
}

/// AWS names another instance at each look; the status does not change with it.
// Rules: I4
#[tokio::test(start_paused = true)]
async fn example_instances_in_a_refresh_reason_are_not_reported() -> Result<()> {
    let preferences = InstanceRefresh {
        instance_warmup_seconds: Some(1200),
        min_healthy_percentage: Some(0),
        ..InstanceRefresh::default()
    };
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 3, preferences).await?;
    set_image(&world, &pool, NEW);
    until_under_way(&mut world, 1).await?;
    let reason = |world: &World| -> Result<String> {
        let reply =
            world.aws(Service::AutoScaling, "DescribeInstanceRefreshes", group_params(world, &pool))?;
        let newest = reply.items_of("InstanceRefreshes").first().context("a refresh")?;
        Ok(newest.text_of("StatusReason").unwrap_or_default().to_owned())
    };
    world.run_until("they warm up", SOON, |world| serving(world, &pool, NEW) == 3).await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    let writes = world.journal.len();
    let before = reason(&world)?;
    ensure!(before.contains("For example"), "{before}");
    ensure!(message(&world, &pool, ROLLING_OUT).contains("Waiting for instances to warm up"));
    world.run_for(TimeDelta::seconds(730)).await?;
    ensure!(reason(&world)? != before, "the simulator names another one");
    ensure!(world.journal.since(writes).is_empty(), "{:?}", world.journal.since(writes));
    until_all(&mut world, &pool, 3, NEW).await?;
    world.finish()
}
