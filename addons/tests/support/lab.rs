//! A management cluster with one `HelmReleaseProxy`, its workload cluster, and a repository.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use capasg_addons::{
    controller::{Context, Next, ObjectKey, Parts, reconcile},
    helm::Helm,
    values::Values,
};
use capasg_environment::serve_https;
use chrono::{TimeDelta, Utc};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Outcome, api_server::Cluster, launcher, programs, repository::Repository};

/// The path of the `HelmReleaseProxy`.
pub const OBJECT: &str = "/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/teams/helmreleaseproxies/cni";
/// The path of its Cluster.
pub const CLUSTER: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/teams/clusters/prod";
/// The path of the Secrets.
pub const SECRETS: &str = "/api/v1/namespaces/teams/secrets";

/// A management cluster with one object, and its workload cluster.
pub struct Lab {
    pub management: Cluster,
    pub workload: Cluster,
    pub context: Context,
    /// How far the clock of the controller is ahead.
    pub ahead: TimeDelta,
    pub repository: Repository,
    _root: TempDir,
}

/// A Secret.
pub fn secret(name: &str, data: &[(&str, &str)]) -> Value {
    let data: serde_json::Map<_, _> =
        data.iter().map(|(key, value)| ((*key).to_owned(), json!(STANDARD.encode(value)))).collect();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "teams"}, "data": data})
}

impl Lab {
    /// With the defaults of the operator.
    pub async fn new() -> Outcome<Self> {
        Self::with(|_| {}).await
    }

    /// With other parts.
    pub async fn with(change: impl FnOnce(&mut Parts)) -> Outcome<Self> {
        let _ = tokio_rustls::rustls::crypto::aws_lc_rs::default_provider().install_default();
        let programs = programs().await?;
        let repository = Repository::serve(&programs.join("helm")).await?;
        let (management, workload, root) = (Cluster::default(), Cluster::default(), tempfile::tempdir()?);
        let config = Kubeconfig::from_yaml(&serve_https(management.routes()).await?.kubeconfig())?;
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        let kubeconfig = serve_https(workload.routes()).await?.kubeconfig();
        management.put(
            CLUSTER,
            json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
                "metadata": {"name": "prod", "namespace": "teams"}, "spec": {},
                "status": {"initialization": {"controlPlaneInitialized": true}},
            }),
        );
        for (name, data) in [
            ("prod-kubeconfig", &[("value", kubeconfig.as_str())][..]),
            ("login", &[("username", "robot"), ("password", "s3cret")]),
            ("authority", &[("ca.crt", repository.authority.as_str())]),
        ] {
            management.put(&format!("{SECRETS}/{name}"), secret(name, data));
        }
        management.put(
            OBJECT,
            json!({
                "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmReleaseProxy",
                "metadata": {
                    "name": "cni", "namespace": "teams", "generation": 1,
                    "labels": {"cluster.x-k8s.io/cluster-name": "prod"}, "annotations": {},
                },
                "spec": {
                    "clusterRef": {"name": "prod"}, "chartName": "demo", "repoURL": repository.url,
                    "namespace": "kube-system", "version": "1.0.0", "values": "password: yes\n",
                    "credentials": {"secret": {"name": "login", "namespace": "teams"}, "key": "config.json"},
                    "tlsConfig": {"caSecret": {"name": "authority"}},
                    // The small API server serves no schema.
                    "options": {"disableOpenAPIValidation": true, "install": {"createNamespace": false}},
                },
            }),
        );
        let launcher = launcher()?;
        let helm = Helm::new(programs.join("helm"), root.path().to_owned(), launcher.clone())?;
        let values = Values::new(programs.join("capasg-values"), launcher);
        let mut parts = super::parts(config, helm, values)?;
        change(&mut parts);
        let context = Context::new(parts);
        Ok(Self { management, workload, context, ahead: TimeDelta::zero(), repository, _root: root })
    }

    /// One reconcile.
    pub async fn step(&self) -> Outcome<Next> {
        let key = ObjectKey { namespace: "teams".to_owned(), name: "cni".to_owned() };
        Ok(reconcile(&self.context, &key, Utc::now() + self.ahead).await?)
    }

    /// Reconciles until nothing is left to do now.
    pub async fn settle(&self) -> Outcome<Next> {
        for _ in 0..20 {
            match self.step().await? {
                Next::Now => {}
                next => return Ok(next),
            }
        }
        Err("not settled".into())
    }

    /// The object.
    pub fn object(&self) -> Value {
        self.management.get(OBJECT).unwrap_or_default()
    }

    /// Changes the object as a user does.
    pub fn change(&self, change: impl FnOnce(&mut Value)) {
        self.management.change(OBJECT, |object| {
            change(object);
            object["metadata"]["generation"] =
                json!(object["metadata"]["generation"].as_i64().unwrap_or_default() + 1);
        });
    }

    /// Status, reason and message of a condition.
    pub fn condition(&self, type_: &str) -> (String, String, String) {
        let object = self.object();
        let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|condition| condition["type"] == type_).unwrap_or_default();
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// The Secrets of revisions.
    pub fn releases(&self) -> Vec<String> {
        self.workload.paths("/api/v1/namespaces/kube-system/secrets/")
    }
}
