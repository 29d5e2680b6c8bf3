//! What an operator does for the namespace of a test: identities and guards.

use anyhow::Result;
use serde_json::{Value, json};

use crate::Rig;

impl Rig<'_> {
    /// Applies an object of an operator that applies to the namespace of this test alone. Answers its name.
    async fn operate(&self, kind: &str, name: &str, field: &str, spec: &Value) -> Result<String> {
        let name = format!("{}-{name}", self.scenario.namespace);
        let mut spec = spec.clone();
        if spec.get(field).is_none() {
            spec[field] = json!({"names": [self.scenario.namespace]});
        }
        let object = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        });
        self.scenario.apply(&object.to_string()).await?;
        Ok(name)
    }

    /// Applies an ASGGuard of the namespace. Answers its name.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn guard(&self, name: &str, spec: &Value) -> Result<String> {
        self.operate("ASGGuard", name, "namespaces", spec).await
    }

    /// Applies an ASGIdentity that the namespace may use. Answers its name.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn identity(&self, name: &str, spec: &Value) -> Result<String> {
        self.operate("ASGIdentity", name, "allowedNamespaces", spec).await
    }
}
