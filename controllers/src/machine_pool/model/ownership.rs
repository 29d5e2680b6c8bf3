//! Who owns a group, by the tag with the owner ID.

use capasg_api::names::tags::OWNER_ID;
use capasg_cloud::Group;

use crate::machine_pool::model::{Blocker, Desired, Observed, ObservedTemplate};
use crate::names::account_of;

/// Why the pool does not own the group of its name: the group has another owner ID or none, or is in another account.
#[must_use]
pub fn not_owned(desired: &Desired, group: &Group) -> Option<Blocker> {
    let owner = group.tags.get(OWNER_ID).map(|tag| &tag.value);
    if owner != Some(&desired.owner_id) {
        return Some(Blocker::GroupNotOwned { found: owner.cloned() });
    }
    let recorded = desired.provider_id.as_deref().and_then(account_of)?;
    let found = group.account()?;
    (recorded != found)
        .then(|| Blocker::WrongAccount { credentials: found.to_owned(), group: recorded.to_owned() })
}

/// Whether the pool owns the group.
#[must_use]
pub fn is_owned(desired: &Desired, group: &Group) -> bool {
    not_owned(desired, group).is_none()
}

/// The launch template of the pool's name, if the pool does not own it. It is not changed, and the group keeps the
/// version that it launches.
#[must_use]
pub fn template_not_owned<'a>(desired: &Desired, observed: &'a Observed) -> Option<&'a ObservedTemplate> {
    observed.template.present().filter(|template| template.owner_id.as_ref() != Some(&desired.owner_id))
}
