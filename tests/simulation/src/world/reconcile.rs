//! One reconcile of one pool: how it begins, and what follows when it ends.

use std::{sync::Arc, time::Duration};

use capasg_api::capi::pause_state;
use capasg_controllers::{
    ObjectKey,
    backoff::TRANSIENT,
    machine_pool::{self, ReconcileError, Requeue},
};
use chrono::TimeDelta;
use kube::ResourceExt;

use super::{
    World,
    pool::CLUSTER,
    running::{Attempt, Done, Ended, Work},
};

/// A reconcile that takes longer is given up, as the controllers' runtime does.
pub(crate) const RECONCILE_DEADLINE: Duration = Duration::from_mins(2);
/// A pool that nothing wakes is looked at again after this long.
const SYNC_PERIOD: TimeDelta = TimeDelta::minutes(10);

impl World {
    /// Whether the caches show a pause.
    fn shows_pause(&self, pool: &ObjectKey) -> bool {
        let api = self.api.state();
        let Some(own) = api.pools.cached(pool) else { return false };
        let known = self.pools.iter().find(|known| known.key == *pool);
        let cluster = known.map_or_else(|| pool.sibling(CLUSTER), |known| known.cluster.clone());
        let cluster = api.clusters.cached(&cluster);
        pause_state(cluster.as_deref(), own.annotations()).is_paused()
    }

    /// A reconcile begins.
    pub(super) async fn reconcile(&mut self, pool: ObjectKey) {
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
        let context = Arc::clone(&self.context);
        let work = Work::Reconcile(pool.clone());
        let began = self.now();
        let attempt = Attempt { pool, began, is_resync, was_to_wake, version, writes };
        let task = Box::pin(async move {
            let work = machine_pool::reconcile(&context, &attempt.pool);
            let ended = tokio::time::timeout(RECONCILE_DEADLINE, work).await;
            Done::Reconciled(attempt, ended)
        });
        self.begin(work, task).await;
    }

    /// A reconcile ended: the pool is reconciled again when it asks for it, or after a backoff.
    pub(super) fn reconciled(&mut self, attempt: Attempt, ended: Ended) {
        if self.is_concurrent() {
            self.take_wakes();
        }
        let pool = &attempt.pool;
        if let Some(invariants) = &self.invariants {
            invariants.turns_to(pool);
            let is_done = matches!(&ended, Ok(Ok(next)) if next.failed.is_empty());
            invariants.unwanted_refreshes_are_cancelled(pool, is_done);
            // What woke the pool while its reconcile went on may be what that acted on.
            let is_woken = self.queue.contains_key(pool);
            // The journal does not tell the writes of another pool that was reconciled meanwhile.
            let is_alone = self.running.reconciles() == 0
                && self.last_reconciles.last().is_none_or(|(_, ended)| *ended < attempt.began);
            if attempt.is_resync && !attempt.was_to_wake && !is_woken && is_alone {
                let written = self.api.state().ledger.last_version() - attempt.version;
                let made = self.journal.since(attempt.writes);
                invariants.nothing_waits_for_the_resync(pool, &made, written, self.setup.events);
            }
        }
        let now = self.now();
        self.last_reconciles.push((attempt.began, now));
        let told = |error: &ReconcileError| (error.operation(), error.curve(), error.to_string());
        let (after, failed) = match ended {
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
        if self.api.state().pools.cached(pool).is_some() {
            let at = now + wait;
            if waits_for_resync && wait == after && !self.queue.contains_key(pool) {
                self.resyncs.insert(pool.clone(), at);
            }
            // A wake that came meanwhile is earlier.
            self.queue.entry(attempt.pool).and_modify(|due| *due = (*due).min(at)).or_insert(at);
        }
    }
}
