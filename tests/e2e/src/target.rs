//! The second management cluster, to which all tests move their pools, and a manager of the test's own there.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use capasg_api::{ASGMachine, ASGMachinePool};
use capasg_environment::{
    Environment, Look, Management, ManagementOptions, Manager, ManagerOptions, ManagerPlan, Output,
    WorkloadCluster, Write, dynamic,
};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

use crate::{CLUSTER, Rig, eventually, look::text, moves::Source};

/// The access key of managers there, by which the simulated AWS tells whose a call is.
pub const ACCESS_KEY: &str = capasg_environment::SECOND_MANAGER;

/// How long bootstrap tokens live there: the kubeadm provider replaces one after half of that, looking every third.
pub const TOKEN_TTL: &str = "30s";

/// The second management cluster of this process; it ends with it.
///
/// # Errors
/// When it does not start.
pub async fn shared(environment: &Arc<Environment>) -> Result<&'static Management> {
    static SHARED: OnceCell<Management> = OnceCell::const_new();
    SHARED
        .get_or_try_init(|| async {
            let args = BTreeMap::from([(
                "bootstrap-kubeadm".to_owned(),
                vec![format!("--bootstrap-token-ttl={TOKEN_TTL}")],
            )]);
            let options = ManagementOptions {
                name: "target".to_owned(),
                upstream_args: args,
                ..ManagementOptions::default()
            };
            let target = environment.second_management(options).await?;
            WorkloadCluster::install_stub_kind(&target).await?;
            let apply = ["apply", "--server-side", "--filename=-"];
            target.api().kubectl().feed(apply, &kubeadm_reads_stubs().to_string()).await?;
            anyhow::Ok(target)
        })
        .await
}

/// The kubeadm bootstrap provider reads a control plane's version. Its own role names the kinds that it knows.
pub(crate) fn kubeadm_reads_stubs() -> Value {
    let name = "kubeadm-reads-stub-control-planes";
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [{
                "apiGroups": ["controlplane.cluster.x-k8s.io"],
                "resources": ["stubcontrolplanes"],
                "verbs": ["get", "list", "watch"],
            }],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{
                "kind": "ServiceAccount",
                "name": "capi-kubeadm-bootstrap-manager",
                "namespace": "capi-kubeadm-bootstrap-system",
            }],
        },
    ]})
}

/// A test's share of the second management cluster: its namespace there, and a manager for that alone.
pub struct Target<'a> {
    rig: &'a Rig<'a>,
    /// The cluster.
    pub management: &'static Management,
    /// A client of it with an administrator's rights.
    pub client: Client,
    plan: ManagerPlan,
    manager: Mutex<Option<Manager>>,
}

impl Rig<'_> {
    /// The second management cluster, with a manager of ours that runs from the start.
    ///
    /// # Errors
    /// When either does not start.
    pub async fn target(&self) -> Result<Target<'_>> {
        let environment = &self.scenario.environment;
        let management = shared(environment).await?;
        let program = environment.settings().manager.clone().context("no manager")?;
        let mut env = environment.cloud().env();
        env.insert("AWS_ACCESS_KEY_ID".to_owned(), ACCESS_KEY.to_owned());
        let options = ManagerOptions {
            name: format!("capasg-{}", self.scenario.namespace),
            args: vec![format!("--namespace={}", self.scenario.namespace)],
            env,
            ..ManagerOptions::default()
        };
        let plan = management.plan_manager("infrastructure-asg", &program, &options).await?;
        let manager = Mutex::new(Some(plan.start_ready().await?));
        Ok(Target { rig: self, management, client: management.api().client().await?, plan, manager })
    }

    /// The status of the stub control plane, which a move drops.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn control_plane(&self) -> Result<Value> {
        let found = stubs(&self.scenario.client, &self.scenario.namespace).get(CLUSTER).await?;
        Ok(json!({"status": found.data["status"]}))
    }

    /// `clusterctl move` from the test's management cluster, whatever comes of it.
    ///
    /// # Errors
    /// When clusterctl cannot be started.
    pub async fn clusterctl_move(&self, args: &[&str]) -> Result<Output> {
        let mut all = vec!["move", "--namespace", &self.scenario.namespace];
        all.extend(args);
        self.scenario.environment.management().clusterctl().runner().output(all, None).await
    }
}

fn stubs(client: &Client, namespace: &str) -> Api<DynamicObject> {
    dynamic(client, namespace, "controlplane.cluster.x-k8s.io", "v1alpha1", "StubControlPlane")
}

impl Target<'_> {
    /// Moves all of the test's namespace here with clusterctl, and says on the stub control plane's behalf what it has
    /// no controller to say. Answers what clusterctl printed.
    ///
    /// # Errors
    /// When clusterctl fails.
    pub async fn move_here(&self) -> Result<String> {
        let control_plane = self.rig.control_plane().await?;
        let said = self.carry_here().await?;
        self.settle(&control_plane).await?;
        Ok(said)
    }

    /// Moves all of the test's namespace here, as soon as clusterctl does. Answers what it printed.
    ///
    /// # Errors
    /// When clusterctl fails, or an object was deleted although the Cluster was paused.
    pub async fn carry_here(&self) -> Result<String> {
        let kubectl = self.rig.scenario.environment.management().api().kubectl();
        let source = Source { kubectl, namespace: self.namespace() };
        let to = self.management.api().kubeconfig().display().to_string();
        let send = async || self.rig.clusterctl_move(&["--to-kubeconfig", &to]).await;
        source.moved(send, || self.rig.writes()).await
    }

    /// Moves all of the test's namespace back to the first management cluster, as soon as clusterctl does.
    ///
    /// # Errors
    /// When clusterctl fails, or an object was deleted although the Cluster was paused.
    pub async fn carry_back(&self) -> Result<String> {
        let source = Source { kubectl: self.management.api().kubectl(), namespace: self.namespace() };
        let first = self.rig.scenario.environment.management();
        let to = first.api().kubeconfig().display().to_string();
        let args = ["move", "--namespace", self.namespace(), "--to-kubeconfig", &to];
        let send = async || self.management.clusterctl().runner().output(args, None).await;
        source.moved(send, || self.writes()).await
    }

    /// Moves all of the test's namespace back to the first management cluster.
    ///
    /// # Errors
    /// When clusterctl fails.
    pub async fn move_back(&self) -> Result<()> {
        let source = &self.rig.scenario;
        let found = stubs(&self.client, self.namespace()).get(CLUSTER).await?;
        self.carry_back().await?;
        let status = Patch::Merge(json!({"status": found.data["status"]}));
        let stubs = stubs(&source.client, self.namespace());
        stubs.patch_status(CLUSTER, &PatchParams::default(), &status).await?;
        Ok(())
    }

    /// Gives the stub control plane its status back.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn settle(&self, control_plane: &Value) -> Result<()> {
        let stubs = stubs(&self.client, self.namespace());
        stubs.patch_status(CLUSTER, &PatchParams::default(), &Patch::Merge(control_plane)).await?;
        Ok(())
    }

    /// The test's namespace, the same in both clusters.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.rig.scenario.namespace
    }

    /// The ASGMachinePools here.
    #[must_use]
    pub fn pools(&self) -> Api<ASGMachinePool> {
        Api::namespaced(self.client.clone(), self.namespace())
    }

    /// The ASGMachines here.
    #[must_use]
    pub fn asg_machines(&self) -> Api<ASGMachine> {
        Api::namespaced(self.client.clone(), self.namespace())
    }

    /// Cluster API's kind of this name here.
    #[must_use]
    pub fn core(&self, kind: &str) -> Api<DynamicObject> {
        dynamic(&self.client, self.namespace(), "cluster.x-k8s.io", "v1beta2", kind)
    }

    /// Waits until core, our objects and AWS agree on so many instances.
    ///
    /// # Errors
    /// When they do not in time; the error says who disagrees.
    pub async fn running(&self, name: &str, replicas: usize) -> Result<()> {
        eventually(&format!("{name} runs {replicas} on the target"), async || {
            let owner = self.core("MachinePool").get(name).await?;
            let nodes = owner.data.pointer("/status/nodeRefs").and_then(Value::as_array).map_or(0, Vec::len);
            let phase = text(&owner, "/status/phase");
            let machines = self.core("Machine").list(&ListParams::default()).await?.items;
            let ready = machines.iter().filter(|machine| text(machine, "/status/phase") == "Running").count();
            let pool = self.pools().get(name).await?;
            let status = pool.status.clone().unwrap_or_default();
            let group = self.rig.group()?;
            let agreed = phase == "Running"
                && [nodes, machines.len(), ready, pool.spec.provider_id_list.len(), group.instances.len()]
                    .iter()
                    .all(|count| *count == replicas)
                && status.ready
                && usize::try_from(status.ready_replicas)? == replicas;
            let conditions: Vec<_> = status.conditions.iter().filter(|one| one.status == "False").collect();
            Ok(Look::when(
                agreed,
                format!(
                    "phase {phase}, nodes {nodes}, Machines {} ({ready} running), list {:?}, group {group:?}, \
                     {conditions:?}",
                    machines.len(),
                    pool.spec.provider_id_list
                ),
            ))
        })
        .await
    }

    /// Merges into a MachinePool.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patch_owner(&self, name: &str, patch: &Value) -> Result<()> {
        self.core("MachinePool").patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// kubectl here, in the test's namespace.
    ///
    /// # Errors
    /// When kubectl fails.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        let mut all = args.to_vec();
        all.extend(["--namespace", self.namespace()]);
        self.management.api().kubectl().run(all).await
    }

    /// Deletes a MachinePool and waits until nothing is left of it, here and in the cloud.
    ///
    /// # Errors
    /// When something is left in the end.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.kubectl(&["delete", "machinepool", name, "--wait=false"]).await?;
        eventually("nothing is left", async || {
            let left = self.rig.scenario.simulator().leftovers(Some(&self.rig.scenario.region));
            let pool = self.pools().get_opt(name).await?.is_some();
            let machines = self.core("Machine").list(&ListParams::default()).await?.items.len();
            let gone = left.is_empty() && !pool && machines == 0;
            Ok(Look::when(gone, format!("cloud {left:?}, our pool {pool}, Machines {machines}")))
        })
        .await
    }

    /// The writes to the test's namespace here, oldest first.
    ///
    /// # Errors
    /// When the audit log cannot be read.
    pub fn writes(&self) -> Result<Vec<Write>> {
        let all = self.management.api().writes()?;
        Ok(all.into_iter().filter(|write| write.namespace == self.namespace()).collect())
    }

    /// The user that the manager here writes as.
    #[must_use]
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.plan.namespace(), self.plan.service_account())
    }

    /// Ends the manager here as Kubernetes does; every test that started one does this last.
    ///
    /// # Errors
    /// When it does not run, or ends with a failure.
    pub async fn stop(&self) -> Result<()> {
        let status = self.manager.lock().await.take().context("no manager runs")?.stop().await?;
        ensure!(status.success(), "the manager on the target ended with {status}");
        Ok(())
    }
}
