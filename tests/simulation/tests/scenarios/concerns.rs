//! A call that fails holds up only what depends on it, and is reported once it has failed for two minutes.

use anyhow::{Context, Result, ensure};
use capasg_api::{
    conditions::{GROUP_READY, LAUNCH_TEMPLATE_READY, READY, SCALING_HEALTHY},
    names::TERMINATE_HOOK,
};
use capasg_fake_aws::{Fault, Service, Tree};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

use crate::rollout::{NEW_IMAGE, set_image};
use crate::{SOON, ended_since, reach, running};

const END: &str = "TerminateInstanceInAutoScalingGroup";

fn fails(operation: &str) -> Fault {
    Fault::error(operation, 500, "InternalFailure", "We encountered an internal error. Please try again.")
        .times(None)
}

fn pinned(world: &World, pool: &Pool) -> Option<String> {
    world.group(pool).map(|group| group.template.1)
}

/// The pool's newest instance, in a group that replaces the Machine that a user deletes.
fn first(world: &World, pool: &Pool) -> Result<String> {
    world.in_service(pool).into_iter().next().context("an instance")
}

// Rules: I5
#[tokio::test(start_paused = true)]
async fn a_termination_that_fails_holds_up_neither_token_nor_scale_out() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    world.fault(fails(END));
    let instance = first(&world, &pool)?;
    let machine = world.machine_of(&pool, &instance)?;
    world.delete_machine(&machine);
    world.run_until("it is requested", SOON, |world| !world.calls_since(0, Some(END)).is_empty()).await?;
    let before = pinned(&world, &pool);
    world.rotate_token(&pool);
    world.scale(&pool, 4);
    world
        .run_until("the new token is in use and a node was added", TimeDelta::seconds(60), |world| {
            pinned(world, &pool) != before && world.group(&pool).is_some_and(|group| group.desired == 4)
        })
        .await?;
    world
        .run_until("the failure is reported", TimeDelta::minutes(4), |world| {
            world.says(&pool, SCALING_HEALTHY, "False", "CallFailed")
                && world.condition(&pool, READY).is_some_and(|ready| ready.status == "False")
        })
        .await?;
    let told = world.condition(&pool, SCALING_HEALTHY).context("ScalingHealthy")?;
    ensure!(told.message.contains(&instance) && told.message.contains("keeps running"), "{}", told.message);
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.events("CallFailed").len() == 1, "{:?}", world.events("CallFailed"));
    world.simulator.clear_faults(None);
    reach(&mut world, &pool, 4).await?;
    ensure!(world.says(&pool, SCALING_HEALTHY, "True", "ScalingHealthy"), "{}", world.describe());
    world.finish()
}

// Rules: I5
#[tokio::test(start_paused = true)]
async fn a_failing_setting_does_not_hold_up_the_launch_version() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.fault(fails("UpdateAutoScalingGroup").with_parameter("DefaultCooldown"));
    let before = pinned(&world, &pool);
    world.edit_pool(&pool, |pool| {
        let mut group = pool.spec.group.clone().unwrap_or_default();
        group.default_cooldown_seconds = Some(77);
        pool.spec.group = Some(group);
    });
    world.rotate_token(&pool);
    world.run_until("the version", TimeDelta::seconds(60), |world| pinned(world, &pool) != before).await?;
    world
        .run_until("the failure is reported", TimeDelta::minutes(4), |world| {
            world.says(&pool, GROUP_READY, "False", "CallFailed")
        })
        .await?;
    world.simulator.clear_faults(None);
    reach(&mut world, &pool, 2).await?;
    world.finish()
}

/// Two terminations of a scale-in; AWS does not know one of the instances.
#[tokio::test(start_paused = true)]
async fn an_instance_that_aws_does_not_find_delays_no_other() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 4).await?;
    let odd = first(&world, &pool)?;
    let unknown =
        Fault::error(END, 400, "ValidationError", "Instance Id not found - No managed instance found");
    world.fault(unknown.for_instance(&odd).times(None));
    let mark = world.mark();
    let ids: Vec<String> = world.in_service(&pool).into_iter().take(3).collect();
    for id in &ids {
        let machine = world.machine_of(&pool, id)?;
        world.delete_machine(&machine);
    }
    world
        .run_until("the others are terminated", TimeDelta::minutes(4), |world| {
            let ended = ended_since(world, mark);
            ids.iter().filter(|id| **id != odd).all(|id| ended.iter().any(|(ended, _)| ended == id))
        })
        .await?;
    world.simulator.clear_faults(None);
    reach(&mut world, &pool, 4).await?;
    world.finish()
}

/// A user removes our tag from the launch template.
// Rules: H4
#[tokio::test(start_paused = true)]
async fn a_template_without_our_tag_stops_neither_terminations_nor_scaling() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let template = world.dump().templates.into_iter().next().context("a launch template")?;
    let tag = Tree::new().with("Key", capasg_api::names::tags::OWNER_ID);
    let params =
        Tree::new().with("Resources", Tree::list([template.id.as_str()])).with("Tags", Tree::list([tag]));
    world.aws(Service::Ec2, "DeleteTags", params)?;
    world.kill_process();
    world
        .run_until("it is reported", SOON, |world| {
            world.says(&pool, LAUNCH_TEMPLATE_READY, "False", "Rejected")
        })
        .await?;
    let mark = world.mark();
    set_image(&world, &pool, NEW_IMAGE);
    let machine = world.machine_of(&pool, &first(&world, &pool)?)?;
    world.delete_machine(&machine);
    world
        .run_until("it is replaced", SOON, |world| {
            !world.machines(&pool).contains_key(&machine) && world.in_service(&pool).len() == 3
        })
        .await?;
    world.scale(&pool, 4);
    world.run_until("it grows", SOON, |world| world.in_service(&pool).len() == 4).await?;
    ensure!(world.calls_since(mark, Some("CreateLaunchTemplateVersion")).is_empty(), "not our template");
    ensure!(ended_since(&world, mark).len() == 1, "nothing is rolled out: {:?}", ended_since(&world, mark));
    ensure!(
        world.events("LaunchTemplateNotOwned").len() == 1,
        "{:?}",
        world.events("LaunchTemplateNotOwned")
    );
    Ok(())
}

/// Everything that these calls are for is due at once, and each of them fails for ten minutes.
// Rules: I5
#[tokio::test(start_paused = true)]
async fn no_single_failing_call_keeps_expired_tokens_in_use() -> Result<()> {
    let operations = [
        END,
        "CompleteLifecycleAction",
        "RecordLifecycleActionHeartbeat",
        "PutLifecycleHook",
        "DescribeLifecycleHooks",
        "CreateOrUpdateTags",
        "SetInstanceProtection",
        "SuspendProcesses",
        "ResumeProcesses",
        "SetDesiredCapacity",
        "DeleteLaunchTemplateVersions",
        "DescribeLaunchTemplateVersions",
        "DescribeInstances",
        "DescribeScalingActivities",
        "DescribeInstanceTypes",
    ];
    let effects = [
        (500, "InternalFailure", "We encountered an internal error. Please try again."),
        (403, "AccessDenied", "User is not authorized to perform this action"),
        (400, "ValidationError", "The parameter is not valid"),
    ];
    for (seed, operation) in (0..).zip(operations) {
        for (status, code, words) in effects {
            let (mut world, pool) = running(Setup::seed(seed), 3).await?;
            world.fault(Fault::error(operation, status, code, words).times(None));
            disturb(&mut world, &pool)?;
            for _ in 0..3 {
                world.rotate_token(&pool);
                let before = pinned(&world, &pool);
                let changed = |world: &World| pinned(world, &pool) != before;
                world
                    .run_until("the new token is in use", TimeDelta::minutes(2), changed)
                    .await
                    .with_context(|| format!("{operation} fails with {code}"))?;
                world.run_for(TimeDelta::minutes(2)).await?;
            }
            world.simulator.clear_faults(None);
            // What was rejected is tried again by and by.
            world
                .run_until("3 running", TimeDelta::minutes(30), |world| world.is_running(&pool, 3))
                .await
                .with_context(|| format!("{operation} failed with {code}"))?;
        }
    }
    Ok(())
}

// Rules: I5
#[tokio::test(start_paused = true)]
async fn a_rejected_read_does_not_delay_the_retry_of_another() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let rejects = |world: &mut World| {
        let text = "The parameter is not valid";
        world.fault(Fault::error("DescribeLifecycleHooks", 400, "ValidationError", text).times(None));
    };
    rejects(&mut world);
    world.fault(fails("DescribeImages"));
    world.kill_process();
    set_image(&world, &pool, NEW_IMAGE);
    world.run_for(TimeDelta::minutes(30)).await?;
    let before = pinned(&world, &pool);
    world.simulator.clear_faults(None);
    rejects(&mut world);
    world
        .run_until("the new image is in use", TimeDelta::minutes(2), |world| pinned(world, &pool) != before)
        .await
}

/// A drained Machine, an instance that AWS terminates, and drift in hook, tags, protection, processes and capacity.
fn disturb(world: &mut World, pool: &Pool) -> Result<()> {
    let ids: Vec<String> = world.in_service(pool).into_iter().collect();
    let group = || Tree::new().with("AutoScalingGroupName", &pool.group);
    let call = |world: &World, action: &str, params: Tree| world.aws(Service::AutoScaling, action, params);
    let machine = world.machine_of(pool, &ids[0])?;
    world.delete_machine(&machine);
    let tag = Tree::new()
        .with("ResourceId", &pool.group)
        .with("ResourceType", "auto-scaling-group")
        .with("Key", "Name");
    // The fault may concern these calls, too.
    for (action, params) in [
        ("DeleteLifecycleHook", group().with("LifecycleHookName", TERMINATE_HOOK)),
        ("DeleteTags", Tree::new().with("Tags", Tree::list([tag]))),
        (
            "SetInstanceProtection",
            group().with("InstanceIds", vec![ids[1].clone()]).with("ProtectedFromScaleIn", false),
        ),
        ("ResumeProcesses", group().with("ScalingProcesses", vec!["AZRebalance"])),
        (
            "SetInstanceHealth",
            Tree::new()
                .with("InstanceId", &ids[2])
                .with("HealthStatus", "Unhealthy")
                .with("ShouldRespectGracePeriod", false),
        ),
    ] {
        let _ = call(world, action, params);
    }
    Ok(())
}
