//! What is reported of the Nodes of a pool: what users, `capasg why` and kstatus read before and after the timeout.

use anyhow::{Context as _, Result, ensure};
use capasg_api::conditions;
use capasg_api::names::annotations::REPLACE;
use capasg_e2e::{Rig, Setup, eventually, manifest::Bootstrap, rule, text};
use capasg_environment::{Look, filter};
use serde_json::{Value, json};

const POOL: &str = "deaf";
/// Short, and longer than what a user does next.
const SECONDS: i32 = 5;
/// What nobody but the instance may see.
const SECRET: &str = "abcdef.0123456789abcdef";

/// What kstatus, by which Flux waits, makes of the pool.
async fn kstatus(rig: &Rig<'_>) -> Result<String> {
    let pool = rig.scenario.kubectl(&["get", "asgmachinepool", POOL, "--output=json"]).await?;
    let pool: Value = serde_json::from_str(&pool)?;
    let kstatus = rig.scenario.environment.tools().program("kstatus");
    let answers = tokio::task::spawn_blocking(move || filter(&kstatus, &[pool])).await??;
    Ok(answers[0]["status"].as_str().context("no status")?.to_owned())
}

/// What users and tools read.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    phase: String,
    nodes: (String, String),
    ready: String,
    kstatus: String,
}

impl Verdict {
    fn of(phase: &str, nodes: (&str, &str), ready: &str, kstatus: &str) -> Self {
        Self {
            phase: phase.to_owned(),
            nodes: (nodes.0.to_owned(), nodes.1.to_owned()),
            ready: ready.to_owned(),
            kstatus: kstatus.to_owned(),
        }
    }

    async fn read(rig: &Rig<'_>) -> Result<Self> {
        let status = rig.pools().get(POOL).await?.status.context("no status")?;
        let get = |type_| conditions::get(&status.conditions, type_).cloned().context(type_);
        let (nodes, ready) = (get(conditions::NODES_READY)?, get(conditions::READY)?);
        Ok(Self {
            phase: status.phase.context("no phase")?.as_str().to_owned(),
            nodes: (nodes.status, nodes.reason),
            ready: ready.status,
            kstatus: kstatus(rig).await?,
        })
    }
}

async fn becomes(rig: &Rig<'_>, verdict: &Verdict) -> Result<()> {
    eventually(&format!("{verdict:?}"), async || {
        let found = Verdict::read(rig).await?;
        Ok(Look::when(found == *verdict, format!("{found:?}")))
    })
    .await
}

/// The line of the pool in `kubectl get`, from the desired replicas to the phase.
async fn columns_become(rig: &Rig<'_>, wanted: [&str; 5]) -> Result<()> {
    eventually(&format!("{wanted:?}"), async || {
        let shown = rig.scenario.kubectl(&["get", "asgmachinepool", POOL, "--no-headers"]).await?;
        let found: Vec<&str> = shown.split_whitespace().skip(2).take(5).collect();
        Ok(Look::when(found == wanted, format!("{found:?}")))
    })
    .await
}

// Rules: B8, I4
#[tokio::test]
async fn instances_that_never_join_and_a_deleted_node_are_reported() -> Result<()> {
    rule("nodes", Setup::default(), async |rig| {
        // User data of another cluster: the instance runs, and joins nothing.
        let value = format!("#cloud-config\nruncmd:\n- kubeadm join --token {SECRET}\n");
        let deaf = Bootstrap::Secret { name: POOL.to_owned(), value };
        let pool = rig.pool(POOL).replicas(1).bootstrap(deaf);
        rig.apply(&pool).await?;

        becomes(rig, &Verdict::of("Scaling", ("False", "WaitingForNodes"), "True", "InProgress")).await?;
        columns_become(rig, ["1", "1", "0", "1", "Scaling"]).await?;
        eventually("core has read that the pool is provisioned", async || {
            let status = rig.machine_pools().get(POOL).await?.data["status"].take();
            Ok(Look::when(status["initialization"]["infrastructureProvisioned"] == true, status.to_string()))
        })
        .await?;

        let timeout = json!({"spec": {"nodeStartupTimeoutSeconds": SECONDS}});
        rig.patch_pool(POOL, &timeout).await?;
        becomes(rig, &Verdict::of("Degraded", ("False", "NodeStartupTimeout"), "False", "Failed")).await?;
        columns_become(rig, ["1", "1", "0", "1", "Degraded"]).await?;
        // The contract holds: core keeps the pool provisioned, and shows what is wrong.
        let status = rig.pools().get(POOL).await?.status.context("no status")?;
        ensure!(status.ready && status.initialization.provisioned);
        let owner = rig.machine_pools().get(POOL).await?;
        ensure!(owner.data["status"]["initialization"]["infrastructureProvisioned"] == true);
        let id = rig.instances().first().context("no instance")?.id.clone();
        let stalled = conditions::get(&status.conditions, conditions::STALLED).context("no Stalled")?;
        ensure!(stalled.message.contains(&id) && stalled.message.contains("security groups"), "{stalled:?}");

        // The pool, its MachinePool, and a name without a kind lead to the same; the Cluster has another name.
        let shown = rig.why(&[&format!("asgmachinepool/{POOL}")]).await?;
        for part in ["NodesReady False NodeStartupTimeout", "no Node has joined", &id, "Instance profile"] {
            ensure!(shown.contains(part), "{part:?} is not in:\n{shown}");
        }
        for target in [POOL, &format!("machinepool/{POOL}")] {
            ensure!(rig.why(&[target]).await?.contains("no Node has joined"), "{target}");
        }
        let shown = rig.why(&[POOL, "--console", &id]).await?;
        ensure!(shown.contains("Linux version") && shown.contains("login:"), "{shown}");
        ensure!(shown.contains("[masked]") && !shown.contains(SECRET), "{shown}");

        // With bootstrap data that join, a user replaces the instance.
        let joins = json!({"stringData": {"value": rig.user_data()}}).to_string();
        rig.scenario.kubectl(&["patch", "secret", POOL, "--type=merge", "--patch", &joins]).await?;
        eventually("a version has them", async || {
            let status = rig.pools().get(POOL).await?.status.unwrap_or_default();
            let version = status.launch_template.map_or(0, |template| template.version);
            Ok(Look::when(version > 1, format!("version {version}")))
        })
        .await?;
        rig.scenario.kubectl(&["annotate", "asgmachine", "--all", &format!("{REPLACE}=")]).await?;
        eventually("the instance is replaced", async || {
            let left = rig.instances().iter().any(|one| one.id == id);
            Ok(Look::when(!left, "it is left"))
        })
        .await?;
        becomes(rig, &Verdict::of("Running", ("True", "NodesReady"), "True", "Current")).await?;
        rig.running(POOL, 1).await?;
        columns_become(rig, ["1", "1", "1", "1", "Running"]).await?;

        // `kubectl delete node`: the kubelet does not register again. The timeout passes while nothing else happens.
        rig.patch_pool(POOL, &json!({"spec": {"nodeStartupTimeoutSeconds": 600}})).await?;
        let machine = rig.machines_of(POOL).await?.into_iter().next().context("no Machine")?;
        let node = text(&machine, "/status/nodeRef/name").to_owned();
        rig.cluster()?.kubectl().run(["delete", "node", &node]).await?;
        becomes(rig, &Verdict::of("Scaling", ("False", "WaitingForNodes"), "True", "InProgress")).await?;
        rig.patch_pool(POOL, &timeout).await?;
        becomes(rig, &Verdict::of("Degraded", ("False", "NodeDeleted"), "False", "Failed")).await?;
        let shown = rig.why(&[POOL]).await?;
        ensure!(shown.contains(&format!("Node {node} joined and was deleted")), "{shown}");
        rig.delete(POOL).await
    })
    .await
}
