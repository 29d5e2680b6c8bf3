//! Specs that select more than a status holds: the pool reports it, and its status fits the schema of the CRD.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use capasg_api::{
    ASGMachinePoolStatus,
    conditions::LAUNCH_TEMPLATE_READY,
    pool::{SecurityGroupSelector, SubnetSelector},
};
use capasg_fake_aws::ec2::{SecurityGroup, Subnet};
use capasg_simulation::{Pool, Setup, World, exceeded_limits};
use chrono::TimeDelta;

use crate::{SOON, reach, running_with};

const VPC: &str = "vpc-0a1b2c3d";
const TAG: (&str, &str) = ("lb", "1");

fn tags() -> BTreeMap<String, String> {
    BTreeMap::from([(TAG.0.to_owned(), TAG.1.to_owned())])
}

fn by_tags() -> Vec<SecurityGroupSelector> {
    vec![SecurityGroupSelector { tags: Some(tags()), ..SecurityGroupSelector::default() }]
}

/// Security groups that have the tags.
fn add_groups(world: &World, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let id = format!("sg-aa{number:06}");
        let group = SecurityGroup { tags: tags(), ..SecurityGroup::new(&id, VPC, &format!("lb{number}")) };
        world.simulator.put_security_group(&world.scope(), group);
    }
}

/// The status of a pool, which the API server accepts.
fn accepted(world: &World, pool: &Pool) -> Result<ASGMachinePoolStatus> {
    let status = world.pool(pool).and_then(|pool| pool.status.clone()).context("no status")?;
    let found = exceeded_limits("ASGMachinePool", &status);
    ensure!(found.is_empty(), "{found:?}");
    Ok(status)
}

/// Nothing is created with more security groups than an interface takes, and with fewer the pool runs.
#[tokio::test(start_paused = true)]
async fn a_pool_that_selects_70_security_groups_reports_it_and_creates_nothing() -> Result<()> {
    let mut world = World::new(Setup::default());
    add_groups(&world, 0..70);
    let pool = world.add_pool_with("workers", 2, |spec| spec.machine.security_groups = by_tags());
    world.run_for(TimeDelta::minutes(2)).await?;
    let found = world.condition(&pool, LAUNCH_TEMPLATE_READY).context("LaunchTemplateReady")?;
    ensure!(found.status == "False" && found.reason == "TooManySecurityGroups", "{found:?}");
    ensure!(
        found.message.contains("selects 70 security groups; a network interface takes at most 16"),
        "{}",
        found.message
    );
    let status = accepted(&world, &pool)?;
    ensure!(status.security_group_ids.len() == 64, "{:?}", status.security_group_ids);
    ensure!(status.omitted.get("securityGroupIDs") == Some(&6), "{:?}", status.omitted);
    ensure!(world.mutations_since(0).is_empty(), "{:?}", world.mutations_since(0));
    world.edit_pool(&pool, |pool| {
        pool.spec.machine.security_groups = vec![SecurityGroupSelector::by_id("sg-0b1c2d3e")];
    });
    reach(&mut world, &pool, 2).await?;
    ensure!(accepted(&world, &pool)?.omitted.is_empty(), "{}", world.describe());
    world.finish()
}

/// A running pool keeps the version that it launches with, and grows with it.
#[tokio::test(start_paused = true)]
async fn a_running_pool_keeps_its_security_groups_when_70_match() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, |spec| {
        let name = BTreeMap::from([("Name".to_owned(), "nodes".to_owned())]);
        spec.machine.security_groups =
            vec![SecurityGroupSelector { tags: Some(name), ..SecurityGroupSelector::default() }];
    })
    .await?;
    let (before, template) = (world.in_service(&pool), accepted(&world, &pool)?.launch_template);
    for number in 0..70 {
        let id = format!("sg-aa{number:06}");
        let tags = BTreeMap::from([("Name".to_owned(), "nodes".to_owned())]);
        let group = SecurityGroup { tags, ..SecurityGroup::new(&id, VPC, &format!("lb{number}")) };
        world.simulator.put_security_group(&world.scope(), group);
    }
    world.run_for(TimeDelta::hours(1)).await?;
    ensure!(
        world.says(&pool, LAUNCH_TEMPLATE_READY, "False", "TooManySecurityGroups"),
        "{}",
        world.describe()
    );
    let status = accepted(&world, &pool)?;
    ensure!(status.omitted.get("securityGroupIDs") == Some(&7), "{:?}", status.omitted);
    ensure!(status.launch_template == template, "{:?}", status.launch_template);
    ensure!(world.in_service(&pool) == before, "{}", world.describe());
    world.scale(&pool, 3);
    world.run_until("it grows", SOON, |world| world.in_service(&pool).len() == 3).await?;
    world.finish()
}

/// More subnets than the status holds.
#[tokio::test(start_paused = true)]
async fn the_status_of_a_pool_with_300_subnets_says_how_many_it_omits() -> Result<()> {
    let mut world = World::new(Setup::default());
    for number in 0..300 {
        let subnet = Subnet {
            id: format!("subnet-aa{number:06}"),
            vpc: VPC.to_owned(),
            zone: ["eu-west-1a", "eu-west-1b", "eu-west-1c"][number % 3].to_owned(),
            cidr: format!("10.{}.{}.0/24", 10 + number / 200, number % 200),
            addresses: 251,
            tags: tags(),
        };
        world.simulator.put_subnet(&world.scope(), subnet);
    }
    let pool = world.add_pool_with("workers", 2, |spec| spec.subnets = vec![SubnetSelector::by_tags([TAG])]);
    world.run_for(TimeDelta::minutes(5)).await?;
    let status = accepted(&world, &pool)?;
    ensure!(!status.conditions.is_empty(), "no condition");
    ensure!(
        status.subnets.len() < 300
            && (status.subnets.len() < 256 || status.omitted.get("subnets") == Some(&44)),
        "{} subnets, {:?}",
        status.subnets.len(),
        status.omitted
    );
    world.finish()
}
