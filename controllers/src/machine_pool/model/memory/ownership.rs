//! Since when the group of the pool's name is absent or without an owner, and when it was adopted.

use capasg_api::names::tags;
use chrono::{DateTime, Utc};

use crate::machine_pool::model::GroupView;

/// What is known of the group's owner over time.
#[derive(Debug, Clone, Default)]
pub struct Ownership {
    /// Since when the group is known to be absent.
    absent_since: Option<DateTime<Utc>>,
    /// Since when the group is known without an owner.
    unowned_since: Option<DateTime<Utc>>,
    /// When this process gave the group the pool's owner id.
    adopted_at: Option<DateTime<Utc>>,
    /// The UID of the pool that this process reported as provisioned.
    provisioned: Option<String>,
}

impl Ownership {
    /// Since when the group is known to be absent.
    #[must_use]
    pub fn absent_since(&self) -> Option<DateTime<Utc>> {
        self.absent_since
    }

    /// Since when the group is known without an owner.
    #[must_use]
    pub fn unowned_since(&self) -> Option<DateTime<Utc>> {
        self.unowned_since
    }

    /// When this process gave the group the pool's owner id.
    #[must_use]
    pub fn adopted_at(&self) -> Option<DateTime<Utc>> {
        self.adopted_at
    }

    /// Whether this process reported the pool with this UID as provisioned: a cache that stalls does not show it.
    #[must_use]
    pub fn is_reported_provisioned(&self, uid: Option<&String>) -> bool {
        uid.is_some() && self.provisioned.as_ref() == uid
    }

    /// Records the group as it is observed now.
    pub(super) fn observe(&mut self, group: &GroupView) {
        match group {
            GroupView::Absent { as_of, .. } => {
                begin(&mut self.absent_since, *as_of);
            }
            GroupView::Present { .. } => self.absent_since = None,
            GroupView::Unknown => {}
        }
        match group {
            GroupView::Present { group, as_of, .. }
                if tags::IDENTITY.iter().all(|key| !group.tags.contains_key(*key)) =>
            {
                begin(&mut self.unowned_since, *as_of);
            }
            _ => self.unowned_since = None,
        }
    }

    /// Records that the group has the pool's owner ID now.
    pub(super) fn adopt(&mut self, now: DateTime<Utc>) {
        self.adopted_at = Some(now);
    }

    /// Records that the pool with this UID is reported as provisioned.
    pub(super) fn report_provisioned(&mut self, uid: Option<&String>) {
        self.provisioned = uid.cloned();
    }
}

/// Keeps the moment since which something holds. One that is later than now was noted before the clock was set back.
fn begin(since: &mut Option<DateTime<Utc>>, now: DateTime<Utc>) {
    *since = Some(since.map_or(now, |since| since.min(now)));
}

#[cfg(test)]
impl Ownership {
    /// Since when the group has no owner, for a test to set.
    pub fn unowned_since_mut(&mut self) -> &mut Option<DateTime<Utc>> {
        &mut self.unowned_since
    }

    /// When the group was adopted, for a test to set.
    pub fn adopted_at_mut(&mut self) -> &mut Option<DateTime<Utc>> {
        &mut self.adopted_at
    }
}
