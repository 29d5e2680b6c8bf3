//! The Cluster of a request, in whichever version of its API core sends it (R8).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A Cluster as JSON, with accessors for what hooks read. No content makes a request unreadable: a field of another type
/// counts as absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cluster(Value);

/// The identity of a Cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID; empty if the request has none.
    pub uid: String,
}

impl From<Value> for Cluster {
    fn from(object: Value) -> Self {
        Self(object)
    }
}

impl Cluster {
    /// Whether the request has no Cluster.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.0.is_null()
    }

    /// Namespace, name and UID; `None` if the Cluster has no namespace or no name.
    #[must_use]
    pub fn key(&self) -> Option<ClusterKey> {
        let field = |name: &str| self.text(&format!("/metadata/{name}")).map(str::to_owned);
        Some(ClusterKey {
            namespace: field("namespace")?,
            name: field("name")?,
            uid: field("uid").unwrap_or_default(),
        })
    }

    /// The value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0.pointer("/metadata/annotations")?.get(key)?.as_str()
    }

    /// The version that the user requests, `spec.topology.version`.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.text("/spec/topology/version")
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.0.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Rules: R8
    #[test]
    fn both_versions_of_the_api_are_read() {
        for (version, class) in
            [("v1beta1", json!({"class": "a"})), ("v1beta2", json!({"classRef": {"name": "a"}}))]
        {
            let mut topology = class;
            topology["version"] = json!("v1.36.3");
            topology["workers"] = json!({"machinePools": [{"name": "workers", "class": "default"}]});
            let cluster = Cluster::from(json!({
                "apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "Cluster",
                "metadata": {"name": "prod", "namespace": "teams", "uid": "1", "annotations": {"a": "b"}},
                "spec": {"topology": topology, "unknown": [1]}, "status": {"conditions": "odd"},
            }));
            assert_eq!(cluster.version(), Some("v1.36.3"));
            assert_eq!(cluster.annotation("a"), Some("b"));
            let key = cluster.key().unwrap();
            assert_eq!((key.namespace.as_str(), key.name.as_str(), key.uid.as_str()), ("teams", "prod", "1"));
        }
    }

    #[test]
    fn what_is_absent_or_of_another_type_is_absent() {
        for object in
            [json!(null), json!("text"), json!({"metadata": {"name": 1, "annotations": []}, "spec": 7})]
        {
            let cluster = Cluster::from(object);
            assert_eq!((cluster.key(), cluster.version(), cluster.annotation("a")), (None, None, None));
        }
    }
}
