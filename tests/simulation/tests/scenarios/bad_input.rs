//! Specs that cannot work: each is reported in one sentence with the field and the remedy, nothing is created, and a
//! correction takes effect at once.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use capasg_api::{
    ASGMachinePoolSpec,
    conditions::{GROUP_READY, LAUNCH_TEMPLATE_READY, READY, STALLED},
    pool::{ChangePolicy, InstanceTypeEntry, SecurityGroupSelector, SubnetSelector},
};
use capasg_fake_aws::ec2::{SecurityGroup, Subnet};
use capasg_simulation::{Setup, World};
use chrono::TimeDelta;
use serde_json::json;

use crate::{reach, running};

const VPC: &str = "vpc-0a1b2c3d";
const OTHER_VPC: &str = "vpc-0f1e2d3c";
const OTHER_SUBNET: &str = "subnet-0001a2b3";
const OTHER_GROUP: &str = "sg-0f0f0f0f";
const ARM_IMAGE: &str = "ami-0c1d2e3f";
const PLACE: &str = "region eu-west-1 of account 123456789012";

/// A mistake in a spec, and what is reported about it.
struct Mistake {
    /// What is wrong.
    edit: fn(&mut ASGMachinePoolSpec),
    /// The condition and its reason.
    reported: (&'static str, &'static str),
    /// The message.
    message: String,
}

/// A mistake with the message that a condition has.
fn mistake(
    condition: &'static str,
    reason: &'static str,
    edit: fn(&mut ASGMachinePoolSpec),
    message: &str,
) -> Mistake {
    let origin = "spec.region and the AWS credentials of the controller determine region and account";
    let message = message.replace("PLACE", PLACE).replace("ORIGIN", origin);
    Mistake { edit, reported: (condition, reason), message }
}

fn by_id(id: &str) -> Vec<SecurityGroupSelector> {
    vec![SecurityGroupSelector::by_id(id)]
}

/// Everything that the network of another VPC has.
fn add_other_vpc(world: &World) {
    let subnet = Subnet {
        id: OTHER_SUBNET.to_owned(),
        vpc: OTHER_VPC.to_owned(),
        zone: "eu-west-1a".to_owned(),
        cidr: "10.1.0.0/20".to_owned(),
        addresses: 4091,
        tags: BTreeMap::from([("tier".to_owned(), "other".to_owned())]),
    };
    world.simulator.put_subnet(&world.scope(), subnet);
    world.simulator.put_security_group(&world.scope(), SecurityGroup::new(OTHER_GROUP, OTHER_VPC, "others"));
}

fn mistakes_of_networks() -> Vec<Mistake> {
    let of_group = |edit, message| mistake(GROUP_READY, "SubnetNotFound", edit, message);
    let missing_group =
        |edit, message| mistake(LAUNCH_TEMPLATE_READY, "SecurityGroupNotFound", edit, message);
    vec![
        of_group(
            |spec| spec.subnets = vec![SubnetSelector::by_tags([("tier", "privat")])],
            "no subnet has the tags tier=privat in PLACE. Correct spec.subnets, or tag a subnet; ORIGIN.",
        ),
        of_group(
            |spec| spec.subnets = vec![SubnetSelector::by_id("subnet-0badbadb")],
            "subnet subnet-0badbadb does not exist in PLACE. Correct spec.subnets; ORIGIN.",
        ),
        of_group(
            |spec| spec.subnets = vec![SubnetSelector::by_tags([("tier", "other")])],
            "spec.subnets selects subnets of vpc-0f1e2d3c, and none of VPC vpc-0a1b2c3d of AWSCluster prod. Correct \
             spec.subnets, or tag a subnet of VPC vpc-0a1b2c3d; to use another VPC, select its subnets by ID.",
        ),
        missing_group(
            |spec| spec.machine.security_groups = by_id("sg-0badbadb"),
            "security group sg-0badbadb does not exist in PLACE. Correct spec.machine.securityGroups; ORIGIN.",
        ),
        missing_group(
            |spec| {
                let name = Some("others".to_owned());
                let group = SecurityGroupSelector { name, ..SecurityGroupSelector::default() };
                spec.machine.security_groups = vec![group];
            },
            "no security group of VPC vpc-0a1b2c3d, which is that of spec.subnets, has the name others in PLACE. Correct \
             spec.machine.securityGroups or spec.subnets.",
        ),
        mistake(
            LAUNCH_TEMPLATE_READY,
            "SecurityGroupInAnotherVPC",
            |spec| spec.machine.security_groups = by_id(OTHER_GROUP),
            "security group sg-0f0f0f0f is in VPC vpc-0f1e2d3c, and spec.subnets selects subnets of VPC vpc-0a1b2c3d. \
             Correct spec.machine.securityGroups or spec.subnets, or associate the security group with VPC vpc-0a1b2c3d.",
        ),
    ]
}

fn mistakes_of_machines() -> Vec<Mistake> {
    let image = |edit, message| mistake(LAUNCH_TEMPLATE_READY, "ImageNotFound", edit, message);
    vec![
        image(
            |spec| spec.machine.image.id = Some("ami-0badbadb".to_owned()),
            "image ami-0badbadb does not exist in PLACE, is not available, or is not shared with this account. Correct \
             spec.machine.image; ORIGIN.",
        ),
        image(
            |spec| {
                spec.machine.image.id = None;
                spec.machine.image.ssm_parameter = Some("/images/node/{version}".to_owned());
            },
            "SSM parameter /images/node/1.36.3 does not exist in PLACE. Correct spec.machine.image.ssmParameter or \
             spec.template.spec.version of the MachinePool; ORIGIN.",
        ),
        mistake(
            LAUNCH_TEMPLATE_READY,
            "ImageArchitectureMismatch",
            |spec| spec.machine.image.id = Some(ARM_IMAGE.to_owned()),
            "image ami-0c1d2e3f is for arm64, and instance type m7i.large is x86_64. Use an image for x86_64 in \
             spec.machine.image, or instance types for arm64 in spec.instanceTypes.",
        ),
        mistake(
            LAUNCH_TEMPLATE_READY,
            "InstanceProfileInAnotherAccount",
            |spec| {
                let profile = "arn:aws:iam::210987654321:instance-profile/nodes";
                spec.machine.iam_instance_profile = Some(profile.to_owned());
            },
            "instance profile arn:aws:iam::210987654321:instance-profile/nodes is in account 210987654321, and the pool \
             is in account 123456789012. Correct spec.machine.iamInstanceProfile, or use AWS credentials of account \
             210987654321.",
        ),
        mistake(
            GROUP_READY,
            "InstanceTypeNotFound",
            |spec| spec.instance_types = vec![InstanceTypeEntry::new("m7i.lrage")],
            "region eu-west-1 does not offer instance type m7i.lrage. Correct spec.instanceTypes. The controller \
             retries immediately after an edit.",
        ),
    ]
}

// Rules: I5
// Pains: P13
#[tokio::test(start_paused = true)]
async fn a_mistake_in_a_spec_is_reported_before_anything_is_created() -> Result<()> {
    for Mistake { edit, reported: (condition, reason), message } in
        mistakes_of_networks().into_iter().chain(mistakes_of_machines())
    {
        for policy in [ChangePolicy::Apply, ChangePolicy::Preview] {
            let mut world = World::new(Setup::default());
            add_other_vpc(&world);
            world
                .add_aws_cluster_with(&json!({ "region": "eu-west-1", "network": { "vpc": { "id": VPC } } }));
            let mut right = None;
            let pool = world.add_pool_with("workers", 2, |spec| {
                right = Some(spec.clone());
                edit(spec);
                spec.change_policy = Some(policy);
            });
            world.run_for(TimeDelta::minutes(10)).await?;
            let told = world.condition(&pool, condition).context(condition)?;
            ensure!(told.status == "False" && told.reason == reason, "{told:?}\n{}", world.describe());
            ensure!(told.message == message, "{}\ninstead of\n{message}", told.message);
            let ready = world.condition(&pool, READY).context(READY)?;
            ensure!(ready.status == "False" && ready.message.contains(&message), "{ready:?}");
            ensure!(world.says(&pool, STALLED, "True", "Stalled"), "{}", world.describe());
            let mutations = world.mutations_since(0);
            ensure!(mutations.is_empty(), "{message}: {mutations:?}");
            let calls = world.calls_since(0, None).len();
            ensure!(calls <= 150, "{message}: {calls} calls in 10 minutes");

            let right = right.context("the spec")?;
            world.edit_pool(&pool, |pool| pool.spec = right.clone());
            world
                .run_until("the group exists", TimeDelta::seconds(10), |world| world.group(&pool).is_some())
                .await?;
            reach(&mut world, &pool, 2).await?;
            ensure!(
                world.condition(&pool, condition).is_some_and(|found| found.status == "True"),
                "{message}"
            );
            world.finish()?;
        }
    }
    Ok(())
}

/// A region that is not that of the Cluster has nothing of what the spec names.
#[tokio::test(start_paused = true)]
async fn a_region_other_than_that_of_the_cluster_is_named() -> Result<()> {
    let mut world = World::new(Setup::default());
    world.add_aws_cluster_with(&json!({ "region": "us-east-1" }));
    let tags = SubnetSelector::by_tags([("tier", "private")]);
    let pool = world.add_pool_with("workers", 2, |spec| spec.subnets = vec![tags]);
    world.run_for(TimeDelta::minutes(1)).await?;
    let told = world.condition(&pool, GROUP_READY).context("GroupReady")?;
    ensure!(
        told.message.ends_with(
            "or tag a subnet; AWSCluster prod is in region us-east-1: create the pool again with this spec.region."
        ),
        "{}",
        told.message
    );
    world.finish()
}

/// Subnets that are named by ID may be in any VPC, and a security group may be associated with several.
#[tokio::test(start_paused = true)]
async fn another_vpc_by_id_and_associated_security_groups_are_no_mistakes() -> Result<()> {
    let mut world = World::new(Setup::default());
    add_other_vpc(&world);
    world.add_aws_cluster(VPC);
    let group = SecurityGroup {
        associated_vpcs: [OTHER_VPC.to_owned()].into(),
        ..SecurityGroup::new("sg-0e0e0e0e", VPC, "shared")
    };
    world.simulator.put_security_group(&world.scope(), group);
    let pool = world.add_pool_with("workers", 2, |spec| {
        spec.subnets = vec![SubnetSelector::by_id(OTHER_SUBNET)];
        spec.machine.security_groups = by_id("sg-0e0e0e0e");
    });
    reach(&mut world, &pool, 2).await?;
    world.finish()
}

/// A type that does not fit beside types that do is reported, and holds nothing up.
#[tokio::test(start_paused = true)]
async fn a_type_of_another_architecture_is_reported_and_the_pool_scales() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.edit_pool(&pool, |pool| pool.spec.instance_types.push(InstanceTypeEntry::new("m7g.large")));
    world.run_for(TimeDelta::minutes(2)).await?;
    ensure!(
        world.says(&pool, LAUNCH_TEMPLATE_READY, "False", "ImageArchitectureMismatch"),
        "{}",
        world.describe()
    );
    world.scale(&pool, 3);
    world.run_until("it grows", crate::SOON, |world| world.in_service(&pool).len() == 3).await?;
    world.edit_pool(&pool, |pool| pool.spec.instance_types.truncate(1));
    reach(&mut world, &pool, 3).await
}

/// An image of another architecture is not rolled out.
#[tokio::test(start_paused = true)]
async fn an_image_of_another_architecture_is_not_rolled_out() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    let (before, mark) = (world.in_service(&pool), world.mark());
    world.edit_pool(&pool, |pool| pool.spec.machine.image.id = Some(ARM_IMAGE.to_owned()));
    world.run_for(TimeDelta::minutes(30)).await?;
    ensure!(world.says(&pool, LAUNCH_TEMPLATE_READY, "False", "ImageArchitectureMismatch"));
    ensure!(world.in_service(&pool) == before, "{}", world.describe());
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    world.finish()
}
