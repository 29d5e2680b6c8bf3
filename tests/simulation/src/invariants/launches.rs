//! Launches that fail are reported.

use capasg_api::{
    conditions::{self, CLOUD_REACHABLE, SCALING_HEALTHY},
    names::{annotations, tags},
    reasons::NOT_YET_REPORTED,
};
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::state::{Inner, Invariants};
use crate::Pool;

/// So many launches in a row fail before it counts.
const SEVERAL: usize = 3;
/// The last of them began at most this long ago: AWS tries again, with a backoff of minutes.
const TRIED: TimeDelta = TimeDelta::minutes(5);
/// They are reported within this time. A lack of instances is waited for first, in case AWS ends it, and activities are read
/// every few minutes.
const REPORTED: TimeDelta = TimeDelta::minutes(15);
/// How often the activities are looked at.
const LOOK: TimeDelta = TimeDelta::seconds(30);
/// What somebody caused, and what was called off.
const NO_FAILURES: [&str; 2] = ["Client.UserInitiated", "The instance was ended while it was launched."];

impl Invariants {
    /// Where launches fail again and again, `ScalingHealthy` is False.
    ///
    /// Exempt: a pool that is not reconciled, and one that reports that AWS cannot be read: `CloudReachable` is not True, or
    /// `ScalingHealthy` is Unknown since activities cannot be read.
    pub(super) fn failed_launches_are_reported(&self, inner: &mut Inner, now: DateTime<Utc>) {
        if now - inner.launches.looked < LOOK {
            return;
        }
        inner.launches.looked = now;
        for pool in inner.pools.clone() {
            let name = pool.key.name.clone();
            if !self.fails_unreported(&pool, now) {
                inner.launches.unreported.remove(&name);
                continue;
            }
            let since = *inner.launches.unreported.entry(name.clone()).or_insert(now);
            if now - since > REPORTED {
                inner.launches.unreported.remove(&name);
                let what = format!("launches of {name} fail, and ScalingHealthy says nothing of it");
                inner.breaks(now, "failed_launches_are_reported", what);
            }
        }
    }

    /// Whether launches of a pool fail, and its status does not say so.
    fn fails_unreported(&self, pool: &Pool, now: DateTime<Utc>) -> bool {
        if !self.is_reconciled(pool) {
            return false;
        }
        let Some(object) = self.api.state().pools.get(&pool.key) else { return false };
        let owner = object.annotations().get(annotations::OWNER_ID);
        let says = |type_| {
            let status = object.status.as_ref()?;
            conditions::get(&status.conditions, type_).filter(|told| told.reason != NOT_YET_REPORTED)
        };
        let is_told = |type_| says(type_).is_some_and(|told| told.status != "True");
        if is_told(SCALING_HEALTHY) || is_told(CLOUD_REACHABLE) {
            return false;
        }
        // Those of a group of others are not the pool's.
        if owner.cloned() != self.simulator.tag_of(&self.at(&pool.group), &pool.group, tags::OWNER_ID) {
            return false;
        }
        let mut failed = self.simulator.failed_launches(&self.at(&pool.group), &pool.group);
        failed.retain(|(_, words)| !NO_FAILURES.iter().any(|one| words.contains(one)));
        failed.len() >= SEVERAL && failed.last().is_some_and(|(began, _)| now - *began <= TRIED)
    }
}
