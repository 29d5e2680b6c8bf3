//! R1 to R15 with a real core: a Cluster is created, upgraded by two minor versions with a plan of ours, and deleted, and
//! every block is seen to hold and to end.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
};

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{CLUSTER, Extension, Rig, Setup, Topology, condition_of, eventually, rule, text};
use capasg_environment::{Look, dynamic};
use capasg_fake_aws::ec2::Image;
use chrono::{Datelike as _, Utc};
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};

/// Two minor versions before that of the tools, and the one between.
const FIRST: &str = "v1.34.8";
const BETWEEN: &str = "v1.35.4";

/// The hooks that the extension implements.
const HOOKS: [&str; 12] = [
    "DiscoverVariables",
    "GeneratePatches",
    "ValidateTopology",
    "AfterControlPlaneInitialized",
    "BeforeClusterUpgrade",
    "BeforeControlPlaneUpgrade",
    "AfterControlPlaneUpgrade",
    "BeforeWorkersUpgrade",
    "AfterWorkersUpgrade",
    "AfterClusterUpgrade",
    "BeforeClusterDelete",
    "GenerateUpgradePlan",
];

fn annotation(name: &str, value: &Value) -> Value {
    json!({"metadata": {"annotations": {format!("asg.infrastructure.cluster.x-k8s.io/{name}"): value}}})
}

/// A window that is closed for months.
fn closed() -> Value {
    let month = (Utc::now().month() + 5) % 12 + 1;
    json!(format!("[{{schedule: '0 0 1 {month} *', durationSeconds: 900}}]"))
}

/// The class refers to the handlers of an `ExtensionConfig`.
fn refer(objects: &mut [Value], config: &str) -> Result<()> {
    let class = objects.iter_mut().find(|object| object["kind"] == "ClusterClass").context("no class")?;
    let handler = |name: &str| format!("{name}.{config}");
    let patch = json!({"name": "asg", "external": {
        "discoverVariablesExtension": handler("discover-variables"),
        "generatePatchesExtension": handler("generate-patches"),
        "validateTopologyExtension": handler("validate-topology"),
    }});
    class["spec"]["patches"].as_array_mut().context("no patches")?.push(patch);
    class["spec"]["upgrade"]["external"]["generateUpgradePlanExtension"] =
        json!(handler("generate-upgrade-plan"));
    Ok(())
}

fn say(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stderr(), "r-extension: {line}")?)
}

/// Waits until the condition of the Cluster has these words.
async fn says(rig: &Rig<'_>, words: &str) -> Result<()> {
    let message = eventually(&format!("the Cluster says: {words}"), async || {
        let cluster = rig.clusters().get(CLUSTER).await?;
        let found = condition_of(&cluster, "TopologyReconciled");
        let message = found["message"].as_str().unwrap_or_default().to_owned();
        Ok(if message.contains(words) { Look::Done(message) } else { Look::Not(message) })
    })
    .await?;
    say(&format!("TopologyReconciled: {message}"))
}

/// Waits for an event of the extension.
async fn published(extension: &Extension<'_>, words: &str) -> Result<()> {
    let event = eventually(&format!("an event: {words}"), async || {
        let events = extension.events().await?;
        let found = events.iter().find(|event| event.contains(words)).cloned();
        Ok(found.map_or_else(|| Look::Not(events.join("\n")), Look::Done))
    })
    .await?;
    say(&format!("Event: {event}"))
}

async fn control_plane(rig: &Rig<'_>) -> Result<DynamicObject> {
    let (client, namespace) = (&rig.scenario.client, &rig.scenario.namespace);
    let planes =
        dynamic(client, namespace, "controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane");
    planes.list(&ListParams::default()).await?.items.pop().context("no control plane")
}

async fn control_plane_goes_to(rig: &Rig<'_>, version: &str) -> Result<()> {
    eventually(&format!("the control plane goes to {version}"), async || {
        let plane = control_plane(rig).await?;
        let wanted = text(&plane, "/spec/version").to_owned();
        Ok(Look::when(wanted == version, wanted))
    })
    .await
}

// Rules: R1, R2, R3, R4, R8, R9, R10, R11, R13, R14, R15
#[tokio::test]
async fn core_calls_every_hook_and_every_block_holds_and_ends() -> Result<()> {
    Box::pin(rule("r-extension", Setup::bare(), async |rig| {
        let last = rig.scenario.environment.tools().kubernetes_version().to_owned();
        let simulator = rig.scenario.simulator();
        let image = Image {
            id: "ami-0e1f2a3b".to_owned(),
            name: format!("node-{FIRST}"),
            architecture: "x86_64".to_owned(),
            root_device: "/dev/xvda".to_owned(),
            tags: BTreeMap::default(),
        };
        simulator.put_parameter(&rig.scope(), &format!("/images/node/{FIRST}"), &image.id);
        simulator.put_image(&rig.scope(), image);

        let versions = format!("{FIRST},{BETWEEN},{last}");
        let settings = [("requireApproval", "true"), ("kubernetesVersions", versions.as_str())];
        let extension = rig.extension(2, &settings).await?;
        let discovered: BTreeSet<String> = extension.discovered().await?.into_iter().collect();
        ensure!(discovered == HOOKS.map(str::to_owned).into(), "{discovered:?}");

        let edit = |objects: &mut Vec<Value>| refer(objects, &extension.name);
        let topology = rig.topology_of("development-topology", FIRST, 2, edit).await?;
        topology.running("workers", 2, FIRST).await?;
        published(&extension, "ControlPlaneInitialized: ").await?;
        topology.set_variable("asgTags", json!({"team": "blue"})).await?;
        eventually("the pool has the tag of the variable", async || {
            let pool = topology.pool("workers").await?.pool;
            let tags = format!("{:?}", pool.spec.tags);
            Ok(Look::when(tags.contains("blue"), tags))
        })
        .await?;

        upgrade(rig, &extension, &topology, &last).await?;
        delete(rig, &extension, &topology).await?;

        // Every hook was called, as our metrics and core's count.
        let calls = extension.calls().await?;
        say(&format!("calls: {calls:?}"))?;
        for hook in HOOKS {
            let of_hook = calls.iter().filter(|((name, _), _)| name == hook);
            ensure!(of_hook.map(|(_, count)| count).sum::<u64>() > 0, "{hook} was not called");
        }
        for outcome in ["Failure", "InvalidSettings", "Panicked", "NotReady"] {
            let failed: Vec<_> = calls.keys().filter(|(_, found)| found == outcome).collect();
            ensure!(failed.is_empty(), "{failed:?}");
        }
        let core = rig.scenario.environment.management().upstream_metrics("cluster-api").await?;
        let host = format!("host=\"127.0.0.1:{}\"", extension.balancer.port());
        for line in core.lines().filter(|line| line.starts_with("capi_runtime_sdk_requests_total")) {
            if line.contains(&host) {
                say(line)?;
            }
        }
        extension.remove().await
    }))
    .await
}

async fn upgrade(
    rig: &Rig<'_>,
    extension: &Extension<'_>,
    topology: &Topology<'_>,
    last: &str,
) -> Result<()> {
    topology.patch(&json!({"spec": {"topology": {"version": last}}})).await?;
    says(rig, &format!("the upgrade to {last} is not approved")).await?;
    published(extension, "HookBlocked: BeforeClusterUpgrade: ").await?;
    ensure!(text(&control_plane(rig).await?, "/spec/version") == FIRST, "it did not hold");

    topology.patch(&annotation("upgrade-approved", &json!(last))).await?;
    control_plane_goes_to(rig, BETWEEN).await?;
    published(extension, "HookUnblocked: BeforeClusterUpgrade").await?;

    // The next step of the control plane waits for a window.
    topology.patch(&annotation("maintenance-windows", &closed())).await?;
    published(extension, "UpgradeVerified: all nodes of the control plane report v1.35.4").await?;
    says(rig, "no maintenance window is open").await?;
    published(extension, "HookBlocked: BeforeControlPlaneUpgrade: no maintenance window").await?;
    ensure!(text(&control_plane(rig).await?, "/spec/version") == BETWEEN, "it did not hold");
    topology.patch(&annotation("maintenance-windows", &Value::Null)).await?;
    control_plane_goes_to(rig, last).await?;

    // So do the workers, which skip the version between.
    topology.patch(&annotation("maintenance-windows", &closed())).await?;
    published(extension, "HookBlocked: BeforeWorkersUpgrade: no maintenance window").await?;
    says(rig, "no maintenance window is open").await?;
    let versions = topology.pool("workers").await?;
    ensure!(text(&versions.owner, "/spec/template/spec/version") == FIRST, "it did not hold");

    // Break-glass.
    topology.patch(&annotation("skip-hook", &json!("BeforeWorkersUpgrade"))).await?;
    published(extension, "HookSkipped: BeforeWorkersUpgrade").await?;
    topology.running("workers", 2, last).await?;
    topology.reconciled("True/ReconcileSucceeded", "").await?;
    published(extension, &format!("UpgradeVerified: all nodes of ASGMachinePools report {last}")).await?;
    published(extension, "UpgradeVerified: all nodes of the control plane and of ASGMachinePools").await
}

async fn delete(rig: &Rig<'_>, extension: &Extension<'_>, topology: &Topology<'_>) -> Result<()> {
    topology.patch(&annotation("deletion-protection", &json!("true"))).await?;
    rig.scenario.kubectl(&["delete", "cluster", CLUSTER, "--wait=false"]).await?;
    published(extension, "HookBlocked: BeforeClusterDelete: the Cluster is protected").await?;
    ensure!(topology.pools().await?.len() == 1, "it did not hold");
    topology.patch(&annotation("deletion-protection", &Value::Null)).await?;
    eventually("the Cluster is gone", async || {
        let left = rig.clusters().get_opt(CLUSTER).await?;
        let groups = rig.scenario.simulator().leftovers(Some(&rig.scenario.region));
        Ok(Look::when(left.is_none() && groups.is_empty(), format!("{groups:?}")))
    })
    .await
}
