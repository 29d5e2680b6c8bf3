//! Waiting until the manager has reconciled a pool again, so that a check that nothing was written can fail.

use anyhow::{Context as _, Result};
use capasg_e2e::{Rig, eventually};
use capasg_environment::Look;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

/// The annotation by which [`reconciled`] wakes the manager; it reads none of this name.
const WOKEN: &str = "test.example.org/woken";
/// A mutation that a reconcile sends is in the log of the fake AWS within this time.
const SENT: TimeDelta = TimeDelta::seconds(2);
/// A manager that has ended no reconcile for this long has nothing to do.
const RESTS: TimeDelta = TimeDelta::seconds(10);

/// How many reconciles of pools the manager has ended without an error.
pub async fn succeeded(rig: &Rig<'_>) -> Result<u64> {
    count(rig, "outcome=\"ok\"").await
}

/// How many reconciles of pools have ended, with this label.
async fn count(rig: &Rig<'_>, label: &str) -> Result<u64> {
    let metrics = rig.metrics().await?;
    let counted = metrics.lines().filter(|line| {
        line.starts_with("capasg_reconciles_total{")
            && line.contains("controller=\"asgmachinepool\"")
            && line.contains(label)
    });
    counted.map(|line| Ok(line.rsplit(' ').next().context("no value")?.parse::<u64>()?)).sum()
}

/// Edits the pool so that it is reconciled, and waits until a reconcile that began after the edit has ended. The first
/// that ends may have begun before, so that two are waited for.
pub async fn reconciled(rig: &Rig<'_>, pool: &str) -> Result<()> {
    for _ in 0..2 {
        let before = count(rig, "").await?;
        let now = Utc::now().to_rfc3339();
        rig.patch_pool(pool, &json!({"metadata": {"annotations": {WOKEN: now}}})).await?;
        eventually("another reconcile has ended", async || {
            let after = count(rig, "").await?;
            Ok(Look::when(after > before, format!("{after} reconciles")))
        })
        .await?;
    }
    Ok(())
}

/// Waits until the manager has ended no reconcile for a while: what wakes a pool then is not its own writes.
pub async fn rests(rig: &Rig<'_>) -> Result<()> {
    let mut since = (Utc::now(), count(rig, "").await?);
    eventually("no pool is reconciled", async || {
        let (now, reconciles) = (Utc::now(), count(rig, "").await?);
        if reconciles != since.1 {
            since = (now, reconciles);
        }
        Ok(Look::when(now - since.0 >= RESTS, format!("{reconciles} reconciles")))
    })
    .await
}

/// Waits until the manager has read groups after this moment, and has had the time to act on it.
pub async fn polled(rig: &Rig<'_>, since: DateTime<Utc>) -> Result<()> {
    eventually("the groups are read", async || {
        let read = rig.read_after(since);
        let acted = read.is_some_and(|at| Utc::now() - at > SENT);
        Ok(Look::when(acted, format!("read at {read:?}")))
    })
    .await
}
