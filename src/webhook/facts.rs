//! What validation looks up: read from the API server when a request needs it, at a limited rate, since anybody may send
//! requests.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use capasg_api::{
    ASGGuard, ASGIdentity, ASGMachinePool, ASGMachinePoolSpec,
    capi::{Machine, MachinePool},
    names::{is_namespace_name, is_object_name},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Resource,
    api::ListParams,
    core::{NamespaceResourceScope, ObjectMeta},
};
use serde::de::DeserializeOwned;

use super::bounded::{Listed, READS, Recent};
use crate::rate::Rate;

/// Objects are listed in pages of this many.
const PAGE: u32 = 100;

/// The reads that validation needs.
#[async_trait]
pub trait Facts: Send + Sync + 'static {
    /// All pools, with the fields that tell which group they have.
    async fn pools(&self) -> Result<Arc<Vec<ASGMachinePool>>>;

    /// All guards.
    async fn guards(&self) -> Result<Arc<Vec<Arc<ASGGuard>>>>;

    /// An identity.
    async fn identity(&self, name: &str) -> Result<Option<Arc<ASGIdentity>>>;

    /// The labels of a namespace.
    async fn namespace_labels(&self, name: &str) -> Result<Option<Arc<BTreeMap<String, String>>>>;

    /// A Machine.
    async fn machine(&self, namespace: &str, name: &str) -> Result<Option<Machine>>;

    /// A `MachinePool`.
    async fn machine_pool(&self, namespace: &str, name: &str) -> Result<Option<MachinePool>>;
}

/// The API server.
pub struct KubeFacts {
    client: Client,
    reads: Rate,
    pools: Listed<ASGMachinePool>,
    guards: Listed<Arc<ASGGuard>>,
    identities: Recent<ASGIdentity>,
    namespaces: Recent<BTreeMap<String, String>>,
}

impl KubeFacts {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let reads = Rate::new(READS.0, READS.1);
        let (pools, guards) = (Listed::default(), Listed::default());
        Self { client, reads, pools, guards, identities: Recent::default(), namespaces: Recent::default() }
    }

    async fn get<K>(&self, namespace: &str, name: &str) -> Result<Option<K>>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        // Both become parts of a URL.
        ensure!(
            is_namespace_name(namespace) && is_object_name(name),
            "the object has names that Kubernetes does not accept"
        );
        ensure!(self.reads.take(), "too many objects are read");
        Ok(Api::<K>::namespaced(self.client.clone(), namespace).get_opt(name).await?)
    }

    /// All objects of a kind, each reduced to what is needed of it.
    async fn list<K, T>(&self, reduce: fn(K) -> T) -> Result<Vec<T>>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let mut params = ListParams::default().limit(PAGE);
        let mut all = Vec::new();
        loop {
            let page =
                api.list(&params).await.with_context(|| format!("cannot list the {}s", K::kind(&())))?;
            all.extend(page.items.into_iter().map(reduce));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(all),
            }
        }
    }
}

#[async_trait]
impl Facts for KubeFacts {
    async fn pools(&self) -> Result<Arc<Vec<ASGMachinePool>>> {
        self.pools.get(self.list(owner_of_group)).await
    }

    async fn guards(&self) -> Result<Arc<Vec<Arc<ASGGuard>>>> {
        self.guards.get(self.list(Arc::new)).await
    }

    async fn identity(&self, name: &str) -> Result<Option<Arc<ASGIdentity>>> {
        ensure!(is_object_name(name), "the identity has a name that Kubernetes does not accept");
        let api: Api<ASGIdentity> = Api::all(self.client.clone());
        self.identities.get(name, async { Ok(api.get_opt(name).await?) }).await
    }

    async fn namespace_labels(&self, name: &str) -> Result<Option<Arc<BTreeMap<String, String>>>> {
        ensure!(is_object_name(name), "the namespace has a name that Kubernetes does not accept");
        let api: Api<Namespace> = Api::all(self.client.clone());
        let read = async {
            let found = api.get_metadata_opt(name).await?;
            Ok(found.map(|namespace| namespace.metadata.labels.unwrap_or_default()))
        };
        self.namespaces.get(name, read).await
    }

    async fn machine(&self, namespace: &str, name: &str) -> Result<Option<Machine>> {
        self.get(namespace, name).await
    }

    async fn machine_pool(&self, namespace: &str, name: &str) -> Result<Option<MachinePool>> {
        self.get(namespace, name).await
    }
}

/// A pool without what does not tell which group it has.
fn owner_of_group(pool: ASGMachinePool) -> ASGMachinePool {
    let metadata = ObjectMeta {
        name: pool.metadata.name,
        namespace: pool.metadata.namespace,
        deletion_timestamp: pool.metadata.deletion_timestamp,
        ..ObjectMeta::default()
    };
    let ASGMachinePoolSpec { region, group, provider_id, .. } = pool.spec;
    let spec = ASGMachinePoolSpec { region, group, provider_id, ..ASGMachinePoolSpec::default() };
    ASGMachinePool { metadata, spec, status: None }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use capasg_test_objects::{minimal_pool, with};
    use kube::client::Body;
    use serde_json::json;
    use tokio::time::advance;
    use tower::service_fn;

    use super::*;
    use crate::webhook::bounded::LISTS;

    fn guard() -> ASGGuard {
        ASGGuard::new("first", capasg_api::guard::ASGGuardSpec::default())
    }

    /// An API server with one pool, one guard and one namespace that counts requests.
    fn counting() -> (KubeFacts, Arc<AtomicUsize>) {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let service = service_fn(move |request: axum::http::Request<Body>| {
            counted.fetch_add(1, Ordering::SeqCst);
            let path = request.uri().path().to_owned();
            let pool = with(minimal_pool(), "metadata", json!({"name": "first", "namespace": "teams"}));
            let items = if path.ends_with("/asgguards") { json!([guard()]) } else { json!([pool]) };
            let answer = match path.as_str() {
                "/api/v1/namespaces/teams" => json!({
                    "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                    "metadata": {"name": "teams", "labels": {"team": "a"}},
                }),
                _ => json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}),
            };
            let bytes = answer.to_string().into_bytes();
            async move { Ok::<_, kube::Error>(axum::http::Response::new(Body::from(bytes))) }
        });
        (KubeFacts::new(Client::new(service, "default")), requests)
    }

    // Rules: N3
    #[tokio::test(start_paused = true)]
    async fn many_requests_do_not_list_all_pools_each() {
        let (facts, requests) = counting();
        for _ in 0..1000 {
            assert_eq!(facts.pools().await.unwrap().len(), 1);
            advance(Duration::from_micros(1)).await;
        }
        let (burst, per_second) = LISTS;
        assert_eq!(requests.load(Ordering::SeqCst), usize::from(burst));
        advance(Duration::from_secs(1)).await;
        for _ in 0..1000 {
            facts.pools().await.unwrap();
            advance(Duration::from_micros(1)).await;
        }
        assert_eq!(
            requests.load(Ordering::SeqCst),
            usize::from(burst + per_second),
            "a user's next one is new"
        );
    }

    // Rules: N3, T3
    #[tokio::test(start_paused = true)]
    async fn many_requests_read_neither_all_guards_nor_their_namespace_each() {
        let (facts, requests) = counting();
        for _ in 0..1000 {
            assert_eq!(*facts.guards().await.unwrap(), [Arc::new(guard())]);
            advance(Duration::from_micros(1)).await;
        }
        assert_eq!(requests.swap(0, Ordering::SeqCst), usize::from(LISTS.0));
        for _ in 0..1000 {
            let labels = facts.namespace_labels("teams").await.unwrap().unwrap();
            assert_eq!(labels.get("team").map(String::as_str), Some("a"));
        }
        assert_eq!(requests.load(Ordering::SeqCst), usize::from(READS.0));
        assert!(facts.namespace_labels("others").await.is_err(), "it is not known");
        assert!(facts.namespace_labels("..").await.is_err() && facts.identity("a/b").await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn objects_are_read_at_a_limited_rate_and_by_valid_names_only() {
        let (facts, requests) = counting();
        for (namespace, name) in [("a", ".."), ("a/../../secrets", "b"), ("a", "b?c"), ("", "b"), ("a", "B")]
        {
            assert!(facts.machine(namespace, name).await.is_err(), "{namespace} {name}");
        }
        assert_eq!(requests.load(Ordering::SeqCst), 0);
        for _ in 0..1000 {
            let _ = facts.machine_pool("teams", "workers").await;
        }
        assert_eq!(requests.load(Ordering::SeqCst), usize::from(READS.0));
    }
}
