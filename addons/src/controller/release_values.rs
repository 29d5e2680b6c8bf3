//! The values of a release: those of `ConfigMaps` and Secrets that an annotation names, overridden by those of the spec.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, ResourceExt as _};
use serde_json::{Map, Value};

use super::{Context, ReconcileError};
use crate::{
    HelmReleaseProxy,
    decide::{LocalKind, LocalReference, ValuesSource, merge, values_from},
};

/// The most bytes of the values in objects: as many as a spec may have.
const MOST_BYTES: usize = 1 << 20;

/// The merged values; or what is wrong with them, without values. Nothing of a Secret is written to an object of the management
/// cluster.
pub(super) async fn of(
    context: &Context,
    object: &HelmReleaseProxy,
) -> Result<Result<Map<String, Value>, String>, ReconcileError> {
    let sources = match values_from(object.annotations()) {
        Ok(sources) => sources,
        Err(why) => return Ok(Err(why)),
    };
    let namespace = object.namespace().unwrap_or_default();
    let mut texts: Vec<(&ValuesSource, String)> = Vec::new();
    for source in &sources {
        match content(data(context, &namespace, &source.object).await?, source).map(String::from_utf8) {
            Ok(Ok(text)) => texts.push((source, text)),
            Ok(Err(_)) => return Ok(Err(not_a_map(source))),
            Err(_) if source.is_optional => {}
            Err(missing) => return Ok(Err(missing)),
        }
    }
    if texts.iter().map(|(_, text)| text.len()).sum::<usize>() > MOST_BYTES {
        let message =
            format!("the values in ConfigMaps and Secrets have more than {MOST_BYTES} bytes together");
        return Ok(Err(message));
    }
    let mut all: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
    all.push(&object.spec.values);
    let mut parsed = context.values.parse(&all).await?;
    // The messages of the parser are dropped: they contain parts of the values.
    let Some(Ok(of_spec)) = parsed.pop() else {
        let message = "spec.values is not YAML of a map; check valuesTemplate of the HelmChartProxy";
        return Ok(Err(message.to_owned()));
    };
    let mut values = Map::new();
    for ((source, _), one) in texts.iter().zip(parsed) {
        match one {
            Ok(one) => merge(&mut values, one),
            Err(_) => return Ok(Err(not_a_map(source))),
        }
    }
    merge(&mut values, of_spec);
    Ok(Ok(values))
}

fn not_a_map(source: &ValuesSource) -> String {
    format!("{source} is not YAML of a map")
}

fn content(data: Option<BTreeMap<String, Vec<u8>>>, source: &ValuesSource) -> Result<Vec<u8>, String> {
    let object = &source.object;
    let mut data = data.ok_or_else(|| {
        format!(
            "{object} does not exist in the namespace of the HelmChartProxy; create it with values in {}",
            source.key
        )
    })?;
    data.remove(&source.key).ok_or_else(|| format!("{object} has no key {}", source.key))
}

/// The data of an object; none if it does not exist.
async fn data(
    context: &Context,
    namespace: &str,
    object: &LocalReference,
) -> Result<Option<BTreeMap<String, Vec<u8>>>, ReconcileError> {
    let (client, name) = (context.client.clone(), object.name.as_str());
    let data = match object.kind {
        LocalKind::ConfigMap => {
            let found = Api::<ConfigMap>::namespaced(client, namespace).get_opt(name).await;
            found.map(|found| found.map(|found| bytes(found.data, String::into_bytes)))
        }
        LocalKind::Secret => {
            let found = Api::<Secret>::namespaced(client, namespace).get_opt(name).await;
            found.map(|found| found.map(|found| bytes(found.data, |content| content.0)))
        }
    };
    data.map_err(|source| ReconcileError::Read { what: "a ConfigMap or a Secret with values", source })
}

fn bytes<T>(data: Option<BTreeMap<String, T>>, of: impl Fn(T) -> Vec<u8>) -> BTreeMap<String, Vec<u8>> {
    data.unwrap_or_default().into_iter().map(|(key, content)| (key, of(content))).collect()
}
