//! One of the two add-on providers on its management cluster, and one flow with it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use capasg_e2e::{Charts, add_ons, eventually, shared_workload_api};
use capasg_environment::{Environment, Look, Management, Runner, dynamic};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    fields::{Objects, Terms, fields_of, release_fields},
    record::{Flow, Step},
    stored,
};

/// How long nothing changes before it is recorded.
const SETTLED: Duration = Duration::from_millis(1500);

/// An add-on provider, and what it acts on.
#[derive(Clone)]
pub struct Side {
    client: Client,
    workload: Client,
    kubectl: Runner,
    helm: Runner,
    /// The namespace of the objects.
    pub namespace: String,
    /// What the namespaces of releases begin with: both providers have releases on one API server.
    spaces: String,
    /// The URL of the chart repository.
    pub repository: String,
}

impl Side {
    pub async fn new(
        environment: &Arc<Environment>,
        management: &Management,
        (namespace, spaces): (&str, &str),
        charts: &Charts,
    ) -> Result<Self> {
        let workload = shared_workload_api(environment).await?;
        Ok(Self {
            client: management.api().client().await?,
            workload: workload.client().await?,
            helm: charts.repository.helm_for(workload.kubeconfig()),
            kubectl: management.api().kubectl().clone(),
            namespace: namespace.to_owned(),
            spaces: format!("{namespace}-{spaces}"),
            repository: charts.repository.url.clone(),
        })
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        add_ons(&self.client, &self.namespace, kind)
    }

    /// Changes a Cluster.
    pub async fn change_cluster(&self, name: &str, patch: &Value) -> Result<()> {
        let clusters = dynamic(&self.client, &self.namespace, "cluster.x-k8s.io", "v1beta2", "Cluster");
        clusters.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Applies objects on the management cluster.
    pub async fn apply(&self, object: &Value) -> Result<()> {
        self.kubectl.feed(["apply", "--filename=-"], &object.to_string()).await.map(drop)
    }

    /// Deletes the kubeconfig of a Cluster.
    pub async fn remove_kubeconfig(&self, cluster: &str) -> Result<()> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        secrets.delete(&format!("{cluster}-kubeconfig"), &DeleteParams::default()).await?;
        Ok(())
    }

    /// Creates a Cluster whose control plane reports nothing yet.
    pub async fn create_uninitialized(&self, name: &str) -> Result<()> {
        let (group, kind) = ("controlplane.cluster.x-k8s.io", "StubControlPlane");
        let metadata = json!({"name": name, "namespace": self.namespace});
        self.apply(&json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": format!("{group}/v1alpha1"), "kind": kind, "metadata": metadata, "spec": {}},
            {
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata,
                "spec": {"controlPlaneRef": {"apiGroup": group, "kind": kind, "name": name}},
            },
        ]}))
        .await
    }

    /// What the API server would store of a `HelmChartProxy`, without unknown fields.
    pub async fn dry_run(&self, manifest: &Value) -> Result<Value> {
        let mut manifest = manifest.clone();
        manifest["metadata"]["namespace"] = json!(self.namespace);
        let create = ["create", "--dry-run=server", "--validate=strict", "--output=json", "--filename=-"];
        Ok(serde_json::from_str(&self.kubectl.feed(create, &manifest.to_string()).await?)?)
    }

    /// A flow with a `HelmChartProxy` of its own, which selects Clusters by a label of this name.
    pub fn flow(&self, name: &str) -> Run {
        Run {
            side: self.clone(),
            name: name.to_owned(),
            proxy: name.to_owned(),
            spaces: vec![self.space(name)],
            steps: Vec::new(),
        }
    }

    /// The namespace of releases in the workload cluster with this end.
    pub fn space(&self, end: &str) -> String {
        format!("{}-{end}", self.spaces)
    }
}

/// What a step waits for.
pub struct View {
    /// The `HelmChartProxy`, if it exists.
    pub proxy: Option<DynamicObject>,
    /// Its `HelmReleaseProxies`.
    pub releases: Vec<DynamicObject>,
}

/// A flow, and what was recorded of it.
pub struct Run {
    side: Side,
    name: String,
    proxy: String,
    /// The namespaces of its releases.
    spaces: Vec<String>,
    steps: Vec<Step>,
}

impl Run {
    /// With a `HelmChartProxy` of this name, whose releases are in this namespace.
    pub fn of(mut self, proxy: &str, space: &str) -> Self {
        proxy.clone_into(&mut self.proxy);
        self.spaces = vec![space.to_owned()];
        self
    }

    /// Creates the `HelmChartProxy`, with the local repository unless the spec has another one.
    pub async fn create(&self, spec: &Value) -> Result<()> {
        let mut object = json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
            "metadata": {"name": self.proxy, "namespace": self.side.namespace},
            "spec": {
                "clusterSelector": {"matchLabels": {&self.name: "enabled"}}, "chartName": "metallb",
                "repoURL": self.side.repository, "namespace": self.side.space(&self.name),
            },
        });
        let target = object["spec"].as_object_mut().context("no map")?;
        target.extend(spec.as_object().context("no map")?.clone());
        target.retain(|_, value| !value.is_null());
        let object: DynamicObject = serde_json::from_value(object)?;
        self.side.api("HelmChartProxy").create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// Changes the spec of the `HelmChartProxy`.
    pub async fn change(&self, spec: &Value) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.side.api("HelmChartProxy").patch(&self.proxy, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Deletes the `HelmChartProxy`.
    pub async fn delete(&self) -> Result<()> {
        self.side.api("HelmChartProxy").delete(&self.proxy, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Sets the label on a Cluster that the `HelmChartProxy` selects by, or removes it.
    pub async fn select(&self, cluster: &str, is_selected: bool) -> Result<()> {
        let value = if is_selected { json!("enabled") } else { Value::Null };
        self.side.change_cluster(cluster, &json!({"metadata": {"labels": {&self.name: value}}})).await
    }

    /// The namespace of releases with this end, which is recorded as well from now on.
    pub fn another_space(&mut self, end: &str) -> String {
        let space = self.side.space(&format!("{}-{end}", self.name));
        self.spaces.push(space.clone());
        space
    }

    /// Applies an object in the workload cluster, in the first namespace of releases.
    pub async fn in_workload(&self, kind: &str, name: &str) -> Result<()> {
        let apply = PatchParams::apply("another-actor");
        let space = &self.spaces[0];
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}});
        let all: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(self.side.workload.clone());
        all.patch(space, &apply, &Patch::Apply(&namespace)).await?;
        let object =
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": space}});
        let api = dynamic(&self.side.workload, space, "", "v1", kind);
        api.patch(name, &apply, &Patch::Apply(&object)).await?;
        Ok(())
    }

    fn secrets(&self, space: &str) -> Api<Secret> {
        Api::namespaced(self.side.workload.clone(), space)
    }

    /// The revisions in the namespaces of the flow; in one that others use as well, those of its releases.
    async fn revisions(&self, releases: &[DynamicObject]) -> Result<Vec<Secret>> {
        let is_of = |secret: &Secret| {
            let mut names =
                releases.iter().filter_map(|release| release.data["spec"]["releaseName"].as_str());
            names.any(|name| secret.labels().get("name").is_some_and(|label| label == name))
        };
        let mut all = Vec::new();
        for space in &self.spaces {
            let listed = self.secrets(space).list(&ListParams::default().labels("owner=helm")).await?;
            let is_own = space.starts_with(&self.side.namespace);
            all.extend(listed.items.into_iter().filter(|secret| is_own || is_of(secret)));
        }
        Ok(all)
    }

    /// Sets the state of the newest revision, as an interrupted operation leaves it.
    pub async fn interrupt(&self, state: &str) -> Result<()> {
        self.pause(true).await?;
        let newest = self.revisions(&[]).await?.pop().context("no revision")?;
        let changed = stored::with_state(&newest, state)?;
        let secrets = self.secrets(&newest.namespace().unwrap_or_default());
        secrets.replace(&newest.name_any(), &PostParams::default(), &changed).await?;
        self.pause(false).await
    }

    /// Upgrades a release with Helm, as a user does.
    pub async fn upgrade_by_hand(&self, name: &str, chart: &str, value: &str) -> Result<()> {
        let space = self.spaces[0].as_str();
        let args = ["upgrade", name, chart, "--repo", &self.side.repository, "--namespace", space];
        self.side.helm.run([&args[..], &["--version=0.15.2", "--set", value]].concat()).await.map(drop)
    }

    /// Pauses all `HelmReleaseProxies`, or ends the pause: both providers reconcile them then.
    async fn pause(&self, is_paused: bool) -> Result<()> {
        let value = is_paused.then_some("true");
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}}));
        for release in self.view().await?.releases {
            let name = release.name_any();
            self.side.api("HelmReleaseProxy").patch(&name, &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }

    /// Wakes the reconciles of all `HelmReleaseProxies`.
    pub async fn touch(&self) -> Result<()> {
        self.pause(true).await?;
        self.pause(false).await
    }

    async fn view(&self) -> Result<View> {
        let of_proxy = format!("helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name={}", self.proxy);
        Ok(View {
            proxy: self.side.api("HelmChartProxy").get_opt(&self.proxy).await?,
            releases: capasg_e2e::dynamic_list(&self.side.api("HelmReleaseProxy"), &of_proxy).await?,
        })
    }

    async fn objects(&self, view: &View) -> Result<Objects> {
        let mut terms = Terms::of(&self.side, &self.name);
        for release in &view.releases {
            terms.learn(release);
        }
        let mut objects = Objects::new();
        if let Some(proxy) = &view.proxy {
            objects.insert("HelmChartProxy".to_owned(), fields_of(proxy, &terms));
        }
        for release in &view.releases {
            let cluster = release.data["spec"]["clusterRef"]["name"].as_str().unwrap_or_default();
            objects.insert(format!("HelmReleaseProxy on {cluster}"), fields_of(release, &terms));
        }
        for revision in self.revisions(&view.releases).await? {
            let (name, fields) = release_fields(&stored::read(&revision)?, &revision, &terms);
            objects.insert(name, fields);
        }
        Ok(objects)
    }

    /// Waits until the objects are as expected, observed, and no longer change; then records them.
    pub async fn step(&mut self, name: &str, is: impl Fn(&View) -> bool) -> Result<()> {
        let mut last: Option<(Instant, Objects)> = None;
        let what = format!("{}: {name}", self.name);
        let objects = eventually(&what, async || {
            let view = self.view().await?;
            if !is(&view) || !view.is_reported() {
                last = None;
                return Ok(Look::Not(view.shown()));
            }
            let objects = self.objects(&view).await?;
            let since = last.take().filter(|(_, known)| *known == objects).map(|(since, _)| since);
            let since = since.unwrap_or_else(Instant::now);
            if since.elapsed() >= SETTLED {
                return Ok(Look::Done(objects));
            }
            last = Some((since, objects));
            Ok(Look::Not("it still changes".to_owned()))
        })
        .await?;
        self.record(name, objects);
        Ok(())
    }

    /// Records objects of another kind.
    pub fn record(&mut self, name: &str, objects: Objects) {
        self.steps.push(Step { name: name.to_owned(), objects });
    }

    /// Records what an object in the workload cluster has as labels and annotations.
    pub async fn record_owner(&mut self, name: &str, kind: &str, object: &str) -> Result<()> {
        let api = dynamic(&self.side.workload, &self.spaces[0], "", "v1", kind);
        let found = api.get(object).await?;
        let fields = fields_of(&found, &Terms::of(&self.side, &self.name));
        self.record(name, [(format!("{kind} {object}"), fields)].into());
        Ok(())
    }

    /// What was recorded.
    pub fn end(self) -> Flow {
        Flow { name: self.name, steps: self.steps }
    }
}

impl View {
    /// Whether all specs are observed, and the status of the `HelmChartProxy` is that of its releases: on a busy machine, it
    /// follows them late.
    fn is_reported(&self) -> bool {
        let mut all = self.proxy.iter().chain(&self.releases);
        let are_ready = self.releases.iter().all(|release| has(release, "Ready", "True", ""));
        let follows = |proxy: &DynamicObject| {
            has(proxy, "HelmReleaseProxiesReady", if are_ready { "True" } else { "False" }, "")
                && !has(proxy, "HelmReleaseProxySpecsUpToDate", "False", "HelmReleaseProxySpecsUpdating")
        };
        all.all(|object| object.data["status"]["observedGeneration"].as_i64() == object.metadata.generation)
            && self.proxy.as_ref().is_none_or(follows)
    }

    fn shown(&self) -> String {
        let all = self.proxy.iter().chain(&self.releases);
        all.map(|object| format!("{} {}", object.name_any(), object.data)).collect::<Vec<_>>().join("\n")
    }

    /// Whether the release on each of these Clusters is ready with this revision, and there is no other one.
    pub fn is_deployed(&self, expected: &[(&str, i64)]) -> bool {
        let is = |cluster: &str, revision: i64| {
            self.releases.iter().any(|release| {
                release.data["spec"]["clusterRef"]["name"] == cluster
                    && release.data["status"]["revision"] == revision
                    && release.data["status"]["status"] == "deployed"
                    && has(release, "Ready", "True", "")
            })
        };
        self.releases.len() == expected.len()
            && expected.iter().all(|(cluster, revision)| is(cluster, *revision))
            && self.proxy.as_ref().is_some_and(|proxy| has(proxy, "Ready", "True", ""))
    }

    /// Whether all objects are ready.
    pub fn is_steady(&self) -> bool {
        let mut all = self.proxy.iter().chain(&self.releases);
        self.proxy.is_some() && all.all(|object| has(object, "Ready", "True", ""))
    }

    /// Whether the `HelmChartProxy` has a condition with this reason.
    pub fn proxy_says(&self, kind: &str, reason: &str) -> bool {
        self.proxy.as_ref().is_some_and(|proxy| has(proxy, kind, "False", reason))
    }

    /// Whether a `HelmReleaseProxy` has a condition with this reason.
    pub fn release_says(&self, kind: &str, reason: &str) -> bool {
        self.releases.iter().any(|release| has(release, kind, "False", reason))
    }
}

fn has(object: &DynamicObject, kind: &str, status: &str, reason: &str) -> bool {
    let found = capasg_e2e::condition_of(object, kind);
    found["status"] == status && (reason.is_empty() || found["reason"] == reason)
}
