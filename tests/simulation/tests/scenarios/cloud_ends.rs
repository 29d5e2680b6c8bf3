//! Ends that AWS starts and our hook holds: whoever asked for them, the Node is drained first, for as long as it may take.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    capi::MachineDeletion,
    conditions::{self, TERMINATION_PENDING},
    names::events,
    pool::{Drain as DrainSpec, Group, OnCloudTermination},
};
use capasg_cloud::Cadence;
use capasg_fake_aws::{Fault, Service, Settings, Tree};
use capasg_simulation::{Drain, Pool, Setup, World};
use chrono::{DateTime, TimeDelta, Utc};

use crate::{SOON, ended_since, group_params, reach, running, running_with};

const COMPLETE: &str = "CompleteLifecycleAction";
const HEARTBEAT: &str = "RecordLifecycleActionHeartbeat";

fn one_of(world: &World, pool: &Pool) -> Result<(String, String)> {
    let id = world.in_service(pool).into_iter().next().context("an instance")?;
    let machine = world.machine_of(pool, &id)?;
    Ok((id, machine))
}

fn find_unhealthy(world: &World, id: &str) -> Result<()> {
    let params = Tree::new()
        .with("InstanceId", id)
        .with("HealthStatus", "Unhealthy")
        .with("ShouldRespectGracePeriod", false);
    world.aws(Service::AutoScaling, "SetInstanceHealth", params).map(|_| ())
}

fn somebody_ends(world: &World, id: &str, decrement: bool) -> Result<()> {
    let params = Tree::new().with("InstanceId", id).with("ShouldDecrementDesiredCapacity", decrement);
    world.aws(Service::AutoScaling, "TerminateInstanceInAutoScalingGroup", params).map(|_| ())
}

/// What the ASGMachine says of an end that AWS began, as `status/reason`.
fn pending(world: &World, pool: &Pool, machine: &str) -> String {
    let machines = world.asg_machines(pool);
    let status = machines.get(machine).and_then(|one| one.status.as_ref());
    let found = status.and_then(|status| conditions::get(&status.conditions, TERMINATION_PENDING));
    found.map(|found| format!("{}/{}", found.status, found.reason)).unwrap_or_default()
}

/// When the drain of a Machine was over, which has to be the only one.
fn drained_at(world: &World, machine: &str) -> Result<DateTime<Utc>> {
    match world.drains(machine)[..] {
        [Drain::Done(at)] => Ok(at),
        ref drains => anyhow::bail!("{machine} was not drained once: {drains:?}\n{}", world.describe()),
    }
}

/// The one completion of a hook's action since a mark, and what it said.
fn completed(world: &World, mark: u64, id: &str) -> Result<DateTime<Utc>> {
    let calls = world.calls_since(mark, Some(COMPLETE));
    ensure!(calls.iter().all(|call| call.params["LifecycleActionResult"] == "CONTINUE"), "{calls:?}");
    let own: Vec<_> = calls.iter().filter(|call| call.instances.iter().any(|one| one == id)).collect();
    ensure!(own.len() == 1, "{id} was completed {} times", own.len());
    Ok(own[0].time)
}

/// Held, drained, told why, completed once and replaced.
async fn is_drained_first(
    world: &mut World,
    pool: &Pool,
    mark: u64,
    (id, machine): (&str, &str),
    why: &str,
    replicas: usize,
) -> Result<()> {
    let said = format!("True/{why}");
    world.run_until(&format!("it says {said}"), SOON, |world| pending(world, pool, machine) == said).await?;
    let held = world.instances(pool).into_iter().find(|one| one.id == id).context("held")?;
    ensure!(held.state == "running", "it runs while it is drained\n{}", world.describe());
    world.run_until("its Machine is gone", SOON, |world| !world.machines(pool).contains_key(machine)).await?;
    reach(world, pool, replicas).await?;
    let (drained, completed) = (drained_at(world, machine)?, completed(world, mark, id)?);
    ensure!(drained <= completed && completed - drained < TimeDelta::seconds(30), "{drained} {completed}");
    ensure!(world.events(events::DRAIN_TIMED_OUT).is_empty());
    Ok(())
}

// Pains: P17, P51
#[tokio::test(start_paused = true)]
async fn a_health_replacement_is_held_drained_reported_and_completed() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        world.set_drain_seconds(40);
        let (id, machine) = one_of(&world, &pool)?;
        let mark = world.mark();
        find_unhealthy(&world, &id)?;
        is_drained_first(&mut world, &pool, mark, (&id, &machine), "HealthReplacement", 3).await?;
        ensure!(ended_since(&world, mark).is_empty(), "no end of ours (seed {seed})");
        ensure!(
            world.calls_since(mark, Some("DescribeScalingActivities")).is_empty(),
            "the group itself tells"
        );
        world.finish()?;
    }
    Ok(())
}

// Pains: P16, P51
#[tokio::test(start_paused = true)]
async fn a_termination_by_another_actor_is_held_and_drained() -> Result<()> {
    for seed in 0..4 {
        let (mut world, pool) = running(Setup { watch: false, ..Setup::seed(seed) }, 3).await?;
        world.set_drain_seconds(40);
        let (id, machine) = one_of(&world, &pool)?;
        let mark = world.mark();
        // Whether they shrink the group or not: replicas are the MachinePool's.
        somebody_ends(&world, &id, seed % 2 == 0)?;
        is_drained_first(&mut world, &pool, mark, (&id, &machine), "RequestedInAWS", 3).await?;
        ensure!(world.calls_since(mark, Some("DescribeScalingActivities")).len() == 1, "asked once why");
        let told = pending(&world, &pool, &world.machine_of(&pool, &one_of(&world, &pool)?.0)?);
        ensure!(told == "False/NotTerminationPending", "{told}");
        world.finish()?;
    }
    Ok(())
}

/// Zones are balanced only where somebody wants that: the process is suspended unless the spec says otherwise.
// Pains: P48
#[tokio::test(start_paused = true)]
async fn an_instance_that_a_zone_rebalance_terminates_is_drained() -> Result<()> {
    for seed in 0..4 {
        let settings = Settings { rebalance_millis: 1_000, ..Settings::default() };
        // As with thousands of groups: a poll does not give the protection back before AWS moves one.
        let cadence = Cadence { idle: Duration::from_mins(1), ..Cadence::default() };
        let setup = Setup { settings, cadence, watch: false, ..Setup::seed(seed) };
        let (mut world, pool) = running_with(setup, 4, |spec| {
            spec.subnets.truncate(1);
            spec.group = Some(Group { suspended_processes: Some(Vec::new()), ..Group::default() });
        })
        .await?;
        world.set_drain_seconds(40);
        let group = world.group(&pool).context("the group")?;
        ensure!(group.suspended.is_empty(), "{:?}", group.suspended);
        let all = capasg_simulation::pool_spec().subnets;
        world.edit_pool(&pool, |pool| pool.spec.subnets = all);
        world.run_for(TimeDelta::minutes(3)).await?;
        let before = world.in_service(&pool);
        let machines: Vec<(String, String)> =
            before.iter().map(|id| Ok((id.clone(), world.machine_of(&pool, id)?))).collect::<Result<_>>()?;
        ensure!(before.len() == 4, "protected ones are not moved\n{}", world.describe());
        let mark = world.mark();
        // AWS's own moves need instances that somebody has taken the protection from.
        let ids: Vec<&String> = before.iter().collect();
        let params = group_params(&world, &pool).with("InstanceIds", ids).with("ProtectedFromScaleIn", false);
        world.aws(Service::AutoScaling, "SetInstanceProtection", params)?;
        world
            .run_until("one moves", SOON, |world| {
                let told = |machine: &String| pending(world, &pool, machine) == "True/Rebalance";
                machines.iter().any(|(_, machine)| told(machine))
            })
            .await?;
        world.run_for(TimeDelta::minutes(10)).await?;
        let left = world.in_service(&pool);
        let moved: Vec<_> = machines.iter().filter(|(id, _)| !left.contains(id)).collect();
        ensure!(!moved.is_empty(), "some moved\n{}", world.describe());
        for (_, machine) in moved {
            drained_at(&world, machine)?;
        }
        ensure!(world.calls_since(mark, Some(COMPLETE)).len() >= 1);
        reach(&mut world, &pool, 4).await?;
        world.finish()?;
    }
    Ok(())
}

/// AWS would let go after the limit what no poll has shown by then.
// Pains: P51
#[tokio::test(start_paused = true)]
async fn a_short_drain_timeout_misses_no_termination() -> Result<()> {
    let drain = DrainSpec { timeout_seconds: Some(30), ..DrainSpec::default() };
    for later in 0..6 {
        let setup = Setup { watch: false, ..Setup::default() };
        let (mut world, pool) = running_with(setup, 2, |spec| spec.drain = Some(drain.clone())).await?;
        world.set_drain_seconds(20);
        world.run_for(TimeDelta::seconds(10 * later)).await?;
        let (id, machine) = one_of(&world, &pool)?;
        let mark = world.mark();
        somebody_ends(&world, &id, false)?;
        is_drained_first(&mut world, &pool, mark, (&id, &machine), "RequestedInAWS", 2).await?;
        world.finish()?;
    }
    Ok(())
}

// Pains: P51
#[tokio::test(start_paused = true)]
async fn a_drain_over_its_timeout_is_completed_and_reported_once() -> Result<()> {
    let drain = DrainSpec { timeout_seconds: Some(600), ..DrainSpec::default() };
    let (mut world, pool) = running_with(Setup::default(), 3, |spec| spec.drain = Some(drain)).await?;
    let (id, machine) = one_of(&world, &pool)?;
    world.block_drain(&machine, true);
    let mark = world.mark();
    find_unhealthy(&world, &id)?;
    world.run_until("the drain began", SOON, |world| world.machines(&pool)[&machine].is_deleting()).await?;
    let began = world.now();
    world
        .run_until("it is let go", SOON, |world| !world.calls_since(mark, Some(COMPLETE)).is_empty())
        .await?;
    let waited = world.now() - began;
    ensure!(waited >= TimeDelta::seconds(599) && waited < TimeDelta::seconds(630), "after {waited}");
    ensure!(!world.calls_since(mark, Some(HEARTBEAT)).is_empty(), "held for all of it");
    world
        .run_until("its Machine is gone", SOON, |world| !world.machines(&pool).contains_key(&machine))
        .await?;
    reach(&mut world, &pool, 3).await?;
    let told = world.events(events::DRAIN_TIMED_OUT);
    ensure!(told.len() == 1 && told[0].contains(&id) && told[0].contains("600 seconds"), "{told:?}");
    ensure!(matches!(world.drains(&machine)[..], [Drain::Skipped(_)]), "{:?}", world.drains(&machine));
    world.finish()
}

/// The limit of the MachinePool is core's to keep; the hook holds until core is done.
// Rules: D14
// Pains: P51
#[tokio::test(start_paused = true)]
async fn the_machine_pools_drain_timeout_completes_our_hook() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.edit_machine_pool(&pool, |owner| {
        owner.spec.template.spec.deletion =
            Some(MachineDeletion { node_drain_timeout_seconds: Some(120), ..MachineDeletion::default() });
    });
    world.run_for(TimeDelta::minutes(2)).await?;
    let (id, machine) = one_of(&world, &pool)?;
    world.block_drain(&machine, true);
    let mark = world.mark();
    find_unhealthy(&world, &id)?;
    world
        .run_until("its Machine is gone", SOON, |world| !world.machines(&pool).contains_key(&machine))
        .await?;
    reach(&mut world, &pool, 2).await?;
    let [Drain::TimedOut(at)] = world.drains(&machine)[..] else {
        anyhow::bail!("{:?}", world.drains(&machine));
    };
    ensure!(completed(&world, mark, &id)? >= at, "let go before core gave up");
    ensure!(
        world.events(events::DRAIN_TIMED_OUT).is_empty(),
        "the limit is core's, and so is the word of it"
    );
    world.finish()
}

/// What AWS holds already keeps its old time-out until the next heartbeat.
// Pains: P51
#[tokio::test(start_paused = true)]
async fn a_drain_timeout_that_is_raised_during_a_drain_extends_the_hook() -> Result<()> {
    let limit = |seconds| DrainSpec { timeout_seconds: Some(seconds), ..DrainSpec::default() };
    let (mut world, pool) = running_with(Setup::default(), 3, |spec| spec.drain = Some(limit(60))).await?;
    world.set_drain_seconds(300);
    let (id, machine) = one_of(&world, &pool)?;
    let mark = world.mark();
    find_unhealthy(&world, &id)?;
    world.run_until("it is held", SOON, |world| !world.calls_since(mark, Some(HEARTBEAT)).is_empty()).await?;
    world.edit_pool(&pool, |own| own.spec.drain = Some(limit(3600)));
    world
        .run_until("its Machine is gone", SOON, |world| !world.machines(&pool).contains_key(&machine))
        .await?;
    reach(&mut world, &pool, 3).await?;
    let drained = drained_at(&world, &machine)?;
    ensure!(completed(&world, mark, &id)? >= drained, "let go before it was drained");
    world.finish()
}

// Pains: P48, P51
#[tokio::test(start_paused = true)]
async fn terminations_that_the_spec_ignores_are_not_held() -> Result<()> {
    let drain = DrainSpec { on_cloud_termination: Some(OnCloudTermination::Ignore), ..DrainSpec::default() };
    let (mut world, pool) = running(Setup::default(), 3).await?;
    world.edit_pool(&pool, |pool| pool.spec.drain = Some(drain));
    world
        .run_until("the hook is gone", SOON, |world| {
            world.group(&pool).is_some_and(|group| group.hooks.is_empty())
        })
        .await?;
    let (id, machine) = one_of(&world, &pool)?;
    world.block_drain(&machine, true);
    let mark = world.mark();
    find_unhealthy(&world, &id)?;
    world
        .run_until("its Machine is gone", SOON, |world| !world.machines(&pool).contains_key(&machine))
        .await?;
    reach(&mut world, &pool, 3).await?;
    ensure!(
        world.calls_since(mark, Some(COMPLETE)).is_empty()
            && world.calls_since(mark, Some(HEARTBEAT)).is_empty()
    );
    ensure!(world.events(events::DRAIN_TIMED_OUT).is_empty(), "nothing was promised");
    world.finish()
}

/// Whoever comes next sees what the hook holds, and answers.
// Pains: P51
#[tokio::test(start_paused = true)]
async fn the_next_leader_completes_what_the_hook_holds() -> Result<()> {
    for seed in 0..6 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        world.set_drain_seconds(60);
        let (id, machine) = one_of(&world, &pool)?;
        let mark = world.mark();
        find_unhealthy(&world, &id)?;
        for seconds in [3, 20, 40] {
            world.run_for(TimeDelta::seconds(seconds + i64::try_from(seed)? * 3)).await?;
            world.kill_process();
        }
        world
            .run_until("its Machine is gone", SOON, |world| !world.machines(&pool).contains_key(&machine))
            .await?;
        reach(&mut world, &pool, 3).await?;
        drained_at(&world, &machine)?;
        ensure!(ended_since(&world, mark).is_empty());
        ensure!(!world.calls_since(mark, Some(COMPLETE)).is_empty());
        world.finish()?;
    }
    Ok(())
}

// Pains: P51, W12
#[tokio::test(start_paused = true)]
async fn deleting_a_pool_also_drains_what_its_hook_holds() -> Result<()> {
    for seed in 0..4 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        world.set_drain_seconds(40);
        let machines: Vec<String> = world.machines(&pool).into_keys().collect();
        let (id, machine) = one_of(&world, &pool)?;
        find_unhealthy(&world, &id)?;
        world.run_until("it is held", SOON, |world| world.machines(&pool)[&machine].is_deleting()).await?;
        world.delete_machine_pool(&pool);
        world.run_until("everything is gone", SOON, |world| world.is_gone(&pool)).await?;
        for machine in &machines {
            drained_at(&world, machine)?;
        }
        let left = world.simulator.leftovers(None);
        ensure!(left.is_empty(), "{left:?}");
        world.finish()?;
    }
    Ok(())
}

/// Neither the group nor EC2 answers while an instance is launched, joins and is found unhealthy; then EC2 alone does not.
// Rules: D4, D11
// Pains: P51
#[tokio::test(start_paused = true)]
async fn an_instance_that_ec2_never_described_is_drained_before_its_hook_is_completed() -> Result<()> {
    let denied = |call| Fault::error(call, 403, "AccessDenied", "You are not authorized.").times(None);
    let (mut world, pool) = running(Setup::default(), 1).await?;
    let (known, _) = one_of(&world, &pool)?;
    world.fault(denied("DescribeAutoScalingGroups"));
    world.fault(denied("DescribeInstances"));
    find_unhealthy(&world, &known)?;
    let other = |world: &World| world.in_service(&pool).into_iter().find(|id| *id != known);
    world.run_until("another one is in service", SOON, |world| other(world).is_some()).await?;
    world.run_for(TimeDelta::minutes(1)).await?;
    let id = other(&world).context("an instance")?;
    find_unhealthy(&world, &id)?;
    world.run_for(TimeDelta::seconds(30)).await?;
    world.simulator.clear_faults(None);
    world.fault(denied("DescribeInstances"));
    let mark = world.mark();
    let is_completed = |world: &World| {
        let calls = world.calls_since(mark, Some(COMPLETE));
        calls.iter().any(|call| call.instances.contains(&id))
    };
    world.run_until("its hook is completed", SOON, is_completed).await?;
    let drained = drained_at(&world, &capasg_api::names::machine_name("workers", &id))?;
    ensure!(completed(&world, mark, &id)? >= drained, "it was not drained");
    world.simulator.clear_faults(None);
    reach(&mut world, &pool, 1).await?;
    world.finish()
}

/// A restored Cluster has no status until its provider reports again.
// Rules: D15
#[tokio::test(start_paused = true)]
async fn a_cluster_that_lost_its_status_delays_no_drain() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.edit_cluster(|cluster| cluster.status = None);
    world.kill_process();
    let (id, machine) = one_of(&world, &pool)?;
    find_unhealthy(&world, &id)?;
    let is_drained = |world: &World| matches!(world.drains(&machine)[..], [Drain::Done(_)]);
    world.run_until("its node is drained", SOON, is_drained).await?;
    reach(&mut world, &pool, 2).await?;
    world.finish()
}
