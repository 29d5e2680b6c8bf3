//! How a pool names its identity, and which one it uses.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::string_enum;

string_enum! {
    /// The kinds of identities.
    pub enum IdentityKind {
        /// Ours.
        ASGIdentity = "ASGIdentity",
        /// Of Cluster API Provider AWS: the credentials of the controller.
        AWSClusterControllerIdentity = "AWSClusterControllerIdentity",
        /// Of Cluster API Provider AWS: a role that is assumed.
        AWSClusterRoleIdentity = "AWSClusterRoleIdentity",
        /// Of Cluster API Provider AWS: an access key in a Secret of its namespace.
        AWSClusterStaticIdentity = "AWSClusterStaticIdentity",
    }
}

/// An identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityReference {
    /// Kind of the identity: `ASGIdentity`, or, of Cluster API Provider AWS, `AWSClusterControllerIdentity`,
    /// `AWSClusterRoleIdentity` or `AWSClusterStaticIdentity`. Changes apply in place.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?$"))]
    #[x_kube(validation = Rule::new("self in ['ASGIdentity', 'AWSClusterControllerIdentity', 'AWSClusterRoleIdentity', 'AWSClusterStaticIdentity']")
        .message("spec.identityRef.kind: must be ASGIdentity, AWSClusterControllerIdentity, AWSClusterRoleIdentity or AWSClusterStaticIdentity"))]
    pub kind: String,

    /// Name of the identity. Changes apply in place.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"))]
    pub name: String,
}

string_enum! {
    /// What determines the identity of a pool.
    pub enum IdentityOrigin {
        /// The pool's spec.identityRef.
        Pool = "Pool",
        /// The infrastructure object of the Cluster.
        Cluster = "Cluster",
        /// The identity that is the default of the namespace.
        Namespace = "Namespace",
        /// Nothing: the credentials of the manager.
        Manager = "Manager",
    }
}

/// The identity that a pool uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityInUse {
    /// Kind of the identity. Absent if the pool uses the credentials of the manager without an identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<IdentityKind>,

    /// Name of the identity. Absent without a kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,

    /// What determines the identity: `Pool` (its spec.identityRef), `Cluster` (its infrastructure object), `Namespace` (its
    /// default identity) or `Manager` (none of these).
    pub origin: IdentityOrigin,
}
