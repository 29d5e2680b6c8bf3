//! The objects that templates of values refer to: the Cluster, its control plane and its infrastructure object, as the API
//! server returns them (X3).

use std::collections::BTreeMap;

use capasg_api::capi::{ContractReference, bootstrap_resource, contract_version, crd_name};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt as _,
    api::ListParams,
    core::{ApiResource, DynamicObject, TypeMeta},
};
use serde_json::{Value, json};

use super::{Context, ReconcileError};

/// What so many Clusters refer to at most is read one by one; otherwise all objects of a kind are listed.
const FEW: usize = 3;

/// What Clusters of a namespace refer to, as far as it was read in this reconcile.
pub(super) struct Objects {
    /// The version of each kind.
    versions: BTreeMap<String, Option<String>>,
    /// The objects of each kind by their names, if they are listed.
    listed: Option<BTreeMap<String, BTreeMap<String, DynamicObject>>>,
}

impl Objects {
    /// For this many Clusters.
    pub(super) fn new(clusters: usize) -> Self {
        Self { versions: BTreeMap::new(), listed: (clusters > FEW).then(BTreeMap::new) }
    }
}

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
    objects: &mut Objects,
) -> Result<Option<Value>, ReconcileError> {
    let mut data = json!({"Cluster": cluster});
    for (field, name) in [("controlPlaneRef", "ControlPlane"), ("infrastructureRef", "InfraCluster")] {
        let reference = cluster.data["spec"].get(field).cloned().unwrap_or_default();
        let reference: ContractReference = serde_json::from_value(reference).unwrap_or_default();
        if !reference.is_set() {
            continue;
        }
        let namespace = cluster.namespace().unwrap_or_default();
        match object(context, &namespace, &reference, objects).await? {
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
    objects: &mut Objects,
) -> Result<Option<DynamicObject>, ReconcileError> {
    let read = |what| move |source| ReconcileError::Read { what, source };
    let name = crd_name(reference);
    if !objects.versions.contains_key(&name) {
        let api: Api<CustomResourceDefinition> = Api::all(context.client.clone());
        let found = api.get_metadata_opt(&name).await.map_err(read("a CustomResourceDefinition"))?;
        let version = found.and_then(|found| contract_version(found.labels()).map(str::to_owned));
        objects.versions.insert(name.clone(), version);
    }
    let Some(Some(version)) = objects.versions.get(&name) else { return Ok(None) };
    let resource = bootstrap_resource(reference, version);
    let api: Api<DynamicObject> = Api::namespaced_with(context.client.clone(), namespace, &resource);
    let Some(listed) = &mut objects.listed else {
        return api.get_opt(&reference.name).await.map_err(read("an object that the Cluster refers to"));
    };
    if !listed.contains_key(&name) {
        let all = api.list(&ListParams::default()).await;
        let all = all.map_err(read("the objects that Clusters refer to"))?.items;
        // A template may refer to the kind, which not every list repeats.
        let of_kind = |mut object: DynamicObject| {
            let (api_version, kind) = (resource.api_version.clone(), resource.kind.clone());
            object.types.get_or_insert(TypeMeta { api_version, kind });
            (object.name_any(), object)
        };
        listed.insert(name.clone(), all.into_iter().map(of_kind).collect());
    }
    Ok(listed.get(&name).and_then(|all| all.get(&reference.name)).cloned())
}
