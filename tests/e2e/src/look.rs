//! Reading objects whose kinds are Cluster API's own.

use anyhow::Result;
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams},
};
use serde_json::Value;

/// The text at a pointer such as `/status/phase`; empty where there is none.
#[must_use]
pub fn text<'a>(object: &'a DynamicObject, pointer: &str) -> &'a str {
    object.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A condition as `status/reason`; empty where there is none.
#[must_use]
pub fn condition(conditions: &[Condition], kind: &str) -> String {
    let found = conditions.iter().find(|condition| condition.type_ == kind);
    found.map(|found| format!("{}/{}", found.status, found.reason)).unwrap_or_default()
}

/// A condition of an object, with all its members; null where there is none.
#[must_use]
pub fn condition_of(object: &DynamicObject, kind: &str) -> Value {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == kind));
    found.cloned().unwrap_or_default()
}

/// All objects of a list with this label selector.
///
/// # Errors
/// When the API server does not answer.
pub async fn dynamic_list(api: &Api<DynamicObject>, selector: &str) -> Result<Vec<DynamicObject>> {
    Ok(api.list(&ListParams::default().labels(selector)).await?.items)
}

/// The Nodes of the workload cluster whose provider id ends with one of these instances.
///
/// # Errors
/// When the API server does not answer.
pub async fn node_names(client: &Client, instances: &[String]) -> Result<Vec<String>> {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
    let of_ours = |node: &&Node| {
        let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).unwrap_or_default();
        instances.iter().any(|instance| id.ends_with(&format!("/{instance}")))
    };
    Ok(nodes.iter().filter(of_ours).map(ResourceExt::name_any).collect())
}
