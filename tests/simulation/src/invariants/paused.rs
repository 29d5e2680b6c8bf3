//! Nothing is written while paused, neither to the cloud nor to Kubernetes, but what rules F allow.

use capasg_api::{capi::pause_state, names::annotations};
use capasg_cloud::{Clock, Write};
use capasg_controllers::{ObjectKey, kubernetes::KubeWrite};
use chrono::{DateTime, Utc};
use kube::ResourceExt;

use super::state::{Inner, Invariants};
use crate::Pool;

impl Invariants {
    /// A reconcile begins, of a pool that its caches show paused or not.
    pub(crate) fn reconcile_begins(&self, pool: &ObjectKey, paused: bool) {
        let mut inner = self.inner();
        inner.turn_to(pool);
        inner.paused.reconciled = paused.then(|| pool.clone());
        let own = inner.pools.iter().find(|own| own.key == *pool).cloned();
        if let Some(own) = own {
            self.note_begin(&mut inner, &own, self.clock.now());
            self.note_revision(&mut inner, pool);
            self.note_rollout(&mut inner, pool, self.clock.now());
        }
    }

    /// While paused, only the condition is told and our own hold on a move is let go (F1, F2, F5).
    pub(super) fn a_paused_pool_is_left_alone(inner: &mut Inner, now: DateTime<Utc>, write: &KubeWrite) {
        let Some(pool) = inner.paused.reconciled.clone() else { return };
        let allowed = matches!(
            write,
            KubeWrite::PatchPoolStatus { .. }
                | KubeWrite::PatchAsgMachineStatus { .. }
                | KubeWrite::AnnotateBlockMove { blocked: false, .. }
        );
        if !allowed {
            inner.breaks(now, "a_paused_pool_is_left_alone", format!("{pool} is paused: {}", write.what()));
        }
    }

    /// While paused, the cloud is only asked.
    pub(super) fn a_paused_cloud_is_left_alone(inner: &mut Inner, now: DateTime<Utc>, write: &Write) {
        if let Some(pool) = inner.paused.reconciled.clone() {
            inner.breaks(now, "a_paused_pool_is_left_alone", format!("{pool} is paused: {}", write.api()));
        }
    }

    /// No reconcile that begins once the Cluster is paused terminates an instance, whatever the caches show: a termination
    /// cannot be undone, and a move does not wait for one that begins later (M8).
    pub(super) fn a_termination_waits_for_the_pause(
        &self,
        inner: &mut Inner,
        now: DateTime<Utc>,
        write: &Write,
    ) {
        let Write::TerminateInstances { group, .. } = write else { return };
        let Some(cluster) = Self::pool_of_group(inner, group).map(|pool| pool.cluster.clone()) else {
            return;
        };
        let Some(since) = inner.paused.clusters.get(&cluster).copied() else { return };
        let is_paused = self.api.state().clusters.get(&cluster).is_some_and(|cluster| cluster.is_paused());
        if is_paused && since < inner.begun.at {
            let what =
                format!("the Cluster is paused since {} s: {}", (now - since).num_seconds(), write.api());
            inner.breaks(now, "a_termination_waits_for_the_pause", what);
        }
    }

    /// Whether a pool is reconciled: it, its `MachinePool` and its Cluster are there and do not go, it may use its identity, and
    /// it is paused neither in truth nor in the caches.
    pub(super) fn is_reconciled(&self, pool: &Pool) -> bool {
        let api = self.api.state();
        let (object, shown) = (api.pools.get(&pool.key), api.pools.cached(&pool.key));
        let owner = api.machine_pools.get(&pool.machine_pool);
        let Some(cluster) = api.clusters.get(&pool.cluster) else { return false };
        let (Some(object), Some(shown), Some(owner)) = (object, shown, owner) else { return false };
        let stay = [&object.metadata, &owner.metadata, &cluster.metadata];
        let known = api.clusters.cached(&pool.cluster);
        api.may_call(&object)
            && stay.iter().all(|meta| meta.deletion_timestamp.is_none())
            && !pause_state(Some(&cluster), object.annotations()).is_paused()
            && !pause_state(known.as_deref(), shown.annotations()).is_paused()
    }

    /// Keeps the times at which anything was paused, and the limits on drains.
    pub(super) fn note_pauses(&self, inner: &mut Inner) {
        let now = self.clock.now();
        let paused = |annotated: &std::collections::BTreeMap<String, String>| {
            annotated.contains_key(annotations::PAUSED)
                || annotated.contains_key(annotations::DELETE_FOR_MOVE)
        };
        let (clusters, any) = {
            let api = self.api.state();
            let clusters = api.clusters.iter().filter(|(_, cluster)| cluster.is_paused());
            let clusters: Vec<ObjectKey> = clusters.map(|(key, _)| key.clone()).collect();
            let others = api.pools.iter().any(|(_, own)| paused(own.annotations()))
                || api.machine_pools.iter().any(|(_, own)| paused(own.annotations()));
            // A stalled watch may show a pause that is over.
            let shown = api.clusters.all_cached().any(|cluster| cluster.is_paused())
                || api.pools.all_cached().any(|own| paused(own.annotations()));
            let refused = api.pools.iter().any(|(_, own)| !api.may_call(own));
            let any = !clusters.is_empty() || others || shown || refused;
            (clusters, any)
        };
        let seen = &mut inner.paused;
        let before = std::mem::take(&mut seen.clusters);
        let since = |key: &ObjectKey| before.get(key).copied().unwrap_or(now);
        seen.clusters = clusters.into_iter().map(|key| (key.clone(), since(&key))).collect();
        match (any, seen.paused) {
            (true, false) => seen.pauses.push((now, now)),
            (_, true) => {
                if let Some((_, to)) = seen.pauses.last_mut() {
                    *to = now;
                }
            }
            _ => {}
        }
        seen.paused = any;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use anyhow::Result;
    use chrono::TimeDelta;

    use super::*;
    use crate::{Setup, World, run};

    #[test]
    fn a_termination_may_be_under_way_when_the_pause_comes_but_begins_no_later() -> Result<()> {
        run(async {
            let mut world = World::new(Setup { watch: false, ..Setup::default() });
            let pool = world.add_pool("workers", 1);
            let invariants = world.invariants().unwrap();
            let write = Write::TerminateInstances {
                group: pool.group.clone(),
                instances: BTreeSet::from(["i-1".to_owned()]),
                decrement: true,
            };
            let breaks = || {
                invariants.look();
                let mut inner = invariants.inner();
                let now = invariants.clock.now();
                invariants.a_termination_waits_for_the_pause(&mut inner, now, &write);
                !inner.broken.is_empty()
            };
            let clock = &world.clock;
            let wait = async || clock.sleep_until(clock.now() + TimeDelta::seconds(1)).await;
            invariants.reconcile_begins(&pool.key, false);
            wait().await;
            assert!(!breaks(), "nothing is paused");
            world.edit_cluster(|cluster| cluster.spec.paused = Some(true));
            invariants.look();
            wait().await;
            assert!(!breaks(), "it was decided before");
            invariants.reconcile_begins(&pool.key, false);
            assert!(breaks(), "a reconcile that begins later reads the Cluster first");
        })
    }
}
