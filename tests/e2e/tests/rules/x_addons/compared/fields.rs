//! The fields of objects, without what differs from run to run.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::{ResourceExt as _, api::DynamicObject};
use serde_json::Value;

use super::side::Side;

/// Fields by path, with their values as JSON.
pub type Fields = BTreeMap<String, String>;
/// Objects by kind and Cluster.
pub type Objects = BTreeMap<String, Fields>;

/// Labels of Secrets that Helm itself sets.
const OF_HELM: [&str; 6] = ["name", "owner", "status", "version", "createdAt", "modifiedAt"];

/// What differs from run to run, and what it is replaced by.
pub struct Terms(Vec<(String, String)>);

impl Terms {
    pub fn of(side: &Side, flow: &str) -> Self {
        let space = side.space(flow);
        Self(vec![
            (side.repository.clone(), "<repository>".to_owned()),
            (space, "<release namespace>".to_owned()),
            (side.namespace.clone(), "<namespace>".to_owned()),
        ])
    }

    /// Learns the generated names of a `HelmReleaseProxy` and its release.
    pub fn learn(&mut self, release: &DynamicObject) {
        let spec = &release.data["spec"];
        let text = |name: &str| spec[name].as_str().unwrap_or_default().to_owned();
        let cluster = spec["clusterRef"]["name"].as_str().unwrap_or_default();
        let readable = format!("{}-{cluster}-", text("chartName"));
        let name = release.name_any();
        if name.starts_with(&readable) {
            self.0.insert(0, (name, format!("{readable}<generated>")));
        }
        let is_generated =
            release.annotations().iter().any(|(name, _)| name.ends_with("/is-release-name-generated"));
        if is_generated && !text("releaseName").is_empty() {
            self.0.insert(0, (text("releaseName"), format!("{}-<generated>", text("chartName"))));
        }
    }

    fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }
}

/// The fields of an object that matter.
pub fn fields_of(object: &DynamicObject, terms: &Terms) -> Fields {
    let mut fields = Fields::new();
    let mut metadata = serde_json::to_value(&object.metadata).unwrap_or_default();
    for name in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"] {
        metadata.as_object_mut().map(|metadata| metadata.remove(name));
    }
    if let Some(annotations) = metadata["annotations"].as_object_mut() {
        annotations.retain(|name, _| !name.starts_with("kubectl."));
        for (name, value) in annotations {
            if name.ends_with("/release-id") {
                *value = Value::from("<ID>");
            }
        }
    }
    for owner in metadata["ownerReferences"].as_array_mut().into_iter().flatten() {
        owner.as_object_mut().map(|owner| owner.remove("uid"));
    }
    flatten("metadata", &metadata, terms, &mut fields);
    flatten("spec", &object.data["spec"], terms, &mut fields);
    let mut status = object.data["status"].clone();
    // A condition that is observed is one of this generation, whatever its number is.
    let generation = object.metadata.generation;
    let current = |observed: &mut Value| {
        if observed.is_i64() {
            *observed = Value::from(if observed.as_i64() == generation { "current" } else { "earlier" });
        }
    };
    let conditions = status["conditions"].take();
    current(&mut status["observedGeneration"]);
    flatten("status", &status, terms, &mut fields);
    for condition in conditions.as_array().into_iter().flatten() {
        let mut condition = condition.clone();
        let path = format!("status.conditions[{}]", condition["type"].as_str().unwrap_or_default());
        current(&mut condition["observedGeneration"]);
        // CAAPH keeps the reason that it reports without releases if these become ready before its next reconcile.
        if condition["type"] == "HelmReleaseProxiesReady" && condition["status"] == "True" {
            condition["reason"] = Value::from("<Ready or InfoReported>");
        }
        for name in ["type", "lastTransitionTime"] {
            condition.as_object_mut().map(|condition| condition.remove(name));
        }
        flatten(&path, &condition, terms, &mut fields);
    }
    fields
}

/// The spec that the API server would store.
pub fn stored(side: &Side, object: &Value) -> Objects {
    let mut fields = Fields::new();
    flatten("spec", &object["spec"], &Terms::of(side, ""), &mut fields);
    [("HelmChartProxy".to_owned(), fields)].into()
}

/// The name and the fields of a revision, as `helm history` and `helm get values` show it.
pub fn release_fields(release: &Value, secret: &Secret, terms: &Terms) -> (String, Fields) {
    let mut fields = Fields::new();
    let text =
        |pointer: &str| release.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = format!("release {} in {}", text("/name"), text("/namespace"));
    let name = format!("{}, revision {}", terms.apply(&name), release["version"]);
    let chart = format!("{}-{}", text("/chart/metadata/name"), text("/chart/metadata/version"));
    for (path, value) in [
        ("status", Value::from(text("/info/status"))),
        ("description", Value::from(text("/info/description"))),
        ("chart", Value::from(chart)),
        ("app version", Value::from(text("/chart/metadata/appVersion"))),
        ("values", release["config"].clone()),
    ] {
        flatten(path, &value, terms, &mut fields);
    }
    for (label, _) in secret.labels().iter().filter(|(label, _)| !OF_HELM.contains(&label.as_str())) {
        fields.insert(format!("label {label}"), "\"<set>\"".to_owned());
    }
    (name, fields)
}

fn flatten(path: &str, value: &Value, terms: &Terms, fields: &mut Fields) {
    let member = |name: &str| {
        if name.contains(['.', '/']) { format!("{path}[{name}]") } else { format!("{path}.{name}") }
    };
    match value {
        Value::Null => {}
        Value::Object(map) if !map.is_empty() => {
            for (name, value) in map {
                flatten(&member(name), value, terms, fields);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, value) in items.iter().enumerate() {
                flatten(&format!("{path}[{index}]"), value, terms, fields);
            }
        }
        _ => {
            fields.insert(path.to_owned(), terms.apply(&value.to_string()));
        }
    }
}
