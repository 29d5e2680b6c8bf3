//! Rolling updates: surge, drain, exact ends, and what may come in between.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use capasg_api::{
    ASGMachinePoolSpec,
    conditions::{READY, RECONCILING, ROLLING_OUT, STALLED, UP_TO_DATE},
    names::events,
    pool::{InstanceTypeEntry, RollingUpdate, Rollout, RolloutStrategy, RolloutType},
};
use capasg_fake_aws::{Fault, Service};
use capasg_simulation::{Drain, Pool, Setup, World};
use chrono::TimeDelta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::{SOON, ended_since, running, running_with};

pub const NEW_IMAGE: &str = "ami-0b1c2d3e";

/// Outdated instances wait until somebody deletes their Machines.
pub fn on_delete(spec: &mut ASGMachinePoolSpec) {
    let strategy = RolloutStrategy { type_: Some(RolloutType::OnDelete), ..RolloutStrategy::default() };
    spec.rollout = Some(Rollout { strategy: Some(strategy), ..Rollout::default() });
}

/// A rolling update with this budget.
pub fn budget(spec: &mut ASGMachinePoolSpec, surge: i32, unavailable: i32) {
    let rolling = RollingUpdate {
        max_surge: Some(IntOrString::Int(surge)),
        max_unavailable: Some(IntOrString::Int(unavailable)),
    };
    let strategy = RolloutStrategy { rolling_update: Some(rolling), ..RolloutStrategy::default() };
    spec.rollout = Some(Rollout { strategy: Some(strategy), ..Rollout::default() });
}

pub fn set_image(world: &World, pool: &Pool, id: &str) {
    world.edit_pool(pool, |pool| pool.spec.machine.image.id = Some(id.to_owned()));
}

/// How many Machines work: ready, in service, and not on their way out.
pub fn available(world: &World, pool: &Pool) -> usize {
    let serving = world.in_service(pool);
    let working = world.machines(pool).into_values().filter(|machine| {
        let id = machine.spec.provider_id.as_deref().and_then(|id| id.rsplit('/').next());
        machine.is_ready() && !machine.is_deleting() && id.is_some_and(|id| serving.contains(id))
    });
    working.count()
}

pub fn is_rolled_out(world: &World, pool: &Pool, replicas: usize, image: &str) -> bool {
    world.is_running(pool, replicas)
        && world.instances(pool).iter().all(|one| one.image == image)
        && world.says(pool, ROLLING_OUT, "False", "NotRollingOut")
        && world.says(pool, UP_TO_DATE, "True", "UpToDate")
}

/// One instance at a time is disrupted, and the rollout has a progress deadline in seconds.
fn one_at_a_time(spec: &mut ASGMachinePoolSpec, unavailable: i32, deadline: i32) {
    budget(spec, 1, unavailable);
    spec.rollout.get_or_insert_default().progress_deadline_seconds = Some(deadline);
    spec.disruption.get_or_insert_default().max_disrupted = Some(IntOrString::Int(1));
}

/// A scale-in beside a rollout takes the whole budget for longer than the progress deadline: each outdated instance that
/// goes is progress. Which ones are outdated is not known at first, since AWS fails to read the launch template.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn a_scale_in_that_takes_the_budget_does_not_stop_a_rollout() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 30, |spec| {
        one_at_a_time(spec, 1, 120);
    })
    .await?;
    world.set_drain_seconds(10);
    let fault = Fault::error("DescribeLaunchTemplates", 500, "InternalFailure", "An internal error.");
    world.fault(fault.times(None));
    world.kill_process();
    set_image(&world, &pool, NEW_IMAGE);
    world.run_for(TimeDelta::minutes(5)).await?;
    world.scale(&pool, 6);
    world.simulator.clear_faults(None);
    world
        .run_until("all are replaced", TimeDelta::hours(1), |world| is_rolled_out(world, &pool, 6, NEW_IMAGE))
        .await?;
    ensure!(world.events(events::ROLLOUT_STOPPED).is_empty(), "it made progress");
    world.finish()
}

/// Instances that were replaced and then died take the whole budget until their lifecycle actions are completed, which
/// AWS denies for longer than the progress deadline: the rollout waits for the budget.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn terminated_instances_that_hold_the_budget_do_not_stop_a_rollout() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 4, |spec| {
        one_at_a_time(spec, 0, 300);
    })
    .await?;
    set_image(&world, &pool, NEW_IMAGE);
    let new = |world: &World| {
        let mut new = world.instances(&pool).into_iter().filter(|one| one.image == NEW_IMAGE);
        new.find(|one| world.in_service(&pool).contains(&one.id)).map(|one| one.id)
    };
    let updated = |world: &World| {
        let status = world.pool(&pool)?.status.clone()?;
        status.rollout.map(|rollout| rollout.updated)
    };
    world.run_until("a new one works", SOON, |world| updated(world) == Some(1)).await?;
    let denied = Fault::error("CompleteLifecycleAction", 403, "AccessDenied", "Not authorized.");
    world.fault(denied.times(None));
    let id = new(&world).context("a new instance")?;
    world.simulator.kill(&world.scope(), &id);
    world.run_for(TimeDelta::minutes(12)).await?;
    world.simulator.clear_faults(None);
    world
        .run_until("all are replaced", TimeDelta::hours(1), |world| is_rolled_out(world, &pool, 4, NEW_IMAGE))
        .await?;
    ensure!(world.events(events::ROLLOUT_STOPPED).is_empty(), "it waited for the budget");
    world.finish()
}

/// Lets up to 50 s pass, as the seed says.
pub async fn run_for_a_while(world: &mut World) -> Result<()> {
    let seconds = i64::try_from(world.random.below(50))?;
    world.run_for(TimeDelta::seconds(seconds)).await
}

/// The start of the rollout was published once, whatever happened to the processes.
pub fn started_once(world: &World) -> Result<()> {
    let started = world.events(events::ROLLOUT_STARTED);
    ensure!(started.len() == 1, "{started:?}");
    Ok(())
}

/// Runs until the image is everywhere; never fewer than `least` work on the way, never more than `most` exist.
pub async fn roll(
    world: &mut World,
    pool: &Pool,
    replicas: usize,
    image: &str,
    least: usize,
    most: i64,
) -> Result<()> {
    let mut broken = None;
    world
        .run_until("the image is everywhere", TimeDelta::minutes(40), |world| {
            let (works, desired) =
                (available(world, pool), world.group(pool).map_or(0, |group| group.desired));
            if works < least || desired > most {
                broken.get_or_insert_with(|| {
                    format!("{works} work, {desired} are desired\n{}", world.describe())
                });
            }
            broken.is_some() || is_rolled_out(world, pool, replicas, image)
        })
        .await?;
    ensure!(broken.is_none(), "{}", broken.unwrap_or_default());
    Ok(())
}

// Rules: D7, H3, H7
#[tokio::test(start_paused = true)]
async fn a_new_image_rolls_out_within_the_budget() -> Result<()> {
    for (seed, (surge, unavailable)) in (0..).zip([(1, 0), (0, 1), (2, 1), (3, 0), (0, 3)]) {
        let (mut world, pool) =
            running_with(Setup::seed(seed), 3, |spec| budget(spec, surge, unavailable)).await?;
        let mark = world.mark();
        let before: BTreeSet<String> = world.machines(&pool).into_keys().collect();
        set_image(&world, &pool, NEW_IMAGE);
        let least = usize::try_from(3 - unavailable)?;
        roll(&mut world, &pool, 3, NEW_IMAGE, least, i64::from(3 + surge)).await?;
        let ended = ended_since(&world, mark);
        ensure!(ended.len() == 3, "each is replaced once: {ended:?} ({surge}, {unavailable})");
        let shrinking = ended.iter().filter(|(_, shrinks)| *shrinks).count();
        ensure!(shrinking == usize::try_from(surge)?, "the surge is given back by exact ends: {ended:?}");
        for machine in before {
            ensure!(matches!(world.drains(&machine)[..], [Drain::Done(_)]), "{machine} was drained");
        }
        started_once(&world)?;
        ensure!(world.events(events::ROLLOUT_COMPLETED).len() == 1);
        world.finish()?;
    }
    Ok(())
}

// Rules: H3, H4
#[tokio::test(start_paused = true)]
async fn a_new_version_replaces_every_node() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let before = world.in_service(&pool);
    world.edit_machine_pool(&pool, |own| own.spec.template.spec.version = Some("v1.37.0".to_owned()));
    world.run_until("it rolls", SOON, |world| world.says(&pool, ROLLING_OUT, "True", "RollingOut")).await?;
    ensure!(
        world.condition(&pool, READY).is_some_and(|ready| ready.status == "True"),
        "mid-rollout is Ready"
    );
    ensure!(world.says(&pool, UP_TO_DATE, "False", "NotUpToDate"));
    world
        .run_until("all are new", SOON, |world| {
            world.is_running(&pool, 2) && world.in_service(&pool).is_disjoint(&before)
        })
        .await?;
    world.finish()
}

// Rules: H2, H3
// Pains: P42, W10
#[tokio::test(start_paused = true)]
async fn tags_bounds_hooks_and_tokens_replace_nothing() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let before = world.in_service(&pool);
    world.edit_pool(&pool, |pool| {
        pool.spec.tags = [("team".to_owned(), "a".to_owned())].into();
        pool.spec.max_size = Some(9);
        pool.spec.instance_types.push(InstanceTypeEntry::new("m6i.large"));
        pool.spec.drain = Some(capasg_api::pool::Drain {
            on_cloud_termination: Some(capasg_api::pool::OnCloudTermination::Ignore),
            ..capasg_api::pool::Drain::default()
        });
    });
    world.run_for(TimeDelta::minutes(3)).await?;
    world.rotate_token(&pool);
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(world.in_service(&pool) == before && world.says(&pool, UP_TO_DATE, "True", "UpToDate"));
    ensure!(world.events(events::ROLLOUT_STARTED).is_empty());
    world.finish()
}

/// Pool, bootstrap config and `MachinePool` are written one after another: one rollout, not two.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn edits_within_ten_seconds_are_one_rollout() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        let mark = world.mark();
        set_image(&world, &pool, "ami-0d1e2f3a");
        world.run_for(TimeDelta::seconds(6)).await?;
        world.edit_machine_pool(&pool, |own| own.spec.template.spec.version = Some("v1.37.0".to_owned()));
        world.run_for(TimeDelta::seconds(6)).await?;
        set_image(&world, &pool, NEW_IMAGE);
        roll(&mut world, &pool, 3, NEW_IMAGE, 3, 4).await?;
        let ended = ended_since(&world, mark);
        ensure!(ended.len() == 3, "each was replaced once: {ended:?} (seed {seed})");
        world.finish()?;
    }
    Ok(())
}

// Rules: H3
// Pains: P10
#[tokio::test(start_paused = true)]
async fn a_change_during_a_rollout_continues_to_the_last_spec() -> Result<()> {
    for seed in 0..10 {
        let (mut world, pool) = running(Setup::seed(seed), 4).await?;
        set_image(&world, &pool, "ami-0d1e2f3a");
        let pause = i64::try_from(world.random.below(240))?;
        world.run_for(TimeDelta::seconds(pause)).await?;
        set_image(&world, &pool, NEW_IMAGE);
        roll(&mut world, &pool, 4, NEW_IMAGE, 4, 5).await?;
        world.finish()?;
    }
    Ok(())
}

// Rules: H3
#[tokio::test(start_paused = true)]
async fn a_change_reverted_during_a_rollout_keeps_the_old_instances() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let mark = world.mark();
    set_image(&world, &pool, NEW_IMAGE);
    world.run_until("the surge is there", SOON, |world| world.instances(&pool).len() == 4).await?;
    set_image(&world, &pool, "ami-0a1b2c3d");
    roll(&mut world, &pool, 3, "ami-0a1b2c3d", 3, 4).await?;
    let ended = ended_since(&world, mark);
    ensure!(ended.len() == 1 && ended[0].1, "the surge alone goes: {ended:?}");
    world.finish()
}

/// Restart and failover at any point: nothing that matters is in memory.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn a_rollout_survives_a_restart() -> Result<()> {
    for seed in 0..8 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        let mark = world.mark();
        set_image(&world, &pool, NEW_IMAGE);
        for _ in 0..8 {
            run_for_a_while(&mut world).await?;
            world.kill_process();
        }
        roll(&mut world, &pool, 3, NEW_IMAGE, 3, 4).await?;
        let ended = ended_since(&world, mark);
        ensure!(ended.len() == 3, "each was replaced once: {ended:?} (seed {seed})");
        started_once(&world)?;
        world.finish()?;
    }
    Ok(())
}

// Rules: H3
// Pains: W8
#[tokio::test(start_paused = true)]
async fn a_rollout_survives_a_crash_every_few_writes() -> Result<()> {
    for writes in [3, 4, 7] {
        let (mut world, pool) = running(Setup::seed(writes), 3).await?;
        set_image(&world, &pool, NEW_IMAGE);
        for round in 0..12 {
            world.crash_after(usize::try_from(writes)? + round % 3);
            world.run_for(TimeDelta::seconds(20)).await?;
        }
        roll(&mut world, &pool, 3, NEW_IMAGE, 3, 4).await?;
        world.finish()?;
    }
    Ok(())
}

/// New instances that never join stop the rollout; the next change gets it out of there.
// Rules: H3
// Pains: W8
#[tokio::test(start_paused = true)]
async fn failing_new_instances_stop_the_rollout_without_a_loop() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 3, |spec| budget(spec, 1, 1)).await?;
    let old = world.in_service(&pool);
    world.mute("*", true);
    set_image(&world, &pool, "ami-0d1e2f3a");
    world.run_for(TimeDelta::minutes(60)).await?;
    ensure!(available(&world, &pool) == 2, "{} work\n{}", available(&world, &pool), world.describe());
    ensure!(world.in_service(&pool).intersection(&old).count() == 2, "two of the old ones are left");
    ensure!(world.instances(&pool).len() == 3, "the surge is given back\n{}", world.describe());
    ensure!(world.says(&pool, UP_TO_DATE, "False", "ProgressDeadlineExceeded"), "{}", world.describe());
    ensure!(world.says(&pool, ROLLING_OUT, "False", "NotRollingOut"), "{}", world.describe());
    // Tools that wait for a rollout take it for failed, and say why.
    ensure!(world.says(&pool, READY, "False", "NotReady"), "{}", world.describe());
    let why = world.condition(&pool, READY).context("Ready")?.message;
    ensure!(why.contains("* UpToDate: ") && why.contains("the rollout is stopped"), "{why}");
    ensure!(
        world.says(&pool, STALLED, "True", "Stalled")
            && world.says(&pool, RECONCILING, "False", "NotReconciling")
    );
    ensure!(world.events(events::ROLLOUT_STOPPED).len() == 1, "told once");
    let mark = world.mark();
    // Another process finds the mark, and does not begin again.
    world.kill_process();
    world.run_for(TimeDelta::minutes(60)).await?;
    ensure!(
        world.instances(&pool).len() == 3 && ended_since(&world, mark).is_empty(),
        "{}",
        world.describe()
    );
    ensure!(world.events(events::ROLLOUT_STOPPED).len() == 1, "told once");
    world.mute("*", false);
    // What failed joins now; the change goes on all the same.
    set_image(&world, &pool, NEW_IMAGE);
    world
        .run_until("it goes on", SOON, |world| world.says(&pool, RECONCILING, "True", "Reconciling"))
        .await?;
    ensure!(world.says(&pool, READY, "True", "Ready"), "a rollout in progress is ready");
    roll(&mut world, &pool, 3, NEW_IMAGE, 2, 4).await?;
    ensure!(world.says(&pool, STALLED, "False", "NotStalled"), "{}", world.describe());
    ensure!(world.says(&pool, RECONCILING, "False", "NotReconciling"), "{}", world.describe());
    world.finish()
}

// Rules: H3
#[tokio::test(start_paused = true)]
async fn a_blocked_drain_holds_the_rollout_and_terminates_nothing() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    world.block_drain("*", true);
    let mark = world.mark();
    set_image(&world, &pool, NEW_IMAGE);
    world.run_for(TimeDelta::minutes(30)).await?;
    ensure!(ended_since(&world, mark).is_empty(), "ended although the drain is blocked");
    ensure!(available(&world, &pool) == 3 && world.instances(&pool).len() == 4, "{}", world.describe());
    let message = world.condition(&pool, ROLLING_OUT).context("RollingOut")?.message;
    ensure!(message.starts_with("draining workers-i-"), "{message}");
    world.block_drain("*", false);
    roll(&mut world, &pool, 3, NEW_IMAGE, 3, 4).await?;
    world.finish()
}

// Rules: H3
#[tokio::test(start_paused = true)]
async fn a_pool_scales_during_a_rollout() -> Result<()> {
    for (seed, replicas) in (0..).zip([5, 1, 0, 2, 6]) {
        let (mut world, pool) = running(Setup::seed(seed), 4).await?;
        set_image(&world, &pool, NEW_IMAGE);
        let pause = 15 + i64::try_from(world.random.below(120))?;
        world.run_for(TimeDelta::seconds(pause)).await?;
        world.scale(&pool, replicas);
        roll(&mut world, &pool, usize::try_from(replicas)?, NEW_IMAGE, 0, 7).await?;
        world.finish()?;
    }
    Ok(())
}

// Rules: F1, H3
#[tokio::test(start_paused = true)]
async fn a_paused_pool_replaces_nothing_until_it_is_resumed() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    world.edit_cluster(|cluster| cluster.spec.paused = Some(true));
    world.run_for(TimeDelta::seconds(30)).await?;
    let mark = world.mark();
    set_image(&world, &pool, NEW_IMAGE);
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    world.edit_cluster(|cluster| cluster.spec.paused = None);
    roll(&mut world, &pool, 3, NEW_IMAGE, 3, 4).await?;
    world.finish()
}

/// A version that AWS refuses stops the rollout before it begins.
// Rules: H3, I5
#[tokio::test(start_paused = true)]
async fn a_rejected_launch_template_replaces_nothing() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let before = world.in_service(&pool);
    let words = "Invalid BASE64 encoding of user data";
    let fault = Fault::error("CreateLaunchTemplateVersion", 400, "InvalidUserData.Malformed", words);
    world.fault(fault.times(None));
    set_image(&world, &pool, NEW_IMAGE);
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.in_service(&pool) == before && world.group(&pool).context("the group")?.desired == 3);
    ensure!(world.says(&pool, ROLLING_OUT, "False", "NotRollingOut"), "{}", world.describe());
    world.simulator.clear_faults(None);
    roll(&mut world, &pool, 3, NEW_IMAGE, 3, 4).await?;
    world.finish()
}

/// No capacity for the surge: nothing is taken away.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn a_surge_that_cannot_be_launched_terminates_nothing() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    world.simulator.set_capacity(&world.scope(), "*", "*", Some(3));
    let mark = world.mark();
    set_image(&world, &pool, NEW_IMAGE);
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(ended_since(&world, mark).is_empty() && available(&world, &pool) == 3);
    world.simulator.set_capacity(&world.scope(), "*", "*", None);
    roll(&mut world, &pool, 3, NEW_IMAGE, 3, 4).await?;
    world.finish()
}

// Rules: H3
// Pains: P11
#[tokio::test(start_paused = true)]
async fn on_delete_waits_for_a_deletion_by_a_user() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, on_delete).await?;
    let before = world.in_service(&pool);
    set_image(&world, &pool, NEW_IMAGE);
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(world.in_service(&pool) == before, "nothing rolls by itself");
    ensure!(world.says(&pool, UP_TO_DATE, "False", "WaitingForDeletion"), "{}", world.describe());
    for machine in world.machines(&pool).into_keys() {
        world.delete_machine(&machine);
        world
            .run_until("it is replaced", SOON, |world| {
                !world.machines(&pool).contains_key(&machine) && world.is_running(&pool, 2)
            })
            .await?;
    }
    ensure!(is_rolled_out(&world, &pool, 2, NEW_IMAGE), "{}", world.describe());
    world.finish()
}

/// After a rollout a second look writes nothing, in the same process or a new one.
// Rules: H3, I4
// Pains: P12
#[tokio::test(start_paused = true)]
async fn a_finished_rollout_writes_nothing() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    set_image(&world, &pool, NEW_IMAGE);
    roll(&mut world, &pool, 3, NEW_IMAGE, 3, 4).await?;
    world.run_for(TimeDelta::minutes(3)).await?;
    let (mark, writes) = (world.mark(), world.journal.len());
    world.run_for(TimeDelta::minutes(12)).await?;
    world.kill_process();
    world.run_for(TimeDelta::minutes(12)).await?;
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    let changed = world.journal.since(writes).into_iter().filter(|entry| entry.changed).count();
    ensure!(changed == 0, "{:?}", world.journal.since(writes));
    ensure!(world.events(events::ROLLOUT_COMPLETED).len() == 1);
    world.finish()
}

/// Instances that die in AWS in the middle of a rollout are replaced by what is wished.
// Rules: D11, H3
// Pains: P43
#[tokio::test(start_paused = true)]
async fn an_instance_that_dies_during_a_rollout_is_replaced() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 4).await?;
        set_image(&world, &pool, NEW_IMAGE);
        let pause = 12 + i64::try_from(world.random.below(120))?;
        world.run_for(TimeDelta::seconds(pause)).await?;
        let victim = world.in_service(&pool).pop_first().context("an instance")?;
        world.simulator.kill(&world.scope(), &victim);
        roll(&mut world, &pool, 4, NEW_IMAGE, 0, 5).await?;
        world.finish()?;
    }
    Ok(())
}

/// A person who lowers desired capacity in AWS in the middle is overruled.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn a_surge_that_another_actor_removes_is_restored() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    set_image(&world, &pool, NEW_IMAGE);
    world.run_until("the surge is there", SOON, |world| available(world, &pool) == 4).await?;
    let params = crate::group_params(&world, &pool).with("DesiredCapacity", 3);
    world.aws(Service::AutoScaling, "SetDesiredCapacity", params)?;
    roll(&mut world, &pool, 3, NEW_IMAGE, 3, 4).await?;
    world.finish()
}
