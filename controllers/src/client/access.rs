//! Calls for identities: those of another provider, access keys, whether RBAC gives them to this controller, and statuses.

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
use crate::kubernetes::{AccessKey, Result, SecretPlace};

/// The version of the identities of Cluster API Provider AWS that is read; it serves it since version 2.0.
const AWS_PROVIDER_VERSION: &str = "v1beta2";

/// The spec of a cluster-scoped object; none if its kind is not served.
pub(super) async fn cluster_scoped_spec(
    client: &Client,
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
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let found = api.get_opt(name).await.map_err(|e| port_error(format!("reading {kind} {name}"), &e))?;
    Ok(found.map(|object| spec_of(&object).clone()))
}

/// The access key in a Secret.
pub(super) async fn access_key(
    client: &Client,
    own: &str,
    secret: &SecretPlace,
) -> Result<Option<AccessKey>> {
    if !is_object_name(&secret.name) {
        return Ok(None);
    }
    let api: Api<Secret> = Api::namespaced(client.clone(), secret.namespace.as_deref().unwrap_or(own));
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
pub(super) async fn may_use(client: &Client, own: &str, secret: &SecretPlace) -> Result<bool> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some("use".to_owned()),
                resource: Some("secrets".to_owned()),
                version: Some("v1".to_owned()),
                namespace: Some(secret.namespace.as_deref().unwrap_or(own).to_owned()),
                name: Some(secret.name.clone()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = api.create(&PostParams::default(), &review).await;
    let answer = answer.map_err(|e| port_error(format!("reviewing the access to Secret {secret}"), &e))?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// Writes the status of an ASGIdentity.
pub(super) async fn report_identity(client: &Client, name: &str, status: &ASGIdentityStatus) -> Result<()> {
    let api: Api<ASGIdentity> = Api::all(client.clone());
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    let patched = api.patch_status(name, &params, &Patch::Merge(json!({"status": status}))).await;
    patched.map(drop).map_err(|e| port_error(format!("writing the status of ASGIdentity {name}"), &e))
}
