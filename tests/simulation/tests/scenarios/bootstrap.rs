//! Bootstrap data: tokens rotate without a rollout, a person's edit rolls once, the data shows nowhere.

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use capasg_api::conditions::{GROUP_READY, UP_TO_DATE};
use capasg_simulation::{CANARY, Pool, Setup, World};
use chrono::TimeDelta;

use crate::{SOON, ended_since, reach, rollout::on_delete, running, running_with};

fn up_to_date(world: &World, pool: &Pool) -> Option<i32> {
    Some(world.pool(pool)?.status.as_ref()?.up_to_date_replicas)
}

fn newest_user_data(world: &World, pool: &Pool) -> Result<String> {
    let mut instances = world.instances(pool);
    instances.sort_by(|a, b| a.launch_time.cmp(&b.launch_time));
    let newest = instances.pop().and_then(|one| one.user_data).context("user data")?;
    Ok(String::from_utf8(STANDARD.decode(newest)?)?)
}

/// Issue item 6: 100 rotations make 0 outdated.
// Rules: H2
// Pains: P8, W20
#[tokio::test(start_paused = true)]
async fn one_hundred_token_rotations_replace_nothing() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let before = world.in_service(&pool);
    for rotation in 0..100 {
        world.rotate_token(&pool);
        world.run_for(TimeDelta::seconds(450)).await?;
        ensure!(up_to_date(&world, &pool) == Some(3), "outdated after rotation {rotation}");
    }
    ensure!(world.in_service(&pool) == before, "the same three run");
    ensure!(ended_since(&world, 0).is_empty(), "nothing was ended");
    let template = world.dump().templates.into_iter().next().context("the template")?;
    ensure!(template.versions.len() <= 15, "{} versions have piled up", template.versions.len());
    // What is launched now joins with the last token.
    world.scale(&pool, 4);
    reach(&mut world, &pool, 4).await?;
    let data = newest_user_data(&world, &pool)?;
    ensure!(data.contains(&format!("{:06x}.", 101)), "not the last token");
    ensure!(data.contains(CANARY), "the rendered data");
    world.finish()
}

/// Issue item 6: a person's edit makes all outdated, once, after it is rendered.
// Rules: H2, H3
// Pains: P9, P37
#[tokio::test(start_paused = true)]
async fn a_bootstrap_config_edit_rolls_out_once_it_is_rendered() -> Result<()> {
    for seed in 0..3 {
        let (mut world, pool) = running_with(Setup::seed(seed), 3, on_delete).await?;
        world.rotate_token(&pool);
        world.run_for(TimeDelta::minutes(8)).await?;
        world.core.edit_config(&pool.config, "4");
        world.run_for(TimeDelta::minutes(8)).await?;
        // Something else makes a version between the edit and its rendering.
        world.edit_pool(&pool, |pool| pool.spec.tags = [("team".to_owned(), "a".to_owned())].into());
        world.run_for(TimeDelta::minutes(3)).await?;
        ensure!(up_to_date(&world, &pool) == Some(3), "not rendered yet\n{}", world.describe());
        world.rotate_token(&pool);
        world.run_until("all are outdated", SOON, |world| up_to_date(world, &pool) == Some(0)).await?;
        ensure!(world.condition(&pool, UP_TO_DATE).is_some_and(|found| found.status == "False"), "told");
        for _ in 0..5 {
            world.rotate_token(&pool);
            world.run_for(TimeDelta::minutes(8)).await?;
            ensure!(up_to_date(&world, &pool) == Some(0), "still the old ones");
        }
        // OnDelete: replaced when their Machines are deleted, each once.
        for machine in world.machines(&pool).into_keys() {
            world.delete_machine(&machine);
            world
                .run_until("it is replaced", SOON, |world| {
                    !world.machines(&pool).contains_key(&machine) && world.is_running(&pool, 3)
                })
                .await?;
        }
        ensure!(up_to_date(&world, &pool) == Some(3), "all are new\n{}", world.describe());
        for _ in 0..3 {
            world.rotate_token(&pool);
            world.run_for(TimeDelta::minutes(8)).await?;
            ensure!(up_to_date(&world, &pool) == Some(3), "nothing is outdated again");
        }
        ensure!(newest_user_data(&world, &pool)?.contains("\"4\""), "the edit is in the data");
        world.finish()?;
    }
    Ok(())
}

/// AWS rejects what the spec names next, for weeks: what is launched meanwhile joins with the newest token.
// Rules: H2
// Pains: P8
#[tokio::test(start_paused = true)]
async fn tokens_reach_the_group_while_aws_rejects_the_next_launch_template() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let before = world.in_service(&pool);
    let key = |world: &World, name: &str| {
        world.edit_pool(&pool, |pool| pool.spec.machine.ssh_key_name = Some(name.to_owned()));
    };
    key(&world, "missing");
    let is_rejected = |world: &World| world.says(&pool, GROUP_READY, "False", "Rejected");
    world.run_until("it is rejected", SOON, is_rejected).await?;
    for _ in 0..3 {
        world.rotate_token(&pool);
        // The rule `the_launch_template_has_the_token` is checked at every step.
        world.run_for(TimeDelta::minutes(7)).await?;
        ensure!(is_rejected(&world), "it is not reported any more\n{}", world.describe());
    }
    ensure!(world.in_service(&pool) == before, "nothing is replaced\n{}", world.describe());
    for id in &before {
        world.simulator.kill(&world.scope(), id);
    }
    let has_others = |world: &World| {
        let now = world.in_service(&pool);
        now.len() == 2 && now.is_disjoint(&before)
    };
    world.run_until("others are launched", SOON, has_others).await?;
    ensure!(newest_user_data(&world, &pool)?.contains(&format!("{:06x}.", 4)), "not the last token");
    let template = world.dump().templates.into_iter().next().context("the template")?;
    ensure!(template.versions.len() <= 10, "{} versions have piled up", template.versions.len());
    ensure!(world.events("CallRejected").len() == 1, "one event, not {:?}", world.events("CallRejected"));
    key(&world, "ops");
    let is_rolled_out = |world: &World| world.is_running(&pool, 2) && up_to_date(world, &pool) == Some(2);
    world.run_until("the correction rolls out", TimeDelta::hours(1), is_rolled_out).await?;
    ensure!(world.says(&pool, GROUP_READY, "True", "GroupReady"), "{}", world.describe());
    world.finish()
}

/// A new version of core adds a field with its default to each KubeadmConfig. The CA rotates later.
// Rules: H2
// Pains: P8, P37
#[tokio::test(start_paused = true)]
async fn a_field_that_core_adds_makes_nothing_outdated_when_data_change_later() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.core.set_in_config(&pool.config, "addedField", "default");
    // Versions are pruned meanwhile, and another process takes over.
    for _ in 0..15 {
        world.rotate_token(&pool);
        world.run_for(TimeDelta::minutes(7)).await?;
    }
    world.kill_process();
    world.core.change_authority(&pool.config, "another");
    world.rotate_token(&pool);
    for _ in 0..3 {
        world.run_for(TimeDelta::minutes(7)).await?;
        ensure!(up_to_date(&world, &pool) == Some(2), "outdated\n{}", world.describe());
        world.rotate_token(&pool);
    }
    ensure!(ended_since(&world, 0).is_empty(), "nothing was ended");
    // A user's edit rolls out.
    world.core.edit_config(&pool.config, "8");
    world.rotate_token(&pool);
    world.run_until("all are outdated", SOON, |world| up_to_date(world, &pool) == Some(0)).await
}

/// The same over restarts of the process: nothing of this is in memory alone.
// Rules: H2
// Pains: P38
#[tokio::test(start_paused = true)]
async fn restarts_keep_rotations_and_edits_apart() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    for _ in 0..5 {
        world.rotate_token(&pool);
        world.kill_process();
        world.run_for(TimeDelta::minutes(3)).await?;
        ensure!(up_to_date(&world, &pool) == Some(2), "outdated\n{}", world.describe());
    }
    world.core.edit_config(&pool.config, "6");
    world.kill_process();
    world.run_for(TimeDelta::minutes(3)).await?;
    ensure!(up_to_date(&world, &pool) == Some(2), "not rendered yet");
    world.rotate_token(&pool);
    world.kill_process();
    world.run_until("all are outdated", SOON, |world| up_to_date(world, &pool) == Some(0)).await?;
    world.finish()
}

/// Ignition has the token percent-encoded. A bootstrap provider that serves a new default in its spec makes nothing
/// outdated when it rotates the token: only the token in the data is another one.
// Rules: H2
#[tokio::test(start_paused = true)]
async fn a_rotated_token_in_ignition_replaces_nothing() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 0).await?;
    world.core.set_in_config(&pool.config, "format", "ignition");
    world.rotate_token(&pool);
    world.run_for(TimeDelta::minutes(1)).await?;
    world.scale(&pool, 2);
    reach(&mut world, &pool, 2).await?;
    ensure!(newest_user_data(&world, &pool)?.contains("token%3A%20"), "the data are not percent-encoded");
    let before = world.in_service(&pool);
    for rotation in 0..5 {
        world.core.set_in_config(&pool.config, "servedByDefault", rotation);
        world.rotate_token(&pool);
        world.run_for(TimeDelta::minutes(8)).await?;
        ensure!(up_to_date(&world, &pool) == Some(2), "outdated after rotation {rotation}");
    }
    ensure!(world.in_service(&pool) == before, "the same two run");
    world.finish()
}

/// A change that launches anew makes all outdated; taking it back makes none.
#[tokio::test(start_paused = true)]
async fn a_reverted_change_leaves_nothing_outdated() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let image = |world: &World, id: &str| {
        world.edit_pool(&pool, |pool| pool.spec.machine.image.id = Some(id.to_owned()));
    };
    image(&world, "ami-0b1c2d3e");
    world.run_until("all are outdated", SOON, |world| up_to_date(world, &pool) == Some(0)).await?;
    image(&world, "ami-0a1b2c3d");
    world.run_until("none is outdated", SOON, |world| up_to_date(world, &pool) == Some(3)).await?;
    ensure!(ended_since(&world, 0).is_empty(), "nothing was ended");
    world.finish()
}

/// An SSM parameter that moves on changes nothing by itself: the image is pinned.
// Pains: W27
#[tokio::test(start_paused = true)]
async fn an_image_from_a_parameter_stays_pinned() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, |spec| {
        spec.machine.image.id = None;
        spec.machine.image.ssm_parameter = Some("/images/node/v{version}".to_owned());
    })
    .await?;
    world.simulator.put_parameter(&world.scope(), "/images/node/v1.36.3", "ami-0b1c2d3e");
    world.kill_process();
    world.run_for(TimeDelta::hours(3)).await?;
    ensure!(up_to_date(&world, &pool) == Some(2), "outdated by a parameter\n{}", world.describe());
    world.scale(&pool, 3);
    reach(&mut world, &pool, 3).await?;
    ensure!(
        world.instances(&pool).iter().all(|one| one.image == "ami-0a1b2c3d"),
        "the pinned image is launched"
    );
    // A new Kubernetes version is another source.
    world.edit_machine_pool(&pool, |own| own.spec.template.spec.version = Some("v1.37.0".to_owned()));
    world.run_until("all are outdated", SOON, |world| up_to_date(world, &pool) == Some(0)).await?;
    world.finish()
}
