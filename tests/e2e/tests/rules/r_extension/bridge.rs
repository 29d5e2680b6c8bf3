//! Add-ons with the life of a Cluster, with all that takes part: core, the Runtime Extension, the add-on provider from its
//! shipped Deployment and Helm, on real API servers. The test reports in place of a control plane provider and of a cloud
//! controller.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{
    Addons, CLUSTER, Charts, Extension, MAP, Rig, Setup, TopologyOnStub, condition_of, eventually, rule,
    shared_workload_api, text,
};
use capasg_environment::{Chart, Look, dynamic};
use capasg_test_objects::is_long;
use chrono::DateTime;
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    BETWEEN, FIRST, known_hooks,
    moments::{Audit, in_order},
    put_image_of_first, refer, say, says,
};

/// A Service with a load balancer, next to the map.
const BALANCED: &str = "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  type: \
                        LoadBalancer\n  selector:\n    app: {{ .Release.Name }}\n  ports:\n  - port: 80\n";
const CSI: Chart<'static> = Chart { name: "csi", files: &[("templates/map.yaml", MAP)] };
const CHARTS: [Chart<'static>; 3] = [
    Chart { name: "cni", files: &[("templates/map.yaml", MAP)] },
    Chart { name: "ingress", files: &[("templates/map.yaml", MAP), ("templates/service.yaml", BALANCED)] },
    Chart { name: "shop", files: &[("templates/map.yaml", MAP), ("templates/service.yaml", BALANCED)] },
];
/// The version of the chart csi for each minor version of Kubernetes.
const COMPATIBLE: [(&str, &str); 3] =
    [(">=1.34 <1.35", "1.34.0"), (">=1.35 <1.36", "1.35.0"), (">=1.36 <1.37", "1.36.0")];
/// What a cloud controller sets on a Service.
const CLEANUP: &str = "service.kubernetes.io/load-balancer-cleanup";

/// How many nodes the pool has: their rollout takes longer than the rest of an upgrade.
fn nodes() -> usize {
    usize::from(is_long())
}

/// By one minor version and without nodes; in the long form by two, with a node.
// Rules: R11, X2, X5, X8
#[tokio::test]
async fn add_ons_follow_the_life_of_a_cluster() -> Result<()> {
    Box::pin(rule("r-bridge", Setup::bare(), async |rig| {
        known_hooks(rig)?;
        put_image_of_first(rig);
        let life = Life::begin(rig).await?;
        let cluster = life.create().await?;
        life.upgrade(&cluster).await?;
        life.delete().await?;
        life.order(&cluster).await?;
        life.end().await
    }))
    .await
}

/// The parts.
struct Life<'a> {
    rig: &'a Rig<'a>,
    charts: Charts,
    extension: Extension<'a>,
    addons: Addons,
    workload: Client,
    /// The versions of the control plane, the first one included.
    versions: Vec<String>,
}

impl<'a> Life<'a> {
    /// All parts run, and the `HelmChartProxies` exist before the Cluster does.
    async fn begin(rig: &'a Rig<'a>) -> Result<Self> {
        let environment = &rig.scenario.environment;
        let mut versions = vec![BETWEEN.to_owned(), environment.tools().kubernetes_version().to_owned()];
        if is_long() {
            versions.insert(0, FIRST.to_owned());
        }
        let workload = shared_workload_api(environment).await?;
        let charts = async {
            let charts = Charts::empty(rig, workload.kubeconfig()).await?;
            let csi = COMPATIBLE.map(|(_, version)| (CSI, version));
            let others = CHARTS.map(|chart| (chart, "1.0.0"));
            charts.repository.add(&[&csi[..], &others].concat()).await?;
            Ok(charts)
        };
        let settings = versions.join(",");
        let settings = [("kubernetesVersions", settings.as_str())];
        let extension = rig.extension(1, &settings);
        let (charts, extension, addons) =
            tokio::try_join!(charts, extension, Addons::start(rig, environment.management()))?;
        let compatible =
            COMPATIBLE.map(|(kubernetes, version)| json!({"kubernetes": kubernetes, "version": version}));
        let compatible = json!(compatible).to_string();
        let life = Self { rig, charts, extension, addons, workload: workload.client().await?, versions };
        let first = "after-control-plane-initialized,after-control-plane-upgrade";
        let any = json!([{"kubernetes": ">=1.34", "version": "1.0.0"}]).to_string();
        for (name, annotations) in [
            ("csi", json!({"phases": "before-control-plane-upgrade", "versions": compatible})),
            ("shop", json!({"phases": "before-cluster-delete", "depends-on": "cni,ingress"})),
            ("ingress", json!({"phases": "before-cluster-delete", "depends-on": "cni"})),
            // Not before the control plane reports a version: the values would have none at first.
            ("cni", json!({"phases": first, "versions": any})),
        ] {
            life.apply(name, &annotations).await?;
        }
        Ok(life)
    }

    async fn apply(&self, name: &str, annotations: &Value) -> Result<()> {
        let namespace = self.rig.scenario.namespace.as_str();
        let annotations = annotations.as_object().into_iter().flatten();
        let annotations: BTreeMap<String, &Value> =
            annotations.map(|(name, value)| (format!("asg.addons.cluster.x-k8s.io/{name}"), value)).collect();
        let proxy = json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
            "spec": {
                "clusterSelector": {"matchLabels": {"add-ons": "all"}}, "chartName": name, "releaseName": name,
                "repoURL": self.charts.repository.url, "namespace": namespace, "version": "1.0.0",
                // So that the release of the network changes after each step of the control plane.
                "valuesTemplate": if name == "cni" { "kubernetes: {{ .ControlPlane.status.version }}\n" } else { "" },
            },
        });
        self.rig.scenario.apply(&proxy.to_string()).await.map(drop)
    }

    async fn create(&self) -> Result<TopologyOnStub<'a>> {
        let edit = |objects: &mut Vec<Value>| {
            refer(objects, &self.extension.name)?;
            let cluster = objects.iter_mut().find(|object| object["kind"] == "Cluster");
            cluster.context("no Cluster")?["metadata"]["labels"] = json!({"add-ons": "all"});
            Ok(())
        };
        let cluster = self.rig.topology_on_stub(&self.versions[0], nodes(), edit).await?;
        cluster.topology.running("workers", nodes(), &self.versions[0]).await?;
        self.deployed("csi", 1, if is_long() { "1.34.0" } else { "1.35.0" }).await?;
        for name in ["cni", "ingress", "shop"] {
            self.deployed(name, 1, "1.0.0").await?;
        }
        for name in ["ingress", "shop"] {
            self.balance(name).await?;
        }
        Ok(cluster)
    }

    async fn upgrade(&self, cluster: &TopologyOnStub<'_>) -> Result<()> {
        let last = self.versions.last().context("no version")?;
        cluster.topology.patch(&json!({"spec": {"topology": {"version": last}}})).await?;
        cluster.topology.running("workers", nodes(), last).await?;
        cluster.topology.reconciled("True/ReconcileSucceeded", "").await?;
        let revisions = i64::try_from(self.versions.len())?;
        self.deployed("csi", revisions, "1.36.0").await?;
        self.deployed("cni", revisions, "1.0.0").await?;
        for name in ["ingress", "shop"] {
            self.deployed(name, 1, "1.0.0").await?;
        }
        Ok(())
    }

    /// Each of the two that ask is uninstalled, and its load balancer is waited for, before the next one and before the
    /// Cluster.
    async fn delete(&self) -> Result<()> {
        self.rig.scenario.kubectl(&["delete", "cluster", CLUSTER, "--wait=false"]).await?;
        let namespace = &self.rig.scenario.namespace;
        for (name, left) in [("shop", &["cni", "csi", "ingress"][..]), ("ingress", &["cni", "csi"])] {
            let message = self.waits_for_cloud(name).await?;
            let expected = format!(
                "objects of the Cluster that have resources in the cloud remain: Service {namespace}/{name}"
            );
            ensure!(message == expected, "{message}");
            if is_long() {
                says(self.rig, &format!("remain: Service {namespace}/{name}")).await?;
            }
            ensure!(self.releases().await? == left, "{:?}", self.releases().await?);
            let is_gone = |object: &DynamicObject| object.metadata.deletion_timestamp.is_some();
            let pools = self.rig.machine_pools().list(&ListParams::default()).await?.items;
            let planes = self.control_planes().await?;
            ensure!(pools.len() == 1 && planes.len() == 1, "core did not wait");
            ensure!(!pools.iter().chain(&planes).any(is_gone), "core did not wait");
            self.unbalance(name).await?;
        }
        eventually("the Cluster is gone", async || {
            let left = self.rig.clusters().get_opt(CLUSTER).await?;
            let groups = self.rig.scenario.simulator().leftovers(Some(&self.rig.scenario.region));
            Ok(Look::when(left.is_none() && groups.is_empty(), format!("{groups:?}")))
        })
        .await?;
        ensure!(
            self.releases().await? == ["cni", "csi"],
            "the network and the volumes are never uninstalled"
        );
        Ok(())
    }

    async fn end(self) -> Result<()> {
        let log = self.addons.log()?;
        ensure!(!log.contains("orbidden"), "a permission is missing: {log}");
        self.addons.stop().await?;
        self.extension.remove().await
    }

    /// Waits until a release has a revision, which is ready, of a version of the chart.
    async fn deployed(&self, name: &str, revision: i64, chart: &str) -> Result<()> {
        eventually(&format!("{name} has revision {revision}"), async || {
            let release = self.addons.release_of(name, CLUSTER).await?;
            let is_ready = release.data["status"]["revision"] == revision
                && condition_of(&release, "Ready")["status"] == "True"
                && text(&release, "/spec/version") == chart;
            Ok(Look::when(is_ready, release.data.to_string()))
        })
        .await
    }

    /// The message of a release that waits for its load balancer.
    async fn waits_for_cloud(&self, name: &str) -> Result<String> {
        eventually(&format!("{name} waits for its load balancer"), async || {
            let ready = condition_of(&self.addons.release_of(name, CLUSTER).await?, "HelmReleaseReady");
            let waits = ready["reason"] == "CloudResourcesRemain";
            Ok(Look::from_option(
                ready["message"].as_str().filter(|_| waits).map(str::to_owned),
                ready.to_string(),
            ))
        })
        .await
    }

    async fn releases(&self) -> Result<Vec<String>> {
        let listed = self.charts.helm(&self.rig.scenario.namespace, &["list", "--all"]).await?;
        Ok(listed.iter().filter_map(|one| one["name"].as_str().map(str::to_owned)).collect())
    }

    async fn control_planes(&self) -> Result<Vec<DynamicObject>> {
        let (client, namespace) = (&self.rig.scenario.client, &self.rig.scenario.namespace);
        let planes =
            dynamic(client, namespace, "controlplane.cluster.x-k8s.io", "v1alpha1", "StubControlPlane");
        Ok(planes.list(&ListParams::default()).await?.items)
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(self.workload.clone(), &self.rig.scenario.namespace)
    }

    /// What a cloud controller does when it creates a load balancer.
    async fn balance(&self, name: &str) -> Result<()> {
        let parameters = PatchParams::default();
        let finalizer = Patch::Merge(json!({"metadata": {"finalizers": [CLEANUP]}}));
        self.services().patch(name, &parameters, &finalizer).await?;
        let status = Patch::Merge(json!({"status": {"loadBalancer": {"ingress": [{"hostname": "a.elb"}]}}}));
        self.services().patch_status(name, &parameters, &status).await?;
        Ok(())
    }

    /// What it does when it has deleted one.
    async fn unbalance(&self, name: &str) -> Result<()> {
        let finalizer = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        self.services().patch(name, &PatchParams::default(), &finalizer).await?;
        Ok(())
    }

    /// What happened, in the order in which it has to happen.
    async fn order(&self, cluster: &TopologyOnStub<'_>) -> Result<()> {
        let namespace = &self.rig.scenario.namespace;
        let core = Audit::of(self.rig.writes()?, namespace);
        let helm = Audit::of(self.rig.workload_writes().await?, namespace);
        let plane =
            |version: &str| core.applied("stubcontrolplanes", cluster.control_plane.seen_at(version)?);
        let released = |name: &str| core.gone("helmreleaseproxies", &format!("{name}-"));
        let mut moments = Vec::new();
        let mut add = |what: String, at| moments.push((what, at));
        for (version, revision) in self.versions.iter().zip(1..) {
            if revision == 1 {
                add(format!("core creates the control plane of {version}"), plane(version)?);
            } else {
                add(format!("Helm begins csi {revision}"), helm.begun("csi", revision)?);
                add(format!("csi {revision} is deployed"), helm.deployed("csi", revision)?);
                add(format!("core upgrades the control plane to {version}"), plane(version)?);
            }
            add(format!("Helm begins cni {revision}"), helm.begun("cni", revision)?);
            add(format!("cni {revision} is deployed"), helm.deployed("cni", revision)?);
            if revision == 1 {
                let next = helm.begun("csi", 1)?.min(helm.begun("ingress", 1)?);
                add("Helm begins csi 1 or ingress 1".to_owned(), next);
                add("ingress 1 is deployed".to_owned(), helm.deployed("ingress", 1)?);
                add("Helm begins shop 1".to_owned(), helm.begun("shop", 1)?);
            }
        }
        let last = self.versions.last().context("no version")?;
        let workers = core.applied("machinepools", cluster.workers.seen_at(last)?)?;
        add(format!("core upgrades the workers to {last}"), workers);
        add("a user deletes the Cluster".to_owned(), core.deleted("clusters", CLUSTER)?);
        for name in ["shop", "ingress"] {
            add(format!("Helm deletes the Service of {name}"), helm.deleted("services", name)?);
            add(format!("the load balancer of {name} is gone"), helm.gone("services", name)?);
            add(format!("the HelmReleaseProxy of {name} is gone"), released(name)?);
        }
        add("core deletes the MachinePool".to_owned(), core.deleted("machinepools", "")?);
        add("core deletes the control plane".to_owned(), core.deleted("stubcontrolplanes", "")?);
        in_order(&moments)?;
        self.agrees_with_helm(&helm).await
    }

    /// The history of Helm has the same revisions, begun between the same writes.
    async fn agrees_with_helm(&self, helm: &Audit) -> Result<()> {
        for name in ["cni", "csi"] {
            let history = self.charts.helm(&self.rig.scenario.namespace, &["history", name]).await?;
            ensure!(history.len() == self.versions.len(), "{history:?}");
            for (one, revision) in history.iter().zip(1..) {
                let updated = one["updated"].as_str().context("no time")?;
                say(&format!("helm history {name}: {revision} {} {updated}", one["chart"]))?;
                let updated = DateTime::parse_from_rfc3339(updated)?.to_utc();
                let (before, after) = (helm.deployed(name, revision - 1), helm.deployed(name, revision)?);
                let is_after = before.map_or(true, |before| before < updated);
                ensure!(is_after && updated < after, "{name} {revision}: {updated}, and not before {after}");
            }
        }
        Ok(())
    }
}
