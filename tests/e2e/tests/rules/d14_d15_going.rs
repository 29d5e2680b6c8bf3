//! D13 to D15: what else decides when a Machine goes: protection, the limits of a MachinePool, a `MachineHealthCheck`.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use capasg_api::names::{annotations, machine_name};
use capasg_e2e::{CLUSTER, Rig, Setup, condition, eventually, rule};
use capasg_environment::Look;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::DynamicObject};
use serde_json::{Value, json};

use crate::e_deletion::guarded_pod;

const END: &str = "TerminateInstanceInAutoScalingGroup";

/// Puts a pod on a machine and waits until it runs; gives its name.
async fn pod_on(rig: &Rig<'_>, node: &str, guarded: bool) -> Result<String> {
    let pod = format!("guarded-{}", rig.scenario.namespace);
    let workload = rig.cluster()?;
    let mut manifest = guarded_pod(&pod, node);
    if !guarded && let Some(items) = manifest["items"].as_array_mut() {
        items.truncate(1);
    }
    workload.kubectl().feed(["apply", "--filename=-"], &manifest.to_string()).await?;
    let pods: Api<Pod> = Api::namespaced(workload.client().await?, "default");
    eventually("the pod runs", async || {
        let phase = pods.get(&pod).await?.status.and_then(|status| status.phase).unwrap_or_default();
        Ok(Look::when(phase == "Running", phase))
    })
    .await?;
    Ok(pod)
}

// Rules: D13
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn a_desired_capacity_lowered_in_aws_terminates_nothing() -> Result<()> {
    rule("d13-protection", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let group = rig.group()?;
        ensure!(group.suspended.iter().any(|process| process == "AZRebalance"), "{:?}", group.suspended);
        ensure!(rig.instances().iter().all(|one| one.protected), "not protected from scale-in");
        // Somebody lowers desired capacity in AWS: nothing that runs ends, and it is put right again.
        let before: Vec<String> = rig.instances().into_iter().map(|one| one.id).collect();
        rig.somebody_sets(1)?;
        rig.running("workers", 2).await?;
        ensure!(rig.instances().into_iter().map(|one| one.id).eq(before), "an instance was ended");
        rig.delete("workers").await
    })
    .await
}

// Rules: D14
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn the_machine_pools_drain_timeout_ends_a_blocked_drain() -> Result<()> {
    rule("d14-limit", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let victim = rig.instances()[0].clone();
        let machine = machine_name("workers", &victim.id);
        let pod = pod_on(rig, &victim.private_dns_name, true).await?;
        let mark = json!({"metadata": {"annotations": {annotations::DELETE_MACHINE: "true"}}}).to_string();
        rig.scenario.kubectl(&["patch", "machine", &machine, "--type=merge", "--patch", &mark]).await?;
        rig.scale("workers", 1).await?;
        eventually("the budget has refused", async || {
            let writes = rig.workload_writes().await?.into_iter();
            let refused =
                writes.filter(|w| w.subresource == "eviction" && w.name == pod && w.code == 429).count();
            Ok(Look::when(refused >= 2, format!("{refused} refusals")))
        })
        .await?;
        ensure!(rig.calls_of(END).is_empty());

        // The limit is set while the drain runs; nothing else of the Machines is ours.
        let limits = json!({"nodeDrainTimeoutSeconds": 5, "nodeVolumeDetachTimeoutSeconds": 7});
        rig.patch_owner("workers", &json!({"spec": {"template": {"spec": {"deletion": limits}}}})).await?;
        rig.running("workers", 1).await?;
        ensure!(rig.calls_of(END)[0].instances == [victim.id.clone()], "{:?}", rig.calls_of(END));
        let workload = rig.cluster()?;
        let budget = ["get", "poddisruptionbudget", &pod, "--namespace=default", "--output=name"];
        ensure!(workload.kubectl().run(budget).await?.contains(&pod), "the budget blocks to the end");
        let machines = rig.machines_of("workers").await?;
        let left = machines.first().context("no Machine")?;
        ensure!(left.data["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 5, "{}", left.data["spec"]);
        ensure!(
            left.data["spec"]["deletion"]["nodeVolumeDetachTimeoutSeconds"] == 7,
            "{}",
            left.data["spec"]
        );
        let managers = left.metadata.managed_fields.clone().unwrap_or_default();
        let ours =
            managers.iter().find(|one| one.manager.as_deref() == Some("capasg")).context("not ours")?;
        let fields = serde_json::to_value(&ours.fields_v1)?;
        let deletion = &fields["f:spec"]["f:deletion"];
        ensure!(deletion["f:nodeDrainTimeoutSeconds"].is_object(), "{fields}");
        ensure!(fields["f:spec"].as_object().map_or(0, serde_json::Map::len) == 1, "{fields}");

        // A limit that goes is taken away again; the one that core defaults stays.
        rig.patch_owner(
            "workers",
            &json!({"spec": {"template": {"spec": {"deletion": {
                "nodeDrainTimeoutSeconds": Value::Null, "nodeVolumeDetachTimeoutSeconds": Value::Null,
            }}}}}),
        )
        .await?;
        eventually("the Machine has no limit", async || {
            let deletion = rig.machines_of("workers").await?[0].data["spec"]["deletion"].clone();
            let none = deletion["nodeDrainTimeoutSeconds"].is_null()
                && deletion["nodeVolumeDetachTimeoutSeconds"].is_null()
                && deletion["nodeDeletionTimeoutSeconds"] == 10;
            Ok(Look::when(none, deletion.to_string()))
        })
        .await?;
        workload.kubectl().run(["delete", "poddisruptionbudget,pod", &pod, "--namespace=default"]).await?;
        rig.delete("workers").await
    })
    .await
}

// Rules: D15
#[tokio::test]
async fn an_unhealthy_machine_is_drained_and_replaced_within_the_budget() -> Result<()> {
    rule("d15-health", Setup::default(), async |rig| {
        let pool = rig.pool("workers").replicas(2).with("spec/remediationPolicy", "Ignore");
        rig.run(&pool, 2).await?;
        let check = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "MachineHealthCheck",
            "metadata": {"name": "workers"},
            "spec": {
                "clusterName": CLUSTER,
                "selector": {"matchLabels": {"cluster.x-k8s.io/pool-name": "workers"}},
                "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 1}]},
                "remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "100%"}},
            },
        });
        rig.scenario.apply(&check.to_string()).await?;
        let sick = rig.instances();
        let pod = pod_on(rig, &sick[0].private_dns_name, false).await?;
        // Core judges Nodes only where it knows the Cluster's infrastructure to be ready, which a stub has none of: a
        // person asks for the remediation, and the health check marks the Machines like any others.
        for instance in &sick {
            let ask = json!({"metadata": {"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}}).to_string();
            let machine = machine_name("workers", &instance.id);
            rig.scenario.kubectl(&["patch", "machine", &machine, "--type=merge", "--patch", &ask]).await?;
        }
        // The health check marks them; the policy leaves them alone, and the pool says so.
        let names: Vec<String> = sick.iter().map(|one| machine_name("workers", &one.id)).collect();
        rig.pool_until("workers", Duration::from_mins(3), |pool| {
            let text = serde_json::to_string(&pool.status).unwrap_or_default();
            let told = names.iter().all(|name| text.contains(&format!("ignored because of spec.remediationPolicy: {name}")))
                || text.contains(&format!("ignored because of spec.remediationPolicy: {}, {}", names[0], names[1]))
                || text.contains(&format!("ignored because of spec.remediationPolicy: {}, {}", names[1], names[0]));
            Look::when(told, text)
        })
        .await?;
        let status = rig.pools().get("workers").await?.status.context("no status")?;
        ensure!(condition(&status.conditions, "Remediating") == "False/NotRemediating", "{:?}", status.conditions);
        ensure!(rig.calls_of(END).is_empty());

        let mark = rig.mark();
        rig.patch_pool("workers", &json!({"spec": {"remediationPolicy": "Replace"}})).await?;
        // A Machine may outlast its instance, so those that still serve are counted.
        let mut fewest = usize::MAX;
        eventually("both are replaced, one after another", async || {
            let machines = rig.machines_of("workers").await?;
            let serves = |machine: &&DynamicObject| {
                machine.metadata.deletion_timestamp.is_none() && machine.data["status"]["nodeRef"]["name"].is_string()
            };
            fewest = fewest.min(machines.iter().filter(serves).count());
            let left = rig.instances().into_iter().filter(|one| sick.iter().any(|old| old.id == one.id)).count();
            Ok(Look::when(left == 0, format!("{left} are left")))
        })
        .await?;
        ensure!(fewest == 1, "{fewest} served while one after another was replaced");
        rig.running("workers", 2).await?;
        let ends: Vec<_> = rig.mutations_since(mark).into_iter().filter(|call| call.action == END).collect();
        ensure!(ends.iter().map(|call| call.instances.len()).sum::<usize>() == 2, "{ends:?}");
        ensure!(ends.iter().all(|call| call.params["ShouldDecrementDesiredCapacity"] != "true"), "{ends:?}");
        // Its Node still answered, so its pod was evicted before it ended.
        let writes = rig.workload_writes().await?;
        let evicted = writes
            .iter()
            .find(|w| w.subresource == "eviction" && w.name == pod && w.code < 300)
            .context("never evicted")?;
        let ended = ends.iter().find(|call| call.instances.contains(&sick[0].id)).context("not ended")?;
        ensure!(evicted.at < ended.wall_time.context("no time")?, "evicted after the end");
        rig.scenario.kubectl(&["delete", "machinehealthcheck", "workers"]).await?;
        rig.delete("workers").await
    })
    .await
}
