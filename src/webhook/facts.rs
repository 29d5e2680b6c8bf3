//! What validation looks up: read from the API server when a request needs it, since requests are few.

use async_trait::async_trait;
use capasg_api::{
    ASGMachinePool,
    capi::{Machine, MachinePool},
};
use kube::{Api, Client, Resource, api::ListParams, core::NamespaceResourceScope};
use serde::de::DeserializeOwned;

/// Pools are read in pages of this many.
const PAGE: u32 = 500;

/// The reads that validation needs.
#[async_trait]
pub trait Facts: Send + Sync + 'static {
    /// All pools.
    async fn pools(&self) -> Result<Vec<ASGMachinePool>, kube::Error>;

    /// A Machine.
    async fn machine(&self, namespace: &str, name: &str) -> Result<Option<Machine>, kube::Error>;

    /// A `MachinePool`.
    async fn machine_pool(&self, namespace: &str, name: &str) -> Result<Option<MachinePool>, kube::Error>;
}

/// The API server.
pub struct KubeFacts(pub Client);

impl KubeFacts {
    async fn get<K>(&self, namespace: &str, name: &str) -> Result<Option<K>, kube::Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        Api::<K>::namespaced(self.0.clone(), namespace).get_opt(name).await
    }
}

#[async_trait]
impl Facts for KubeFacts {
    async fn pools(&self) -> Result<Vec<ASGMachinePool>, kube::Error> {
        let api: Api<ASGMachinePool> = Api::all(self.0.clone());
        let mut params = ListParams::default().limit(PAGE);
        let mut pools = Vec::new();
        loop {
            let page = api.list(&params).await?;
            pools.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(pools),
            }
        }
    }

    async fn machine(&self, namespace: &str, name: &str) -> Result<Option<Machine>, kube::Error> {
        self.get(namespace, name).await
    }

    async fn machine_pool(&self, namespace: &str, name: &str) -> Result<Option<MachinePool>, kube::Error> {
        self.get(namespace, name).await
    }
}
