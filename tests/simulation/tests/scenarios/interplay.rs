//! Combinations that generated scenarios found: two concerns of a pool that meet at one moment.

use anyhow::{Result, ensure};
use capasg_api::{
    conditions::UP_TO_DATE,
    names::{annotations, events},
};
use capasg_fake_aws::{Fault, Service, Tree};
use capasg_simulation::{Setup, World};
use chrono::{SecondsFormat, TimeDelta};
use kube::ResourceExt;

use crate::rollout::{NEW_IMAGE, available, budget, on_delete, set_image};
use crate::{SOON, ended_since, group_params, reach, running_with};

/// With `OnDelete`, a user requests a replacement while all instances are outdated by their age: the new instance is so,
/// too, but has not joined.
// Rules: H7
#[tokio::test(start_paused = true)]
async fn a_replacement_waits_for_its_surge_that_is_outdated_by_age() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running_with(Setup::seed(seed), 3, on_delete).await?;
        let after = world.now() + TimeDelta::minutes(30);
        world.edit_pool(&pool, |pool| {
            let rollout = pool.spec.rollout.get_or_insert_default();
            rollout.after = Some(after.to_rfc3339_opts(SecondsFormat::Secs, true));
        });
        world.run_for(TimeDelta::minutes(29)).await?;
        let first = world.in_service(&pool).into_iter().next().unwrap_or_default();
        let asg_machine = world.asg_machines(&pool).into_iter().find(|(name, _)| name.contains(&first));
        let Some((name, _)) = asg_machine else { anyhow::bail!("no ASGMachine of {first}") };
        let mark = world.mark();
        world.annotate_asg_machine(&name, annotations::REPLACE);
        let known = world.in_service(&pool);
        world.run_until("a fourth is launched", SOON, |world| world.instances(&pool).len() == 4).await?;
        let surge = world.instances(&pool).into_iter().map(|one| one.id).find(|id| !known.contains(id));
        let Some(surge) = surge else { anyhow::bail!("no surge") };
        world.mute(&surge, true);
        world.run_for(TimeDelta::minutes(5)).await?;
        ensure!(ended_since(&world, mark).is_empty(), "seed {seed}: the surge has not joined");
        world.mute(&surge, false);
        world.run_until("it is replaced", SOON, |world| !world.in_service(&pool).contains(&first)).await?;
    }
    Ok(())
}

/// A stopped rollout whose annotation a user removes before the cache has shown it.
// Rules: H7
#[tokio::test(start_paused = true)]
async fn a_stop_that_is_undone_before_it_was_read_does_not_last() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, |spec| budget(spec, 1, 0)).await?;
    world.edit_pool(&pool, |pool| {
        let rollout = pool.spec.rollout.get_or_insert_default();
        rollout.progress_deadline_seconds = Some(300);
    });
    let mark = world.mark();
    set_image(&world, &pool, NEW_IMAGE);
    let known = world.in_service(&pool);
    world.run_until("the surge", SOON, |world| world.instances(&pool).len() == 3).await?;
    let surge = world.instances(&pool).into_iter().map(|one| one.id).find(|id| !known.contains(id));
    world.mute(surge.as_deref().unwrap_or_default(), true);
    world
        .run_until("the rollout stops", SOON, |world| {
            world
                .pool(&pool)
                .is_some_and(|pool| pool.annotations().contains_key(annotations::ROLLOUT_STOPPED))
        })
        .await?;
    // Before the next view of the cache.
    world.edit_pool(&pool, |pool| {
        pool.annotations_mut().remove(annotations::ROLLOUT_STOPPED);
    });
    world.mute(surge.as_deref().unwrap_or_default(), false);
    reach(&mut world, &pool, 2).await?;
    world
        .run_until("all are replaced", SOON, |world| {
            world.says(&pool, UP_TO_DATE, "True", "UpToDate")
                && world.instances(&pool).iter().all(|one| one.image == NEW_IMAGE)
        })
        .await?;
    ensure!(ended_since(&world, mark).len() >= 2, "both were replaced");
    world.finish()
}

/// AWS launches from another version than the group is pinned to.
// Rules: H7
#[tokio::test(start_paused = true)]
async fn a_rollout_whose_instances_arrive_outdated_stops() -> Result<()> {
    for surge in [1, 2] {
        let (mut world, pool) = running_with(Setup::default(), 4, |spec| budget(spec, surge, 0)).await?;
        let scope = world.scope();
        let mut settings = world.simulator.settings(Some(&scope));
        settings.launches_older_version = true;
        world.simulator.set_settings(Some(&scope), &settings);
        let (mark, known) = (world.mark(), world.in_service(&pool));
        set_image(&world, &pool, NEW_IMAGE);
        world
            .run_until("it stops", SOON, |world| {
                world.says(&pool, UP_TO_DATE, "False", "UnexpectedLaunchTemplateVersion")
            })
            .await?;
        world.run_for(TimeDelta::minutes(30)).await?;
        let ended: Vec<String> = ended_since(&world, mark).into_iter().map(|(id, _)| id).collect();
        let replaced = ended.iter().filter(|id| known.contains(*id)).count();
        let most = usize::try_from(surge)? + 1;
        ensure!(replaced <= most, "{replaced} working nodes were replaced with surge {surge}");
        ensure!(ended.len() <= 2 * most, "{} terminations: {ended:?}", ended.len());
        ensure!(world.in_service(&pool).len() == 4, "{}", world.describe());
        // A new leader knows why.
        world.kill_process();
        world.run_for(TimeDelta::minutes(5)).await?;
        ensure!(
            world.says(&pool, UP_TO_DATE, "False", "UnexpectedLaunchTemplateVersion"),
            "{}",
            world.describe()
        );
        // AWS is right again, and a user lets the rollout continue.
        settings.launches_older_version = false;
        world.simulator.set_settings(Some(&scope), &settings);
        world.edit_pool(&pool, |pool| {
            pool.annotations_mut().remove(annotations::ROLLOUT_STOPPED);
        });
        world
            .run_until("all are replaced", SOON, |world| world.says(&pool, UP_TO_DATE, "True", "UpToDate"))
            .await?;
        world.finish()?;
    }
    Ok(())
}

/// Another actor pins the group to a version of its own in the middle of a rollout, and AWS replaces instances before that
/// can be corrected: it launches what the group specifies, so that the rollout continues.
// Rules: H7
#[tokio::test(start_paused = true)]
async fn a_version_that_another_actor_pins_in_a_rollout_does_not_stop_it() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 4, |spec| budget(spec, 1, 0)).await?;
    set_image(&world, &pool, NEW_IMAGE);
    world.run_until("the surge works", SOON, |world| available(world, &pool) == 5).await?;
    let Some((template, pinned)) = world.simulator.pinned(&world.scope(), &pool.group) else {
        anyhow::bail!("the group has no version")
    };
    let params = Tree::new()
        .with("LaunchTemplateId", &template)
        .with("SourceVersion", pinned.to_string())
        .with("LaunchTemplateData", Tree::new().with("ImageId", "ami-0d1e2f3a"));
    let made = world.aws(Service::Ec2, "CreateLaunchTemplateVersion", params)?;
    let number = made.at("LaunchTemplateVersion.VersionNumber").and_then(Tree::text).unwrap_or_default();
    let source = Tree::new().with("LaunchTemplateId", &template).with("Version", number);
    let params = group_params(&world, &pool).with("LaunchTemplate", source);
    world.aws(Service::AutoScaling, "UpdateAutoScalingGroup", params)?;
    let fault = Fault::error("UpdateAutoScalingGroup", 500, "InternalFailure", "Please try again.");
    world.fault(fault.times(None));
    for victim in world.in_service(&pool).into_iter().take(3) {
        world.simulator.kill(&world.scope(), &victim);
    }
    let foreign =
        |world: &World| world.instances(&pool).iter().filter(|one| one.image == "ami-0d1e2f3a").count();
    world.run_until("AWS replaces them", SOON, |world| foreign(world) >= 3).await?;
    world.run_for(TimeDelta::minutes(1)).await?;
    world.simulator.clear_faults(None);
    world
        .run_until("all are replaced", TimeDelta::hours(1), |world| {
            world.says(&pool, UP_TO_DATE, "True", "UpToDate")
                && world.instances(&pool).iter().all(|one| one.image == NEW_IMAGE)
        })
        .await?;
    ensure!(world.events(events::ROLLOUT_STOPPED).is_empty(), "{:?}", world.events(events::ROLLOUT_STOPPED));
    world.finish()
}
