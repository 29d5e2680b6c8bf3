//! What a pool, its Cluster and its status say about its identity, for the one resolver that decides which it is.

use kube::ResourceExt as _;

use super::{IdentityInUse, IdentityOrigin, IdentityReference};
use crate::{
    ASGMachinePool,
    capi::{Cluster, ContractReference},
};

/// What determines the identity of a pool, apart from the default of its namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityRequest {
    /// The namespace of the pool.
    pub namespace: String,
    /// `spec.identityRef` of the pool. Defaults to none.
    pub own: Option<IdentityReference>,
    /// What its Cluster says. Defaults to [`ClusterIdentity::Absent`].
    pub cluster: ClusterIdentity,
    /// The identity of its Cluster that its status has. Defaults to none.
    pub recorded: Option<IdentityReference>,
}

/// What a Cluster says about the identity of its pools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClusterIdentity {
    /// There is no Cluster: what the status of the pool has counts.
    #[default]
    Absent,
    /// What `spec.identityRef` of this object in the namespace of the Cluster names.
    Of(ContractReference),
    /// This identity, or none.
    Named(Option<IdentityReference>),
}

impl IdentityRequest {
    /// What a pool and its Cluster say.
    #[must_use]
    pub fn of(pool: &ASGMachinePool, cluster: ClusterIdentity) -> Self {
        let recorded = match pool.status.as_ref().and_then(|status| status.identity.clone()) {
            Some(IdentityInUse { kind: Some(kind), name: Some(name), origin: IdentityOrigin::Cluster }) => {
                Some(IdentityReference { kind: kind.as_str().to_owned(), name })
            }
            _ => None,
        };
        let namespace = pool.namespace().unwrap_or_default();
        Self { namespace, own: pool.spec.identity_ref.clone(), cluster, recorded }
    }
}

impl From<Option<&Cluster>> for ClusterIdentity {
    fn from(cluster: Option<&Cluster>) -> Self {
        match cluster.map(Cluster::aws_identity_holder) {
            None => Self::Absent,
            Some(None) => Self::Named(None),
            Some(Some(holder)) => Self::Of(holder.clone()),
        }
    }
}
