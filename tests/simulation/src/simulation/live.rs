//! Lives through a story: it begins, things happen, mishaps end, the pool becomes what it is to be, and goes.

use anyhow::{Result, bail, ensure};
use capasg_api::{
    ASGMachine,
    names::annotations,
    pool::{DeletionPolicy, RolloutType},
};
use capasg_fake_aws::InstanceDump;
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;
use serde_json::json;

use super::{
    act::{Act, Field, Finale, Story},
    calm::{bring_back, calm, windows},
    existing_group, field, identities,
    outcome::{Options, Outcome},
    perform::perform,
    spec, standing,
};
use crate::{Pool, World, is_attached};

/// How often it is looked whether a pool is what it is to be.
pub(super) const LOOK: TimeDelta = TimeDelta::seconds(10);

/// The Cluster of a second pool that is not of the first one's.
const ANOTHER: &str = "staging";

/// Lives through a story.
pub(super) async fn live(story: &Story, options: Options) -> Outcome {
    let mut world = World::new(story.setup.clone());
    if options.record
        && let Some(invariants) = world.invariants()
    {
        invariants.record();
    }
    if let Some(call) = options.kill {
        world.crash_before_call(call);
    }
    let lived = chapters(story, &mut world).await;
    Outcome {
        seed: story.seed,
        violation: lived.err().map(|error| format!("{error:#}")),
        trace: world.invariants().map(|invariants| invariants.trace()).unwrap_or_default(),
        calls: world.journal.calls(),
        seconds: i64::try_from(world.clock.elapsed().as_secs()).unwrap_or(i64::MAX),
    }
}

async fn chapters(story: &Story, world: &mut World) -> Result<()> {
    world.set_drain_seconds(story.drain_seconds);
    world.core.state().expiry = story.expiry.map(TimeDelta::seconds);
    if let Some(invariants) = world.invariants() {
        invariants.note("story", || {
            let Story { setup, replicas, drain_seconds, .. } = story;
            format!(
                "a pool of {replicas}, drains of {drain_seconds} s, caches {} ms behind, meanwhile {} %, {:?}",
                setup.lag_millis, setup.meanwhile_percent, setup.settings
            )
        });
        invariants.note("story", || serde_json::to_string(&story.spec).unwrap_or_default());
    }
    identities::restore(world);
    existing_group::create(world, story);
    let pool = world.add_pool_with("workers", story.replicas, |spec| spec.clone_from(&story.spec));
    if story.fixed {
        let secret = pool.config.name.clone();
        world.edit_machine_pool(&pool, |own| {
            let bootstrap = &mut own.spec.template.spec.bootstrap;
            (bootstrap.config_ref, bootstrap.data_secret_name) = (None, Some(secret));
        });
    }
    let second = story.second.as_ref().map(|second| {
        let cluster = if second.elsewhere { ANOTHER } else { &pool.cluster.name };
        if second.elsewhere {
            world.add_another_cluster(ANOTHER);
        }
        world.add_pool_to(cluster, "batch", second.replicas, |spec| spec.clone_from(&second.spec))
    });
    happen(world, &pool, second.as_ref(), &story.acts).await?;
    for pool in [Some(&pool), second.as_ref()].into_iter().flatten() {
        calm(world, pool);
    }
    let is_odd =
        |act: &Act| matches!(act, Act::OlderVersions(_) | Act::LaunchByOthers(_) | Act::VersionByOthers(_));
    converge(world, &pool, story.has(is_odd)).await?;
    if let Some(second) = &second {
        converge(world, second, false).await?;
    }
    if story.quiet {
        world.run_for(settles(story)).await?;
        quiet(world, &pool).await?;
    }
    if story.finale != Finale::Stays {
        end(story, world, &pool, second.as_ref()).await?;
    }
    world.finish()
}

async fn happen(world: &mut World, pool: &Pool, second: Option<&Pool>, acts: &[(i64, Act)]) -> Result<()> {
    for (pause, act) in acts {
        world.run_for(TimeDelta::milliseconds(*pause)).await?;
        match (act, second) {
            (Act::Second(act), Some(second)) => perform(world, second, act),
            (act, _) => perform(world, pool, act),
        }
    }
    Ok(())
}

/// Once mishaps are over, a pool becomes what it is to be.
async fn converge(world: &mut World, pool: &Pool, odd: bool) -> Result<()> {
    let members = i64::try_from(world.instances(pool).len()).unwrap_or(0);
    // A hook that somebody deleted is read again within an hour, and what AWS rejected is tried again after 15 min at most.
    let within = TimeDelta::minutes(80) + TimeDelta::minutes(2) * i32::try_from(members).unwrap_or(0);
    // Windows are closed for part of the time.
    let waits = world.pool(pool).is_some_and(|pool| !windows(&pool.spec).is_empty());
    let within = if waits { within * 2 } else { within };
    // AWS waits for what it launched to warm up, at checkpoints and in the end, and one instance at a time is its least.
    let refreshed = world.pool(pool).is_some_and(|pool| spec::refreshes(&pool.spec));
    let within = if refreshed { within * 3 } else { within };
    // Instances of another version than the pinned one stop a rollout until somebody lets it go on.
    let mut patience = if refreshed || odd { 3 } else { 0 };
    let mut continued = false;
    let (calm, mut deadline) = (world.now(), world.now() + within);
    // What was edited last has not been looked at yet.
    world.run_for(TimeDelta::seconds(75)).await?;
    let mut changed = false;
    while let Some(lacks) = lacks(world, pool) {
        bring_back(world, pool);
        if !changed && field::change_for_others(world, pool) {
            changed = true;
            deadline = world.now() + within;
        }
        // A rollout that stopped for want of what mishaps held back goes on once somebody says so. One that began to wait
        // while they lasted reaches its progress deadline after them.
        let waited_before = world.now() - calm <= progress_deadline(world, pool) + TimeDelta::seconds(90);
        if !continued && waited_before && stopped(world, pool) {
            continued = true;
            world.let_go_on(pool);
        }
        // What AWS gave up, or somebody cancelled, a person lets go on, a few times.
        if patience > 0 && stopped(world, pool) {
            patience -= 1;
            world.let_go_on(pool);
        }
        ensure!(world.now() < deadline, "converges: not within {} min: {lacks}", within.num_minutes());
        world.run_for(LOOK).await?;
    }
    Ok(())
}

fn progress_deadline(world: &World, pool: &Pool) -> TimeDelta {
    let replicas = world.machine_pool(pool).map_or(0, |owner| owner.replicas());
    world.pool(pool).map_or(TimeDelta::zero(), |object| object.spec.rollout(replicas).progress_deadline)
}

/// Whether a rollout is stopped.
pub(super) fn stopped(world: &World, pool: &Pool) -> bool {
    world.pool(pool).is_some_and(|pool| pool.annotations().contains_key(annotations::ROLLOUT_STOPPED))
}

pub(super) fn launched(one: &InstanceDump) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(&one.launch_time).ok().map(|at| at.to_utc())
}

/// What a pool lacks to be what it is to be.
pub(super) fn lacks(world: &World, pool: &Pool) -> Option<String> {
    let owner = world.machine_pool(pool)?;
    let replicas = usize::try_from(owner.replicas()).unwrap_or(0);
    if !world.is_running(pool, replicas) {
        return Some(format!("it has no {replicas} replicas and rest"));
    }
    let object = world.pool(pool)?;
    if let Some(lacks) = standing::lacks(world, pool, &object, replicas) {
        return Some(lacks);
    }
    let asked = |machine: &ASGMachine| machine.annotations().contains_key(annotations::REPLACE);
    if let Some((name, _)) = world.asg_machines(pool).iter().find(|(_, machine)| asked(machine)) {
        return Some(format!("{name} was to be replaced"));
    }
    if world.simulator.refreshes(&world.scope(), &pool.group).iter().any(|one| one.ended.is_none()) {
        return Some("an instance refresh is under way".to_owned());
    }
    let rollout = object.spec.rollout(owner.replicas());
    if rollout.after.is_some_and(|after| after > world.now()) {
        return Some("everything is to be replaced before long".to_owned());
    }
    if rollout.type_ == RolloutType::OnDelete {
        return None;
    }
    let after = rollout.after;
    let is_older =
        |one: &InstanceDump| after.zip(launched(one)).is_some_and(|(after, launched)| launched < after);
    let image = object.spec.machine.image.id.as_ref();
    let outdated = world.instances(pool).into_iter().find(|one| {
        image.is_some_and(|image| *image != one.image)
            || !object.spec.instance_type_names().contains(&one.instance_type)
            || is_older(one)
            // The next requested change replaces what another actor attached (`change_for_others`).
            || is_attached(one)
    });
    if let Some(outdated) = outdated {
        return Some(format!("{} is outdated", outdated.id));
    }
    if let Some(lacks) = standing::lacks_report(world, pool) {
        return Some(lacks);
    }
    let told = object.status.as_ref().map_or(0, |status| status.up_to_date_replicas);
    (usize::try_from(told) != Ok(replicas)).then(|| format!("{told} of {replicas} are told to be up to date"))
}

fn is_template_gone(act: &Act) -> bool {
    *act == Act::Field(Field::TemplateGone)
}

/// How long it takes at most until a pool notices and corrects what happened in a story.
fn settles(story: &Story) -> TimeDelta {
    // Where events come, what somebody else wrote is seen by polls that are minutes apart.
    let mut minutes = if story.setup.events { 8 } else { 3 };
    // What AWS rejected is tried again after 15 minutes at most.
    let rejects = |act: &Act| matches!(act, Act::Outage(..) | Act::Field(Field::ImageGone(..)));
    if story.has(rejects) {
        minutes += 15;
    }
    // That a launch template is gone is noticed within an hour, unless the pool needs it sooner.
    if story.has(is_template_gone) {
        minutes += 62;
    }
    // A process that starts reads the hook, whose timeout follows the drain timeout of the MachinePool, within five minutes.
    if story.has(|act| matches!(act, Act::NodeDrainTimeout(..))) {
        minutes += 5;
    }
    // A recommendation to rebalance counts once its instance is 15 minutes old, and the rollout then takes some minutes.
    if story.has(|act| matches!(act, Act::Recommend(_))) {
        minutes += 25;
    }
    TimeDelta::minutes(minutes)
}

/// A steady pool writes nothing, neither by the same process nor by a new one.
async fn quiet(world: &mut World, pool: &Pool) -> Result<()> {
    let before = told(world, pool);
    for restart in [false, true] {
        let (mark, writes) = (world.mark(), world.journal.len());
        if restart {
            world.kill_process();
        }
        world.run_for(TimeDelta::minutes(12)).await?;
        if let Some(call) = world.mutations_since(mark).first() {
            bail!("a_steady_pool_writes_nothing: {} (another process: {restart})", call.action);
        }
        let made = world.journal.since(writes).into_iter().find(|entry| !restart || entry.changed);
        if let Some(entry) = made {
            let after = told(world, pool);
            let differs: Vec<(&String, &String)> =
                before.iter().zip(&after).filter(|(before, after)| before != after).collect();
            bail!("a_steady_pool_writes_nothing: {} (another process: {restart}) {differs:?}", entry.what);
        }
    }
    Ok(())
}

/// The statuses of the pool and its ASGMachines, line by line.
fn told(world: &World, pool: &Pool) -> Vec<String> {
    let own = world.pool(pool).map(|pool| json!(pool.status));
    let machines = world.asg_machines(pool).into_values().map(|machine| json!(machine.status));
    let texts = own.into_iter().chain(machines).map(|status| format!("{status:#}"));
    texts.flat_map(|text| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()).collect()
}

/// Everything goes, and nothing is left. A second pool stays until the first is gone, unless its Cluster or the namespace goes.
async fn end(story: &Story, world: &mut World, pool: &Pool, second: Option<&Pool>) -> Result<()> {
    if let Some(invariants) = world.invariants() {
        invariants.note("story", || format!("{:?}", story.finale));
    }
    let orphans = world.pool(pool).is_some_and(|pool| pool.spec.deletion_policy() == DeletionPolicy::Orphan);
    let elsewhere = second.filter(|second| second.cluster != pool.cluster);
    let beside = second.filter(|second| second.cluster == pool.cluster);
    match story.finale {
        Finale::Stays => {}
        Finale::DeleteMachinePool => world.delete_machine_pool(pool),
        Finale::DeletePool => world.delete_pool(pool),
        Finale::DeleteCluster => world.delete_cluster(),
        Finale::DeleteNamespace => world.delete_namespace(),
        Finale::ClusterVanishes => {
            world.vanish_cluster();
            for pool in [Some(pool), beside].into_iter().flatten() {
                world.delete_pool(pool);
            }
        }
    }
    happen(world, pool, second, &story.last_acts).await?;
    calm(world, pool);
    if matches!(story.finale, Finale::DeletePool | Finale::ClusterVanishes) {
        world.run_for(TimeDelta::minutes(1)).await?;
        world.vanish_machine_pool(pool);
    }
    if let Some(second) = beside.filter(|_| story.finale == Finale::ClusterVanishes) {
        world.vanish_machine_pool(second);
    }
    gone(world, |world| if orphans { world.is_let_go(pool) } else { world.is_gone(pool) }).await?;
    if let Some(second) = second {
        let goes_alone = matches!(story.finale, Finale::DeleteMachinePool | Finale::DeletePool);
        if goes_alone || elsewhere.is_some() && story.finale != Finale::DeleteNamespace {
            calm(world, second);
            converge(world, second, false).await?;
            world.delete_any_cluster(&second.cluster);
        }
        gone(world, |world| world.is_gone(second)).await?;
    }
    if orphans {
        // Another actor may have deleted the launch template, which a pool without launches notices within an hour.
        let has_template = world.has_template(pool) || story.has(is_template_gone);
        let left = world.group(pool).is_some_and(|group| group.status.is_none()) && has_template;
        ensure!(left, "orphans_are_left_alone: group or launch template is gone\n{}", world.describe());
        return Ok(());
    }
    existing_group::delete_template(world);
    let left = world.simulator.leftovers(None);
    ensure!(left.is_empty(), "nothing_is_orphaned: left in the cloud: {left:?}");
    Ok(())
}

async fn gone(world: &mut World, is_gone: impl Fn(&World) -> bool) -> Result<()> {
    let deadline = world.now() + TimeDelta::minutes(150);
    while !is_gone(world) {
        ensure!(world.now() < deadline, "nothing_is_orphaned: not gone\n{}", world.describe());
        world.run_for(LOOK).await?;
    }
    Ok(())
}
