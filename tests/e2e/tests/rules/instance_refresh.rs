//! A rollout by AWS itself: its instance refresh ends the nodes, our hook holds each until its pods are evicted, and the
//! manager dies three times on the way.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use capasg_e2e::{COMPLETE, Rig, Setup, condition, ends_of, eventually, rule};
use capasg_environment::Look;
use capasg_fake_aws::{LogEntry, Outcome};
use serde_json::{Value, json};

const NEW_IMAGE: &str = "ami-0b1c2d3e";
const START: &str = "StartInstanceRefresh";
const CANCEL: &str = "CancelInstanceRefresh";

fn strategy(preferences: Value) -> Value {
    let mut preferences = preferences;
    if preferences["instanceWarmupSeconds"].is_null() {
        preferences["instanceWarmupSeconds"] = json!(0);
    }
    json!({"type": "InstanceRefresh", "instanceRefresh": preferences})
}

/// The calls of an operation that AWS carried out, whether or not the manager lived to see the answer.
fn done(rig: &Rig<'_>, action: &str) -> Vec<LogEntry> {
    rig.calls_of(action).into_iter().filter(|call| call.outcome == Outcome::Ok).collect()
}

async fn is_up_to_date(rig: &Rig<'_>, name: &str) -> Result<bool> {
    let status = rig.pools().get(name).await?.status.unwrap_or_default();
    let says = |kind: &str| condition(&status.conditions, kind);
    Ok(says("UpToDate") == "True/UpToDate" && says("RollingOut") == "False/NotRollingOut")
}

async fn replaced(rig: &Rig<'_>, before: &BTreeSet<String>) -> Result<()> {
    rig.replaced(before).await?;
    rig.running("workers", before.len()).await?;
    eventually("the pool is up to date", async || {
        Ok(Look::when(is_up_to_date(rig, "workers").await?, "it says something else"))
    })
    .await
}

// Pains: P12, P16, W8
#[tokio::test]
#[ignore = "long form: 10 kills"]
async fn an_instance_refresh_of_four_is_drained_through_kills() -> Result<()> {
    rule("refresh-kills", Setup::default(), async |rig| {
        let pool = rig.pool("workers").replicas(4).with("spec/rollout/strategy", strategy(json!({})));
        rig.run(&pool, 4).await?;
        // Two pods on each Node, of which one may be away: the second eviction of every Node is refused at first.
        let service = rig.serve(8, Some(7)).await?;
        let before = rig.instances();
        let ids: BTreeSet<String> = before.iter().map(|one| one.id.clone()).collect();
        let mark = rig.mark();
        rig.through_kills("refresh-kills", 10, async {
            rig.patch_pool("workers", &json!({"spec": {"machine": {"image": {"id": NEW_IMAGE}}}})).await?;
            replaced(rig, &ids).await
        })
        .await?;
        ensure!(rig.instances().iter().all(|one| one.image == NEW_IMAGE));
        let started = done(rig, START);
        ensure!(started.len() == 1, "{} refreshes: {started:?}", started.len());
        let version = started[0].params["DesiredConfiguration"]["LaunchTemplate"]["Version"].as_str();
        ensure!(version == Some("2"), "{:?}", started[0].params);
        ensure!(rig.group()?.template.1 == "2", "the group is there by AWS's own doing");
        ensure!(ends_of(&rig.mutations_since(mark)).is_empty(), "AWS ends them, not we");
        ensure!(service.fewest() >= 7, "only {} pods were ready", service.fewest());
        ensure!(service.evictions().await?.iter().any(|write| write.code == 429), "the budget never refused");
        let mut pods = 0;
        for one in &before {
            pods += service.was_drained(&one.id, &one.private_dns_name, COMPLETE).await?;
        }
        ensure!(pods >= 8, "{pods} pods were on the old Nodes");
        service.end().await?;
        rig.delete("workers").await
    })
    .await
}

/// A pause in the middle ends the refresh, and nobody takes that for a failure, a manager that died meanwhile included.
// Pains: P54, W8
#[tokio::test]
async fn a_pause_cancels_a_refresh_and_another_follows_it() -> Result<()> {
    rule("refresh-pause", Setup::default(), async |rig| {
        // AWS waits long after the first one, so that it is paused in the middle.
        let slow = strategy(json!({"instanceWarmupSeconds": 3600}));
        let pool = rig.pool("workers").replicas(3).with("spec/rollout/strategy", slow);
        rig.run(&pool, 3).await?;
        let ids: BTreeSet<String> = rig.instances().iter().map(|one| one.id.clone()).collect();
        let left = || rig.instances().iter().filter(|one| ids.contains(&one.id)).count();
        rig.patch_pool("workers", &json!({"spec": {"machine": {"image": {"id": NEW_IMAGE}}}})).await?;
        eventually("AWS ends one", async || {
            let is_ending = |state: &String| state.starts_with("Terminating");
            let ends = rig.instances().iter().any(|one| one.lifecycle_state.as_ref().is_some_and(is_ending));
            Ok(Look::when(ends, "none ends"))
        })
        .await?;
        rig.patch_pool("workers", &json!({"spec": {"rollout": {"mode": "Paused"}}})).await?;
        eventually("AWS is told to stop", async || {
            Ok(Look::when(done(rig, CANCEL).len() == 1, format!("{:?}", rig.calls_of(CANCEL))))
        })
        .await?;
        rig.kill_manager().await?;
        rig.start_manager().await?;
        eventually("the pool waits", async || {
            let status = rig.pools().get("workers").await?.status.unwrap_or_default();
            let told = condition(&status.conditions, "UpToDate");
            let rolling = condition(&status.conditions, "RollingOut");
            let waits = told == "False/RolloutPaused" && rolling == "False/NotRollingOut";
            Ok(Look::when(waits, format!("{told} {rolling}")))
        })
        .await?;
        rig.running("workers", 3).await?;
        ensure!(left() == 2, "{} of 3 are left", left());
        ensure!(done(rig, START).len() == 1, "another one began in the pause");
        let goes_on = json!({"mode": "Automatic", "strategy": strategy(json!({}))});
        rig.patch_pool("workers", &json!({"spec": {"rollout": goes_on}})).await?;
        replaced(rig, &ids).await?;
        ensure!(done(rig, START).len() == 2 && done(rig, CANCEL).len() == 1);
        rig.delete("workers").await
    })
    .await
}

// Pains: W7, W26
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn an_alarm_rolls_a_refresh_back_and_it_is_not_repeated() -> Result<()> {
    rule("refresh-alarm", Setup::default(), async |rig| {
        let preferences = json!({"alarms": ["errors"], "onFailure": "RollBack"});
        let pool = rig.pool("workers").replicas(2).with("spec/rollout/strategy", strategy(preferences));
        rig.run(&pool, 2).await?;
        rig.patch_pool("workers", &json!({"spec": {"machine": {"image": {"id": NEW_IMAGE}}}})).await?;
        eventually("one is new", async || {
            let new = rig.instances().iter().filter(|one| one.image == NEW_IMAGE).count();
            Ok(Look::when(new > 0, "none is"))
        })
        .await?;
        let scope = capasg_fake_aws::Scope::region(&rig.scenario.region);
        rig.scenario.simulator().set_alarm(&scope, "errors", true);
        eventually("the pool says that it was rolled back", async || {
            let status = rig.pools().get("workers").await?.status.unwrap_or_default();
            let told = condition(&status.conditions, "UpToDate");
            Ok(Look::when(told == "False/RolledBack", told))
        })
        .await?;
        rig.running("workers", 2).await?;
        ensure!(rig.instances().iter().all(|one| one.image != NEW_IMAGE), "all is as it was");
        rig.kill_manager().await?;
        rig.start_manager().await?;
        rig.scale("workers", 3).await?;
        rig.running("workers", 3).await?;
        ensure!(done(rig, START).len() == 1, "not repeated by itself");
        rig.scenario.simulator().set_alarm(&scope, "errors", false);
        let ids: BTreeSet<String> = rig.instances().iter().map(|one| one.id.clone()).collect();
        let retry = json!({"spec": {"retryToken": "1"}});
        rig.patch_pool("workers", &retry).await?;
        replaced(rig, &ids).await?;
        ensure!(rig.instances().iter().all(|one| one.image == NEW_IMAGE));
        rig.delete("workers").await
    })
    .await
}
