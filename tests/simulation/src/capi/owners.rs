//! Owner references, as core sets them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// Adds an owner, or puts it in the place of the one with its uid.
pub(super) fn set_owner(owners: &mut Vec<OwnerReference>, owner: OwnerReference) {
    match owners.iter_mut().find(|found| found.uid == owner.uid) {
        Some(found) => *found = owner,
        None => owners.push(owner),
    }
}
