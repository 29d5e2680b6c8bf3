//! What the process does at the same time: reconciles of several pools, polls, receives of events. Without a latency each
//! ends at the instant at which it begins, and nothing is under way in between.

use std::{
    collections::BTreeMap,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{self, Poll},
};

use capasg_controllers::ObjectKey;
use chrono::{DateTime, TimeDelta, Utc};

use super::{
    World,
    reconcile::{Attempt, Ended},
};

/// So many pools are reconciled at the same time (`--concurrency`).
const CONCURRENCY: usize = 10;
/// A poll that takes long does not hold up the next ones.
const MOST_POLLS: usize = 4;

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
    tasks: BTreeMap<Work, Task>,
    done: Vec<Done>,
    /// Something went on since the rules were checked.
    went_on: bool,
    polls: usize,
}

impl Running {
    /// The process ends: nobody waits for replies any more. What was sent arrives.
    pub(super) fn clear(&mut self) {
        self.tasks.clear();
        self.done.clear();
    }

    fn is_idle(&self) -> bool {
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

impl World {
    /// Whether calls take time, so that several things are under way at once.
    pub(super) fn is_concurrent(&self) -> bool {
        self.setup.latency.is_some()
    }

    /// Work begins. Without a latency it ends at this instant, unless the process dies; a reconcile, which may wait for
    /// AWS, also ends with the lease.
    pub(super) async fn begin(&mut self, work: Work, task: Task) {
        if self.is_concurrent() {
            self.running.tasks.insert(work, task);
            // What its caches show is what they show now.
            poll_fn(|context| Poll::Ready(self.go_on(context))).await;
            return;
        }
        let ends = if matches!(work, Work::Reconcile(_)) { self.takeover } else { None };
        let done = tokio::select! {
            biased;
            () = self.journal.death() => return,
            () = lease_ends(self.clock.as_ref(), ends) => return,
            done = task => done,
        };
        self.follow_up(done);
    }

    /// What follows from work that is over.
    pub(super) fn follow_up(&mut self, done: Done) {
        match done {
            Done::Nothing => {}
            Done::Woken(pools) => {
                for pool in pools {
                    self.wake(pool);
                }
            }
            Done::Reconciled(attempt, ended) => self.reconciled(attempt, ended),
        }
    }

    /// Each piece of work goes on to the next reply that it waits for, unless the process dies. Tells whether one is over.
    fn go_on(&mut self, context: &mut task::Context<'_>) -> bool {
        let Self { running, invariants, journal, .. } = self;
        let mut over = Vec::new();
        running.went_on |= !running.is_idle();
        for (work, task) in &mut running.tasks {
            if journal.has_died() {
                break;
            }
            if let (Work::Reconcile(pool), Some(invariants)) = (work, &*invariants) {
                invariants.turns_to(pool);
            }
            if let Poll::Ready(done) = task.as_mut().poll(context) {
                over.push(work.clone());
                running.done.push(done);
            }
        }
        for work in &over {
            running.tasks.remove(work);
        }
        !over.is_empty() || journal.has_died()
    }

    /// Lets time pass until a moment, or until something that is under way in one of these worlds, which have one clock, goes
    /// on. Timers are exact to the millisecond only.
    pub(super) async fn rest(worlds: &mut [&mut Self], until: DateTime<Utc>) {
        let Some(clock) = worlds.first().map(|world| std::sync::Arc::clone(&world.clock)) else { return };
        let now = capasg_cloud::Clock::now(clock.as_ref());
        let mut sleep = pin!(clock.sleep_until(until.max(now + TimeDelta::milliseconds(1))));
        if worlds.iter().all(|world| world.running.is_idle()) {
            sleep.await;
        } else {
            let mut is_woken = false;
            poll_fn(|context| {
                let mut is_over = false;
                for world in &mut *worlds {
                    is_over |= world.go_on(context);
                }
                if sleep.as_mut().poll(context).is_ready() || is_over || is_woken {
                    return Poll::Ready(());
                }
                is_woken = true;
                Poll::Pending
            })
            .await;
        }
        for world in worlds {
            world.simulator.set_time(world.now());
            if let Some(invariants) = &world.invariants {
                invariants.look_at_cloud();
            }
        }
    }
}

/// A leader that loses its lease exits at once.
async fn lease_ends(clock: &crate::VirtualClock, takeover: Option<DateTime<Utc>>) {
    match takeover {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}
