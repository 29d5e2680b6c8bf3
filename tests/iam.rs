//! The printed policies against what pools do: enforced, nothing is denied; and each statement and condition is necessary.

#![expect(clippy::unwrap_used, reason = "what these tests share fails as they do")]

use std::{collections::BTreeSet, process::Command};

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use capasg_api::{
    ASGMachinePoolSpec,
    names::{aws_name, tags},
    pool::{
        AdoptionPolicy, InstanceRefresh, InstanceTypeEntry, InstancesDistribution, OnRefreshFailure,
        RolloutMode, RolloutStrategy, RolloutType,
    },
};
use capasg_fake_aws::{
    ApiError, Credentials, Decision, LogFilter, Policy, Request, Role, Scope, Service, Simulator, Tree,
};
use capasg_simulation::{Pool, Setup, World, run};
use chrono::TimeDelta;
use serde_json::{Value, json};

const MANAGER: &str = "arn:aws:iam::123456789012:user/manager";
const SOON: TimeDelta = TimeDelta::minutes(30);

fn printed(flags: &[&str]) -> Value {
    let output =
        Command::new(env!("CARGO_BIN_EXE_capasg")).args(["iam", "print"]).args(flags).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// As `--from-cluster` prints it for the pools of the life below.
fn narrowed(region: &str) -> Value {
    let region = format!("--region={region}");
    printed(&[
        &region,
        "--account=123456789012",
        "--namespace=default",
        "--role=nodes",
        "--queue=capasg",
        "--parameter=/images/node/v{version}",
    ])
}

/// Calls of the controllers are decided by a policy.
fn enforce(world: &World, policy: &Value) {
    world.simulator.put_access_key("manager", MANAGER);
    world.simulator.record_asked();
    world.simulator.set_policies(MANAGER, std::slice::from_ref(policy)).unwrap();
}

fn denied(world: &World) -> Vec<String> {
    let log = world.simulator.log(&LogFilter::default().denied());
    log.iter()
        .filter_map(|entry| entry.denied.as_ref())
        .map(|one| format!("{} {}", one.action, one.resource))
        .collect()
}

fn everything(spec: &mut ASGMachinePoolSpec, region: &str) {
    region.clone_into(&mut spec.region);
    (spec.min_size, spec.max_size) = (Some(0), Some(10));
    spec.machine.image.id = None;
    spec.machine.image.ssm_parameter = Some("/images/node/v{version}".to_owned());
    spec.machine.iam_instance_profile = Some("nodes".to_owned());
    spec.machine.ssh_key_name = Some("ops".to_owned());
    spec.machine.data_volumes = serde_json::from_value(json!([
        {"deviceName": "/dev/xvdb", "sizeGiB": 50, "snapshotID": "snap-0a1b2c3d"},
    ]))
    .unwrap();
    spec.tags = [("team".to_owned(), "blue".to_owned()), ("old".to_owned(), "x".to_owned())].into();
    spec.instance_types = vec![InstanceTypeEntry::new("m7i.large"), InstanceTypeEntry::new("m6i.large")];
    spec.instances_distribution = Some(InstancesDistribution {
        on_demand_base_capacity: Some(0),
        on_demand_percentage_above_base_capacity: Some(0),
        ..InstancesDistribution::default()
    });
}

fn refreshed(spec: &mut ASGMachinePoolSpec) {
    let preferences = InstanceRefresh {
        instance_warmup_seconds: Some(0),
        on_failure: Some(OnRefreshFailure::RollBack),
        ..InstanceRefresh::default()
    };
    spec.rollout.get_or_insert_default().strategy = Some(RolloutStrategy {
        type_: Some(RolloutType::InstanceRefresh),
        instance_refresh: Some(preferences),
        ..RolloutStrategy::default()
    });
}

async fn settle(world: &mut World, pool: &Pool, replicas: usize) -> Result<()> {
    world.run_until(&format!("{replicas} running"), SOON, |world| world.is_running(pool, replicas)).await?;
    world.run_for(TimeDelta::minutes(2)).await
}

fn another_size(pool: &mut capasg_api::ASGMachinePool) {
    pool.spec.machine.root_volume =
        Some(capasg_api::pool::RootVolume { size_gib: Some(30), ..capasg_api::pool::RootVolume::default() });
}

/// Until so many instance refreshes were started.
async fn under_way(world: &mut World, count: usize) -> Result<()> {
    let started = |world: &World| world.calls_since(0, Some("StartInstanceRefresh")).len();
    world.run_until("the refresh is started", SOON, |world| started(world) == count).await?;
    world.run_for(TimeDelta::seconds(30)).await
}

/// What another actor may do to a group.
fn disturb(world: &World, pool: &Pool) -> Result<()> {
    let named = || Tree::new().with("AutoScalingGroupName", world.group_name(pool));
    let hook = named().with("LifecycleHookName", "asg-drain");
    world.aws(Service::AutoScaling, "DeleteLifecycleHook", hook)?;
    let tag = Tree::new()
        .with("ResourceId", world.group_name(pool))
        .with("ResourceType", "auto-scaling-group")
        .with("Key", "team");
    world.aws(Service::AutoScaling, "DeleteTags", Tree::new().with("Tags", vec![tag]))?;
    let rebalance = named().with("ScalingProcesses", vec!["AZRebalance"]);
    world.aws(Service::AutoScaling, "ResumeProcesses", rebalance)?;
    world.aws(Service::AutoScaling, "UpdateAutoScalingGroup", named().with("MaxSize", 20))?;
    let ids: Vec<String> = world.in_service(pool).into_iter().collect();
    let unprotected = named().with("InstanceIds", ids).with("ProtectedFromScaleIn", false);
    world.aws(Service::AutoScaling, "SetInstanceProtection", unprotected).map(|_| ())
}

/// Two pools from their creation to their deletion, with everything that the manager does for them in between.
async fn life(region: &str, policy: &Value) -> Result<World> {
    let mut world =
        World::new(Setup { events: true, policy: false, region: region.to_owned(), ..Setup::default() });
    enforce(&world, policy);
    let workers = world.add_pool_with("workers", 3, |spec| everything(spec, region));
    let refreshed = world.add_pool_with("refreshed", 2, |spec| {
        everything(spec, region);
        refreshed(spec);
    });
    // AWS rolls back only to a version whose token does not expire.
    let secret = refreshed.config.name.clone();
    world.edit_machine_pool(&refreshed, |own| {
        let bootstrap = &mut own.spec.template.spec.bootstrap;
        bootstrap.config_ref = None;
        bootstrap.data_secret_name = Some(secret);
    });
    settle(&mut world, &workers, 3).await?;
    settle(&mut world, &refreshed, 2).await?;
    world.scale(&workers, 5);
    settle(&mut world, &workers, 5).await?;
    world.scale(&workers, 2);
    settle(&mut world, &workers, 2).await?;
    disturb(&world, &workers)?;
    world.run_for(TimeDelta::hours(2)).await?;
    settle(&mut world, &workers, 2).await?;
    let victim = world.in_service(&workers).into_iter().next().context("an instance")?;
    world.interrupt(&victim);
    world.run_for(TimeDelta::minutes(10)).await?;
    settle(&mut world, &workers, 2).await?;
    for processes in [Some(Vec::new()), None] {
        world.edit_pool(&workers, |pool| {
            pool.spec.group.get_or_insert_default().suspended_processes = processes;
        });
        world.run_for(TimeDelta::minutes(10)).await?;
    }
    // Drains that outlast the timeout of the hook.
    world.set_drain_seconds(1_200);
    let unhealthy = world.in_service(&workers).into_iter().next().context("an instance")?;
    let health = Tree::new().with("InstanceId", &unhealthy).with("HealthStatus", "Unhealthy");
    world.aws(Service::AutoScaling, "SetInstanceHealth", health.with("ShouldRespectGracePeriod", false))?;
    world.run_for(TimeDelta::hours(1)).await?;
    world.set_drain_seconds(20);
    settle(&mut world, &workers, 2).await?;
    for pool in [&workers, &refreshed] {
        world.edit_pool(pool, |pool| {
            another_size(pool);
            pool.spec.tags.remove("old");
        });
    }
    for _ in 0..12 {
        world.rotate_token(&workers);
        world.run_for(TimeDelta::minutes(20)).await?;
    }
    world.run_for(TimeDelta::hours(3)).await?;
    settle(&mut world, &workers, 2).await?;
    settle(&mut world, &refreshed, 2).await?;
    // Refreshes that are not wanted any more: of a change that is reverted, and in a pause.
    let started = world.calls_since(0, Some("StartInstanceRefresh")).len();
    world.edit_pool(&refreshed, |pool| pool.spec.machine.root_volume = None);
    under_way(&mut world, started + 1).await?;
    world.edit_pool(&refreshed, another_size);
    world.run_for(TimeDelta::hours(3)).await?;
    let started = world.calls_since(0, Some("StartInstanceRefresh")).len();
    world.edit_pool(&refreshed, |pool| pool.spec.machine.root_volume = None);
    under_way(&mut world, started + 1).await?;
    for mode in [RolloutMode::Paused, RolloutMode::Automatic] {
        world.edit_pool(&refreshed, |pool| pool.spec.rollout.get_or_insert_default().mode = Some(mode));
        world.run_for(TimeDelta::hours(3)).await?;
    }
    for pool in [&workers, &refreshed] {
        world.delete_machine_pool(pool);
        world.run_until("the pool is gone", SOON, |world| world.is_gone(pool)).await?;
    }
    world.run_for(TimeDelta::minutes(2)).await?;
    let left = world.simulator.leftovers(None);
    ensure!(left.is_empty(), "{left:?}");
    Ok(world)
}

fn lived(region: &str, policy: &Value) -> World {
    run(life(region, policy)).unwrap().unwrap()
}

fn statements(policy: &Value) -> &Vec<Value> {
    policy["Statement"].as_array().unwrap()
}

#[test]
fn nothing_that_pools_do_is_denied() {
    for region in ["eu-west-1", "us-gov-west-1", "cn-north-1"] {
        let world = lived(region, &narrowed(region));
        assert_eq!(denied(&world), [""; 0], "{region}");
    }
    let world = lived("eu-west-1", &printed(&["--role=nodes"]));
    assert_eq!(denied(&world), [""; 0], "the policy of the documentation");
}

/// What a request is about, without names.
fn kind(request: &Request) -> String {
    let resource = request.resource.splitn(6, ':').nth(5).unwrap_or("*");
    let kind = resource.split(['/', ':']).next().unwrap_or_default();
    format!("{} {kind}", request.action)
}

fn kinds<'a>(requests: impl IntoIterator<Item = &'a Request>) -> BTreeSet<String> {
    requests.into_iter().map(kind).collect()
}

/// What a policy does not allow.
fn refused<'a>(policy: &Value, asked: &'a [Request]) -> Vec<&'a Request> {
    let policy = Policy::parse(policy).unwrap();
    asked.iter().filter(|request| policy.decide(request) != Decision::Allowed).collect()
}

/// The policy with each value of a condition replaced by one that no request has.
fn falsified(policy: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (index, statement) in statements(policy).iter().enumerate() {
        let sid = statement["Sid"].as_str().unwrap().to_owned();
        for (operator, keys) in statement["Condition"].as_object().into_iter().flatten() {
            for key in keys.as_object().unwrap().keys() {
                let mut other = policy.clone();
                let value = &mut other["Statement"][index]["Condition"][operator][key];
                *value = match operator.as_str() {
                    "Null" if *value == "false" => json!("true"),
                    "Null" => json!("false"),
                    "ArnLike" => json!("arn:aws:ec2:eu-west-1:123456789012:launch-template/other"),
                    _ => json!("other"),
                };
                all.push((sid.clone(), format!("{operator} {key}"), other));
            }
        }
    }
    all
}

#[test]
fn each_statement_and_each_condition_is_necessary() {
    let policy = narrowed("eu-west-1");
    let world = lived("eu-west-1", &policy);
    let asked = world.simulator.asked(MANAGER);
    let parsed = Policy::parse(&policy).unwrap();
    let of_statement = |sid: &str| -> Vec<&Request> {
        asked.iter().filter(|request| parsed.statements_for(request).contains(&sid)).collect()
    };
    let mut table = vec!["| statement | change | denied |".to_owned(), "| --- | --- | --- |".to_owned()];
    let mut row = |sid: &str, change: &str, denied: Vec<&Request>| {
        let kinds: Vec<String> = kinds(denied).into_iter().collect();
        table.push(format!("| {sid} | {change} | {} |", kinds.join(", ")));
    };
    for (index, statement) in statements(&policy).iter().enumerate() {
        let sid = statement["Sid"].as_str().unwrap();
        let mut without = policy.clone();
        without["Statement"].as_array_mut().unwrap().remove(index);
        let denied = refused(&without, &asked);
        assert!(!denied.is_empty(), "{sid} is not necessary");
        assert_eq!(denied, of_statement(sid), "{sid}: another statement allows the same");
        row(sid, "is removed", denied);
    }
    for (sid, condition, other) in falsified(&policy) {
        let denied = refused(&other, &asked);
        assert_eq!(denied, of_statement(&sid), "{sid}: {condition}");
        row(&sid, &format!("`{condition}` is false"), denied);
    }
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn every_action_of_the_policy_is_called() {
    let policy = narrowed("eu-west-1");
    let world = lived("eu-west-1", &policy);
    let asked: BTreeSet<String> = world.simulator.asked(MANAGER).into_iter().map(|one| one.action).collect();
    let allowed = statements(&policy).iter().flat_map(|statement| statement["Action"].as_array().unwrap());
    let allowed: BTreeSet<String> = allowed.map(|action| action.as_str().unwrap().to_owned()).collect();
    let never: Vec<_> = allowed.difference(&asked).collect();
    // Only where another actor changed desired capacity alone, and for security groups of other VPCs than the subnets.
    assert_eq!(never, ["autoscaling:SetDesiredCapacity", "ec2:DescribeSecurityGroupVpcAssociations"]);
}

/// A group that somebody else made, under the name of the pool.
fn foreign_group(world: &World) -> Result<()> {
    let data = Tree::new().with("ImageId", "ami-0a1b2c3d").with("InstanceType", "m7i.large");
    let template = Tree::new().with("LaunchTemplateName", "other").with("LaunchTemplateData", data);
    world.aws(Service::Ec2, "CreateLaunchTemplate", template)?;
    let adoptable = Tree::new()
        .with("Key", tags::ADOPTABLE_BY)
        .with("Value", "default/*")
        .with("PropagateAtLaunch", false);
    let group = Tree::new()
        .with("AutoScalingGroupName", aws_name("default", "prod", "workers"))
        .with("Tags", vec![adoptable])
        .with("MinSize", 1)
        .with("MaxSize", 9)
        .with("DesiredCapacity", 2)
        .with("VPCZoneIdentifier", "subnet-0a1b2c3d")
        .with("LaunchTemplate", Tree::new().with("LaunchTemplateName", "other").with("Version", "1"));
    world.aws(Service::AutoScaling, "CreateAutoScalingGroup", group).map(|_| ())
}

async fn adoption(policy: &Value) -> Result<World> {
    let mut world = World::new(Setup { policy: false, ..Setup::default() });
    enforce(&world, policy);
    foreign_group(&world)?;
    world.run_for(TimeDelta::minutes(2)).await?;
    let pool = world.add_pool_with("workers", 2, |spec| {
        spec.adoption_policy = Some(AdoptionPolicy::Adopt);
        spec.group.get_or_insert_default().name = Some(aws_name("default", "prod", "workers"));
    });
    world.run_for(TimeDelta::hours(4)).await?;
    if world.is_running(&pool, 2) {
        world.delete_machine_pool(&pool);
        world.run_until("the pool is gone", SOON, |world| world.is_gone(&pool)).await?;
    }
    Ok(world)
}

#[test]
fn a_group_is_adopted_only_if_the_policy_allows_it() {
    let world = run(adoption(&printed(&["--adoption"]))).unwrap().unwrap();
    assert_eq!(denied(&world), [""; 0]);
    let adopted = |one: &capasg_fake_aws::LogEntry| {
        one.action == "CreateOrUpdateTags" && one.params.to_string().contains(tags::OWNER_ID)
    };
    assert!(world.simulator.log(&LogFilter::default().identity(MANAGER)).iter().any(adopted));
    let world = run(adoption(&printed(&[]))).unwrap().unwrap();
    let denied: BTreeSet<String> = denied(&world).into_iter().collect();
    assert_eq!(denied.len(), 1, "{denied:?}");
    assert!(denied.iter().all(|one| one.starts_with("autoscaling:CreateOrUpdateTags ")), "{denied:?}");
}

/// The token of a service account.
fn token(subject: &str) -> String {
    let claims = json!({"iss": "https://issuer.example/a", "sub": subject, "aud": ["sts.amazonaws.com"]});
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

fn assume(simulator: &Simulator, action: &str, params: Tree) -> Result<Credentials, ApiError> {
    let scope = Scope::account("111122223333", "eu-west-1");
    let reply = simulator.call(&scope, Service::Sts, action, params.with("RoleSessionName", "capasg"))?;
    Ok(Credentials::of_reply(&reply).unwrap())
}

#[test]
fn the_printed_trust_admits_our_service_account_and_the_role_of_the_manager() {
    let simulator = Simulator::new(1);
    let (manager, other) =
        ("arn:aws:iam::111122223333:role/capasg-manager", "arn:aws:iam::444455556666:role/pools");
    let oidc = ["--account=111122223333", "--oidc-provider=https://issuer.example/a"];
    let trust = printed(&[&oidc[..], &["--document=manager-trust"]].concat());
    simulator.put_role(Role::with_trust_policy(manager, &trust).unwrap());
    let web = |subject: &str| {
        let params = Tree::new().with("RoleArn", manager).with("WebIdentityToken", token(subject));
        assume(&simulator, "AssumeRoleWithWebIdentity", params)
    };
    for stranger in
        ["system:serviceaccount:capasg-system:default", "system:serviceaccount:team:capasg-manager"]
    {
        assert_eq!(web(stranger).unwrap_err().code, "AccessDenied", "{stranger}");
    }
    let session = web("system:serviceaccount:capasg-system:capasg-manager").unwrap();
    let identity = format!("--assume-role={other}=blue");
    let trusts = printed(&["--account=111122223333", "--document=identity-trust", &identity]);
    simulator.put_role(Role::with_trust_policy(other, &trusts[other]).unwrap());
    simulator.set_policies(manager, &[printed(&[&identity])]).unwrap();
    let tag = Tree::new().with("Key", "team").with("Value", "blue");
    let chained = |id: &str| {
        let params = Tree::new()
            .with("RoleArn", other)
            .with("RoleSessionName", "pools")
            .with("ExternalId", id)
            .with("Tags", vec![tag.clone()]);
        simulator.call_as(&session, "eu-west-1", Service::Sts, "AssumeRole", params)
    };
    assert_eq!(chained("red").unwrap_err().code, "AccessDenied");
    chained("blue").unwrap();
    let by_user = Tree::new().with("RoleArn", other).with("ExternalId", "blue");
    assert_eq!(assume(&simulator, "AssumeRole", by_user).unwrap_err().code, "AccessDenied");
    simulator.set_policies(manager, &[printed(&[])]).unwrap();
    assert_eq!(
        chained("blue").unwrap_err().code,
        "AccessDenied",
        "the policy of the manager has to allow it"
    );
}
