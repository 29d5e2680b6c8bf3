//! A test's own cluster, kubelets and manager, and what tests ask of them.

use std::{io::Write as _, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use capasg_api::{ASGMachine, ASGMachinePool};
use capasg_environment::{
    ApiServer, Environment, Join, Kubelets, Look, Manager, ManagerOptions, ManagerPlan, Scenario,
    WorkloadCluster, Write, dynamic, scenario, wait_for_object, wait_until,
};
use capasg_simulator::{GroupDump, InstanceDump, LogEntry, LogFilter, TemplateDump};
use kube::{
    Api,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

use crate::{
    look::text,
    manifest::{Bootstrap, Pool},
};

/// How long things may take while many tests share two cores. A change in AWS that nobody told of is seen at the next
/// poll, after up to a minute.
pub const DEADLINE: Duration = Duration::from_mins(3);

/// Waits until `look` holds.
///
/// # Errors
/// When it does not within [`DEADLINE`].
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Result<Look<T>>) -> Result<T> {
    let end = tokio::time::Instant::now() + DEADLINE;
    let mut last = String::from("no look was answered");
    while tokio::time::Instant::now() < end {
        last = match look().await {
            Ok(Look::Done(value)) => return Ok(value),
            Ok(Look::Not(why)) => why,
            Err(error) => format!("{error:#}"),
        };
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("not within {DEADLINE:?}: {what}; last: {last}")
}

/// The name of each test's cluster.
pub const CLUSTER: &str = "prod";

/// What a workload cluster's control plane is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Control {
    /// A stub in front of a real API server that all tests share: there within a second or two.
    #[default]
    Stub,
    /// A real control plane in memory, with kubeadm's bootstrap data: there after about 45 s.
    InMemory,
    /// There is no cluster yet.
    None,
}

/// What a test starts with.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The cluster.
    pub control: Control,
    /// Whether a manager runs from the start.
    pub manager: bool,
    /// More flags for the manager.
    pub args: Vec<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { control: Control::Stub, manager: true, args: Vec::new() }
    }
}

impl Setup {
    /// With kubeadm's own bootstrap data.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { control: Control::InMemory, ..Self::default() }
    }

    /// Without a cluster, for tests that make their own.
    #[must_use]
    pub fn bare() -> Self {
        Self { control: Control::None, ..Self::default() }
    }

    /// One more flag for the manager.
    #[must_use]
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// Without a manager of ours at first.
    #[must_use]
    pub fn without_manager(mut self) -> Self {
        self.manager = false;
        self
    }
}

/// A test's share of the environment, with a cluster, kubelets and a manager for it alone.
pub struct Rig<'a> {
    /// Namespace, region and clients.
    pub scenario: &'a Scenario,
    cluster: Option<WorkloadCluster>,
    kubelets: Option<Kubelets>,
    plan: ManagerPlan,
    manager: Mutex<Option<Manager>>,
}

/// Runs one rule's test in a rig of its own.
///
/// # Errors
/// Those of the environment and of the test.
pub async fn rule(name: &str, setup: Setup, test: impl AsyncFnOnce(&Rig<'_>) -> Result<()>) -> Result<()> {
    scenario(name, async |scenario| {
        let begun = std::time::Instant::now();
        let rig = Rig::new(scenario, &setup).await?;
        let set_up = begun.elapsed();
        let outcome = test(&rig).await;
        let verdict = if outcome.is_ok() { "holds" } else { "FAILS" };
        // Straight to the terminal: the runner shows what passing tests print only at the end, if at all.
        writeln!(
            std::io::stderr(),
            "{name}: {verdict} ({:.0?}, {set_up:.0?} of it set-up)",
            begun.elapsed()
        )?;
        outcome?;
        rig.keeps_bootstrap_data_secret().await?;
        if let Some(manager) = rig.manager.lock().await.take() {
            manager.process().ensure_running()?;
            let status = manager.stop().await?;
            ensure!(status.success(), "the manager did not end gracefully: {status}");
        }
        Ok(())
    })
    .await
}

/// The API server behind all stub control planes.
///
/// # Errors
/// When it does not start.
pub async fn shared_workload_api(environment: &Arc<Environment>) -> Result<&'static ApiServer> {
    static SHARED: OnceCell<ApiServer> = OnceCell::const_new();
    SHARED.get_or_try_init(|| environment.workload_api()).await
}

impl<'a> Rig<'a> {
    async fn new(scenario: &'a Scenario, setup: &Setup) -> Result<Self> {
        let cluster = match setup.control {
            Control::Stub => {
                let api = shared_workload_api(&scenario.environment).await?;
                Some(scenario.stub_cluster(CLUSTER, api).await?)
            }
            Control::InMemory => Some(scenario.in_memory_cluster(CLUSTER).await?),
            Control::None => None,
        };
        let kubelets = match &cluster {
            Some(cluster) if cluster.is_real() => {
                Some(scenario.kubelets(cluster, Join::Marker(marker(scenario))).await?)
            }
            Some(cluster) => Some(scenario.kubelets(cluster, Join::BootstrapToken).await?),
            None => None,
        };
        let options = ManagerOptions { args: setup.args.clone(), ..ManagerOptions::default() };
        let plan = scenario.plan_manager(options).await?;
        let rig = Self { scenario, cluster, kubelets, plan, manager: Mutex::default() };
        if setup.manager {
            rig.start_manager().await?;
        }
        Ok(rig)
    }

    /// The workload cluster.
    ///
    /// # Errors
    /// When the test has none.
    pub fn cluster(&self) -> Result<&WorkloadCluster> {
        self.cluster.as_ref().context("this test has no cluster")
    }

    /// The kubelets.
    ///
    /// # Errors
    /// When the test has no cluster.
    pub fn kubelets(&self) -> Result<&Kubelets> {
        self.kubelets.as_ref().context("this test has no kubelets")
    }

    /// Starts the manager and waits until it is ready.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn start_manager(&self) -> Result<()> {
        *self.manager.lock().await = Some(self.plan.start_ready().await?);
        Ok(())
    }

    /// Ends the manager as a failing machine does.
    ///
    /// # Errors
    /// When it does not run.
    pub async fn kill_manager(&self) -> Result<()> {
        self.manager.lock().await.take().context("no manager runs")?.kill().await?;
        Ok(())
    }

    /// Ends the manager as Kubernetes does.
    ///
    /// # Errors
    /// When it does not run or ends with a failure.
    pub async fn stop_manager(&self) -> Result<()> {
        let status = self.manager.lock().await.take().context("no manager runs")?.stop().await?;
        ensure!(status.success(), "the manager ended with {status}");
        Ok(())
    }

    /// All that the test's managers have logged, those that ended included.
    #[must_use]
    pub fn manager_log(&self) -> String {
        let server = self.scenario.environment.management().api().name();
        let name = format!("{server}-capasg-{}", self.scenario.namespace);
        let bytes = std::fs::read(self.scenario.environment.run().log(&name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Rule H8 in every test: what the bootstrap Secret holds is in no log, event or object of ours.
    ///
    /// # Errors
    /// When it is; the error says where.
    pub async fn keeps_bootstrap_data_secret(&self) -> Result<()> {
        let canary = marker(self.scenario);
        let mut places = vec![("the manager's log", self.manager_log())];
        for kind in ["asgmachinepools", "asgmachines", "machinepools", "machines", "events"] {
            places.push((kind, self.scenario.kubectl(&["get", kind, "--output=json"]).await?));
        }
        for (place, text) in places {
            ensure!(!text.contains(&canary), "{place} holds bootstrap data");
            for encoded in base64_forms(&canary) {
                ensure!(!text.contains(&encoded), "{place} holds encoded bootstrap data");
            }
        }
        Ok(())
    }

    /// The writes of the management cluster's API server to this test's namespace, oldest first.
    ///
    /// # Errors
    /// When the audit log cannot be read.
    pub fn writes(&self) -> Result<Vec<Write>> {
        let all = self.scenario.environment.management().api().writes()?;
        Ok(all.into_iter().filter(|write| write.namespace == self.scenario.namespace).collect())
    }

    /// The writes of the API server behind the stub control planes, oldest first.
    ///
    /// # Errors
    /// When the audit log cannot be read.
    pub async fn workload_writes(&self) -> Result<Vec<Write>> {
        shared_workload_api(&self.scenario.environment).await?.writes()
    }

    /// The user that our manager writes as.
    #[must_use]
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.plan.namespace(), self.plan.service_account())
    }

    /// The metrics of the running manager.
    ///
    /// # Errors
    /// When none runs.
    pub async fn metrics(&self) -> Result<String> {
        self.manager.lock().await.as_ref().context("no manager runs")?.metrics().await
    }

    /// What a health endpoint of the running manager answers.
    ///
    /// # Errors
    /// When none runs.
    pub async fn health(&self, path: &str) -> Result<capasg_environment::loopback::Answer> {
        self.manager.lock().await.as_ref().context("no manager runs")?.health(path).await
    }

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
        let agreed = phase == "Running"
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

    /// The ASGMachinePools of the namespace.
    #[must_use]
    pub fn pools(&self) -> Api<ASGMachinePool> {
        Api::namespaced(self.scenario.client.clone(), &self.scenario.namespace)
    }

    /// The ASGMachines of the namespace.
    #[must_use]
    pub fn asg_machines(&self) -> Api<ASGMachine> {
        Api::namespaced(self.scenario.client.clone(), &self.scenario.namespace)
    }

    /// Cluster API's kind of this name in the namespace.
    #[must_use]
    pub fn core(&self, kind: &str) -> Api<DynamicObject> {
        dynamic(&self.scenario.client, &self.scenario.namespace, "cluster.x-k8s.io", "v1beta2", kind)
    }

    /// The MachinePools of the namespace.
    #[must_use]
    pub fn machine_pools(&self) -> Api<DynamicObject> {
        self.core("MachinePool")
    }

    /// The Machines of the namespace.
    #[must_use]
    pub fn machines(&self) -> Api<DynamicObject> {
        self.core("Machine")
    }

    /// The Clusters of the namespace.
    #[must_use]
    pub fn clusters(&self) -> Api<DynamicObject> {
        self.core("Cluster")
    }

    /// The Machines of a pool.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn machines_of(&self, pool: &str) -> Result<Vec<DynamicObject>> {
        Ok(self.machines().list(&of_pool(pool)).await?.items)
    }

    /// The ASGMachines of a pool.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn asg_machines_of(&self, pool: &str) -> Result<Vec<ASGMachine>> {
        Ok(self.asg_machines().list(&of_pool(pool)).await?.items)
    }

    /// All groups of the region.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupDump> {
        let dumps = self.scenario.simulator().dump(Some(&self.scenario.region));
        dumps.into_iter().flat_map(|dump| dump.groups).collect()
    }

    /// All launch templates of the region.
    #[must_use]
    pub fn templates(&self) -> Vec<TemplateDump> {
        let dumps = self.scenario.simulator().dump(Some(&self.scenario.region));
        dumps.into_iter().flat_map(|dump| dump.templates).collect()
    }

    /// The one group of the region.
    ///
    /// # Errors
    /// When there is none or more than one.
    pub fn group(&self) -> Result<GroupDump> {
        let mut groups = self.groups();
        ensure!(groups.len() == 1, "{} groups: {groups:?}", groups.len());
        groups.pop().context("no group")
    }

    /// The group of a pool.
    #[must_use]
    pub fn group_of(&self, pool: &ASGMachinePool) -> Option<GroupDump> {
        let arn = pool.spec.provider_id.as_deref()?;
        self.groups().into_iter().find(|group| group.arn == arn)
    }

    /// The running instances of the region, oldest first.
    #[must_use]
    pub fn instances(&self) -> Vec<InstanceDump> {
        let dumps = self.scenario.simulator().dump(Some(&self.scenario.region));
        let mut all: Vec<_> = dumps.into_iter().flat_map(|dump| dump.instances).collect();
        all.retain(|instance| instance.state == "running");
        all.sort_by(|a, b| (&a.launch_time, &a.id).cmp(&(&b.launch_time, &b.id)));
        all
    }

    /// Where the simulator's log stands, for [`Rig::calls_since`].
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.scenario.simulator().counts(&LogFilter::region(&self.scenario.region)).last_sequence
    }

    /// The calls to this test's region since a mark.
    #[must_use]
    pub fn calls_since(&self, mark: u64) -> Vec<LogEntry> {
        self.scenario.simulator().log(&LogFilter::region(&self.scenario.region).since(mark))
    }

    /// The mutations of this test's region since a mark.
    #[must_use]
    pub fn mutations_since(&self, mark: u64) -> Vec<LogEntry> {
        self.scenario.simulator().log(&LogFilter::region(&self.scenario.region).since(mark).mutations())
    }

    /// All calls of one operation to this test's region.
    #[must_use]
    pub fn calls_of(&self, action: &str) -> Vec<LogEntry> {
        self.scenario.simulator().log(&LogFilter::region(&self.scenario.region).action(action))
    }

    /// How many mutations the region has seen.
    #[must_use]
    pub fn mutations(&self) -> usize {
        self.mutations_since(0).len()
    }
}

fn of_pool(pool: &str) -> ListParams {
    let value = capasg_api::names::must_format_value(pool);
    ListParams::default().labels(&format!("cluster.x-k8s.io/pool-name={value}"))
}

/// What lets a machine join, and what nobody but the machine may see.
fn marker(scenario: &Scenario) -> String {
    format!("canary-of-{}-0451", scenario.namespace)
}

/// What base64 makes of the middle of a text, wherever in a longer one it stands.
fn base64_forms(text: &str) -> Vec<String> {
    (0..3)
        .map(|offset| {
            let shifted = format!("{}{text}", "-".repeat(offset));
            let encoded = STANDARD_NO_PAD.encode(shifted);
            // The first and the last characters depend on the neighbours.
            encoded[4..encoded.len() - 4].to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_text_is_found_at_every_offset() {
        for before in ["", "a", "ab", "abc", "abcd"] {
            let encoded = STANDARD_NO_PAD.encode(format!("{before}canary-of-a-test-0451 and more"));
            assert!(
                base64_forms("canary-of-a-test-0451").iter().any(|form| encoded.contains(form)),
                "{before}"
            );
        }
    }
}
