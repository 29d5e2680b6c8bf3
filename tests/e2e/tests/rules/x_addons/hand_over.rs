//! X1, X4: releases are handed over from and to Cluster API Add-on Provider for Helm (CAAPH), with its own program and its own
//! manifests, on a management cluster of their own. Nothing is installed again.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{
    Addons, CLUSTER, Caaph, Charts, DEMO, Rig, Setup, add_ons, condition_of, eventually, rule,
    shared_workload_api,
};
use capasg_environment::Look;
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::other::{other, stop};

const PROXY: &str = "demo";

// Rules: X1, X4
#[tokio::test]
#[ignore = "long form: builds CAAPH, and starts a management cluster for it"]
async fn a_hand_over_from_and_to_caaph_reinstalls_nothing() -> Result<()> {
    Box::pin(rule("x-hand-over", Setup::bare(), async |rig| {
        let lab = Lab::new(rig).await?;
        lab.caaph.install().await?;
        let theirs = lab.caaph.plan().await?.start_ready().await?;
        lab.create().await?;
        lab.has_revisions("CAAPH has installed it", 1).await?;
        stop(theirs).await?;
        lab.delete_caaph().await?;

        let ours = Addons::start_elected(rig, &lab.caaph.management).await?;
        let release = lab.taken_over(&ours).await?;
        println!("x-hand-over: taken over: {:?}", release.annotations());
        lab.has_revisions("we have taken it over", 1).await?;
        lab.change("greeting: ours\n").await?;
        lab.has_revisions("we have upgraded it", 2).await?;
        ours.stop().await?;

        lab.caaph.install().await?;
        let theirs = lab.caaph.plan().await?.start_ready().await?;
        lab.change("greeting: theirs\n").await?;
        lab.has_revisions("CAAPH has upgraded it", 3).await?;
        stop(theirs).await
    }))
    .await
}

struct Lab<'a> {
    rig: &'a Rig<'a>,
    charts: Charts,
    caaph: Caaph,
}

impl<'a> Lab<'a> {
    async fn new(rig: &'a Rig<'a>) -> Result<Self> {
        let caaph = other(rig, "hand-over").await?;
        let workload = shared_workload_api(&rig.scenario.environment).await?;
        let charts = Charts::empty(rig, workload.kubeconfig()).await?;
        charts.repository.add(&[(DEMO, "1.0.0")]).await?;
        Ok(Self { rig, charts, caaph })
    }

    /// What `clusterctl delete --addon helm` deletes: neither the definitions, nor the namespace. Otherwise its webhooks would
    /// reject every write.
    async fn delete_caaph(&self) -> Result<()> {
        let stays =
            |object: &&Value| object["kind"] != "CustomResourceDefinition" && object["kind"] != "Namespace";
        let deleted: Vec<&Value> = self.caaph.components.iter().filter(stays).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": deleted});
        let delete = ["delete", "--ignore-not-found", "--wait=false", "--filename=-"];
        self.caaph.management.api().kubectl().feed(delete, &list.to_string()).await?;
        self.bring_definitions().await
    }

    /// Replaces the definitions by ours, as clusterctl does when it installs us.
    async fn bring_definitions(&self) -> Result<()> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let client = self.caaph.management.api().client().await?;
        let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&kind));
        for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/addons/crd"))? {
            let mut ours: DynamicObject = serde_saphyr::from_str(&fs::read_to_string(file?.path())?)?;
            ours.metadata.resource_version = api.get(&ours.name_any()).await?.metadata.resource_version;
            api.replace(&ours.name_any(), &PostParams::default(), &ours).await?;
        }
        Ok(())
    }

    async fn api(&self, kind: &str) -> Result<Api<DynamicObject>> {
        let (client, namespace) = (self.caaph.management.api().client().await?, &self.rig.scenario.namespace);
        Ok(add_ons(&client, namespace, kind))
    }

    async fn create(&self) -> Result<()> {
        let namespace = self.rig.scenario.namespace.as_str();
        let proxy = json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
            "metadata": {"name": PROXY, "namespace": namespace},
            "spec": {
                "clusterSelector": {"matchLabels": {"demo": "enabled"}}, "chartName": "demo", "version": "1.0.0",
                "repoURL": self.charts.repository.url, "namespace": namespace,
                "valuesTemplate": "greeting: first\n",
            },
        });
        self.caaph.apply(&proxy).await?;
        let label = ["label", "clusters.cluster.x-k8s.io", CLUSTER, "demo=enabled", "--namespace", namespace];
        self.caaph.management.api().kubectl().run(label).await.map(drop)
    }

    async fn change(&self, values: &str) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"valuesTemplate": values}}));
        self.api("HelmChartProxy").await?.patch(PROXY, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until we have recorded the release as ours, and it is ready.
    async fn taken_over(&self, ours: &Addons) -> Result<DynamicObject> {
        ours.release("the release is taken over", |release| {
            let id = release.annotations().get("asg.addons.cluster.x-k8s.io/release-id");
            id.is_some_and(|id| id.starts_with("taken-over-"))
                && condition_of(release, "Ready")["status"] == "True"
        })
        .await
    }

    /// Waits until the object shows this revision as deployed, and the history of Helm has exactly the revisions up to it.
    async fn has_revisions(&self, what: &str, revisions: i64) -> Result<()> {
        let releases = self.api("HelmReleaseProxy").await?;
        let name = eventually(what, async || {
            let found = releases.list(&ListParams::default()).await?.items.pop().context("none")?;
            let status = &found.data["status"];
            let is = status["revision"] == revisions && status["status"] == "deployed";
            let name = found.data["spec"]["releaseName"].as_str().map(str::to_owned);
            Ok(Look::from_option(name.filter(|_| is), found.data.to_string()))
        })
        .await?;
        let history = self.charts.helm(&self.rig.scenario.namespace, &["history", &name]).await?;
        for one in &history {
            println!("x-hand-over: {what}: {} {} {}", one["revision"], one["status"], one["description"]);
        }
        let found: Vec<i64> = history.iter().filter_map(|one| one["revision"].as_i64()).collect();
        ensure!(found == (1..=revisions).collect::<Vec<_>>(), "{history:?}");
        Ok(())
    }
}
