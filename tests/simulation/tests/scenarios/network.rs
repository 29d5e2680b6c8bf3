//! The subnets and security groups that tags select: a group is in one VPC, and what is tagged later replaces nothing.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use capasg_api::{
    conditions::GROUP_READY,
    pool::{SecurityGroupSelector, SubnetSelector},
};
use capasg_fake_aws::ec2::{SecurityGroup, Subnet};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

use crate::{SOON, ended_since, reach, running_with};

const TAG: (&str, &str) = ("kubernetes.io/role/internal-elb", "1");
const OTHER_VPC: &str = "vpc-0f1e2d3c";

/// Subnets and a security group with the tags exist in another VPC of the region as well.
fn add_other_vpc(world: &World) {
    let nodes = SecurityGroup {
        tags: BTreeMap::from([("Name".to_owned(), "nodes".to_owned())]),
        ..SecurityGroup::new("sg-0001a2b3", OTHER_VPC, "nodes")
    };
    world.simulator.put_security_group(&world.scope(), nodes);
    for (id, zone) in [("subnet-0001a2b3", "eu-west-1a"), ("subnet-0002a2b3", "eu-west-1b")] {
        let subnet = Subnet {
            id: id.to_owned(),
            vpc: OTHER_VPC.to_owned(),
            zone: zone.to_owned(),
            cidr: "10.1.0.0/20".to_owned(),
            addresses: 4091,
            tags: BTreeMap::from([(TAG.0.to_owned(), TAG.1.to_owned())]),
        };
        world.simulator.put_subnet(&world.scope(), subnet);
    }
}

fn subnets(world: &World, pool: &Pool) -> BTreeSet<String> {
    let status = world.pool(pool).and_then(|pool| pool.status.clone()).unwrap_or_default();
    status.subnets.into_iter().map(|subnet| subnet.id).collect()
}

#[tokio::test(start_paused = true)]
async fn subnets_of_several_vpcs_are_refused_unless_the_cluster_has_one() -> Result<()> {
    for vpc in ["vpc-0a1b2c3d", OTHER_VPC] {
        let mut world = World::new(Setup::default());
        add_other_vpc(&world);
        let pool = world.add_pool_with("workers", 2, |spec| {
            spec.subnets = vec![SubnetSelector::by_tags([TAG])];
            spec.machine.security_groups = groups_by_name("nodes");
        });
        world.run_for(TimeDelta::minutes(2)).await?;
        let told = world.condition(&pool, GROUP_READY).context("GroupReady")?;
        ensure!(told.status == "False" && told.reason == "SubnetsInSeveralVPCs", "{told:?}");
        ensure!(told.message.contains(&format!("vpc-0a1b2c3d, {OTHER_VPC}")), "{}", told.message);
        ensure!(world.calls_since(0, Some("CreateAutoScalingGroup")).is_empty(), "a group was requested");
        world.add_aws_cluster(vpc);
        reach(&mut world, &pool, 2).await?;
        let all_others = subnets(&world, &pool).iter().all(|id| id.starts_with("subnet-000"));
        ensure!(all_others == (vpc == OTHER_VPC), "{:?}", subnets(&world, &pool));
        ensure!(world.says(&pool, GROUP_READY, "True", "GroupReady"), "all is well");
        world.finish()?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn subnets_tagged_later_in_another_vpc_do_not_affect_a_group() -> Result<()> {
    let (mut world, pool) =
        running_with(Setup::default(), 2, |spec| spec.subnets = vec![SubnetSelector::by_tags([TAG])]).await?;
    let (before, mark) = (subnets(&world, &pool), world.mark());
    add_other_vpc(&world);
    world.run_for(TimeDelta::hours(1)).await?;
    world.kill_process();
    world.run_for(TimeDelta::hours(1)).await?;
    ensure!(subnets(&world, &pool) == before, "{:?}", subnets(&world, &pool));
    ensure!(
        world.says(&pool, GROUP_READY, "True", "GroupReady"),
        "{:?}",
        world.condition(&pool, GROUP_READY)
    );
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    world.finish()
}

fn groups_by_name(name: &str) -> Vec<SecurityGroupSelector> {
    let tags = BTreeMap::from([("Name".to_owned(), name.to_owned())]);
    vec![SecurityGroupSelector { tags: Some(tags), ..SecurityGroupSelector::default() }]
}

/// It applies to new instances. A user who wants it on all of them sets `spec.rollout.after`.
#[tokio::test(start_paused = true)]
async fn a_security_group_that_is_tagged_later_makes_nothing_outdated() -> Result<()> {
    let (mut world, pool) =
        running_with(Setup::default(), 2, |spec| spec.machine.security_groups = groups_by_name("nodes"))
            .await?;
    let found = |world: &World| world.pool(&pool).and_then(|pool| pool.status.clone()).unwrap_or_default();
    let before = found(&world).launch_template.context("no launch template")?;
    let group = SecurityGroup {
        tags: BTreeMap::from([("Name".to_owned(), "nodes".to_owned())]),
        ..SecurityGroup::new("sg-0c1d2e3f", "vpc-0a1b2c3d", "more")
    };
    world.simulator.put_security_group(&world.scope(), group);
    world.run_for(TimeDelta::hours(1)).await?;
    let after = found(&world);
    ensure!(after.security_group_ids == ["sg-0b1c2d3e", "sg-0c1d2e3f"], "{:?}", after.security_group_ids);
    let template = after.launch_template.context("no launch template")?;
    ensure!(
        template.version > before.version && template.content_hash != before.content_hash,
        "{template:?}"
    );
    ensure!(template.rollout_hash == before.rollout_hash, "{template:?}");
    ensure!(after.up_to_date_replicas == 2, "outdated\n{}", world.describe());
    ensure!(ended_since(&world, 0).is_empty(), "nothing was ended");
    // Other tags in the spec are a change of the spec.
    world.edit_pool(&pool, |pool| pool.spec.machine.security_groups = groups_by_name("*"));
    world.run_until("all are outdated", SOON, |world| found(world).up_to_date_replicas == 0).await?;
    world.finish()
}
