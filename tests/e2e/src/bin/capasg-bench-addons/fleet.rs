//! The Clusters and the `HelmChartProxies` of a benchmark: the same for both providers.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use capasg_e2e::{MAP, add_ons, condition_of};
use capasg_environment::{
    ApiServer, Chart, ChartRepository, Environment, Look, Management, WorkloadCluster, control_plane_secrets,
    dynamic, report_stub_control_plane, wait_until,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};

/// The namespace of the Clusters, and of their releases.
pub const NAMESPACE: &str = "bench";
/// How many Clusters are reported at once.
const AT_ONCE: usize = 8;
const READY: Duration = Duration::from_mins(10);
const DEPLOYED: Duration = Duration::from_hours(1);

/// How much there is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub clusters: usize,
    pub charts: usize,
}

fn chart(number: usize) -> String {
    format!("addon-{number}")
}

/// Serves the charts: a Deployment, a Service, a service account with its role, and a `ConfigMap` with the values. Services have
/// no addresses: all Clusters share the range of one API server.
pub async fn charts(folder: PathBuf, size: Size) -> Result<ChartRepository> {
    let repository = ChartRepository::serve(folder).await?;
    let names: Vec<String> = (0..size.charts).map(chart).collect();
    let of_names = |name| (Chart { name, files: &FILES }, "1.0.0");
    let charts: Vec<_> = names.iter().map(String::as_str).map(of_names).collect();
    repository.add(&charts).await?;
    Ok(repository)
}

const FILES: [(&str, &str); 2] = [
    ("templates/map.yaml", MAP),
    (
        "templates/rest.yaml",
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {{ .Release.Name }}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: {{ .Release.Name }}\nrules:\n\
         - apiGroups: [\"\"]\n  resources: [configmaps]\n  verbs: [get]\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n  name: {{ .Release.Name }}\nroleRef:\n  \
         apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: {{ .Release.Name }}\nsubjects:\n\
         - kind: ServiceAccount\n  name: {{ .Release.Name }}\n  namespace: {{ .Release.Namespace }}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  clusterIP: None\n  selector:\n    \
         app: {{ .Release.Name }}\n  ports:\n  - port: 80\n---\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  replicas: 0\n  \
         selector:\n    matchLabels:\n      app: {{ .Release.Name }}\n  template:\n    metadata:\n      labels:\n        \
         app: {{ .Release.Name }}\n    spec:\n      containers:\n      - name: main\n        image: main\n",
    ),
];

/// Creates the Clusters, whose control planes are one API server, and waits until all are initialized.
pub async fn clusters(
    environment: &Environment,
    management: &Management,
    api: &ApiServer,
    size: Size,
) -> Result<()> {
    let kubectl = management.api().kubectl().clone().limit(READY);
    kubectl.run(["create", "namespace", NAMESPACE]).await?;
    WorkloadCluster::install_stub_kind(management).await?;
    let version = environment.tools().kubernetes_version();
    let (host, port) =
        api.access().server.trim_start_matches("https://").split_once(':').context("no port")?;
    let endpoint = json!({"host": host, "port": port.parse::<u16>()?});
    let names: Vec<String> = (0..size.clusters).map(|number| format!("cluster-{number:03}")).collect();
    let group = "controlplane.cluster.x-k8s.io";
    let mut items: Vec<Value> = Vec::new();
    for name in &names {
        let metadata = json!({"namespace": NAMESPACE, "name": name, "labels": {"bench": "true"}});
        items.extend(control_plane_secrets(NAMESPACE, name, api)?);
        items.push(json!({
            "apiVersion": format!("{group}/v1alpha1"), "kind": "StubControlPlane", "metadata": metadata,
            "spec": {"version": version, "controlPlaneEndpoint": endpoint},
        }));
        items.push(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata,
            "spec": {
                "controlPlaneRef": {"apiGroup": group, "kind": "StubControlPlane", "name": name},
                "controlPlaneEndpoint": endpoint,
            },
        }));
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    kubectl.feed(["apply", "--server-side", "--filename=-"], &list.to_string()).await?;
    let client = management.api().client().await?;
    stream::iter(&names)
        .map(|name| report_stub_control_plane(&client, NAMESPACE, name, version))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    let api = dynamic(&client, NAMESPACE, "cluster.x-k8s.io", "v1beta2", "Cluster");
    wait_until(READY, "all control planes are initialized", || async {
        let all = api.list(&ListParams::default()).await?.items;
        let is =
            |cluster: &&DynamicObject| condition_of(cluster, "ControlPlaneInitialized")["status"] == "True";
        let count = all.iter().filter(is).count();
        Ok(Look::when(count == size.clusters, format!("{count} are")))
    })
    .await
}

/// Applies the `HelmChartProxies`.
pub async fn request(management: &Management, repository: &ChartRepository, size: Size) -> Result<()> {
    let proxy = |number: usize| {
        json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
            "metadata": {"name": chart(number), "namespace": NAMESPACE},
            "spec": {
                "clusterSelector": {"matchLabels": {"bench": "true"}}, "chartName": chart(number),
                "repoURL": repository.url, "version": "1.0.0", "namespace": NAMESPACE,
                "valuesTemplate": "cluster: {{ .Cluster.metadata.name }}\nversion: {{ .ControlPlane.spec.version }}\n",
            },
        })
    };
    let items: Vec<Value> = (0..size.charts).map(proxy).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    management.api().kubectl().feed(["apply", "--filename=-"], &list.to_string()).await.map(drop)
}

/// Waits until all releases are ready.
pub async fn deployed(management: &Management, size: Size) -> Result<()> {
    let client = management.api().client().await?;
    let api = add_ons(&client, NAMESPACE, "HelmReleaseProxy");
    let all = size.clusters * size.charts;
    let mut said = std::time::Instant::now();
    wait_until(DEPLOYED, "all releases are ready", || {
        let (api, report) = (&api, said.elapsed() > Duration::from_secs(15));
        if report {
            said = std::time::Instant::now();
        }
        async move {
            // Lists of hundreds of objects are not free, and would be measured, too.
            tokio::time::sleep(Duration::from_millis(800)).await;
            let found = api.list(&ListParams::default()).await?.items;
            let is = |release: &&DynamicObject| condition_of(release, "Ready")["status"] == "True";
            let count = found.iter().filter(is).count();
            if report {
                eprintln!("{count} of {all} releases are ready");
            }
            Ok(Look::when(count == all, format!("{count} of {} are", found.len())))
        }
    })
    .await
}
