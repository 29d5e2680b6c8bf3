//! Making, changing and deleting pools, and waiting until everyone agrees on them.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Result;
use capasg_api::{
    ASGMachinePool,
    conditions::{self, NODES_READY},
};
use capasg_environment::{Look, wait_for_object, wait_until};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{
    CLUSTER, DEADLINE, Rig, eventually,
    look::text,
    manifest::{Bootstrap, Pool},
    setup::marker,
};

impl Rig<'_> {
    /// The smallest pool for this test's cluster.
    #[must_use]
    pub fn pool(&self, name: &str) -> Pool {
        let in_memory = self.cluster.as_ref().is_some_and(|cluster| !cluster.is_real());
        let bootstrap = if in_memory {
            Bootstrap::Kubeadm
        } else {
            Bootstrap::Secret { name: format!("{name}-bootstrap"), value: self.user_data() }
        };
        let version = self.scenario.environment.tools().kubernetes_version();
        Pool::new(name, CLUSTER, &self.scenario.region, version, bootstrap)
    }

    /// User data that let a machine join this test's stub cluster.
    #[must_use]
    pub fn user_data(&self) -> String {
        format!("#cloud-config\n# {}\n", marker(self.scenario))
    }

    /// Applies a pool's objects.
    ///
    /// # Errors
    /// When the API server refuses one.
    pub async fn apply(&self, pool: &Pool) -> Result<()> {
        self.scenario.apply(&pool.documents()).await?;
        Ok(())
    }

    /// Applies a pool's objects and waits until it is Running.
    ///
    /// # Errors
    /// When it does not run in time.
    pub async fn run(&self, pool: &Pool, replicas: usize) -> Result<()> {
        self.apply(pool).await?;
        self.running(pool.name(), replicas).await
    }

    /// Waits until the pool has so many nodes, no more and no fewer, and everyone agrees: core, our object and AWS.
    ///
    /// # Errors
    /// When it does not in time; the error says who disagrees.
    pub async fn running(&self, name: &str, replicas: usize) -> Result<()> {
        wait_until(DEADLINE, &format!("pool {name} runs {replicas}"), || async {
            Ok(match self.disagreement(name, replicas).await? {
                None => Look::Done(()),
                Some(why) => Look::Not(why),
            })
        })
        .await
    }

    async fn disagreement(&self, name: &str, replicas: usize) -> Result<Option<String>> {
        let owner = self.machine_pools().get(name).await?;
        let phase = text(&owner, "/status/phase");
        let nodes = owner.data.pointer("/status/nodeRefs").and_then(Value::as_array).map_or(0, Vec::len);
        let wanted = owner.data.pointer("/spec/replicas").and_then(Value::as_u64);
        let pool = self.pools().get(name).await?;
        let status = pool.status.clone().unwrap_or_default();
        let listed = pool.spec.provider_id_list.len();
        let asg_machines = self.asg_machines_of(name).await?.len();
        let machines = self.machines_of(name).await?;
        let ready = machines.iter().filter(|machine| text(machine, "/status/phase") == "Running").count();
        let group = self.group_of(&pool).map(|group| (group.desired, group.instances.len()));
        let size = i64::try_from(replicas)?;
        // A manager of an earlier release does not report it.
        let told = conditions::get(&status.conditions, NODES_READY).is_none_or(|one| one.status == "True");
        let agreed = told
            && phase == "Running"
            && nodes == replicas
            && wanted == Some(u64::try_from(replicas)?)
            && usize::try_from(status.replicas)? == replicas
            && listed == replicas
            && asg_machines == replicas
            && machines.len() == replicas
            && ready == replicas
            && group == Some((size, replicas));
        Ok((!agreed).then(|| {
            let conditions: Vec<String> = status
                .conditions
                .iter()
                .map(|one| format!("{}={}/{} {}", one.type_, one.status, one.reason, one.message))
                .collect();
            format!(
                "phase {phase}, nodes {nodes}, spec.replicas {wanted:?}, status.replicas {}, listed {listed}, \
                 ASGMachines {asg_machines}, Machines {} ({ready} running), group (desired, instances) {group:?}, {}",
                status.replicas,
                machines.len(),
                conditions.join("; ")
            )
        }))
    }

    /// Waits until none of these instances runs. They go one after another, so that each has the time of one step.
    ///
    /// # Errors
    /// When one takes too long.
    pub async fn replaced(&self, before: &BTreeSet<String>) -> Result<()> {
        for most in (0..before.len()).rev() {
            eventually(&format!("{most} are left"), async || {
                let old = self.instances().iter().filter(|one| before.contains(&one.id)).count();
                Ok(Look::when(old <= most, format!("{old} are left")))
            })
            .await?;
        }
        Ok(())
    }

    /// Deletes the MachinePool and waits until it, our objects, and all in the cloud are gone.
    ///
    /// # Errors
    /// When something is left at the deadline.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.scenario.kubectl(&["delete", "machinepool", name, "--wait=false"]).await?;
        self.gone(name).await
    }

    /// Waits until nothing is left of a pool.
    ///
    /// # Errors
    /// When something is left at the deadline.
    pub async fn gone(&self, name: &str) -> Result<()> {
        wait_until(DEADLINE, &format!("nothing is left of {name}"), || async {
            let owner = self.machine_pools().get_opt(name).await?.is_some();
            let pool = self.pools().get_opt(name).await?;
            let machines = self.machines_of(name).await?.len();
            let asg_machines = self.asg_machines_of(name).await?.len();
            let left = self.scenario.simulator().leftovers(Some(&self.scenario.region));
            let conditions = pool.as_ref().and_then(|pool| pool.status.clone()).unwrap_or_default().conditions;
            Ok(Look::when(
                !owner && pool.is_none() && machines == 0 && asg_machines == 0 && left.is_empty(),
                format!(
                    "MachinePool {owner}, ASGMachinePool {}, Machines {machines}, ASGMachines {asg_machines}, \
                     cloud {left:?}, {conditions:?}",
                    pool.is_some()
                ),
            ))
        })
        .await
    }

    /// Sets the replicas of a MachinePool.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn scale(&self, name: &str, replicas: usize) -> Result<()> {
        self.patch_owner(name, &json!({"spec": {"replicas": replicas}})).await
    }

    /// Merges into a MachinePool.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patch_owner(&self, name: &str, patch: &Value) -> Result<()> {
        self.machine_pools().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Merges into an ASGMachinePool.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patch_pool(&self, name: &str, patch: &Value) -> Result<()> {
        self.pools().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Merges into the Cluster.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patch_cluster(&self, patch: &Value) -> Result<()> {
        self.clusters().patch(CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Waits until our pool satisfies `look`.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn pool_until<T>(
        &self,
        name: &str,
        deadline: Duration,
        look: impl FnMut(&ASGMachinePool) -> Look<T>,
    ) -> Result<T> {
        wait_for_object(&self.pools(), name, deadline, look).await
    }
}
