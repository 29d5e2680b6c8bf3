//! Whose group it is, and whether it is really gone.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use capasg_api::{
    conditions::{CLOUD_REACHABLE, GROUP_READY, LAUNCH_TEMPLATE_READY},
    names::{annotations, finalizers, tags},
    pool::DeletionPolicy,
};
use capasg_fake_aws::{LogFilter, Service, Tree};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt as _;

use crate::{SOON, ended_since, group_params, reach, running, running_with};

/// Every change that was asked of AWS in any account after a mark.
fn mutations(world: &World, mark: u64) -> Vec<String> {
    let filter = LogFilter::default().since(mark).mutations();
    world.simulator.log(&filter).into_iter().map(|call| format!("{} {}", call.account, call.action)).collect()
}

/// Issue scenario: wrong credentials must not look as if every group had vanished.
#[tokio::test(start_paused = true)]
async fn credentials_of_another_account_change_nothing() -> Result<()> {
    for restart in [false, true] {
        let (mut world, pool) = running(Setup::default(), 3).await?;
        let mark = world.mark();
        world.use_account("999988887777");
        if restart {
            world.kill_process();
        }
        world
            .run_until("it is told", SOON, |world| {
                world.says(&pool, CLOUD_REACHABLE, "False", "AccessDenied")
            })
            .await?;
        let message = world.condition(&pool, CLOUD_REACHABLE).context("CloudReachable")?.message;
        ensure!(
            message.contains("999988887777") && message.contains("123456789012"),
            "both accounts: {message}"
        );
        world.scale(&pool, 1);
        world.run_for(TimeDelta::minutes(30)).await?;
        ensure!(mutations(&world, mark).is_empty(), "asked for {:?}", mutations(&world, mark));
        let list = world.pool(&pool).context("the pool")?.spec.provider_id_list.clone();
        ensure!(list.len() == 3, "the list is kept, not {list:?}");
        ensure!(
            world.machines(&pool).values().all(|machine| !machine.is_deleting()),
            "all Machines are kept"
        );
        world.use_account(capasg_fake_aws::DEFAULT_ACCOUNT);
        reach(&mut world, &pool, 1).await?;
        ensure!(world.says(&pool, CLOUD_REACHABLE, "True", "CloudReachable"), "reached again");
    }
    Ok(())
}

/// A deletion with wrong credentials waits for the right ones, also one that leaves the group behind: its hook would stay.
#[tokio::test(start_paused = true)]
async fn credentials_of_another_account_keep_a_deletion_waiting() -> Result<()> {
    for policy in [None, Some(DeletionPolicy::Orphan)] {
        let (mut world, pool) =
            running_with(Setup::default(), 2, |spec| spec.deletion_policy = policy).await?;
        let mark = world.mark();
        world.use_account("999988887777");
        world.kill_process();
        world.delete_machine_pool(&pool);
        world.run_for(TimeDelta::minutes(30)).await?;
        ensure!(mutations(&world, mark).is_empty(), "{policy:?}: asked for {:?}", mutations(&world, mark));
        ensure!(world.pool(&pool).is_some(), "{policy:?}: the finalizer holds the pool");
        ensure!(world.machines(&pool).len() == 2, "{policy:?}: its Machines stay");
        world.use_account(capasg_fake_aws::DEFAULT_ACCOUNT);
        // Nothing but time tells that the credentials are right again.
        let gone = |world: &World| world.pool(&pool).is_none();
        world.run_until("the pool is gone", TimeDelta::hours(2), gone).await?;
        if policy.is_none() {
            ensure!(world.simulator.leftovers(None).is_empty(), "nothing is left");
        } else {
            let unhooked = world.group(&pool).is_some_and(|group| group.hooks.is_empty());
            ensure!(unhooked, "its hook is left");
        }
    }
    Ok(())
}

fn foreign_template(world: &World, name: &str) -> Result<String> {
    let data = Tree::new().with("ImageId", "ami-0a1b2c3d").with("InstanceType", "m7i.large");
    let params = Tree::new().with("LaunchTemplateName", name).with("LaunchTemplateData", data);
    let reply = world.aws(Service::Ec2, "CreateLaunchTemplate", params)?;
    let id = reply.at("LaunchTemplate.LaunchTemplateId").and_then(Tree::text).context("an id")?;
    Ok(id.to_owned())
}

fn foreign_group(world: &World, pool: &Pool, tags: &BTreeMap<&str, &str>) -> Result<()> {
    let template = foreign_template(world, "somebody-elses")?;
    let name = world.group_name(pool);
    let tags = tags.iter().map(|(key, value)| {
        Tree::new()
            .with("ResourceId", &name)
            .with("ResourceType", "auto-scaling-group")
            .with("Key", *key)
            .with("Value", *value)
            .with("PropagateAtLaunch", true)
    });
    let params = group_params(world, pool)
        .with("MinSize", 2)
        .with("MaxSize", 2)
        .with("VPCZoneIdentifier", "subnet-0a1b2c3d")
        .with("LaunchTemplate", Tree::new().with("LaunchTemplateId", template).with("Version", "1"))
        .with("Tags", Tree::list(tags));
    world.aws(Service::AutoScaling, "CreateAutoScalingGroup", params)?;
    Ok(())
}

/// Sets tags of a pool's group.
fn tag_group(world: &World, pool: &Pool, tags: &[(&str, &str)]) -> Result<()> {
    let tags = tags.iter().map(|(key, value)| {
        Tree::new()
            .with("ResourceId", world.group_name(pool))
            .with("ResourceType", "auto-scaling-group")
            .with("Key", *key)
            .with("Value", *value)
            .with("PropagateAtLaunch", true)
    });
    world.aws(Service::AutoScaling, "CreateOrUpdateTags", Tree::new().with("Tags", Tree::list(tags)))?;
    Ok(())
}

/// Tags that another actor edits or removes fail closed: nothing is changed, and everything continues once they are set
/// again as the condition says.
// Rules: T2
#[tokio::test(start_paused = true)]
async fn edited_tags_stop_a_pool_until_they_are_set_again() -> Result<()> {
    for key in [tags::NAMESPACE, tags::CLUSTER, tags::POOL] {
        for edit in [Some("another"), None] {
            let (mut world, pool) = running(Setup::default(), 2).await?;
            let value = world.group(&pool).and_then(|group| group.tags.get(key).cloned()).context("a tag")?;
            if let Some(edit) = edit {
                tag_group(&world, &pool, &[(key, edit)])?;
            } else {
                let tag = Tree::new().with("ResourceId", world.group_name(&pool)).with("Key", key);
                let tag = tag.with("ResourceType", "auto-scaling-group");
                world.aws(Service::AutoScaling, "DeleteTags", Tree::new().with("Tags", Tree::list([tag])))?;
            }
            world
                .run_until("it is told", SOON, |world| {
                    world.says(&pool, GROUP_READY, "False", "GroupNotOwned")
                })
                .await?;
            let message = world.condition(&pool, GROUP_READY).context("GroupReady")?.message;
            ensure!(message.contains(&format!("{key}={value}")), "{message}");
            ensure!(!message.contains("another\""), "{message}");
            let (mark, before) = (world.mark(), world.in_service(&pool));
            world.scale(&pool, 3);
            world.kill_process();
            world.run_for(TimeDelta::minutes(10)).await?;
            ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
            tag_group(&world, &pool, &[(key, &value)])?;
            world.run_until("it grows", SOON, |world| world.is_running(&pool, 3)).await?;
            ensure!(world.in_service(&pool).is_superset(&before), "nothing was replaced");
            world.finish()?;
        }
    }
    Ok(())
}

/// A user copies the owner ID of another pool, which is a tag that every reader of AWS sees, and names its group: the pool
/// changes nothing of it while it exists and when it is deleted, and reads nothing of the other pool in its condition.
// Rules: T2
#[tokio::test(start_paused = true)]
async fn a_copied_owner_id_gives_no_access_to_a_group() -> Result<()> {
    let (mut world, victim) = running(Setup::default(), 3).await?;
    let object = world.pool(&victim).context("the pool")?;
    let (owner, arn) = (object.annotations()[annotations::OWNER_ID].clone(), object.spec.provider_id.clone());
    let (mark, before) = (world.mark(), world.in_service(&victim));
    let thief = world.add_pool("thief", 0);
    world.edit_pool(&thief, |pool| {
        pool.annotations_mut().insert(annotations::OWNER_ID.to_owned(), owner.clone());
        pool.finalizers_mut().push(finalizers::POOL.to_owned());
        pool.spec.provider_id.clone_from(&arn);
    });
    world
        .run_until("it is told", SOON, |world| world.says(&thief, GROUP_READY, "False", "GroupNotOwned"))
        .await?;
    let status = world.pool(&thief).and_then(|pool| pool.status.clone()).context("a status")?;
    let status = format!("{status:?} {:?}", world.events("GroupNotOwned"));
    ensure!(!status.contains(&owner), "{status}");
    world.scale(&thief, 9);
    world.run_for(TimeDelta::minutes(10)).await?;
    for _ in 0..2 {
        let theirs = world.mutations_since(mark).into_iter();
        let theirs: Vec<_> = theirs.filter(|call| call.groups.contains(&victim.group)).collect();
        ensure!(theirs.is_empty(), "{theirs:?}");
        world.delete_machine_pool(&thief);
        world.run_until("it is deleted", SOON, |world| world.pool(&thief).is_none()).await?;
    }
    ensure!(world.in_service(&victim) == before && world.is_running(&victim, 3), "{}", world.describe());
    world.finish()
}

/// Issue scenario: a group of our name that is somebody else's.
// Pains: P30, W14
#[tokio::test(start_paused = true)]
async fn a_group_of_the_same_name_that_is_not_owned_is_left_alone() -> Result<()> {
    let owned = BTreeMap::from([(capasg_api::names::tags::OWNER_ID, "0123456789abcdef")]);
    for tags in [BTreeMap::new(), owned] {
        let mut world = World::new(Setup::default());
        let pool = world.add_pool("workers", 3);
        foreign_group(&world, &pool, &tags)?;
        let mark = world.mark();
        world
            .run_until("it is told", SOON, |world| world.says(&pool, GROUP_READY, "False", "GroupNotOwned"))
            .await?;
        world.run_for(TimeDelta::minutes(30)).await?;
        let name = world.group_name(&pool);
        let touched: Vec<String> = world
            .mutations_since(mark)
            .into_iter()
            .filter(|call| call.groups.contains(&name) && call.action != "CreateLaunchTemplate")
            .map(|call| call.action)
            .collect();
        ensure!(touched.is_empty(), "{touched:?}");
        ensure!(world.asg_machines(&pool).is_empty(), "no ASGMachine for somebody else's instance");
        ensure!(
            world.events("GroupNotOwned").len() == 1,
            "one event, not {:?}",
            world.events("GroupNotOwned")
        );
        // The pool can go without it.
        world.delete_machine_pool(&pool);
        world.run_until("the pool is gone", SOON, |world| world.pool(&pool).is_none()).await?;
        let group = world.group(&pool).context("the foreign group is still there")?;
        ensure!(group.desired == 2 && group.status.is_none(), "untouched");
        world.finish()?;
    }
    Ok(())
}

/// An operator who knows that the group is the pool's gives it the tags that the condition names.
#[tokio::test(start_paused = true)]
async fn a_group_tagged_with_the_owner_id_is_taken_over() -> Result<()> {
    let mut world = World::new(Setup::default());
    let pool = world.add_pool("workers", 2);
    foreign_group(&world, &pool, &BTreeMap::new())?;
    world
        .run_until("it is told", SOON, |world| world.says(&pool, GROUP_READY, "False", "GroupNotOwned"))
        .await?;
    world.run_until("two run", SOON, |world| world.in_service(&pool).len() == 2).await?;
    let before = world.in_service(&pool);
    let mark = world.mark();
    let kept = world.pool(&pool).context("the pool")?;
    let owner = kept.annotations().get(annotations::OWNER_ID).context("an owner id")?.clone();
    tag_group(&world, &pool, &[(tags::OWNER_ID, &owner)])?;
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.says(&pool, GROUP_READY, "False", "GroupNotOwned"), "the owner ID alone does not suffice");
    ensure!(world.machines(&pool).is_empty());
    let Pool { key, .. } = &pool;
    tag_group(
        &world,
        &pool,
        &[(tags::NAMESPACE, &key.namespace), (tags::CLUSTER, "prod"), (tags::POOL, &key.name)],
    )?;
    world.run_until("each has its Machine", SOON, |world| world.machines(&pool).len() == 2).await?;
    // They were started with somebody else's data, so that no kubelet of this model joins.
    world.run_for(TimeDelta::minutes(30)).await?;
    ensure!(world.in_service(&pool) == before, "the instances stay\n{}", world.describe());
    ensure!(ended_since(&world, mark).is_empty(), "nothing was ended");
    let created = world.calls_since(mark, Some("CreateAutoScalingGroup"));
    ensure!(created.is_empty(), "no second group");
    let unprotected = world.instances(&pool).into_iter().filter(|instance| !instance.protected);
    ensure!(unprotected.count() == 0, "what runs is protected from now on");
    world.finish()
}

/// The foreign group goes away: the pool gets its own.
#[tokio::test(start_paused = true)]
async fn a_group_that_is_not_owned_makes_room_when_deleted() -> Result<()> {
    let mut world = World::new(Setup::default());
    let pool = world.add_pool("workers", 2);
    foreign_group(&world, &pool, &BTreeMap::new())?;
    world.run_for(TimeDelta::minutes(3)).await?;
    world.aws(
        Service::AutoScaling,
        "DeleteAutoScalingGroup",
        group_params(&world, &pool).with("ForceDelete", true),
    )?;
    reach(&mut world, &pool, 2).await?;
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn a_launch_template_that_is_not_owned_is_left_alone() -> Result<()> {
    let mut world = World::new(Setup::default());
    let pool = world.add_pool("workers", 3);
    let id = foreign_template(&world, &world.group_name(&pool))?;
    let mark = world.mark();
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    ensure!(
        world.says(&pool, LAUNCH_TEMPLATE_READY, "False", "Rejected"),
        "it is not reported\n{}",
        world.describe()
    );
    world.aws(Service::Ec2, "DeleteLaunchTemplate", Tree::new().with("LaunchTemplateId", id))?;
    world.run_until("running", TimeDelta::hours(2), |world| world.is_running(&pool, 3)).await?;
    world.finish()
}

/// Issue scenario: the group is deleted outside; it is made again after confirmation.
#[tokio::test(start_paused = true)]
async fn a_group_deleted_outside_is_created_again() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        let before = world.in_service(&pool);
        let mark = world.mark();
        let force = group_params(&world, &pool).with("ForceDelete", true);
        world.aws(Service::AutoScaling, "DeleteAutoScalingGroup", force)?;
        world.run_until("they left", SOON, |world| world.in_service(&pool).is_disjoint(&before)).await?;
        reach(&mut world, &pool, 3).await.with_context(|| format!("seed {seed}"))?;
        let created = world.calls_since(mark, Some("CreateAutoScalingGroup"));
        ensure!(created.len() == 1, "created once, not {}", created.len());
        ensure!(world.in_service(&pool).is_disjoint(&before), "three others run");
        let arn = world.group(&pool).context("the group")?.arn;
        let recorded = world.pool(&pool).context("the pool")?.spec.provider_id.clone();
        ensure!(recorded == Some(arn), "spec.providerID is the new group's");
        world.finish()?;
    }
    Ok(())
}

/// Issue scenario: an empty list by error, however often, is no reason to do anything.
#[tokio::test(start_paused = true)]
async fn wrongly_empty_listings_change_nothing() -> Result<()> {
    for seed in 0..5 {
        for empty in [1, 2, 5, 30] {
            let (mut world, pool) = running(Setup::seed(seed), 3).await?;
            let before = world.in_service(&pool);
            let mark = world.mark();
            world.empty_lists(empty);
            world.run_for(TimeDelta::minutes(30)).await?;
            let made: Vec<String> = world.mutations_since(mark).into_iter().map(|call| call.action).collect();
            ensure!(made.is_empty(), "asked for {made:?} after {empty} empty lists (seed {seed})");
            ensure!(world.is_running(&pool, 3), "still running\n{}", world.describe());
            ensure!(world.in_service(&pool) == before, "the same instances");
            ensure!(ended_since(&world, mark).is_empty(), "nothing was ended");
            world.finish()?;
        }
    }
    Ok(())
}

/// Without instances only the group itself can tell: it is read by its name before it is made again.
#[tokio::test(start_paused = true)]
async fn wrongly_empty_listings_of_an_empty_pool_change_nothing() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 0).await?;
        let mark = world.mark();
        world.empty_lists(2);
        world.run_for(TimeDelta::minutes(10)).await?;
        let made: Vec<String> = world.mutations_since(mark).into_iter().map(|call| call.action).collect();
        ensure!(made.is_empty(), "asked for {made:?} (seed {seed})");
        ensure!(world.is_running(&pool, 0), "still running\n{}", world.describe());
    }
    Ok(())
}

/// Empty lists from the first read of a new process on.
#[tokio::test(start_paused = true)]
async fn wrongly_empty_listings_after_a_restart_change_nothing() -> Result<()> {
    for empty in [1, 3, 20] {
        let (mut world, pool) = running(Setup::default(), 3).await?;
        let mark = world.mark();
        world.empty_lists(empty);
        world.kill_process();
        world.run_for(TimeDelta::minutes(30)).await?;
        let made: Vec<String> = world.mutations_since(mark).into_iter().map(|call| call.action).collect();
        ensure!(made.is_empty(), "asked for {made:?} after {empty} empty lists");
        ensure!(world.is_running(&pool, 3), "still running\n{}", world.describe());
    }
    Ok(())
}
