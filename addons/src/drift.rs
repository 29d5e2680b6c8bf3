//! The resources of a release, compared with those in the workload cluster. The API server determines what they would be if
//! they were applied again, in a server-side dry run: so defaults and notations do not differ. Nothing is changed.

use std::collections::HashMap;

use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
    discovery::{Scope, pinned_kind},
};
use serde_json::{Map, Value};

use crate::{
    decide::release::{DriftFindings, DriftSettings, Drifted},
    engine::described,
    preview::{differences, resource_name},
};

/// The name of the actor in dry runs.
const MANAGER: &str = "capasg-drift";
/// Parts of objects that the API server or controllers write.
const NOT_COMPARED: [&str; 5] =
    ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"];

/// Kinds that were looked up, with whether their objects are in namespaces; none if the API server does not serve them.
type Kinds = HashMap<GroupVersionKind, Option<(ApiResource, bool)>>;

/// Compares the resources of a manifest. Those without a namespace are in `namespace`.
pub(crate) async fn compare(
    client: &Client,
    namespace: &str,
    manifest: &[Map<String, Value>],
    settings: &DriftSettings,
) -> DriftFindings {
    let (mut kinds, mut findings) = (Kinds::new(), DriftFindings::default());
    for object in manifest.iter().flat_map(items) {
        let resource = resource_name(object);
        match of_object(client, namespace, object, settings, &mut kinds).await {
            Ok(None) => {}
            Ok(Some(paths)) => findings.drifted.push(Drifted { resource, paths }),
            Err(why) => findings.unchecked.push(format!("{resource}: {why}")),
        }
    }
    findings
}

/// The objects of a list, or the object itself.
fn items(object: &Map<String, Value>) -> Vec<&Map<String, Value>> {
    let is_list = object.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match object.get("items") {
        Some(Value::Array(items)) if is_list => items.iter().filter_map(Value::as_object).collect(),
        _ => vec![object],
    }
}

/// The paths that differ, none if the object does not exist; or nothing if no part differs.
async fn of_object(
    client: &Client,
    namespace: &str,
    object: &Map<String, Value>,
    settings: &DriftSettings,
    kinds: &mut Kinds,
) -> Result<Option<Vec<String>>, String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let metadata = object.get("metadata");
    let name = text(metadata.and_then(|metadata| metadata.get("name")));
    let (version, kind) = (text(object.get("apiVersion")), text(object.get("kind")));
    if name.is_empty() || version.is_empty() || kind.is_empty() {
        return Err("it has no name or kind".to_owned());
    }
    let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
    let of = GroupVersionKind::gvk(group, version, &kind);
    let Some((resource, is_namespaced)) = served(client, &of, kinds).await? else {
        return Ok(Some(Vec::new()));
    };
    let own = text(metadata.and_then(|metadata| metadata.get("namespace")));
    let namespace = if own.is_empty() { namespace } else { &own };
    let api: Api<DynamicObject> = if is_namespaced {
        Api::namespaced_with(client.clone(), namespace, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    };
    let Some(live) = api.get_opt(&name).await.map_err(|error| described(&error))? else {
        return Ok(Some(Vec::new()));
    };
    let parameters = PatchParams { dry_run: true, ..PatchParams::apply(MANAGER).force() };
    let applied = api.patch(&name, &parameters, &Patch::Apply(object)).await;
    let applied = applied.map_err(|error| described(&error))?;
    let all = differences(&compared(&live), &compared(&applied));
    let paths = all.into_iter().map(|difference| difference.path);
    let paths: Vec<String> = paths.filter(|path| !settings.ignores(&kind, path)).collect();
    Ok((!paths.is_empty()).then_some(paths))
}

async fn served(
    client: &Client,
    of: &GroupVersionKind,
    kinds: &mut Kinds,
) -> Result<Option<(ApiResource, bool)>, String> {
    if let Some(known) = kinds.get(of) {
        return Ok(known.clone());
    }
    let found = match pinned_kind(client, of).await {
        Ok((resource, capabilities)) => Some((resource, capabilities.scope == Scope::Namespaced)),
        Err(kube::Error::Discovery(_)) => None,
        Err(kube::Error::Api(status)) if status.is_not_found() => None,
        Err(error) => return Err(described(&error)),
    };
    kinds.insert(of.clone(), found.clone());
    Ok(found)
}

/// An object without what others than users write.
fn compared(object: &DynamicObject) -> Map<String, Value> {
    let Ok(Value::Object(mut object)) = serde_json::to_value(object) else { return Map::new() };
    object.remove("status");
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|key, _| !NOT_COMPARED.contains(&key.as_str()));
    }
    object
}
