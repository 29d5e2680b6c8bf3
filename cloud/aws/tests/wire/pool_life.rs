//! A pool's life through the unchanged SDK: every write and read, and what was sent is what is read back.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use capasg_cloud::{
    ActivityStatus, Capacity, Group, GroupChange, GroupTag, HealthStatus, InstanceState, Launch,
    LifecycleState, MaintenancePolicy, Page, PurchaseOption, TemplateRef, Write,
};
use capasg_fake_aws::{LogFilter, Settings};

use crate::{
    fixtures::{GROUP, HOOK, every_write, group_tags, hook, set, start_refresh},
    replay::REGION,
    world::{ACCOUNT, World, data, group_of, template},
};

fn sorted(states: &Group) -> Vec<LifecycleState> {
    states.instances.iter().map(|instance| instance.lifecycle.clone()).collect()
}

#[tokio::test]
async fn a_pool_lives_and_ends() -> Result<()> {
    let world = World::start(Settings::default()).await?;
    let cloud = &world.cloud;
    assert_eq!(cloud.account().await?, ACCOUNT);
    let id = template(&world, GROUP).await?;
    // What a version holds is read back as it was sent, its user data apart.
    let versions = cloud.launch_template_versions(&id, None).await?.items;
    assert_eq!(versions[0].content.as_deref(), Some(&data().without_user_data()));
    let create = group_of(&id, 1);
    world.done(Write::CreateGroup(Box::new(create.clone()))).await?;

    let group = world.group().await?;
    assert_eq!((&group.name, group.account()), (&create.name, Some(ACCOUNT)));
    assert_eq!((group.capacity, &group.settings), (create.capacity, &create.settings));
    assert_eq!((&group.tags, group.is_deleting()), (&create.tags, false));
    assert_eq!(group.zones, set(&["eu-central-1a", "eu-central-1b"]));
    assert_eq!(cloud.lifecycle_hooks(GROUP).await?, [hook()]);

    world.pass(120);
    let group = world.group().await?;
    assert_eq!(sorted(&group), vec![LifecycleState::InService; 3]);
    let ids: Vec<String> = group.instances.iter().map(|instance| instance.id.clone()).collect();
    for instance in &group.instances {
        assert_eq!((&instance.template, instance.health), (&Some((id.clone(), 1)), HealthStatus::Healthy));
        assert!(instance.protected && group.zones.contains(&instance.zone));
    }
    let activities = cloud.scaling_activities(GROUP, None).await?.items;
    assert_eq!(activities.len(), 3);
    assert!(
        activities.iter().all(|activity| activity.status == ActivityStatus::Successful),
        "{activities:?}"
    );

    let mut asked = ids.clone();
    asked.push("i-0ffffffffffffffff".to_owned());
    let facts = cloud.instances(&asked, None).await?.items;
    assert_eq!(facts.len(), 3, "an unknown id is absent");
    for machine in &facts {
        assert_eq!(machine.state, InstanceState::Running);
        assert!(
            machine.private_ip.is_some() && machine.private_dns.is_some() && machine.launched_at.is_some()
        );
        assert_eq!(machine.tags.get("kubernetes.io/cluster/demo").map(String::as_str), Some("owned"));
    }
    assert!(facts.iter().any(|machine| machine.purchase == PurchaseOption::Spot));

    change_settings(&world, &id).await?;
    refresh_twice(&world).await?;
    end_one(&world, &ids[0]).await?;
    delete_everything(&world, &id).await?;

    let counts = world.simulator.counts(&LogFilter::region(REGION));
    assert_eq!(counts.errors, 0, "{counts:?}");
    for write in every_write() {
        let launch_template_versions = ["CreateLaunchTemplateVersion", "DeleteLaunchTemplateVersions"];
        let api = write.api();
        assert!(counts.by_action.contains_key(api) || launch_template_versions.contains(&api), "{api}");
    }
    Ok(())
}

async fn change_settings(world: &World, template_id: &str) -> Result<()> {
    let group = GROUP.to_owned();
    let before = world.group().await?;
    let plain =
        Launch { template: TemplateRef { id: template_id.to_owned(), version: Some(1) }, mixed: None };
    let policy = MaintenancePolicy { min_healthy_percentage: 90, max_healthy_percentage: 120 };
    let change = GroupChange {
        launch: Some(plain.clone()),
        subnets: Some(set(&["subnet-0c1d2e3f"])),
        health_check_types: Some(set(&["EC2"])),
        health_check_grace_period: Some(30),
        default_cooldown: Some(10),
        default_instance_warmup: Some(-1),
        protect_new_instances: Some(false),
        capacity_rebalance: Some(true),
        maintenance_policy: Some(policy),
        retains_abandoned: Some(true),
        min: Some(1),
        max: Some(8),
        desired: Some(4),
    };
    world.done(Write::UpdateGroup { group: group.clone(), change: Box::new(change) }).await?;
    let after = world.group().await?;
    assert_eq!(after.capacity, Capacity { min: 1, max: 8, desired: 4 });
    let settings = &after.settings;
    assert_eq!((&settings.launch, settings.default_instance_warmup), (&plain, None));
    assert_eq!((settings.capacity_rebalance, settings.maintenance_policy), (true, Some(policy)));
    assert!(settings.retains_abandoned);
    assert_eq!(
        (&settings.subnets, &settings.health_check_types),
        (&set(&["subnet-0c1d2e3f"]), &set(&["EC2"]))
    );
    assert_eq!((settings.health_check_grace_period, settings.default_cooldown), (30, 10));
    assert!(!settings.protect_new_instances);

    let back = GroupChange { launch: Some(before.settings.launch.clone()), ..GroupChange::default() };
    world.done(Write::UpdateGroup { group: group.clone(), change: Box::new(back) }).await?;
    assert_eq!(world.group().await?.settings.launch, before.settings.launch);

    let processes = set(&["AZRebalance", "ReplaceUnhealthy"]);
    let suspend = Write::SuspendProcesses { group: group.clone(), processes: processes.clone() };
    world.done(suspend).await?;
    assert_eq!(world.group().await?.suspended_processes.into_keys().collect::<BTreeSet<_>>(), processes);
    world.done(Write::ResumeProcesses { group: group.clone(), processes }).await?;
    assert!(world.group().await?.suspended_processes.is_empty());

    let mut tags = group_tags();
    tags.insert("more".to_owned(), GroupTag { value: String::new(), propagate: true });
    world.done(Write::TagGroup { group: group.clone(), tags: tags.clone() }).await?;
    assert_eq!(world.group().await?.tags, tags);
    world.done(Write::UntagGroup { group: group.clone(), keys: set(&["more"]) }).await?;
    assert_eq!(world.group().await?.tags, group_tags());

    let longer = capasg_cloud::LifecycleHook { heartbeat_timeout: 900, ..hook() };
    world.done(Write::PutLifecycleHook { group: group.clone(), hook: longer.clone() }).await?;
    assert_eq!(world.cloud.lifecycle_hooks(GROUP).await?, [longer]);
    world.done(Write::SetDesiredCapacity { group, desired: 3 }).await
}

/// A refresh that is rolled back before it begins, and one that is cancelled.
async fn refresh_twice(world: &World) -> Result<()> {
    let group = GROUP.to_owned();
    let mut start = start_refresh();
    start.desired = Some(world.group().await?.settings.launch);
    for end in [
        Write::RollbackInstanceRefresh { group: group.clone() },
        Write::CancelInstanceRefresh { group: group.clone() },
    ] {
        world.done(Write::StartInstanceRefresh(Box::new(start.clone()))).await?;
        world.done(end).await?;
        world.pass(60);
    }
    let found = world.cloud.instance_refreshes(GROUP, None).await?.items;
    let statuses: Vec<_> = found.iter().map(|refresh| refresh.status.as_str()).collect();
    assert_eq!(statuses, ["Cancelled", "RollbackSuccessful"], "newest first");
    Ok(())
}

async fn end_one(world: &World, victim: &str) -> Result<()> {
    let (group, instance, hook) = (GROUP.to_owned(), victim.to_owned(), HOOK.to_owned());
    let instances = set(&[victim]);
    let unprotect =
        Write::SetInstanceProtection { group: group.clone(), instances: instances.clone(), protected: false };
    world.done(unprotect).await?;
    let end = Write::TerminateInstances { group: group.clone(), instances, decrement: true };
    world.done(end).await?;
    world.pass(10);
    let seen = world.group().await?;
    assert_eq!(seen.capacity.desired, 2);
    let member = seen.instances.iter().find(|member| member.id == victim).context("still listed")?;
    assert_eq!((&member.lifecycle, member.protected), (&LifecycleState::TerminatingWait, false));

    let heartbeat = Write::RecordLifecycleActionHeartbeat {
        group: group.clone(),
        hook: hook.clone(),
        instance: instance.clone(),
    };
    world.done(heartbeat).await?;
    let complete = Write::CompleteLifecycleAction { group, hook, instance };
    world.done(complete).await?;
    world.pass(120);
    assert_eq!(world.group().await?.instances.len(), 2);
    let gone = world.cloud.instances(&[victim.to_owned()], None).await?.items;
    assert!(gone.iter().all(|machine| machine.state == InstanceState::Terminated), "{gone:?}");
    Ok(())
}

async fn delete_everything(world: &World, template_id: &str) -> Result<()> {
    let group = GROUP.to_owned();
    world.done(Write::DeleteLifecycleHook { group: group.clone(), hook: HOOK.to_owned() }).await?;
    assert!(world.cloud.lifecycle_hooks(GROUP).await?.is_empty());
    world.done(Write::DeleteGroup { group, force: true }).await?;
    assert!(world.group().await?.is_deleting());
    world.pass(300);
    assert_eq!(world.cloud.groups(&[GROUP.to_owned()], None).await?, Page::last(Vec::new()));
    world.done(Write::DeleteLaunchTemplate { id: template_id.to_owned() }).await?;
    assert!(world.simulator.leftovers(Some(REGION)).is_empty());
    Ok(())
}
