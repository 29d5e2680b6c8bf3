//! A pool that reports that it runs has ready Nodes.

use std::sync::Arc;

use capasg_api::{
    capi::Machine,
    names::{labels, must_format_value},
    pool::Phase,
};
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::state::{Inner, Invariants};
use crate::Pool;

/// What the caches show is reported within this time, whatever fails: a reconcile whose calls hang is given up after two
/// minutes, and calls hang four times at most.
const REPORTED: TimeDelta = TimeDelta::minutes(15);

impl Invariants {
    /// No pool stays `Running` while fewer of its Machines are ready than it reports as desired.
    ///
    /// Exempt: what the caches do not show yet.
    pub(super) fn what_runs_has_ready_nodes(&self, inner: &mut Inner, now: DateTime<Utc>) {
        for pool in inner.pools.clone() {
            let Some((ready, desired)) = self.short_of_nodes(&pool) else {
                inner.short_of_nodes.remove(&pool.key.name);
                continue;
            };
            let since = *inner.short_of_nodes.entry(pool.key.name.clone()).or_insert(now);
            if now - since > REPORTED {
                inner.short_of_nodes.remove(&pool.key.name);
                let what = format!("{} is Running with {ready} of {desired} ready", pool.key.name);
                inner.breaks(now, "what_runs_has_ready_nodes", what);
            }
        }
    }

    /// The ready and the desired replicas of a pool that says `Running` although they differ.
    fn short_of_nodes(&self, pool: &Pool) -> Option<(usize, usize)> {
        let api = self.api.state();
        let own = api.pools.get(&pool.key)?;
        let status = own.status.as_ref().filter(|status| status.phase == Some(Phase::Running))?;
        let most = own.spec.max_size.unwrap_or(i32::MAX);
        let desired = usize::try_from(status.desired_replicas.min(most)).ok()?;
        let label = must_format_value(&pool.machine_pool.name);
        let is_ready = |machine: &&Arc<Machine>| {
            machine.labels().get(labels::POOL_NAME) == Some(&label)
                && machine.has_node()
                && machine.is_ready()
                && !machine.is_deleting()
        };
        let ready = api.machines.all_cached().filter(is_ready).count();
        (ready < desired).then_some((ready, desired))
    }
}
