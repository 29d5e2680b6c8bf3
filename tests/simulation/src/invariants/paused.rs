//! Nothing is written while paused, neither to the cloud nor to Kubernetes, but what rules F allow.

use std::collections::BTreeMap;

use capasg_api::names::annotations;
use capasg_cloud::{Clock, Write};
use capasg_controllers::{ObjectKey, kubernetes::KubeWrite};
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::{Inner, Invariants};

/// What was seen of pauses.
#[derive(Default)]
pub(super) struct Seen {
    /// The pool that is being reconciled although its caches showed a pause when that began.
    reconciled: Option<ObjectKey>,
    /// Pauses of anything that keeps a drain or its answer from going on.
    pauses: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    paused: bool,
    /// Limits on drains by pool, with the moment until which each was the newest.
    limits: BTreeMap<String, Vec<(DateTime<Utc>, TimeDelta)>>,
}

impl Seen {
    /// Whether the caches showed a pause when the reconcile under way began.
    pub(super) fn is_reconciled_paused(&self) -> bool {
        self.reconciled.is_some()
    }

    /// Whether a pause of at least half the time since then kept us from answering a hook: heartbeats come at half its
    /// time-out.
    pub(super) fn kept_from_answering(&self, since: DateTime<Utc>, at: DateTime<Utc>) -> bool {
        let overlap = |(from, to): &(DateTime<Utc>, DateTime<Utc>)| {
            ((*to).min(at) - (*from).max(since)).max(TimeDelta::zero())
        };
        let paused = self.pauses.iter().map(overlap).fold(TimeDelta::zero(), |sum, one| sum + one);
        paused >= (at - since) / 3
    }

    /// Keeps a limit on drains.
    pub(super) fn limit(&mut self, pool: &str, limit: TimeDelta, now: DateTime<Utc>) {
        let known = self.limits.entry(pool.to_owned()).or_default();
        match known.last_mut() {
            Some((until, last)) if *last == limit => *until = now,
            _ => known.push((now, limit)),
        }
    }

    /// The shortest limit that may still be acted on.
    pub(super) fn shortest_limit(&self, pool: &str, limit: TimeDelta, now: DateTime<Utc>) -> TimeDelta {
        let known = self.limits.get(pool).into_iter().flatten();
        let recent = known.filter(|(until, _)| now - *until <= super::GRACE).map(|(_, limit)| *limit);
        recent.chain([limit]).min().unwrap_or(limit)
    }
}

impl Invariants {
    /// A reconcile begins, of a pool that its caches show paused or not.
    pub(crate) fn reconcile_begins(&self, pool: &ObjectKey, paused: bool) {
        let mut inner = self.inner();
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

    /// Keeps the times at which anything was paused, and the limits on drains.
    pub(super) fn note_pauses(&self, inner: &mut Inner) {
        let now = self.clock.now();
        let paused = |annotated: &std::collections::BTreeMap<String, String>| {
            annotated.contains_key(annotations::PAUSED)
                || annotated.contains_key(annotations::DELETE_FOR_MOVE)
        };
        let any = {
            let api = self.api.state();
            api.clusters.iter().any(|(_, cluster)| cluster.is_paused())
                || api.pools.iter().any(|(_, own)| paused(own.annotations()))
                || api.machine_pools.iter().any(|(_, own)| paused(own.annotations()))
        };
        let seen = &mut inner.paused;
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
