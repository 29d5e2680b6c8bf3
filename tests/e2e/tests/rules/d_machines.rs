//! D: Machines for instances, how they come, and how they go.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    ASGMachine,
    names::{annotations, finalizers, machine_name, must_format_value},
};
use capasg_e2e::{CLUSTER, Rig, Setup, condition, eventually, rule, text};
use capasg_environment::Look;
use capasg_fake_aws::LogEntry;
use kube::ResourceExt as _;
use serde_json::json;

use crate::reconciled::reconciled;

const END: &str = "TerminateInstanceInAutoScalingGroup";

/// Instances that our manager ended, each with whether desired capacity shrank by it.
fn ends(calls: &[LogEntry]) -> BTreeMap<String, bool> {
    let ends = calls.iter().filter(|call| call.action == END);
    ends.flat_map(|call| {
        let decrements = call.params["ShouldDecrementDesiredCapacity"] == "true";
        call.instances.iter().map(move |id| (id.clone(), decrements))
    })
    .collect()
}

async fn machine(rig: &Rig<'_>, pool: &str, instance: &str) -> Result<ASGMachine> {
    Ok(rig.asg_machines().get(&machine_name(pool, instance)).await?)
}

/// The ids of the running instances.
fn ids(rig: &Rig<'_>) -> BTreeSet<String> {
    rig.instances().into_iter().map(|instance| instance.id).collect()
}

// Rules: D1, D2, D4, D5, D6
// Pains: P19
#[tokio::test]
async fn every_instance_has_its_machine() -> Result<()> {
    rule("d1-d6-machines", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        rig.scale("workers", 3).await?;
        rig.running("workers", 3).await?;
        let pool = rig.pools().get("workers").await?;
        let status = pool.status.clone().context("no status")?;
        ensure!(status.infrastructure_machine_kind.as_deref() == Some("ASGMachine"));

        for instance in rig.instances() {
            // D5: the name follows from the instance, D2: so there is one for each.
            let found = machine(rig, "workers", &instance.id).await?;
            ensure!(found.spec.instance_id == instance.id);
            ensure!(found.spec.provider_id == format!("aws:///{}/{}", instance.zone, instance.id));
            ensure!(found.finalizers().contains(&finalizers::MACHINE.to_owned()));
            // D4: the pool owns it without controlling it, core's Machine controls it.
            let owners = found.owner_references();
            let ours = owners.iter().find(|owner| owner.kind == "ASGMachinePool").context("not owned")?;
            ensure!(ours.controller != Some(true) && Some(&ours.uid) == pool.metadata.uid.as_ref());
            let controller =
                owners.iter().find(|owner| owner.controller == Some(true)).context("no controller")?;
            ensure!(controller.kind == "Machine" && controller.name == found.name_any());
            // D6: what core reads, and what it makes of it.
            let status = found.status.clone().context("no status")?;
            ensure!(status.initialization.provisioned);
            ensure!(status.failure_domain.as_deref() == Some(instance.zone.as_str()));
            ensure!(condition(&status.conditions, "Ready") == "True/Ready", "{:?}", status.conditions);
            let addresses: Vec<&str> = status.addresses.iter().map(|one| one.address.as_str()).collect();
            ensure!(
                addresses == [instance.private_ip.as_str(), instance.private_dns_name.as_str()],
                "{addresses:?}"
            );
            let core = rig.machines().get(&found.name_any()).await?;
            ensure!(text(&core, "/status/phase") == "Running");
            ensure!(text(&core, "/status/nodeRef/name") == instance.private_dns_name);
            ensure!(text(&core, "/spec/providerID") == found.spec.provider_id);
            // Core copies them when it looks at the Machine next.
            eventually("the Machine has the addresses", async || {
                let core = rig.machines().get(&found.name_any()).await?;
                let copied = &core.data["status"]["addresses"];
                Ok(Look::when(copied.as_array().is_some_and(|all| all.len() >= 2), copied.to_string()))
            })
            .await?;
        }
        rig.delete("workers").await
    })
    .await
}

/// Processes that die in the middle of a scale-out, and one that starts while nothing changes.
// Rules: D5
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn restarts_create_no_second_machine() -> Result<()> {
    rule("d5-restarts", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        // By instance: the name and the UID of its object.
        let machines = async || -> Result<BTreeMap<String, (String, Option<String>)>> {
            let all = rig.asg_machines_of("workers").await?;
            let count = all.len();
            let by_instance: BTreeMap<_, _> = all
                .into_iter()
                .map(|one| (one.spec.instance_id.clone(), (one.name_any(), one.uid())))
                .collect();
            ensure!(by_instance.len() == count, "{count} ASGMachines for {by_instance:?}");
            Ok(by_instance)
        };
        let before = machines().await?;
        rig.scale("workers", 4).await?;
        for more in 1..=2 {
            eventually("an ASGMachine is created", async || {
                let now = machines().await?.len();
                Ok(Look::when(now >= 2 + more, format!("{now} ASGMachines")))
            })
            .await?;
            rig.kill_manager().await?;
            rig.start_manager().await?;
        }
        rig.running("workers", 4).await?;
        let after = machines().await?;
        ensure!(before.iter().all(|(id, one)| after.get(id) == Some(one)), "{before:?} became {after:?}");
        ensure!(after.keys().cloned().collect::<BTreeSet<_>>() == ids(rig), "{after:?}");
        for (id, (name, _)) in &after {
            ensure!(*name == machine_name("workers", id), "{name} of {id}");
        }
        rig.stop_manager().await?;
        rig.start_manager().await?;
        reconciled(rig, "workers").await?;
        ensure!(machines().await? == after, "{:?}", machines().await?);
        let created =
            rig.writes()?.into_iter().filter(|one| one.resource == "asgmachines" && one.code == 201);
        let created: Vec<String> = created.map(|one| one.name).collect();
        let once: BTreeSet<String> = created.iter().cloned().collect();
        let names: BTreeSet<String> = after.into_values().map(|(name, _)| name).collect();
        // A call that the kill of its manager cut off is not logged with the code of its success.
        ensure!(
            once.len() == created.len() && once.is_subset(&names),
            "created {created:?}, there are {names:?}"
        );
        rig.delete("workers").await
    })
    .await
}

// Rules: D3
#[tokio::test]
async fn a_pool_with_a_long_name_has_hashed_labels() -> Result<()> {
    rule("d3-labels", Setup::default(), async |rig| {
        let name = format!("a-pool-whose-name-is-longer-than-a-label-value-may-be-{}", "x".repeat(16));
        ensure!(name.len() == 70, "{}", name.len());
        // Machines are found by the label, so Running with Machines shows that core looks for the same.
        rig.run(&rig.pool(&name).replicas(1), 1).await?;
        let machines = rig.asg_machines_of(&name).await?;
        let labels = machines[0].labels();
        ensure!(labels["cluster.x-k8s.io/cluster-name"] == CLUSTER);
        let value = &labels["cluster.x-k8s.io/pool-name"];
        ensure!(*value == must_format_value(&name) && value.starts_with("hash_"), "{value}");
        ensure!(machines[0].name_any().len() <= 63);
        rig.delete(&name).await
    })
    .await
}

// Rules: D7, D10
#[tokio::test]
async fn scale_in_deletes_machines_and_terminates_exactly_those() -> Result<()> {
    rule("d7-scale-in", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(4), 4).await?;
        let before = ids(rig);
        let mark = rig.mark();
        rig.scale("workers", 2).await?;
        rig.running("workers", 2).await?;
        let gone: BTreeSet<String> = before.difference(&ids(rig)).cloned().collect();
        ensure!(gone.len() == 2);

        // Every end is one that we asked for, once, and each shrinks the group.
        let calls = rig.mutations_since(mark);
        let ends = ends(&calls);
        ensure!(ends.keys().cloned().collect::<BTreeSet<_>>() == gone, "{ends:?} but {gone:?} are gone");
        ensure!(ends.values().all(|decrements| *decrements), "{ends:?}");
        let asked: usize =
            calls.iter().filter(|call| call.action == END).map(|call| call.instances.len()).sum();
        ensure!(asked == 2, "{asked} ends were asked for");

        let writes = rig.writes()?;
        for id in &gone {
            let name = machine_name("workers", id);
            let deleted = |resource: &str| {
                writes.iter().find(|write| {
                    write.resource == resource
                        && write.name == name
                        && write.verb == "delete"
                        && write.code < 300
                })
            };
            let of_core = deleted("machines").context("the Machine was not deleted")?;
            ensure!(of_core.user == rig.user(), "{} deleted the Machine", of_core.user);
            let of_ours = deleted("asgmachines").context("the ASGMachine was not deleted")?;
            ensure!(of_ours.user.contains("capi-manager"), "{} deleted the ASGMachine", of_ours.user);
            let ended = calls
                .iter()
                .find(|call| call.action == END && call.instances.contains(id))
                .and_then(|call| call.wall_time)
                .context("no end")?;
            ensure!(of_core.at < of_ours.at && of_ours.at < ended, "{} {} {ended}", of_core.at, of_ours.at);
        }
        rig.delete("workers").await
    })
    .await
}

// Rules: D8
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn an_annotated_machine_is_the_first_victim() -> Result<()> {
    rule("d8-annotated", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(3), 3).await?;
        // The newest goes last by the default order, so only the annotation can make it the victim.
        let victim = rig.instances().last().context("no instance")?.id.clone();
        let name = machine_name("workers", &victim);
        let mark = json!({"metadata": {"annotations": {annotations::DELETE_MACHINE: "true"}}}).to_string();
        rig.scenario.kubectl(&["patch", "machine", &name, "--type=merge", "--patch", &mark]).await?;
        let calls = rig.mark();
        rig.scale("workers", 2).await?;
        rig.running("workers", 2).await?;
        ensure!(ends(&rig.mutations_since(calls)) == BTreeMap::from([(victim, true)]));
        rig.delete("workers").await
    })
    .await
}

// Rules: D9
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn an_instance_without_machine_is_waited_for() -> Result<()> {
    rule("d9-no-machine", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        // Core stops making Machines, and we go on.
        let paused = |value: serde_json::Value| json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}});
        rig.patch_owner("workers", &paused(json!("true"))).await?;
        let before = ids(rig);
        rig.scale("workers", 3).await?;
        let third = eventually("a third instance with its ASGMachine", async || {
            let all = ids(rig);
            let Some(new) = all.difference(&before).next() else { return Ok(Look::Not("no instance".to_owned())) };
            let found = machine(rig, "workers", new).await?;
            let provisioned = found.status.is_some_and(|status| status.initialization.provisioned);
            Ok(Look::from_option(provisioned.then(|| new.clone()), "not provisioned"))
        })
        .await?;
        ensure!(rig.machines().get_opt(&machine_name("workers", &third)).await?.is_none());

        // It has not joined, so it is the one to go; but not before core has made its Machine.
        let mark = rig.mark();
        rig.scale("workers", 2).await?;
        eventually("it says that it scales down", async || {
            let status = rig.pools().get("workers").await?.status.unwrap_or_default();
            let said = condition(&status.conditions, "ScalingDown");
            Ok(Look::when(said == "True/ScalingDown" && status.desired_replicas == 2, said))
        })
        .await?;
        ensure!(ends(&rig.mutations_since(mark)).is_empty());
        ensure!(machine(rig, "workers", &third).await?.metadata.deletion_timestamp.is_none());
        ensure!(rig.machines_of("workers").await?.iter().all(|one| one.metadata.deletion_timestamp.is_none()));

        rig.patch_owner("workers", &paused(serde_json::Value::Null)).await?;
        rig.running("workers", 2).await?;
        ensure!(ends(&rig.mutations_since(mark)).len() == 1);
        rig.delete("workers").await
    })
    .await
}

// Rules: D10
#[tokio::test]
async fn a_machine_that_a_user_deletes_is_replaced() -> Result<()> {
    rule("d10-replaced", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let victim = rig.instances()[0].id.clone();
        let mark = rig.mark();
        rig.scenario
            .kubectl(&["delete", "machine", &machine_name("workers", &victim), "--wait=false"])
            .await?;
        eventually("the instance is gone", async || Ok(Look::when(!ids(rig).contains(&victim), "it runs")))
            .await?;
        rig.running("workers", 2).await?;
        ensure!(ends(&rig.mutations_since(mark)) == BTreeMap::from([(victim, false)]));
        rig.delete("workers").await
    })
    .await
}

// Rules: D11
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn the_machine_of_an_instance_that_died_is_deleted() -> Result<()> {
    rule("d11-vanished", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(3), 3).await?;
        let victim = rig.instances()[1].clone();
        let mark = rig.mark();
        ensure!(rig.scenario.simulator().kill(&rig.scenario.scope(), &victim.id));
        eventually("its Machine is gone", async || {
            let name = machine_name("workers", &victim.id);
            let machine = rig.machines().get_opt(&name).await?.is_some();
            let ours = rig.asg_machines().get_opt(&name).await?.is_some();
            Ok(Look::when(!machine && !ours, format!("Machine {machine}, ASGMachine {ours}")))
        })
        .await?;
        rig.running("workers", 3).await?;
        let list = rig.pools().get("workers").await?.spec.provider_id_list;
        ensure!(!list.iter().any(|id| id.ends_with(&victim.id)), "{list:?}");
        // The group replaced it by itself; nobody ended anything.
        ensure!(ends(&rig.mutations_since(mark)).is_empty(), "{:?}", rig.mutations_since(mark));
        rig.delete("workers").await
    })
    .await
}

// Rules: D12
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn deleting_an_asgmachine_terminates_its_instance() -> Result<()> {
    rule("d12-direct", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let victim = rig.instances()[0].id.clone();
        let mark = rig.mark();
        rig.scenario
            .kubectl(&["delete", "asgmachine", &machine_name("workers", &victim), "--wait=false"])
            .await?;
        eventually("the instance is gone", async || Ok(Look::when(!ids(rig).contains(&victim), "it runs")))
            .await?;
        rig.running("workers", 2).await?;
        ensure!(ends(&rig.mutations_since(mark)) == BTreeMap::from([(victim, false)]));
        rig.delete("workers").await
    })
    .await
}
