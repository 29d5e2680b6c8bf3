//! The notices that AWS gave for single instances: no read shows them, so they are kept until the instance has left its
//! group. No IO and no clock of its own.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};

use crate::{Notice, NoticeKind};

/// How long a notice for an instance that no group lists is kept: a new instance is listed within seconds.
const UNLISTED: Duration = Duration::from_mins(10);
/// A Spot interruption that was announced longer ago than this has happened, or its event is false.
const INTERRUPTION_IS_OVER: TimeDelta = TimeDelta::minutes(10);
/// How many notices are kept: events about instances that are not ours must not fill memory. Notices for the instances of
/// registered groups are kept in any case.
const MAX_NOTICES: usize = 10_000;

/// The notices by instance.
#[derive(Debug, Default)]
pub(super) struct Notices {
    entries: BTreeMap<String, Entry>,
    /// Grows with each event that gives notices, so that it can be said which of them a pool has seen.
    revision: u64,
    /// By group: the revision at which the last successful reconcile of its pool began.
    acknowledged: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Entry {
    notice: Notice,
    /// Kept until then if no group lists the instance.
    until: DateTime<Utc>,
}

impl Notices {
    /// Adds a notice, unless it is about the past, or about an unlisted instance while there are too many. Returns whether
    /// it was added.
    pub(super) fn add(
        &mut self,
        instance: &str,
        notice: Notice,
        now: DateTime<Utc>,
        is_listed: impl Fn(&str) -> bool,
    ) -> bool {
        // A difference of two times is always in range; a sum with the time of an event is not.
        if notice.kind == NoticeKind::SpotInterruption && now - notice.at > INTERRUPTION_IS_OVER {
            return false;
        }
        // No notice was given in the future, whatever its time says.
        let notice = Notice { at: notice.at.min(now), ..notice };
        if !self.entries.contains_key(instance) && self.entries.len() >= MAX_NOTICES {
            if !is_listed(instance) {
                return false;
            }
            let unlisted = self.entries.keys().find(|id| !is_listed(id)).cloned();
            unlisted.and_then(|id| self.entries.remove(&id));
        }
        let until = now + UNLISTED;
        let entry = self.entries.entry(instance.to_owned()).or_insert(Entry { notice, until });
        entry.until = until;
        entry.notice = entry.notice.merge(notice);
        true
    }

    pub(super) fn of(&self, instance: &str) -> Option<Notice> {
        self.entries.get(instance).map(|entry| entry.notice)
    }

    /// The instances that have a notice.
    pub(super) fn instances(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Drops notices for instances that no group listed in time.
    pub(super) fn prune(&mut self, now: DateTime<Utc>, is_listed: impl Fn(&str) -> bool) {
        self.entries.retain(|id, entry| now < entry.until || is_listed(id));
    }

    /// Notices were added: a reconcile that begins from now on sees them.
    pub(super) fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// A reconcile of the group's pool succeeded that began at `revision`.
    pub(super) fn acknowledge(&mut self, group: &str, revision: u64) {
        let acknowledged = self.acknowledged.entry(group.to_owned()).or_default();
        *acknowledged = (*acknowledged).max(revision);
    }

    pub(super) fn has_acknowledged(&self, group: &str, revision: u64) -> bool {
        self.acknowledged.get(group).is_some_and(|acknowledged| *acknowledged >= revision)
    }

    pub(super) fn forget(&mut self, group: &str) {
        self.acknowledged.remove(group);
    }
}
