//! `changePolicy: Preview`: what would change is shown and nothing of it is done; sizes, drains and ends go on.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    conditions::{DRIFTED, RECONCILING, SCALING_HEALTHY, STALLED},
    names::events,
    pool::{ChangePolicy, InstanceRefresh, InstanceTypeEntry, PendingChange, RootVolume},
};
use capasg_fake_aws::{LogEntry, Service};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

use crate::{
    SOON, group_params, reach,
    refresh::{Data, quick, refreshed_pool, set_image, statuses},
    running,
};

const NEW_IMAGE: &str = "ami-0b1c2d3e";

fn policy(world: &World, pool: &Pool, policy: ChangePolicy) {
    world.edit_pool(pool, |pool| pool.spec.change_policy = Some(policy));
}

fn pending(world: &World, pool: &Pool) -> Vec<PendingChange> {
    world.pool(pool).and_then(|pool| Some(pool.status.as_ref()?.pending_changes.clone())).unwrap_or_default()
}

/// Path, both values and effect by path.
fn shown(world: &World, pool: &Pool) -> BTreeMap<String, String> {
    let text = |change: PendingChange| {
        let PendingChange { path, from, to, effect } = change;
        (path, format!("{from} -> {to} ({effect})"))
    };
    pending(world, pool).into_iter().map(text).collect()
}

fn mutations(world: &World, mark: u64, but: &[&str]) -> Vec<LogEntry> {
    let all = world.mutations_since(mark).into_iter();
    all.filter(|call| !but.contains(&call.action.as_str())).collect()
}

/// Pain 54 (detect-only drift): each change is shown as a path with both values and what it does.
// Pains: P54, W27
#[tokio::test(start_paused = true)]
async fn a_preview_lists_each_change_and_makes_none_until_applied() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let before = world.in_service(&pool);
    policy(&world, &pool, ChangePolicy::Preview);
    world.run_for(TimeDelta::minutes(2)).await?;
    ensure!(pending(&world, &pool).is_empty(), "nothing differs: {:?}", pending(&world, &pool));
    ensure!(world.says(&pool, DRIFTED, "False", "NotDrifted"));
    let mark = world.mark();
    world.edit_pool(&pool, |pool| {
        pool.spec.machine.image.id = Some(NEW_IMAGE.to_owned());
        pool.spec.machine.root_volume = Some(RootVolume { size_gib: Some(80), ..RootVolume::default() });
        pool.spec.group.get_or_insert_default().default_cooldown_seconds = Some(120);
        pool.spec.tags = [("team".to_owned(), "a".to_owned())].into();
        pool.spec.instance_types.push(InstanceTypeEntry::new("m6i.large"));
    });
    // Somebody else changes something, too.
    let params = group_params(&world, &pool).with("HealthCheckGracePeriod", 10);
    world.aws(Service::AutoScaling, "UpdateAutoScalingGroup", params)?;
    let mark_of_ours = world.mark();
    world.run_for(TimeDelta::minutes(3)).await?;
    let (writes, settled) = (world.journal.len(), shown(&world, &pool));
    world.run_for(TimeDelta::minutes(15)).await?;
    ensure!(world.mutations_since(mark_of_ours).is_empty(), "{:?}", world.mutations_since(mark));
    ensure!(world.journal.since(writes).is_empty(), "nothing flips: {:?}", world.journal.since(writes));
    ensure!(world.in_service(&pool) == before, "{}", world.describe());
    for (path, change) in [
        ("spec.machine.image", "ami-0a1b2c3d -> ami-0b1c2d3e (Makes 3 instances outdated)"),
        ("spec.machine.rootVolume.sizeGiB", "none -> 80 (Makes 3 instances outdated)"),
        ("spec.group.defaultCooldownSeconds", "300 -> 120 (InPlace)"),
        ("spec.group.healthCheckGracePeriodSeconds", "10 -> 300 (InPlace)"),
        ("spec.tags[team]", "none -> a (InPlace)"),
    ] {
        ensure!(settled.get(path).map(String::as_str) == Some(change), "{path}: {settled:#?}");
    }
    ensure!(settled.keys().any(|path| path.starts_with("spec.instanceTypes")), "{settled:#?}");
    // What somebody else changed is told from what the spec changed.
    ensure!(world.says(&pool, DRIFTED, "True", "Drifted"), "{}", world.describe());
    let told = world.condition(&pool, DRIFTED).context("Drifted")?.message;
    ensure!(told.ends_with(": spec.group.healthCheckGracePeriodSeconds is 10 instead of 300"), "{told}");
    for type_ in [RECONCILING, STALLED] {
        ensure!(world.condition(&pool, type_).is_some_and(|found| found.status == "False"), "{type_}");
    }
    let params = group_params(&world, &pool).with("HealthCheckGracePeriod", 300);
    world.aws(Service::AutoScaling, "UpdateAutoScalingGroup", params)?;
    world.run_for(TimeDelta::minutes(3)).await?;
    ensure!(world.says(&pool, DRIFTED, "True", "Previewing"), "{}", world.describe());
    ensure!(world.says(&pool, "UpToDate", "True", "UpToDate"), "{}", world.describe());
    ensure!(
        world.events(events::DRIFT_CORRECTED).is_empty() && world.events(events::ROLLOUT_STARTED).is_empty()
    );

    policy(&world, &pool, ChangePolicy::Apply);
    world
        .run_until("it is applied", TimeDelta::minutes(40), |world| {
            world.is_running(&pool, 3) && world.in_service(&pool).is_disjoint(&before)
        })
        .await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    ensure!(pending(&world, &pool).is_empty() && world.says(&pool, DRIFTED, "False", "NotDrifted"));
    world.finish()
}

/// In a preview a pool grows with nodes that join: tokens that rotate reach the template, what else waits does not.
// Rules: D7, H2
// Pains: P54
#[tokio::test(start_paused = true)]
async fn replicas_and_tokens_are_still_applied_in_a_preview() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    policy(&world, &pool, ChangePolicy::Preview);
    world.edit_pool(&pool, |pool| {
        pool.spec.machine.image.id = Some(NEW_IMAGE.to_owned());
        pool.spec.group.get_or_insert_default().default_cooldown_seconds = Some(120);
    });
    world.run_for(TimeDelta::minutes(2)).await?;
    let mark = world.mark();
    for _ in 0..3 {
        world.rotate_token(&pool);
        world.run_for(TimeDelta::minutes(5)).await?;
    }
    let versions = world.calls_since(mark, Some("CreateLaunchTemplateVersion"));
    ensure!(versions.len() == 3, "one a rotation: {}", versions.len());
    for version in &versions {
        let image = &version.params["LaunchTemplateData"]["ImageId"];
        ensure!(image == "ami-0a1b2c3d", "the image waits: {image}");
    }
    for call in world.calls_since(mark, Some("UpdateAutoScalingGroup")) {
        ensure!(call.params.get("DefaultCooldown").is_none(), "{call:?}");
    }
    for replicas in [5, 2] {
        world.scale(&pool, replicas);
        reach(&mut world, &pool, usize::try_from(replicas)?).await?;
    }
    ensure!(world.instances(&pool).iter().all(|one| one.image != NEW_IMAGE));
    ensure!(shown(&world, &pool).contains_key("spec.machine.image"), "{:?}", shown(&world, &pool));
    // A Machine that a person deletes is drained and replaced.
    let victim = world.machines(&pool).into_keys().next().context("a Machine")?;
    world.delete_machine(&victim);
    world
        .run_until("it is replaced", SOON, |world| {
            world.is_running(&pool, 2) && !world.machines(&pool).contains_key(&victim)
        })
        .await?;
    world.delete_machine_pool(&pool);
    world.run_until("it goes", SOON, |world| world.is_gone(&pool)).await?;
    world.finish()
}

/// An instance refresh that goes on in a preview has the group launch its version when it succeeds: new user data are
/// put into that one.
// Pains: P54
#[tokio::test(start_paused = true)]
async fn new_user_data_follow_an_instance_refresh_that_succeeds_in_a_preview() -> Result<()> {
    let bakes = InstanceRefresh { bake_time_seconds: Some(300), ..quick() };
    let (mut world, pool) = refreshed_pool(Setup::default(), Data::Fixed, 2, bakes).await?;
    set_image(&world, &pool, NEW_IMAGE);
    world.run_until("AWS refreshes", SOON, |world| !statuses(world, &pool).is_empty()).await?;
    policy(&world, &pool, ChangePolicy::Preview);
    world.edit_pool(&pool, |pool| pool.spec.instance_types.push(InstanceTypeEntry::new("m6i.large")));
    world.run_until("it succeeds", SOON, |world| statuses(world, &pool) == ["Successful"]).await?;
    world.run_for(TimeDelta::minutes(10)).await?;
    let mark = world.mark();
    world.rotate_token(&pool);
    world.run_for(TimeDelta::minutes(5)).await?;
    let versions = world.calls_since(mark, Some("CreateLaunchTemplateVersion"));
    ensure!(versions.len() == 1, "one for the new user data: {}", versions.len());
    let image = &versions[0].params["LaunchTemplateData"]["ImageId"];
    ensure!(image == NEW_IMAGE, "what the refresh left: {image}");
    world.finish()
}

/// A rollout under way stops where it is, with its surge, and goes on with Apply.
// Rules: H3
// Pains: P54
#[tokio::test(start_paused = true)]
async fn a_preview_holds_a_rollout_in_progress() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let before = world.in_service(&pool);
    world.edit_pool(&pool, |pool| pool.spec.machine.image.id = Some(NEW_IMAGE.to_owned()));
    world
        .run_until("one is replaced", SOON, |world| {
            world.in_service(&pool).intersection(&before).count() == 2
        })
        .await?;
    // All replicas, and the surge that makes up for the next one; what drains already goes on.
    let full = |world: &World| world.in_service(&pool).len() >= 3;
    world.run_until("the new ones work", SOON, full).await?;
    policy(&world, &pool, ChangePolicy::Preview);
    let at_first = world.in_service(&pool);
    world.run_for(TimeDelta::minutes(5)).await?;
    let held = world.in_service(&pool);
    let left = held.intersection(&before).count();
    ensure!(left > 0, "it has stopped in the middle\n{}", world.describe());
    ensure!(
        at_first.difference(&held).count() <= 1,
        "nothing but a drain under way goes on: {at_first:?} {held:?}"
    );
    let mark = world.mark();
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(world.in_service(&pool) == held, "{}", world.describe());
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    policy(&world, &pool, ChangePolicy::Apply);
    world
        .run_until("it goes on", TimeDelta::minutes(40), |world| {
            world.is_running(&pool, 3) && world.in_service(&pool).is_disjoint(&before)
        })
        .await?;
    world.finish()
}

/// A pool that begins in a preview makes nothing, and says what it would make.
// Pains: P54
#[tokio::test(start_paused = true)]
async fn a_new_pool_in_a_preview_creates_nothing() -> Result<()> {
    let mut world = World::new(Setup::default());
    let pool = world.add_pool_with("workers", 2, |spec| spec.change_policy = Some(ChangePolicy::Preview));
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(world.mutations_since(0).is_empty(), "{:?}", world.mutations_since(0));
    let shown = shown(&world, &pool);
    let name = world.group_name(&pool);
    ensure!(shown.get("Auto Scaling group") == Some(&format!("none -> {name} (Creates)")), "{shown:?}");
    ensure!(shown.contains_key("launch template"), "{shown:?}");
    ensure!(world.says(&pool, "GroupReady", "False", "NotGroupReady"), "{}", world.describe());
    policy(&world, &pool, ChangePolicy::Apply);
    reach(&mut world, &pool, 2).await?;
    ensure!(pending(&world, &pool).is_empty());
    world.finish()
}

/// A group or a hook that somebody deletes is only told of.
// Pains: P54, W15
#[tokio::test(start_paused = true)]
async fn what_is_deleted_outside_during_a_preview_is_listed() -> Result<()> {
    let (mut world, pool) = running(Setup { watch: false, ..Setup::default() }, 1).await?;
    policy(&world, &pool, ChangePolicy::Preview);
    let params = group_params(&world, &pool).with("LifecycleHookName", "asg-drain");
    world.aws(Service::AutoScaling, "DeleteLifecycleHook", params)?;
    world
        .run_until("the hook is missed", TimeDelta::minutes(100), |world| {
            shown(world, &pool).contains_key("spec.drain.onCloudTermination")
        })
        .await?;
    let params = group_params(&world, &pool).with("ForceDelete", true);
    world.aws(Service::AutoScaling, "DeleteAutoScalingGroup", params)?;
    let mark = world.mark();
    world
        .run_until("the group is missed", SOON, |world| {
            shown(world, &pool).contains_key("Auto Scaling group")
        })
        .await?;
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(mutations(&world, mark, &[]).is_empty(), "{:?}", mutations(&world, mark, &[]));
    policy(&world, &pool, ChangePolicy::Apply);
    reach(&mut world, &pool, 1).await?;
    ensure!(world.group(&pool).is_some_and(|group| group.hooks == ["asg-drain"]));
    world.finish()
}

/// A preview does not hide what AWS suspended, and an edit that waits resumes nothing; a person who asks for it does.
// Pains: P46, P54
#[tokio::test(start_paused = true)]
async fn a_launch_suspension_in_a_preview_is_resumed_on_request() -> Result<()> {
    let mut setup = Setup { watch: false, meanwhile_percent: 0, ..Setup::default() };
    setup.settings.give_up_millis = 3_600_000;
    let (mut world, pool) = running(setup, 2).await?;
    policy(&world, &pool, ChangePolicy::Preview);
    world.simulator.set_capacity(&world.scope(), "m7i.large", "*", Some(2));
    world.scale(&pool, 4);
    let suspended = |world: &World| world.says(&pool, SCALING_HEALTHY, "False", "ProcessesSuspended");
    world.run_until("suspended", TimeDelta::hours(2), suspended).await?;
    world.simulator.set_capacity(&world.scope(), "m7i.large", "*", None);
    let mark = world.mark();
    world.edit_pool(&pool, |pool| pool.spec.tags = [("team".to_owned(), "a".to_owned())].into());
    world.run_for(TimeDelta::hours(1)).await?;
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    ensure!(suspended(&world), "{}", world.describe());
    world.edit_pool(&pool, |pool| pool.spec.retry_token = Some("now".to_owned()));
    reach(&mut world, &pool, 4).await?;
    ensure!(world.calls_since(mark, Some("ResumeProcesses")).len() == 1, "resumed once");
    ensure!(world.says(&pool, SCALING_HEALTHY, "True", "ScalingHealthy"), "{}", world.describe());
    ensure!(shown(&world, &pool).contains_key("spec.tags[team]"), "{:?}", shown(&world, &pool));
    Ok(())
}
