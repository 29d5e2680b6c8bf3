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
/// Notices that are kept at the same time: a fleet of somebody else's must not fill memory. What is announced for the
/// instances of our groups is kept in any case.
const MOST: usize = 10_000;

/// What is announced for an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// What will happen.
    pub kind: NoticeKind,
    /// When AWS said so first.
    pub at: DateTime<Utc>,
}

/// What will happen to an instance. The greater counts, but of a retirement and its end the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// AWS does not retire the machine any more.
    AllClear,
    /// EC2 recommends to replace the Spot instance: it is likelier than others to be interrupted.
    Rebalance,
    /// AWS will stop or retire the machine, usually in some days.
    Retirement,
    /// EC2 takes the Spot instance back, two minutes after it said so.
    SpotInterruption,
}

impl Notice {
    /// What two announcements for one instance come to, in whichever order they came.
    fn with(self, other: Self) -> Self {
        use NoticeKind::{AllClear, Retirement};
        if self.kind == other.kind {
            // The first one counts: a doubled event must not make an instance look warned later.
            let at = if self.kind == AllClear { self.at.max(other.at) } else { self.at.min(other.at) };
            return Self { at, ..self };
        }
        let later = match (self.kind, other.kind) {
            (AllClear, Retirement) | (Retirement, AllClear) => other.at > self.at,
            _ => other.kind > self.kind,
        };
        if later { other } else { self }
    }
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
    /// Takes note, unless it is about the past, or about a stranger while there are too many. Tells whether it did.
    pub(crate) fn take(
        &mut self,
        instance: &str,
        notice: Notice,
        now: DateTime<Utc>,
        is_member: impl Fn(&str) -> bool,
    ) -> bool {
        if notice.kind == NoticeKind::SpotInterruption && now > notice.at + SPOT_IS_OVER {
            return false;
        }
        // What is to happen may be near, but what was said was not said tomorrow.
        let notice = Notice { at: notice.at.min(now), ..notice };
        if !self.entries.contains_key(instance) && self.entries.len() >= MOST {
            if !is_member(instance) {
                return false;
            }
            let stranger = self.entries.keys().find(|id| !is_member(id)).cloned();
            stranger.and_then(|id| self.entries.remove(&id));
        }
        let until = now + STRANGERS;
        let entry = self.entries.entry(instance.to_owned()).or_insert(Entry { notice, until });
        entry.until = until;
        entry.notice = entry.notice.with(notice);
        true
    }

    pub(crate) fn of(&self, instance: &str) -> Option<Notice> {
        self.entries.get(instance).map(|entry| entry.notice)
    }

    /// The instances that something is announced for.
    pub(crate) fn instances(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
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
