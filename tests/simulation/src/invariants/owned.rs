//! Nothing is changed in AWS that is not of one of our pools.

use std::collections::BTreeMap;

use capasg_api::{names::tags, pool::AdoptionPolicy};
use capasg_cloud::Write;
use chrono::{DateTime, Utc};

use super::{
    seen::limits::UNSEEN_WITH_EVENTS,
    state::{Inner, Invariants},
};
use crate::Pool;

impl Invariants {
    /// The group, the launch template and the instances that a write names have the tags of a pool, or are in its group.
    ///
    /// Exempt: the creation of a group; the tags of one that the pool adopts and may adopt (docs/users/adoption.md); what others
    /// changed since the last poll.
    pub(super) fn what_is_changed_is_ours(&self, inner: &mut Inner, now: DateTime<Utc>, write: &Write) {
        let foreign = match write.group() {
            Some(_) if matches!(write, Write::CreateGroup(_)) => None,
            Some(group) => self.foreign_group(inner, now, group, write),
            None => self.foreign_template(inner, write),
        };
        if let Some(foreign) = foreign {
            inner.breaks(now, "what_is_changed_is_ours", format!("{} of {foreign}", write.api()));
        }
    }

    fn foreign_group(&self, inner: &Inner, now: DateTime<Utc>, name: &str, write: &Write) -> Option<String> {
        let pool = Self::pool_of_group(inner, name)?;
        let object = self.api.state().pools.get(&pool.key);
        let others = inner.exempt.last_write_of_others(name);
        if others.is_some_and(|then| now - then <= UNSEEN_WITH_EVENTS) {
            return None;
        }
        let dump = self.dump()?;
        let group = dump.groups.iter().find(|group| group.name == name)?;
        let adopts = object.is_some_and(|own| own.spec.adoption_policy == Some(AdoptionPolicy::Adopt))
            && matches!(write, Write::TagGroup { .. })
            && group.tags.get(tags::ADOPTABLE_BY).is_some_and(|by| may_adopt(&pool, by));
        if adopts {
            return None;
        }
        if !is_of(&pool, &group.tags) {
            return Some(format!("group {name}, which has the tags {:?}", group.tags));
        }
        let elsewhere = |id: &&&str| {
            let own = dump.instances.iter().find(|one| one.id == **id);
            own.and_then(|own| own.group.as_deref()).is_some_and(|group| group != name)
        };
        write.instances().iter().find(elsewhere).map(|id| format!("instance {id}, which is in another group"))
    }

    fn foreign_template(&self, inner: &Inner, write: &Write) -> Option<String> {
        let id = write.launch_template()?;
        let dump = self.dump()?;
        let template = dump.templates.iter().find(|template| template.id == id)?;
        let is_ours = inner.pools.iter().any(|pool| is_of(pool, &template.tags));
        (!is_ours).then(|| format!("launch template {id}, which has the tags {:?}", template.tags))
    }
}

/// Whether this value of `adoptable-by` names the pool, or all pools of its namespace.
fn may_adopt(pool: &Pool, by: &str) -> bool {
    let (namespace, name) = (&pool.key.namespace, &pool.key.name);
    by == format!("{namespace}/*") || by == format!("{namespace}/{name}")
}

/// Whether these are the tags of a pool that no user can choose.
fn is_of(pool: &Pool, tags: &BTreeMap<String, String>) -> bool {
    let is = |key: &str, value: &str| tags.get(key).is_some_and(|own| own == value);
    is(tags::NAMESPACE, &pool.key.namespace) && is(tags::POOL, &pool.key.name)
}
