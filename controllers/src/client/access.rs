//! Calls for identities: what names them, those of another provider, access keys, whether RBAC gives them to this process, and
//! statuses.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use capasg_api::{
    ASGIdentity, ASGIdentityStatus,
    capi::{ContractReference, bootstrap_resource, spec_of},
    names::{FIELD_MANAGER, is_object_name},
};
use capasg_cloud::SecretText;
use k8s_openapi::{
    ByteString,
    api::{
        authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
        core::v1::Secret,
    },
};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::error::port_error;
use crate::{
    ObjectKey,
    kubernetes::{AccessKey, KubeError, Result, SecretPlace},
};

/// The version of the identities of Cluster API Provider AWS that is read; it serves it since version 2.0.
const AWS_PROVIDER_VERSION: &str = "v1beta2";

/// The namespaces with the Secrets of identities.
#[derive(Debug, Clone)]
pub struct Namespaces {
    /// That of the manager.
    pub own: String,
    /// That of Cluster API Provider AWS.
    pub aws_provider: String,
}

/// Reads what other objects refer to.
pub(super) struct References {
    client: Client,
    namespaces: Namespaces,
    versions: Mutex<BTreeMap<(String, String), String>>,
}

impl References {
    /// Nothing is read yet.
    pub(super) fn new(client: Client, namespaces: Namespaces) -> Self {
        Self { client, namespaces, versions: Mutex::default() }
    }

    /// The namespace of Cluster API Provider AWS.
    pub(super) fn aws_provider_namespace(&self) -> &str {
        &self.namespaces.aws_provider
    }

    fn known_version(&self, group: &str, kind: &str) -> Option<String> {
        let key = (group.to_owned(), kind.to_owned());
        self.versions.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    /// Reads the version of a kind that the API server prefers.
    async fn discover_version(&self, group: &str, kind: &str) -> Result<String> {
        let key = (group.to_owned(), kind.to_owned());
        let what = || format!("discovering {kind} of {group}");
        let found = kube::discovery::group(&self.client, group).await.map_err(|e| port_error(what(), &e))?;
        let version =
            found.recommended_kind(kind).map(|(resource, _)| resource.version).ok_or_else(|| {
                KubeError::Other {
                    what: what(),
                    message: "the API server does not serve this kind".to_owned(),
                }
            })?;
        self.versions.lock().unwrap_or_else(PoisonError::into_inner).insert(key, version.clone());
        Ok(version)
    }

    /// The spec of an object in a namespace.
    pub(super) async fn referenced_spec(
        &self,
        api_group: &str,
        kind: &str,
        key: &ObjectKey,
    ) -> Result<Option<Value>> {
        if !is_object_name(&key.name) {
            return Ok(None);
        }
        let known = self.known_version(api_group, kind);
        if let Some(version) = &known
            && let Some(spec) = self.spec_at(version, api_group, kind, key).await?
        {
            return Ok(Some(spec));
        }
        // The API server answers for a version that it does not serve any more as for an object that does not exist: the
        // provider of the kind may have been upgraded.
        let version = self.discover_version(api_group, kind).await?;
        if known.as_ref() == Some(&version) {
            return Ok(None);
        }
        self.spec_at(&version, api_group, kind, key).await
    }

    /// The spec of an object in a namespace, in this version of its kind.
    async fn spec_at(
        &self,
        version: &str,
        api_group: &str,
        kind: &str,
        key: &ObjectKey,
    ) -> Result<Option<Value>> {
        let reference =
            ContractReference { api_group: api_group.into(), kind: kind.into(), name: key.name.clone() };
        let resource = bootstrap_resource(&reference, version);
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &key.namespace, &resource);
        let found =
            api.get_opt(&key.name).await.map_err(|e| port_error(format!("reading {kind} {key}"), &e))?;
        Ok(found.map(|object| spec_of(&object).clone()))
    }

    /// The spec of a cluster-scoped object; none if its kind is not served.
    pub(super) async fn cluster_scoped_spec(
        &self,
        api_group: &str,
        kind: &str,
        name: &str,
    ) -> Result<Option<Value>> {
        if !is_object_name(name) {
            return Ok(None);
        }
        let reference =
            ContractReference { api_group: api_group.into(), kind: kind.into(), name: name.to_owned() };
        let resource = bootstrap_resource(&reference, AWS_PROVIDER_VERSION);
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let found = api.get_opt(name).await.map_err(|e| port_error(format!("reading {kind} {name}"), &e))?;
        Ok(found.map(|object| spec_of(&object).clone()))
    }

    /// The access key in a Secret.
    pub(super) async fn access_key(&self, secret: &SecretPlace) -> Result<Option<AccessKey>> {
        if !is_object_name(&secret.name) {
            return Ok(None);
        }
        let api: Api<Secret> =
            Api::namespaced(self.client.clone(), secret.namespace.as_deref().unwrap_or(&self.namespaces.own));
        let found = api.get_opt(&secret.name).await;
        let found = found.map_err(|e| port_error(format!("reading Secret {secret}"), &e))?;
        Ok(found.map(|found| {
            let mut data = found.data.unwrap_or_default();
            let mut take = |key: &str| {
                let ByteString(bytes) = data.remove(key)?;
                // Files that an editor wrote end with a line break.
                Some(String::from_utf8(bytes).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
            };
            AccessKey {
                access_key_id: take("AccessKeyID").unwrap_or_default(),
                secret_access_key: SecretText::new(take("SecretAccessKey").unwrap_or_default()),
                session_token: take("SessionToken").map(SecretText::new),
            }
        }))
    }

    /// Whether RBAC gives this controller the verb `use` on a Secret.
    pub(super) async fn may_use(&self, secret: &SecretPlace) -> Result<bool> {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    verb: Some("use".to_owned()),
                    resource: Some("secrets".to_owned()),
                    version: Some("v1".to_owned()),
                    namespace: Some(secret.namespace.as_deref().unwrap_or(&self.namespaces.own).to_owned()),
                    name: Some(secret.name.clone()),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &review).await;
        let answer =
            answer.map_err(|e| port_error(format!("reviewing the access to Secret {secret}"), &e))?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

/// Writes the status of an ASGIdentity.
pub(super) async fn report_identity(client: &Client, name: &str, status: &ASGIdentityStatus) -> Result<()> {
    let api: Api<ASGIdentity> = Api::all(client.clone());
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    let patched = api.patch_status(name, &params, &Patch::Merge(json!({"status": status}))).await;
    patched.map(drop).map_err(|e| port_error(format!("writing the status of ASGIdentity {name}"), &e))
}
