//! No node is lost undrained, whoever ends it and however often the manager dies meanwhile: kill -9 at three random
//! moments of each flow.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use capasg_api::names::{annotations, machine_name};
use capasg_e2e::{COMPLETE, END, Rig, Setup, condition, ends_of, eventually, rule};
use capasg_environment::Look;
use capasg_fake_aws::{InstanceDump, Scope, Tree};
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

const NEW_IMAGE: &str = "ami-0b1c2d3e";

/// The lowest desired capacity that the group of the region ever had.
struct Lowest {
    seen: Arc<AtomicI64>,
    _task: AbortOnDropHandle<()>,
}

impl Lowest {
    fn of(rig: &Rig<'_>) -> Result<Self> {
        let seen = Arc::new(AtomicI64::new(rig.group()?.desired));
        let (environment, region) = (Arc::clone(&rig.scenario.environment), rig.scenario.region.clone());
        let lowest = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                let dumps = environment.cloud().simulator().dump(Some(&region));
                for group in dumps.into_iter().flat_map(|dump| dump.groups) {
                    lowest.fetch_min(group.desired, Ordering::Relaxed);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        Ok(Self { seen, _task: AbortOnDropHandle::new(task) })
    }

    fn get(&self) -> i64 {
        self.seen.load(Ordering::Relaxed)
    }
}

fn ids<'a>(instances: impl IntoIterator<Item = &'a InstanceDump>) -> BTreeSet<String> {
    instances.into_iter().map(|one| one.id.clone()).collect()
}

/// The instances that our managers ended: each was asked for once, also if the one who asked did not live to see it.
fn ended_by_us(rig: &Rig<'_>, mark: u64) -> Result<BTreeSet<String>> {
    let ends = ends_of(&rig.mutations_since(mark));
    ensure!(ends.values().all(|times| *times == 1), "ended more than once: {ends:?}");
    Ok(ends.into_keys().collect())
}

fn no_orphans(rig: &Rig<'_>) -> Result<()> {
    rig.group()?;
    ensure!(rig.templates().len() == 1, "{:?}", rig.templates());
    Ok(())
}

// Pains: P16, W8
#[tokio::test]
#[ignore = "long form: 12 kills"]
async fn a_rollout_keeps_the_services_budget_through_kills() -> Result<()> {
    rule("ends-rolling", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(5), 5).await?;
        // Two pods on each Node, of which one may be away: the second eviction of every Node is refused at first.
        let service = rig.serve(10, Some(9)).await?;
        let before = rig.instances();
        let (mark, lowest) = (rig.mark(), Lowest::of(rig)?);
        rig.through_kills("ends-rolling", 12, async {
            rig.patch_pool("workers", &json!({"spec": {"machine": {"image": {"id": NEW_IMAGE}}}})).await?;
            for (done, _) in before.iter().enumerate() {
                eventually(&format!("more than {done} are replaced"), async || {
                    let new = rig.instances().iter().filter(|one| one.image == NEW_IMAGE).count();
                    Ok(Look::when(new > done, format!("{new} are new")))
                })
                .await?;
            }
            rig.running("workers", 5).await
        })
        .await?;
        ensure!(rig.instances().iter().all(|one| one.image == NEW_IMAGE));
        ensure!(service.fewest() >= 9, "only {} pods were ready", service.fewest());
        ensure!(service.evictions().await?.iter().any(|write| write.code == 429), "the budget never refused");
        let ended = ended_by_us(rig, mark)?;
        ensure!(ended == ids(&before), "{ended:?}");
        let mut pods = 0;
        for one in &before {
            pods += service.was_drained(&one.id, &one.private_dns_name, END).await?;
        }
        ensure!(pods >= 10, "{pods} pods were on the old Nodes");
        ensure!(lowest.get() >= 5, "desired fell to {}", lowest.get());
        no_orphans(rig)?;
        service.end().await?;
        rig.delete("workers").await
    })
    .await
}

// Pains: P17, P51
#[tokio::test]
async fn a_health_replacement_is_drained_through_kills() -> Result<()> {
    rule("ends-health", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(3), 3).await?;
        let service = rig.serve(6, Some(5)).await?;
        let sick = rig.instances()[0].clone();
        let (mark, lowest) = (rig.mark(), Lowest::of(rig)?);
        rig.through_kills("ends-health", 4, async {
            let params = Tree::new()
                .with("InstanceId", &sick.id)
                .with("HealthStatus", "Unhealthy")
                .with("ShouldRespectGracePeriod", false);
            rig.somebody_calls("SetInstanceHealth", params)?;
            eventually("it is replaced", async || {
                let there = rig.instances().iter().any(|one| one.id == sick.id);
                Ok(Look::when(!there, "it runs"))
            })
            .await?;
            rig.running("workers", 3).await
        })
        .await?;
        ensure!(service.was_drained(&sick.id, &sick.private_dns_name, COMPLETE).await? >= 2);
        let answers = rig.calls_of(COMPLETE);
        ensure!(answers.iter().all(|call| call.params["LifecycleActionResult"] == "CONTINUE"), "{answers:?}");
        ensure!(ended_by_us(rig, mark)?.is_empty(), "{:?}", ended_by_us(rig, mark));
        ensure!(service.fewest() >= 5, "only {} pods were ready", service.fewest());
        ensure!(lowest.get() == 3, "desired fell to {}", lowest.get());
        no_orphans(rig)?;
        service.end().await?;
        rig.delete("workers").await
    })
    .await
}

// Pains: P16, P45, W11
#[tokio::test]
#[ignore = "long form: 12 kills"]
async fn a_scale_in_from_ten_to_three_is_drained_through_kills() -> Result<()> {
    rule("ends-shrink", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(10), 10).await?;
        let service = rig.serve(10, Some(9)).await?;
        let before = rig.instances();
        // The newest, which nothing else would choose.
        let marked: Vec<InstanceDump> = before.iter().rev().take(2).cloned().collect();
        let (mark, lowest) = (rig.mark(), Lowest::of(rig)?);
        rig.through_kills("ends-shrink", 12, async {
            for one in &marked {
                let ask =
                    json!({"metadata": {"annotations": {annotations::DELETE_MACHINE: "true"}}}).to_string();
                let machine = machine_name("workers", &one.id);
                rig.scenario
                    .kubectl(&["patch", "machine", &machine, "--type=merge", "--patch", &ask])
                    .await?;
            }
            rig.scale("workers", 3).await?;
            eventually("it has begun to shrink", async || {
                let left = rig.instances().len();
                Ok(Look::when(left < 10, "all run"))
            })
            .await?;
            rig.running("workers", 3).await
        })
        .await?;
        let left = ids(&rig.instances());
        let gone: Vec<&InstanceDump> = before.iter().filter(|one| !left.contains(&one.id)).collect();
        ensure!(gone.len() == 7 && left.is_subset(&ids(&before)), "{left:?}");
        ensure!(marked.iter().all(|one| !left.contains(&one.id)), "a marked one is left: {left:?}");
        let ended = ended_by_us(rig, mark)?;
        ensure!(ended == ids(gone.iter().copied()), "{ended:?}");
        let mut pods = 0;
        for one in &gone {
            pods += service.was_drained(&one.id, &one.private_dns_name, END).await?;
        }
        ensure!(pods >= 1, "no pod was on a Node that went");
        ensure!(service.fewest() >= 9, "only {} pods were ready", service.fewest());
        ensure!(lowest.get() == 3, "desired fell to {}", lowest.get());
        no_orphans(rig)?;
        service.end().await?;
        rig.delete("workers").await
    })
    .await
}

// Pains: P23, W12, W19
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn a_deletion_of_five_is_drained_through_kills() -> Result<()> {
    rule("ends-deletion", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(5), 5).await?;
        // Without a budget: where no Node is left, one would hold the last pods for ever.
        let service = rig.serve(10, None).await?;
        let before = rig.instances();
        let mark = rig.mark();
        rig.through_kills("ends-deletion", 6, async {
            rig.scenario.kubectl(&["delete", "machinepool", "workers", "--wait=false"]).await?;
            rig.gone("workers").await
        })
        .await?;
        let ended = ended_by_us(rig, mark)?;
        ensure!(ended == ids(&before), "{ended:?}");
        let mut pods = 0;
        for one in &before {
            pods += service.was_drained(&one.id, &one.private_dns_name, END).await?;
        }
        ensure!(pods >= 10, "{pods} pods were on the Nodes");
        service.end().await
    })
    .await
}

// Rules: D11
// Pains: P32, P43
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn the_machine_of_an_instance_that_died_is_deleted_through_kills() -> Result<()> {
    rule("ends-direct", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        // A budget that allows nothing: a drain would never end.
        let service = rig.serve(2, Some(2)).await?;
        let dead = rig.instances()[0].clone();
        let machine = machine_name("workers", &dead.id);
        let mark = rig.mark();
        rig.through_kills("ends-direct", 3, async {
            let scope = Scope::region(&rig.scenario.region);
            ensure!(rig.scenario.simulator().kill(&scope, &dead.id), "it was there");
            eventually("its Machine is gone", async || {
                Ok(Look::when(rig.machines().get_opt(&machine).await?.is_none(), "it is there"))
            })
            .await?;
            rig.running("workers", 2).await
        })
        .await?;
        ensure!(ended_by_us(rig, mark)?.is_empty(), "{:?}", ended_by_us(rig, mark));
        let status = rig.pools().get("workers").await?.status.context("no status")?;
        ensure!(condition(&status.conditions, "Ready") == "True/Ready", "{:?}", status.conditions);
        no_orphans(rig)?;
        service.end().await?;
        rig.delete("workers").await
    })
    .await
}
