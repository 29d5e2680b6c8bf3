//! What was announced for single instances: no read tells it, so it is kept until the instance is gone. No IO and no
//! clock of its own.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};

/// Counts what was announced, so that it can be told what a pool has seen.
pub(crate) type Ticket = u64;

/// How long a notice about an instance that no group lists is kept: a listing that shows a new one takes seconds.
const STRANGERS: Duration = Duration::from_mins(10);
/// A Spot interruption that was announced longer ago than this has happened, or the event lies.
const SPOT_IS_OVER: Duration = Duration::from_mins(10);
/// Notices that are kept at the same time: a fleet of somebody else's must not fill memory.
const MOST: usize = 10_000;

/// What is announced for an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// What will happen.
    pub kind: NoticeKind,
    /// When AWS said so first.
    pub at: DateTime<Utc>,
}

/// What will happen to an instance. The greater counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// EC2 recommends to replace the Spot instance: it is likelier than others to be interrupted.
    Rebalance,
    /// AWS will stop or retire the machine, usually in some days.
    Retirement,
    /// EC2 takes the Spot instance back, two minutes after it said so.
    SpotInterruption,
}

/// The notices by instance.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    entries: BTreeMap<String, Entry>,
    last: Ticket,
    /// The last ticket that was out when a reconcile of the group's pools began that has ended.
    seen: BTreeMap<String, Ticket>,
}

#[derive(Debug)]
struct Entry {
    notice: Notice,
    /// While no group lists the instance.
    until: DateTime<Utc>,
}

impl Notices {
    /// Takes note, unless it is about the past.
    pub(crate) fn take(&mut self, instance: &str, notice: Notice, now: DateTime<Utc>) -> bool {
        if notice.kind == NoticeKind::SpotInterruption && now > notice.at + SPOT_IS_OVER {
            return false;
        }
        if !self.entries.contains_key(instance) && self.entries.len() >= MOST {
            return false;
        }
        let until = now + STRANGERS;
        let entry = self.entries.entry(instance.to_owned()).or_insert(Entry { notice, until });
        entry.until = until;
        if entry.notice.kind < notice.kind {
            entry.notice = notice;
        } else if entry.notice.kind == notice.kind {
            // The first one counts: a doubled event must not make an instance look warned later.
            entry.notice.at = entry.notice.at.min(notice.at);
        }
        true
    }

    pub(crate) fn of(&self, instance: &str) -> Option<Notice> {
        self.entries.get(instance).map(|entry| entry.notice)
    }

    /// Drops what is kept of instances that are in no group's list and were not soon enough.
    pub(crate) fn prune(&mut self, now: DateTime<Utc>, is_member: impl Fn(&str) -> bool) {
        self.entries.retain(|id, entry| now < entry.until || is_member(id));
    }

    /// Something was announced; what is reconciled from now on sees it.
    pub(crate) fn announce(&mut self) -> Ticket {
        self.last += 1;
        self.last
    }

    /// What is announced so far.
    pub(crate) fn mark(&self) -> Ticket {
        self.last
    }

    /// A reconcile of the group's pool ended that began when `mark` was announced.
    pub(crate) fn saw(&mut self, group: &str, mark: Ticket) {
        let seen = self.seen.entry(group.to_owned()).or_default();
        *seen = (*seen).max(mark);
    }

    pub(crate) fn has_seen(&self, group: &str, ticket: Ticket) -> bool {
        self.seen.get(group).is_some_and(|seen| *seen >= ticket)
    }

    pub(crate) fn forget(&mut self, group: &str) {
        self.seen.remove(group);
    }
}
