//! The scheduler: who acts next, drawn from all who could, and what happens when the process dies.

use std::{sync::Arc, time::Duration};

use anyhow::bail;
use capasg_api::{ASGMachine, capi::belongs_to_pool};
use capasg_controllers::{ObjectKey, identity, machine};
use capasg_fake_aws::DEFAULT_ACCOUNT;
use chrono::{DateTime, TimeDelta, Utc};

use super::{
    World,
    people::LEASE,
    running::{Done, Work},
};

/// More actions than this in one virtual second are a loop that does not rest.
const MOST_ACTIONS_PER_SECOND: usize = 4000;
/// How long another process takes to follow one that died.
const TAKEOVER: Duration = Duration::from_secs(2);

enum Action {
    Deliver,
    Core,
    Poll,
    Events,
    Reconcile(ObjectKey),
    /// Writes whose sender died, or waits no longer.
    Land,
}

impl World {
    /// Runs until a condition holds.
    ///
    /// # Errors
    /// If it does not hold within that much virtual time, or a rule was broken.
    pub async fn run_until(
        &mut self,
        what: &str,
        within: TimeDelta,
        mut condition: impl FnMut(&Self) -> bool,
    ) -> anyhow::Result<()> {
        let deadline = self.now() + within;
        let (mut second, mut actions) = (self.now(), 0);
        while !condition(self) {
            if self.now() >= deadline {
                bail!("not within {within}: {what}\n{}", self.describe());
            }
            if self.now() - second >= TimeDelta::seconds(1) {
                (second, actions) = (self.now(), 0);
            }
            actions += 1;
            if actions > MOST_ACTIONS_PER_SECOND {
                bail!("spins while waiting: {what}\n{}", self.describe());
            }
            self.step(deadline).await?;
        }
        Ok(())
    }

    /// Runs for a while.
    ///
    /// # Errors
    /// If a rule was broken.
    pub async fn run_for(&mut self, span: TimeDelta) -> anyhow::Result<()> {
        let end = self.now() + span;
        self.run_until("the end of the span", span + TimeDelta::seconds(1), |world| world.now() >= end).await
    }

    /// One action of one of those who could act; if there is none, time passes.
    async fn step(&mut self, until: DateTime<Utc>) -> anyhow::Result<()> {
        if !self.act().await? {
            let next = self.next_due().map_or(until, |due| due.min(until));
            Self::rest(&mut [self], next).await;
        }
        Ok(())
    }

    /// One action of one of those who could act; tells whether there was one.
    pub(super) async fn act(&mut self) -> anyhow::Result<bool> {
        if self.is_concurrent() {
            self.mourn().await;
        }
        if self.takeover.is_some_and(|at| at <= self.now()) {
            self.restart();
        }
        if self.is_concurrent() {
            self.after_a_rest()?;
        }
        self.take_wakes();
        self.release_orphans().await;
        self.check_identities_if_due().await;
        let mut ready = self.ready();
        if ready.is_empty() {
            return Ok(false);
        }
        match ready.swap_remove(self.random.index(ready.len())) {
            Action::Deliver => self.api.state().deliver(),
            Action::Core => {
                self.core_saw = Some(self.api.state().ledger.last_version());
                self.core.step();
            }
            Action::Poll => self.poll().await,
            Action::Events => self.take_events().await,
            Action::Reconcile(pool) => self.reconcile(pool).await,
            Action::Land => self.land(),
        }
        self.mourn().await;
        self.watch()?;
        self.check()?;
        Ok(true)
    }

    /// What is over by now is followed up.
    fn after_a_rest(&mut self) -> anyhow::Result<()> {
        for done in self.running.take_done() {
            self.follow_up(done);
        }
        if self.running.has_gone_on() {
            self.watch()?;
            self.check()?;
        }
        Ok(())
    }

    /// What follows if the process died.
    async fn mourn(&mut self) {
        if !self.journal.take_death() {
            return;
        }
        if let Some(invariants) = &self.invariants {
            invariants.note("manager", || "the process dies".to_owned());
        }
        self.running.clear();
        self.dead = true;
        if self.journal.take_in_flight() {
            // It did not give its lease back: whoever comes next waits for its end, and with it for the write.
            self.takeover.get_or_insert(self.now() + LEASE);
        }
        if self.is_concurrent() {
            // Everybody else goes on meanwhile.
            self.takeover.get_or_insert(self.now() + TAKEOVER);
        } else if self.takeover.is_none() {
            tokio::time::sleep(TAKEOVER).await;
            self.restart();
        }
    }

    /// The pools that changes of their groups or of Kubernetes objects concern are to be reconciled.
    pub(super) fn take_wakes(&mut self) {
        while let Ok((place, group)) = self.changes.try_recv() {
            for pool in self.context.pools_of(&place, &group) {
                self.wake(pool);
            }
        }
        let woken = self.api.state().take_woken();
        for pool in woken {
            self.wake(pool);
        }
    }

    pub(super) fn wake(&mut self, pool: ObjectKey) {
        let now = self.now();
        self.resyncs.remove(&pool);
        self.queue.insert(pool, now);
    }

    fn ready(&self) -> Vec<Action> {
        let now = self.now();
        let mut ready = Vec::new();
        let landing = self.next_landing();
        let (delivery, version) = {
            let api = self.api.state();
            (api.next_delivery(), api.ledger.last_version())
        };
        if delivery.is_some_and(|due| due <= now) {
            ready.push(Action::Deliver);
        }
        let core_looks = self.core_saw != Some(version) || self.core_due().is_some_and(|due| due <= now);
        if core_looks && !self.core.state().stopped {
            ready.push(Action::Core);
        }
        if landing.is_some_and(|due| due <= now) {
            ready.push(Action::Land);
        }
        if self.is_leaderless() {
            return ready;
        }
        if self.next_poll().is_some_and(|due| due <= now) {
            ready.push(Action::Poll);
        }
        if self.setup.events && !self.running.has(&Work::Events) && self.has_events() {
            ready.push(Action::Events);
        }
        let due = self.queue.iter().filter(|(pool, at)| **at <= now && self.running.may_reconcile(pool));
        ready.extend(due.map(|(pool, _)| Action::Reconcile(pool.clone())));
        ready
    }

    /// When writes land whose sender does not wait for them.
    pub(super) fn next_landing(&self) -> Option<DateTime<Utc>> {
        let landing = self.api.state().next_landing();
        [landing, self.factory.shared.next_arrival()].into_iter().flatten().min()
    }

    /// When the next poll may begin.
    fn next_poll(&self) -> Option<DateTime<Utc>> {
        let due = self.inventories.next_due().filter(|_| self.running.may_poll());
        due.map(|due| self.clock.moment(due))
    }

    /// Whether messages wait for whoever would take them, or were seen.
    fn has_events(&self) -> bool {
        let may_receive =
            self.inventories.next_events_due().is_some_and(|at| self.clock.moment(at) <= self.now());
        (may_receive && self.simulator.has_messages(&self.scope())) || self.inventories.has_events_to_delete()
    }

    pub(super) fn next_due(&self) -> Option<DateTime<Utc>> {
        let delivery = self.api.state().next_delivery();
        let others =
            [delivery, self.next_landing(), self.core_due(), self.simulator.next_event(), self.takeover];
        let others = others.into_iter().flatten();
        if self.is_leaderless() {
            return others.min();
        }
        let events = self.inventories.next_events_due().map(|instant| self.clock.moment(instant));
        let events = events.filter(|at| *at > self.now() && !self.running.has(&Work::Events));
        let queued = self.queue.iter().filter(|(pool, _)| self.running.may_reconcile(pool));
        let queued = queued.map(|(_, at)| *at);
        others.chain(self.next_poll()).chain(events).chain(queued).chain(self.release_due()).min()
    }

    /// When the controllers release ASGMachines without a pool, if there are any: nothing else may be due until then.
    fn release_due(&self) -> Option<DateTime<Utc>> {
        let api = self.api.state();
        let has_pool = |machine: &ASGMachine| {
            let mut pools = api.pools.all_cached();
            pools.any(|pool| belongs_to_pool(machine, pool))
        };
        let mut deleting =
            api.asg_machines.all_cached().filter(|machine| machine.metadata.deletion_timestamp.is_some());
        deleting.any(|machine| !has_pool(machine)).then_some(self.orphans_due)
    }

    /// When core looks again by itself; not while it is down.
    fn core_due(&self) -> Option<DateTime<Utc>> {
        if self.core.state().stopped { None } else { self.core.next_due() }
    }

    async fn take_events(&mut self) {
        let inventories = Arc::clone(&self.inventories);
        let task = Box::pin(async move {
            inventories.poll_events().await;
            Done::Nothing
        });
        self.begin(Work::Events, task).await;
    }

    /// The controllers release ASGMachines without a pool, once a minute. Nothing is drawn for it.
    async fn release_orphans(&mut self) {
        if self.is_leaderless() || self.now() < self.orphans_due || self.running.has(&Work::Orphans) {
            return;
        }
        self.orphans_due = self.now() + machine::INTERVAL;
        let context = Arc::clone(&self.context);
        let task = Box::pin(async move {
            machine::release_orphans(context.kubernetes.as_ref()).await;
            Done::Nothing
        });
        self.begin(Work::Orphans, task).await;
    }

    /// The controllers check the identities, in a world that has pools in another account. Nothing is drawn for it.
    async fn check_identities_if_due(&mut self) {
        if self.is_leaderless() || self.now() < self.identities_due || self.setup.account == DEFAULT_ACCOUNT {
            return;
        }
        if self.running.has(&Work::Identities) {
            return;
        }
        self.identities_due = self.now() + identity::INTERVAL;
        let context = Arc::clone(&self.context);
        let task = Box::pin(async move { Done::Woken(identity::check(&context, None).await) });
        self.begin(Work::Identities, task).await;
    }

    async fn poll(&mut self) {
        let inventories = Arc::clone(&self.inventories);
        let work = self.running.another_poll();
        let task = Box::pin(async move {
            inventories.poll_due().await;
            Done::Nothing
        });
        self.begin(work, task).await;
    }

    /// Writes whose sender does not wait for them have their effect.
    fn land(&mut self) {
        self.factory.shared.arrive(&self.simulator);
        let landed = self.api.state().land();
        if let Some(invariants) = &self.invariants {
            for write in &landed {
                invariants.landed(write);
            }
        }
    }

    /// Whether the process died and none follows yet.
    fn is_leaderless(&self) -> bool {
        self.takeover.is_some() && self.dead
    }

    /// The rules that hold at every step.
    fn check(&self) -> anyhow::Result<()> {
        let Some(invariants) = &self.invariants else { return Ok(()) };
        invariants.look();
        let broken = invariants.broken();
        if broken.is_empty() {
            return Ok(());
        }
        let told: Vec<String> = broken.iter().map(|one| format!("{}: {}", one.rule, one.what)).collect();
        bail!("{}", told.join("; "))
    }
}
