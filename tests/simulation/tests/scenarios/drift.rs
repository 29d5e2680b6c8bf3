//! What somebody else changes in AWS is seen by the next poll, put right, and told once.

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    conditions::DRIFTED,
    names::events,
    pool::{
        InstanceTypeEntry,
        ScalingProcess::{AzRebalance, Launch},
    },
};
use capasg_controllers::names::{TAG_KEY_HASHES, TAG_KEYS};
use capasg_fake_aws::{Fault, Service, Tree};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

use crate::{group_params, running, running_with};

/// Something that somebody else does.
type Change = fn(&World, &Pool) -> Result<()>;

/// A poll, and the calls that follow it.
const A_POLL: TimeDelta = TimeDelta::seconds(75);

/// The group as AWS describes it, without its instances and without when a process was suspended.
fn group(world: &World, pool: &Pool) -> Result<String> {
    let params = Tree::new().with("AutoScalingGroupNames", vec![world.group_name(pool)]);
    let reply = world.aws(Service::AutoScaling, "DescribeAutoScalingGroups", params)?;
    let found = reply.items_of("AutoScalingGroups").first().context("the group")?;
    let members: Vec<String> = found
        .members()
        .filter(|(name, _)| !matches!(*name, "Instances" | "SuspendedProcesses"))
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect();
    let suspended: Vec<_> =
        found.items_of("SuspendedProcesses").iter().map(|one| one.text_of("ProcessName")).collect();
    Ok(format!("{}\nsuspended: {suspended:?}", members.join("\n")))
}

/// Somebody updates the group.
fn update(world: &World, pool: &Pool, change: impl FnOnce(Tree) -> Tree) -> Result<()> {
    world.aws(Service::AutoScaling, "UpdateAutoScalingGroup", change(group_params(world, pool)))?;
    Ok(())
}

fn tag(world: &World, pool: &Pool, key: &str, value: &str) -> Tree {
    let tag = Tree::new()
        .with("ResourceId", world.group_name(pool))
        .with("ResourceType", "auto-scaling-group")
        .with("Key", key)
        .with("Value", value)
        .with("PropagateAtLaunch", true);
    Tree::new().with("Tags", Tree::list([tag]))
}

/// Weaknesses 6, 10 and 15, pain 27: each attribute alone, within a poll, with one event that names it.
// Pains: P27, W6, W10, W15
#[tokio::test(start_paused = true)]
async fn a_setting_changed_outside_is_corrected_within_a_poll() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, |spec| {
        spec.tags = [("team".to_owned(), "a".to_owned())].into();
        spec.instance_types.push(InstanceTypeEntry::new("m6i.large"));
    })
    .await?;
    let whole = group(&world, &pool)?;
    let changes: [(&str, Change); 13] = [
        ("spec.group.defaultCooldownSeconds 60 -> 300", |world, pool| {
            update(world, pool, |group| group.with("DefaultCooldown", 60))
        }),
        ("spec.group.healthCheckGracePeriodSeconds 10 -> 300", |world, pool| {
            update(world, pool, |group| group.with("HealthCheckGracePeriod", 10))
        }),
        ("spec.group.healthCheckTypes EC2, ELB -> EC2", |world, pool| {
            update(world, pool, |group| group.with("HealthCheckType", "EC2,ELB"))
        }),
        ("spec.group.defaultInstanceWarmupSeconds 30 -> none", |world, pool| {
            update(world, pool, |group| group.with("DefaultInstanceWarmup", 30))
        }),
        ("scale-in protection of new instances off -> on", |world, pool| {
            update(world, pool, |group| group.with("NewInstancesProtectedFromScaleIn", false))
        }),
        ("CapacityRebalance of the Auto Scaling group on -> off", |world, pool| {
            update(world, pool, |group| group.with("CapacityRebalance", true))
        }),
        ("instance maintenance policy 100% to 150% -> none", |world, pool| {
            let policy = Tree::new().with("MinHealthyPercentage", 100).with("MaxHealthyPercentage", 150);
            update(world, pool, |group| group.with("InstanceMaintenancePolicy", policy.clone()))
        }),
        (
            "InstanceLifecyclePolicy, retention trigger TerminateHookAbandon retain -> terminate",
            |world, pool| {
                let triggers = Tree::new().with("TerminateHookAbandon", "retain");
                let policy = Tree::new().with("RetentionTriggers", triggers);
                update(world, pool, |group| group.with("InstanceLifecyclePolicy", policy.clone()))
            },
        ),
        (
            "spec.subnets subnet-0a1b2c3d -> subnet-0a1b2c3d, subnet-0b1c2d3e, subnet-0c1d2e3f",
            |world, pool| update(world, pool, |group| group.with("VPCZoneIdentifier", "subnet-0a1b2c3d")),
        ),
        ("MaxSize of the Auto Scaling group 9 -> 2", |world, pool| {
            update(world, pool, |group| group.with("MaxSize", 9))
        }),
        ("spec.tags[team] \"b\" -> \"a\"", |world, pool| {
            world.aws(Service::AutoScaling, "CreateOrUpdateTags", tag(world, pool, "team", "b"))?;
            Ok(())
        }),
        ("spec.group.suspendedProcesses none -> AZRebalance", |world, pool| {
            let params = group_params(world, pool).with("ScalingProcesses", vec!["AZRebalance"]);
            world.aws(Service::AutoScaling, "ResumeProcesses", params)?;
            Ok(())
        }),
        ("spec.group.suspendedProcesses AZRebalance, HealthCheck -> AZRebalance", |world, pool| {
            let params = group_params(world, pool).with("ScalingProcesses", vec!["HealthCheck"]);
            world.aws(Service::AutoScaling, "SuspendProcesses", params)?;
            Ok(())
        }),
    ];
    for (told, change) in changes {
        let before = world.events(events::DRIFT_CORRECTED).len();
        change(&world, &pool).with_context(|| told.to_owned())?;
        ensure!(group(&world, &pool)? != whole, "{told}: nothing was changed");
        world.run_for(A_POLL).await?;
        let now = group(&world, &pool)?;
        ensure!(now == whole, "{told}: {now}\nbefore: {whole}\n{}", world.describe());
        let events = world.events(events::DRIFT_CORRECTED);
        ensure!(events.len() == before + 1, "{told}: {events:?}");
        ensure!(events[before].contains(told), "{}", events[before]);
        ensure!(world.says(&pool, DRIFTED, "False", "NotDrifted"), "{told}\n{}", world.describe());
    }
    let writes = world.journal.len();
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.journal.since(writes).is_empty(), "{:?}", world.journal.since(writes));
    ensure!(world.events(events::GROUP_UPDATED).is_empty(), "{:?}", world.events(events::GROUP_UPDATED));
    world.finish()
}

/// The security groups of our newest version are used while AWS denies to read the subnets, whose VPC they are in.
// Pains: W5
#[tokio::test(start_paused = true)]
async fn a_token_gets_a_version_beside_a_reference_of_another_actor() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let denied = Fault::error("DescribeSubnets", 403, "UnauthorizedOperation", "not authorized");
    world.fault(denied.times(None));
    world.kill_process();
    let (template, before) = world.group(&pool).context("the group")?.template;
    let latest = Tree::new().with("LaunchTemplateId", template.as_str()).with("Version", "$Latest");
    update(&world, &pool, |group| group.with("LaunchTemplate", latest))?;
    world.rotate_token(&pool);
    let is_ours = |world: &World| {
        world.group(&pool).is_some_and(|group| group.template.1 != before && group.template.1 != "$Latest")
    };
    world.run_until("the group launches a version with the token", TimeDelta::minutes(2), is_ours).await
}

/// Weakness 7: a group that somebody points to another version, or to none by number, launches ours again.
// Pains: W5, W7
#[tokio::test(start_paused = true)]
async fn a_template_reference_or_policy_changed_outside_is_corrected() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, |spec| {
        spec.instance_types.push(InstanceTypeEntry::new("m6i.large"));
    })
    .await?;
    let whole = group(&world, &pool)?;
    let template = world.group(&pool).context("the group")?.template.0;
    let reference =
        |version: &str| Tree::new().with("LaunchTemplateId", template.as_str()).with("Version", version);
    let alone = reference("$Latest");
    let policy = Tree::new().with(
        "LaunchTemplate",
        Tree::new()
            .with("LaunchTemplateSpecification", reference("1"))
            .with("Overrides", Tree::list([Tree::new().with("InstanceType", "m7i.large")])),
    );
    let policy = policy
        .with("InstancesDistribution", Tree::new().with("SpotAllocationStrategy", "capacity-optimized"));
    for (name, member) in [("LaunchTemplate", alone), ("MixedInstancesPolicy", policy)] {
        let events = world.events(events::DRIFT_CORRECTED).len();
        update(&world, &pool, |group| group.with(name, member))?;
        world.run_for(A_POLL).await?;
        ensure!(group(&world, &pool)? == whole, "{name}: {}", group(&world, &pool)?);
        ensure!(world.events(events::DRIFT_CORRECTED).len() == events + 1, "{name}");
    }
    let told = world.events(events::DRIFT_CORRECTED).join("\n");
    for path in ["launch template version $Latest or $Default -> version 1", "spec.instanceTypes"] {
        ensure!(told.contains(path), "{path}: {told}");
    }
    world.finish()
}

/// Instances of another launch template would be replaced again, and with weights the pool would have too few.
#[tokio::test(start_paused = true)]
async fn what_overrides_have_besides_their_types_is_removed() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, |spec| {
        spec.instance_types.push(InstanceTypeEntry::new("m6i.large"));
    })
    .await?;
    let whole = group(&world, &pool)?;
    let data = Tree::new().with("ImageId", "ami-0a1b2c3d").with("InstanceType", "m7i.large");
    let params = Tree::new().with("LaunchTemplateName", "somebody-elses").with("LaunchTemplateData", data);
    let reply = world.aws(Service::Ec2, "CreateLaunchTemplate", params)?;
    let theirs = reply.at("LaunchTemplate.LaunchTemplateId").and_then(Tree::text).context("an id")?;
    let (ours, version) = world.group(&pool).context("the group")?.template;
    let reference =
        |id: &str, version: &str| Tree::new().with("LaunchTemplateId", id).with("Version", version);
    for (member, value) in
        [("LaunchTemplateSpecification", reference(theirs, "1")), ("WeightedCapacity", Tree::from("2"))]
    {
        let before = world.events(events::DRIFT_CORRECTED).len();
        let overrides = ["m7i.large", "m6i.large"]
            .map(|kind| Tree::new().with("InstanceType", kind).with(member, value.clone()));
        let template = Tree::new()
            .with("LaunchTemplateSpecification", reference(&ours, &version))
            .with("Overrides", Tree::list(overrides));
        let policy = Tree::new().with("LaunchTemplate", template);
        update(&world, &pool, |group| group.with("MixedInstancesPolicy", policy))?;
        ensure!(group(&world, &pool)? != whole, "{member}: nothing was changed");
        world.run_for(A_POLL).await?;
        ensure!(group(&world, &pool)? == whole, "{member}: {}", group(&world, &pool)?);
        let told = world.events(events::DRIFT_CORRECTED);
        ensure!(told.len() == before + 1, "{member}: {told:?}");
        ensure!(told[before].contains(&format!("Overrides {member} -> none")), "{}", told[before]);
        ensure!(world.says(&pool, DRIFTED, "False", "NotDrifted"), "{member}\n{}", world.describe());
    }
    world.finish()
}

/// Our own wish is no drift, whoever writes it.
// Pains: W6
#[tokio::test(start_paused = true)]
async fn an_edited_spec_is_not_reported_as_drift() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.edit_pool(&pool, |pool| {
        pool.spec.group.get_or_insert_default().default_cooldown_seconds = Some(120);
        pool.spec.tags = [("team".to_owned(), "a".to_owned())].into();
    });
    world.run_for(A_POLL).await?;
    ensure!(world.events(events::DRIFT_CORRECTED).is_empty(), "{:?}", world.events(events::DRIFT_CORRECTED));
    let told = world.events(events::GROUP_UPDATED).join("\n");
    for change in ["spec.group.defaultCooldownSeconds 300 -> 120", "spec.tags[team] none -> \"a\""] {
        ensure!(told.contains(change), "{told}");
    }
    // And back, while the process that knew the first wish is gone.
    world.kill_process();
    world.edit_pool(&pool, |pool| pool.spec.tags.clear());
    world.run_for(A_POLL).await?;
    let told = world.events(events::GROUP_UPDATED).join("\n");
    ensure!(told.contains("spec.tags[team] \"a\" -> none"), "{told}");
    ensure!(world.events(events::DRIFT_CORRECTED).is_empty(), "{:?}", world.events(events::DRIFT_CORRECTED));
    world.finish()
}

/// Any key of the spec is removed with its tag, by the next process as well; a tag of another actor stays.
// Pains: W6
#[tokio::test(start_paused = true)]
async fn a_tag_of_any_key_is_removed_when_it_leaves_the_spec() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let long = "k".repeat(128);
    let many = (0..37).map(|n| format!("key-{n}"));
    let keys: Vec<String> =
        ["Cost Center".to_owned(), "team".to_owned(), long].into_iter().chain(many).collect();
    world.edit_pool(&pool, |pool| {
        pool.spec.tags = keys.iter().map(|key| (key.clone(), "a".to_owned())).collect();
    });
    world.run_for(A_POLL).await?;
    world.aws(Service::AutoScaling, "CreateOrUpdateTags", tag(&world, &pool, "Cost", "foreign"))?;
    let present = |world: &World, key: &str| {
        group(world, &pool).map(|group| group.contains(&format!("{:?}", key.to_owned())))
    };
    for key in &keys {
        ensure!(present(&world, key)?, "{key}: {}", group(&world, &pool)?);
    }
    world.kill_process();
    world.edit_pool(&pool, |pool| pool.spec.tags.clear());
    world.run_for(A_POLL).await?;
    for key in &keys {
        ensure!(!present(&world, key)?, "{key}: {}", group(&world, &pool)?);
    }
    ensure!(present(&world, "Cost")?, "{}", group(&world, &pool)?);
    ensure!(world.events(events::DRIFT_CORRECTED).is_empty(), "{:?}", world.events(events::DRIFT_CORRECTED));
    world.finish()
}

/// A tag whose removal fails is removed once AWS accepts that, whatever else the spec says by then, and by the next process
/// as well.
// Pains: W6
#[tokio::test(start_paused = true)]
async fn a_removal_of_a_tag_that_fails_is_repeated() -> Result<()> {
    for (status, code) in [(403, "AccessDenied"), (500, "InternalFailure"), (400, "ResourceContention")] {
        let (mut world, pool) = running(Setup::default(), 1).await?;
        let set = |world: &World, keys: &[&str]| {
            let tags = keys.iter().map(|key| ((*key).to_owned(), "a".to_owned())).collect();
            world.edit_pool(&pool, |pool| pool.spec.tags = tags);
        };
        let tags = |world: &World| world.group(&pool).map(|group| group.tags).unwrap_or_default();
        set(&world, &["Cost Center", "team"]);
        world.run_for(A_POLL).await?;
        world.fault(Fault::error("DeleteTags", status, code, "not now").times(None));
        set(&world, &["team", "zone"]);
        world.run_for(A_POLL).await?;
        let both = tags(&world);
        ensure!(both.contains_key("zone") && both.contains_key("Cost Center"), "{code}: {both:?}");
        world.kill_process();
        set(&world, &[]);
        world.run_for(A_POLL).await?;
        world.simulator.clear_faults(None);
        // What AWS rejected is tried again after 15 minutes at most.
        world.run_for(TimeDelta::minutes(20)).await?;
        let left = tags(&world);
        let users = ["Cost Center", "team", "zone", TAG_KEYS, TAG_KEY_HASHES];
        ensure!(users.iter().all(|key| !left.contains_key(*key)), "{code}: {left:?}");
        world.finish()?;
    }
    Ok(())
}

/// What was changed while no manager ran is drift as well.
// Pains: W6
#[tokio::test(start_paused = true)]
async fn the_next_leader_knows_drift_from_the_status() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    update(&world, &pool, |group| group.with("DefaultCooldown", 60))?;
    world.kill_process();
    world.run_for(A_POLL).await?;
    let told = world.events(events::DRIFT_CORRECTED);
    ensure!(told.len() == 1 && told[0].contains("defaultCooldownSeconds 60 -> 300"), "{told:?}");
    world.finish()
}

/// Somebody who insists is overruled each time, and told of once an hour; three times if the value is another each time.
// Rules: I4
// Pains: W6
#[tokio::test(start_paused = true)]
async fn recurring_drift_is_reported_once_an_hour() -> Result<()> {
    for (others, told) in [(0, 1), (1, 3)] {
        let (mut world, pool) = running(Setup::default(), 1).await?;
        for n in 0..20 {
            update(&world, &pool, |group| group.with("DefaultCooldown", 60 + n * others))?;
            world
                .run_until("it is seen", A_POLL, |world| world.says(&pool, DRIFTED, "True", "Correcting"))
                .await?;
            world.run_for(A_POLL).await?;
        }
        let events = world.events(events::DRIFT_CORRECTED);
        ensure!(events.len() == told, "{events:?}");
        world.finish()?;
    }
    Ok(())
}

/// People stop a group by its process Launch: that is theirs to take back, unless the spec named it.
// Pains: P46, W26
#[tokio::test(start_paused = true)]
async fn launch_stays_suspended_until_the_spec_or_a_user_resumes_it() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let params = group_params(&world, &pool).with("ScalingProcesses", vec!["Launch"]);
    world.aws(Service::AutoScaling, "SuspendProcesses", params)?;
    world.run_for(A_POLL).await?;
    let suspended = |world: &World| world.group(&pool).map(|group| group.suspended).unwrap_or_default();
    ensure!(suspended(&world) == ["AZRebalance", "Launch"], "{:?}", suspended(&world));
    ensure!(world.says(&pool, "ScalingHealthy", "False", "ProcessesSuspended"), "{}", world.describe());
    for (wish, has) in [
        (Some(vec![AzRebalance, Launch]), vec!["AZRebalance", "Launch"]),
        (Some(vec![AzRebalance]), vec!["AZRebalance"]),
        (Some(vec![]), vec![]),
        (None, vec!["AZRebalance"]),
    ] {
        world.edit_pool(&pool, |pool| {
            pool.spec.group.get_or_insert_default().suspended_processes.clone_from(&wish);
        });
        world.run_for(A_POLL).await?;
        ensure!(suspended(&world) == has, "{wish:?}: {:?}", suspended(&world));
    }
    world.finish()
}

/// The hook and the template are read anew once an hour; what somebody deleted is there again, without a rollout.
// Pains: W15
#[tokio::test(start_paused = true)]
async fn a_deleted_hook_or_template_is_created_again() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let before = world.in_service(&pool);
    let params = group_params(&world, &pool).with("LifecycleHookName", "asg-drain");
    world.aws(Service::AutoScaling, "DeleteLifecycleHook", params)?;
    let template = world.group(&pool).context("the group")?.template.0;
    let params = Tree::new().with("LaunchTemplateId", template.as_str());
    world.aws(Service::Ec2, "DeleteLaunchTemplate", params)?;
    world
        .run_until("both are back", TimeDelta::minutes(100), |world| {
            let group = world.group(&pool);
            world.has_template(&pool)
                && group.is_some_and(|own| own.hooks == ["asg-drain"] && own.template.0 != template)
        })
        .await?;
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(world.in_service(&pool) == before, "nothing rolls\n{}", world.describe());
    let told = world.events(events::DRIFT_CORRECTED).join("\n");
    for change in ["spec.drain.onCloudTermination Ignore -> Drain", "launch template"] {
        ensure!(told.contains(change), "{told}");
    }
    world.finish()
}

/// Standby: listed but not counted, with its Machine, within a MaxSize that leaves room for it.
#[tokio::test(start_paused = true)]
async fn an_instance_in_standby_is_kept_alongside_the_replicas() -> Result<()> {
    let (mut world, pool) = running(Setup { watch: false, ..Setup::default() }, 2).await?;
    let id = world.in_service(&pool).pop_first().context("an instance")?;
    let machine = world.machine_of(&pool, &id)?;
    let params = group_params(&world, &pool)
        .with("InstanceIds", vec![id.as_str()])
        .with("ShouldDecrementDesiredCapacity", true);
    world.aws(Service::AutoScaling, "EnterStandby", params)?;
    let has_both = |world: &World| {
        let standby = world.instances(&pool).into_iter().find(|one| one.id == id);
        world.in_service(&pool).len() == 2
            && standby.is_some_and(|one| one.lifecycle_state.as_deref() == Some("Standby"))
            && world.group(&pool).is_some_and(|group| (group.desired, group.max) == (2, 3))
    };
    world.run_until("another serves in its place", TimeDelta::minutes(15), has_both).await?;
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(has_both(&world) && world.machines(&pool).contains_key(&machine), "{}", world.describe());
    ensure!(world.drains(&machine).is_empty(), "nobody drains it");
    // Back in service it is one too many: one goes, drained, and what serves is protected again.
    let params = group_params(&world, &pool).with("InstanceIds", vec![id.as_str()]);
    world.aws(Service::AutoScaling, "ExitStandby", params)?;
    world.run_until("two are left", TimeDelta::minutes(15), |world| world.is_running(&pool, 2)).await?;
    world.run_for(A_POLL).await?;
    ensure!(world.instances(&pool).iter().all(|one| one.protected), "{}", world.describe());
    world.finish()
}
