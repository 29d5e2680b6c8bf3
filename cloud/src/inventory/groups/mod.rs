//! The table of groups: what was read, what is due, and what an answer changes. No IO and no clock of its own.

mod entry;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
pub(super) use entry::{Applied, Content};
use entry::{Entry, Event, sorted};
use tokio::time::Instant;

use crate::{
    Group, View,
    inventory::{
        cadence::Cadence,
        fence::{Ending, Start, Ticket},
    },
};

/// How many more listings must miss a group that exists before its absence is believed: one if the listing held others,
/// two if it was empty, which is more likely an error.
const CONFIRMATIONS: u8 = 1;
const CONFIRMATIONS_IF_EMPTY: u8 = 2;
/// The fast round leaves out what was read by itself within this time.
const JUST_READ: Duration = Duration::from_secs(1);
/// A listing may lag behind the event that caused it: it is repeated after this.
const EVENT_LAG: Duration = Duration::from_secs(7);

#[derive(Debug, Default)]
pub(super) struct Table {
    entries: BTreeMap<String, Entry>,
    last: Ticket,
    idle_at: Option<Instant>,
    transition_at: Option<Instant>,
    /// The round of the groups that are polled as without events.
    externally_scaled_at: Option<Instant>,
    /// When the groups that were registered last are read for the first time.
    registered_at: Option<Instant>,
    /// Events show what changes.
    events_trusted: bool,
}

impl Table {
    fn ticket(&mut self) -> Ticket {
        self.last += 1;
        self.last
    }

    fn registered(&mut self, group: &str) -> Option<&mut Entry> {
        self.entries.get_mut(group).filter(|entry| entry.registered)
    }

    pub(super) fn is_registered(&self) -> bool {
        self.entries.values().any(|entry| entry.registered)
    }

    pub(super) fn register(&mut self, group: &str, now: Instant, cadence: &Cadence) {
        let at = self.first_read(now, cadence);
        let entry = self.entries.entry(group.to_owned()).or_default();
        if !entry.registered {
            entry.registered = true;
            entry.request_read(at);
            self.registered_at = Some(at);
            if self.idle_at.is_none() {
                self.idle_at = Some(now + self.idle_interval(cadence));
            }
        }
    }

    /// When a group that is registered now is read for the first time: with those that were registered just before.
    fn first_read(&self, now: Instant, cadence: &Cadence) -> Instant {
        let soon = now + cadence.coalesce;
        match self.registered_at {
            Some(at) if at > now => at,
            Some(at) => soon.max(at + cadence.first_reads),
            None => soon,
        }
    }

    fn idle_interval(&self, cadence: &Cadence) -> Duration {
        if self.events_trusted { cadence.idle_with_events } else { cadence.idle_with(self.names().count()) }
    }

    /// How often groups are read that another actor scales, whatever events show.
    fn externally_scaled_interval(&self, cadence: &Cadence) -> Duration {
        cadence.idle_with(self.entries.values().filter(|entry| entry.externally_scaled).count())
    }

    /// Events show what changes, or no longer do: the next round may be sooner then.
    pub(super) fn set_events_trusted(&mut self, trusted: bool, now: Instant, cadence: &Cadence) {
        self.events_trusted = trusted;
        if !trusted {
            let interval = self.idle_interval(cadence);
            self.idle_at = self.idle_at.map(|at| at.min(now + interval));
        }
    }

    /// An event named a group: it is read soon, and once more later. Returns whether the group is registered.
    pub(super) fn event_received(&mut self, group: &str, now: Instant, cadence: &Cadence) -> bool {
        let Some(entry) = self.registered(group) else { return false };
        entry.event = Some(Event { at: now, change_seen: false });
        entry.request_read(now + cadence.coalesce);
        entry.confirm_at = Some(now + EVENT_LAG);
        true
    }

    /// Whether a group is polled as without events, since another actor scales it, which gives no event.
    pub(super) fn set_externally_scaled(&mut self, group: &str, on: bool, now: Instant, cadence: &Cadence) {
        let Some(entry) = self.registered(group) else { return };
        entry.externally_scaled = on;
        if on {
            let round = self.externally_scaled_at.filter(|at| *at > now);
            self.externally_scaled_at =
                round.or_else(|| Some(now + self.externally_scaled_interval(cadence)));
        }
    }

    pub(super) fn forget(&mut self, group: &str, now: Instant) {
        if let Some(entry) = self.entries.get_mut(group) {
            let fence = std::mem::take(&mut entry.fence);
            *entry = Entry { fence, ..Entry::default() };
        }
        self.prune(now);
    }

    /// Drops what is kept for a fence that no longer stands.
    pub(super) fn prune(&mut self, now: Instant) {
        self.entries.retain(|_, entry| entry.registered || entry.fence.stands(now));
        if !self.entries.values().any(|entry| entry.registered) {
            self.idle_at = None;
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.entries.iter().filter(|(_, entry)| entry.registered).map(|(name, _)| name)
    }

    pub(super) fn view(&self, group: &str) -> View {
        self.entries.get(group).map_or(View::Unknown, Entry::view)
    }

    /// Whether the view was requested at that time or later. A group without a view has no pool that waits for one.
    pub(super) fn is_read_since(&self, group: &str, at: Instant) -> bool {
        let shown_by = self.entries.get(group).and_then(|entry| entry.shown_by);
        shown_by.is_none_or(|start| start.at >= at)
    }

    /// The view of an answer by itself, whether its absence is confirmed or not.
    pub(super) fn view_of_answer(&self, name: &str, found: Option<Group>, start: Start) -> View {
        let entry = self.entries.get(name);
        let as_of = start.as_of;
        let settled = entry.is_none_or(|entry| entry.fence.settles(start));
        match found {
            Some(group) => View::Present { group: Arc::new(sorted(group)), as_of, settled },
            None => View::Absent { as_of, settled },
        }
    }

    /// Requests a read at a time; returns whether the group is registered.
    pub(super) fn request_read(&mut self, group: &str, at: Instant) -> bool {
        let Some(entry) = self.registered(group) else { return false };
        entry.request_read(at);
        true
    }

    /// Requests a read at a time in addition to any sooner one.
    pub(super) fn request_later_read(&mut self, group: &str, at: Instant) {
        if let Some(entry) = self.registered(group) {
            entry.due_later = entry.due_later.max(Some(at));
        }
    }

    pub(super) fn set_transition(&mut self, group: &str, on: bool, now: Instant, cadence: &Cadence) {
        let Some(entry) = self.registered(group) else { return };
        entry.transition = on;
        if on {
            // A round that was due while no group took part is over.
            let round = self.transition_at.filter(|at| *at > now);
            self.transition_at = Some(round.unwrap_or(now + cadence.transition));
        }
    }

    pub(super) fn begin_write(&mut self, group: &str) {
        self.entries.entry(group.to_owned()).or_default().fence.begin();
    }

    pub(super) fn end_write(&mut self, group: &str, ending: Ending) {
        let ticket = self.ticket();
        if let Some(entry) = self.entries.get_mut(group) {
            entry.fence.end(ending, ticket);
        }
    }

    /// We created or deleted the group: its absence has to be confirmed, or is expected.
    pub(super) fn set_exists(&mut self, group: &str, exists: bool) {
        if let Some(entry) = self.entries.get_mut(group) {
            entry.exists = exists;
        }
    }

    /// When something is due next.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let transition = self.transition_at.filter(|_| self.entries.values().any(|entry| entry.transition));
        let externally_scaled = self
            .externally_scaled_at
            .filter(|_| self.events_trusted && self.entries.values().any(|entry| entry.externally_scaled));
        let requested = self.entries.values().flat_map(|entry| {
            let confirm_at = entry.confirm_at.filter(|_| !entry.transition);
            [entry.due, entry.due_later, confirm_at]
        });
        [self.idle_at, transition, externally_scaled, requested.flatten().min()].into_iter().flatten().min()
    }

    /// Begins the rounds that are due; returns how many groups are to be read now.
    pub(super) fn begin_rounds(&mut self, now: Instant, cadence: &Cadence) -> usize {
        let idle = self.idle_at.is_some_and(|at| at <= now);
        let transition = idle || self.transition_at.is_some_and(|at| at <= now);
        let externally_scaled = idle || self.externally_scaled_at.is_some_and(|at| at <= now);
        for entry in self.entries.values_mut().filter(|entry| entry.registered) {
            let later = entry.due_later.take_if(|at| *at <= now).is_some();
            let confirm = entry.confirm_at.take_if(|at| *at <= now).is_some() && !entry.transition;
            let read_within = |start: Start| now - start.at < JUST_READ;
            let just_read = entry.is_settled() && entry.shown_by.is_some_and(read_within);
            let in_round = idle
                || (transition && entry.transition && !just_read)
                || (externally_scaled && self.events_trusted && entry.externally_scaled);
            if in_round || later || confirm {
                entry.request_read(now);
            }
        }
        if idle {
            self.idle_at = Some(now + self.idle_interval(cadence));
        }
        if transition {
            let any = self.entries.values().any(|entry| entry.transition);
            self.transition_at = any.then(|| now + cadence.transition);
        }
        if externally_scaled {
            let any = self.entries.values().any(|entry| entry.externally_scaled);
            self.externally_scaled_at = any.then(|| now + self.externally_scaled_interval(cadence));
        }
        self.entries.values().filter(|entry| entry.due.is_some_and(|due| due <= now)).count()
    }

    /// Takes up to `most` groups that are due, for a request that starts now.
    pub(super) fn take_due(
        &mut self,
        now: Instant,
        as_of: DateTime<Utc>,
        most: usize,
    ) -> (Vec<String>, Start) {
        let due = self.entries.iter_mut().filter(|(_, entry)| entry.due.is_some_and(|due| due <= now));
        let names = due
            .take(most)
            .map(|(name, entry)| {
                entry.due = None;
                name.clone()
            })
            .collect();
        (names, self.start(now, as_of))
    }

    pub(super) fn start(&mut self, at: Instant, as_of: DateTime<Utc>) -> Start {
        Start { ticket: self.ticket(), at, as_of }
    }

    /// Takes in an answer to a request for `names`. Absence counts only if the listing is `complete`, and for a group that
    /// exists as far as we know only if it is confirmed.
    pub(super) fn apply(
        &mut self,
        names: &[String],
        start: Start,
        listed: Vec<Group>,
        complete: bool,
        now: Instant,
        cadence: &Cadence,
    ) -> Applied {
        let mut applied = Applied::default();
        let mut listed: BTreeMap<String, Group> =
            listed.into_iter().map(|group| (group.name.clone(), group)).collect();
        let confirmations = if listed.is_empty() { CONFIRMATIONS_IF_EMPTY } else { CONFIRMATIONS };
        for name in names {
            let Some(entry) = self.entries.get_mut(name) else { continue };
            let is_older = entry.shown_by.is_some_and(|shown| start.ticket <= shown.ticket);
            if !entry.registered || is_older {
                continue;
            }
            let found = listed.remove(name);
            if found.is_none() && !complete {
                continue;
            }
            let confirms = entry.confirms_from.is_none_or(|from| start.at >= from);
            if found.is_none() && entry.exists && !(entry.missed >= confirmations && confirms) {
                let mut from = entry.confirms_from.unwrap_or(now);
                if entry.missed == 0 || confirms {
                    let (first, later) = cadence.absence_recheck;
                    from = now + if entry.missed == 0 { first } else { later };
                    entry.confirms_from = Some(from);
                    entry.missed += 1;
                }
                entry.request_read(from);
                applied.absence_unconfirmed = true;
                continue;
            }
            entry.take_in(name, found, start, (now, cadence), &mut applied);
        }
        applied
    }
}
