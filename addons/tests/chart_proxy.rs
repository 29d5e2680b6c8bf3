//! Reconciles of a `HelmChartProxy`, with the program for values: the `HelmReleaseProxies` that it has.

mod support;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use capasg_addons::{
    controller::{Context, Next, ObjectKey, reconcile_chart},
    helm::{Archive, Helm},
    values::Values,
};
use capasg_environment::serve_https;
use chrono::Utc;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use support::{Outcome, api_server::Cluster, launcher, programs, repository::Repository};
use tempfile::TempDir;

const TEAM: &str = "/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/teams";
const CLUSTERS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/teams/clusters";

struct Lab {
    management: Cluster,
    context: Context,
    _root: TempDir,
}

impl Lab {
    async fn new(template: &str) -> Outcome<Self> {
        let _ = tokio_rustls::rustls::crypto::aws_lc_rs::default_provider().install_default();
        let (programs, root, launcher) = (programs().await?, tempfile::tempdir()?, launcher()?);
        let management = Cluster::default();
        let config = Kubeconfig::from_yaml(&serve_https(management.routes()).await?.kubeconfig())?;
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        let helm = Helm::new(programs.join("helm"), root.path().to_owned(), launcher.clone())?;
        let values = Values::new(programs.join("capasg-values"), launcher);
        let context = support::context(config, helm, values)?;
        management.put(
            &format!("{TEAM}/helmchartproxies/cni"),
            json!({
                "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
                "metadata": {"name": "cni", "namespace": "teams", "uid": "1", "generation": 1},
                "spec": {
                    "clusterSelector": {"matchLabels": {"cni": "demo"}}, "chartName": "demo",
                    "repoURL": "https://charts.example", "valuesTemplate": template,
                },
            }),
        );
        let lab = Self { management, context, _root: root };
        lab.cluster("prod");
        Ok(lab)
    }

    fn cluster(&self, name: &str) {
        self.management.put(
            &format!("{CLUSTERS}/{name}"),
            json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
                "metadata": {"name": name, "namespace": "teams", "labels": {"cni": "demo"}},
                "spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/16"]}}},
            }),
        );
    }

    /// Reconciles until nothing is left to do. Releases are uninstalled at once.
    async fn settle(&self) -> Outcome<Next> {
        let key = ObjectKey { namespace: "teams".to_owned(), name: "cni".to_owned() };
        for _ in 0..10 {
            let next = reconcile_chart(&self.context, &key, Utc::now()).await?;
            let is_uninstalled = self.uninstall();
            if next != Next::Now && !is_uninstalled {
                return Ok(next);
            }
        }
        Err("not settled".into())
    }

    /// Removes the `HelmReleaseProxies` that are being deleted, as their controller does; false if there is none.
    fn uninstall(&self) -> bool {
        let mut paths = self.management.paths(&format!("{TEAM}/helmreleaseproxies/"));
        let is_deleting = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
        paths.retain(|path| self.management.get(path).is_some_and(|object| is_deleting(&object)));
        for path in &paths {
            self.management.remove(path);
        }
        !paths.is_empty()
    }

    fn proxy(&self) -> Value {
        self.management.get(&format!("{TEAM}/helmchartproxies/cni")).unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut Value)) {
        self.management.change(&format!("{TEAM}/helmchartproxies/cni"), change);
    }

    /// The `HelmReleaseProxies` by their Clusters.
    fn releases(&self) -> Vec<(String, Value)> {
        let paths = self.management.paths(&format!("{TEAM}/helmreleaseproxies/"));
        let all = paths.iter().filter_map(|path| self.management.get(path));
        let of =
            |one: Value| (one["spec"]["clusterRef"]["name"].as_str().unwrap_or_default().to_owned(), one);
        all.map(of).collect()
    }

    fn condition(&self, type_: &str) -> (String, String) {
        let proxy = self.proxy();
        let all = proxy["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|condition| condition["type"] == type_).unwrap_or_default();
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("message"))
    }
}

// Rules: X2, X3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_selected_cluster_has_a_release_with_its_values() -> Outcome {
    let lab = Lab::new("cluster: {{ .Cluster.metadata.name }}\ncidr: {{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}\n").await?;
    lab.cluster("dev");
    assert_eq!(lab.settle().await?, Next::Later);
    let releases = lab.releases();
    assert_eq!(releases.len(), 2);
    for (cluster, release) in &releases {
        assert_eq!(release["spec"]["values"], format!("cluster: {cluster}\ncidr: 10.0.0.0/16\n"));
    }
    assert_eq!(lab.condition("HelmReleaseProxySpecsUpToDate").0, "UpToDate");
    assert_eq!(
        lab.condition("HelmReleaseProxiesReady").0,
        "IssuesReported",
        "no controller of releases runs here"
    );
    let matching = lab.proxy()["status"]["matchingClusters"].clone();
    assert_eq!(matching.as_array().map(Vec::len), Some(2), "{matching}");
    let version = lab.management.version();
    lab.settle().await?;
    assert_eq!(lab.management.version(), version, "nothing changed, so nothing is written");

    lab.management.change(&format!("{CLUSTERS}/dev"), |cluster| cluster["metadata"]["labels"] = json!({}));
    lab.change(|proxy| proxy["spec"]["version"] = json!("1.1.0"));
    lab.settle().await?;
    let releases = lab.releases();
    assert_eq!((releases.len(), releases[0].0.as_str()), (1, "prod"), "one is not selected any longer");
    assert_eq!(releases[0].1["spec"]["version"], "1.1.0");

    lab.change(|proxy| proxy["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    assert_eq!(lab.settle().await?, Next::Never);
    assert_eq!((lab.releases().len(), lab.proxy()), (0, Value::Null));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_values_do_not_change() -> Outcome {
    let lab = Lab::new("password: {{ randAlphaNum 20 }}\n").await?;
    lab.settle().await?;
    let values = lab.releases()[0].1["spec"]["values"].clone();
    let secrets = lab.management.paths("/api/v1/namespaces/teams/secrets/");
    assert_eq!(secrets.len(), 1);
    let owners = lab.management.get(&secrets[0]).unwrap_or_default()["metadata"]["ownerReferences"].clone();
    assert_eq!((&owners[0]["kind"], &owners[0]["name"]), (&json!("HelmChartProxy"), &json!("cni")));
    let version = lab.management.version();
    lab.settle().await?;
    assert_eq!((lab.releases()[0].1["spec"]["values"].clone(), lab.management.version()), (values, version));
    Ok(())
}

// Rules: X3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_a_template_refers_to_are_waited_for() -> Outcome {
    let lab = Lab::new("version: {{ .ControlPlane.spec.version }}\n").await?;
    let reference =
        json!({"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "prod"});
    lab.management
        .change(&format!("{CLUSTERS}/prod"), |cluster| cluster["spec"]["controlPlaneRef"] = reference);
    lab.settle().await?;
    assert_eq!(lab.releases().len(), 0);
    let (reason, message) = lab.condition("HelmReleaseProxySpecsUpToDate");
    assert_eq!(reason, "HelmReleaseProxySpecsUpdating");
    assert_eq!(message, "objects of these Clusters, or versions in their status, do not exist yet: prod");

    let group = "controlplane.cluster.x-k8s.io";
    let definition = format!("kubeadmcontrolplanes.{group}");
    lab.management.put(
        &format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition}"),
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": definition, "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"}},
        }),
    );
    let control_plane = format!("/apis/{group}/v1beta2/namespaces/teams/kubeadmcontrolplanes/prod");
    lab.management.put(
        &control_plane,
        json!({
            "apiVersion": format!("{group}/v1beta2"), "kind": "KubeadmControlPlane",
            "metadata": {"name": "prod", "namespace": "teams"}, "spec": {"version": "v1.36.3"},
        }),
    );
    lab.settle().await?;
    assert_eq!(lab.releases()[0].1["spec"]["values"], "version: v1.36.3\n");

    // The version of the chart follows what the control plane reports, and not what its spec requests.
    lab.change(|proxy| {
        let entries = json!([{"kubernetes": "1.35", "version": "1.0.9"}]).to_string();
        proxy["metadata"]["annotations"] = json!({"asg.addons.cluster.x-k8s.io/versions": entries});
    });
    lab.settle().await?;
    assert_ne!(lab.releases()[0].1["spec"]["version"], "1.0.9");
    lab.management.change(&control_plane, |object| object["status"] = json!({"version": "v1.35.1"}));
    lab.settle().await?;
    assert_eq!(lab.releases()[0].1["spec"]["version"], "1.0.9");
    Ok(())
}

// Rules: X3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_many_clusters_are_those_of_each() -> Outcome {
    const GROUP: &str = "controlplane.cluster.x-k8s.io";
    let lab = Lab::new("plane: {{ .ControlPlane.kind }} {{ .ControlPlane.spec.version }}\n").await?;
    lab.management.put(
        &format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/planes.{GROUP}"),
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("planes.{GROUP}"), "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"}},
        }),
    );
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        lab.cluster(name);
        let reference = json!({"apiGroup": GROUP, "kind": "Plane", "name": format!("plane-{name}")});
        lab.management
            .change(&format!("{CLUSTERS}/{name}"), |cluster| cluster["spec"]["controlPlaneRef"] = reference);
        // The object of the last one does not exist yet.
        if name != "e" {
            lab.management.put(
                &format!("/apis/{GROUP}/v1beta2/namespaces/teams/planes/plane-{name}"),
                json!({
                    "apiVersion": format!("{GROUP}/v1beta2"), "kind": "Plane",
                    "metadata": {"name": format!("plane-{name}"), "namespace": "teams"},
                    "spec": {"version": format!("of-{name}")},
                }),
            );
        }
    }
    lab.settle().await?;
    let releases = lab.releases();
    for name in &names[..4] {
        let (_, release) = releases.iter().find(|(cluster, _)| cluster == name).ok_or("no release")?;
        assert_eq!(release["spec"]["values"], format!("plane: Plane of-{name}\n"));
    }
    assert!(releases.iter().all(|(cluster, _)| cluster != "e"));
    let (_, message) = lab.condition("HelmReleaseProxySpecsUpToDate");
    assert_eq!(message, "objects of these Clusters, or versions in their status, do not exist yet: e");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_that_cannot_be_rendered_is_reported() -> Outcome {
    let lab = Lab::new("a: {{ .Cluster.metadata.name.wrong }}").await?;
    assert_eq!(lab.settle().await?, Next::Later);
    let (reason, message) = lab.condition("Ready");
    assert!(
        !reason.is_empty() && message.contains("valuesTemplate cannot be rendered"),
        "{reason}: {message}"
    );
    assert_eq!(lab.condition("HelmReleaseProxySpecsUpToDate").0, "ValueParsingFailed");
    lab.change(|proxy| {
        proxy["spec"]["clusterSelector"] = json!({"matchExpressions": [{"key": "a", "operator": "Is"}]});
    });
    lab.settle().await?;
    assert_eq!(lab.condition("HelmReleaseProxySpecsUpToDate").0, "ClusterSelectionFailed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_is_created_once_those_that_it_depends_on_are_ready() -> Outcome {
    let lab = Lab::new("a: b\n").await?;
    lab.change(|proxy| {
        proxy["metadata"]["annotations"] = json!({"asg.addons.cluster.x-k8s.io/depends-on": "ccm"});
    });
    lab.settle().await?;
    assert_eq!(lab.releases().len(), 0);
    let (reason, message) = lab.condition("HelmReleaseProxySpecsUpToDate");
    assert_eq!(reason, "HelmReleaseProxySpecsUpdating");
    assert!(message.ends_with("that this one depends on are not ready: ccm"), "{message}");

    let condition = json!({
        "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    lab.management.put(
        &format!("{TEAM}/helmreleaseproxies/ccm-prod"),
        json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmReleaseProxy",
            "metadata": {
                "name": "ccm-prod", "namespace": "teams", "generation": 1,
                "labels": {"helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name": "ccm"},
            },
            "spec": {
                "clusterRef": {"name": "prod"}, "chartName": "ccm", "repoURL": "https://charts.example",
                "namespace": "kube-system",
            },
            "status": {"observedGeneration": 1, "conditions": [condition]},
        }),
    );
    lab.settle().await?;
    assert_eq!(lab.releases().len(), 2);
    assert_eq!(lab.condition("HelmReleaseProxySpecsUpToDate").0, "UpToDate");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chart_of_an_archive_follows_its_content() -> Outcome {
    const MAP: &str = "/api/v1/namespaces/teams/configmaps/demo";
    let lab = Lab::new("").await?;
    let repository = Repository::serve(&programs().await?.join("helm")).await?;
    let put = |data: &Value| {
        let metadata = json!({"name": "demo", "namespace": "teams"});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data});
        lab.management.put(MAP, map);
    };
    let archive = "asg.addons.cluster.x-k8s.io/chart-archive";
    lab.change(|proxy| proxy["metadata"]["annotations"] = json!({archive: "configmap/demo"}));
    let fails = async || -> Outcome<String> {
        lab.settle().await?;
        let (reason, message) = lab.condition("HelmReleaseProxySpecsUpToDate");
        assert_eq!(reason, "GetChartArchiveFailed", "{message}");
        Ok(message)
    };
    assert!(fails().await?.contains("ConfigMap demo does not exist in the namespace of the HelmChartProxy"));
    put(&json!({"other.tgz": ""}));
    assert!(fails().await?.contains("ConfigMap demo has no key chart.tgz in binaryData"));
    put(&json!({"chart.tgz": STANDARD.encode("no chart")}));
    assert!(fails().await?.contains("the archive is not a packaged chart; create it by helm package"));
    assert_eq!(lab.releases().len(), 0);

    let content = repository.archive("1.0.0")?;
    put(&json!({"chart.tgz": STANDARD.encode(&content)}));
    lab.settle().await?;
    let release = lab.releases()[0].1.clone();
    let expected = format!("1.0.0+archive.{}", Archive(content).digest());
    assert_eq!(release["spec"]["version"], expected);
    assert_eq!(release["metadata"]["annotations"][archive], "configmap/demo");
    assert_eq!(lab.condition("HelmReleaseProxySpecsUpToDate").0, "UpToDate");
    let version = lab.management.version();
    lab.settle().await?;
    assert_eq!(lab.management.version(), version, "nothing changed, so nothing is written");

    put(&json!({"chart.tgz": STANDARD.encode(repository.archive("1.1.0")?)}));
    lab.settle().await?;
    let changed = lab.releases()[0].1["spec"]["version"].to_string();
    assert!(changed.starts_with("\"1.1.0+archive."), "{changed}");
    lab.change(|proxy| proxy["spec"]["version"] = json!("1.0.0"));
    lab.settle().await?;
    let (reason, message) = lab.condition("HelmReleaseProxySpecsUpToDate");
    assert_eq!(reason, "VersionNotAvailable", "{message}");
    lab.change(|proxy| {
        proxy["spec"] = json!({
            "clusterSelector": {}, "chartName": "other", "repoURL": "https://charts.example",
        });
    });
    assert!(fails().await?.contains("the name in the chart is not chartName"));
    assert_eq!(lab.releases()[0].1["spec"]["version"].to_string(), changed, "the release stays as it is");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_rejected_is_reported_and_holds_up_no_other_cluster() -> Outcome {
    let lab = Lab::new("a: b\n").await?;
    lab.management.forbid(Some("/helmreleaseproxies"));
    assert!(lab.settle().await.is_err());
    let condition = lab.condition("HelmReleaseProxySpecsUpToDate");
    assert_eq!(condition.0, "ClusterSelectionFailed");
    assert_eq!(condition.1, "cannot read HelmReleaseProxies: the API server responded with 403 Forbidden");

    lab.management.forbid_writes(Some("/helmreleaseproxies"));
    for _ in 0..2 {
        assert!(lab.settle().await.is_err());
        let condition = lab.condition("HelmReleaseProxySpecsUpToDate");
        assert_eq!(condition.0, "HelmReleaseProxyCreationFailed");
        assert_eq!(
            condition.1,
            "cannot write a HelmReleaseProxy: the API server responded with 403 Forbidden"
        );
    }

    let reference = json!({"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "Plane", "name": "prod"});
    lab.management
        .change(&format!("{CLUSTERS}/prod"), |cluster| cluster["spec"]["controlPlaneRef"] = reference);
    lab.management.put(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/planes.controlplane.cluster.x-k8s.io",
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
                "name": "planes.controlplane.cluster.x-k8s.io", "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"},
            },
        }),
    );
    lab.cluster("dev");
    lab.management.forbid(Some("/planes"));
    lab.settle().await?;
    let clusters: Vec<String> = lab.releases().into_iter().map(|(cluster, _)| cluster).collect();
    assert_eq!(clusters, ["dev"]);
    let (reason, message) = lab.condition("HelmReleaseProxySpecsUpToDate");
    assert_eq!(reason, "ValueParsingFailed");
    assert!(message.starts_with("Cluster prod: ") && message.contains("403 Forbidden"), "{message}");
    Ok(())
}

/// A step of an upgrade, and then the deletion of the Cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_follows_the_phases_of_its_cluster() -> Outcome {
    const PLANES: &str = "/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/teams/planes";
    let lab = Lab::new("a: b\n").await?;
    let definition =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/planes.controlplane.cluster.x-k8s.io";
    lab.management.put(
        definition,
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
                "name": "planes.controlplane.cluster.x-k8s.io", "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"},
            },
        }),
    );
    let plane = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "Plane",
        "metadata": {"name": "prod", "namespace": "teams"}, "status": {"version": "v1.35.1"},
    });
    lab.management.put(&format!("{PLANES}/prod"), plane);
    lab.management.change(&format!("{CLUSTERS}/prod"), |cluster| {
        cluster["spec"]["topology"] = json!({"version": "v1.36.3"});
        cluster["spec"]["controlPlaneRef"] =
            json!({"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "Plane", "name": "prod"});
    });
    lab.change(|proxy| {
        proxy["metadata"]["annotations"] = json!({
            "asg.addons.cluster.x-k8s.io/phases": "before-control-plane-upgrade,before-cluster-delete",
            "asg.addons.cluster.x-k8s.io/versions":
                r#"[{"kubernetes": "<1.36", "version": "1.0.0"}, {"kubernetes": "1.36", "version": "1.1.0"}]"#,
        });
    });
    lab.settle().await?;
    let release = || lab.releases().first().map(|(_, release)| release.clone()).unwrap_or_default();
    let version = |release: &Value| {
        let is_for = &release["metadata"]["annotations"]["asg.addons.cluster.x-k8s.io/kubernetes-version"];
        (release["spec"]["version"].clone(), is_for.clone())
    };
    assert_eq!(version(&release()), (json!("1.0.0"), json!("v1.35.1")));

    let paths = lab.management.paths(&format!("{TEAM}/helmreleaseproxies/"));
    lab.management.change(&paths[0], |release| {
        release["status"] = json!({"nextKubernetesVersion": "v1.36.3"});
    });
    lab.settle().await?;
    assert_eq!(version(&release()), (json!("1.1.0"), json!("v1.36.3")));

    lab.management.change(&format!("{CLUSTERS}/prod"), |cluster| {
        cluster["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    lab.settle().await?;
    assert_eq!(lab.releases().len(), 0, "it asks for that");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_new_cluster_others_of_the_first_phase_are_installed_before() -> Outcome {
    let lab = Lab::new("a: b\n").await?;
    let mut first = lab.proxy();
    first["metadata"]["name"] = json!("first");
    first["metadata"]["annotations"] =
        json!({"asg.addons.cluster.x-k8s.io/phases": "after-control-plane-initialized"});
    let path = format!("{TEAM}/helmchartproxies/first");
    lab.management.put(&path, first);
    lab.settle().await?;
    let (_, message) = lab.condition("HelmReleaseProxySpecsUpToDate");
    assert!(message.ends_with("not ready: first"), "{message}");
    assert_eq!(lab.releases().len(), 0);
    lab.management.change(&path, |first| {
        first["spec"]["clusterSelector"] = json!({"matchLabels": {"cni": "other"}});
    });
    lab.settle().await?;
    assert_eq!(lab.releases().len(), 1, "it does not select the Cluster");
    Ok(())
}
