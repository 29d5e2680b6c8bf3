//! Ends that the cloud or a person starts, and ends whose reply is lost.

use anyhow::{Context, Result, ensure};
use capasg_api::conditions::GROUP_READY;
use capasg_fake_aws::{Effect, Fault, Service, Tree};
use capasg_simulation::{Drain, Kind, Pool, Setup, World};
use chrono::TimeDelta;

use crate::{SOON, ended_since, group_params, reach, running};

const END: &str = "TerminateInstanceInAutoScalingGroup";

fn one_of(world: &World, pool: &Pool) -> Result<(String, String)> {
    let id = world.in_service(pool).into_iter().next().context("an instance")?;
    let machine = world.machine_of(pool, &id)?;
    Ok((id, machine))
}

// Rules: D11
// Pains: P32
#[tokio::test(start_paused = true)]
async fn an_instance_that_died_in_ec2_is_replaced_without_a_drain() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        let (id, machine) = one_of(&world, &pool)?;
        // A drain from a machine that is gone would never end.
        world.block_drain(&machine, true);
        let mark = world.mark();
        ensure!(world.simulator.kill(&world.scope(), &id), "it was there");
        world
            .run_until("its Machine is gone", SOON, |world| !world.machines(&pool).contains_key(&machine))
            .await?;
        reach(&mut world, &pool, 3).await?;
        ensure!(
            world.drains(&machine) == [Drain::Skipped("the annotation says so")],
            "not drained (seed {seed})"
        );
        ensure!(ended_since(&world, mark).is_empty(), "the group replaced it by itself");
        world.finish()?;
    }
    Ok(())
}

// Rules: D11
#[tokio::test(start_paused = true)]
async fn all_instances_are_replaced_when_all_die_at_once() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 4).await?;
    let before = world.in_service(&pool);
    for id in &before {
        world.simulator.kill(&world.scope(), id);
    }
    world.run_until("they left", SOON, |world| world.in_service(&pool).is_disjoint(&before)).await?;
    reach(&mut world, &pool, 4).await?;
    world.finish()
}

/// Our hook holds an instance that the cloud ends for its health: it is drained, then the action is completed.
// Rules: D10
#[tokio::test(start_paused = true)]
async fn a_health_replacement_is_drained_through_our_hook() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        world.set_drain_seconds(40);
        let (id, machine) = one_of(&world, &pool)?;
        let mark = world.mark();
        let params = Tree::new()
            .with("InstanceId", &id)
            .with("HealthStatus", "Unhealthy")
            .with("ShouldRespectGracePeriod", false);
        world.aws(Service::AutoScaling, "SetInstanceHealth", params)?;
        world
            .run_until("its Machine is gone", SOON, |world| !world.machines(&pool).contains_key(&machine))
            .await?;
        reach(&mut world, &pool, 3).await?;
        let drained = match world.drains(&machine)[..] {
            [Drain::Done(at)] => at,
            ref drains => anyhow::bail!("not drained once: {drains:?}\n{}", world.describe()),
        };
        let completions = world.calls_since(mark, Some("CompleteLifecycleAction"));
        let completion = completions.first().context("the hook was completed")?;
        ensure!(completion.time >= drained, "completed at {} before the drain ended", completion.time);
        ensure!(completion.time - drained < TimeDelta::seconds(30), "completed soon");
        ensure!(completions.len() == 1, "completed once, not {}", completions.len());
        ensure!(ended_since(&world, mark).is_empty(), "no end of ours");
        world.finish()?;
    }
    Ok(())
}

/// The same with a drain that lasts longer than the hook waits: heartbeats keep it.
// Pains: P51
#[tokio::test(start_paused = true)]
async fn heartbeats_extend_the_hook_during_a_long_drain() -> Result<()> {
    let (mut world, pool) = crate::running_with(Setup::default(), 2, |spec| {
        spec.drain = Some(capasg_api::pool::Drain {
            timeout_seconds: Some(36_000),
            ..capasg_api::pool::Drain::default()
        });
    })
    .await?;
    let (id, machine) = one_of(&world, &pool)?;
    world.block_drain(&machine, true);
    let params = Tree::new()
        .with("InstanceId", &id)
        .with("HealthStatus", "Unhealthy")
        .with("ShouldRespectGracePeriod", false);
    world.aws(Service::AutoScaling, "SetInstanceHealth", params)?;
    world.run_for(TimeDelta::hours(5)).await?;
    let held = world.instances(&pool).into_iter().find(|one| one.id == id).context("still held")?;
    ensure!(held.lifecycle_state.as_deref() == Some("Terminating:Wait"), "{:?}", held.lifecycle_state);
    ensure!(held.state == "running", "it runs while it is drained");
    world.block_drain(&machine, false);
    world
        .run_until("its Machine is gone", SOON, |world| !world.machines(&pool).contains_key(&machine))
        .await?;
    reach(&mut world, &pool, 2).await
}

// Rules: D12
#[tokio::test(start_paused = true)]
async fn a_directly_deleted_asgmachine_is_terminated_and_replaced() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        let (id, machine) = one_of(&world, &pool)?;
        let mark = world.mark();
        world.delete_asg_machine(&machine);
        world
            .run_until("its Machine is gone", SOON, |world| !world.machines(&pool).contains_key(&machine))
            .await?;
        reach(&mut world, &pool, 3).await?;
        ensure!(ended_since(&world, mark) == [(id, false)], "ended once, and replaced (seed {seed})");
        world.finish()?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_detached_instance_keeps_its_machine_and_is_reported() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let (id, machine) = one_of(&world, &pool)?;
    let params = group_params(&world, &pool)
        .with("InstanceIds", vec![&id])
        .with("ShouldDecrementDesiredCapacity", false);
    world.aws(Service::AutoScaling, "DetachInstances", params)?;
    world.run_for(TimeDelta::minutes(10)).await?;
    let machines = world.machines(&pool);
    ensure!(machines.get(&machine).is_some_and(|own| !own.is_deleting()), "its Machine is kept");
    let told = world.pool(&pool).and_then(|own| own.status.clone()).context("a status")?;
    ensure!(
        told.conditions.iter().any(|condition| condition.message.contains(&id)),
        "no condition names {id}\n{}",
        world.describe()
    );
    world.simulator.kill(&world.scope(), &id);
    world
        .run_until("its Machine goes with it", SOON, |world| !world.machines(&pool).contains_key(&machine))
        .await?;
    reach(&mut world, &pool, 3).await?;
    ensure!(world.says(&pool, GROUP_READY, "True", "GroupReady"), "all is well again\n{}", world.describe());
    world.finish()
}

/// The ASGMachine of a detached instance is created while the watch is stalled and core is down, so that no cache shows
/// that the instance belongs to the pool.
// Rules: B1
#[tokio::test(start_paused = true)]
async fn a_detached_instance_stays_in_the_list_while_the_watch_is_stalled() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let before = world.in_service(&pool);
    world.stop_core(true);
    world.freeze(Kind::AsgMachine, true);
    world.scale(&pool, 3);
    world.run_until("another one serves", SOON, |world| world.in_service(&pool).len() == 3).await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    let id = world.in_service(&pool).into_iter().find(|id| !before.contains(id)).context("a new one")?;
    let params = group_params(&world, &pool)
        .with("InstanceIds", vec![&id])
        .with("ShouldDecrementDesiredCapacity", false);
    world.aws(Service::AutoScaling, "DetachInstances", params)?;
    let is_listed = |world: &World| {
        let list = world.pool(&pool).map(|pool| pool.spec.provider_id_list.clone()).unwrap_or_default();
        list.iter().any(|entry| entry.ends_with(&id))
    };
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(is_listed(&world), "it runs");
    // A LIST that fails holds up what depends on it, and nothing else.
    world.api.fail_lists(true);
    world.scale(&pool, 5);
    world.run_until("others are launched", SOON, |world| world.in_service(&pool).len() == 5).await?;
    ensure!(is_listed(&world), "it is not known that it left");
    world.api.fail_lists(false);
    world.scale(&pool, 3);
    world.freeze(Kind::AsgMachine, false);
    world.stop_core(false);
    world.simulator.kill(&world.scope(), &id);
    reach(&mut world, &pool, 3).await?;
    world.finish()
}

/// The group never picks: all are protected, it does not rebalance, and what a person lowers in AWS ends nobody.
// Rules: D13
// Pains: P48
#[tokio::test(start_paused = true)]
async fn the_group_terminates_nothing_on_its_own() -> Result<()> {
    // The rules that are watched otherwise speak of what we do: here a person lowers desired capacity.
    let (mut world, pool) = running(Setup { watch: false, ..Setup::default() }, 4).await?;
    let before = world.in_service(&pool);
    let group = world.group(&pool).context("the group")?;
    ensure!(group.suspended.iter().any(|process| process == "AZRebalance"), "{:?}", group.suspended);
    let instances = world.instances(&pool);
    ensure!(instances.iter().all(|instance| instance.protected), "{instances:?}");
    let mark = world.mark();
    let params = group_params(&world, &pool).with("DesiredCapacity", "1");
    world.aws(Service::AutoScaling, "SetDesiredCapacity", params)?;
    reach(&mut world, &pool, 4).await?;
    ensure!(world.in_service(&pool) == before, "the same instances\n{}", world.describe());
    ensure!(ended_since(&world, mark).is_empty());
    world.finish()
}

/// Issue scenario: a lost reply to an ending must not shrink the pool twice.
async fn lost(effect: Effect, restart: bool) -> Result<()> {
    for seed in 0..6 {
        let (mut world, pool) = running(Setup::seed(seed), 5).await?;
        let mark = world.mark();
        world.fault(Fault::new(END, effect.clone()));
        world.scale(&pool, 3);
        if restart {
            world
                .run_until("the end is asked for", SOON, |world| {
                    !world.calls_since(mark, Some(END)).is_empty()
                })
                .await?;
            world.kill_process();
        }
        reach(&mut world, &pool, 3).await.with_context(|| format!("seed {seed}, {effect:?}"))?;
        let desired = world.group(&pool).context("the group")?.desired;
        ensure!(desired == 3, "desired is {desired} (seed {seed}, {effect:?})");
        // A call whose effect comes late must have come by now.
        world.run_for(TimeDelta::minutes(5)).await?;
        reach(&mut world, &pool, 3).await?;
        let launches = world.calls_since(mark, Some("SetDesiredCapacity"));
        ensure!(launches.is_empty(), "nothing had to be made good: {launches:?}");
        world.finish()?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_to_a_termination_decrements_once() -> Result<()> {
    lost(Effect::LoseReply, false).await
}

#[tokio::test(start_paused = true)]
async fn a_lost_termination_request_is_repeated() -> Result<()> {
    lost(Effect::LoseRequest, false).await
}

#[tokio::test(start_paused = true)]
async fn a_termination_that_takes_effect_late_decrements_once() -> Result<()> {
    lost(Effect::ApplyLate { after_millis: 15_000 }, false).await
}

/// Later than the fence of a group's view holds: the mark on the ASGMachine does.
#[tokio::test(start_paused = true)]
async fn a_termination_that_takes_effect_very_late_decrements_once() -> Result<()> {
    lost(Effect::ApplyLate { after_millis: 45_000 }, false).await
}

/// The next process knows of the end by the mark alone.
#[tokio::test(start_paused = true)]
async fn a_late_termination_under_the_next_leader_decrements_once() -> Result<()> {
    lost(Effect::ApplyLate { after_millis: 20_000 }, true).await
}
