//! Launch templates, pages and lookups through the unchanged SDK and the simulator.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use capasg_cloud::{
    CreateGroup, ErrorClass, Gpu, LaunchTemplateData, PurchaseOption, Selector, Write, Written,
};
use capasg_fake_aws::{Scope, Settings, ec2::SecurityGroup as FakeGroup};

use crate::{
    fixtures::{GROUP, map, set},
    replay::{REGION, refused},
    world::{ACCOUNT, World, data, group_of, template},
};

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
        let written = cloud.write(&add(number)).await?.written;
        let Written::Version { id: of, number: made, created_at } = written else { bail!("{written:?}") };
        assert_eq!((of, made), (id.clone(), number));
        let listed = cloud.launch_template_versions(&id, None).await?.items;
        let listed = listed.iter().find(|version| version.number == number).context("the version")?;
        assert_eq!(created_at, listed.created_at, "by AWS's clock");
    }
    let versions = BTreeSet::from([2, 3]);
    world.done(Write::DeleteLaunchTemplateVersions { id: id.clone(), versions: versions.clone() }).await?;
    world.done(Write::DeleteLaunchTemplateVersions { id: id.clone(), versions }).await?;
    let default = Write::DeleteLaunchTemplateVersions { id: id.clone(), versions: BTreeSet::from([1, 4]) };
    let error = refused(cloud.write(&default).await)?;
    assert!(error.message.starts_with("versions were not deleted: 1 ("), "{error}");

    let found = cloud.launch_template(GROUP).await?.context("a template")?;
    assert_eq!((found.id.as_str(), found.latest_version, found.default_version), (id.as_str(), 5, 1));
    assert_eq!((found.name.as_str(), found.tags), (GROUP, map(&[("capasg-owner", "0f2c")])));
    let mut page = cloud.launch_template_versions(&id, None).await?;
    page.items.sort_by_key(|version| version.number);
    let read: Vec<_> = page
        .items
        .iter()
        .map(|version| (version.number, version.description.as_deref(), version.image_id.as_deref()))
        .collect();
    let image = Some("ami-0b1c2d3e");
    assert_eq!(read[1..], [(5, Some("v1 number=5"), image)]);
    assert_eq!((read.len(), read[0].0), (2, 1));
    assert_eq!(page.items[1].created_at, world.simulator.now());

    world.done(Write::DeleteLaunchTemplate { id: id.clone() }).await?;
    assert_eq!(cloud.launch_template(GROUP).await?, None);
    let error = refused(cloud.launch_template_versions(&id, None).await)?;
    assert_eq!(error.class, ErrorClass::NotFound);
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

    let shared = FakeGroup {
        associated_vpcs: ["vpc-0f1e2d3c".to_owned()].into(),
        ..FakeGroup::new("sg-0d1e2f3a", "vpc-0a1b2c3d", "shared")
    };
    world.simulator.put_security_group(&Scope::account(ACCOUNT, REGION), shared);
    assert!(cloud.is_associated("sg-0d1e2f3a", "vpc-0f1e2d3c").await?);
    assert!(!cloud.is_associated("sg-0d1e2f3a", "vpc-0000000a").await?);
    assert!(!cloud.is_associated("sg-0b1c2d3e", "vpc-0f1e2d3c").await?);

    let image = cloud.image("ami-0a1b2c3d").await?.context("an image")?;
    assert_eq!(image.root_device_name.as_deref(), Some("/dev/xvda"));
    assert_eq!(image.architecture.as_deref(), Some("x86_64"));
    let volumes: Vec<_> = image
        .block_devices
        .iter()
        .map(|own| (own.device_name.as_str(), own.volume.as_ref().and_then(|volume| volume.size_gib)))
        .collect();
    assert_eq!((image.is_windows, volumes), (false, vec![("/dev/xvda", Some(20))]));
    assert_eq!(cloud.image("ami-0ffffffffffffffff").await?, None);

    let scope = Scope::account(ACCOUNT, REGION);
    world.simulator.put_snapshot(&scope, "snap-0a1b2c3d", 20);
    assert_eq!(cloud.snapshot_gib("snap-0a1b2c3d").await?, Some(20));
    assert_eq!(cloud.snapshot_gib("snap-0b1c2d3e").await?, None);
    world.simulator.put_parameter(&scope, "/images/node", "ami-0b1c2d3e");
    assert_eq!(cloud.parameter("/images/node").await?.as_deref(), Some("ami-0b1c2d3e"));
    assert_eq!(cloud.parameter("/images/none").await?, None);
    Ok(())
}

#[tokio::test]
async fn offerings_and_addresses_are_looked_up() -> Result<()> {
    let world = World::start(Settings::default()).await?;
    let names = ["m7i.large".to_owned(), "m9.huge".to_owned()];
    let page = world.cloud.type_offerings(&names, None).await?;
    let zones: Vec<&str> = page.items.iter().map(|offering| offering.zone.as_str()).collect();
    assert_eq!(zones, ["eu-central-1a", "eu-central-1b", "eu-central-1c"]);
    assert!(page.items.iter().all(|offering| offering.instance_type == "m7i.large"));
    let subnets = Selector::Ids(set(&["subnet-0a1b2c3d", "subnet-0fffffff"]));
    let page = world.cloud.subnet_addresses(&subnets, None).await?;
    let [one] = page.items.as_slice() else { anyhow::bail!("{page:?}") };
    assert_eq!(one.subnet, "subnet-0a1b2c3d");
    assert!(one.free == 4091, "{one:?}");
    Ok(())
}

#[tokio::test]
async fn quotas_and_the_vcpus_in_use_are_looked_up() -> Result<()> {
    let world = World::start(Settings { vcpu_limit: Some(32), ..Settings::default() }).await?;
    for code in ["L-1216C47A", "L-34B43A08"] {
        assert_eq!(world.cloud.ec2_quota(code).await?, 32);
    }
    let error = refused(world.cloud.ec2_quota("L-0FFFFFFF").await)?;
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::NotFound, "NoSuchResourceException"));

    assert!(world.cloud.running_instances(None).await?.items.is_empty());
    let id = template(&world, GROUP).await?;
    world.done(Write::CreateGroup(Box::new(group_of(&id, 1)))).await?;
    world.pass(120);
    let group = world.group().await?;
    let running = world.cloud.running_instances(None).await?;
    assert_eq!((running.items.len(), running.next_token), (group.instances.len(), None));
    assert!(running.items.iter().all(|one| one.instance_type == "m6i.large" && one.vcpus == 2));
    let of = |purchase| running.items.iter().filter(|one| one.purchase == purchase).count();
    assert!(of(PurchaseOption::OnDemand) > 0 && of(PurchaseOption::Spot) > 0, "{:?}", running.items);

    for instance in &group.instances {
        world.simulator.kill(&Scope::account(ACCOUNT, REGION), &instance.id);
    }
    assert!(world.cloud.running_instances(None).await?.items.is_empty(), "they shut down");
    Ok(())
}

#[tokio::test]
async fn instance_types_are_looked_up() -> Result<()> {
    let world = World::start(Settings::default()).await?;
    let names = ["m7g.large", "p5.48xlarge", "trn1.32xlarge", "m9.huge"].map(str::to_owned);
    let page = world.cloud.instance_types(&names, None).await?;
    let names: Vec<&str> = page.items.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["m7g.large", "p5.48xlarge", "trn1.32xlarge"], "the unknown one is absent");
    let [small, gpus, neuron] = page.items.as_slice() else { anyhow::bail!("{page:?}") };
    assert_eq!((small.vcpus, small.memory_mib, &small.architectures), (2, 8192, &set(&["arm64"])));
    assert!(small.gpus.is_empty() && small.neuron_devices == 0);
    assert_eq!((gpus.vcpus, gpus.memory_mib), (192, 2_097_152));
    assert_eq!(gpus.gpus, [Gpu { manufacturer: "NVIDIA".to_owned(), count: 8 }]);
    assert_eq!((neuron.neuron_devices, neuron.neuron_cores), (16, 32));
    Ok(())
}
