//! What will happen in a scope, ordered by virtual time and then by the order of scheduling.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};

use chrono::{DateTime, Utc};

use crate::{Service, Tree};

/// Something that is due at a time. Each handler checks that it still applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// A group compares desired and actual capacity.
    Tick(String),
    /// A group looks whether its zones are balanced.
    Rebalance(String),
    /// An instance refresh (of a group, by its id) goes on.
    Refresh(String, String),
    /// A launched machine runs.
    Started(String),
    /// A `Pending:Proceed` instance enters service.
    InService(String),
    /// A `Terminating` instance meets its hooks, or shuts down.
    TerminatingStep(String),
    /// A hook's heartbeat timeout or global timeout may have passed.
    HookDeadline(String, String),
    /// A machine has shut down.
    Ended(String),
    /// A machine has stopped.
    Stopped(String),
    /// An ended instance leaves its group.
    Leave(String),
    /// EC2 forgets a terminated machine.
    Forget(String),
    /// The group's health check looks at an instance.
    HealthCheck(String),
    /// The group replaces an unhealthy instance.
    Replace(String),
    /// The group replaces an instance that EC2 recommends to replace.
    AtRisk(String),
    /// An instance reaches `Standby`.
    Standby(String),
    /// An instance is out of its group.
    Detached(String),
    /// A spot machine is taken away.
    Interrupted(String),
    /// A group without instances disappears.
    Deleted(String),
    /// A call whose reply was lost takes effect late.
    Late(Service, &'static str, Option<String>, Box<Tree>),
    /// EventBridge delivers an event to a queue.
    Delivered(String, String),
    /// A message of a queue is to be seen again: something to wake up for.
    Visible,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Due {
    at: DateTime<Utc>,
    sequence: u64,
    event: Event,
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The heap of a scope's events.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<Due>>,
    sequence: u64,
    ticks: BTreeSet<(DateTime<Utc>, String)>,
}

impl Queue {
    pub(crate) fn push(&mut self, at: DateTime<Utc>, event: Event) {
        // A group's looks at the same instant are one: growth by calls must not grow the heap.
        if let Event::Tick(group) = &event
            && !self.ticks.insert((at, group.clone()))
        {
            return;
        }
        self.sequence += 1;
        self.heap.push(Reverse(Due { at, sequence: self.sequence, event }));
    }

    /// The next event due by `until`, with its time.
    pub(crate) fn pop(&mut self, until: DateTime<Utc>) -> Option<(DateTime<Utc>, Event)> {
        if self.next()? > until {
            return None;
        }
        let Reverse(due) = self.heap.pop()?;
        if let Event::Tick(group) = &due.event {
            self.ticks.remove(&(due.at, group.clone()));
        }
        Some((due.at, due.event))
    }

    pub(crate) fn next(&self) -> Option<DateTime<Utc>> {
        self.heap.peek().map(|Reverse(due)| due.at)
    }
}
