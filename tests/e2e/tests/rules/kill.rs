//! The manager dies at the worst moments: between two writes of create, scale-in and delete.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{Rig, Setup, eventually, rule};
use capasg_environment::Look;
use capasg_fake_aws::Fault;

use crate::e_deletion::guarded_pod;

const END: &str = "TerminateInstanceInAutoScalingGroup";

/// The operations at whose next call the manager is killed, with the number of calls before.
struct Kills<'a>(Vec<(&'a str, usize)>);

impl<'a> Kills<'a> {
    /// Holds back the answer to the next call of each operation: the call has its effect, and nobody remembers it. All of
    /// them before anything is asked for: a manager that starts again may call the next one at once.
    fn at(rig: &Rig<'_>, actions: &[&'a str]) -> Self {
        let before = actions.iter().map(|action| {
            let mut slow = Fault::new(action, capasg_fake_aws::Effect::None).in_region(&rig.scenario.region);
            slow.delay_millis = 5_000;
            rig.scenario.simulator().add_fault(slow);
            (*action, rig.calls_of(action).len())
        });
        Self(before.collect())
    }

    /// Kills the manager at each of them, and starts another.
    async fn carry_out(self, rig: &Rig<'_>) -> Result<()> {
        for (action, before) in self.0 {
            eventually(&format!("{action} was called"), async || {
                Ok(Look::when(rig.calls_of(action).len() > before, "it was not"))
            })
            .await?;
            rig.kill_manager().await?;
            rig.start_manager().await.with_context(|| format!("at {action}"))?;
        }
        Ok(())
    }
}

fn none_ended_twice(rig: &Rig<'_>) -> Result<()> {
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for id in rig.calls_of(END).into_iter().flat_map(|call| call.instances) {
        *ends.entry(id).or_default() += 1;
    }
    ensure!(ends.values().all(|times| *times == 1), "{ends:?}");
    Ok(())
}

fn one_of_each(rig: &Rig<'_>) -> Result<()> {
    rig.group()?;
    ensure!(rig.templates().len() == 1, "{:?}", rig.templates());
    Ok(())
}

#[tokio::test]
async fn a_creation_survives_kills_at_each_call() -> Result<()> {
    rule("kill-create", Setup::default(), async |rig| {
        let kills = Kills::at(rig, &["CreateLaunchTemplate", "CreateAutoScalingGroup"]);
        rig.apply(&rig.pool("workers").replicas(3)).await?;
        kills.carry_out(rig).await?;
        rig.running("workers", 3).await?;
        one_of_each(rig)?;
        ensure!(rig.templates()[0].versions.len() == 1, "{:?}", rig.templates());
        ensure!(rig.calls_of(END).is_empty());
        rig.delete("workers").await
    })
    .await
}

#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn a_scale_in_with_drains_survives_kills() -> Result<()> {
    rule("kill-scale-in", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(5), 5).await?;
        // Every Node has a pod that nobody may evict, so every drain waits.
        let kubectl = rig.cluster()?.kubectl();
        let mut budgets = Vec::new();
        for instance in rig.instances() {
            let name = format!("guarded-{}-{}", rig.scenario.namespace, instance.id);
            kubectl
                .feed(["apply", "--filename=-"], &guarded_pod(&name, &instance.private_dns_name).to_string())
                .await?;
            budgets.push(name);
        }
        rig.scale("workers", 2).await?;
        let deleting = async || -> Result<Vec<String>> {
            let machines = rig.machines_of("workers").await?.into_iter();
            let mut names: Vec<_> = machines
                .filter(|one| one.metadata.deletion_timestamp.is_some())
                .filter_map(|one| one.metadata.name)
                .collect();
            names.sort();
            Ok(names)
        };
        eventually("three drain", async || {
            let names = deleting().await?;
            Ok(Look::when(names.len() == 3, format!("{names:?}")))
        })
        .await?;
        let chosen = deleting().await?;
        rig.kill_manager().await?;
        rig.start_manager().await?;
        // The end itself is asked for, and the one who asked dies before the answer.
        let kills = Kills::at(rig, &[END]);
        for budget in &budgets {
            kubectl.run(["delete", "pdb", budget, "--namespace=default", "--wait=false"]).await?;
        }
        kills.carry_out(rig).await?;
        rig.running("workers", 2).await?;
        let mut ended: Vec<String> = rig
            .calls_of(END)
            .into_iter()
            .flat_map(|call| call.instances)
            .map(|id| capasg_api::names::machine_name("workers", &id))
            .collect();
        ended.sort();
        ensure!(ended == chosen, "chosen {chosen:?}, ended {ended:?}");
        none_ended_twice(rig)?;
        one_of_each(rig)?;
        rig.delete("workers").await
    })
    .await
}

#[tokio::test]
async fn a_deletion_survives_kills_at_each_call() -> Result<()> {
    rule("kill-delete", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(3), 3).await?;
        let actions = ["SuspendProcesses", END, "DeleteAutoScalingGroup", "DeleteLaunchTemplate"];
        let kills = Kills::at(rig, &actions);
        rig.scenario.kubectl(&["delete", "machinepool", "workers", "--wait=false"]).await?;
        kills.carry_out(rig).await?;
        rig.gone("workers").await?;
        none_ended_twice(rig)
    })
    .await
}
