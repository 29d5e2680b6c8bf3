//! B: what core reads of the pool.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use capasg_api::{ASGMachinePool, GROUP, VERSION, conditions, pool::Phase};
use capasg_e2e::{DEADLINE, Rig, Setup, eventually, rule, text};
use capasg_environment::{Look, dynamic};
use capasg_fake_aws::Fault;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::{
    api::core::v1::Node, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

use crate::reconciled;

/// Fields of older contracts that make core panic where a pool has them (B7).
const FORBIDDEN: [&str; 2] = ["failureReason", "failureMessage"];

async fn listed(rig: &Rig<'_>, pool: &str) -> Result<Vec<String>> {
    Ok(rig.pools().get(pool).await?.spec.provider_id_list)
}

// Rules: B1, B2
#[tokio::test]
async fn provider_id_list_matches_the_nodes() -> Result<()> {
    rule("b1-b2-list", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(3), 3).await?;
        let list = listed(rig, "workers").await?;
        let instances = rig.instances();
        let wanted: Vec<String> =
            instances.iter().map(|one| format!("aws:///{}/{}", one.zone, one.id)).collect();
        let nodes = Api::<Node>::all(rig.cluster()?.client().await?).list(&ListParams::default()).await?;
        let carried: Vec<String> = nodes.into_iter().filter_map(|node| node.spec?.provider_id).collect();
        for id in &wanted {
            ensure!(list.contains(id), "{id} is not in {list:?}");
            ensure!(carried.contains(id), "no Node carries {id}");
        }
        ensure!(list.len() == wanted.len());
        let owner = rig.machine_pools().get("workers").await?;
        ensure!(owner.data["spec"]["providerIDList"] == json!(list), "core has not copied the list");
        ensure!(owner.data["status"]["nodeRefs"].as_array().map(Vec::len) == Some(3));
        rig.delete("workers").await
    })
    .await
}

// Rules: B3
#[tokio::test]
async fn provider_id_list_is_sorted_and_written_only_on_change() -> Result<()> {
    rule("b3-stable", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(4), 4).await?;
        let list = listed(rig, "workers").await?;
        ensure!(list.is_sorted_by(|a, b| a < b), "not sorted, or twice the same: {list:?}");
        ensure!(list.iter().all(|id| !id.is_empty()));

        // Each edit of the MachinePool is a reconcile; none of them may write.
        let settled = settled(rig, "workers").await?;
        let reconciles = reconciled::succeeded(rig).await?;
        let mark = rig.mark();
        for touch in 1..=5 {
            let note = json!({"metadata": {"annotations": {"test/touch": touch.to_string()}}});
            rig.patch_owner("workers", &note).await?;
            eventually("another reconcile", async || {
                let now = reconciled::succeeded(rig).await?;
                Ok(Look::when(now >= reconciles + touch, format!("{now} of {}", reconciles + touch)))
            })
            .await?;
        }
        let after = rig.pools().get("workers").await?.resource_version();
        ensure!(after == settled, "resourceVersion went from {settled:?} to {after:?}");
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));
        rig.delete("workers").await
    })
    .await
}

/// The resourceVersion of a pool that has nothing more to say: equal over three reconciles of the manager's own.
async fn settled(rig: &Rig<'_>, pool: &str) -> Result<Option<String>> {
    let mut same = 0;
    let mut last = None;
    eventually("the pool is settled", async || {
        let now = rig.pools().get(pool).await?.resource_version();
        same = if now == last { same + 1 } else { 0 };
        last.clone_from(&now);
        Ok(if same >= 30 { Look::Done(now) } else { Look::Not(format!("at {now:?}")) })
    })
    .await
}

/// Every version of the pool that was ever written, as a watch shows them, with all fields that the API server keeps.
struct Versions {
    seen: Arc<Mutex<Vec<DynamicObject>>>,
    _task: AbortOnDropHandle<()>,
}

impl Versions {
    fn watch(rig: &Rig<'_>) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&seen);
        let (client, namespace) = (&rig.scenario.client, &rig.scenario.namespace);
        let pools = dynamic(client, namespace, GROUP, VERSION, "ASGMachinePool");
        let stream = watcher(pools, watcher::Config::default()).default_backoff().applied_objects();
        let task = tokio::spawn(async move {
            let mut stream = Box::pin(stream.into_stream());
            while let Some(Ok(pool)) = stream.next().await {
                into.lock().unwrap_or_else(PoisonError::into_inner).push(pool);
            }
        });
        Self { seen, _task: AbortOnDropHandle::new(task) }
    }

    fn all(&self) -> Vec<DynamicObject> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Both fields that say "provisioned" are equal in every version, become true, and stay so.
fn stays_ready(versions: &[DynamicObject]) -> Result<()> {
    let mut provisioned = false;
    for raw in versions {
        let at = raw.resource_version().unwrap_or_default();
        let pool: ASGMachinePool = serde_json::from_value(serde_json::to_value(raw)?)?;
        let status = pool.status.unwrap_or_default();
        ensure!(
            status.ready == status.initialization.provisioned,
            "version {at}: ready and provisioned differ"
        );
        ensure!(status.ready || !provisioned, "version {at}: ready was taken back");
        provisioned |= status.ready;
    }
    ensure!(provisioned, "no version is ready");
    Ok(())
}

// Rules: B4, B5, B6
// Pains: P40
#[tokio::test]
async fn every_version_ever_written_is_consistent() -> Result<()> {
    rule("b4-b5-b6-versions", Setup::default(), async |rig| {
        let versions = Versions::watch(rig);
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        rig.scale("workers", 4).await?;
        rig.running("workers", 4).await?;
        rig.scale("workers", 0).await?;
        rig.running("workers", 0).await?;
        rig.scale("workers", 1).await?;
        rig.running("workers", 1).await?;
        rig.delete("workers").await?;

        let all = versions.all();
        ensure!(all.len() > 10, "only {} versions were seen", all.len());
        stays_ready(&all)?;
        let mut behind = false;
        for raw in &all {
            let at = raw.resource_version().unwrap_or_default();
            let pool: ASGMachinePool = serde_json::from_value(serde_json::to_value(raw)?)?;
            let status = pool.status.clone().unwrap_or_default();
            // The list is written first and the count right after it: core skips what lies between.
            let inconsistent = status.replicas != 0 && pool.spec.provider_id_list.is_empty();
            ensure!(
                !(inconsistent && behind),
                "version {at}: still {} replicas and an empty list",
                status.replicas
            );
            behind = inconsistent;
            for field in FORBIDDEN {
                let written = raw.data["status"].get(field);
                ensure!(written.is_none(), "version {at} has {field}, which core panics on");
            }
        }
        // What the definition does not have, the API server drops, so that nothing could write it.
        let definitions = Api::<CustomResourceDefinition>::all(rig.scenario.client.clone());
        let definition = definitions.get(&format!("asgmachinepools.{GROUP}")).await?;
        for version in &definition.spec.versions {
            let schema = serde_json::to_value(&version.schema)?;
            let status = &schema["openAPIV3Schema"]["properties"]["status"];
            ensure!(status["properties"]["ready"].is_object(), "no status in {schema}");
            ensure!(
                status["x-kubernetes-preserve-unknown-fields"] != true,
                "{} keeps all fields",
                version.name
            );
            for field in FORBIDDEN {
                ensure!(status["properties"].get(field).is_none(), "{} has {field}", version.name);
            }
        }
        Ok(())
    })
    .await
}

// Rules: B6
#[tokio::test]
async fn core_waits_for_ready_and_for_nothing_else() -> Result<()> {
    rule("b6-ready", Setup::default().without_manager(), async |rig| {
        rig.apply(&rig.pool("workers").replicas(1)).await?;
        let pools = rig.pools();
        let provisioned = async || -> Result<bool> {
            let owner = rig.machine_pools().get("workers").await?;
            Ok(owner.data["status"]["initialization"]["infrastructureProvisioned"] == true)
        };
        let status = |status: serde_json::Value| Patch::Merge(json!({"status": status}));
        let contract = status(json!({"initialization": {"provisioned": true}}));
        pools.patch_status("workers", &PatchParams::default(), &contract).await?;
        // An edit of the MachinePool that core has observed shows that it has looked at the pool since.
        let generation = {
            rig.scale("workers", 2).await?;
            rig.machine_pools().get("workers").await?.metadata.generation
        };
        eventually("core has looked", async || {
            let owner = rig.machine_pools().get("workers").await?;
            let observed = owner.data["status"]["observedGeneration"].as_i64();
            Ok(Look::when(observed == generation, format!("observed {observed:?}")))
        })
        .await?;
        ensure!(
            !provisioned().await?,
            "core reads initialization.provisioned now: ready may go (contract, difference 1)"
        );

        pools.patch_status("workers", &PatchParams::default(), &status(json!({"ready": true}))).await?;
        eventually("core calls the pool provisioned", async || {
            Ok(Look::when(provisioned().await?, "it does not"))
        })
        .await
    })
    .await
}

// Rules: B8
#[tokio::test]
async fn ready_waits_for_no_node() -> Result<()> {
    rule("b8-no-nodes", Setup::default(), async |rig| {
        let ready = async |name: &str| {
            eventually("ready", async || {
                let status = rig.pools().get(name).await?.status.unwrap_or_default();
                Ok(Look::when(status.ready && status.initialization.provisioned, format!("{status:?}")))
            })
            .await
        };
        rig.apply(&rig.pool("none").replicas(0)).await?;
        ready("none").await?;
        let group = rig.group()?;
        ensure!((group.min, group.desired) == (0, 0), "{group:?}");
        ensure!(rig.templates().len() == 1);
        rig.running("none", 0).await?;
        rig.delete("none").await?;

        // Machines whose user data let them join nothing.
        let deaf = capasg_e2e::manifest::Bootstrap::Secret {
            name: "deaf".to_owned(),
            value: "#cloud-config\n".to_owned(),
        };
        rig.apply(&rig.pool("deaf").replicas(1).bootstrap(deaf)).await?;
        ready("deaf").await?;
        // Core has followed as far as it can without a Node: it calls the pool provisioned, and its Machine as well.
        eventually("its Machine waits for a Node", async || {
            let owner = rig.machine_pools().get("deaf").await?;
            let machines = rig.machines_of("deaf").await?;
            let phases: Vec<&str> = machines.iter().map(|one| text(one, "/status/phase")).collect();
            let provisioned = owner.data["status"]["initialization"]["infrastructureProvisioned"] == true;
            let current = owner.data["status"]["observedGeneration"].as_i64() == owner.metadata.generation;
            Ok(Look::when(
                provisioned && current && phases == ["Provisioned"],
                format!("provisioned {provisioned}, current {current}, Machines {phases:?}"),
            ))
        })
        .await?;
        reconciled::reconciled(rig, "deaf").await?;
        let owner = rig.machine_pools().get("deaf").await?;
        let (phase, refs) = (text(&owner, "/status/phase"), &owner.data["status"]["nodeRefs"]);
        ensure!(!phase.is_empty() && phase != "Running", "a pool without a Node is {phase:?}");
        ensure!(refs.as_array().is_none_or(Vec::is_empty), "{refs}");
        ready("deaf").await?;
        // The contract's fields say that AWS is done; the conditions say that the Node is missing.
        let status = rig.pools().get("deaf").await?.status.unwrap_or_default();
        let is = |condition| conditions::is_true(&status.conditions, condition);
        ensure!(status.phase == Some(Phase::Scaling) && is("ScalingUp") && is("Reconciling"), "{status:?}");
        ensure!(!is("NodesReady") && !is("Stalled") && is("Ready"), "{status:?}");
        rig.delete("deaf").await
    })
    .await
}

// Rules: B9
#[tokio::test]
async fn provider_id_is_the_groups_arn() -> Result<()> {
    rule("b9-arn", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        let pool = rig.pools().get("workers").await?;
        ensure!(
            pool.spec.provider_id.as_deref() == Some(rig.group()?.arn.as_str()),
            "{:?}",
            pool.spec.provider_id
        );
        rig.delete("workers").await
    })
    .await
}

// Rules: B12, G1
#[tokio::test]
async fn capacity_follows_the_owner() -> Result<()> {
    rule("b12-g1-replicas", Setup::default(), async |rig| {
        // Not said: core's webhook makes it one.
        rig.run(&rig.pool("workers"), 1).await?;
        for replicas in [3, 2, 5, 0, 1] {
            rig.scale("workers", replicas).await?;
            rig.running("workers", replicas).await?;
            let group = rig.group()?;
            ensure!(group.desired == i64::try_from(replicas)?, "{group:?}");
        }
        rig.delete("workers").await
    })
    .await
}

// Rules: B13
#[tokio::test]
async fn observed_generation_is_that_of_the_reconciled_spec() -> Result<()> {
    rule("b13-generation", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        let before = rig.pools().get("workers").await?.metadata.generation;
        rig.patch_pool("workers", &json!({"spec": {"maxSize": 7}})).await?;
        rig.pool_until("workers", DEADLINE, |pool| {
            let status = pool.status.clone().unwrap_or_default();
            let of_conditions = status.conditions.iter().map(|condition| condition.observed_generation);
            let observed = of_conditions.chain([Some(status.observed_generation)]).collect::<Vec<_>>();
            let newest = pool.metadata.generation;
            let all = newest > before && observed.iter().all(|generation| *generation == newest);
            Look::when(all, format!("{newest:?}: {observed:?}"))
        })
        .await?;
        rig.delete("workers").await
    })
    .await
}

/// While AWS refuses the group, the pool is not ready. Once it is, neither failing reads nor a restart takes that back.
// Rules: B5, B6, B8
#[tokio::test]
async fn ready_waits_for_the_group_and_survives_faults() -> Result<()> {
    rule("b5-b8-group", Setup::default(), async |rig| {
        let simulator = rig.scenario.simulator();
        let fail = |action: &str| {
            let fault = Fault::error(action, 500, "InternalFailure", "We encountered an error");
            simulator.add_fault(fault.times(None).in_region(&rig.scenario.region));
        };
        let versions = Versions::watch(rig);
        fail("CreateAutoScalingGroup");
        rig.apply(&rig.pool("workers").replicas(1)).await?;
        eventually("the group was requested twice", async || {
            let calls = rig.calls_of("CreateAutoScalingGroup").len();
            Ok(Look::when(calls >= 2, format!("{calls} times")))
        })
        .await?;
        ensure!(rig.templates().len() == 1 && rig.groups().is_empty(), "{:?}", rig.groups());
        let pools = dynamic(&rig.scenario.client, &rig.scenario.namespace, GROUP, VERSION, "ASGMachinePool");
        let status = pools.get("workers").await?.data["status"].clone();
        // Both are written as false: a field that is missing says nothing.
        ensure!(status["ready"] == false && status["initialization"]["provisioned"] == false, "{status}");
        ensure!(stays_ready(&versions.all()).is_err(), "a version is ready without a group");
        let owner = rig.machine_pools().get("workers").await?;
        ensure!(owner.data["status"]["initialization"]["infrastructureProvisioned"] != true);
        simulator.clear_faults(Some(&rig.scenario.region));
        rig.running("workers", 1).await?;

        for action in ["DescribeAutoScalingGroups", "DescribeInstances", "DescribeLaunchTemplateVersions"] {
            fail(action);
        }
        rig.kill_manager().await?;
        rig.start_manager().await?;
        reconciled::reconciled(rig, "workers").await?;
        simulator.clear_faults(Some(&rig.scenario.region));
        rig.running("workers", 1).await?;
        stays_ready(&versions.all())?;
        rig.delete("workers").await
    })
    .await
}
