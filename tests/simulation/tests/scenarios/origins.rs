//! Instances whose launch template is gone or is not that of the pool: they are kept, and replaced by the next change.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    names::{annotations, tags},
    pool::{AdoptionPolicy, DeletionPolicy, InstanceTypeEntry, RolloutType},
};
use capasg_fake_aws::{Service, Tree};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt as _;

use crate::{group_params, reach, running, running_with};

const OLD: &str = "ami-0a1b2c3d";
const NEW: &str = "ami-0b1c2d3e";
/// The launch template is read again once an hour.
const SEEN_BY_THEN: TimeDelta = TimeDelta::minutes(100);
const REPLACED_BY_THEN: TimeDelta = TimeDelta::minutes(60);

/// Somebody deletes the launch template of a pool; its ID.
fn delete_template(world: &World, pool: &Pool) -> Result<String> {
    let template = world.group(pool).context("the group")?.template.0;
    let params = Tree::new().with("LaunchTemplateId", template.as_str());
    world.aws(Service::Ec2, "DeleteLaunchTemplate", params)?;
    Ok(template)
}

/// Waits until the group launches from another launch template.
async fn created_again(world: &mut World, pool: &Pool, deleted: &str) -> Result<()> {
    let is_other = |world: &World| {
        world.has_template(pool) && world.group(pool).is_some_and(|own| own.template.0 != deleted)
    };
    world.run_until("the launch template is created again", SEEN_BY_THEN, is_other).await
}

fn use_image(world: &World, pool: &Pool, image: &str) {
    world.edit_pool(pool, |pool| pool.spec.machine.image.id = Some(image.to_owned()));
}

/// Waits until none of these instances is in the group, and all have the new image.
async fn replaced(world: &mut World, pool: &Pool, before: &BTreeSet<String>, replicas: usize) -> Result<()> {
    let are_replaced = |world: &World| {
        let now = world.instances(pool);
        world.is_running(pool, replicas)
            && now.iter().all(|own| !before.contains(&own.id) && own.image == NEW)
            && world.says(pool, "UpToDate", "True", "UpToDate")
    };
    world.run_until("all are replaced", REPLACED_BY_THEN, are_replaced).await
}

fn up_to_date(world: &World, pool: &Pool) -> Option<i32> {
    Some(world.pool(pool)?.status.as_ref()?.up_to_date_replicas)
}

/// Somebody launches an instance and attaches it to the group, which gets room for it.
async fn attached(world: &mut World, pool: &Pool) -> Result<String> {
    attached_of(world, pool, None).await
}

/// The same for an instance of this type.
async fn attached_of(world: &mut World, pool: &Pool, instance_type: Option<&str>) -> Result<String> {
    let serving = world.in_service(pool);
    let other = serving.first().context("an instance")?;
    let id = world.simulator.launch_like(&world.scope(), other).context("another instance")?;
    if let Some(kind) = instance_type {
        world.simulator.set_instance_type(&world.scope(), &id, kind);
    }
    let replicas = i32::try_from(serving.len())? + 1;
    let larger = group_params(world, pool).with("MaxSize", replicas);
    world.aws(Service::AutoScaling, "UpdateAutoScalingGroup", larger)?;
    let attach = group_params(world, pool).with("InstanceIds", vec![id.as_str()]);
    world.aws(Service::AutoScaling, "AttachInstances", attach)?;
    world.scale(pool, replicas);
    let has_machine =
        |world: &World| world.in_service(pool).contains(&id) && world.machine_of(pool, &id).is_ok();
    world.run_until("it has a Machine", TimeDelta::minutes(10), has_machine).await?;
    Ok(id)
}

/// Nobody removed the type of an attached instance from the spec: it stays until the next change, as another would.
#[tokio::test(start_paused = true)]
async fn an_attached_instance_of_another_type_stays_until_the_next_change() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let id = attached_of(&mut world, &pool, Some("c5.large")).await?;
    world.run_for(TimeDelta::hours(2)).await?;
    ensure!(world.in_service(&pool).contains(&id), "it stays\n{}", world.describe());
    ensure!(world.says(&pool, "UpToDate", "Unknown", "OtherLaunchTemplate"), "{}", world.describe());
    let before = world.in_service(&pool);
    use_image(&world, &pool, NEW);
    replaced(&mut world, &pool, &before, 3).await?;
    world.finish()
}

/// A change of the types alone is such a change as well.
#[tokio::test(start_paused = true)]
async fn an_attached_instance_of_another_type_is_replaced_once_the_types_change() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let before = world.in_service(&pool);
    let id = attached_of(&mut world, &pool, Some("c5.large")).await?;
    world.run_for(TimeDelta::minutes(30)).await?;
    world.edit_pool(&pool, |pool| pool.spec.instance_types.push(InstanceTypeEntry::new("m6i.large")));
    let is_replaced = |world: &World| {
        world.is_running(&pool, 3)
            && !world.in_service(&pool).contains(&id)
            && world.says(&pool, "UpToDate", "True", "UpToDate")
    };
    world.run_until("it is replaced", REPLACED_BY_THEN, is_replaced).await?;
    ensure!(world.in_service(&pool).is_superset(&before), "the others stay\n{}", world.describe());
    world.finish()
}

/// A pool with `deletionPolicy: Orphan` is deleted, and created again under its name, and adopts what was kept: its own launch
/// template is no other one.
#[tokio::test(start_paused = true)]
async fn a_kept_group_that_is_adopted_again_is_replaced_no_more_than_once() -> Result<()> {
    // The rules do not know that a launch template without tags is changed by nobody.
    let setup = Setup { invariants: false, ..Setup::default() };
    let (mut world, pool) =
        running_with(setup, 2, |spec| spec.deletion_policy = Some(DeletionPolicy::Orphan)).await?;
    let name = world.group_name(&pool);
    let template = world.group(&pool).context("the group")?.template.0;
    world.delete_machine_pool(&pool);
    world.run_until("it is let go", TimeDelta::minutes(10), |world| world.is_let_go(&pool)).await?;
    let tag = |key: &str| {
        Tree::new().with("ResourceId", &name).with("ResourceType", "auto-scaling-group").with("Key", key)
    };
    let of_pool = tags::IDENTITY.iter().map(|key| tag(key));
    let params = Tree::new().with("Tags", Tree::list(of_pool));
    world.aws(Service::AutoScaling, "DeleteTags", params)?;
    let adoptable = tag(tags::ADOPTABLE_BY).with("Value", "default/*").with("PropagateAtLaunch", false);
    let params = Tree::new().with("Tags", Tree::list([adoptable]));
    world.aws(Service::AutoScaling, "CreateOrUpdateTags", params)?;
    world.guard("adoption", serde_json::json!({"adoption": "Allowed"}));
    let pool = world.add_pool_with("workers", 2, |spec| {
        spec.adoption_policy = Some(AdoptionPolicy::Adopt);
        spec.group.get_or_insert_default().name = Some(name.clone());
    });
    let is_adopted =
        |world: &World| world.group(&pool).is_some_and(|group| group.tags.contains_key(tags::OWNER_ID));
    world.run_until("the group is adopted", TimeDelta::minutes(5), is_adopted).await?;
    // The condition says which tags the launch template needs.
    let object = world.pool(&pool).context("the pool")?;
    let owner = object.annotations().get(annotations::OWNER_ID).context("an owner ID")?.clone();
    let tagged = Tree::new().with("Key", tags::OWNER_ID).with("Value", owner);
    let params = Tree::new().with("Resources", vec![template.as_str()]).with("Tags", Tree::list([tagged]));
    world.aws(Service::Ec2, "CreateTags", params)?;
    world.run_for(TimeDelta::hours(3)).await?;
    ensure!(world.says(&pool, "UpToDate", "True", "UpToDate"), "{}", world.describe());
    let mark = world.mark();
    world.run_for(TimeDelta::hours(2)).await?;
    ensure!(crate::ended_since(&world, mark).is_empty(), "replaced without end\n{}", world.describe());
    // What the pool launched itself is not adopted, whatever becomes of its launch template.
    let deleted = delete_template(&world, &pool)?;
    created_again(&mut world, &pool, &deleted).await?;
    world.run_for(TimeDelta::hours(2)).await?;
    ensure!(crate::ended_since(&world, mark).is_empty(), "replaced for it\n{}", world.describe());
    world.finish()
}

/// The launch template is created again without a rollout; the next change replaces what the deleted one launched.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn a_change_after_the_loss_of_the_template_replaces_every_instance() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let before = world.in_service(&pool);
    let deleted = delete_template(&world, &pool)?;
    created_again(&mut world, &pool, &deleted).await?;
    world.run_for(TimeDelta::minutes(30)).await?;
    world.kill_process();
    world.run_for(TimeDelta::minutes(90)).await?;
    ensure!(world.in_service(&pool) == before, "nothing is replaced\n{}", world.describe());
    ensure!(up_to_date(&world, &pool) == Some(3), "what was recorded counts\n{}", world.describe());
    use_image(&world, &pool, NEW);
    replaced(&mut world, &pool, &before, 3).await?;
    world.finish()
}

/// Nobody has noticed the loss yet when the change comes.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn a_change_before_the_loss_is_noticed_replaces_every_instance() -> Result<()> {
    for restart in [false, true] {
        let (mut world, pool) = running(Setup::default(), 3).await?;
        let before = world.in_service(&pool);
        let deleted = delete_template(&world, &pool)?;
        use_image(&world, &pool, NEW);
        if restart {
            world.kill_process();
        }
        created_again(&mut world, &pool, &deleted).await?;
        replaced(&mut world, &pool, &before, 3).await?;
        world.finish()?;
    }
    Ok(())
}

/// The parameter names another image meanwhile: that is no change of the spec.
// Pains: W27
#[tokio::test(start_paused = true)]
async fn a_template_that_is_created_again_keeps_the_image() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, |spec| {
        spec.machine.image.id = None;
        spec.machine.image.ssm_parameter = Some("/images/node/v{version}".to_owned());
    })
    .await?;
    let before = world.in_service(&pool);
    world.simulator.put_parameter(&world.scope(), "/images/node/v1.36.3", NEW);
    let deleted = delete_template(&world, &pool)?;
    world.kill_process();
    created_again(&mut world, &pool, &deleted).await?;
    world.run_for(TimeDelta::hours(2)).await?;
    ensure!(world.in_service(&pool) == before, "nothing is replaced\n{}", world.describe());
    world.scale(&pool, 3);
    reach(&mut world, &pool, 3).await?;
    let images: BTreeSet<String> = world.instances(&pool).into_iter().map(|own| own.image).collect();
    ensure!(images == [OLD.to_owned()].into(), "{images:?}\n{}", world.describe());
    world.finish()
}

/// When somebody deletes a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deleted {
    Never,
    /// While the pool is paused, so that no version of its instance is read.
    BeforeItIsRead,
    AfterThat,
}

/// The content of a version that another actor created shows neither user data nor the version of Kubernetes: a change of
/// those replaces its instances as well, and so it is where the version does not exist any more.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn an_instance_of_a_version_of_others_is_replaced_by_the_next_change() -> Result<()> {
    for deleted in [Deleted::Never, Deleted::BeforeItIsRead, Deleted::AfterThat] {
        let (mut world, pool) = running(Setup::default(), 2).await?;
        world.edit_cluster(|cluster| cluster.spec.paused = Some(true));
        let (template, pinned) = world.group(&pool).context("the group")?.template;
        let data = Tree::new().with("UserData", "IyEvYmluL3NoCg==");
        let version = Tree::new()
            .with("LaunchTemplateId", template.as_str())
            .with("SourceVersion", pinned)
            .with("LaunchTemplateData", data);
        let made = world.aws(Service::Ec2, "CreateLaunchTemplateVersion", version)?;
        let made = made.at("LaunchTemplateVersion.VersionNumber").and_then(Tree::text).context("a number")?;
        let from = Tree::new().with("LaunchTemplateId", template.as_str()).with("Version", made);
        let larger = group_params(&world, &pool)
            .with("MaxSize", 3)
            .with("DesiredCapacity", 3)
            .with("LaunchTemplate", from);
        world.aws(Service::AutoScaling, "UpdateAutoScalingGroup", larger)?;
        world.scale(&pool, 3);
        let grows = |world: &World| world.in_service(&pool).len() == 3;
        world.run_until("it launches from the other version", TimeDelta::minutes(10), grows).await?;
        let delete = |world: &World| {
            let version =
                Tree::new().with("LaunchTemplateId", template.as_str()).with("Versions", vec![made]);
            world.aws(Service::Ec2, "DeleteLaunchTemplateVersions", version)
        };
        if deleted == Deleted::BeforeItIsRead {
            delete(&world)?;
        }
        world.edit_cluster(|cluster| cluster.spec.paused = None);
        reach(&mut world, &pool, 3).await?;
        world.run_for(TimeDelta::minutes(10)).await?;
        if deleted == Deleted::AfterThat {
            delete(&world)?;
            world.kill_process();
            world.run_for(TimeDelta::minutes(70)).await?;
        }
        let before = world.in_service(&pool);
        ensure!(before.len() == 3, "{deleted:?}: nothing is replaced at once\n{}", world.describe());
        world.edit_machine_pool(&pool, |own| {
            own.spec.template.spec.version = Some("v1.37.0".to_owned());
        });
        let are_replaced = |world: &World| {
            world.is_running(&pool, 3)
                && world.in_service(&pool).is_disjoint(&before)
                && world.says(&pool, "UpToDate", "True", "UpToDate")
        };
        let what = format!("{deleted:?}: all are replaced");
        world.run_until(&what, REPLACED_BY_THEN, are_replaced).await?;
        world.finish()?;
    }
    Ok(())
}

/// What it was launched from is unknown: it is shown as such, kept, and replaced by the next change.
// Rules: H3
#[tokio::test(start_paused = true)]
async fn an_attached_instance_is_reported_and_replaced_by_the_next_change() -> Result<()> {
    for type_ in [RolloutType::RollingUpdate, RolloutType::InstanceRefresh] {
        let (mut world, pool) = running_with(Setup::default(), 2, |spec| {
            spec.rollout.get_or_insert_default().strategy.get_or_insert_default().type_ = Some(type_);
        })
        .await?;
        let id = attached(&mut world, &pool).await?;
        let is_shown = |world: &World| world.says(&pool, "UpToDate", "Unknown", "OtherLaunchTemplate");
        world.run_until("it is reported", TimeDelta::minutes(10), is_shown).await?;
        let before = world.in_service(&pool);
        world.kill_process();
        world.run_for(TimeDelta::hours(3)).await?;
        ensure!(world.in_service(&pool) == before && is_shown(&world), "{}", world.describe());
        ensure!(up_to_date(&world, &pool) == Some(2), "{}", world.describe());
        let own = world.asg_machines(&pool).into_values().find(|own| own.spec.instance_id == id);
        let own = own.and_then(|own| own.status.clone()).context("its ASGMachine")?;
        let told = own.conditions.iter().find(|one| one.type_ == "UpToDate").context("UpToDate")?;
        ensure!(told.status == "Unknown" && told.reason == "OtherLaunchTemplate", "{told:?}");
        use_image(&world, &pool, NEW);
        replaced(&mut world, &pool, &before, 3).await?;
        world.finish()?;
    }
    Ok(())
}
