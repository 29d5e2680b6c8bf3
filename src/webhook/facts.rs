//! What validation looks up: read from the API server when a request needs it, at a limited rate, since anybody may send
//! requests.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use async_trait::async_trait;
use capasg_api::{
    ASGMachinePool, ASGMachinePoolSpec,
    capi::{Machine, MachinePool},
    names::{is_namespace_name, is_object_name},
};
use kube::{
    Api, Client, Resource,
    api::ListParams,
    core::{NamespaceResourceScope, ObjectMeta},
};
use serde::de::DeserializeOwned;
use tokio::{sync::Mutex, time::Instant};

use crate::rate::Rate;

/// Pools are read in pages of this many.
const PAGE: u32 = 100;
/// Lists of all pools: at once, and each second.
const LISTS: (u16, u16) = (10, 1);
/// Reads of one object: at once, and each second.
const READS: (u16, u16) = (50, 10);
/// How old a list may be where a newer one would exceed the rate.
const OLDEST: Duration = Duration::from_mins(1);

/// The reads that validation needs.
#[async_trait]
pub trait Facts: Send + Sync + 'static {
    /// All pools, with the fields that tell which group they have.
    async fn pools(&self) -> Result<Arc<Vec<ASGMachinePool>>>;

    /// A Machine.
    async fn machine(&self, namespace: &str, name: &str) -> Result<Option<Machine>>;

    /// A `MachinePool`.
    async fn machine_pool(&self, namespace: &str, name: &str) -> Result<Option<MachinePool>>;
}

/// The API server.
pub struct KubeFacts {
    client: Client,
    lists: Rate,
    reads: Rate,
    listed: Mutex<Option<Listed>>,
}

/// All pools, and when they began to be read.
struct Listed {
    at: Instant,
    pools: Arc<Vec<ASGMachinePool>>,
}

impl KubeFacts {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let rate = |(burst, per_second)| Rate::new(burst, per_second);
        Self { client, lists: rate(LISTS), reads: rate(READS), listed: Mutex::default() }
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

    async fn list(&self) -> Result<Vec<ASGMachinePool>, kube::Error> {
        let api: Api<ASGMachinePool> = Api::all(self.client.clone());
        let mut params = ListParams::default().limit(PAGE);
        let mut pools = Vec::new();
        loop {
            let page = api.list(&params).await?;
            pools.extend(page.items.into_iter().map(owner_of_group));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(pools),
            }
        }
    }
}

#[async_trait]
impl Facts for KubeFacts {
    async fn pools(&self) -> Result<Arc<Vec<ASGMachinePool>>> {
        let asked = Instant::now();
        // One list at a time; those who wait for it meanwhile take it, if it began after they asked.
        let mut listed = self.listed.lock().await;
        let is_new = listed.as_ref().is_some_and(|listed| listed.at >= asked);
        if !is_new && self.lists.take() {
            let at = Instant::now();
            let pools = self.list().await.context("cannot list the ASGMachinePools")?;
            *listed = Some(Listed { at, pools: Arc::new(pools) });
        }
        match &*listed {
            Some(listed) if listed.at.elapsed() < OLDEST => Ok(Arc::clone(&listed.pools)),
            _ => bail!("the ASGMachinePools are listed too often"),
        }
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use capasg_test_objects::{minimal_pool, with};
    use kube::client::Body;
    use serde_json::json;
    use tokio::time::advance;
    use tower::service_fn;

    use super::*;

    /// An API server with one pool that counts requests.
    fn counting() -> (KubeFacts, Arc<AtomicUsize>) {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let service = service_fn(move |_: axum::http::Request<Body>| {
            counted.fetch_add(1, Ordering::SeqCst);
            let pool = with(minimal_pool(), "metadata", json!({"name": "first", "namespace": "teams"}));
            let list =
                json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [pool]}).to_string();
            async move { Ok::<_, kube::Error>(axum::http::Response::new(Body::from(list.into_bytes()))) }
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
