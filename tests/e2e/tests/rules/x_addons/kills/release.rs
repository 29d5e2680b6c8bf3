//! One release, as the workload cluster and the objects show it.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{Charts, MAP, Rig, add_ons, condition_of, eventually};
use capasg_environment::{Chart, Look};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::super::PROXY;

/// The name of the release.
pub const RELEASE: &str = "demo";

/// Some resources and a hook, so that an operation has several writes.
pub const MANY: Chart<'static> = Chart {
    name: "many",
    files: &[
        ("templates/map.yaml", MAP),
        (
            "templates/more.yaml",
            "{{- range $number := until 5 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ \
             $.Release.Name }}-{{ $number }}\ndata:\n  greeting: {{ $.Values.greeting | quote }}\n{{- end }}\n",
        ),
        (
            "templates/hook.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-hook\n  annotations:\n    \
             helm.sh/hook: pre-install,pre-upgrade\n    helm.sh/hook-delete-policy: \
             before-hook-creation,hook-succeeded\n",
        ),
    ],
};

/// The release, and how it is requested.
pub struct Release<'a> {
    rig: &'a Rig<'a>,
    pub charts: Charts,
    workload: Client,
    namespace: String,
}

impl<'a> Release<'a> {
    /// With versions 1.0.0 and 1.1.0 of a chart in a repository.
    pub async fn new(rig: &'a Rig<'a>, chart: Chart<'_>) -> Result<Self> {
        let charts = Charts::empty(rig, rig.cluster()?.kubeconfig()).await?;
        charts.repository.add(&[(chart, "1.0.0"), (chart, "1.1.0")]).await?;
        let (workload, namespace) = (rig.cluster()?.client().await?, rig.scenario.namespace.clone());
        Ok(Self { rig, charts, workload, namespace })
    }

    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        add_ons(&self.rig.scenario.client, &self.namespace, kind)
    }

    /// Requests the release with a version and a greeting.
    pub async fn request(&self, chart: &str, version: &str, greeting: &str, options: &Value) -> Result<()> {
        let proxy = json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
            "metadata": {"name": PROXY, "namespace": self.namespace},
            "spec": {
                "clusterSelector": {}, "chartName": chart, "releaseName": RELEASE, "version": version,
                "repoURL": self.charts.repository.url, "namespace": self.namespace, "options": options,
                "valuesTemplate": format!("greeting: {greeting}\n"),
            },
        });
        let apply = PatchParams::apply("e2e").force();
        self.api("HelmChartProxy").patch(PROXY, &apply, &Patch::Apply(&proxy)).await?;
        Ok(())
    }

    pub async fn delete(&self) -> Result<()> {
        self.api("HelmChartProxy").delete(PROXY, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The state of each revision, as the labels of their Secrets show it.
    async fn revisions(&self) -> Result<BTreeMap<i64, String>> {
        let api: Api<Secret> = Api::namespaced(self.workload.clone(), &self.namespace);
        let selected = ListParams::default().labels(&format!("owner=helm,name={RELEASE}"));
        let secrets = api.list(&selected).await?.items;
        let revision = |secret: &Secret| -> Result<(i64, String)> {
            let label = |name: &str| secret.labels().get(name).cloned().context("a label is missing");
            Ok((label("version")?.parse()?, label("status")?))
        };
        secrets.iter().map(revision).collect()
    }

    /// Waits until a revision exists.
    pub async fn has_revision(&self, revision: i64) -> Result<()> {
        eventually(&format!("revision {revision} exists"), async || {
            let revisions = self.revisions().await?;
            Ok(Look::when(revisions.contains_key(&revision), format!("{revisions:?}")))
        })
        .await
    }

    /// Waits until the release is deployed with a version and a greeting, and its object shows it. Answers the revision.
    pub async fn is_deployed(&self, version: &str, greeting: &str) -> Result<i64> {
        let maps: Api<ConfigMap> = Api::namespaced(self.workload.clone(), &self.namespace);
        eventually(&format!("{RELEASE} is deployed with {version} and {greeting}"), async || {
            let revisions = self.revisions().await?;
            let (newest, state) = revisions.last_key_value().context("there is no revision")?;
            let data = maps.get(RELEASE).await?.data.unwrap_or_default();
            let (chart, values) = (data.get("chart"), data.get("values").context("no values")?);
            let values: Value = serde_json::from_str(values)?;
            let objects = self.api("HelmReleaseProxy").list(&ListParams::default()).await?.items;
            let is_shown = objects.len() == 1 && super::super::is_at(&objects[0], *newest);
            let is = state == "deployed"
                && chart.is_some_and(|chart| chart == version)
                && values["greeting"] == greeting
                && is_shown;
            let shown: Vec<String> = objects.iter().map(|it| condition_of(it, "Ready").to_string()).collect();
            Ok(Look::from_option(
                is.then_some(*newest),
                format!("{revisions:?} {chart:?} {values} {shown:?}"),
            ))
        })
        .await
    }

    /// Waits until nothing is left of it.
    pub async fn is_gone(&self) -> Result<()> {
        let maps: Api<ConfigMap> = Api::namespaced(self.workload.clone(), &self.namespace);
        eventually(&format!("{RELEASE} is uninstalled"), async || {
            let revisions = self.revisions().await?;
            let left: Vec<String> =
                maps.list(&ListParams::default()).await?.items.iter().map(ResourceExt::name_any).collect();
            let left: Vec<&String> = left.iter().filter(|name| name.starts_with(RELEASE)).collect();
            let proxy = self.api("HelmChartProxy").get_opt(PROXY).await?;
            let objects = self.api("HelmReleaseProxy").list(&ListParams::default()).await?.items;
            let is = revisions.is_empty() && left.is_empty() && proxy.is_none() && objects.is_empty();
            let state: Vec<String> = objects.iter().map(|object| object.data["status"].to_string()).collect();
            Ok(Look::when(is, format!("{revisions:?} {left:?} {state:?}")))
        })
        .await?;
        let listed = self.charts.helm(&self.namespace, &["list", "--all"]).await?;
        ensure!(listed.is_empty(), "{listed:?}");
        Ok(())
    }

    /// Helm itself shows one release, and a history of all revisions from 1 to `newest`, of which the last one alone is
    /// deployed.
    pub async fn is_whole(&self, newest: i64) -> Result<()> {
        let listed = self.charts.helm(&self.namespace, &["list", "--all"]).await?;
        ensure!(listed.len() == 1 && listed[0]["name"] == RELEASE, "{listed:?}");
        let history = self.charts.helm(&self.namespace, &["history", RELEASE]).await?;
        let found: Vec<i64> = history.iter().filter_map(|one| one["revision"].as_i64()).collect();
        ensure!(found == (1..=newest).collect::<Vec<_>>(), "{history:?}");
        let deployed = history.iter().filter(|one| one["status"] == "deployed").count();
        ensure!(
            deployed == 1 && history.last().is_some_and(|last| last["status"] == "deployed"),
            "{history:?}"
        );
        Ok(())
    }

    /// How many revisions were created between installations, by the audit log: each in turn.
    pub async fn created(&self) -> Result<Vec<i64>> {
        let prefix = format!("sh.helm.release.v1.{RELEASE}.v");
        let writes = self.rig.workload_writes().await?;
        let (mut created, mut unknown) = (Vec::new(), None);
        for write in writes.iter().filter(|write| write.namespace == self.namespace) {
            let number = write.name.strip_prefix(&prefix).filter(|_| write.verb == "create");
            let Some(number) = number else { continue };
            let revision: i64 = number.parse()?;
            match write.code {
                201 => {
                    if unknown.take() == Some(revision - 1) {
                        add(&mut created, revision - 1)?;
                    }
                    add(&mut created, revision)?;
                }
                // The client was killed before the response; the next one shows whether there is a revision.
                500.. => unknown = Some(revision),
                _ => {}
            }
        }
        Ok(created)
    }
}

/// One more revision: of a new installation, or the next one of the last.
fn add(created: &mut Vec<i64>, revision: i64) -> Result<()> {
    if revision == 1 {
        created.push(1);
        return Ok(());
    }
    let last = created.last_mut().context("no installation")?;
    ensure!(revision == *last + 1, "revision {revision} was created after {last}");
    *last = revision;
    Ok(())
}
