//! An image that a parameter names: pinned, shown when it moves on, and rolled out when that is asked for.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use capasg_api::{
    conditions::LAUNCH_TEMPLATE_READY,
    pool::{ChangePolicy, Image, ImageUpdatePolicy, InstanceTypeEntry, RolloutMode, SecurityGroupSelector},
};
use capasg_fake_aws::{Fault, ec2::Image as CloudImage};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

use crate::{reach, running_with};

const OLD: &str = "ami-0a1b2c3d";
const NEW: &str = "ami-0b1c2d3e";
const NEWER: &str = "ami-0d1e2f3a";
/// A parameter is believed for ten minutes, and looked at every half hour.
const SEEN_BY_THEN: TimeDelta = TimeDelta::minutes(45);

async fn by_parameter() -> Result<(World, Pool)> {
    let (world, pool) = running_with(Setup::default(), 2, |spec| {
        spec.machine.image.id = None;
        spec.machine.image.ssm_parameter = Some("/images/node/v{version}".to_owned());
    })
    .await?;
    world.simulator.put_parameter(&world.scope(), "/images/node/v1.36.3", NEW);
    Ok((world, pool))
}

/// The image in use, and the one that could be.
fn told(world: &World, pool: &Pool) -> (String, Option<String>) {
    let image = world.pool(pool).and_then(|pool| pool.status.clone()?.image).unwrap_or_default();
    (image.id, image.available_id)
}

fn images(world: &World, pool: &Pool) -> BTreeSet<String> {
    world.instances(pool).into_iter().map(|one| one.image).collect()
}

fn policy(world: &World, pool: &Pool, policy: ImageUpdatePolicy) {
    world.edit_pool(pool, |pool| pool.spec.machine.image.update_policy = Some(policy));
}

/// Weakness 27: a parameter that moves on is shown and waits, through a restart; asked to, it is a rollout.
// Pains: W27
#[tokio::test(start_paused = true)]
async fn a_changed_image_parameter_is_reported_and_waits_for_a_request() -> Result<()> {
    let (mut world, pool) = by_parameter().await?;
    let is_shown = |world: &World| told(world, &pool) == (OLD.to_owned(), Some(NEW.to_owned()));
    world.run_until("it is shown", SEEN_BY_THEN, is_shown).await?;
    let mark = world.mark();
    world.kill_process();
    world.run_for(TimeDelta::hours(2)).await?;
    ensure!(is_shown(&world) && images(&world, &pool) == [OLD.to_owned()].into(), "{}", world.describe());
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    let reads = world.calls_since(mark, Some("GetParameter")).len();
    ensure!((1..=8).contains(&reads), "{reads} reads in two hours");

    policy(&world, &pool, ImageUpdatePolicy::RollOut);
    world
        .run_until("it is everywhere", TimeDelta::minutes(40), |world| {
            images(world, &pool) == [NEW.to_owned()].into() && world.is_running(&pool, 2)
        })
        .await?;
    ensure!(told(&world, &pool) == (NEW.to_owned(), None), "{:?}", told(&world, &pool));
    // What was taken stays, whatever the policy says next.
    policy(&world, &pool, ImageUpdatePolicy::WithVersion);
    world.run_for(SEEN_BY_THEN).await?;
    ensure!(images(&world, &pool) == [NEW.to_owned()].into());
    world.finish()
}

/// A rollout of a moved parameter keeps to what holds for rollouts: here they are paused, then only shown.
// Pains: P54, W27
#[tokio::test(start_paused = true)]
async fn a_changed_image_parameter_rolls_out_as_any_other_change() -> Result<()> {
    let (mut world, pool) = by_parameter().await?;
    world.edit_pool(&pool, |pool| {
        pool.spec.machine.image.update_policy = Some(ImageUpdatePolicy::RollOut);
        pool.spec.rollout.get_or_insert_default().mode = Some(RolloutMode::Paused);
    });
    world
        .run_until("it waits", SEEN_BY_THEN, |world| world.says(&pool, "UpToDate", "False", "RolloutPaused"))
        .await?;
    ensure!(images(&world, &pool) == [OLD.to_owned()].into(), "{}", world.describe());
    world.edit_pool(&pool, |pool| {
        pool.spec.change_policy = Some(ChangePolicy::Preview);
        pool.spec.rollout.get_or_insert_default().mode = None;
    });
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(images(&world, &pool) == [OLD.to_owned()].into(), "{}", world.describe());
    world.edit_pool(&pool, |pool| pool.spec.change_policy = None);
    world
        .run_until("it is everywhere", TimeDelta::minutes(40), |world| {
            images(world, &pool) == [NEW.to_owned()].into() && world.is_running(&pool, 2)
        })
        .await?;
    world.finish()
}

/// Another manager may have rolled out what it names now, as after a move there and back.
// Rules: M4
#[tokio::test(start_paused = true)]
async fn a_parameter_is_read_anew_after_a_pause() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, |spec| {
        spec.machine.image.id = None;
        spec.machine.image.ssm_parameter = Some("/images/node/v{version}".to_owned());
        spec.machine.image.update_policy = Some(ImageUpdatePolicy::RollOut);
    })
    .await?;
    let pause = |world: &World, paused| world.edit_cluster(|cluster| cluster.spec.paused = paused);
    pause(&world, Some(true));
    world.run_for(TimeDelta::seconds(30)).await?;
    world.simulator.put_parameter(&world.scope(), "/images/node/v1.36.3", NEW);
    pause(&world, None);
    let is_new = |world: &World| images(world, &pool).contains(NEW);
    world.run_until("the new image is used", TimeDelta::minutes(3), is_new).await
}

/// The image that was taken is deregistered: the condition names the way out, which works, within minutes.
// Pains: W27
#[tokio::test(start_paused = true)]
async fn a_deregistered_image_of_a_parameter_is_reported_with_the_way_out() -> Result<()> {
    let (mut world, pool) = by_parameter().await?;
    world.run_for(SEEN_BY_THEN).await?;
    world.simulator.remove_image(&world.scope(), OLD);
    let says = |world: &World| world.says(&pool, "LaunchTemplateReady", "False", "ImageNotFound");
    world.run_until("it is reported", TimeDelta::hours(2), says).await?;
    let message = world.condition(&pool, "LaunchTemplateReady").map(|condition| condition.message);
    let message = message.unwrap_or_default();
    ensure!(message.contains(NEW) && message.contains("updatePolicy to RollOut, or change"), "{message}");
    ensure!(!message.contains("Correct spec.machine.image;"), "{message}");
    policy(&world, &pool, ImageUpdatePolicy::RollOut);
    let is_new = |world: &World| images(world, &pool) == [NEW.to_owned()].into();
    world.run_until("the new image is used", TimeDelta::minutes(40), is_new).await?;
    world.finish()
}

/// Launches fail after the image went away: the way out is reported minutes later, not with the next hourly read.
// Pains: W27
#[tokio::test(start_paused = true)]
async fn an_image_that_went_away_is_noticed_once_a_launch_fails() -> Result<()> {
    let (mut world, pool) = by_parameter().await?;
    world.run_for(SEEN_BY_THEN).await?;
    world.simulator.remove_image(&world.scope(), OLD);
    world.scale(&pool, 3);
    let says = |world: &World| world.says(&pool, "LaunchTemplateReady", "False", "ImageNotFound");
    world.run_until("it is reported", TimeDelta::minutes(6), says).await?;
    policy(&world, &pool, ImageUpdatePolicy::RollOut);
    let is_new = |world: &World| images(world, &pool) == [NEW.to_owned()].into();
    world.run_until("the new image is used", TimeDelta::minutes(40), is_new).await?;
    world.finish()
}

/// The image of the next version goes away after it was read, before the group is pinned to it: that is noticed when AWS
/// rejects it, not with the next hourly read.
// Pains: W27
#[tokio::test(start_paused = true)]
async fn the_next_image_that_went_away_is_noticed_once_aws_rejects_it() -> Result<()> {
    let (mut world, pool) = by_parameter().await?;
    let scope = world.scope();
    world.simulator.put_parameter(&scope, "/images/node/v1.37.0", NEWER);
    world.fault(Fault::error("UpdateAutoScalingGroup", 400, "ValidationError", "not now").times(None));
    world.edit_machine_pool(&pool, |own| own.spec.template.spec.version = Some("v1.37.0".to_owned()));
    let waits = |world: &World| world.says(&pool, "GroupReady", "False", "Rejected");
    world.run_until("it is rejected", SEEN_BY_THEN, waits).await?;
    world.simulator.remove_image(&scope, NEWER);
    world.simulator.clear_faults(None);
    let says = |world: &World| world.says(&pool, LAUNCH_TEMPLATE_READY, "False", "ImageNotFound");
    world.run_until("it is reported", TimeDelta::minutes(15), says).await?;
    ensure!(images(&world, &pool) == [OLD.to_owned()].into(), "{}", world.describe());
    world.finish()
}

/// The image that was taken is deregistered, and so is the parameter denied: the condition says why it names no other.
// Pains: P13, W27
#[tokio::test(start_paused = true)]
async fn a_deregistered_image_is_reported_with_why_the_parameter_is_not_read() -> Result<()> {
    let (mut world, pool) = by_parameter().await?;
    let words = "User is not authorized to perform: ssm:GetParameter";
    world.fault(Fault::error("GetParameter", 400, "AccessDeniedException", words).times(None));
    world.simulator.remove_image(&world.scope(), OLD);
    world.kill_process();
    let says = |world: &World| world.says(&pool, LAUNCH_TEMPLATE_READY, "False", "ImageNotFound");
    world.run_until("it is reported", TimeDelta::hours(2), says).await?;
    let message = world.condition(&pool, LAUNCH_TEMPLATE_READY).map(|condition| condition.message);
    let message = message.unwrap_or_default();
    ensure!(message.contains(OLD) && message.contains("cannot be read in region"), "{message}");
    ensure!(message.contains(words) && !message.contains("names no other image"), "{message}");
    world.finish()
}

/// `spec.retryToken` reads what the spec refers to again, without waiting for the next read.
// Pains: W27
#[tokio::test(start_paused = true)]
async fn a_retry_token_reads_references_again() -> Result<()> {
    let (mut world, pool) = by_parameter().await?;
    let is_shown = |world: &World| told(world, &pool) == (OLD.to_owned(), Some(NEW.to_owned()));
    world.run_until("it is shown", SEEN_BY_THEN, is_shown).await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    world.simulator.put_parameter(&world.scope(), "/images/node/v1.36.3", NEWER);
    world.edit_pool(&pool, |pool| pool.spec.retry_token = Some("1".to_owned()));
    let is_read = |world: &World| told(world, &pool) == (OLD.to_owned(), Some(NEWER.to_owned()));
    world.run_until("the parameter is read again", TimeDelta::minutes(1), is_read).await?;
    world.finish()
}

/// An image or a parameter that appears later is used within minutes, without a change of the pool.
// Pains: W27
#[tokio::test(start_paused = true)]
async fn a_missing_parameter_is_read_again_within_minutes() -> Result<()> {
    let mut world = World::new(Setup::default());
    let pool = world.add_pool_with("workers", 2, |spec| {
        spec.machine.image.id = None;
        spec.machine.image.ssm_parameter = Some("/images/later".to_owned());
    });
    let says = |world: &World| world.says(&pool, "LaunchTemplateReady", "False", "ImageNotFound");
    world.run_until("it is reported", TimeDelta::minutes(1), says).await?;
    world.run_for(TimeDelta::minutes(10)).await?;
    world.simulator.put_parameter(&world.scope(), "/images/later", NEW);
    let found = |world: &World| !says(world);
    world.run_until("it is found", TimeDelta::minutes(3), found).await
}

/// A parameter that cannot be read holds nothing up once an image is pinned.
// Pains: P13, W27
#[tokio::test(start_paused = true)]
async fn a_deleted_image_parameter_blocks_nothing() -> Result<()> {
    let (mut world, pool) = by_parameter().await?;
    policy(&world, &pool, ImageUpdatePolicy::RollOut);
    let words = "User is not authorized to perform: ssm:GetParameter";
    let fault = capasg_fake_aws::Fault::error("GetParameter", 400, "AccessDeniedException", words);
    world.fault(fault.times(None));
    world.kill_process();
    world.scale(&pool, 3);
    reach(&mut world, &pool, 3).await?;
    ensure!(images(&world, &pool) == [OLD.to_owned()].into(), "{}", world.describe());
    let told = world.condition(&pool, LAUNCH_TEMPLATE_READY).map(|told| (told.status, told.message));
    let (status, message) = told.unwrap_or_default();
    ensure!(status == "Unknown" && message.contains(words), "{status}: {message}");
    ensure!(message.ends_with(&format!("the group continues to launch {OLD}.")), "{message}");
    world.simulator.clear_faults(None);
    world
        .run_until("it is everywhere", TimeDelta::minutes(80), |world| {
            images(world, &pool) == [NEW.to_owned()].into() && world.is_running(&pool, 3)
        })
        .await?;
    ensure!(world.says(&pool, LAUNCH_TEMPLATE_READY, "True", "LaunchTemplateReady"));
    world.finish()
}

/// What a parameter holds is no image ID: the condition says so, and a pool that has an image keeps it.
// Pains: W27
#[tokio::test(start_paused = true)]
async fn a_parameter_without_an_image_id_is_reported() -> Result<()> {
    const PARAMETER: &str = "/images/node/v1.36.3";
    let secret = "not-an-image-".repeat(10);
    let mut world = World::new(Setup::default());
    world.simulator.put_parameter(&world.scope(), PARAMETER, &secret);
    let pool = world.add_pool_with("workers", 2, |spec| {
        spec.machine.image.id = None;
        spec.machine.image.ssm_parameter = Some("/images/node/v{version}".to_owned());
    });
    let says = |world: &World| world.says(&pool, "LaunchTemplateReady", "False", "ImageNotFound");
    world.run_until("it is reported", TimeDelta::minutes(1), says).await?;
    let message = world.condition(&pool, "LaunchTemplateReady").map(|condition| condition.message);
    let message = message.unwrap_or_default();
    ensure!(message.contains(PARAMETER) && !message.contains(&secret), "{message}");

    world.simulator.put_parameter(&world.scope(), PARAMETER, OLD);
    reach(&mut world, &pool, 2).await?;
    world.simulator.put_parameter(&world.scope(), PARAMETER, &secret);
    world.run_for(SEEN_BY_THEN).await?;
    ensure!(!says(&world), "nothing waits for it\n{}", world.describe());
    policy(&world, &pool, ImageUpdatePolicy::RollOut);
    world.run_for(SEEN_BY_THEN).await?;
    ensure!(told(&world, &pool) == (OLD.to_owned(), None), "{}", world.describe());
    ensure!(says(&world), "{}", world.describe());
    world.scale(&pool, 3);
    reach(&mut world, &pool, 3).await?;
    ensure!(images(&world, &pool) == [OLD.to_owned()].into(), "{}", world.describe());
    world.finish()
}

/// A parameter that cannot be read for a while names what it named: nothing is taken back or written meanwhile.
// Rules: I4
// Pains: W27
#[tokio::test(start_paused = true)]
async fn an_image_parameter_that_cannot_be_read_changes_nothing() -> Result<()> {
    for policy_of_updates in [ImageUpdatePolicy::WithVersion, ImageUpdatePolicy::RollOut] {
        let (mut world, pool) = by_parameter().await?;
        policy(&world, &pool, policy_of_updates);
        // Where it is to be rolled out, AWS does not take the wish yet.
        let denied = Fault::error("CreateLaunchTemplateVersion", 403, "UnauthorizedOperation", "not now");
        world.fault(denied.times(None));
        let is_shown = |world: &World| told(world, &pool) == (OLD.to_owned(), Some(NEW.to_owned()));
        world.run_until("it is shown", SEEN_BY_THEN, is_shown).await?;
        world.run_for(TimeDelta::minutes(5)).await?;
        // A new process tries once more what AWS refused, and tells it anew.
        let restarts: &[bool] =
            if policy_of_updates == ImageUpdatePolicy::WithVersion { &[false, true] } else { &[false] };
        for restart in restarts {
            world.fault(Fault::error("GetParameter", 500, "InternalFailure", "later").times(None));
            if *restart {
                world.kill_process();
            }
            let writes = world.journal.len();
            world.run_for(TimeDelta::hours(2)).await?;
            let made: Vec<_> =
                world.journal.since(writes).into_iter().filter(|entry| entry.changed).collect();
            ensure!(made.is_empty(), "{made:?}");
            ensure!(is_shown(&world), "{}", world.describe());
        }
        ensure!(images(&world, &pool) == [OLD.to_owned()].into(), "{}", world.describe());
        world.simulator.clear_faults(None);
    }
    Ok(())
}

/// What the spec names next does not exist, or does not fit: the group continues to launch what it launched, with each new token.
// Rules: H2
#[tokio::test(start_paused = true)]
async fn tokens_are_renewed_while_the_next_launch_template_waits() -> Result<()> {
    type Edit = fn(&World, &Pool);
    let edits: [(&str, Edit); 5] = [
        ("an image that does not exist", |world, pool| {
            world.edit_pool(pool, |pool| {
                pool.spec.machine.image =
                    Image { id: Some("ami-0ffffffffffffffff".to_owned()), ..Image::default() };
            });
        }),
        ("no parameter for the version", |world, pool| {
            world.edit_machine_pool(pool, |own| own.spec.template.spec.version = Some("v1.99.0".to_owned()));
        }),
        ("a parameter that names an image that is not shared", |world, pool| {
            let parameter = "/images/node/v1.36.3";
            world.simulator.put_parameter(&world.scope(), parameter, "ami-0ffffffffffffffff");
            policy(world, pool, ImageUpdatePolicy::RollOut);
        }),
        ("a security group that does not exist", |world, pool| {
            world.edit_pool(pool, |pool| {
                pool.spec.machine.security_groups = vec![SecurityGroupSelector::by_id("sg-0fffffff")];
            });
        }),
        ("an instance type of another architecture", |world, pool| {
            world.edit_pool(pool, |pool| {
                pool.spec.instance_types = vec![InstanceTypeEntry::new("m7g.large")];
            });
        }),
    ];
    for (what, edit) in edits {
        let (mut world, pool) = by_parameter().await?;
        edit(&world, &pool);
        let waits = |world: &World| {
            world
                .condition(&pool, LAUNCH_TEMPLATE_READY)
                .is_some_and(|told| told.status == "False" && !told.reason.is_empty())
        };
        world.run_until(what, SEEN_BY_THEN, waits).await?;
        let before = world.in_service(&pool);
        world.rotate_token(&pool);
        // The rule `the_launch_template_has_the_token` is checked at every step.
        world.run_for(TimeDelta::minutes(10)).await?;
        ensure!(world.in_service(&pool) == before, "{what}: nothing is replaced\n{}", world.describe());
        for id in &before {
            world.simulator.kill(&world.scope(), id);
        }
        let has_others =
            |world: &World| world.is_running(&pool, 2) && world.in_service(&pool).is_disjoint(&before);
        world.run_until(what, SEEN_BY_THEN, has_others).await?;
        ensure!(waits(&world) && images(&world, &pool) == [OLD.to_owned()].into(), "{}", world.describe());
        world.finish()?;
    }
    Ok(())
}

/// A pipeline writes the ID of an image to the parameter while the image is still copied.
#[tokio::test(start_paused = true)]
async fn an_image_that_is_not_available_yet_is_waited_for() -> Result<()> {
    let (mut world, pool) = by_parameter().await?;
    let scope = world.scope();
    let copied = |pending| CloudImage { pending, ..CloudImage::new(NEWER, "node-copied", "x86_64") };
    world.simulator.put_image(&scope, copied(true));
    world.simulator.put_parameter(&scope, "/images/node/v1.36.3", NEWER);
    policy(&world, &pool, ImageUpdatePolicy::RollOut);
    let waits = |world: &World| world.says(&pool, LAUNCH_TEMPLATE_READY, "False", "ImageNotFound");
    world.run_until("it is reported", SEEN_BY_THEN, waits).await?;
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(images(&world, &pool) == [OLD.to_owned()].into(), "{}", world.describe());
    world.simulator.put_image(&scope, copied(false));
    let is_everywhere =
        |world: &World| world.is_running(&pool, 2) && images(world, &pool) == [NEWER.to_owned()].into();
    world.run_until("it is everywhere", SEEN_BY_THEN, is_everywhere).await?;
    world.finish()
}
