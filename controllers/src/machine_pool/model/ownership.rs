//! Who owns a group or a launch template, by the tags that identify its pool.

use capasg_api::names::tags::{IDENTITY, OWNER_ID};
use capasg_cloud::Group;

use crate::machine_pool::model::{Blocker, Desired, Observed};
use crate::names::account_of;

/// The tags that identify the pool of a resource, as far as they are not those of this pool. Values are not kept, so that
/// no user reads the owner ID, the namespace or the name of another user's pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherTags {
    /// Keys that the resource does not have.
    pub missing: Vec<&'static str>,
    /// Keys with the value of another pool.
    pub different: Vec<&'static str>,
}

impl OtherTags {
    /// Whether nothing says that a pool owns the resource.
    #[must_use]
    pub fn is_untagged(&self) -> bool {
        self.missing.len() == IDENTITY.len()
    }

    /// Whether the resource has the owner ID of this pool and names no other pool: another actor removed tags.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.different.is_empty() && !self.missing.contains(&OWNER_ID)
    }
}

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
