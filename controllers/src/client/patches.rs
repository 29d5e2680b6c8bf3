//! The writes of the port as merge patches and deletes with preconditions. Single fields only: fields of other actors
//! are never sent back (C2), and a removed field is sent as null (M5).

use capasg_api::{
    ASGMachine, ASGMachinePool,
    capi::{Machine, MachinePool},
    names::{FIELD_MANAGER, annotations, finalizers, labels},
};
use chrono::SecondsFormat;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    core::PartialObjectMeta,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{caches::Caches, error::port_error};
use crate::{
    ObjectKey,
    kubernetes::{KubeError, KubeWrite, Result},
    names::{BLOCK_MOVE_VALUE, SCALE_IN_VALUE},
};

/// Carries out one write. Returns the resource version of the object since then; `None` for creations and deletions.
pub(super) async fn write(client: &Client, caches: &Caches, write: &KubeWrite) -> Result<Option<String>> {
    let patch = Patcher { client, write };
    match write {
        KubeWrite::AddPoolFinalizer { pool, resource_version, finalizers, owner_id, nothing_created } => {
            let mut annotated = Map::new();
            annotated.insert(annotations::OWNER_ID.into(), json!(owner_id));
            if *nothing_created {
                annotated.insert(annotations::NOTHING_CREATED.into(), json!("true"));
            }
            let body = json!({"metadata": {
                "resourceVersion": resource_version,
                "finalizers": finalizers,
                "annotations": annotated,
            }});
            patch.merge::<ASGMachinePool>(pool, &body).await
        }
        KubeWrite::RemoveNothingCreated { pool, uid } => {
            patch.annotate::<ASGMachinePool>(pool, uid, annotations::NOTHING_CREATED, Value::Null).await
        }
        KubeWrite::RemovePoolFinalizer { pool, resource_version, finalizers } => {
            let body = json!({"metadata": {"resourceVersion": resource_version, "finalizers": finalizers}});
            patch.merge::<ASGMachinePool>(pool, &body).await
        }
        KubeWrite::PatchPoolProviderIds { pool, resource_version, provider_id, list } => {
            let mut spec = Map::new();
            if let Some(id) = provider_id {
                spec.insert("providerID".into(), json!(id));
            }
            if let Some(list) = list {
                spec.insert("providerIDList".into(), json!(list));
            }
            let mut body = json!({"spec": spec});
            if let Some(version) = resource_version {
                body["metadata"] = json!({"resourceVersion": version});
            }
            patch.merge::<ASGMachinePool>(pool, &body).await
        }
        KubeWrite::AnnotateBlockMove { pool, uid, blocked } => {
            let value = if *blocked { json!(BLOCK_MOVE_VALUE) } else { Value::Null };
            patch.annotate::<ASGMachinePool>(pool, uid, annotations::BLOCK_MOVE, value).await
        }
        KubeWrite::AnnotateRolloutStopped { pool, resource_version, revision, .. } => {
            let mut body = json!({"metadata": {"annotations": {annotations::ROLLOUT_STOPPED: revision}}});
            if let Some(version) = resource_version {
                body["metadata"]["resourceVersion"] = json!(version);
            }
            patch.merge::<ASGMachinePool>(pool, &body).await
        }
        KubeWrite::PatchMachinePoolReplicas { machine_pool, uid, resource_version, replicas } => {
            let body = json!({
                "metadata": {"uid": uid, "resourceVersion": resource_version},
                "spec": {"replicas": replicas},
            });
            patch.merge::<MachinePool>(machine_pool, &body).await
        }
        KubeWrite::PatchPoolStatus { pool, resource_version, status } => {
            let before = caches.pool(pool).and_then(|pool| pool.status.clone());
            patch.status::<ASGMachinePool>(pool, resource_version.as_deref(), before.as_ref(), status).await
        }
        KubeWrite::PatchAsgMachineStatus { machine, resource_version, status } => {
            let before = caches.asg_machine(machine).and_then(|machine| machine.status.clone());
            patch.status::<ASGMachine>(machine, resource_version.as_deref(), before.as_ref(), status).await
        }
        KubeWrite::CreateAsgMachine(machine) => patch.create(machine).await,
        KubeWrite::DeleteAsgMachine { machine, uid } => patch.delete::<ASGMachine>(machine, uid).await,
        KubeWrite::DeleteMachine { machine, uid, .. } => patch.delete::<Machine>(machine, uid).await,
        KubeWrite::AnnotateTerminationRequested { machine, uid, at, .. } => {
            let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
            patch.annotate::<ASGMachine>(machine, uid, annotations::END_REQUESTED_AT, json!(at)).await
        }
        KubeWrite::AnnotateDesiredState { machine, uid, record } => {
            patch.annotate::<ASGMachine>(machine, uid, annotations::DESIRED_STATE, json!(record)).await
        }
        KubeWrite::RestoreAsgMachine { machine, uid, owner, pool_name } => {
            patch.restore(machine, uid, owner, pool_name.as_ref()).await
        }
        KubeWrite::RemoveAsgMachineFinalizer { machine, uid, .. } => patch.release(machine, uid).await,
        KubeWrite::AnnotateDeleteMachine { machine, uid, annotated } => {
            let value = if *annotated { json!(SCALE_IN_VALUE) } else { Value::Null };
            patch.annotate::<Machine>(machine, uid, annotations::DELETE_MACHINE, value).await
        }
        KubeWrite::PatchMachineTimeouts { machine, uid, deletion } => {
            // A limit that is not set is sent as null; core's own applies never name these fields.
            let body = json!({"metadata": {"uid": uid}, "spec": {"deletion": {
                "nodeDrainTimeoutSeconds": deletion.node_drain_timeout_seconds,
                "nodeVolumeDetachTimeoutSeconds": deletion.node_volume_detach_timeout_seconds,
                "nodeDeletionTimeoutSeconds": deletion.node_deletion_timeout_seconds,
            }}});
            patch.merge::<Machine>(machine, &body).await
        }
        KubeWrite::AnnotateExcludeNodeDraining { machine, uid } => {
            patch.annotate::<Machine>(machine, uid, annotations::EXCLUDE_NODE_DRAINING, json!("true")).await
        }
        KubeWrite::PatchMachineOwners { machine, uid, resource_version, owners } => {
            let body = json!({"metadata": {
                "uid": uid, "resourceVersion": resource_version, "ownerReferences": owners,
            }});
            patch.merge::<Machine>(machine, &body).await
        }
    }
}

struct Patcher<'a> {
    client: &'a Client,
    write: &'a KubeWrite,
}

impl Patcher<'_> {
    fn api<K>(&self, key: &ObjectKey) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    /// A merge patch replaces lists, which may hold entries of others, so they are read first.
    async fn metadata_of(&self, key: &ObjectKey) -> Result<PartialObjectMeta<ASGMachine>> {
        self.api::<ASGMachine>(key).get_metadata(&key.name).await.map_err(|e| self.failed(&e))
    }

    /// Adds the reference to its pool and our finalizer to an ASGMachine, and sets its label for the MachinePool.
    async fn restore(
        &self,
        key: &ObjectKey,
        uid: &str,
        owner: &OwnerReference,
        pool_name: Option<&String>,
    ) -> Result<Option<String>> {
        let found = self.metadata_of(key).await?;
        let mut owners = found.owner_references().to_vec();
        if !owners.iter().any(|one| one.uid == owner.uid) {
            owners.push(owner.clone());
        }
        let mut finalizers = found.finalizers().to_vec();
        if !finalizers.iter().any(|finalizer| finalizer == finalizers::MACHINE) {
            finalizers.push(finalizers::MACHINE.to_owned());
        }
        let version = found.resource_version();
        let mut body = json!({"metadata": {
            "uid": uid, "resourceVersion": version, "ownerReferences": owners, "finalizers": finalizers,
        }});
        if let Some(name) = pool_name {
            body["metadata"]["labels"] = json!({labels::POOL_NAME: name});
        }
        self.merge::<ASGMachine>(key, &body).await
    }

    /// Removes our finalizer from an ASGMachine.
    async fn release(&self, key: &ObjectKey, uid: &str) -> Result<Option<String>> {
        let found = self.metadata_of(key).await?;
        let left: Vec<&String> =
            found.finalizers().iter().filter(|f| f.as_str() != finalizers::MACHINE).collect();
        let version = found.resource_version();
        let body = json!({"metadata": {"uid": uid, "resourceVersion": version, "finalizers": left}});
        self.merge::<ASGMachine>(key, &body).await
    }

    fn failed(&self, e: &kube::Error) -> KubeError {
        port_error(self.write.what(), e)
    }

    async fn merge<K>(&self, key: &ObjectKey, body: &Value) -> Result<Option<String>>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        self.api::<K>(key)
            .patch_metadata(&key.name, &params, &Patch::Merge(body))
            .await
            .map(|object| object.metadata.resource_version)
            .map_err(|e| self.failed(&e))
    }

    /// A uid in the patch makes the API server reject it if another object has the name now, which is a conflict.
    async fn annotate<K>(
        &self,
        key: &ObjectKey,
        uid: &str,
        annotation: &str,
        value: Value,
    ) -> Result<Option<String>>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        self.merge::<K>(key, &json!({"metadata": {"uid": uid, "annotations": {annotation: value}}})).await
    }

    async fn status<K>(
        &self,
        key: &ObjectKey,
        resource_version: Option<&str>,
        before: Option<&impl Serialize>,
        after: &impl Serialize,
    ) -> Result<Option<String>>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let json = |value: &dyn Fn() -> serde_json::Result<Value>| {
            value().map_err(|e| KubeError::Other { what: self.write.what(), message: e.to_string() })
        };
        let after = json(&|| serde_json::to_value(after))?;
        let before = json(&|| serde_json::to_value(before))?;
        let mut body = json!({"status": with_nulls(&before, after)});
        if let Some(version) = resource_version {
            body["metadata"] = json!({"resourceVersion": version});
        }
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        self.api::<K>(key)
            .patch_status(&key.name, &params, &Patch::Merge(&body))
            .await
            .map(|object| object.meta().resource_version.clone())
            .map_err(|e| self.failed(&e))
    }

    async fn create(&self, machine: &ASGMachine) -> Result<Option<String>> {
        let key = ObjectKey::of(machine);
        let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
        match self.api::<ASGMachine>(&key).create(&params, machine).await {
            Ok(_) => Ok(None),
            // The name follows from the instance: an earlier attempt created it (D5).
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(None),
            Err(e) => Err(self.failed(&e)),
        }
    }

    async fn delete<K>(&self, key: &ObjectKey, uid: &str) -> Result<Option<String>>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        self.api::<K>(key).delete(&key.name, &params).await.map(|_| None).map_err(|e| self.failed(&e))
    }
}

/// `after` with null for each key that only `before` has, so that a merge patch removes it.
fn with_nulls(before: &Value, after: Value) -> Value {
    let (Value::Object(before), Value::Object(mut after)) = (before, after.clone()) else { return after };
    for (key, old) in before {
        match after.get_mut(key) {
            None => {
                after.insert(key.clone(), Value::Null);
            }
            Some(new) if new.is_object() => *new = with_nulls(old, new.take()),
            Some(_) => {}
        }
    }
    Value::Object(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m5_a_removed_field_is_sent_as_null() {
        let before = json!({"a": 1, "removed": 2, "inner": {"b": 1, "removed": 2}, "list": [1, 2]});
        let after = json!({"a": 1, "inner": {"b": 2}, "list": []});
        let expected = json!({"a": 1, "removed": null, "inner": {"b": 2, "removed": null}, "list": []});
        assert_eq!(with_nulls(&before, after), expected);
    }
}
