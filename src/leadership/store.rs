//! Where the Lease is kept: the API server, behind the three calls that an election needs.

use async_trait::async_trait;
use capasg_api::errors;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};
use thiserror::Error;

/// Name of the Lease of `capasg manager`. The Role in `config/rbac` allows exactly this one.
pub const MANAGER_LEASE: &str = "controller-leader-election-capasg";
/// Name of the Lease of `capasg addons`. The Role in `config/addons` allows exactly this one.
pub const ADDONS_LEASE: &str = "controller-leader-election-capasg-addons";

/// A place for one Lease with optimistic locking.
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// The Lease as stored, if there is one.
    async fn get(&self) -> Result<Option<Lease>, StoreError>;

    /// Creates the Lease under the name of the store; a conflict if there is one already.
    async fn create(&self, lease: &Lease) -> Result<Lease, StoreError>;

    /// Replaces the Lease; a conflict unless it carries the stored resource version.
    async fn replace(&self, lease: &Lease) -> Result<Lease, StoreError>;
}

/// Why a call to the store failed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another actor wrote first.
    #[error("the Lease was changed by another actor")]
    Conflict,
    /// Anything else.
    #[error("failed to read or write the Lease")]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}

/// The Lease in a namespace of the management cluster.
pub struct KubeLeases {
    api: Api<Lease>,
    name: &'static str,
}

impl KubeLeases {
    /// Works on the Lease `name` in `namespace`.
    #[must_use]
    pub fn new(client: Client, namespace: &str, name: &'static str) -> Self {
        Self { api: Api::namespaced(client, namespace), name }
    }
}

#[async_trait]
impl LeaseStore for KubeLeases {
    async fn get(&self) -> Result<Option<Lease>, StoreError> {
        self.api.get_opt(self.name).await.map_err(|error| store_error(&error))
    }

    async fn create(&self, lease: &Lease) -> Result<Lease, StoreError> {
        let mut lease = lease.clone();
        lease.metadata.name = Some(self.name.to_owned());
        self.api.create(&PostParams::default(), &lease).await.map_err(|error| store_error(&error))
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, StoreError> {
        self.api.replace(self.name, &PostParams::default(), lease).await.map_err(|error| store_error(&error))
    }
}

fn store_error(error: &kube::Error) -> StoreError {
    match error {
        kube::Error::Api(status) if status.is_conflict() || status.is_already_exists() => {
            StoreError::Conflict
        }
        _ => StoreError::Other(errors::of_request(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Rules: N2
    #[test]
    fn the_roles_allow_exactly_these_leases() {
        let manager = include_str!("../../config/rbac/leader_election_role.yaml");
        let addons = include_str!("../../config/addons/addon-components.yaml");
        for (role, lease) in [(manager, MANAGER_LEASE), (addons, ADDONS_LEASE)] {
            assert!(role.contains(&format!("resourceNames: [{lease}]\n  verbs: [get, update]")), "{role}");
        }
    }
}
