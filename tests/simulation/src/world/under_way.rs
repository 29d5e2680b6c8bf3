//! Work of the process begins, goes on with each reply, and is followed up.

use std::{
    future::poll_fn,
    pin::pin,
    task::{self, Poll},
};

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    World,
    running::{Done, Task, Work},
};

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
