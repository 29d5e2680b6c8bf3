//! M: `clusterctl move` of pools in the middle of something. What was begun goes on with the same instances, and nobody
//! but the manager on the target does anything from the moment the Cluster is paused.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    conditions,
    names::{annotations, machine_name},
};
use capasg_e2e::{Rig, Setup, condition, eventually, rule, target};
use capasg_environment::Look;
use capasg_fake_aws::{Effect, Fault, LogEntry, Scope, Service, Tree};
use kube::ResourceExt;
use serde_json::json;

use crate::e_deletion::guarded_pod;

const END: &str = "TerminateInstanceInAutoScalingGroup";

/// Lets a pod with a disruption budget of its own run on an instance, so that its drain cannot end.
async fn guard(rig: &Rig<'_>, instance: &str) -> Result<String> {
    let node = rig.kubelets()?.nodes().get(instance).cloned().context("the instance has no Node")?;
    let pod = format!("guarded-{}", rig.scenario.namespace);
    let workload = rig.cluster()?.kubectl();
    workload.feed(["apply", "--filename=-"], &guarded_pod(&pod, &node).to_string()).await?;
    eventually("the pod is guarded", async || {
        let query = ["get", "pdb", &pod, "--namespace=default", "--output=jsonpath={.status.currentHealthy}"];
        let healthy = workload.run(query).await?;
        Ok(Look::when(healthy == "1", format!("{healthy} healthy")))
    })
    .await?;
    Ok(pod)
}

async fn unguard(rig: &Rig<'_>, pod: &str) -> Result<()> {
    rig.cluster()?.kubectl().run(["delete", "poddisruptionbudget", pod, "--namespace=default"]).await?;
    Ok(())
}

/// Waits until core says that it drains the Machine.
async fn draining(rig: &Rig<'_>, machine: &str) -> Result<()> {
    eventually("the Machine drains", async || {
        let found = rig.machines().get(machine).await?;
        let text = found.data["status"]["conditions"].to_string();
        let drains = found.metadata.deletion_timestamp.is_some() && text.contains("DrainingNode");
        Ok(Look::when(drains, text))
    })
    .await
}

fn by_target(calls: &[LogEntry]) -> bool {
    calls.iter().all(|call| call.access_key.as_deref() == Some(target::ACCESS_KEY))
}

// Rules: M2, M4, M8
#[tokio::test]
async fn a_machine_that_drains_is_terminated_on_the_target() -> Result<()> {
    rule("m8-draining", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;

        // clusterctl refuses a pool with a Machine that has no Node yet, and leaves everything as it was.
        rig.scale("workers", 3).await?;
        let newest = eventually("a third machine starts", async || {
            let dumps = rig.scenario.simulator().dump(Some(&rig.scenario.region));
            let all = dumps.into_iter().flat_map(|dump| dump.instances);
            let found = all
                .map(|one| one.id)
                .find(|id| rig.kubelets().is_ok_and(|all| !all.nodes().contains_key(id)));
            if let Some(id) = &found {
                rig.kubelets()?.hold_back(id);
            }
            Ok(Look::from_option(found, "none"))
        })
        .await?;
        eventually("its Machine waits for its Node", async || {
            let machines = rig.machines_of("workers").await?;
            Ok(Look::when(machines.len() == 3, format!("{} Machines", machines.len())))
        })
        .await?;
        let target = rig.target().await?;
        let to = target.management.api().kubeconfig().display().to_string();
        let refused = rig.clusterctl_move(&["--to-kubeconfig", &to]).await?;
        ensure!(
            !refused.success && refused.stderr.contains("is still provisioning the node"),
            "{}",
            refused.stderr
        );
        let cluster = rig.clusters().get(capasg_e2e::CLUSTER).await?;
        ensure!(cluster.data["spec"]["paused"] != true, "the Cluster was left paused");
        rig.kubelets()?.let_go(&newest);
        rig.running("workers", 3).await?;

        let victim = rig.instances()[1].id.clone();
        let machine = machine_name("workers", &victim);
        let pod = guard(rig, &victim).await?;
        // Chosen by us: the others are better choices only as long as nobody says otherwise.
        let mark = json!({"metadata": {"annotations": {annotations::DELETE_MACHINE: "true"}}}).to_string();
        rig.scenario.kubectl(&["patch", "machine", &machine, "--type=merge", "--patch", &mark]).await?;
        rig.scale("workers", 2).await?;
        draining(rig, &machine).await?;

        let since = rig.mark();
        target.move_here().await?;
        let mut others = BTreeSet::new();
        eventually("the same Machine is deleted", async || {
            let machines = target.core("Machine").list(&kube::api::ListParams::default()).await?.items;
            let going: Vec<String> = machines
                .iter()
                .filter(|one| one.metadata.deletion_timestamp.is_some())
                .map(ResourceExt::name_any)
                .collect();
            others.extend(going.iter().filter(|name| **name != machine).cloned());
            Ok(Look::when(going.contains(&machine), format!("{going:?} of {}", machines.len())))
        })
        .await?;
        ensure!(others.is_empty(), "others are deleted: {others:?}");
        ensure!(rig.mutations_since(since).is_empty(), "{:?}", rig.mutations_since(since));
        unguard(rig, &pod).await?;
        target.running("workers", 2).await?;
        let ends = rig.calls_of(END);
        ensure!(ends.len() == 1 && ends[0].instances == [victim], "{ends:?}");
        let calls = rig.mutations_since(since);
        ensure!(by_target(&calls), "{calls:?}");
        ensure!(calls.iter().all(|call| !call.action.starts_with("Create")), "{calls:?}");
        target.delete("workers").await?;
        target.stop().await
    })
    .await
}

// Rules: M2, M4, M8
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn an_instance_held_by_the_hook_is_completed_on_the_target() -> Result<()> {
    rule("m8-held", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let target = rig.target().await?;
        let victim = rig.instances()[0].id.clone();
        let machine = machine_name("workers", &victim);
        let pod = guard(rig, &victim).await?;
        // Somebody ends it in AWS: the group replaces it, and our hook holds it until it is drained.
        let params = Tree::new().with("InstanceId", &victim).with("ShouldDecrementDesiredCapacity", false);
        let scope = Scope::region(&rig.scenario.region);
        rig.scenario.simulator().call(&scope, Service::AutoScaling, END, params)?;
        draining(rig, &machine).await?;
        let state = |id: &str| {
            let instances = rig.instances().into_iter();
            instances.filter(|one| one.id == id).find_map(|one| one.lifecycle_state)
        };
        eventually("it is held, and all Machines have Nodes", async || {
            let machines = rig.machines_of("workers").await?;
            let joined = machines.iter().filter(|one| one.data["status"]["nodeRef"].is_object()).count();
            let held = state(&victim);
            let done = held.as_deref() == Some("Terminating:Wait") && joined == 3 && machines.len() == 3;
            Ok(Look::when(done, format!("{held:?}, {joined} of {}", machines.len())))
        })
        .await?;

        let since = rig.mark();
        target.move_here().await?;
        eventually("it drains on the target", async || {
            let found = target.core("Machine").get(&machine).await?;
            Ok(Look::when(found.metadata.deletion_timestamp.is_some(), "not yet"))
        })
        .await?;
        ensure!(state(&victim).as_deref() == Some("Terminating:Wait"), "{:?}", state(&victim));
        unguard(rig, &pod).await?;
        target.running("workers", 2).await?;
        let calls = rig.mutations_since(since);
        ensure!(by_target(&calls), "{calls:?}");
        let answers: Vec<_> = calls.iter().filter(|call| call.action == "CompleteLifecycleAction").collect();
        ensure!(answers.len() == 1 && answers[0].instances == [victim.clone()], "{answers:?}");
        ensure!(
            calls.iter().all(|call| call.action != END && !call.action.starts_with("Create")),
            "{calls:?}"
        );
        target.delete("workers").await?;
        target.stop().await
    })
    .await
}

// Rules: M2, M3, M8
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn moving_a_pool_that_is_being_deleted_changes_nothing() -> Result<()> {
    rule("m8-deleting", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let target = rig.target().await?;
        let before: Vec<String> = rig.instances().into_iter().map(|one| one.id).collect();
        let pods = guard(rig, &before[0]).await?;
        // Both drains are held up, so that nothing has ended when the move begins.
        let other = rig.kubelets()?.nodes().get(&before[1]).cloned().context("no Node")?;
        let second = format!("{pods}-too");
        let workload = rig.cluster()?.kubectl();
        workload.feed(["apply", "--filename=-"], &guarded_pod(&second, &other).to_string()).await?;
        eventually("the second pod is guarded", async || {
            let query =
                ["get", "pdb", &second, "--namespace=default", "--output=jsonpath={.status.currentHealthy}"];
            let healthy = workload.run(query).await?;
            Ok(Look::when(healthy == "1", format!("{healthy} healthy")))
        })
        .await?;
        rig.scenario.kubectl(&["delete", "machinepool", "workers", "--wait=false"]).await?;
        for id in &before {
            draining(rig, &machine_name("workers", id)).await?;
        }
        ensure!(rig.calls_of("SuspendProcesses").len() >= 2, "launches go on");

        let since = rig.mark();
        let (begun, finalizers) =
            (rig.writes()?.len(), rig.pools().get("workers").await?.finalizers().to_vec());
        target.move_here().await?;
        ensure!(!finalizers.is_empty());
        // clusterctl knows no deletions: the pool lives on, with what it had and nothing new.
        let told = eventually("it says that nothing is launched", async || {
            let status = target.pools().get("workers").await?.status.unwrap_or_default();
            let found = conditions::get(&status.conditions, "ScalingHealthy").cloned();
            let told = found.filter(|found| found.reason == "ProcessesSuspended");
            Ok(Look::from_option(told, condition(&status.conditions, "ScalingHealthy")))
        })
        .await?;
        ensure!(told.message.contains("Resume it in AWS"), "{}", told.message);
        target.running("workers", 2).await?;
        ensure!(rig.instances().into_iter().map(|one| one.id).eq(before.clone()), "other machines run");
        ensure!(rig.mutations_since(since).is_empty(), "{:?}", rig.mutations_since(since));
        let ours = rig.writes()?.split_off(begun).into_iter().filter(|one| one.user == rig.user());
        let ours: Vec<_> = ours.filter(|one| one.subresource != "status").collect();
        ensure!(ours.is_empty(), "{ours:?}");

        // Deleted again, it goes as any other.
        unguard(rig, &pods).await?;
        unguard(rig, &second).await?;
        target.delete("workers").await?;
        let calls = rig.mutations_since(since);
        ensure!(by_target(&calls), "{calls:?}");
        target.stop().await
    })
    .await
}

// Rules: F5, M2, M8
#[tokio::test]
async fn a_move_waits_for_a_termination_in_flight() -> Result<()> {
    rule("f5-in-flight", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let target = rig.target().await?;
        ensure!(!rig.pools().get("workers").await?.annotations().contains_key(annotations::BLOCK_MOVE));
        // The answer takes longer than it takes to see that it is awaited, and less than the 20 s after which a call fails.
        let slow =
            Fault { delay_millis: 10_000, ..Fault::new(END, Effect::None).in_region(&rig.scenario.region) };
        rig.scenario.simulator().add_fault(slow);
        rig.scale("workers", 1).await?;
        rig.pool_until("workers", capasg_e2e::DEADLINE, |pool| {
            let held = pool.annotations().get(annotations::BLOCK_MOVE);
            Look::when(held.is_some_and(|value| value == "capasg-end-in-flight"), format!("{held:?}"))
        })
        .await?;
        // Nothing shows that the instance terminates until clusterctl has paused the Cluster, whereupon it looks.
        let unread = Fault::error("*", 503, "ServiceUnavailable", "The service is unavailable");
        let unread = unread.in_region(&rig.scenario.region).times(None);
        rig.scenario.simulator().add_fault(unread.clone());
        let until_paused = async {
            rig.pool_until("workers", capasg_e2e::DEADLINE, |pool| {
                let paused =
                    pool.status.as_ref().map(|status| condition(&status.conditions, conditions::PAUSED));
                Look::when(
                    paused.as_ref().is_some_and(|paused| paused.starts_with("True/")),
                    format!("{paused:?}"),
                )
            })
            .await?;
            rig.scenario.simulator().remove_fault(&unread);
            anyhow::Ok(())
        };
        let (said, ()) = tokio::try_join!(target.move_here(), until_paused)?;
        ensure!(said.contains("Move blocked by clusterctl.cluster.x-k8s.io/block-move"), "{said}");
        let ends = rig.calls_of(END);
        ensure!(ends.len() == 1, "{ends:?}");
        target.running("workers", 1).await?;
        ensure!(rig.calls_of(END).len() == 1, "{:?}", rig.calls_of(END));
        let pool = target.pools().get("workers").await?;
        ensure!(!pool.annotations().contains_key(annotations::BLOCK_MOVE), "{:?}", pool.annotations());
        target.delete("workers").await?;
        target.stop().await
    })
    .await
}
