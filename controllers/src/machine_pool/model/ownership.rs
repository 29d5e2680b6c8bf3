//! Who owns a group or a launch template, by the tags that identify its pool.

use capasg_api::names::tags::IDENTITY;
use capasg_cloud::Group;

use crate::machine_pool::model::other_tags::OtherTags;
use crate::machine_pool::model::{Blocker, Desired, Observed};
use crate::names::account_of;

/// Why the pool does not own the group of its name: the group has other tags or none, or is in another account.
#[must_use]
pub fn not_owned(desired: &Desired, group: &Group) -> Option<Blocker> {
    let found = |key: &str| group.tags.get(key).map(|tag| tag.value.as_str());
    if let Some(tags) = other_tags(desired, found) {
        return Some(Blocker::GroupNotOwned { tags });
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

/// How the launch template of the pool's name is tagged, if the pool does not own it. It is not changed, and the group
/// keeps the version that it launches.
#[must_use]
pub fn template_not_owned(desired: &Desired, observed: &Observed) -> Option<OtherTags> {
    let template = observed.template.present()?;
    other_tags(desired, |key| template.tags.get(key).map(String::as_str))
}

/// How the tags that identify a pool differ from those of this pool; `None` if all of them are this pool's.
fn other_tags<'a>(desired: &Desired, found: impl Fn(&str) -> Option<&'a str>) -> Option<OtherTags> {
    let mut other = OtherTags::default();
    for key in IDENTITY {
        match (found(key), desired.tags.get(key)) {
            (None, _) => other.missing.push(key),
            (Some(found), Some(wanted)) if found == wanted.value => {}
            (Some(_), _) => other.different.push(key),
        }
    }
    (other != OtherTags::default()).then_some(other)
}
