//! Nothing is written while paused, neither to the cloud nor to Kubernetes, but what rules F allow.

use capasg_api::names::annotations;
use capasg_cloud::{Clock, Write};
use capasg_controllers::{ObjectKey, kubernetes::KubeWrite};
use chrono::{DateTime, Utc};
use kube::ResourceExt;

use super::state::{Inner, Invariants};

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
