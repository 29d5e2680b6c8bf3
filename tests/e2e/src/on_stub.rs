//! Clusters with a topology whose workload API is a real API server, which Helm requires: the API server in the memory of the
//! development provider serves neither `/version` nor schemas. In place of a control plane provider, the test reports that the
//! control plane has each version that core requests.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use capasg_environment::{
    Join, WorkloadCluster, control_plane_secrets, dynamic, report_stub_control_plane, stand_in,
};
use chrono::{DateTime, Utc};
use futures::StreamExt as _;
use kube::{
    Api, Client, ResourceExt as _,
    api::DynamicObject,
    runtime::{WatchStreamExt as _, wait::await_condition, watcher},
};
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use crate::{CLUSTER, Rig, Topology, look::text, shared_workload_api, target::kubeadm_reads_stubs};

/// The flavor whose class is changed.
const FLAVOR: &str = "development-topology";
/// The kinds of the class that other ones replace.
const REPLACED: [&str; 3] = ["DevClusterTemplate", "DevMachineTemplate", "KubeadmControlPlaneTemplate"];
/// The name of the templates that replace them.
const TEMPLATE: &str = "asg-on-stub";

/// A cluster with a topology, and the versions that core has requested.
pub struct TopologyOnStub<'a> {
    /// The cluster. Its API is the one that stub control planes share.
    pub topology: Topology<'a>,
    /// The versions of its control plane.
    pub control_plane: Versions,
    /// The versions of its only pool.
    pub workers: Versions,
}

/// Versions, and when each was seen first.
type Seen = Vec<(String, DateTime<Utc>)>;

/// When a field of the only object of a kind had each version first.
pub struct Versions {
    seen: Arc<Mutex<Seen>>,
    _task: AbortOnDropHandle<()>,
}

impl Versions {
    /// When a version was seen first, through the watch of the API server.
    ///
    /// # Errors
    /// When it was not.
    pub fn seen_at(&self, version: &str) -> Result<DateTime<Utc>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let found = seen.iter().find(|(one, _)| one == version);
        found.map(|(_, at)| *at).with_context(|| format!("{version} was not requested: {seen:?}"))
    }

    /// Watches the field at this pointer. For a stub control plane, each version is reported as its own as well.
    fn watch(api: Api<DynamicObject>, pointer: &'static str, reports: Option<(Client, String)>) -> Self {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let into = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let changes = watcher(api, watcher::Config::default()).applied_objects().default_backoff();
            let mut changes = std::pin::pin!(changes);
            while let Some(change) = changes.next().await {
                let Ok(object) = change else { continue };
                let version = text(&object, pointer);
                let is_new = {
                    let mut seen = into.lock().unwrap_or_else(PoisonError::into_inner);
                    let is_new = !version.is_empty() && seen.iter().all(|(one, _)| one != version);
                    if is_new {
                        seen.push((version.to_owned(), Utc::now()));
                    }
                    is_new
                };
                let Some((client, namespace)) = reports.as_ref().filter(|_| is_new) else { continue };
                if let Err(error) = upgraded(client, namespace, &object, version).await {
                    // The test fails, since core waits for the report.
                    eprintln!("the version of the stub control plane is not reported: {error:#}");
                }
            }
        });
        Self { seen, _task: AbortOnDropHandle::new(task) }
    }
}

/// Reports a version that core has requested. The upgrade of a real control plane takes minutes: core relies on it, since its
/// write of the step may remove the hooks that it has recorded before, and it records them again while the control plane is
/// being upgraded.
async fn upgraded(client: &Client, namespace: &str, plane: &DynamicObject, version: &str) -> Result<()> {
    const STEP: &str = "topology.internal.cluster.x-k8s.io/upgrade-step";
    const PENDING: &str = "runtime.cluster.x-k8s.io/pending-hooks";
    let is_first = text(plane, "/status/version").is_empty();
    if !is_first {
        let clusters = dynamic(client, namespace, "cluster.x-k8s.io", "v1beta2", "Cluster");
        let is_recorded = |cluster: Option<&DynamicObject>| {
            let annotation = |name: &str| cluster.and_then(|cluster| cluster.annotations().get(name));
            annotation(STEP).is_some_and(|step| step == version)
                && annotation(PENDING).is_some_and(|hooks| hooks.contains("AfterControlPlaneUpgrade"))
        };
        await_condition(clusters, CLUSTER, is_recorded).await?;
    }
    report_stub_control_plane(client, namespace, &plane.name_any(), version).await
}

impl Rig<'_> {
    /// A cluster of the class for development with a pool called `workers` and kubelets, all its objects edited before they
    /// are applied. Waits until the control plane is there.
    ///
    /// # Errors
    /// When the objects are refused or the control plane does not come up.
    pub async fn topology_on_stub(
        &self,
        version: &str,
        replicas: usize,
        edit: impl FnOnce(&mut Vec<Value>) -> Result<()>,
    ) -> Result<TopologyOnStub<'_>> {
        let environment = &self.scenario.environment;
        let (management, tools) = (environment.management(), environment.tools());
        let (client, namespace) = (&self.scenario.client, &self.scenario.namespace);
        stand_in::install_aws_provider(tools, management.api()).await?;
        WorkloadCluster::install_stub_kind(management).await?;
        let apply = ["apply", "--server-side", "--filename=-"];
        management.api().kubectl().feed(apply, &kubeadm_reads_stubs().to_string()).await?;
        let secrets = control_plane_secrets(namespace, CLUSTER, shared_workload_api(environment).await?)?;
        let secrets = json!({"apiVersion": "v1", "kind": "List", "items": secrets});
        self.scenario.apply(&secrets.to_string()).await?;

        let stubs =
            dynamic(client, namespace, "controlplane.cluster.x-k8s.io", "v1alpha1", "StubControlPlane");
        let reports = Some((client.clone(), namespace.clone()));
        let control_plane = Versions::watch(stubs, "/spec/version", reports);
        let workers = Versions::watch(self.machine_pools(), "/spec/template/spec/version", None);
        let edit = |objects: &mut Vec<Value>| {
            on_stub(objects)?;
            edit(objects)
        };
        self.apply_objects(FLAVOR, version, replicas, edit).await?;
        self.provision_network(management).await?;
        let cluster = WorkloadCluster::existing(management, tools, namespace, CLUSTER, true).await?;
        let kubelets = self.scenario.kubelets(&cluster, Join::BootstrapToken).await?;
        Ok(TopologyOnStub { topology: Topology::new(self, cluster, kubelets), control_plane, workers })
    }
}

/// Replaces the control plane and the network of the class.
fn on_stub(objects: &mut Vec<Value>) -> Result<()> {
    let (control_plane, network) =
        ("controlplane.cluster.x-k8s.io/v1alpha1", "infrastructure.cluster.x-k8s.io/v1beta2");
    let templates = [(control_plane, "StubControlPlaneTemplate"), (network, "AWSClusterTemplate")];
    let [control_plane, network] = templates.map(
        |(version, kind)| json!({"templateRef": {"apiVersion": version, "kind": kind, "name": TEMPLATE}}),
    );
    let find = |objects: &mut Vec<Value>, kind: &str| {
        objects.iter().position(|object| object["kind"] == kind).with_context(|| format!("no {kind}"))
    };
    let class = find(objects, "ClusterClass")?;
    objects[class]["spec"]["controlPlane"] = control_plane;
    objects[class]["spec"]["infrastructure"] = network;
    let namespace = objects[class]["metadata"]["namespace"].clone();
    let cluster = find(objects, "Cluster")?;
    let topology = objects[cluster]["spec"]["topology"].as_object_mut().context("no topology")?;
    topology.remove("controlPlane");
    objects.retain(|object| object["kind"].as_str().is_none_or(|kind| !REPLACED.contains(&kind)));
    objects.extend(templates.map(|(version, kind)| {
        json!({
            "apiVersion": version, "kind": kind, "metadata": {"name": TEMPLATE, "namespace": namespace},
            "spec": {"template": {"spec": {}}},
        })
    }));
    Ok(())
}
