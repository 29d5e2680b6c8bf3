//! Read your writes: which views of a group are older than what we did to it (design section 3).

use chrono::{DateTime, Utc};

/// Orders request starts and answers of one inventory, whatever the clock does.
pub(super) type Ticket = u64;

/// What our writes to a group ask of a view.
#[derive(Debug, Default)]
pub(super) struct Fence {
    /// Writes that were begun and not answered.
    open: u32,
    /// When the last write was answered, or given up.
    answered: Ticket,
    /// Until when a write without an answer may still take effect.
    may_land_until: Option<DateTime<Utc>>,
}

/// How a write ended, as far as views are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nothing was sent, or AWS refused before it looked.
    Nothing,
    /// AWS answered.
    Answered,
    /// No answer came: it may take effect until then.
    Lost(DateTime<Utc>),
}

impl Fence {
    pub(super) fn begin(&mut self) {
        self.open += 1;
    }

    pub(super) fn end(&mut self, ending: Ending, ticket: Ticket) {
        self.open = self.open.saturating_sub(1);
        if ending != Ending::Nothing {
            self.answered = ticket;
        }
        if let Ending::Lost(until) = ending {
            self.may_land_until = self.may_land_until.max(Some(until));
        }
    }

    /// Whether a view whose request started then shows all our writes.
    pub(super) fn settles(&self, started: Ticket, as_of: DateTime<Utc>) -> bool {
        self.open == 0 && started > self.answered && self.may_land_until.is_none_or(|until| as_of >= until)
    }

    /// Whether the fence still matters for a group that nobody looks at.
    pub(super) fn stands(&self, now: DateTime<Utc>) -> bool {
        self.open > 0 || self.may_land_until.is_some_and(|until| now < until)
    }
}
