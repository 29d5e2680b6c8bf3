//! The table of EC2 instances: whose facts are requested, what is known, and what an answer changes. No IO and no clock of
//! its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use crate::{
    Facts, FactsView, Group, Instance, InstanceFacts, InstanceState, LifecycleState,
    inventory::cadence::Cadence,
};

/// Facts that are not complete yet (no address, still pending, not known to EC2 yet) are read again after this, then twice as
/// late each time.
const FIRST_RETRY: Duration = Duration::from_secs(5);
const LONGEST_RETRY: Duration = Duration::from_mins(1);
/// An instance that starts has no complete facts: it is read when its group has it in service, or after this.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// After this, an instance that EC2 did not know is read again if it is requested.
const ABSENT_AGAIN: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(super) struct FactsTable {
    entries: BTreeMap<Box<str>, Entry>,
}

#[derive(Debug)]
struct Entry {
    group: Arc<str>,
    view: FactsView,
    /// When the answer behind the view arrived.
    read_at: Option<Instant>,
    due: Option<Instant>,
    /// How many reads of it are in flight: it may be requested again meanwhile.
    in_flight: u32,
    tries: u32,
    listing: Listing,
    /// Listed by its group as `Pending`.
    is_pending: bool,
    /// A caller waits for an answer, also one that says the same again.
    awaited: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    /// Listed by its group, live or in standby.
    Stays,
    /// Listed by its group as terminating.
    Terminates,
    /// In no group's view: kept until then.
    Unlisted(Instant),
}

impl Listing {
    fn of(instance: &Instance) -> Self {
        if instance.lifecycle.is_terminating() { Self::Terminates } else { Self::Stays }
    }
}

impl FactsTable {
    pub(super) fn view(&self, id: &str) -> FactsView {
        self.entries.get(id).map_or(FactsView::Unknown, |entry| entry.view.clone())
    }

    /// The group that lists an instance.
    pub(super) fn group_of(&self, id: &str) -> Option<Arc<str>> {
        let entry = self.entries.get(id)?;
        (!matches!(entry.listing, Listing::Unlisted(_))).then(|| entry.group.clone())
    }

    /// A group's instances changed: new ones are requested, the facts of those that left are dropped.
    pub(super) fn set_instances(
        &mut self,
        group: &str,
        before: Option<&Group>,
        after: Option<&Group>,
        now: Instant,
        cadence: &Cadence,
    ) {
        let shared: Arc<str> = group.into();
        let ids = |group: Option<&Group>| -> BTreeSet<String> {
            group.into_iter().flat_map(|group| &group.instances).map(|instance| instance.id.clone()).collect()
        };
        for left in ids(before).difference(&ids(after)) {
            // It may have been attached to another group meanwhile.
            if self.entries.get(left.as_str()).is_some_and(|entry| *entry.group == *group) {
                self.entries.remove(left.as_str());
            }
        }
        for instance in after.into_iter().flat_map(|group| &group.instances) {
            let listing = Listing::of(instance);
            let is_pending = instance.lifecycle == LifecycleState::Pending;
            let soon = now + cadence.coalesce;
            let at = if is_pending { now + STARTS_WITHIN } else { soon };
            self.entries
                .entry(instance.id.as_str().into())
                .and_modify(|entry| {
                    if std::mem::take(&mut entry.is_pending) && !is_pending {
                        entry.due = entry.due.map(|due| due.min(soon));
                    }
                    entry.is_pending = is_pending;
                    let was_unlisted = matches!(entry.listing, Listing::Unlisted(_));
                    entry.listing = listing;
                    // EC2 may not have known it yet when an event named it.
                    if was_unlisted && listing == Listing::Stays && !entry.is_complete() {
                        entry.due.get_or_insert(at);
                    }
                    entry.group = shared.clone();
                })
                .or_insert_with(|| Entry { is_pending, ..Entry::requested(shared.clone(), listing, at) });
        }
    }

    /// Requests what is not known of these instances; with `again` also what is known.
    pub(super) fn request(
        &mut self,
        group: &str,
        ids: impl IntoIterator<Item = String>,
        again: bool,
        now: Instant,
        cadence: &Cadence,
    ) {
        let shared: Arc<str> = group.into();
        let (at, kept_until) = (now + cadence.coalesce, now + cadence.unlisted_facts);
        for id in ids {
            let entry = self
                .entries
                .entry(id.into_boxed_str())
                .or_insert_with(|| Entry::requested(shared.clone(), Listing::Unlisted(kept_until), at));
            if let Listing::Unlisted(until) = &mut entry.listing {
                *until = kept_until;
            }
            let is_old = entry.read_at.is_none_or(|at| now >= at + ABSENT_AGAIN);
            let stale = is_old && matches!(entry.view, FactsView::Absent { .. });
            entry.awaited |= again;
            if again || stale {
                entry.due = Some(entry.due.map_or(at, |due| due.min(at)));
            }
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.entries.values().filter_map(|entry| entry.due).min()
    }

    /// Whether a read of any instance is due or in flight.
    pub(super) fn awaits_reads(&self) -> bool {
        self.entries.values().any(|entry| entry.in_flight > 0 || entry.due.is_some())
    }

    pub(super) fn count_due(&self, now: Instant) -> usize {
        self.entries.values().filter(|entry| entry.due.is_some_and(|due| due <= now)).count()
    }

    /// Takes up to `most` instances that are due, for a request that starts now.
    pub(super) fn take_due(&mut self, now: Instant, most: usize) -> Vec<String> {
        let due = self.entries.iter_mut().filter(|(_, entry)| entry.due.is_some_and(|due| due <= now));
        due.take(most)
            .map(|(id, entry)| {
                entry.due = None;
                entry.in_flight += 1;
                id.to_string()
            })
            .collect()
    }

    /// A request failed: its instances are due again. Returns whether any of them is still wanted.
    pub(super) fn put_back(&mut self, ids: &[String], at: Instant) -> bool {
        let mut is_wanted = false;
        for id in ids {
            if let Some(entry) = self.entries.get_mut(id.as_str()) {
                is_wanted = true;
                entry.in_flight = entry.in_flight.saturating_sub(1);
                entry.due.get_or_insert(at);
            }
        }
        is_wanted
    }

    /// Takes in a complete answer to a request for `ids`; returns the groups for which something changed, or whose pool waits.
    pub(super) fn apply(
        &mut self,
        ids: &[String],
        as_of: DateTime<Utc>,
        listed: Vec<InstanceFacts>,
        now: Instant,
    ) -> BTreeSet<String> {
        let mut listed: BTreeMap<String, InstanceFacts> =
            listed.into_iter().map(|facts| (facts.id.clone(), facts)).collect();
        let mut changed = BTreeSet::new();
        for id in ids {
            let Some(entry) = self.entries.get_mut(id.as_str()) else { continue };
            let is_new = entry.take_in(listed.remove(id), as_of);
            entry.read_at = Some(now);
            entry.in_flight = entry.in_flight.saturating_sub(1);
            if std::mem::take(&mut entry.awaited) || is_new {
                changed.insert(entry.group.to_string());
            }
            if entry.listing == Listing::Stays && !entry.is_complete() {
                let retry = FIRST_RETRY.saturating_mul(1 << entry.tries.min(8)).min(LONGEST_RETRY);
                entry.tries += 1;
                entry.due.get_or_insert(now + retry);
            }
        }
        changed
    }

    pub(super) fn prune(&mut self, now: Instant) {
        self.entries.retain(|_, entry| match entry.listing {
            Listing::Unlisted(until) => now < until,
            Listing::Stays | Listing::Terminates => true,
        });
    }

    /// Drops everything about a group's instances.
    pub(super) fn forget(&mut self, group: &str) {
        self.entries.retain(|_, entry| *entry.group != *group);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl Entry {
    fn requested(group: Arc<str>, listing: Listing, at: Instant) -> Self {
        Self {
            group,
            view: FactsView::Unknown,
            read_at: None,
            due: Some(at),
            in_flight: 0,
            tries: 0,
            listing,
            is_pending: false,
            awaited: false,
        }
    }

    /// Returns whether something changed.
    fn take_in(&mut self, found: Option<InstanceFacts>, as_of: DateTime<Utc>) -> bool {
        let Some(mut facts) = found else {
            let changed = !matches!(self.view, FactsView::Absent { .. });
            self.view = FactsView::Absent { as_of };
            return changed;
        };
        facts.tags.clear();
        let changed = self.view.facts() != Some(&facts);
        self.view = FactsView::Present(Arc::new(Facts { facts, as_of }));
        changed
    }

    /// Whether another read would show nothing new as long as the group lists the instance as live.
    fn is_complete(&self) -> bool {
        self.view.facts().is_some_and(|facts| match facts.state {
            InstanceState::Pending => false,
            // In a subnet for IPv6 only, an instance has no private IPv4 address.
            InstanceState::Running => facts.private_ip.is_some() || !facts.ipv6.is_empty(),
            InstanceState::Terminated | InstanceState::Stopped => true,
        })
    }
}
