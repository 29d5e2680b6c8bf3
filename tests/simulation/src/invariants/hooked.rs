//! Where the spec has terminations held, our hook is there to hold them.

use capasg_api::{
    capi::pause_state,
    names::TERMINATE_HOOK,
    pool::{ChangePolicy, OnCloudTermination},
};
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::state::{Inner, Invariants};
use crate::Pool;

/// A hook that somebody else deleted is read again within 66 minutes (docs/contributors/architecture.md, "The inventory"): no list of
/// groups contains hooks, and AWS tells of no change of them. Then it is put as otherwise.
const READ_AGAIN: TimeDelta = TimeDelta::minutes(66 + 3);

/// Otherwise it is put at once, also by a controller that starts (docs/contributors/architecture.md): beside that, what a reconcile
/// takes while calls are throttled.
const PUT: TimeDelta = TimeDelta::minutes(3);

/// What reads and puts it.
const NEEDED: [&str; 3] = ["PutLifecycleHook", "DescribeLifecycleHooks", "DescribeAutoScalingGroups"];

impl Invariants {
    /// Keeps until when our hook was there, or was not to be, and each pool as it was last.
    pub(super) fn note_hooks(&self, inner: &mut Inner, now: DateTime<Utc>) {
        for pool in inner.pools.clone() {
            if let Some(object) = self.api.state().pools.get(&pool.key) {
                inner.drained.last.insert(pool.key.name.clone(), object);
            }
            if !self.is_wanted(&pool)
                || self.simulator.desired(&self.at(&pool.group), &pool.group).is_none()
                || self.simulator.has_hook(&self.at(&pool.group), &pool.group, TERMINATE_HOOK)
            {
                inner.drained.hooked.insert(pool.group.clone(), now);
            }
        }
    }

    /// Whether the spec has terminations held and nothing keeps us from doing so.
    fn is_wanted(&self, pool: &Pool) -> bool {
        let api = self.api.state();
        let Some(object) = api.pools.get(&pool.key) else { return false };
        let cluster = api.clusters.get(&pool.cluster);
        object.metadata.deletion_timestamp.is_none()
            && object.spec.drain(None).on_cloud_termination == OnCloudTermination::Drain
            && object.spec.change_policy() != ChangePolicy::Preview
            && api.pools.cached(&pool.key).as_deref() == Some(&*object)
            && !pause_state(cluster.as_deref(), object.annotations()).is_paused()
            && api.may_call(&object)
    }

    /// Whether our hook could not be expected to hold what ends now.
    pub(super) fn is_unhooked(inner: &Inner, pool: &Pool, at: DateTime<Utc>) -> bool {
        let since = [inner.drained.hooked.get(&pool.group).copied(), inner.failures.over(&NEEDED)];
        let limit = if inner.drained.unhooked.contains_key(&pool.group) { READ_AGAIN } else { PUT };
        // A group without any history is just being created.
        since.into_iter().flatten().max().is_none_or(|since| at - since <= limit)
    }
}
