//! What the process does at the same time: reconciles of several pools, polls, receives of events. Without a latency each
//! ends at the instant at which it begins, and nothing is under way in between.

use std::{collections::BTreeMap, future::Future, pin::Pin};

use capasg_controllers::{
    ObjectKey,
    machine_pool::{ReconcileError, Requeue},
};
use chrono::{DateTime, Utc};
use tokio::time::error::Elapsed;

/// So many pools are reconciled at the same time (`--concurrency`).
const CONCURRENCY: usize = 10;
/// A poll that takes long does not hold up the next ones.
const MOST_POLLS: usize = 4;

/// How a reconcile ended.
pub(super) type Ended = Result<Result<Requeue, ReconcileError>, Elapsed>;

/// A reconcile, as it began.
pub(super) struct Attempt {
    pub(super) pool: ObjectKey,
    /// When it began.
    pub(super) began: DateTime<Utc>,
    /// Whether nothing but the periodic resync caused it.
    pub(super) is_resync: bool,
    /// Whether a watch was about to wake the pool.
    pub(super) was_to_wake: bool,
    /// The newest resourceVersion.
    pub(super) version: u64,
    /// How many writes there were before.
    pub(super) writes: usize,
}

/// What can be under way, in the order in which it goes on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// The release of ASGMachines without a pool.
    Orphans,
    /// The check of the identities.
    Identities,
    /// A receive of events.
    Events,
    /// A poll, by its number.
    Poll(usize),
    /// The reconcile of a pool: one at a time.
    Reconcile(ObjectKey),
}

/// What comes of it.
pub(super) enum Done {
    /// Nothing but what it did.
    Nothing,
    /// These pools are to be reconciled.
    Woken(Vec<ObjectKey>),
    /// A reconcile ended.
    Reconciled(Attempt, Ended),
}

/// A piece of work under way.
pub(super) type Task = Pin<Box<dyn Future<Output = Done> + Send>>;

/// The work of the process that is under way.
#[derive(Default)]
pub(super) struct Running {
    pub(super) tasks: BTreeMap<Work, Task>,
    pub(super) done: Vec<Done>,
    /// Something went on since the rules were checked.
    pub(super) went_on: bool,
    polls: usize,
}

impl Running {
    /// The process ends: nobody waits for replies any more. What was sent arrives.
    pub(super) fn clear(&mut self) {
        self.tasks.clear();
        self.done.clear();
    }

    pub(super) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(super) fn has(&self, work: &Work) -> bool {
        self.tasks.contains_key(work)
    }

    fn count(&self, is: impl Fn(&Work) -> bool) -> usize {
        self.tasks.keys().filter(|work| is(work)).count()
    }

    /// Whether another poll may begin.
    pub(super) fn may_poll(&self) -> bool {
        self.count(|work| matches!(work, Work::Poll(_))) < MOST_POLLS
    }

    /// Another poll.
    pub(super) fn another_poll(&mut self) -> Work {
        self.polls += 1;
        Work::Poll(self.polls)
    }

    /// Whether a pool may be reconciled: a wake during its reconcile is followed up after that.
    pub(super) fn may_reconcile(&self, pool: &ObjectKey) -> bool {
        !self.has(&Work::Reconcile(pool.clone())) && self.reconciles() < CONCURRENCY
    }

    /// How many pools are being reconciled.
    pub(super) fn reconciles(&self) -> usize {
        self.count(|work| matches!(work, Work::Reconcile(_)))
    }

    /// What is over by now.
    pub(super) fn take_done(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.done)
    }

    /// Whether anything went on since this was last asked.
    pub(super) fn has_gone_on(&mut self) -> bool {
        std::mem::take(&mut self.went_on)
    }
}
