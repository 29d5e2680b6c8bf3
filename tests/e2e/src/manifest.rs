//! The objects that a person applies for one pool.

use capasg_test_objects::{minimal_pool, with};
use serde_json::{Value, json};

/// Where a pool's bootstrap data come from.
#[derive(Debug, Clone)]
pub enum Bootstrap {
    /// A Secret of this name with these user data, made by the test.
    Secret {
        /// The Secret's name.
        name: String,
        /// What becomes user data.
        value: String,
    },
    /// A `KubeadmConfig` named like the pool; needs a cluster whose certificates the bootstrap provider knows.
    Kubeadm,
    /// A Secret of this name that does not exist yet.
    Missing(String),
}

/// A `MachinePool` and the `ASGMachinePool` that it refers to, both of the same name.
#[derive(Debug, Clone)]
pub struct Pool {
    name: String,
    cluster: String,
    region: String,
    version: String,
    replicas: Option<i32>,
    bootstrap: Bootstrap,
    owner: Value,
    ours: Value,
}

impl Pool {
    /// A pool in `cluster` with the smallest spec, that does not say how many replicas it wants.
    #[must_use]
    pub fn new(name: &str, cluster: &str, region: &str, version: &str, bootstrap: Bootstrap) -> Self {
        Self {
            name: name.to_owned(),
            cluster: cluster.to_owned(),
            region: region.to_owned(),
            version: version.to_owned(),
            replicas: None,
            bootstrap,
            owner: json!({}),
            ours: minimal_pool(),
        }
    }

    /// How many nodes are wanted.
    #[must_use]
    pub fn replicas(mut self, replicas: i32) -> Self {
        self.replicas = Some(replicas);
        self
    }

    /// Bootstrap data from elsewhere.
    #[must_use]
    pub fn bootstrap(mut self, bootstrap: Bootstrap) -> Self {
        self.bootstrap = bootstrap;
        self
    }

    /// Sets a member of the `ASGMachinePool`, for example `spec/subnets/0/id`.
    #[must_use]
    pub fn with(mut self, path: &str, value: impl Into<Value>) -> Self {
        self.ours = with(self.ours, path, value);
        self
    }

    /// Sets a member of the `MachinePool`, for example `spec/failureDomains`.
    #[must_use]
    pub fn with_owner(mut self, path: &str, value: impl Into<Value>) -> Self {
        self.owner = with(self.owner, path, value);
        self
    }

    /// The name that both objects have.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// In another region than that of the test.
    #[must_use]
    pub fn in_region(mut self, region: &str) -> Self {
        region.clone_into(&mut self.region);
        self
    }

    /// The `ASGMachinePool` alone.
    #[must_use]
    pub fn ours(&self) -> Value {
        let ours = with(self.ours.clone(), "metadata/name", self.name.clone());
        with(ours, "spec/region", self.region.clone())
    }

    /// The `MachinePool` alone.
    #[must_use]
    pub fn owner(&self) -> Value {
        let bootstrap = match &self.bootstrap {
            Bootstrap::Secret { name, .. } | Bootstrap::Missing(name) => json!({"dataSecretName": name}),
            Bootstrap::Kubeadm => json!({"configRef": {
                "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": self.name,
            }}),
        };
        let mut owner = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "MachinePool",
            "metadata": {"name": self.name},
            "spec": {
                "clusterName": self.cluster,
                "template": {"spec": {
                    "clusterName": self.cluster,
                    "version": self.version,
                    "bootstrap": bootstrap,
                    "infrastructureRef": {
                        "apiGroup": "infrastructure.cluster.x-k8s.io",
                        "kind": "ASGMachinePool",
                        "name": self.name,
                    },
                }},
            },
        });
        if let Some(replicas) = self.replicas {
            owner["spec"]["replicas"] = json!(replicas);
        }
        merge(&mut owner, &self.owner);
        owner
    }

    /// What the bootstrap data come from, if it is an object of the test's.
    #[must_use]
    pub fn bootstrap_object(&self) -> Option<Value> {
        match &self.bootstrap {
            Bootstrap::Secret { name, value } => Some(bootstrap_secret(&self.cluster, name, value)),
            Bootstrap::Kubeadm => Some(json!({
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
                "kind": "KubeadmConfig",
                "metadata": {"name": self.name},
                "spec": {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [
                    {"name": "cloud-provider", "value": "external"},
                ]}}},
            })),
            Bootstrap::Missing(_) => None,
        }
    }

    /// All objects as one document for kubectl.
    #[must_use]
    pub fn documents(&self) -> String {
        let mut items: Vec<Value> = self.bootstrap_object().into_iter().collect();
        items.extend([self.ours(), self.owner()]);
        json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
    }
}

/// A Secret as bootstrap providers make them.
#[must_use]
pub fn bootstrap_secret(cluster: &str, name: &str, value: &str) -> Value {
    bootstrap_secret_of(cluster, name, value, "cloud-config")
}

/// A Secret with bootstrap data of a format.
#[must_use]
pub fn bootstrap_secret_of(cluster: &str, name: &str, value: &str, format: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "labels": {"cluster.x-k8s.io/cluster-name": cluster, "clusterctl.cluster.x-k8s.io/move": ""},
        },
        "type": "cluster.x-k8s.io/secret",
        "stringData": {"value": value, "format": format},
    })
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
