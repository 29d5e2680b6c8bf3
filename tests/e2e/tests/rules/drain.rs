//! Drain is real: pods leave before their machine ends, as their disruption budget allows.

use anyhow::{Context as _, Result, ensure};
use capasg_api::names::{annotations, machine_name};
use capasg_e2e::{Setup, eventually, rule};
use capasg_environment::{Look, wait_gone};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::json;

use crate::e_deletion::guarded_pod;

const END: &str = "TerminateInstanceInAutoScalingGroup";
/// The user of the workload cluster's kubeconfig.
const WORKLOAD_USER: &str = "admin";

// Pains: P16
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn a_drain_evicts_within_the_budget_before_the_termination() -> Result<()> {
    rule("drain-budget", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let victim = rig.instances()[0].clone();
        let machine = machine_name("workers", &victim.id);
        let pod = format!("guarded-{}", rig.scenario.namespace);
        let workload = rig.cluster()?;
        workload
            .kubectl()
            .feed(["apply", "--filename=-"], &guarded_pod(&pod, &victim.private_dns_name).to_string())
            .await?;
        let pods: Api<Pod> = Api::namespaced(workload.client().await?, "default");
        eventually("the pod runs and is guarded", async || {
            let found = pods.get(&pod).await?;
            let phase = found.status.and_then(|status| status.phase).unwrap_or_default();
            let budget = workload
                .kubectl()
                .run([
                    "get",
                    "pdb",
                    &pod,
                    "--namespace=default",
                    "--output=jsonpath={.status.currentHealthy}",
                ])
                .await?;
            Ok(Look::when(phase == "Running" && budget == "1", format!("{phase}, {budget} healthy")))
        })
        .await?;

        let mark = json!({"metadata": {"annotations": {annotations::DELETE_MACHINE: "true"}}}).to_string();
        rig.scenario.kubectl(&["patch", "machine", &machine, "--type=merge", "--patch", &mark]).await?;
        rig.scale("workers", 1).await?;
        let evictions = async || -> Result<Vec<_>> {
            let writes = rig.workload_writes().await?.into_iter();
            Ok(writes.filter(|write| write.subresource == "eviction" && write.name == pod).collect())
        };
        eventually("the budget has refused twice", async || {
            let refused = evictions().await?.iter().filter(|write| write.code == 429).count();
            Ok(Look::when(refused >= 2, format!("{refused} refusals")))
        })
        .await?;
        // The machine waits for its pod, and says so.
        ensure!(rig.calls_of(END).is_empty(), "{:?}", rig.calls_of(END));
        ensure!(rig.instances().iter().any(|one| one.id == victim.id));
        let status = serde_json::to_string(&rig.pools().get("workers").await?.status)?;
        ensure!(status.contains("Scaling down from 2 to 1 replicas"), "{status}");

        workload.kubectl().run(["delete", "poddisruptionbudget", &pod, "--namespace=default"]).await?;
        rig.running("workers", 1).await?;
        wait_gone(&pods, &pod, capasg_e2e::DEADLINE).await?;
        let evicted =
            evictions().await?.into_iter().find(|write| write.code < 300).context("never evicted")?;
        // By core, whose kubeconfig this user is of; the tests use it too, but evict nothing.
        ensure!(evicted.user == WORKLOAD_USER, "evicted by {}", evicted.user);
        let ends = rig.calls_of(END);
        ensure!(ends.len() == 1 && ends[0].instances == [victim.id.clone()], "{ends:?}");
        let ended = ends[0].wall_time.context("no time")?;
        ensure!(evicted.at < ended, "evicted at {}, ended at {ended}", evicted.at);
        let cordoned = rig.workload_writes().await?.into_iter().any(|write| {
            write.resource == "nodes"
                && write.name == victim.private_dns_name
                && write.verb == "patch"
                && write.at < evicted.at
        });
        ensure!(cordoned, "the Node was not cordoned before");
        rig.delete("workers").await
    })
    .await
}
