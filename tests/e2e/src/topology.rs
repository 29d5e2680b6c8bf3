//! Clusters of a class that we ship, run by Cluster API's topology controller.

use anyhow::{Context as _, Result, ensure};
use capasg_api::ASGMachinePool;
use capasg_environment::{Join, Kubelets, Look, WorkloadCluster};
use kube::{
    Resource, ResourceExt as _,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{CLUSTER, Rig, condition_of, dynamic_list, eventually, text};

/// The class that the release ships for development.
pub const CLASS: &str = "asg-development";

/// The field manager of Cluster API's topology controller.
pub const TOPOLOGY: &str = "capi-topology";

/// The fields that the topology controller applies to an object: one entry of its managed fields, unless something is
/// wrong.
pub fn applied_by_topology(object: &impl Resource) -> impl Iterator<Item = Value> {
    let entries = object.meta().managed_fields.iter().flatten();
    let own = entries.filter(|entry| {
        entry.manager.as_deref() == Some(TOPOLOGY) && entry.operation.as_deref() == Some("Apply")
    });
    own.filter_map(|entry| Some(entry.fields_v1.clone()?.0))
}

/// A cluster whose objects the topology controller makes.
pub struct Topology<'a> {
    rig: &'a Rig<'a>,
    /// The cluster with its control plane in memory.
    pub cluster: WorkloadCluster,
    /// The kubelets of its nodes.
    pub kubelets: Kubelets,
}

/// One pool of a topology: its own objects have names that end at random.
#[derive(Debug, Clone)]
pub struct TopologyPool {
    /// The `MachinePool`.
    pub owner: DynamicObject,
    /// Our object.
    pub pool: ASGMachinePool,
}

impl Rig<'_> {
    /// What `clusterctl generate cluster` makes of a flavor, for this test's namespace and region.
    ///
    /// # Errors
    /// When clusterctl refuses, or answers no objects.
    pub async fn generate(&self, flavor: &str, version: &str, replicas: usize) -> Result<Vec<Value>> {
        let clusterctl = self.scenario.environment.management().clusterctl().runner().clone();
        let args = [
            "generate",
            "cluster",
            CLUSTER,
            "--infrastructure=asg",
            &format!("--flavor={flavor}"),
            &format!("--kubernetes-version={version}"),
            &format!("--worker-machine-count={replicas}"),
            &format!("--target-namespace={}", self.scenario.namespace),
        ];
        let clusterctl = clusterctl
            .env("AWS_REGION", &self.scenario.region)
            .env("AWS_NODE_AMI_ID", "ami-0a1b2c3d")
            .env("AWS_NODE_IMAGE_PARAMETER", "/images/node/v{version}");
        let text = clusterctl.run(args).await?;
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
        ensure!(!objects.is_empty(), "clusterctl generated nothing");
        Ok(objects)
    }

    /// A cluster of our class with a pool called `workers`, its `Cluster` edited before it is applied, and kubelets of
    /// the version that their image holds. Waits until the control plane is there.
    ///
    /// # Errors
    /// When the objects are refused or the control plane does not come up.
    pub async fn topology(
        &self,
        version: &str,
        replicas: usize,
        edit: impl FnOnce(&mut Value),
    ) -> Result<Topology<'_>> {
        let edit = |objects: &mut Vec<Value>| edit_cluster(objects, edit);
        self.topology_of("development-topology", version, replicas, edit).await
    }

    /// The same with all objects of a flavor whose control plane is in memory edited before they are applied.
    ///
    /// # Errors
    /// When the objects are refused or the control plane does not come up.
    pub async fn topology_of(
        &self,
        flavor: &str,
        version: &str,
        replicas: usize,
        edit: impl FnOnce(&mut Vec<Value>) -> Result<()>,
    ) -> Result<Topology<'_>> {
        let environment = &self.scenario.environment;
        let (management, tools) = (environment.management(), environment.tools());
        management.start_in_memory().await?;
        self.apply_objects(flavor, version, replicas, edit).await?;
        let namespace = &self.scenario.namespace;
        let cluster = WorkloadCluster::existing(management, tools, namespace, CLUSTER, false).await?;
        let kubelets = self.scenario.kubelets(&cluster, Join::BootstrapToken).await?;
        Ok(Topology::new(self, cluster, kubelets))
    }

    /// Applies what clusterctl makes of a flavor with a class, its `Cluster` edited before.
    pub(crate) async fn apply_topology(
        &self,
        flavor: &str,
        version: &str,
        replicas: usize,
        edit: impl FnOnce(&mut Value),
    ) -> Result<()> {
        let edit = |objects: &mut Vec<Value>| edit_cluster(objects, edit);
        self.apply_objects(flavor, version, replicas, edit).await
    }

    pub(crate) async fn apply_objects(
        &self,
        flavor: &str,
        version: &str,
        replicas: usize,
        edit: impl FnOnce(&mut Vec<Value>) -> Result<()>,
    ) -> Result<()> {
        // clusterctl looks for the templates of the class; discovery takes a moment to tell of kinds that are new.
        let mut objects = eventually(&format!("{flavor} is generated"), async || {
            self.generate(flavor, version, replicas).await.map(Look::Done)
        })
        .await?;
        edit(&mut objects)?;
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        // A Cluster is refused until the controller of its class has seen the class.
        eventually("the class and the cluster are taken", async || {
            self.scenario.apply(&list.to_string()).await.map(|_| Look::Done(()))
        })
        .await
    }
}

fn edit_cluster(objects: &mut [Value], edit: impl FnOnce(&mut Value)) -> Result<()> {
    edit(objects.iter_mut().find(|object| object["kind"] == "Cluster").context("no Cluster")?);
    Ok(())
}

impl<'a> Topology<'a> {
    pub(crate) fn new(rig: &'a Rig<'a>, cluster: WorkloadCluster, kubelets: Kubelets) -> Self {
        Self { rig, cluster, kubelets }
    }
}

impl Topology<'_> {
    /// The objects of one pool, by its name in the topology.
    ///
    /// # Errors
    /// When there is not exactly one MachinePool, or no pool of ours for it.
    pub async fn pool(&self, name: &str) -> Result<TopologyPool> {
        let selector = format!("topology.cluster.x-k8s.io/pool-name={name}");
        let mut owners = dynamic_list(&self.rig.machine_pools(), &selector).await?;
        ensure!(owners.len() == 1, "{} MachinePools for {name}", owners.len());
        let owner = owners.pop().context("no MachinePool")?;
        let reference = text(&owner, "/spec/template/spec/infrastructureRef/name");
        let pool = self.rig.pools().get(reference).await?;
        Ok(TopologyPool { owner, pool })
    }

    /// Waits until a pool has so many nodes, all of one version, and everyone agrees: core, our object and AWS.
    ///
    /// # Errors
    /// When it does not in time; the error says who disagrees.
    pub async fn running(&self, name: &str, replicas: usize, version: &str) -> Result<TopologyPool> {
        eventually(&format!("pool {name} runs {replicas} of {version}"), async || {
            let found = self.pool(name).await?;
            let why = self.disagreement(&found, replicas, version).await?;
            Ok(why.map_or_else(|| Look::Done(found.clone()), Look::Not))
        })
        .await
    }

    async fn disagreement(
        &self,
        of: &TopologyPool,
        replicas: usize,
        version: &str,
    ) -> Result<Option<String>> {
        let phase = text(&of.owner, "/status/phase");
        let wanted = text(&of.owner, "/spec/template/spec/version");
        let status = of.pool.status.clone().unwrap_or_default();
        let machines = self.rig.machines_of(&of.owner.name_any()).await?;
        let versions: Vec<&str> =
            machines.iter().map(|machine| text(machine, "/status/nodeInfo/kubeletVersion")).collect();
        let group = self.rig.group_of(&of.pool).map(|group| (group.desired, group.instances.len()));
        let agreed = phase == "Running"
            && wanted == version
            && versions.len() == replicas
            && versions.iter().all(|one| *one == version)
            && usize::try_from(status.up_to_date_replicas)? == replicas
            && group == Some((i64::try_from(replicas)?, replicas));
        Ok((!agreed).then(|| {
            let conditions = status.conditions.iter();
            let conditions: Vec<String> =
                conditions.map(|one| format!("{}={} {}", one.type_, one.status, one.message)).collect();
            format!(
                "phase {phase}, version {wanted}, Nodes {versions:?}, up to date {}, group (desired, instances) \
                 {group:?}, {}",
                status.up_to_date_replicas,
                conditions.join("; ")
            )
        }))
    }

    /// Sets a variable of the topology.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn set_variable(&self, name: &str, value: Value) -> Result<()> {
        let cluster = self.rig.clusters().get(CLUSTER).await?;
        let mut variables =
            cluster.data["spec"]["topology"]["variables"].as_array().cloned().unwrap_or_default();
        variables.retain(|variable| variable["name"] != name);
        variables.push(json!({"name": name, "value": value}));
        self.patch(&json!({"spec": {"topology": {"variables": variables}}})).await
    }

    /// Merges into the Cluster.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patch(&self, patch: &Value) -> Result<()> {
        self.rig.clusters().patch(CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Waits until the topology controller says this: status and reason of `TopologyReconciled`, and a part of its message.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn reconciled(&self, wanted: &str, message: &str) -> Result<()> {
        eventually(&format!("TopologyReconciled is {wanted}: {message}"), async || {
            let cluster = self.rig.clusters().get(CLUSTER).await?;
            let found = condition_of(&cluster, "TopologyReconciled");
            let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
            let current = found["observedGeneration"].as_i64() == cluster.metadata.generation;
            let is = format!("{}/{}", text("status"), text("reason"));
            Ok(Look::when(
                current && is == wanted && text("message").contains(message),
                format!("{is} (of this generation: {current}): {}", text("message")),
            ))
        })
        .await
    }

    /// The writes of the topology controller to this test's objects, dry runs left out, oldest first.
    ///
    /// # Errors
    /// When the audit log cannot be read.
    pub fn writes(&self) -> Result<Vec<capasg_environment::Write>> {
        let all = self.rig.writes()?.into_iter();
        Ok(all.filter(|write| write.manager == TOPOLOGY && !write.dry_run).collect())
    }

    /// The names of all objects that a selector of kubectl finds, as `kind/name`.
    ///
    /// # Errors
    /// When kubectl fails.
    pub async fn versions_of(&self, kinds: &str) -> Result<Vec<String>> {
        let columns = "--output=custom-columns=K:.kind,N:.metadata.name,V:.metadata.resourceVersion";
        let text = self.rig.scenario.kubectl(&["get", kinds, columns, "--no-headers"]).await?;
        Ok(text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect())
    }

    /// The instance ids of a pool's group.
    #[must_use]
    pub fn instances_of(&self, of: &TopologyPool) -> Vec<String> {
        let mut ids = self.rig.group_of(&of.pool).map(|group| group.instances).unwrap_or_default();
        ids.sort();
        ids
    }

    /// All pools of ours in the namespace.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn pools(&self) -> Result<Vec<ASGMachinePool>> {
        Ok(self.rig.pools().list(&ListParams::default()).await?.items)
    }
}
