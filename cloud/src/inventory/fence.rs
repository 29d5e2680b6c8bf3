//! Read your writes: which views of a group are older than our last write to it.

use chrono::{DateTime, Utc};
use tokio::time::Instant;

/// Orders request starts and answers of one inventory, whatever the clock does.
pub(super) type Ticket = u64;

/// A request that starts now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) ticket: Ticket,
    /// For intervals: the time of day may be set meanwhile.
    pub(super) at: Instant,
    /// The time of day, which the view shows.
    pub(super) as_of: DateTime<Utc>,
}

/// What a view must fulfil to show our writes to a group.
#[derive(Debug, Default)]
pub(super) struct Fence {
    /// Writes that were begun and not answered.
    open: u32,
    /// When the last write was answered, or its answer was given up.
    answered: Ticket,
    /// Until when a write without an answer may still take effect.
    may_land_until: Option<Instant>,
}

/// How a write ended, as far as views are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nothing was sent, or AWS rejected it without reading it.
    Nothing,
    /// AWS answered.
    Answered,
    /// No answer arrived: it may take effect until then.
    Lost(Instant),
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

    /// Whether the view of a request shows all our writes.
    pub(super) fn settles(&self, start: Start) -> bool {
        self.open == 0
            && start.ticket > self.answered
            && self.may_land_until.is_none_or(|until| start.at >= until)
    }

    /// Whether the fence still matters for a group that no pool observes.
    pub(super) fn stands(&self, now: Instant) -> bool {
        self.open > 0 || self.may_land_until.is_some_and(|until| now < until)
    }
}
