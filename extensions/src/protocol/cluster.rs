//! The Cluster of a request, in whichever version of its API core sends it (R8).

use capasg_api::{
    capi::{self, ContractReference},
    names::{is_namespace_name, is_object_name},
};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeSeed as _};
use serde_json::Value;

use super::kept::Kept;

/// What hooks read of a Cluster. The rest of its status and the managed fields are most of it.
const KEPT: Kept = Kept::Members(&[
    (
        "metadata",
        Kept::Members(&[
            ("name", Kept::All),
            ("namespace", Kept::All),
            ("uid", Kept::All),
            ("annotations", Kept::All),
            ("deletionTimestamp", Kept::All),
        ]),
    ),
    (
        "spec",
        Kept::Members(&[
            ("topology", Kept::All),
            ("infrastructureRef", REFERENCE),
            ("controlPlaneRef", REFERENCE),
        ]),
    ),
    ("status", Kept::Members(&[("conditions", Kept::All)])),
]);
/// What is kept of a reference, in whichever version of the API.
const REFERENCE: Kept = Kept::Members(&[
    ("apiVersion", Kept::All),
    ("apiGroup", Kept::All),
    ("kind", Kept::All),
    ("name", Kept::All),
]);
/// The longest UID and version in bytes. They are remembered, and a UID has 36.
const LONGEST: usize = 128;

/// What hooks read of a Cluster as JSON, with accessors. No content makes a request unreadable: a field of another type
/// counts as absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Cluster(Value);

/// The identity of a Cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID; empty if the request has none, or one that is longer than 128 bytes.
    pub uid: String,
}

impl<'de> Deserialize<'de> for Cluster {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        KEPT.deserialize(deserializer).map(Self)
    }
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

    /// Namespace, name and UID; `None` if the namespace or the name is absent, or is not one that Kubernetes accepts: both
    /// become parts of URLs.
    #[must_use]
    pub fn key(&self) -> Option<ClusterKey> {
        let field = |name: &str| self.text(&format!("/metadata/{name}"));
        let namespace = field("namespace").filter(|name| is_namespace_name(name))?;
        let name = field("name").filter(|name| is_object_name(name))?;
        let uid = field("uid").filter(|uid| is_short(uid)).unwrap_or_default();
        Some(ClusterKey { namespace: namespace.to_owned(), name: name.to_owned(), uid: uid.to_owned() })
    }

    /// Whether both have the same namespace, name and UID. One without a UID is no other.
    #[must_use]
    pub fn is_same_object(&self, other: &Self) -> bool {
        self.key().filter(|key| !key.uid.is_empty()).is_some_and(|key| other.key() == Some(key))
    }

    /// Whether the Cluster is being deleted.
    #[must_use]
    pub fn is_being_deleted(&self) -> bool {
        self.text("/metadata/deletionTimestamp").is_some()
    }

    /// Whether a condition is true.
    #[must_use]
    pub fn has_condition(&self, kind: &str) -> bool {
        let conditions = self.0.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        conditions.filter(|one| one["type"] == kind).any(|one| one["status"] == "True")
    }

    /// The value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0.pointer("/metadata/annotations")?.get(key)?.as_str()
    }

    /// The version that the user requests, `spec.topology.version`, of at most 128 bytes.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.text("/spec/topology/version").filter(|version| is_short(version))
    }

    /// The topology; null without one.
    #[must_use]
    pub fn topology(&self) -> &Value {
        self.0.pointer("/spec/topology").unwrap_or(&Value::Null)
    }

    /// Whether the topology has machine pools, which may be of any provider.
    #[must_use]
    pub fn has_machine_pools(&self) -> bool {
        let pools = self.topology().pointer("/workers/machinePools").and_then(Value::as_array);
        pools.is_some_and(|pools| !pools.is_empty())
    }

    /// Namespace and name of the `ClusterClass`; `None` unless both are names that Kubernetes accepts.
    #[must_use]
    pub fn class(&self) -> Option<(&str, &str)> {
        let name = self.text("/spec/topology/classRef/name").or_else(|| self.text("/spec/topology/class"))?;
        let namespace = self.text("/spec/topology/classRef/namespace");
        let namespace = namespace.or_else(|| self.text("/spec/topology/classNamespace"));
        let namespace = namespace.or_else(|| self.text("/metadata/namespace"))?;
        (is_object_name(name) && is_namespace_name(namespace)).then_some((namespace, name))
    }

    /// The object of Cluster API Provider AWS that names the identity of the Cluster
    /// ([`capi::Cluster::aws_identity_holder`]).
    #[must_use]
    pub fn aws_identity_holder(&self) -> Option<ContractReference> {
        let reference = |field: &str| {
            let text = |member: &str| self.text(&format!("/spec/{field}/{member}"));
            let group = text("apiGroup").or_else(|| Some(text("apiVersion")?.split_once('/')?.0));
            let (api_group, kind, name) =
                (group?, text("kind")?, text("name").filter(|name| is_object_name(name))?);
            Some(ContractReference {
                api_group: api_group.to_owned(),
                kind: kind.to_owned(),
                name: name.to_owned(),
            })
        };
        let spec = capi::ClusterSpec {
            infrastructure_ref: reference("infrastructureRef"),
            control_plane_ref: reference("controlPlaneRef"),
            ..capi::ClusterSpec::default()
        };
        capi::Cluster::new("", spec).aws_identity_holder().cloned()
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.0.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
    }
}

/// Whether a UID or a version is one that may be remembered and repeated.
pub(crate) fn is_short(version: &str) -> bool {
    version.len() <= LONGEST
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
            assert_eq!(cluster.class(), Some(("teams", "a")));
            assert_eq!(cluster.topology()["workers"]["machinePools"][0]["class"], "default");
            let key = cluster.key().unwrap();
            assert_eq!((key.namespace.as_str(), key.name.as_str(), key.uid.as_str()), ("teams", "prod", "1"));
        }
    }

    #[test]
    fn only_what_hooks_read_is_kept() {
        let object = json!({
            "kind": "Cluster", "status": {"conditions": [{}], "phase": "Provisioned"},
            "metadata": {"name": "prod", "namespace": "teams", "managedFields": [{}], "labels": {"a": "b"}},
            "spec": {"topology": {"version": "v1.36.3", "workers": {}}, "paused": true},
        });
        let kept = json!({
            "metadata": {"name": "prod", "namespace": "teams"},
            "spec": {"topology": {"version": "v1.36.3", "workers": {}}},
            "status": {"conditions": [{}]},
        });
        let read = |object: &Value| serde_json::from_str::<Cluster>(&object.to_string()).unwrap();
        assert_eq!(read(&object), Cluster(kept));
        for odd in [json!(null), json!([{}]), json!("a"), json!(1.5), json!({"metadata": [1], "spec": -1})] {
            assert_eq!((read(&odd).key(), read(&odd).version()), (None, None), "{odd}");
        }
    }

    #[test]
    fn names_that_kubernetes_does_not_accept_are_absent() {
        let key = |namespace: &str, name: &str| {
            Cluster::from(json!({"metadata": {"namespace": namespace, "name": name}})).key()
        };
        assert!(key("teams", "prod.a-1").is_some());
        for wrong in ["..", "a/../b", "a?b", "a/", "-a", "a-", "A", "a..b", "", "a b"] {
            assert_eq!(key("teams", wrong), None, "{wrong}");
            assert_eq!(key(wrong, "prod"), None, "{wrong}");
        }
        assert_eq!(key("a.b", "prod"), None);
        assert_eq!((key(&"a".repeat(64), "prod"), key("teams", &"a".repeat(254))), (None, None));
    }

    // Rules: R8
    #[test]
    fn the_class_may_be_in_another_namespace() {
        for topology in [
            json!({"class": "a", "classNamespace": "classes"}),
            json!({"classRef": {"name": "a", "namespace": "classes"}}),
        ] {
            let of = |metadata| Cluster::from(json!({"metadata": metadata, "spec": {"topology": topology}}));
            assert_eq!(of(json!({"namespace": "teams"})).class(), Some(("classes", "a")));
        }
        let wrong =
            Cluster::from(json!({"spec": {"topology": {"classRef": {"name": "a/b", "namespace": "c"}}}}));
        assert_eq!(wrong.class(), None);
    }

    #[test]
    fn what_is_absent_or_of_another_type_is_absent() {
        for object in
            [json!(null), json!("text"), json!({"metadata": {"name": 1, "annotations": []}, "spec": 7})]
        {
            let cluster = Cluster::from(object);
            assert_eq!((cluster.key(), cluster.version(), cluster.annotation("a")), (None, None, None));
            assert_eq!((cluster.class(), cluster.topology()), (None, &Value::Null));
        }
    }
}
