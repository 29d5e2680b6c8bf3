//! J3, J4: a topology that nobody changes is written by nobody.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{CLUSTER, DEADLINE, Rig, Setup, Topology, eventually, rule};
use capasg_environment::{Look, Write, wait_until};
use capasg_test_objects::is_long;
use chrono::{DateTime, Utc};
use kube::{ResourceExt, api::ListParams};
use serde_json::json;

/// How long the topology is watched beside other tests.
const WATCHED: Duration = Duration::from_secs(90);
/// How long it is watched when the contract is gone through rule by rule.
const WATCHED_FOR_CONFORMANCE: Duration = Duration::from_mins(10);
/// How long nothing changes in a topology that is settled.
const SETTLED: Duration = Duration::from_secs(15);
/// How often the topology controller is made to compare everything meanwhile.
const COMPARED_EVERY: Duration = Duration::from_secs(20);

/// All that a class, core, the bootstrap provider and we make of a pool.
const KINDS: &str = "asgmachinepools,asgmachinepooltemplates,asgmachines,machinepools,machines,kubeadmconfigs,\
                     kubeadmconfigtemplates,clusterclasses";

fn watched() -> Duration {
    if is_long() { WATCHED_FOR_CONFORMANCE } else { WATCHED }
}

/// Writes since `begin`, but for the Cluster's own, which the test edits, and what the bootstrap provider does when it
/// rotates its token: the config, the Secret, and our status, which names the launch template's new version.
fn unasked(rig: &Rig<'_>, begin: DateTime<Utc>) -> Result<Vec<Write>> {
    let writes: Vec<Write> =
        rig.writes()?.into_iter().filter(|write| write.at >= begin && !write.dry_run).collect();
    let of_the_token =
        |write: &Write| write.user.contains("kubeadm-bootstrap") && write.resource != "machinepools";
    let rotated = writes.iter().find(|write| of_the_token(write)).map(|write| write.at);
    let follows = |write: &Write| {
        let ours =
            write.user == rig.user() && write.resource == "asgmachinepools" && write.subresource == "status";
        ours && rotated.is_some_and(|rotated| write.at >= rotated)
    };
    Ok(writes
        .into_iter()
        .filter(|write| write.resource != "clusters" && !of_the_token(write) && !follows(write))
        .collect())
}

/// Waits until nothing has changed for a while: the objects of a cluster settle a little after it runs.
async fn settled(rig: &Rig<'_>) -> Result<()> {
    let (mut last, mut since) = (Vec::new(), Instant::now());
    eventually("the topology is settled", async || {
        let mut now = Vec::new();
        for pool in rig.pools().list(&ListParams::default()).await? {
            now.push(pool.resource_version());
        }
        for api in [rig.clusters(), rig.machine_pools(), rig.machines()] {
            now.extend(api.list(&ListParams::default()).await?.iter().map(ResourceExt::resource_version));
        }
        if now != last {
            (last, since) = (now, Instant::now());
        }
        Ok(Look::when(since.elapsed() > SETTLED, format!("unchanged for {:?}", since.elapsed())))
    })
    .await
}

/// Makes the topology controller compare everything, by an edit that means nothing: variables in another order.
async fn compare(rig: &Rig<'_>, topology: &Topology<'_>) -> Result<()> {
    let before = rig.clusters().get(CLUSTER).await?;
    let mut variables =
        before.data["spec"]["topology"]["variables"].as_array().context("no variables")?.clone();
    variables.reverse();
    topology.patch(&json!({"spec": {"topology": {"variables": variables}}})).await?;
    let after = rig.clusters().get(CLUSTER).await?;
    ensure!(after.metadata.generation > before.metadata.generation, "the edit changed nothing");
    topology.reconciled("True/ReconcileSucceeded", "").await
}

// Rules: J3, J4
#[tokio::test]
async fn an_unchanged_topology_is_not_written() -> Result<()> {
    rule("j4-stable", Setup::bare(), async |rig| {
        let version = rig.scenario.environment.tools().kubernetes_version().to_owned();
        let topology = rig.topology(&version, 2, |_| ()).await?;
        topology.running("workers", 2, &version).await?;
        topology.reconciled("True/ReconcileSucceeded", "").await?;
        // With every variable that the class has, so that every patch is compared.
        topology.set_variable("tags", json!({"team": "nights"})).await?;
        topology.reconciled("True/ReconcileSucceeded", "").await?;
        topology.running("workers", 2, &version).await?;
        settled(rig).await?;

        let (begin, mark) = (Utc::now(), rig.mark());
        let before = topology.versions_of(KINDS).await?;
        ensure!(before.len() >= 10, "{before:?}");
        let (clock, mut compared) = (Instant::now(), 0);
        while clock.elapsed() < watched() {
            compare(rig, &topology).await?;
            compared += 1;
            let unasked = unasked(rig, begin)?;
            ensure!(unasked.is_empty(), "written although nothing changed: {unasked:?}");
            let next = COMPARED_EVERY * compared;
            wait_until(DEADLINE, "the next comparison", || async {
                Ok(Look::when(clock.elapsed() >= next, format!("{:?}", clock.elapsed())))
            })
            .await?;
        }
        let writes = rig.writes()?;
        let rotated = writes.iter().any(|write| {
            write.at >= begin
                && write.user.contains("kubeadm-bootstrap")
                && write.resource == "kubeadmconfigs"
        });
        let after = topology.versions_of(KINDS).await?;
        let same = |kind: &str| {
            let of = |all: &[String]| {
                all.iter().filter(|line| line.starts_with(kind)).cloned().collect::<Vec<_>>()
            };
            of(&before) == of(&after)
        };
        for kind in ["ASGMachine ", "ASGMachinePoolTemplate ", "MachinePool ", "Machine ", "ClusterClass "] {
            ensure!(same(kind), "{kind}: {before:?} {after:?}");
        }
        // A rotated token is in the config, and in the launch template that our status names.
        ensure!(rotated || before == after, "{before:?} {after:?}");
        let templates =
            rig.mutations_since(mark).into_iter().filter(|call| call.action != "CreateLaunchTemplateVersion");
        let others: Vec<_> = templates.map(|call| call.action).collect();
        ensure!(rotated || rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));
        ensure!(
            others.iter().all(|action| ["UpdateAutoScalingGroup", "DeleteLaunchTemplateVersions"]
                .contains(&action.as_str())),
            "{others:?}"
        );
        Ok(())
    })
    .await
}
