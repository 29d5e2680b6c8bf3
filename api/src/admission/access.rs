//! What operators do not allow the namespace of a pool: guards and identities, as far as the pool alone tells.

use std::collections::BTreeMap;

use kube::ResourceExt as _;

use super::FieldError;
use crate::{
    ASGIdentity, ASGMachinePool,
    capi::owner_machine_pool,
    guard::Guards,
    identity::{IdentityKind, not_allowed},
    names::annotations,
};

/// Whether [`validate_access`] may reject a write: it changes the spec, the pool stays, and it is not restored. `clusterctl move`
/// and restores of backups create pools that own a group, or have their MachinePool already: these must not be lost, whatever
/// guards say by now.
#[must_use]
pub fn is_access_validated(pool: &ASGMachinePool, before: Option<&ASGMachinePool>) -> bool {
    let is_restored = || {
        pool.spec.provider_id.is_some()
            || pool.annotations().contains_key(annotations::OWNER_ID)
            || owner_machine_pool(pool).is_some()
    };
    pool.metadata.deletion_timestamp.is_none()
        && before.map_or_else(|| !is_restored(), |before| before.spec != pool.spec)
}

/// The name of the ASGIdentity that a write sets, or changes to.
#[must_use]
pub fn new_identity<'a>(pool: &'a ASGMachinePool, before: Option<&ASGMachinePool>) -> Option<&'a str> {
    let reference = pool.spec.identity_ref.as_ref()?;
    let is_kept = before.is_some_and(|before| before.spec.identity_ref.as_ref() == Some(reference));
    (!is_kept && reference.kind == IdentityKind::ASGIdentity.as_str()).then_some(reference.name.as_str())
}

/// Rejects what a write sets or changes and a guard of the namespace denies, and an identity that does not allow the
/// namespace. `identity` is that of [`new_identity`], if it exists: it may be applied later.
#[must_use]
pub fn validate_access(
    pool: &ASGMachinePool,
    before: Option<&ASGMachinePool>,
    guards: &Guards,
    identity: Option<&ASGIdentity>,
    labels: Option<&BTreeMap<String, String>>,
) -> Vec<FieldError> {
    let namespace = pool.namespace().unwrap_or_default();
    let mut errors = guards.check_change(&pool.spec, before.map(|before| &before.spec));
    let refused = identity.filter(|identity| !identity.allows(&namespace, labels));
    errors.extend(refused.map(|identity| FieldError {
        field: "spec.identityRef".into(),
        message: not_allowed(&format!("{} {}", IdentityKind::ASGIdentity, identity.name_any()), &namespace),
    }));
    errors
}
