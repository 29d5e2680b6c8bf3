//! The objects that templates of values refer to: the Cluster, its control plane and its infrastructure object, as the API
//! server returns them (X3).

use std::collections::BTreeMap;

use capasg_api::capi::{ContractReference, bootstrap_resource, contract_version, crd_name};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt as _,
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};

use super::{Context, ReconcileError};

/// The versions of the kinds that Clusters refer to, read once for each reconcile.
#[derive(Default)]
pub(super) struct Versions(BTreeMap<String, Option<String>>);

/// The resource of a Cluster.
pub(super) fn clusters() -> ApiResource {
    let reference = ContractReference {
        api_group: "cluster.x-k8s.io".to_owned(),
        kind: "Cluster".to_owned(),
        name: String::new(),
    };
    bootstrap_resource(&reference, "v1beta2")
}

/// The data of a template for a Cluster; none if an object does not exist yet.
pub(super) async fn of(
    context: &Context,
    cluster: &DynamicObject,
    versions: &mut Versions,
) -> Result<Option<Value>, ReconcileError> {
    let mut data = json!({"Cluster": cluster});
    for (field, name) in [("controlPlaneRef", "ControlPlane"), ("infrastructureRef", "InfraCluster")] {
        let reference = cluster.data["spec"].get(field).cloned().unwrap_or_default();
        let reference: ContractReference = serde_json::from_value(reference).unwrap_or_default();
        if !reference.is_set() {
            continue;
        }
        let namespace = cluster.namespace().unwrap_or_default();
        match object(context, &namespace, &reference, versions).await? {
            Some(object) => data[name] = json!(object),
            None => return Ok(None),
        }
    }
    Ok(Some(data))
}

async fn object(
    context: &Context,
    namespace: &str,
    reference: &ContractReference,
    versions: &mut Versions,
) -> Result<Option<DynamicObject>, ReconcileError> {
    let read = |what| move |source| ReconcileError::Read { what, source };
    let name = crd_name(reference);
    if !versions.0.contains_key(&name) {
        let api: Api<CustomResourceDefinition> = Api::all(context.client.clone());
        let found = api.get_metadata_opt(&name).await.map_err(read("a CustomResourceDefinition"))?;
        let version = found.and_then(|found| contract_version(found.labels()).map(str::to_owned));
        versions.0.insert(name.clone(), version);
    }
    let Some(Some(version)) = versions.0.get(&name) else { return Ok(None) };
    let resource = bootstrap_resource(reference, version);
    let api: Api<DynamicObject> = Api::namespaced_with(context.client.clone(), namespace, &resource);
    api.get_opt(&reference.name).await.map_err(read("an object that the Cluster refers to"))
}
