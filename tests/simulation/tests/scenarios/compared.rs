//! What users of other systems live with and is shown nowhere else: docs/contributors/compared.md has the numbers.

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    ASGMachinePoolSpec,
    conditions::{DELETING, UP_TO_DATE},
};
use capasg_fake_aws::{Fault, Service};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::{SOON, ended_since, group_params, reach, running, running_with};

const VERSION: &str = "CreateLaunchTemplateVersion";
const UPDATE: &str = "UpdateAutoScalingGroup";

/// A spec with one member set, for example `/machine/rootVolume/sizeGiB`; objects on the way are made.
fn with(spec: &ASGMachinePoolSpec, path: &str, value: &Value) -> Result<ASGMachinePoolSpec> {
    let mut json = serde_json::to_value(spec)?;
    let mut at = &mut json;
    for member in path.trim_start_matches('/').split('/') {
        let object = if at.is_null() { at.insert_object() } else { at };
        at = object.as_object_mut().context("an object")?.entry(member).or_insert(Value::Null);
    }
    *at = value.clone();
    Ok(serde_json::from_value(json)?)
}

trait InsertObject {
    fn insert_object(&mut self) -> &mut Self;
}

impl InsertObject for Value {
    fn insert_object(&mut self) -> &mut Self {
        *self = json!({});
        self
    }
}

fn edit(world: &World, pool: &Pool, path: &str, value: &Value) -> Result<()> {
    let spec = with(&world.pool(pool).context("the pool")?.spec, path, value)?;
    world.edit_pool(pool, |pool| pool.spec = spec);
    Ok(())
}

// Pains: W1, W22
#[tokio::test(start_paused = true)]
async fn the_status_counts_ready_nodes_without_the_workload_cluster() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let counts = |world: &World| {
        let status = world.pool(&pool).and_then(|pool| pool.status.clone()).unwrap_or_default();
        (status.replicas, status.ready_replicas, status.up_to_date_replicas)
    };
    ensure!(counts(&world) == (3, 3, 3), "{:?}", counts(&world));
    // The Node of the fourth never answers, as if its API could not be reached.
    world.mute("*", true);
    world.scale(&pool, 4);
    world.run_until("the fourth is listed", SOON, |world| world.in_service(&pool).len() == 4).await?;
    world.run_for(TimeDelta::minutes(3)).await?;
    ensure!(counts(&world) == (4, 3, 4), "{:?}\n{}", counts(&world), world.describe());
    world.mute("*", false);
    reach(&mut world, &pool, 4).await?;
    ensure!(counts(&world) == (4, 4, 4), "{:?}", counts(&world));
    world.finish()
}

/// Each edit of what a machine is made of makes one version, and what runs is outdated by it; the group follows by number.
// Pains: P31, W5, W7
#[tokio::test(start_paused = true)]
async fn every_edit_of_spec_machine_is_a_version_and_a_rollout() -> Result<()> {
    let (mut world, pool) = running_with(Setup { watch: false, ..Setup::default() }, 1, |spec| {
        let strategy = json!({"strategy": {"type": "OnDelete"}});
        spec.rollout = serde_json::from_value(strategy).ok();
    })
    .await?;
    let edits = [
        ("/machine/rootVolume/sizeGiB", json!(80)),
        ("/machine/rootVolume/type", json!("io2")),
        ("/machine/rootVolume/iops", json!(4_000)),
        ("/machine/rootVolume/encryption", json!("AccountDefault")),
        ("/machine/rootVolume/onTermination", json!("Retain")),
        ("/machine/dataVolumes", json!([{"deviceName": "/dev/sdf", "sizeGiB": 20}])),
        ("/machine/dataVolumes", json!([{"deviceName": "/dev/sdf", "sizeGiB": 40}])),
        ("/machine/metadataOptions/httpProtocolIPv6", json!("enabled")),
        ("/machine/metadataOptions/httpPutResponseHopLimit", json!(2)),
        ("/machine/metadataOptions/httpTokens", json!("optional")),
        ("/machine/securityGroups", json!([{"id": "sg-0a1b2c3d"}])),
    ];
    for (path, value) in edits {
        let mark = world.mark();
        edit(&world, &pool, path, &value)?;
        world.run_for(TimeDelta::minutes(3)).await?;
        let made = world.calls_since(mark, Some(VERSION)).len();
        ensure!(made == 1, "{path} = {value} made {made} versions\n{}", world.describe());
        ensure!(
            world.says(&pool, UP_TO_DATE, "False", "WaitingForDeletion"),
            "{path} = {value} outdates nothing"
        );
        let group = world.group(&pool).context("the group")?;
        ensure!(group.template.1.parse::<u64>().is_ok(), "the group follows {}", group.template.1);
        // The next edit starts from a pool that is up to date.
        let id = world.in_service(&pool).into_iter().next().context("an instance")?;
        world.delete_machine(&world.machine_of(&pool, &id)?);
        world.run_until("it is replaced", SOON, |world| !world.in_service(&pool).contains(&id)).await?;
        reach(&mut world, &pool, 1).await?;
        ensure!(world.says(&pool, UP_TO_DATE, "True", "UpToDate"), "{path} = {value} is not rolled out");
    }
    world.finish()
}

// Pains: P27, W6
#[tokio::test(start_paused = true)]
async fn every_setting_of_a_group_can_be_changed_later() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let edits = [
        ("/group/defaultCooldownSeconds", json!(77), "DefaultCooldown"),
        ("/group/defaultInstanceWarmupSeconds", json!(88), "DefaultInstanceWarmup"),
        ("/group/healthCheckGracePeriodSeconds", json!(99), "HealthCheckGracePeriod"),
    ];
    for (path, value, parameter) in edits {
        let mark = world.mark();
        edit(&world, &pool, path, &value)?;
        world.run_for(TimeDelta::minutes(2)).await?;
        let calls = world.calls_since(mark, Some(UPDATE));
        let text = value.to_string();
        let sent = calls.iter().filter(|call| call.params[parameter].to_string().trim_matches('"') == text);
        ensure!(sent.count() == 1, "{path}: {calls:?}");
        ensure!(calls.len() == 1, "once: {calls:?}");
    }
    edit(&world, &pool, "/tags", &json!({"team": "a"}))?;
    world.run_for(TimeDelta::minutes(2)).await?;
    let group = world.group(&pool).context("the group")?;
    ensure!(group.tags.get("team").is_some_and(|team| team == "a"), "{:?}", group.tags);
    world.scale(&pool, 3);
    reach(&mut world, &pool, 3).await?;
    let tagged = world
        .instances(&pool)
        .iter()
        .filter(|one| one.tags.get("team").is_some_and(|team| team == "a"))
        .count();
    ensure!(tagged >= 1, "the tag did not reach the next instance\n{}", world.describe());
    ensure!(ended_since(&world, 0).is_empty(), "nothing was replaced for it");
    world.finish()
}

// Pains: P23, W12
#[tokio::test(start_paused = true)]
async fn six_waiting_deletions_delay_no_other_pool() -> Result<()> {
    let mut world = World::new(Setup::default());
    let going: Vec<Pool> = (0..6).map(|index| world.add_pool(&format!("going-{index}"), 1)).collect();
    let other = world.add_pool("other", 1);
    for pool in going.iter().chain([&other]) {
        world.run_until("it runs", SOON, |world| world.is_running(pool, 1)).await?;
    }
    world.block_drain("*", true);
    for pool in &going {
        world.delete_machine_pool(pool);
    }
    world
        .run_until("all wait for their drains", SOON, |world| {
            going.iter().all(|pool| world.says(pool, DELETING, "True", "DrainingMachines"))
        })
        .await?;
    world.scale(&other, 3);
    world
        .run_until("the other has grown", TimeDelta::minutes(3), |world| world.is_running(&other, 3))
        .await?;
    ensure!(going.iter().all(|pool| !world.is_gone(pool)), "they still wait");
    world.block_drain("*", false);
    for pool in &going {
        world.run_until("it is gone", SOON, |world| world.is_gone(pool)).await?;
    }
    world.finish()
}

/// A hook of another program is neither deleted nor answered, also where both hold an end.
// Pains: P51, P53, W15
#[tokio::test(start_paused = true)]
async fn lifecycle_hooks_of_another_actor_are_kept() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let hook = group_params(&world, &pool)
        .with("LifecycleHookName", "node-termination-handler")
        .with("LifecycleTransition", "autoscaling:EC2_INSTANCE_TERMINATING")
        .with("HeartbeatTimeout", "120")
        .with("DefaultResult", "CONTINUE");
    world.aws(Service::AutoScaling, "PutLifecycleHook", hook)?;
    world.kill_process();
    // Past the slow audit of hooks.
    world.run_for(TimeDelta::hours(3)).await?;
    let hooks = world.group(&pool).context("the group")?.hooks;
    ensure!(hooks.len() == 2 && hooks.iter().any(|name| name == "node-termination-handler"), "{hooks:?}");
    let mark = world.mark();
    let id = world.in_service(&pool).into_iter().next().context("an instance")?;
    world.delete_machine(&world.machine_of(&pool, &id)?);
    world.run_until("it is replaced", SOON, |world| !world.in_service(&pool).contains(&id)).await?;
    reach(&mut world, &pool, 2).await?;
    let answers = world.calls_since(mark, Some("CompleteLifecycleAction"));
    ensure!(
        !answers.is_empty()
            && answers.iter().all(|call| call.params["LifecycleHookName"] != "node-termination-handler"),
        "{answers:?}"
    );
    world.finish()
}

// Pains: P6, W25
#[tokio::test(start_paused = true)]
async fn a_new_pool_with_tags_has_one_version_and_no_rollout() -> Result<()> {
    for seed in 0..5 {
        let (mut world, _) = running_with(Setup::seed(seed), 3, |spec| {
            spec.tags = [("team".to_owned(), "a".to_owned())].into();
        })
        .await?;
        world.run_for(TimeDelta::minutes(30)).await?;
        let calls = world.mutations_since(0);
        let count = |action: &str| calls.iter().filter(|call| call.action == action).count();
        ensure!(count("CreateLaunchTemplate") == 1 && count(VERSION) == 0, "{calls:?}");
        ensure!(count("CreateAutoScalingGroup") == 1 && count(UPDATE) == 0, "{calls:?}");
        ensure!(ended_since(&world, 0).is_empty() && world.events("RolloutStarted").is_empty());
        world.finish()?;
    }
    Ok(())
}

/// What fails after a change was made is tried again by itself; the change is not made again.
// Pains: W26
#[tokio::test(start_paused = true)]
async fn a_later_step_that_keeps_failing_makes_no_version_and_no_rollout() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let before = world.in_service(&pool);
    let refused = Fault::error(UPDATE, 400, "ValidationError", "DefaultCooldown is not to our liking");
    world.fault(refused.with_parameter("DefaultCooldown").times(None));
    let denied =
        Fault::error("SuspendProcesses", 403, "AccessDenied", "not authorized to perform this operation");
    world.fault(denied.times(None));
    let mark = world.mark();
    edit(&world, &pool, "/tags", &json!({"team": "a"}))?;
    edit(&world, &pool, "/group/defaultCooldownSeconds", &json!(77))?;
    edit(&world, &pool, "/group/suspendedProcesses", &json!(["AZRebalance", "AlarmNotification"]))?;
    world.run_for(TimeDelta::hours(6)).await?;
    let made = world.calls_since(mark, Some(VERSION)).len();
    ensure!(made <= 1, "{made} versions");
    let tries = world.calls_since(mark, Some(UPDATE)).len();
    ensure!((2..40).contains(&tries), "{tries} tries in six hours");
    ensure!(world.in_service(&pool) == before && world.events("RolloutStarted").is_empty(), "nothing rolled");
    world.simulator.clear_faults(None);
    world.run_for(TimeDelta::minutes(20)).await?;
    reach(&mut world, &pool, 2).await?;
    ensure!(world.in_service(&pool) == before);
    world.finish()
}
