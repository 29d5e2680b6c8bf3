//! `ASGIdentity`: AWS credentials that an operator offers to namespaces.

mod namespaces;
mod reference;
mod request;
mod spec;
mod status;

pub use namespaces::{NamespaceSelection, not_allowed};
pub use reference::{IdentityInUse, IdentityKind, IdentityOrigin, IdentityReference};
pub use request::{ClusterIdentity, IdentityRequest};
pub use spec::{
    ASGIdentity, ASGIdentitySpec, IdentitySourceType, LocalIdentityReference, RoleSource, SecretSource,
    SelectionPolicy,
};
pub use status::ASGIdentityStatus;
