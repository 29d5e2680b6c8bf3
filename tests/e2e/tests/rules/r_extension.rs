//! R1 to R16 with a real core: a Cluster is created, upgraded by two minor versions with a plan of ours, and deleted, and
//! every block is seen to hold and to end.

mod addons;
mod bridge;
mod core_starts;
mod moments;
mod older_core;
mod technical;
mod trouble;
mod undelayed;

use std::{collections::BTreeSet, io::Write as _, time::Duration};

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{CLUSTER, Extension, Rig, Setup, Topology, condition_of, eventually, rule, text};
use capasg_environment::{Look, dynamic};
use capasg_fake_aws::ec2::Image;
use chrono::{Datelike as _, Utc};
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};
use trouble::Trouble;

/// Two minor versions before that of the tools, and the one between.
const FIRST: &str = "v1.34.8";
const BETWEEN: &str = "v1.35.4";

/// The hooks that the extension implements, each with the minor version of core that first has it.
const HOOKS: [(&str, u64); 13] = [
    ("DiscoverVariables", 10),
    ("GeneratePatches", 10),
    ("ValidateTopology", 10),
    ("BeforeClusterCreate", 10),
    ("AfterControlPlaneInitialized", 10),
    ("BeforeClusterUpgrade", 10),
    ("BeforeControlPlaneUpgrade", 12),
    ("AfterControlPlaneUpgrade", 10),
    ("BeforeWorkersUpgrade", 12),
    ("AfterWorkersUpgrade", 12),
    ("AfterClusterUpgrade", 10),
    ("BeforeClusterDelete", 10),
    ("GenerateUpgradePlan", 12),
];

/// The hooks that the core of this run knows (`CAPASG_CORE`).
fn known_hooks(rig: &Rig<'_>) -> Result<Vec<&'static str>> {
    let core = rig.core_minor()?;
    ensure!(core >= 12, "an upgrade by two minor versions requires the hooks of v1.12");
    Ok(HOOKS.into_iter().filter(|(_, since)| *since <= core).map(|(hook, _)| hook).collect())
}

fn annotation(name: &str, value: &Value) -> Value {
    json!({"metadata": {"annotations": {format!("asg.infrastructure.cluster.x-k8s.io/{name}"): value}}})
}

/// The schedule of a window that is closed for months.
fn closed_schedule() -> String {
    format!("0 0 1 {} *", (Utc::now().month() + 5) % 12 + 1)
}

fn closed() -> Value {
    json!(format!("[{{schedule: '{}', durationSeconds: 900}}]", closed_schedule()))
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
        let message = message(rig).await?;
        Ok(if message.contains(words) { Look::Done(message) } else { Look::Not(message) })
    })
    .await?;
    say(&format!("TopologyReconciled: {message}"))
}

async fn message(rig: &Rig<'_>) -> Result<String> {
    let cluster = rig.clusters().get(CLUSTER).await?;
    let found = condition_of(&cluster, "TopologyReconciled");
    Ok(found["message"].as_str().unwrap_or_default().to_owned())
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

/// Waits for an event that is published once. A replica that ends before it has published one loses it.
async fn published_once(extension: &Extension<'_>, trouble: Trouble, words: &str) -> Result<()> {
    if trouble == Trouble::Ends { Ok(()) } else { published(extension, words).await }
}

/// Waits for the event of a verified upgrade. Core does not wait for these hooks while the extension is gone.
async fn verified(extension: &Extension<'_>, trouble: Trouble, words: &str) -> Result<()> {
    if matches!(trouble, Trouble::Gone(_)) {
        return Ok(());
    }
    published_once(extension, trouble, &format!("UpgradeVerified: {words}")).await
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

/// `capasg why` of the Cluster, as a user calls it.
async fn why(rig: &Rig<'_>) -> Result<String> {
    let text = rig.why(&[CLUSTER]).await?;
    say(&text)?;
    Ok(text)
}

/// What core counted of its calls to the extension.
async fn counted(rig: &Rig<'_>, extension: &Extension<'_>) -> Result<Vec<String>> {
    let metrics = rig.scenario.environment.management().upstream_metrics("cluster-api").await?;
    let host = format!("host=\"127.0.0.1:{}\"", extension.balancer.port());
    let of_extension =
        |line: &&str| line.starts_with("capi_runtime_sdk_requests_total") && line.contains(&host);
    Ok(metrics.lines().filter(of_extension).map(str::to_owned).collect())
}

/// The calls that failed, as core counted them.
async fn failed_calls(rig: &Rig<'_>, extension: &Extension<'_>) -> Result<Vec<String>> {
    let mut lines = counted(rig, extension).await?;
    lines.retain(|line| !line.contains("code=\"200\""));
    Ok(lines)
}

// Rules: R1, R2, R3, R4, R8, R9, R10, R11, R12, R13, R14, R15
#[tokio::test]
async fn core_calls_every_hook_and_every_block_holds_and_ends() -> Result<()> {
    Box::pin(rule("r-extension", Setup::bare(), async |rig| Box::pin(story(rig, Trouble::None)).await)).await
}

// Rules: R6, R7
#[tokio::test]
#[ignore = "long form: the same upgrade again"]
async fn an_upgrade_is_completed_although_replicas_end_during_calls() -> Result<()> {
    Box::pin(rule("r-ends", Setup::bare(), async |rig| Box::pin(story(rig, Trouble::Ends)).await)).await
}

// Rules: R11
#[tokio::test]
#[ignore = "long form: the extension is gone for two minutes at each stage"]
async fn blocks_hold_while_the_extension_is_gone() -> Result<()> {
    let gone = Trouble::Gone(Duration::from_mins(2));
    Box::pin(rule("r-gone", Setup::bare(), async |rig| Box::pin(story(rig, gone)).await)).await
}

/// The image of the first version, which the simulated AWS does not have by default.
fn put_image_of_first(rig: &Rig<'_>) {
    let simulator = rig.scenario.simulator();
    let image = Image::new("ami-0e1f2a3b", &format!("node-{FIRST}"), "x86_64");
    simulator.put_parameter(&rig.scope(), &format!("/images/node/{FIRST}"), &image.id);
    simulator.put_image(&rig.scope(), image);
}

/// A Cluster is created, upgraded by two minor versions, and deleted.
async fn story(rig: &Rig<'_>, trouble: Trouble) -> Result<()> {
    let last = rig.scenario.environment.tools().kubernetes_version().to_owned();
    put_image_of_first(rig);
    let versions = format!("{FIRST},{BETWEEN},{last}");
    let settings = [("requireApproval", "true"), ("kubernetesVersions", versions.as_str())];
    let extension = rig.extension(2, &settings).await?;
    let hooks = known_hooks(rig)?;
    let discovered: BTreeSet<String> = extension.discovered().await?.into_iter().collect();
    ensure!(discovered == hooks.iter().map(|hook| (*hook).to_owned()).collect(), "{discovered:?}");
    say(&format!("core {}", rig.scenario.environment.tools().cluster_api_version()))?;
    trouble.through(rig, &extension, Box::pin(life(rig, &extension, trouble, &last))).await?;

    // Every hook was called, as our metrics and core's count. Ours do not outlive a replica.
    if trouble == Trouble::None {
        let calls = extension.calls().await?;
        say(&format!("calls: {calls:?}"))?;
        for hook in hooks {
            let of_hook = calls.iter().filter(|((name, _), _)| name == hook);
            ensure!(of_hook.map(|(_, count)| count).sum::<u64>() > 0, "{hook} was not called");
        }
        for outcome in ["Failure", "InvalidSettings", "Panicked", "NotReady"] {
            let failed: Vec<_> = calls.keys().filter(|(_, found)| found == outcome).collect();
            ensure!(failed.is_empty(), "{failed:?}");
        }
    }
    for line in counted(rig, &extension).await? {
        say(&line)?;
    }
    extension.remove().await
}

async fn life(rig: &Rig<'_>, extension: &Extension<'_>, trouble: Trouble, last: &str) -> Result<()> {
    let edit = |objects: &mut Vec<Value>| refer(objects, &extension.name);
    let has_no_control_plane = async || Ok(control_plane(rig).await.is_err());
    let create = rig.topology_of("development-topology", FIRST, 2, edit);
    let topology = trouble.while_gone(extension, Box::pin(create), has_no_control_plane).await?;
    topology.running("workers", 2, FIRST).await?;
    published_once(extension, trouble, "ControlPlaneInitialized: ").await?;
    let has_tag = async || {
        let pool = topology.pool("workers").await?.pool;
        anyhow::Ok(format!("{:?}", pool.spec.tags).contains("blue"))
    };
    let tags = topology.set_variable("asgTags", json!({"team": "blue"}));
    trouble.while_gone(extension, tags, async || Ok(!has_tag().await?)).await?;
    eventually("the pool has the tag of the variable", async || {
        Ok(Look::when(has_tag().await?, "it has other tags"))
    })
    .await?;
    upgrade(rig, extension, &topology, trouble, last).await?;
    delete(rig, extension, &topology, trouble).await
}

async fn upgrade(
    rig: &Rig<'_>,
    extension: &Extension<'_>,
    topology: &Topology<'_>,
    trouble: Trouble,
    last: &str,
) -> Result<()> {
    let is_at = async |version: &str| Ok(text(&control_plane(rig).await?, "/spec/version") == version);
    let is_at_first = async || is_at(FIRST).await;
    let version = json!({"spec": {"topology": {"version": last}}});
    trouble.while_gone(extension, topology.patch(&version), is_at_first).await?;
    says(rig, &format!("the upgrade to {last} is not approved")).await?;
    published(extension, "HookBlocked: BeforeClusterUpgrade: ").await?;
    ensure!(is_at(FIRST).await?, "it did not hold");
    let text_of_why = why(rig).await?;
    for part in [
        "\nBeforeClusterUpgrade: blocks\n",
        "  NotApproved since ",
        &format!("the upgrade to {last} is not approved"),
        "skip-hook=BeforeClusterUpgrade\n",
    ] {
        ensure!(text_of_why.contains(part), "{part:?} is not in:\n{text_of_why}");
    }

    let approved = annotation("upgrade-approved", &json!(last));
    trouble.while_gone(extension, topology.patch(&approved), is_at_first).await?;
    control_plane_goes_to(rig, BETWEEN).await?;
    published_once(extension, trouble, "HookUnblocked: BeforeClusterUpgrade").await?;

    // The next step of the control plane waits for a window.
    let close = annotation("maintenance-windows", &closed());
    trouble.while_gone(extension, topology.patch(&close), async || is_at(BETWEEN).await).await?;
    verified(extension, trouble, "all nodes of the control plane report v1.35.4").await?;
    says(rig, "no maintenance window is open").await?;
    published(extension, "HookBlocked: BeforeControlPlaneUpgrade: no maintenance window").await?;
    ensure!(is_at(BETWEEN).await?, "it did not hold");
    let open = annotation("maintenance-windows", &Value::Null);
    trouble.while_gone(extension, topology.patch(&open), async || is_at(BETWEEN).await).await?;
    control_plane_goes_to(rig, last).await?;

    // So do the workers, which skip the version between.
    topology.patch(&annotation("maintenance-windows", &closed())).await?;
    published(extension, "HookBlocked: BeforeWorkersUpgrade: no maintenance window").await?;
    says(rig, "no maintenance window is open").await?;
    let workers_hold = async || {
        let versions = topology.pool("workers").await?;
        Ok(text(&versions.owner, "/spec/template/spec/version") == FIRST)
    };
    ensure!(workers_hold().await?, "it did not hold");

    // Break-glass.
    let skip = annotation("skip-hook", &json!("BeforeWorkersUpgrade"));
    trouble.while_gone(extension, topology.patch(&skip), workers_hold).await?;
    published_once(extension, trouble, "HookSkipped: BeforeWorkersUpgrade").await?;
    eventually("the workers go on", async || Ok(Look::when(!workers_hold().await?, "they hold"))).await?;
    trouble.while_gone(extension, async { Ok(()) }, async || Ok(true)).await?;
    topology.running("workers", 2, last).await?;
    topology.reconciled("True/ReconcileSucceeded", "").await?;
    verified(extension, trouble, &format!("all nodes of ASGMachinePools report {last}")).await?;
    verified(extension, trouble, "all nodes of the control plane and of ASGMachinePools").await
}

async fn delete(
    rig: &Rig<'_>,
    extension: &Extension<'_>,
    topology: &Topology<'_>,
    trouble: Trouble,
) -> Result<()> {
    topology.patch(&annotation("deletion-protection", &json!("true"))).await?;
    rig.scenario.kubectl(&["delete", "cluster", CLUSTER, "--wait=false"]).await?;
    published(extension, "HookBlocked: BeforeClusterDelete: the Cluster is protected").await?;
    says(rig, "the Cluster is protected").await?;
    let has_pools = async || Ok(topology.pools().await?.len() == 1);
    ensure!(has_pools().await?, "it did not hold");
    let unprotected = annotation("deletion-protection", &Value::Null);
    trouble.while_gone(extension, topology.patch(&unprotected), has_pools).await?;
    eventually("the Cluster is gone", async || {
        let left = rig.clusters().get_opt(CLUSTER).await?;
        let groups = rig.scenario.simulator().leftovers(Some(&rig.scenario.region));
        Ok(Look::when(left.is_none() && groups.is_empty(), format!("{groups:?}")))
    })
    .await
}
