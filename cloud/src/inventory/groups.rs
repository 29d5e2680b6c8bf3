//! The table of groups: what was seen, what is due, and what a reply changes. No IO and no clock of its own.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    Group, View,
    inventory::{
        Cadence,
        fence::{Ending, Fence, Ticket},
    },
};

/// A known group must be missing this often more before it is believed gone: once if the listing held others,
/// twice if it was empty altogether, which is likelier an error.
const REPEATS: u8 = 1;
const REPEATS_IF_EMPTY: u8 = 2;
/// What changes within this time of an event is what it told of.
const TOLD: TimeDelta = TimeDelta::minutes(2);
/// The fast round leaves out what was read by itself within this time.
const JUST_READ: TimeDelta = TimeDelta::seconds(1);
/// A listing may lag behind the event that had it read: it is read once more after this.
const LAGS: TimeDelta = TimeDelta::seconds(7);

#[derive(Debug, Default)]
pub(super) struct Table {
    entries: BTreeMap<String, Entry>,
    last: Ticket,
    idle_at: Option<DateTime<Utc>>,
    transition_at: Option<DateTime<Utc>>,
    /// The round of those that are polled as without events.
    restless_at: Option<DateTime<Utc>>,
    /// Events tell what changes.
    fed: bool,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which holds or does not")]
struct Entry {
    /// A pool looks at it; without, only the fence is kept.
    registered: bool,
    seen: Seen,
    started: Ticket,
    as_of: DateTime<Utc>,
    fence: Fence,
    /// It exists as far as we know: seen or created, and not deleted by us.
    known: bool,
    /// How many listings in a row lacked it although it is known.
    missed: u8,
    /// A listing that was asked for before this repeats nothing: one fault may have met both.
    missed_again_from: DateTime<Utc>,
    transition: bool,
    /// It changes in ways that no event tells.
    restless: bool,
    /// The last event that named it.
    told: Option<Told>,
    /// When it is read once more after an event, unless it is in transition then.
    look_back: Option<DateTime<Utc>>,
    /// A read outside the rounds.
    due: Option<DateTime<Utc>>,
    /// Another one, when a write without an answer can no longer take effect.
    due_later: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Copy)]
struct Told {
    at: DateTime<Utc>,
    /// Whether something was seen to change since.
    shown: bool,
}

#[derive(Debug, Default, Clone)]
enum Seen {
    #[default]
    Unknown,
    Absent,
    Present(Arc<Group>),
}

/// A request that starts now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) ticket: Ticket,
    pub(super) as_of: DateTime<Utc>,
}

/// A group before and after a reply.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) name: String,
    pub(super) before: Option<Arc<Group>>,
    pub(super) after: Option<Arc<Group>>,
}

/// What a reply did to the table.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// Groups whose view changed in a way that matters.
    pub(super) changed: Vec<String>,
    /// Groups whose content changed.
    pub(super) contents: Vec<Content>,
    /// Whether the listing lacked groups that we know of.
    pub(super) doubted: bool,
    /// Whether instances came or went that no event told of.
    pub(super) untold: bool,
}

impl Entry {
    fn view(&self) -> View {
        let (as_of, settled) = (self.as_of, self.has_settled());
        match &self.seen {
            Seen::Unknown => View::Unknown,
            Seen::Absent => View::Absent { as_of, settled },
            Seen::Present(group) => View::Present { group: group.clone(), as_of, settled },
        }
    }

    fn has_settled(&self) -> bool {
        self.fence.settles(self.started, self.as_of)
    }

    fn ask(&mut self, at: DateTime<Utc>) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

impl Table {
    fn ticket(&mut self) -> Ticket {
        self.last += 1;
        self.last
    }

    pub(super) fn register(&mut self, group: &str, now: DateTime<Utc>, cadence: &Cadence) {
        let entry = self.entries.entry(group.to_owned()).or_default();
        if !entry.registered {
            entry.registered = true;
            entry.ask(now + cadence.coalesce);
            let pause = self.pause(cadence);
            self.idle_at.get_or_insert(now + pause);
        }
    }

    fn pause(&self, cadence: &Cadence) -> Duration {
        if self.fed { cadence.fed_idle } else { cadence.idle }
    }

    /// Events tell what changes, or they do no more: the next round may be sooner then.
    pub(super) fn set_fed(&mut self, fed: bool, now: DateTime<Utc>, cadence: &Cadence) {
        self.fed = fed;
        if !fed {
            self.idle_at = self.idle_at.map(|at| at.min(now + cadence.idle));
        }
    }

    /// An event named a group: it is read soon, and once more later. Returns whether anybody looks at it.
    pub(super) fn told(&mut self, group: &str, now: DateTime<Utc>, cadence: &Cadence) -> bool {
        let Some(entry) = self.entries.get_mut(group).filter(|entry| entry.registered) else { return false };
        entry.told = Some(Told { at: now, shown: false });
        entry.ask(now + cadence.coalesce);
        entry.look_back = Some(now + LAGS);
        true
    }

    /// Whether a group is polled as without events, since what matters of it gives none.
    pub(super) fn set_restless(&mut self, group: &str, on: bool, now: DateTime<Utc>, cadence: &Cadence) {
        let Some(entry) = self.entries.get_mut(group).filter(|entry| entry.registered) else { return };
        entry.restless = on;
        if on {
            let round = self.restless_at.filter(|at| *at > now);
            self.restless_at = Some(round.unwrap_or(now + cadence.idle));
        }
    }

    pub(super) fn forget(&mut self, group: &str, now: DateTime<Utc>) {
        if let Some(entry) = self.entries.get_mut(group) {
            let fence = std::mem::take(&mut entry.fence);
            *entry = Entry { fence, ..Entry::default() };
        }
        self.prune(now);
    }

    /// Drops what is kept for a fence that no longer stands.
    pub(super) fn prune(&mut self, now: DateTime<Utc>) {
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

    /// The view of an answer by itself, believed or not.
    pub(super) fn answer(&self, name: &str, found: Option<Group>, start: Start) -> View {
        let entry = self.entries.get(name);
        let as_of = start.as_of;
        let settled = entry.is_none_or(|entry| entry.fence.settles(start.ticket, as_of));
        match found {
            Some(group) => View::Present { group: Arc::new(sorted(group)), as_of, settled },
            None => View::Absent { as_of, settled },
        }
    }

    /// Asks for a read at a time; returns whether anybody looks at the group.
    pub(super) fn ask(&mut self, group: &str, at: DateTime<Utc>) -> bool {
        match self.entries.get_mut(group) {
            Some(entry) if entry.registered => {
                entry.ask(at);
                true
            }
            _ => false,
        }
    }

    /// Asks for a read at a time beside any sooner one.
    pub(super) fn ask_later(&mut self, group: &str, at: DateTime<Utc>) {
        if let Some(entry) = self.entries.get_mut(group).filter(|entry| entry.registered) {
            entry.due_later = entry.due_later.max(Some(at));
        }
    }

    pub(super) fn set_transition(&mut self, group: &str, on: bool, now: DateTime<Utc>, cadence: &Cadence) {
        if let Some(entry) = self.entries.get_mut(group).filter(|entry| entry.registered) {
            entry.transition = on;
            if on {
                // A round that was due while nobody took part is over.
                let round = self.transition_at.filter(|at| *at > now);
                self.transition_at = Some(round.unwrap_or(now + cadence.transition));
            }
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

    /// We created or deleted the group: its absence is odd, or expected.
    pub(super) fn expect(&mut self, group: &str, exists: bool) {
        if let Some(entry) = self.entries.get_mut(group) {
            entry.known = exists;
        }
    }

    /// When something is due next.
    pub(super) fn next_due(&self) -> Option<DateTime<Utc>> {
        let transition = self.transition_at.filter(|_| self.entries.values().any(|entry| entry.transition));
        let restless =
            self.restless_at.filter(|_| self.fed && self.entries.values().any(|entry| entry.restless));
        let asked = self.entries.values().flat_map(|entry| {
            let look_back = entry.look_back.filter(|_| !entry.transition);
            [entry.due, entry.due_later, look_back]
        });
        [self.idle_at, transition, restless, asked.flatten().min()].into_iter().flatten().min()
    }

    /// Begins the rounds that are due; returns how many groups are to be read now.
    pub(super) fn begin_rounds(&mut self, now: DateTime<Utc>, cadence: &Cadence) -> usize {
        let idle = self.idle_at.is_some_and(|at| at <= now);
        let transition = idle || self.transition_at.is_some_and(|at| at <= now);
        let restless = idle || self.restless_at.is_some_and(|at| at <= now);
        for entry in self.entries.values_mut().filter(|entry| entry.registered) {
            let later = entry.due_later.take_if(|at| *at <= now).is_some();
            let look_back = entry.look_back.take_if(|at| *at <= now).is_some() && !entry.transition;
            let just_read = entry.has_settled() && now - entry.as_of < JUST_READ;
            let its_round = idle
                || (transition && entry.transition && !just_read)
                || (restless && self.fed && entry.restless);
            if its_round || later || look_back {
                entry.ask(now);
            }
        }
        if idle {
            self.idle_at = Some(now + self.pause(cadence));
        }
        if transition {
            let any = self.entries.values().any(|entry| entry.transition);
            self.transition_at = any.then(|| now + cadence.transition);
        }
        if restless {
            let any = self.entries.values().any(|entry| entry.restless);
            self.restless_at = any.then(|| now + cadence.idle);
        }
        self.entries.values().filter(|entry| entry.due.is_some_and(|due| due <= now)).count()
    }

    /// Takes up to `most` groups that are due, for a request that starts now.
    pub(super) fn take_due(&mut self, now: DateTime<Utc>, most: usize) -> (Vec<String>, Start) {
        let due = self.entries.iter_mut().filter(|(_, entry)| entry.due.is_some_and(|due| due <= now));
        let names = due
            .take(most)
            .map(|(name, entry)| {
                entry.due = None;
                name.clone()
            })
            .collect();
        (names, self.start(now))
    }

    pub(super) fn start(&mut self, now: DateTime<Utc>) -> Start {
        Start { ticket: self.ticket(), as_of: now }
    }

    /// Takes in a reply to a request for `names`. Absence counts only if the listing is `whole`, and
    /// for a known group only if it is repeated.
    pub(super) fn apply(
        &mut self,
        names: &[String],
        start: Start,
        listed: Vec<Group>,
        whole: bool,
        now: DateTime<Utc>,
        cadence: &Cadence,
    ) -> Applied {
        let mut applied = Applied::default();
        let mut listed: BTreeMap<String, Group> =
            listed.into_iter().map(|group| (group.name.clone(), group)).collect();
        let repeats = if listed.is_empty() { REPEATS_IF_EMPTY } else { REPEATS };
        for name in names {
            let Some(entry) = self.entries.get_mut(name) else { continue };
            if !entry.registered || start.ticket <= entry.started {
                continue;
            }
            let found = listed.remove(name);
            if found.is_none() && !whole {
                continue;
            }
            let repeated = entry.missed >= repeats && start.as_of >= entry.missed_again_from;
            if found.is_none() && entry.known && !repeated {
                if entry.missed == 0 || start.as_of >= entry.missed_again_from {
                    let pause = if entry.missed == 0 { cadence.doubt.0 } else { cadence.doubt.1 };
                    entry.missed += 1;
                    entry.missed_again_from = now + pause;
                }
                entry.ask(entry.missed_again_from);
                applied.doubted = true;
                continue;
            }
            entry.take_in(name, found, start, (now, cadence), &mut applied);
        }
        applied
    }
}

impl Entry {
    fn take_in(
        &mut self,
        name: &str,
        found: Option<Group>,
        start: Start,
        (now, cadence): (DateTime<Utc>, &Cadence),
        applied: &mut Applied,
    ) {
        let was_settled = self.has_settled();
        let before = std::mem::take(&mut self.seen);
        self.missed = 0;
        (self.started, self.as_of) = (start.ticket, start.as_of);
        let settled = !was_settled && self.has_settled();
        self.known = found.as_ref().is_some_and(|group| !group.is_deleting());
        self.seen = match (&before, found.map(sorted)) {
            // The old one is kept if it is equal: who holds it sees at once that nothing changed.
            (Seen::Present(known), Some(group)) if **known == group => Seen::Present(known.clone()),
            (_, Some(group)) => Seen::Present(Arc::new(group)),
            (_, None) => Seen::Absent,
        };
        let same = match (&before, &self.seen) {
            (Seen::Present(old), Seen::Present(new)) => Arc::ptr_eq(old, new),
            (Seen::Absent, Seen::Absent) => true,
            _ => false,
        };
        if !same {
            let (before, after) = (before.group(), self.seen.group());
            // What an event told of may be shown by the next round only, if the reads before lagged.
            let round = TimeDelta::from_std(cadence.fed_idle).unwrap_or_default() + TOLD;
            let told = self.told.is_some_and(|told| now - told.at < if told.shown { TOLD } else { round });
            self.told = self.told.map(|told| Told { shown: true, ..told });
            // What we change is seen by the fast round before anybody tells.
            applied.untold |=
                !told && !self.transition && others_came_or_went(before.as_ref(), after.as_ref());
            applied.contents.push(Content { name: name.to_owned(), before, after });
        }
        if settled || !same {
            applied.changed.push(name.to_owned());
        }
    }
}

/// Whether a group that was there before has other instances now: AWS tells of each that came or went.
fn others_came_or_went(before: Option<&Arc<Group>>, after: Option<&Arc<Group>>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    let ids = |group: &Group| group.instances.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
    ids(before) != ids(after)
}

/// AWS does not say in which order it lists instances.
fn sorted(mut group: Group) -> Group {
    group.instances.sort_by(|a, b| a.id.cmp(&b.id));
    group
}

impl Seen {
    fn group(&self) -> Option<Arc<Group>> {
        match self {
            Self::Present(group) => Some(group.clone()),
            Self::Unknown | Self::Absent => None,
        }
    }
}
