//! What access is resolved from, read when it is asked for: for a process without the caches of the controllers.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use async_trait::async_trait;
use capasg_api::{ASGGuard, ASGIdentity};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, Resource, ResourceExt as _, api::ListParams};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    access::{Namespaces, References},
    error::port_error,
};
use crate::{
    ObjectKey,
    access::AccessSnapshot,
    kubernetes::{AccessKey, AccessSource, Result, SecretPlace},
};

/// Reads what access is resolved from.
pub struct AccessReader {
    client: Client,
    references: Arc<References>,
}

impl AccessReader {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(client: Client, namespaces: Namespaces) -> Self {
        let references = Arc::new(References::new(client.clone(), namespaces));
        Self { client, references }
    }

    /// What operators say now about a namespace: identities, guards, and the labels of the namespace.
    ///
    /// # Errors
    /// A read failed. Without a guard or an identity that exists, more would count as allowed.
    pub async fn read(&self, namespace: &str) -> Result<AccessSnapshot> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let labels = async {
            let found = namespaces.get_opt(namespace).await;
            found.map_err(|e| port_error(format!("reading Namespace {namespace}"), &e))
        };
        let (identities, guards, labels) = tokio::try_join!(
            all::<ASGIdentity>(&self.client, "ASGIdentities"),
            all::<ASGGuard>(&self.client, "ASGGuards"),
            labels
        )?;
        let labels = labels.map(|mut found| std::mem::take(found.labels_mut()));
        Ok(AccessSnapshot { namespace: namespace.to_owned(), identities, guards, labels })
    }

    /// A snapshot, and reads of what else it refers to.
    #[must_use]
    pub fn with(&self, snapshot: AccessSnapshot) -> impl AccessSource + use<> {
        Read { snapshot, references: Arc::clone(&self.references) }
    }
}

/// All objects of a kind; none if the kind is not installed.
async fn all<K>(client: &Client, plural: &str) -> Result<Vec<Arc<K>>>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>,
    K: Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    match api.list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(port_error(format!("listing {plural}"), &error)),
        Ok(list) => Ok(list.items.into_iter().map(Arc::new).collect()),
    }
}

struct Read {
    snapshot: AccessSnapshot,
    references: Arc<References>,
}

#[async_trait]
impl AccessSource for Read {
    fn who(&self) -> &'static str {
        "the Runtime Extension"
    }

    fn identities(&self) -> Vec<Arc<ASGIdentity>> {
        self.snapshot.identities.clone()
    }

    fn guards(&self) -> Vec<Arc<ASGGuard>> {
        self.snapshot.guards.clone()
    }

    fn namespace_labels(&self, namespace: &str) -> Option<BTreeMap<String, String>> {
        self.snapshot.labels.clone().filter(|_| namespace == self.snapshot.namespace)
    }

    fn aws_provider_namespace(&self) -> &str {
        self.references.aws_provider_namespace()
    }

    async fn referenced_spec(&self, api_group: &str, kind: &str, key: &ObjectKey) -> Result<Option<Value>> {
        self.references.referenced_spec(api_group, kind, key).await
    }

    async fn cluster_scoped_spec(&self, api_group: &str, kind: &str, name: &str) -> Result<Option<Value>> {
        self.references.cluster_scoped_spec(api_group, kind, name).await
    }

    async fn access_key(&self, secret: &SecretPlace) -> Result<Option<AccessKey>> {
        self.references.access_key(secret).await
    }

    async fn may_use(&self, secret: &SecretPlace) -> Result<bool> {
        self.references.may_use(secret).await
    }
}
