//! At rest: a pool that has nothing to do costs nothing, however many pools there are.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{Rig, Setup, eventually, rule};
use capasg_environment::Look;
use capasg_fake_aws::LogEntry;
use chrono::{DateTime, TimeDelta, Utc};
use kube::{ResourceExt as _, api::ListParams};
use serde_json::json;

/// Longer than the calls of one poll take, and shorter than the time between two.
const A_POLL: TimeDelta = TimeDelta::seconds(20);

/// The resourceVersions of all our objects.
async fn versions(rig: &Rig<'_>) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for pool in rig.pools().list(&ListParams::default()).await? {
        all.insert(pool.name_any(), pool.resource_version().unwrap_or_default());
    }
    for machine in rig.asg_machines().list(&ListParams::default()).await? {
        all.insert(machine.name_any(), machine.resource_version().unwrap_or_default());
    }
    Ok(all)
}

/// Waits for `seconds` of the cloud's time without a change of our objects.
async fn still_for(rig: &Rig<'_>, seconds: i64) -> Result<(DateTime<Utc>, BTreeMap<String, String>)> {
    let clock = || rig.scenario.simulator().now();
    let mut since = (clock(), versions(rig).await?);
    eventually(&format!("{seconds} s without a change"), async || {
        let now = versions(rig).await?;
        if now != since.1 {
            since = (clock(), now);
        }
        let still = clock() - since.0;
        Ok(Look::from_option(
            (still >= TimeDelta::seconds(seconds)).then(|| since.clone()),
            format!("{still}"),
        ))
    })
    .await
}

#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn a_running_pool_writes_nothing_for_a_minute() -> Result<()> {
    rule("quiet-one", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(3), 3).await?;
        still_for(rig, 10).await?;
        let mark = rig.mark();
        let before = versions(rig).await?;
        let (_, after) = still_for(rig, 60).await?;
        ensure!(before == after, "our objects changed: {before:?} {after:?}");
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));
        let reads: Vec<_> = rig.calls_since(mark).into_iter().map(|call| call.action).collect();
        // A minute holds one poll, or two if it begins right before one; each is one read.
        ensure!(
            (1..=2).contains(&reads.len()) && reads.iter().all(|read| read == "DescribeAutoScalingGroups"),
            "{reads:?}"
        );
        rig.delete("workers").await
    })
    .await
}

#[tokio::test]
#[ignore = "long form: 200 pools"]
async fn a_poll_of_200_pools_is_two_calls() -> Result<()> {
    rule("quiet-200", Setup::default(), async |rig| {
        let names: Vec<String> = (0..200).map(|number| format!("pool-{number:03}")).collect();
        // All from one Secret, in a few documents.
        let shared =
            capasg_e2e::manifest::Bootstrap::Secret { name: "shared".to_owned(), value: rig.user_data() };
        for chunk in names.chunks(20) {
            let mut items = Vec::new();
            for name in chunk {
                let pool = rig.pool(name).replicas(0).bootstrap(shared.clone());
                items.extend([pool.bootstrap_object().context("no Secret")?, pool.ours(), pool.owner()]);
            }
            rig.scenario
                .apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())
                .await?;
        }
        eventually("all are provisioned", async || {
            let pools = rig.pools().list(&ListParams::default()).await?.items;
            let ready =
                pools.iter().filter(|pool| pool.status.as_ref().is_some_and(|status| status.ready)).count();
            Ok(Look::when(ready == 200 && rig.groups().len() == 200, format!("{ready} are")))
        })
        .await?;
        let created = rig.calls_since(0).len();
        ensure!(created <= 200 * 8, "{created} calls for 200 pools");
        still_for(rig, 15).await?;

        // Two whole polls: each is over some time after its first read, long before the next begins.
        let mark = rig.mark();
        let polls = eventually("two polls", async || {
            let mut polls: Vec<Vec<LogEntry>> = Vec::new();
            for read in rig.calls_since(mark) {
                match polls.last_mut() {
                    Some(poll) if read.time - poll[0].time < A_POLL => poll.push(read),
                    _ => polls.push(vec![read]),
                }
            }
            let now = rig.scenario.simulator().now();
            let complete = polls.iter().filter(|poll| now - poll[0].time >= A_POLL).count();
            Ok(Look::from_option(
                (complete >= 2).then(|| polls[..complete].to_vec()),
                format!("{complete} of {} polls are complete", polls.len()),
            ))
        })
        .await?;
        for poll in &polls {
            let actions: Vec<_> = poll.iter().map(|call| call.action.as_str()).collect();
            ensure!(actions == ["DescribeAutoScalingGroups"; 2], "{actions:?}");
        }
        ensure!(rig.mutations_since(mark).is_empty());
        Ok(())
    })
    .await
}
