//! Launches that fail inside AWS: told with AWS's words, the place and what to do, healed without a trace, and cheap.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use capasg_api::{
    conditions::{READY, SCALING_HEALTHY},
    names::aws_name,
    pool::{InstanceTypeEntry, LaunchFailureStatus, SubnetSelector},
};
use capasg_fake_aws::{Fault, Service, Tree, ec2::Subnet};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

use crate::{SOON, group_params, reach, running};

const READS: &str = "DescribeScalingActivities";

fn message(world: &World, pool: &Pool) -> String {
    world.condition(pool, SCALING_HEALTHY).map(|told| told.message).unwrap_or_default()
}

fn last(world: &World, pool: &Pool) -> Option<LaunchFailureStatus> {
    world.pool(pool)?.status.as_ref()?.last_launch_failure.clone()
}

fn reads(world: &World, mark: u64) -> usize {
    world.calls_since(mark, Some(READS)).len()
}

/// A pool of two that is to have four, while something makes launches fail; it heals when that is mended.
async fn fails_and_heals(
    setup: Setup,
    spoil: impl FnOnce(&mut World),
    reason: &str,
    words: &str,
    mend: impl FnOnce(&mut World, &Pool),
) -> Result<()> {
    let (mut world, pool) = running(setup, 2).await?;
    ensure!(reads(&world, 0) == 0, "nothing lacked for long");
    spoil(&mut world);
    world.scale(&pool, 4);
    world
        .run_until("it is told", TimeDelta::minutes(5), |world| {
            world.says(&pool, SCALING_HEALTHY, "False", reason)
        })
        .await?;
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.says(&pool, SCALING_HEALTHY, "False", reason), "it stays told\n{}", world.describe());
    let told = message(&world, &pool);
    let begins = "2 of 4 instances are in service; AWS reports \"";
    ensure!(told.starts_with(begins) && told.contains(words), "{told}");
    // AWS names no type and zone for an image.
    let located = told.contains(" (m7i.large in eu-west-1");
    ensure!(located == (reason != "ImageUnusable"), "where: {told}");
    ensure!(told.ends_with('.') && !told.contains("Launching EC2 instance failed"), "{told}");
    ensure!(world.condition(&pool, READY).is_some_and(|ready| ready.status == "False"), "not Ready");
    let failure = last(&world, &pool).context("lastLaunchFailure")?;
    ensure!(failure.reason == reason && failure.message.contains(words), "{failure:?}");
    ensure!(failure.instance_type.as_deref() == Some("m7i.large"), "{failure:?}");
    let events = world.events("LaunchFailed");
    ensure!(events.len() == 1 && events[0].contains(words), "one event, not {events:?}");
    mend(&mut world, &pool);
    reach(&mut world, &pool, 4).await?;
    ensure!(world.says(&pool, SCALING_HEALTHY, "True", "ScalingHealthy"), "{}", world.describe());
    ensure!(message(&world, &pool).is_empty(), "nothing stale");
    ensure!(last(&world, &pool) == Some(failure), "the last failure stays, unchanged");
    ensure!(world.events("LaunchFailed").len() == 1, "{:?}", world.events("LaunchFailed"));
    let mark = world.mark();
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(reads(&world, mark) == 0, "a pool that is complete reads no activities");
    world.finish()
}

// Pains: P46, W23
#[tokio::test(start_paused = true)]
async fn insufficient_capacity_is_reported_and_recovers() -> Result<()> {
    for seed in 0..3 {
        fails_and_heals(
            Setup::seed(seed),
            |world| world.simulator.set_capacity(&world.scope(), "m7i.large", "*", Some(2)),
            "InsufficientCapacity",
            "sufficient m7i.large capacity",
            |world, _| world.simulator.set_capacity(&world.scope(), "m7i.large", "*", None),
        )
        .await?;
    }
    Ok(())
}

// Pains: P46
#[tokio::test(start_paused = true)]
async fn an_exceeded_quota_is_reported_and_recovers() -> Result<()> {
    let limit = |world: &World, limit| {
        let scope = world.scope();
        let mut settings = world.simulator.settings(Some(&scope));
        settings.vcpu_limit = limit;
        world.simulator.set_settings(Some(&scope), &settings);
    };
    let words = "more vCPU capacity than your current vCPU limit of 4";
    fails_and_heals(
        Setup::default(),
        |world| limit(world, Some(4)),
        "QuotaExceeded",
        words,
        |world, _| limit(world, None),
    )
    .await
}

fn full_subnets(world: &World, addresses: usize) {
    for (id, zone) in [("subnet-0a1b2c3d", "a"), ("subnet-0b1c2d3e", "b"), ("subnet-0c1d2e3f", "c")] {
        let subnet = Subnet {
            id: id.to_owned(),
            vpc: "vpc-0a1b2c3d".to_owned(),
            zone: format!("eu-west-1{zone}"),
            cidr: format!("10.0.{}.0/28", u32::from(zone.as_bytes()[0])),
            addresses,
            tags: BTreeMap::new(),
        };
        world.simulator.put_subnet(&world.scope(), subnet);
    }
}

// Pains: P46
#[tokio::test(start_paused = true)]
async fn full_subnets_are_reported_and_recover() -> Result<()> {
    fails_and_heals(
        Setup::default(),
        |world| full_subnets(world, 0),
        "NoFreeAddresses",
        "not enough free addresses in subnet 'subnet-0",
        |world, _| full_subnets(world, 100),
    )
    .await
}

// Pains: P46
#[tokio::test(start_paused = true)]
async fn a_deregistered_image_is_reported_and_recovers() -> Result<()> {
    fails_and_heals(
        Setup::default(),
        |world| world.simulator.remove_image(&world.scope(), "ami-0a1b2c3d"),
        "ImageUnusable",
        "The AMI ID ami-0a1b2c3d does not exist.",
        |world, _| {
            let image = capasg_fake_aws::ec2::Image::new("ami-0a1b2c3d", "node", "x86_64");
            world.simulator.put_image(&world.scope(), image);
        },
    )
    .await
}

/// With an encryption key that AWS may not use, a machine starts and ends at once.
// Pains: P46
#[tokio::test(start_paused = true)]
async fn instances_that_stop_at_launch_are_reported_and_recover() -> Result<()> {
    let die = |world: &World, die| {
        let scope = world.scope();
        let mut settings = world.simulator.settings(Some(&scope));
        settings.launches_die = die;
        world.simulator.set_settings(Some(&scope), &settings);
    };
    fails_and_heals(
        Setup::default(),
        |world| die(world, true),
        "KeyUnusable",
        "Client.InternalError: Client error on launch.",
        |world, _| die(world, false),
    )
    .await
}

/// Whatever an instance dies of at launch is reported in AWS's words, and the group does not launch without end.
// Pains: P46
#[tokio::test(start_paused = true)]
async fn every_death_at_launch_is_reported_and_recovers() -> Result<()> {
    for (words, reason) in [
        ("Client.VolumeLimitExceeded: Volume limit exceeded", "QuotaExceeded"),
        ("Client.InstanceInitiatedShutdown: Instance initiated shutdown", "LaunchFailed"),
        ("Server.CodeOfTomorrow: something that is not documented", "LaunchFailed"),
    ] {
        let die = |world: &World, die| {
            let scope = world.scope();
            let mut settings = world.simulator.settings(Some(&scope));
            settings.launches_die = die;
            words.clone_into(&mut settings.launches_die_of);
            world.simulator.set_settings(Some(&scope), &settings);
        };
        fails_and_heals(
            Setup::default(),
            |world| die(world, true),
            reason,
            words,
            |world, _| die(world, false),
        )
        .await?;
    }
    Ok(())
}

/// A lifecycle hook of another actor for launches, which nobody completes.
// Pains: P46
#[tokio::test(start_paused = true)]
async fn a_launch_that_a_hook_ends_is_reported_and_recovers() -> Result<()> {
    let hook = || {
        Tree::new()
            .with("AutoScalingGroupName", aws_name("default", "prod", "workers"))
            .with("LifecycleHookName", "others")
    };
    fails_and_heals(
        Setup::default(),
        |world| {
            let params = hook()
                .with("LifecycleTransition", "autoscaling:EC2_INSTANCE_LAUNCHING")
                .with("HeartbeatTimeout", 30)
                .with("DefaultResult", "ABANDON");
            drop(world.aws(Service::AutoScaling, "PutLifecycleHook", params));
        },
        "LaunchFailed",
        "failed to complete user's Lifecycle Action",
        |world, _| drop(world.aws(Service::AutoScaling, "DeleteLifecycleHook", hook())),
    )
    .await
}

/// AWS waits an hour for a lifecycle hook, unless it says otherwise: another leader may see the end of a launch.
// Pains: P46
#[tokio::test(start_paused = true)]
async fn a_launch_that_a_hook_ends_after_an_hour_is_reported_by_the_next_leader() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let hook = group_params(&world, &pool).with("LifecycleHookName", "others");
    let params = hook
        .clone()
        .with("LifecycleTransition", "autoscaling:EC2_INSTANCE_LAUNCHING")
        .with("HeartbeatTimeout", 3_600)
        .with("DefaultResult", "ABANDON");
    world.aws(Service::AutoScaling, "PutLifecycleHook", params)?;
    world.scale(&pool, 3);
    world.run_for(TimeDelta::minutes(30)).await?;
    world.kill_process();
    let failing = |world: &World| world.says(&pool, SCALING_HEALTHY, "False", "LaunchFailed");
    world.run_until("it is reported", TimeDelta::minutes(45), failing).await?;
    world.aws(Service::AutoScaling, "DeleteLifecycleHook", hook)?;
    reach(&mut world, &pool, 3).await?;
    ensure!(world.says(&pool, SCALING_HEALTHY, "True", "ScalingHealthy"), "{}", world.describe());
    world.finish()
}

/// Correcting the spec is enough, and seen at once.
// Pains: P46
#[tokio::test(start_paused = true)]
async fn another_instance_type_resolves_insufficient_capacity() -> Result<()> {
    fails_and_heals(
        Setup::default(),
        |world| world.simulator.set_capacity(&world.scope(), "m7i.large", "*", Some(2)),
        "InsufficientCapacity",
        "sufficient m7i.large capacity",
        |world, pool| {
            world.edit_pool(pool, |pool| pool.spec.instance_types.push(InstanceTypeEntry::new("m6i.large")));
        },
    )
    .await
}

/// Somebody asks for fewer: what lacked is no longer wanted.
// Pains: P46
#[tokio::test(start_paused = true)]
async fn fewer_replicas_resolve_insufficient_capacity() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.simulator.set_capacity(&world.scope(), "*", "*", Some(2));
    world.scale(&pool, 4);
    let failing = |world: &World| world.says(&pool, SCALING_HEALTHY, "False", "InsufficientCapacity");
    world.run_until("told", SOON, failing).await?;
    world.scale(&pool, 2);
    reach(&mut world, &pool, 2).await?;
    ensure!(world.says(&pool, SCALING_HEALTHY, "True", "ScalingHealthy"), "{}", world.describe());
    world.scale(&pool, 3);
    world.run_until("told again", SOON, failing).await?;
    ensure!(
        world.events("LaunchFailed").len() == 2,
        "once for each time: {:?}",
        world.events("LaunchFailed")
    );
    world.finish()
}

/// A new process goes on telling what the last one told, and publishes no event again.
// Pains: P46
#[tokio::test(start_paused = true)]
async fn the_next_leader_repeats_no_launch_failure_event() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 2).await?;
        world.simulator.set_capacity(&world.scope(), "*", "*", Some(2));
        world.scale(&pool, 4);
        let failing = |world: &World| world.says(&pool, SCALING_HEALTHY, "False", "InsufficientCapacity");
        world.run_until("told", SOON, failing).await?;
        world.run_for(TimeDelta::minutes(30)).await?;
        let (writes, before) = (world.journal.len(), last(&world, &pool));
        world.kill_process();
        let quiet = TimeDelta::minutes(10);
        world.run_for(quiet).await?;
        let made: Vec<_> = world.journal.since(writes).into_iter().filter(|entry| entry.changed).collect();
        ensure!(made.is_empty(), "{made:?} (seed {seed})");
        ensure!(failing(&world) && last(&world, &pool) == before, "told as before (seed {seed})");
        ensure!(world.events("LaunchFailed").len() == 1, "{:?}", world.events("LaunchFailed"));
        world.simulator.set_capacity(&world.scope(), "*", "*", None);
        reach(&mut world, &pool, 4).await?;
        ensure!(world.says(&pool, SCALING_HEALTHY, "True", "ScalingHealthy"), "{}", world.describe());
    }
    Ok(())
}

/// Zones and types fail in turn: the message does not follow each try.
// Pains: P46
#[tokio::test(start_paused = true)]
async fn a_day_without_capacity_costs_few_reads_and_no_write() -> Result<()> {
    let mut setup = Setup { watch: false, meanwhile_percent: 0, ..Setup::default() };
    setup.settings.give_up_millis = 10 * 86_400_000;
    let (mut world, pool) = running(setup, 2).await?;
    world.simulator.set_capacity(&world.scope(), "*", "*", Some(2));
    world.scale(&pool, 4);
    let failing = |world: &World| world.says(&pool, SCALING_HEALTHY, "False", "InsufficientCapacity");
    world.run_until("told", SOON, failing).await?;
    world.run_for(TimeDelta::hours(1)).await?;
    let (mark, writes, versions) = (world.mark(), world.journal.len(), world.api.versions());
    world.run_for(TimeDelta::hours(24)).await?;
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for call in world.calls_since(mark, None) {
        *calls.entry(call.action).or_default() += 1;
    }
    println!("calls in a day of a pool that cannot launch: {calls:?}");
    let mutations = world.mutations_since(mark);
    ensure!(mutations.is_empty(), "{mutations:?}");
    let made: Vec<_> = world.journal.since(writes).into_iter().filter(|entry| entry.changed).collect();
    ensure!(made.is_empty() && world.api.versions() == versions, "{made:?}");
    let reads = calls.remove(READS).unwrap_or(0);
    ensure!(
        (200..=290).contains(&reads),
        "{reads} reads of activities in a day, one in five minutes at most"
    );
    let polls = calls.remove("DescribeAutoScalingGroups").unwrap_or(0);
    ensure!(polls <= 4_810, "{polls} polls in a day: those of a pool at rest");
    ensure!(world.events("LaunchFailed").len() == 1, "{:?}", world.events("LaunchFailed"));
    world.simulator.set_capacity(&world.scope(), "*", "*", None);
    reach(&mut world, &pool, 4).await
}

/// After a day AWS itself stops trying: shown with how to go on, and gone on with only when somebody says so.
// Pains: P46
#[tokio::test(start_paused = true)]
async fn a_launch_suspension_by_aws_is_reported_and_resumed_on_request() -> Result<()> {
    for by_edit in [false, true] {
        let mut setup = Setup { watch: false, meanwhile_percent: 0, ..Setup::default() };
        setup.settings.give_up_millis = 3_600_000;
        let (mut world, pool) = running(setup, 2).await?;
        world.simulator.set_capacity(&world.scope(), "m7i.large", "*", Some(2));
        world.scale(&pool, 4);
        let suspended = |world: &World| world.says(&pool, SCALING_HEALTHY, "False", "ProcessesSuspended");
        world.run_until("suspended", TimeDelta::hours(2), suspended).await?;
        let told = message(&world, &pool);
        ensure!(told.contains("AWS suspended Launch") && told.contains("spec.retryToken"), "{told}");
        ensure!(told.contains("sufficient m7i.large capacity"), "with what failed: {told}");
        world.rotate_token(&pool);
        world.run_for(TimeDelta::hours(1)).await?;
        let mark = world.mark();
        world.run_for(TimeDelta::hours(3)).await?;
        ensure!(world.calls_since(mark, Some("ResumeProcesses")).is_empty(), "nothing is fought over");
        ensure!(reads(&world, mark) == 0, "nothing is tried, so nothing is read");
        if by_edit {
            world.edit_pool(&pool, |pool| pool.spec.instance_types.push(InstanceTypeEntry::new("m6i.large")));
        } else {
            world.simulator.set_capacity(&world.scope(), "*", "*", None);
            world.simulator.set_capacity(&world.scope(), "m7i.large", "*", None);
            world.edit_pool(&pool, |pool| pool.spec.retry_token = Some("now".to_owned()));
        }
        reach(&mut world, &pool, 4).await?;
        ensure!(world.calls_since(mark, Some("ResumeProcesses")).len() == 1, "resumed once");
        ensure!(world.says(&pool, SCALING_HEALTHY, "True", "ScalingHealthy"), "{}", world.describe());
    }
    Ok(())
}

/// What a person suspended stays so, whatever is edited.
// Pains: P46
#[tokio::test(start_paused = true)]
async fn a_launch_suspension_by_a_user_is_reported_and_kept() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let params =
        group_params(&world, &pool).with("ScalingProcesses", capasg_fake_aws::Tree::list(["Launch"]));
    world.aws(Service::AutoScaling, "SuspendProcesses", params.clone())?;
    world.scale(&pool, 3);
    world
        .run_until("told", SOON, |world| world.says(&pool, SCALING_HEALTHY, "False", "ProcessesSuspended"))
        .await?;
    world.edit_pool(&pool, |pool| pool.spec.retry_token = Some("now".to_owned()));
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.calls_since(0, Some("ResumeProcesses")).is_empty(), "it is the person's");
    world.aws(Service::AutoScaling, "ResumeProcesses", params)?;
    reach(&mut world, &pool, 3).await
}

/// What AWS does not let us read is told as not known, with one event's worth of calls.
// Pains: P13
#[tokio::test(start_paused = true)]
async fn a_denied_read_of_activities_reports_an_unknown_reason() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.simulator.set_capacity(&world.scope(), "*", "*", Some(2));
    let denied = "User is not authorized to perform: autoscaling:DescribeScalingActivities";
    world.fault(Fault::error(READS, 403, "AccessDenied", denied).times(None));
    world.scale(&pool, 4);
    world
        .run_until("told", SOON, |world| {
            world.condition(&pool, SCALING_HEALTHY).is_some_and(|told| told.status == "Unknown")
        })
        .await?;
    ensure!(message(&world, &pool).contains(denied), "{}", message(&world, &pool));
    let mark = world.mark();
    world.run_for(TimeDelta::hours(1)).await?;
    ensure!(reads(&world, mark) <= 16, "{} reads in an hour", reads(&world, mark));
    world.simulator.clear_faults(None);
    world
        .run_until("known", SOON, |world| world.says(&pool, SCALING_HEALTHY, "False", "InsufficientCapacity"))
        .await
}

/// One pool that cannot launch costs the others nothing.
// Pains: P33
#[tokio::test(start_paused = true)]
async fn a_pool_that_cannot_launch_does_not_affect_others() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let other = world.add_pool_with("others", 2, |spec| {
        spec.instance_types = vec![InstanceTypeEntry::new("m6i.large")];
        spec.subnets =
            vec![SubnetSelector { id: Some("subnet-0b1c2d3e".to_owned()), ..SubnetSelector::default() }];
    });
    reach(&mut world, &other, 2).await?;
    world.simulator.set_capacity(&world.scope(), "m7i.large", "*", Some(2));
    world.scale(&pool, 4);
    world
        .run_until("told", SOON, |world| world.says(&pool, SCALING_HEALTHY, "False", "InsufficientCapacity"))
        .await?;
    world.scale(&other, 4);
    reach(&mut world, &other, 4).await?;
    ensure!(world.says(&other, SCALING_HEALTHY, "True", "ScalingHealthy"), "the other is well");
    world.finish()
}

/// The launch template is listed every hour, but read again once a launch fails: another actor may have deleted it.
#[tokio::test(start_paused = true)]
async fn a_deleted_launch_template_is_noticed_once_a_launch_fails() -> Result<()> {
    for minutes in [1, 20] {
        let (mut world, pool) = running(Setup::seed(minutes), 2).await?;
        world.run_for(TimeDelta::minutes(minutes.cast_signed())).await?;
        let (template, _) =
            world.simulator.pinned(&world.scope(), &pool.group).context("a launch template")?;
        world.aws(Service::Ec2, "DeleteLaunchTemplate", Tree::new().with("LaunchTemplateId", template))?;
        world.scale(&pool, 3);
        world.run_until("a launch fails", SOON, |world| last(world, &pool).is_some()).await?;
        let failed = world.now();
        world.run_until("3 running", SOON, |world| world.is_running(&pool, 3)).await?;
        ensure!(world.now() - failed < TimeDelta::minutes(7), "after {}", world.now() - failed);
        world.finish()?;
    }
    Ok(())
}
