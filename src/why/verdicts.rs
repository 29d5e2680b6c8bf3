//! What users and tools read of a pool whose Nodes are missing, minute by minute, in virtual time: all conditions, the verdicts of
//! kstatus (by which Flux waits) and of Argo CD, and `capasg why`.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use capasg_api::{names::labels, pool::Phase};
use capasg_cloud::Clock as _;
use capasg_environment::{Tools, argocd_health, filter};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::pool::PoolWhy;

const SOON: TimeDelta = TimeDelta::minutes(5);
const HEALTH: &str = "resource.customizations.health.infrastructure.cluster.x-k8s.io_ASGMachinePool";

/// Flux's verdict and Argo CD's.
fn verdicts(pool: &Value) -> Result<[String; 2]> {
    let say = |line: &str| eprintln!("{line}");
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/config/argocd/argocd-cm.yaml");
    let scripts: Value = serde_saphyr::from_str(&std::fs::read_to_string(scripts)?)?;
    let flux = filter(&Tools::ready(&say)?.program("kstatus"), std::slice::from_ref(pool))?;
    let argo = filter(&argocd_health(&say)?, &[json!({"script": scripts["data"][HEALTH], "object": pool})])?;
    Ok([flux, argo].map(|answers| answers[0]["status"].as_str().unwrap_or_default().to_owned()))
}

/// Adds what is read now.
fn read(world: &World, pool: &Pool, when: &str, page: &mut String) -> Result<()> {
    let found = world.pool(pool).context("no pool")?;
    let status = found.status.clone().context("no status")?;
    let [flux, argo] = verdicts(&serde_json::to_value(&*found)?)?;
    let phase = status.phase.map(Phase::as_str).unwrap_or_default();
    writeln!(page, "== {when}: phase {phase}, Flux {flux}, Argo CD {argo}")?;
    for condition in &status.conditions {
        writeln!(page, "{} {} {}", condition.type_, condition.status, condition.reason)?;
    }
    let asg_machines: Vec<_> = world.asg_machines(pool).into_values().map(|one| (*one).clone()).collect();
    let machines: Vec<_> = world.machines(pool).into_values().map(|one| (*one).clone()).collect();
    let owner = Some(pool.machine_pool.name.clone());
    let cluster = found.labels().get(labels::CLUSTER_NAME).cloned();
    let why = PoolWhy::new(&found, owner, cluster, &asg_machines, &machines, world.clock.now());
    writeln!(page, "$ capasg why asgmachinepool/{}\n{why}", pool.key.name)?;
    Ok(())
}

/// Reads 1, 5 and 15 minutes after now.
async fn read_later(world: &mut World, pool: &Pool, page: &mut String) -> Result<()> {
    let begun = world.now();
    for minute in [1, 5, 15] {
        world.run_for(begun + TimeDelta::minutes(minute) - world.now()).await?;
        read(world, pool, &format!("after {minute} min"), page)?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn instances_that_never_join() -> Result<()> {
    let mut world = World::new(Setup::default());
    world.mute("*", true);
    let pool = world.add_pool("workers", 2);
    world.run_until("in service", SOON, |world| world.in_service(&pool).len() == 2).await?;
    let mut page = String::new();
    read_later(&mut world, &pool, &mut page).await?;
    insta::assert_snapshot!(page);
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn a_node_that_a_user_deletes() -> Result<()> {
    let mut world = World::new(Setup::default());
    let pool = world.add_pool("workers", 2);
    let phase = |world: &World| world.pool(&pool)?.status.as_ref()?.phase;
    world.run_until("it runs", SOON, |world| phase(world) == Some(Phase::Running)).await?;
    let mut page = String::new();
    read(&world, &pool, "before", &mut page)?;
    world.delete_node(&world.in_service(&pool).into_iter().next().context("no instance")?);
    read_later(&mut world, &pool, &mut page).await?;
    insta::assert_snapshot!(page);
    world.finish()
}
