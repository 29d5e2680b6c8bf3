//! The scheduler: who acts next, drawn from all who could, and what happens when a reconcile fails or dies.

use std::{sync::Arc, time::Duration};

use anyhow::bail;
use capasg_api::{
    ASGMachine,
    capi::{pause_state, pool_owner_of_machine},
};
use capasg_controllers::{
    ObjectKey,
    backoff::TRANSIENT,
    identity, machine,
    machine_pool::{self, ReconcileError, Requeue},
};
use capasg_fake_aws::DEFAULT_ACCOUNT;
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::{World, people::LEASE};
use crate::VirtualClock;

/// A reconcile that takes longer is given up, as the controllers' runtime does.
const RECONCILE_DEADLINE: Duration = Duration::from_mins(2);
/// A pool that nothing wakes is looked at again after this long.
const SYNC_PERIOD: TimeDelta = TimeDelta::minutes(10);
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
    /// Writes of a process that died.
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
            self.sleep(next).await;
        }
        Ok(())
    }

    /// Lets time pass. Timers are exact to the millisecond only.
    pub(super) async fn sleep(&self, until: DateTime<Utc>) {
        self.clock.sleep_until(until.max(self.now() + TimeDelta::milliseconds(1))).await;
        self.simulator.set_time(self.now());
        if let Some(invariants) = &self.invariants {
            invariants.look_at_cloud();
        }
    }

    /// One action of one of those who could act; tells whether there was one.
    pub(super) async fn act(&mut self) -> anyhow::Result<bool> {
        if self.takeover.is_some_and(|at| at <= self.now()) {
            self.restart();
        }
        while let Ok((place, group)) = self.changes.try_recv() {
            for pool in self.context.pools_of(&place, &group) {
                self.wake(pool);
            }
        }
        let woken = self.api.state().take_woken();
        for pool in woken {
            self.wake(pool);
        }
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
        if self.journal.take_death() {
            if let Some(invariants) = &self.invariants {
                invariants.note("manager", || "the process dies".to_owned());
            }
            self.dead = true;
            if self.journal.take_in_flight() {
                // It did not give its lease back: whoever comes next waits for its end, and with it for the write.
                self.takeover.get_or_insert(self.now() + LEASE);
            }
            if self.takeover.is_none() {
                tokio::time::sleep(TAKEOVER).await;
                self.restart();
            }
        }
        self.watch()?;
        self.check()?;
        Ok(true)
    }

    pub(super) fn wake(&mut self, pool: ObjectKey) {
        let now = self.now();
        self.resyncs.remove(&pool);
        self.queue.insert(pool, now);
    }

    fn ready(&self) -> Vec<Action> {
        let now = self.now();
        let mut ready = Vec::new();
        let (delivery, landing, version) = {
            let api = self.api.state();
            (api.next_delivery(), api.next_landing(), api.ledger.last_version())
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
        if self.inventories.next_due().is_some_and(|due| self.clock.moment(due) <= now) {
            ready.push(Action::Poll);
        }
        if self.setup.events && self.has_events() {
            ready.push(Action::Events);
        }
        let due = self.queue.iter().filter(|(_, at)| **at <= now);
        ready.extend(due.map(|(pool, _)| Action::Reconcile(pool.clone())));
        ready
    }

    /// Whether messages wait for whoever would take them, or were seen.
    fn has_events(&self) -> bool {
        let may_receive =
            self.inventories.next_events_due().is_some_and(|at| self.clock.moment(at) <= self.now());
        (may_receive && self.simulator.has_messages(&self.scope())) || self.inventories.has_events_to_delete()
    }

    pub(super) fn next_due(&self) -> Option<DateTime<Utc>> {
        let (delivery, landing) = {
            let api = self.api.state();
            (api.next_delivery(), api.next_landing())
        };
        let others = [delivery, landing, self.core_due(), self.simulator.next_event(), self.takeover];
        let others = others.into_iter().flatten();
        if self.is_leaderless() {
            return others.min();
        }
        let moment = |instant| self.clock.moment(instant);
        let events = self.inventories.next_events_due().map(moment).filter(|at| *at > self.now());
        let polls = self.inventories.next_due().map(moment);
        let queued = self.queue.values().copied();
        others.chain(polls).chain(events).chain(queued).chain(self.release_due()).min()
    }

    /// When the controllers release ASGMachines without a pool, if there are any: nothing else may be due until then.
    fn release_due(&self) -> Option<DateTime<Utc>> {
        let api = self.api.state();
        let has_pool = |machine: &ASGMachine| {
            let pool =
                pool_owner_of_machine(machine).map(|owner| ObjectKey::of(machine).sibling(&owner.name));
            pool.is_some_and(|pool| api.pools.cached(&pool).is_some())
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
        let taking = self.inventories.poll_events();
        tokio::select! {
            biased;
            () = self.journal.death() => {}
            () = taking => {}
        }
    }

    /// The controllers release ASGMachines without a pool, once a minute. Nothing is drawn for it.
    async fn release_orphans(&mut self) {
        if self.is_leaderless() || self.now() < self.orphans_due {
            return;
        }
        self.orphans_due = self.now() + machine::INTERVAL;
        let releasing = machine::release_orphans(self.context.kubernetes.as_ref());
        tokio::select! {
            biased;
            () = self.journal.death() => {}
            () = releasing => {}
        }
    }

    /// The controllers check the identities, in a world that has pools in another account. Nothing is drawn for it.
    async fn check_identities_if_due(&mut self) {
        if self.is_leaderless() || self.now() < self.identities_due || self.setup.account == DEFAULT_ACCOUNT {
            return;
        }
        self.identities_due = self.now() + identity::INTERVAL;
        let context = Arc::clone(&self.context);
        let woken = tokio::select! {
            biased;
            () = self.journal.death() => Vec::new(),
            woken = identity::check(&context, None) => woken,
        };
        for pool in woken {
            self.wake(pool);
        }
    }

    async fn poll(&mut self) {
        let polls = self.inventories.poll_due();
        tokio::select! {
            biased;
            () = self.journal.death() => {}
            () = polls => {}
        }
    }

    /// Writes of a process that died have their effect.
    fn land(&mut self) {
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

    /// Whether the caches show a pause.
    fn shows_pause(&self, pool: &ObjectKey) -> bool {
        let api = self.api.state();
        let Some(own) = api.pools.cached(pool) else { return false };
        let cluster = api.clusters.all_cached().next().cloned();
        pause_state(cluster.as_deref(), own.annotations()).is_paused()
    }

    async fn reconcile(&mut self, pool: ObjectKey) {
        let due = self.queue.remove(&pool);
        let is_resync = due.is_some() && self.resyncs.remove(&pool) == due;
        let writes = self.journal.len();
        let (was_to_wake, version) = {
            let api = self.api.state();
            (api.is_to_wake(&pool), api.ledger.last_version())
        };
        self.reconciles += 1;
        if let Some(invariants) = &self.invariants {
            invariants.reconcile_begins(&pool, self.shows_pause(&pool));
        }
        let work = machine_pool::reconcile(&self.context, &pool);
        let result = tokio::select! {
            biased;
            () = self.journal.death() => return,
            () = lease_ends(self.clock.as_ref(), self.takeover) => return,
            result = tokio::time::timeout(RECONCILE_DEADLINE, work) => result,
        };
        if let Some(invariants) = &self.invariants {
            let is_done = matches!(&result, Ok(Ok(next)) if next.failed.is_empty());
            invariants.unwanted_refreshes_are_cancelled(&pool, is_done);
            if is_resync && !was_to_wake {
                let written = self.api.state().ledger.last_version() - version;
                let made = self.journal.since(writes);
                invariants.nothing_waits_for_the_resync(&pool, &made, written, self.setup.events);
            }
        }
        let now = self.now();
        let told = |error: &ReconcileError| (error.operation(), error.curve(), error.to_string());
        let (after, failed) = match result {
            Ok(Ok(Requeue { after, failed })) => (after, failed.iter().map(told).collect()),
            Ok(Err(error)) => (None, vec![told(&error)]),
            Err(_) => (None, vec![("deadline", TRANSIENT, "the reconcile took too long".to_owned())]),
        };
        let waits_for_resync = after.is_none_or(|after| after > SYNC_PERIOD);
        let after = after.unwrap_or(SYNC_PERIOD).clamp(TimeDelta::zero(), SYNC_PERIOD);
        self.errors.extend(failed.iter().map(|(_, _, text)| (now, pool.clone(), text.clone())));
        let failed = failed.into_iter().map(|(operation, curve, _)| (operation, curve));
        let retry = self.failures.entry(pool.clone()).or_default().record(failed, now);
        let wait = retry.map_or(after, |retry| after.min(retry));
        if self.api.state().pools.cached(&pool).is_some() {
            let at = now + wait;
            if waits_for_resync && wait == after {
                self.resyncs.insert(pool.clone(), at);
            }
            // A wake that came meanwhile is earlier.
            self.queue.entry(pool).and_modify(|due| *due = (*due).min(at)).or_insert(at);
        }
    }
}

/// A leader that loses its lease exits at once.
async fn lease_ends(clock: &VirtualClock, takeover: Option<DateTime<Utc>>) {
    match takeover {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}
