//! What the inventory holds of one group, and what an answer changes of it.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    Group, Known, View,
    inventory::{
        cadence::Cadence,
        fence::{Fence, Start},
    },
};

/// A change that is seen within this time after an event belongs to it.
const EVENT_EXPLAINS: Duration = Duration::from_mins(2);

/// A group before and after an answer.
#[derive(Debug)]
pub(in crate::inventory) struct Content {
    pub(in crate::inventory) name: String,
    pub(in crate::inventory) before: Option<Arc<Group>>,
    pub(in crate::inventory) after: Option<Arc<Group>>,
}

/// What an answer changed in the table.
#[derive(Debug, Default)]
pub(in crate::inventory) struct Applied {
    /// Groups whose view changed in a way that matters.
    pub(in crate::inventory) changed: Vec<String>,
    /// Groups whose content changed.
    pub(in crate::inventory) contents: Vec<Content>,
    /// Whether known groups were missing in the listing, and are read again.
    pub(in crate::inventory) absence_unconfirmed: bool,
    /// A group whose instances appeared or disappeared without an event.
    pub(in crate::inventory) event_missing: Option<String>,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which holds or does not")]
pub(super) struct Entry {
    /// A pool observes the group; without one, only the fence is kept.
    pub(super) registered: bool,
    pub(super) group: Known<Arc<Group>>,
    /// The request that showed it.
    pub(super) shown_by: Option<Start>,
    pub(super) fence: Fence,
    /// It exists as far as we know: it was seen or created, and not deleted by us.
    pub(super) exists: bool,
    /// How many listings in a row missed it although it exists.
    pub(super) missed: u8,
    /// A listing that was requested before this confirms no absence: one fault may have affected both.
    pub(super) confirms_from: Option<Instant>,
    pub(super) transition: bool,
    /// It changes in ways that give no event.
    pub(super) externally_scaled: bool,
    /// The last event that named it.
    pub(super) event: Option<Event>,
    /// When it is read once more after an event, unless it is in transition then.
    pub(super) confirm_at: Option<Instant>,
    /// A read outside the rounds.
    pub(super) due: Option<Instant>,
    /// Another one, when a write without an answer can no longer take effect.
    pub(super) due_later: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) at: Instant,
    /// Whether a change was seen since.
    pub(super) change_seen: bool,
}

impl Entry {
    pub(super) fn view(&self) -> View {
        let Some(Start { as_of, .. }) = self.shown_by else { return View::Unknown };
        let settled = self.is_settled();
        match &self.group {
            Known::Unknown => View::Unknown,
            Known::Absent => View::Absent { as_of, settled },
            Known::Present(group) => View::Present { group: group.clone(), as_of, settled },
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        self.shown_by.is_some_and(|start| self.fence.settles(start))
    }

    pub(super) fn request_read(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Takes in an answer about this group.
    pub(super) fn take_in(
        &mut self,
        name: &str,
        found: Option<Group>,
        start: Start,
        (now, cadence): (Instant, &Cadence),
        applied: &mut Applied,
    ) {
        let was_settled = self.is_settled();
        let before = std::mem::take(&mut self.group);
        self.missed = 0;
        self.shown_by = Some(start);
        let settled = !was_settled && self.is_settled();
        self.exists = found.as_ref().is_some_and(|group| !group.is_deleting());
        self.group = match (&before, found.map(sorted)) {
            // The old one is kept if it is equal: its holders see at once that nothing changed.
            (Known::Present(known), Some(group)) if **known == group => Known::Present(known.clone()),
            (_, found) => found.map(Arc::new).into(),
        };
        let same = match (&before, &self.group) {
            (Known::Present(old), Known::Present(new)) => Arc::ptr_eq(old, new),
            (Known::Absent, Known::Absent) => true,
            _ => false,
        };
        if !same {
            let (before, after) = (before.present().cloned(), self.group.present().cloned());
            // Reads may lag behind the event, so that only the next round shows its change.
            let round = cadence.idle_with_events + EVENT_EXPLAINS;
            let explained = self
                .event
                .is_some_and(|event| now - event.at < if event.change_seen { EVENT_EXPLAINS } else { round });
            self.event = self.event.map(|event| Event { change_seen: true, ..event });
            // The fast round sees our own changes before their events arrive.
            if !explained && !self.transition && instances_changed(before.as_ref(), after.as_ref()) {
                applied.event_missing = Some(name.to_owned());
            }
            applied.contents.push(Content { name: name.to_owned(), before, after });
        }
        if settled || !same {
            applied.changed.push(name.to_owned());
        }
    }
}

/// Whether a group that existed before has other instances now: AWS sends an event for each that appears or disappears.
fn instances_changed(before: Option<&Arc<Group>>, after: Option<&Arc<Group>>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    let ids = |group: &Group| group.instances.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
    ids(before) != ids(after)
}

/// AWS does not promise an order of instances.
pub(super) fn sorted(mut group: Group) -> Group {
    group.instances.sort_by(|a, b| a.id.cmp(&b.id));
    group
}
