//! What AWS refuses: said in a condition and one event, tried seldom, healed at once when a person corrects it.

use anyhow::{Context, Result, ensure};
use capasg_api::{
    conditions::{GROUP_READY, LAUNCH_TEMPLATE_READY, READY},
    pool::SubnetSelector,
};
use capasg_fake_aws::Fault;
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

use crate::{SOON, reach, running};

fn subnet(id: &str) -> Vec<SubnetSelector> {
    vec![SubnetSelector { id: Some(id.to_owned()), ..SubnetSelector::default() }]
}

fn creations(world: &World, mark: u64) -> usize {
    world.calls_since(mark, Some("CreateAutoScalingGroup")).len()
}

/// A subnet that is found and rejected nevertheless.
// Rules: I5
// Pains: P13
#[tokio::test(start_paused = true)]
async fn a_rejected_subnet_is_retried_rarely_and_corrected_at_once() -> Result<()> {
    for seed in 0..5 {
        let mut world = World::new(Setup::seed(seed));
        let words = "The subnet ID 'subnet-0c1d2e3f' does not exist";
        world.fault(Fault::error("CreateAutoScalingGroup", 400, "ValidationError", words).times(None));
        let pool = world.add_pool_with("workers", 3, |spec| spec.subnets = subnet("subnet-0c1d2e3f"));
        world.run_for(TimeDelta::minutes(10)).await?;
        let tries = creations(&world, 0);
        ensure!((2..=10).contains(&tries), "{tries} tries in 10 minutes");
        let told = world.condition(&pool, GROUP_READY).context("GroupReady")?;
        ensure!(told.status == "False" && told.reason == "SubnetNotFound", "{told:?}");
        ensure!(told.message.contains("subnet-0c1d2e3f"), "AWS's words with the id: {}", told.message);
        world.simulator.clear_faults(None);
        ensure!(world.condition(&pool, READY).is_some_and(|ready| ready.status == "False"), "not Ready");
        let events = world.events("CallRejected");
        ensure!(events.len() == 1, "one event, not {events:?}");
        let pause = i64::try_from(world.random.below(60))?;
        world.run_for(TimeDelta::seconds(pause)).await?;
        world.edit_pool(&pool, |pool| pool.spec.subnets = subnet("subnet-0a1b2c3d"));
        world
            .run_until("the group is there", TimeDelta::seconds(5), |world| world.group(&pool).is_some())
            .await?;
        reach(&mut world, &pool, 3).await?;
        ensure!(world.says(&pool, GROUP_READY, "True", "GroupReady"), "all is well");
        world.finish()?;
    }
    Ok(())
}

/// The same for a group that exists: what AWS refuses does not hold up scaling.
#[tokio::test(start_paused = true)]
async fn a_rejected_setting_does_not_block_scaling() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let mark = world.mark();
    world.edit_pool(&pool, |pool| pool.spec.subnets = subnet("subnet-0badbadb"));
    world.run_for(TimeDelta::minutes(10)).await?;
    let tries = world.calls_since(mark, Some("UpdateAutoScalingGroup")).len();
    ensure!((1..=10).contains(&tries), "{tries} tries in 10 minutes");
    ensure!(world.condition(&pool, GROUP_READY).is_some_and(|told| told.status == "False"), "told");
    world.scale(&pool, 4);
    world.run_until("it grows", SOON, |world| world.in_service(&pool).len() == 4).await?;
    world.edit_pool(&pool, |pool| pool.spec.subnets = subnet("subnet-0b1c2d3e"));
    world
        .run_until("it is healed", TimeDelta::seconds(10), |world| {
            world.says(&pool, GROUP_READY, "True", "GroupReady")
        })
        .await?;
    reach(&mut world, &pool, 4).await
}

/// The API of launch templates fails for hours: the group grows with the version that it has.
#[tokio::test(start_paused = true)]
async fn a_failing_launch_template_does_not_block_scaling_for_long() -> Result<()> {
    for (status, code) in
        [(500, "InternalError"), (503, "RequestLimitExceeded"), (403, "UnauthorizedOperation")]
    {
        let (mut world, pool) = running(Setup::default(), 2).await?;
        world.fault(
            Fault::error("CreateLaunchTemplateVersion", status, code, "Please try again.").times(None),
        );
        world.edit_pool(&pool, |pool| pool.spec.machine.image.id = Some("ami-0b1c2d3e".to_owned()));
        world.run_for(TimeDelta::minutes(1)).await?;
        world.scale(&pool, 4);
        world
            .run_until("it grows", TimeDelta::minutes(10), |world| world.in_service(&pool).len() == 4)
            .await
            .with_context(|| code.to_owned())?;
        let told = world.condition(&pool, LAUNCH_TEMPLATE_READY).context("LaunchTemplateReady")?;
        ensure!(told.status == "False" && told.message.contains("Please try again"), "{told:?}");
        world.simulator.clear_faults(None);
        let is_new = |world: &World| {
            world.is_running(&pool, 4) && world.instances(&pool).iter().all(|one| one.image == "ami-0b1c2d3e")
        };
        world.run_until("it rolls out", TimeDelta::hours(1), is_new).await?;
        world.finish()?;
    }
    Ok(())
}

async fn refused(error: Fault, condition: &str) -> Result<()> {
    let mut world = World::new(Setup::default());
    let (operation, words) = (error.operation.clone(), message(&error));
    world.fault(error.times(None));
    let pool = world.add_pool("workers", 3);
    world.run_for(TimeDelta::minutes(10)).await?;
    let tries = world.calls_since(0, Some(&operation)).len();
    ensure!((2..=10).contains(&tries), "{tries} tries of {operation}");
    let told = world.condition(&pool, condition).context("the condition")?;
    ensure!(told.status == "False" && told.message.contains(&words), "{told:?}\n{}", world.describe());
    ensure!(told.reason == "Rejected", "{}", told.reason);
    ensure!(world.events("CallRejected").len() == 1, "{:?}", world.events("CallRejected"));
    world.simulator.clear_faults(None);
    retry(&world, &pool, "now");
    world
        .run_until("the group is there", TimeDelta::seconds(5), |world| world.group(&pool).is_some())
        .await?;
    reach(&mut world, &pool, 3).await?;
    world.finish()
}

fn message(fault: &Fault) -> String {
    match &fault.effect {
        capasg_fake_aws::Effect::Error { message, .. } => message.clone(),
        _ => String::new(),
    }
}

/// The field that makes everything be tried at once.
fn retry(world: &World, pool: &Pool, value: &str) {
    world.edit_pool(pool, |pool| pool.spec.retry_token = Some(value.to_owned()));
}

// Rules: I5
#[tokio::test(start_paused = true)]
async fn a_rejected_group_is_reported_with_awss_message() -> Result<()> {
    let words =
        "You must use a valid fully-formed launch template. The image id '[ami-0a1b2c3d]' does not exist";
    refused(Fault::error("CreateAutoScalingGroup", 400, "ValidationError", words), GROUP_READY).await
}

// Rules: I5
#[tokio::test(start_paused = true)]
async fn a_denied_launch_template_is_reported_with_awss_message() -> Result<()> {
    let words = "You are not authorized to perform: ec2:CreateLaunchTemplate on resource";
    let fault = Fault::error("CreateLaunchTemplate", 403, "UnauthorizedOperation", words);
    refused(fault, LAUNCH_TEMPLATE_READY).await
}

// Rules: I5
#[tokio::test(start_paused = true)]
async fn an_account_limit_is_reported_with_awss_message() -> Result<()> {
    let words = "You've reached the maximum number of Auto Scaling groups";
    refused(Fault::error("CreateAutoScalingGroup", 400, "LimitExceeded", words), GROUP_READY).await
}
