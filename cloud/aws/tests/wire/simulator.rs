//! Round trips through the unchanged SDK and the simulator's HTTP front, which refuses parameters it does not know.

use std::{collections::BTreeSet, net::Ipv4Addr, sync::Arc};

use anyhow::{Context, Result, ensure};
use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use capasg_cloud::{
    Capacity, Cloud, CreateGroup, ErrorClass, Group, GroupChange, GroupTag, HealthStatus, InstanceState,
    Launch, LaunchTemplateData, LifecycleState, Page, PurchaseOption, Selector, TemplateRef, Write, Written,
};
use capasg_cloud_aws::AwsConnector;
use capasg_simulator::{
    Effect, Fault, LogFilter, Settings, Simulator,
    http::{Pace, Server},
};
use chrono::Duration;

use crate::{
    fixtures::{GROUP, HOOK, create_group, every_write, group_tags, hook, map, set, template_data},
    replay::{REGION, refused},
};

const ACCOUNT: &str = "111122223333";

/// A simulated region behind a socket, and the adapter before it. Time moves only when told to.
struct World {
    simulator: Simulator,
    cloud: Arc<dyn Cloud>,
    _server: Server,
}

impl World {
    async fn start(settings: Settings) -> Result<Self> {
        let simulator = Simulator::with_settings(7, settings);
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let server = Server::start_paced(simulator.clone(), address, Pace::Manual).await?;
        let credentials = Credentials::new(format!("AKIA{ACCOUNT}TEST"), "not-a-secret", None, None, "test");
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(server.endpoint())
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .build();
        let cloud = AwsConnector::new(config).connect(REGION);
        Ok(Self { simulator, cloud, _server: server })
    }

    async fn done(&self, write: Write) -> Result<()> {
        let written = self.cloud.write(&write).await.with_context(|| write.api())?;
        ensure!(written == Written::Done, "{written:?}");
        Ok(())
    }

    async fn group(&self) -> Result<Group> {
        let mut page = self.cloud.groups(&[GROUP.to_owned()], None).await?;
        ensure!(page.next_token.is_none() && page.items.len() == 1, "{page:?}");
        page.items.pop().context("one group")
    }

    fn pass(&self, seconds: i64) {
        self.simulator.advance(Duration::seconds(seconds));
    }
}

/// Data that the simulated region accepts.
fn data() -> LaunchTemplateData {
    LaunchTemplateData {
        image_id: "ami-0a1b2c3d".to_owned(),
        iam_instance_profile: Some("nodes".to_owned()),
        security_group_ids: vec!["sg-0b1c2d3e".to_owned()],
        ..template_data("#cloud-config\n")
    }
}

fn create_template(name: &str) -> Write {
    Write::CreateLaunchTemplate {
        name: name.to_owned(),
        data: Box::new(data()),
        description: "v1 content=aa rollout=bb".to_owned(),
        tags: map(&[("capasg-owner", "0f2c")]),
        client_token: format!("{name}-1"),
    }
}

async fn template(world: &World, name: &str) -> Result<String> {
    match world.cloud.write(&create_template(name)).await? {
        Written::Version { id, number: 1 } => Ok(id),
        other => anyhow::bail!("{other:?}"),
    }
}

fn group_of(template_id: &str, version: i64) -> CreateGroup {
    let mut create = create_group();
    create.settings.subnets = set(&["subnet-0a1b2c3d", "subnet-0b1c2d3e"]);
    create.settings.launch.template = TemplateRef { id: template_id.to_owned(), version: Some(version) };
    if let Some(mixed) = &mut create.settings.launch.mixed {
        mixed.instance_types = vec!["m6i.large".to_owned(), "m5.large".to_owned()];
    }
    create
}

fn sorted(states: &Group) -> Vec<LifecycleState> {
    states.instances.iter().map(|instance| instance.lifecycle.clone()).collect()
}

#[tokio::test]
async fn launch_templates_go_round() -> Result<()> {
    let world = World::start(Settings::default()).await?;
    let cloud = &world.cloud;
    assert_eq!(cloud.launch_template(GROUP).await?, None);
    let id = template(&world, GROUP).await?;
    assert_eq!(template(&world, GROUP).await?, id, "the client token makes one template of two calls");

    let add = |number: i64| Write::CreateLaunchTemplateVersion {
        id: id.clone(),
        data: Box::new(LaunchTemplateData { image_id: "ami-0b1c2d3e".to_owned(), ..data() }),
        description: format!("v1 number={number}"),
        client_token: format!("version-{number}"),
    };
    for number in 2..=5 {
        assert_eq!(cloud.write(&add(number)).await?, Written::Version { id: id.clone(), number });
    }
    world.done(Write::SetDefaultLaunchTemplateVersion { id: id.clone(), version: 5 }).await?;
    let versions = BTreeSet::from([1, 2]);
    world.done(Write::DeleteLaunchTemplateVersions { id: id.clone(), versions: versions.clone() }).await?;
    world.done(Write::DeleteLaunchTemplateVersions { id: id.clone(), versions }).await?;
    let default = Write::DeleteLaunchTemplateVersions { id: id.clone(), versions: BTreeSet::from([3, 5]) };
    let error = refused(cloud.write(&default).await)?;
    assert!(error.message.starts_with("versions were not deleted: 5 ("), "{error}");

    let found = cloud.launch_template(GROUP).await?.context("a template")?;
    assert_eq!((found.id.as_str(), found.latest_version, found.default_version), (id.as_str(), 5, 5));
    assert_eq!((found.name.as_str(), found.tags), (GROUP, map(&[("capasg-owner", "0f2c")])));
    let mut page = cloud.launch_template_versions(&id, None).await?;
    page.items.sort_by_key(|version| version.number);
    let read: Vec<_> = page
        .items
        .iter()
        .map(|version| (version.number, version.description.as_deref(), version.image_id.as_deref()))
        .collect();
    let image = Some("ami-0b1c2d3e");
    assert_eq!(read, [(4, Some("v1 number=4"), image), (5, Some("v1 number=5"), image)]);
    assert_eq!(page.items[0].created_at, world.simulator.now());

    world.done(Write::DeleteLaunchTemplate { id: id.clone() }).await?;
    assert_eq!(cloud.launch_template(GROUP).await?, None);
    let error = refused(cloud.launch_template_versions(&id, None).await)?;
    assert_eq!(error.class, ErrorClass::NotFound);
    Ok(())
}

/// Every write and read of a pool's life, in order; what was sent is what is read back.
#[tokio::test]
async fn a_pool_lives_and_ends() -> Result<()> {
    let world = World::start(Settings::default()).await?;
    let cloud = &world.cloud;
    assert_eq!(cloud.account().await?, ACCOUNT);
    let id = template(&world, GROUP).await?;
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
    let activities = cloud.scaling_activities(GROUP).await?;
    assert_eq!(activities.len(), 3);
    assert!(activities.iter().all(|activity| activity.status_code == "Successful"), "{activities:?}");

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
    end_one(&world, &ids[0]).await?;
    delete_everything(&world, &id).await?;

    let counts = world.simulator.counts(&LogFilter::region(REGION));
    assert_eq!(counts.errors, 0, "{counts:?}");
    for write in every_write() {
        let launch_template_versions =
            ["CreateLaunchTemplateVersion", "ModifyLaunchTemplate", "DeleteLaunchTemplateVersions"];
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
    let change = GroupChange {
        launch: Some(plain.clone()),
        subnets: Some(set(&["subnet-0c1d2e3f"])),
        health_check_types: Some(set(&["EC2"])),
        health_check_grace_period: Some(30),
        default_cooldown: Some(10),
        default_instance_warmup: Some(-1),
        protect_new_instances: Some(false),
        min: Some(1),
        max: Some(8),
        desired: Some(4),
    };
    world.done(Write::UpdateGroup { group: group.clone(), change: Box::new(change) }).await?;
    let after = world.group().await?;
    assert_eq!(after.capacity, Capacity { min: 1, max: 8, desired: 4 });
    let settings = &after.settings;
    assert_eq!((&settings.launch, settings.default_instance_warmup), (&plain, None));
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
    assert!(gone.iter().all(|machine| machine.state == InstanceState::Gone), "{gone:?}");
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

#[tokio::test]
async fn pages_are_followed_by_their_tokens() -> Result<()> {
    let world = World::start(Settings { page_limit: Some(2), ..Settings::default() }).await?;
    let id = template(&world, GROUP).await?;
    let names: Vec<String> = (0..5).map(|number| format!("group-{number}")).collect();
    for name in &names {
        let create = CreateGroup { name: name.clone(), ..group_of(&id, 1) };
        world.done(Write::CreateGroup(Box::new(create))).await?;
    }
    world.pass(120);
    let (mut groups, mut token, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = world.cloud.groups(&names, token).await?;
        groups.extend(page.items);
        pages += 1;
        token = page.next_token;
        if token.is_none() {
            break;
        }
    }
    groups.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(groups.iter().map(|group| group.name.clone()).collect::<Vec<_>>(), names);
    assert_eq!(pages, 3);

    let ids: Vec<String> =
        groups.iter().flat_map(|group| group.instances.iter().map(|instance| instance.id.clone())).collect();
    let (mut machines, mut token) = (BTreeSet::new(), None);
    loop {
        let page = world.cloud.instances(&ids, token).await?;
        machines.extend(page.items.into_iter().map(|machine| machine.id));
        token = page.next_token;
        if token.is_none() {
            break;
        }
    }
    assert_eq!(machines, ids.into_iter().collect());
    Ok(())
}

#[tokio::test]
async fn specs_are_looked_up() -> Result<()> {
    let world = World::start(Settings::default()).await?;
    let cloud = &world.cloud;
    let tags = Selector::Tags(map(&[("kubernetes.io/role/internal-elb", "1")]));
    let subnets = cloud.subnets(&tags, None).await?.items;
    assert_eq!(subnets.len(), 3);
    for any in ["", "*"] {
        let any_value = Selector::Tags(map(&[("kubernetes.io/role/internal-elb", any)]));
        assert_eq!(cloud.subnets(&any_value, None).await?.items, subnets);
    }
    assert_eq!((subnets[0].zone.as_str(), subnets[0].vpc.as_str()), ("eu-central-1a", "vpc-0a1b2c3d"));
    let wrong = Selector::Tags(map(&[("kubernetes.io/role/internal-elb", "2")]));
    assert!(cloud.subnets(&wrong, None).await?.items.is_empty());
    let ids = Selector::Ids(set(&["subnet-0b1c2d3e", "subnet-ffffffff"]));
    let by_id = cloud.subnets(&ids, None).await?.items;
    assert_eq!(by_id.iter().map(|subnet| subnet.id.as_str()).collect::<Vec<_>>(), ["subnet-0b1c2d3e"]);

    for selector in [
        Selector::Name("nodes".to_owned()),
        Selector::Ids(set(&["sg-0b1c2d3e"])),
        Selector::Tags(map(&[("Name", "nodes")])),
    ] {
        let groups = cloud.security_groups(&selector, None).await?.items;
        let [group] = groups.as_slice() else { anyhow::bail!("{groups:?}") };
        assert_eq!(
            (group.id.as_str(), group.name.as_str(), group.vpc.as_str()),
            ("sg-0b1c2d3e", "nodes", "vpc-0a1b2c3d")
        );
    }

    let image = cloud.image("ami-0a1b2c3d").await?.context("an image")?;
    assert_eq!(image.root_device_name.as_deref(), Some("/dev/xvda"));
    assert_eq!(image.architecture.as_deref(), Some("x86_64"));
    assert_eq!(cloud.image("ami-0ffffffffffffffff").await?, None);

    let scope = capasg_simulator::Scope::account(ACCOUNT, REGION);
    world.simulator.put_parameter(&scope, "/images/node", "ami-0b1c2d3e");
    assert_eq!(cloud.parameter("/images/node").await?.as_deref(), Some("ami-0b1c2d3e"));
    assert_eq!(cloud.parameter("/images/none").await?, None);
    Ok(())
}

#[tokio::test]
async fn faults_have_their_classes() -> Result<()> {
    let world = World::start(Settings::default()).await?;
    let id = template(&world, GROUP).await?;
    world.done(Write::CreateGroup(Box::new(group_of(&id, 1)))).await?;
    let set_desired = |desired| Write::SetDesiredCapacity { group: GROUP.to_owned(), desired };
    let strike = |fault| world.simulator.add_fault(fault);

    strike(Fault::error("SetDesiredCapacity", 400, "Throttling", "Rate exceeded"));
    let error = refused(world.cloud.write(&set_desired(4)).await)?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Throttled, false));

    strike(Fault::error("DescribeSubnets", 503, "RequestLimitExceeded", "Request limit exceeded."));
    let error = refused(world.cloud.subnets(&Selector::Ids(set(&["subnet-1"])), None).await)?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Throttled, false));

    strike(Fault::error("SetDesiredCapacity", 500, "InternalFailure", "We encountered an internal error"));
    let error = refused(world.cloud.write(&set_desired(4)).await)?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Transient, true));
    assert_eq!(world.group().await?.capacity.desired, 3);

    strike(Fault::new("SetDesiredCapacity", Effect::LoseReply));
    let error = refused(world.cloud.write(&set_desired(5)).await)?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Transient, true), "{error}");
    assert_eq!(world.group().await?.capacity.desired, 5, "the call had its effect");
    let calls = world.simulator.counts(&LogFilter::region(REGION).action("SetDesiredCapacity")).calls;
    assert_eq!(calls, 3, "nothing is repeated");
    Ok(())
}

#[tokio::test]
async fn what_the_cloud_refuses_has_its_class() -> Result<()> {
    let world = World::start(Settings::default()).await?;
    let id = template(&world, GROUP).await?;
    let class = async |write: Write| anyhow::Ok(refused(world.cloud.write(&write).await)?.class);

    let mut create = group_of(&id, 1);
    create.settings.subnets = set(&["subnet-ffffffff"]);
    assert_eq!(class(Write::CreateGroup(Box::new(create))).await?, ErrorClass::Invalid);
    let group = GROUP.to_owned();
    let absent = Write::SetDesiredCapacity { group: group.clone(), desired: 1 };
    assert_eq!(class(absent).await?, ErrorClass::NotFound);

    world.done(Write::CreateGroup(Box::new(group_of(&id, 1)))).await?;
    assert_eq!(class(Write::CreateGroup(Box::new(group_of(&id, 1)))).await?, ErrorClass::Conflict);
    let too_many = Write::SetDesiredCapacity { group: group.clone(), desired: 99 };
    assert_eq!(class(too_many).await?, ErrorClass::Invalid);
    let unknown = Write::TerminateInstances {
        group: group.clone(),
        instances: set(&["i-0ffffffffffffffff"]),
        decrement: true,
    };
    assert_eq!(class(unknown).await?, ErrorClass::NotFound);
    let nothing_held = Write::CompleteLifecycleAction {
        group: group.clone(),
        hook: HOOK.to_owned(),
        instance: "i-0ffffffffffffffff".to_owned(),
    };
    assert_eq!(class(nothing_held).await?, ErrorClass::NotFound);
    world.pass(60);
    let delete = Write::DeleteGroup { group: group.clone(), force: false };
    assert_eq!(class(delete).await?, ErrorClass::Conflict);
    world.done(Write::DeleteGroup { group: group.clone(), force: true }).await?;
    assert_eq!(class(Write::SetDesiredCapacity { group, desired: 1 }).await?, ErrorClass::Conflict);
    let again = Write::CreateLaunchTemplate {
        name: GROUP.to_owned(),
        data: Box::new(data()),
        description: String::new(),
        tags: map(&[]),
        client_token: "another".to_owned(),
    };
    assert_eq!(class(again).await?, ErrorClass::Conflict);
    Ok(())
}
