//! Windows, pauses, budgets, ages and requests: when outdated instances are replaced, and which.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use capasg_api::{
    ASGMachinePoolSpec,
    conditions::{ROLLING_OUT, UP_TO_DATE},
    names::annotations,
    pool::{Disruption, DisruptionWindow, Rollout, RolloutMode, RolloutWait},
};
use capasg_simulation::{Pool, Setup, World};
use capasg_test_objects::maximal_pool;
use chrono::{SecondsFormat, TimeDelta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use serde_json::Value;

use crate::{
    SOON, ended_since,
    rollout::{NEW_IMAGE, available, budget, roll, set_image},
    running, running_with,
};

/// Virtual time begins at midnight.
fn at_two(spec: &mut ASGMachinePoolSpec) {
    let window = DisruptionWindow {
        schedule: "0 2 * * *".to_owned(),
        duration_seconds: 3600,
        ..DisruptionWindow::default()
    };
    spec.disruption = Some(Disruption { windows: vec![window], ..Disruption::default() });
}

fn most(spec: &mut ASGMachinePoolSpec, disrupted: i32) {
    let max_disrupted = Some(IntOrString::Int(disrupted));
    spec.disruption = Some(Disruption { max_disrupted, ..Disruption::default() });
}

fn waiting_for(world: &World, pool: &Pool) -> Option<RolloutWait> {
    world.pool(pool)?.status.as_ref()?.rollout.as_ref()?.waiting_for
}

// Pains: P54, W27
#[tokio::test(start_paused = true)]
async fn a_change_waits_for_its_window_without_writes_and_rolls_out_in_it() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 3, at_two).await?;
    let mark = world.mark();
    set_image(&world, &pool, NEW_IMAGE);
    world
        .run_until("it waits", SOON, |world| world.says(&pool, UP_TO_DATE, "False", "WaitingForWindow"))
        .await?;
    let message = world.condition(&pool, UP_TO_DATE).context("UpToDate")?.message;
    ensure!(
        message
            == "3 of 3 instances are outdated (ImageChanged); the next window opens on Thu 1 Jan 2026 02:00 \
                Etc/UTC. To start now, edit spec.disruption.windows.",
        "{message}"
    );
    ensure!(waiting_for(&world, &pool) == Some(RolloutWait::Window));
    world.run_for(TimeDelta::minutes(5)).await?;
    let (writes, calls) = (world.journal.len(), world.mark());
    world.run_for(TimeDelta::minutes(60)).await?;
    ensure!(world.journal.since(writes).is_empty(), "{:?}", world.journal.since(writes));
    ensure!(world.mutations_since(calls).is_empty(), "{:?}", world.mutations_since(calls));
    ensure!(ended_since(&world, mark).is_empty() && world.instances(&pool).len() == 3);
    let opens = TimeDelta::minutes(125);
    world.run_until("it opens", opens, |world| world.says(&pool, ROLLING_OUT, "True", "RollingOut")).await?;
    ensure!(world.now().to_rfc3339_opts(SecondsFormat::Secs, true).contains("T02:00"), "{}", world.now());
    roll(&mut world, &pool, 3, NEW_IMAGE, 3, 4).await?;
    ensure!(ended_since(&world, mark).len() == 3, "each once");
    ensure!(world.pool(&pool).is_some_and(|p| p.status.as_ref().is_some_and(|s| s.rollout.is_none())));
    world.finish()
}

// Pains: P54
#[tokio::test(start_paused = true)]
async fn a_rollout_continues_in_the_next_window() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 3, at_two).await?;
    // A drain takes longer than the window.
    world.set_drain_seconds(4000);
    let old = world.in_service(&pool);
    set_image(&world, &pool, NEW_IMAGE);
    world.run_for(TimeDelta::minutes(230)).await?;
    ensure!(world.instances(&pool).len() == 3, "the surge is given back\n{}", world.describe());
    ensure!(
        world.in_service(&pool).intersection(&old).count() == 2,
        "one was replaced\n{}",
        world.describe()
    );
    ensure!(world.says(&pool, UP_TO_DATE, "False", "WaitingForWindow"), "{}", world.describe());
    world.set_drain_seconds(5);
    world.run_for(TimeDelta::minutes(22 * 60)).await?;
    roll(&mut world, &pool, 3, NEW_IMAGE, 3, 4).await?;
    world.finish()
}

// Pains: P54
#[tokio::test(start_paused = true)]
async fn a_paused_rollout_removes_its_surge_and_resumes_on_request() -> Result<()> {
    for seed in 0..3 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        let mode = |world: &World, mode| {
            world.edit_pool(&pool, |pool| {
                pool.spec.rollout = Some(Rollout { mode: Some(mode), ..Rollout::default() });
            });
        };
        set_image(&world, &pool, NEW_IMAGE);
        world.run_until("a surge", SOON, |world| world.instances(&pool).len() == 4).await?;
        mode(&world, RolloutMode::Paused);
        let given_back = |world: &World| {
            world.is_running(&pool, 3) && world.says(&pool, UP_TO_DATE, "False", "RolloutPaused")
        };
        world.run_until("the surge is given back", SOON, given_back).await?;
        let mark = world.mark();
        world.run_for(TimeDelta::minutes(60)).await?;
        ensure!(ended_since(&world, mark).is_empty() && given_back(&world), "{}", world.describe());
        mode(&world, RolloutMode::Automatic);
        roll(&mut world, &pool, 3, NEW_IMAGE, 3, 4).await?;
        world.finish()?;
    }
    Ok(())
}

// Pains: P54
#[tokio::test(start_paused = true)]
async fn one_is_replaced_on_request_and_do_not_disrupt_is_last() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let before = world.in_service(&pool);
    let names: Vec<String> = world.asg_machines(&pool).into_keys().collect();
    let annotate = |world: &World, name: &str, key: &str| {
        world.edit_asg_machine(name, |machine| {
            machine.annotations_mut().insert(key.to_owned(), String::new());
        });
    };
    annotate(&world, &names[1], annotations::REPLACE);
    let told = |world: &World| {
        world
            .condition(&pool, UP_TO_DATE)
            .is_some_and(|c| c.message.contains("1 of") && c.message.contains("ReplaceRequested"))
    };
    world.run_until("it is told", SOON, told).await?;
    let only_it = |world: &World| {
        world.is_running(&pool, 3)
            && world.says(&pool, UP_TO_DATE, "True", "UpToDate")
            && !world.asg_machines(&pool).contains_key(&names[1])
    };
    world.run_until("it is replaced", SOON, only_it).await?;
    ensure!(world.in_service(&pool).intersection(&before).count() == 2, "the others stay");
    // The oldest would go first.
    annotate(&world, &names[0], annotations::DO_NOT_DISRUPT);
    set_image(&world, &pool, NEW_IMAGE);
    let one_left = |world: &World| {
        let images: Vec<String> = world.instances(&pool).into_iter().map(|one| one.image).collect();
        images.iter().filter(|image| *image != NEW_IMAGE).count() == 1
    };
    world.run_until("one is left", SOON, one_left).await?;
    ensure!(world.asg_machines(&pool).contains_key(&names[0]), "{}", world.describe());
    roll(&mut world, &pool, 3, NEW_IMAGE, 3, 4).await?;
    world.finish()
}

/// An instance with `do-not-disrupt` whose node is not ready takes the place of the surge. One whose node never joined is
/// replaced; one whose node was ready is kept, and the rollout says what it waits for.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn what_do_not_disrupt_keeps_does_not_hold_a_rollout_unseen() -> Result<()> {
    for joins in [false, true] {
        let (mut world, pool) = running(Setup::default(), 2).await?;
        let before = world.in_service(&pool);
        world.mute("*", !joins);
        world.scale(&pool, 3);
        world.run_until("a third", SOON, |world| world.in_service(&pool).len() == 3).await?;
        let third = world.in_service(&pool).difference(&before).next().context("a third")?.clone();
        let settled = |world: &World| {
            world.machines(&pool).len() == 3 && available(world, &pool) == 2 + usize::from(joins)
        };
        world.run_until("its Machine", SOON, settled).await?;
        if joins {
            world.kubelet_down(&third, true);
            world.run_until("it is not ready", SOON, |world| available(world, &pool) == 2).await?;
        }
        world.mute("*", false);
        world.mute(&third, true);
        let own = format!("workers-{third}");
        let keep = |world: &World, keeps: bool| {
            world.edit_asg_machine(&own, |machine| {
                let of_machine = machine.annotations_mut();
                if keeps {
                    of_machine.insert(annotations::DO_NOT_DISRUPT.to_owned(), String::new());
                } else {
                    of_machine.remove(annotations::DO_NOT_DISRUPT);
                }
            });
        };
        keep(&world, true);
        set_image(&world, &pool, NEW_IMAGE);
        if joins {
            let waits = |world: &World| waiting_for(world, &pool) == Some(RolloutWait::UnavailableInstances);
            world.run_until("it waits", SOON, waits).await?;
            let message = world.condition(&pool, ROLLING_OUT).context("RollingOut")?.message;
            ensure!(message.contains(&third) && message.contains(annotations::DO_NOT_DISRUPT), "{message}");
            world.run_for(TimeDelta::hours(1)).await?;
            ensure!(waits(&world) && world.in_service(&pool).contains(&third), "{}", world.describe());
            keep(&world, false);
        }
        roll(&mut world, &pool, 3, NEW_IMAGE, 2, 4).await?;
        world.finish()?;
    }
    Ok(())
}

// Pains: P54
#[tokio::test(start_paused = true)]
async fn everything_launched_before_rollout_after_is_replaced_once() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let (mark, before) = (world.mark(), world.in_service(&pool));
    let after = (world.now() + TimeDelta::minutes(20)).to_rfc3339_opts(SecondsFormat::Secs, true);
    world.edit_pool(&pool, |pool| {
        pool.spec.rollout = Some(Rollout { after: Some(after), ..Rollout::default() });
    });
    world.run_for(TimeDelta::minutes(19)).await?;
    ensure!(ended_since(&world, mark).is_empty(), "the time has not come");
    world.run_for(TimeDelta::minutes(30)).await?;
    ensure!(
        world.in_service(&pool).is_disjoint(&before) && world.is_running(&pool, 3),
        "{}",
        world.describe()
    );
    world.run_for(TimeDelta::minutes(60)).await?;
    ensure!(ended_since(&world, mark).len() == 3, "each once: {:?}", ended_since(&world, mark));
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn a_pool_launched_at_once_expires_instance_by_instance() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 4, |spec| {
        spec.rollout = Some(Rollout { max_instance_lifetime_seconds: Some(7200), ..Rollout::default() });
    })
    .await?;
    let (mark, before) = (world.mark(), world.in_service(&pool));
    let mut broken = None;
    let span = TimeDelta::minutes(160);
    let until = world.now() + span;
    world
        .run_until("their time is over", span + TimeDelta::minutes(5), |world| {
            let desired = world.group(&pool).map_or(0, |group| group.desired);
            if available(world, &pool) < 4 || desired > 5 {
                broken.get_or_insert_with(|| world.describe());
            }
            world.now() >= until || broken.is_some()
        })
        .await?;
    ensure!(broken.is_none(), "{}", broken.unwrap_or_default());
    ensure!(world.in_service(&pool).is_disjoint(&before), "all are younger\n{}", world.describe());
    ensure!(ended_since(&world, mark).len() == 4, "each was replaced once: {:?}", ended_since(&world, mark));
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn rollout_scale_in_and_remediation_share_one_budget() -> Result<()> {
    for seed in 0..3 {
        let (mut world, pool) = running_with(Setup::seed(seed), 6, |spec| {
            budget(spec, 2, 3);
            most(spec, 2);
        })
        .await?;
        world.set_drain_seconds(60);
        set_image(&world, &pool, NEW_IMAGE);
        world.run_for(TimeDelta::seconds(90 + i64::try_from(seed)? * 40)).await?;
        for name in world.machines(&pool).into_keys().take(3) {
            world.mark_unhealthy(&name);
        }
        world.run_for(TimeDelta::seconds(30)).await?;
        world.scale(&pool, 3);
        let mut worst = 0;
        world
            .run_until("all is done", TimeDelta::minutes(60), |world| {
                let draining =
                    world.machines(&pool).into_values().filter(|m| m.is_deleting() && m.has_node());
                worst = worst.max(draining.count());
                world.is_running(&pool, 3) && world.says(&pool, UP_TO_DATE, "True", "UpToDate")
            })
            .await?;
        ensure!((1..=2).contains(&worst), "{worst} drained at once (seed {seed})");
        world.finish()?;
    }
    Ok(())
}

/// Every field that is not the machine's, each as the largest pool has it: what a schema gains is tried by itself.
// Pains: P42, W10, W25, W26
#[tokio::test(start_paused = true)]
async fn a_field_that_changes_in_place_replaces_nothing() -> Result<()> {
    /// What cannot change, what rolls, what scales, and what other tests are about.
    const NOT_THESE: &[&str] = &[
        "machine",
        "instanceTypes",
        "region",
        "providerID",
        "providerIDList",
        "subnets",
        "minSize",
        "maxSize",
        "identityRef",
        "group",
        "rollout",
    ];
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let before: BTreeSet<String> = world.in_service(&pool);
    let largest = &maximal_pool()["spec"];
    let mut edits: Vec<(String, Value)> = largest
        .as_object()
        .context("an object")?
        .iter()
        .filter(|(name, _)| !NOT_THESE.contains(&name.as_str()))
        .map(|(name, value)| (format!("/{name}"), value.clone()))
        .collect();
    let group = largest["group"].as_object().context("an object")?;
    let settings = group.iter().filter(|(name, _)| !["name", "suspendedProcesses"].contains(&name.as_str()));
    edits.extend(settings.map(|(name, value)| (format!("/group/{name}"), value.clone())));
    edits.extend([
        ("/minSize".to_owned(), 1.into()),
        ("/maxSize".to_owned(), 20.into()),
        ("/group/suspendedProcesses".to_owned(), serde_json::json!(["AZRebalance", "AlarmNotification"])),
        ("/rollout/strategy".to_owned(), serde_json::json!({"rollingUpdate": {"maxSurge": "50%"}})),
        ("/rollout/progressDeadlineSeconds".to_owned(), 60.into()),
    ]);
    ensure!(edits.len() >= 12, "{edits:?}");
    for (path, value) in edits {
        let mut spec = serde_json::to_value(&world.pool(&pool).context("the pool")?.spec)?;
        let place = path.trim_start_matches('/').split('/').fold(&mut spec, |place, key| &mut place[key]);
        *place = value;
        let spec = serde_json::from_value(spec)?;
        world.edit_pool(&pool, |pool| pool.spec = spec);
        world.run_for(TimeDelta::minutes(2)).await?;
        ensure!(world.in_service(&pool) == before, "{path} replaces instances\n{}", world.describe());
        ensure!(world.says(&pool, UP_TO_DATE, "True", "UpToDate"), "{path}\n{}", world.describe());
    }
    Ok(())
}

/// A new instance that never joins: pauses do not count, and a restart neither forgets when it began nor begins anew.
// Pains: P54, W8
#[tokio::test(start_paused = true)]
async fn the_progress_deadline_skips_pauses_and_survives_restarts() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let started =
        |world: &World| world.pool(&pool).and_then(|pool| pool.status.as_ref()?.rollout.as_ref()?.started_at);
    let stopped = |world: &World| world.says(&pool, UP_TO_DATE, "False", "ProgressDeadlineExceeded");
    world.mute("*", true);
    set_image(&world, &pool, NEW_IMAGE);
    world
        .run_until("it waits for a new one", SOON, |world| {
            waiting_for(world, &pool) == Some(RolloutWait::NewInstances)
        })
        .await?;
    let began = started(&world).context("it has not begun")?;
    let pause = |world: &World, paused| world.edit_cluster(|cluster| cluster.spec.paused = Some(paused));
    pause(&world, true);
    world.run_for(TimeDelta::minutes(40)).await?;
    pause(&world, false);
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(
        !stopped(&world) && started(&world) == Some(began),
        "a pause does not count\n{}",
        world.describe()
    );
    for _ in 0..3 {
        world.kill_process();
        world.run_for(TimeDelta::minutes(5)).await?;
    }
    ensure!(started(&world) == Some(began), "it is the same rollout\n{}", world.describe());
    ensure!(stopped(&world), "a restart does not begin anew\n{}", world.describe());
    world.finish()
}
