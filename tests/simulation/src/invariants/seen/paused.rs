//! What was seen of pauses.

use std::collections::BTreeMap;

use capasg_controllers::ObjectKey;
use chrono::{DateTime, TimeDelta, Utc};

use super::limits::GRACE;

/// What was seen of pauses.
#[derive(Default)]
pub(crate) struct Seen {
    /// The pool that is being reconciled although its caches showed a pause when that began.
    pub(crate) reconciled: Option<ObjectKey>,
    /// Pauses of anything that keeps a drain or its answer from going on.
    pub(crate) pauses: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    pub(crate) paused: bool,
    /// Since when each Cluster is paused that is.
    pub(crate) clusters: BTreeMap<ObjectKey, DateTime<Utc>>,
    /// Limits on drains by pool, with the moment until which each was the newest, or shown by caches.
    pub(crate) limits: BTreeMap<String, Vec<(DateTime<Utc>, TimeDelta)>>,
}

impl Seen {
    /// Whether the caches showed a pause when the reconcile under way began.
    pub(crate) fn is_reconciled_paused(&self) -> bool {
        self.reconciled.is_some()
    }

    /// Whether a pause of at least a third of the time since then kept us from answering a hook: heartbeats come at half
    /// its time-out. A pause that the last look found lasts until now.
    pub(crate) fn kept_from_answering(&self, since: DateTime<Utc>, at: DateTime<Utc>) -> bool {
        let lasting = self.pauses.last().filter(|_| self.paused).map(|(_, to)| (*to, at));
        let overlap = |(from, to): &(DateTime<Utc>, DateTime<Utc>)| {
            ((*to).min(at) - (*from).max(since)).max(TimeDelta::zero())
        };
        let all = self.pauses.iter().chain(&lasting);
        let paused = all.map(overlap).fold(TimeDelta::zero(), |sum, one| sum + one);
        paused >= (at - since) / 3
    }

    /// Keeps a limit on drains.
    pub(crate) fn limit(&mut self, pool: &str, limit: TimeDelta, now: DateTime<Utc>) {
        let known = self.limits.entry(pool.to_owned()).or_default();
        match known.iter_mut().find(|(_, known)| *known == limit) {
            Some((until, _)) => *until = now,
            None => known.push((now, limit)),
        }
    }

    /// The shortest limit that may still be acted on.
    pub(crate) fn shortest_limit(&self, pool: &str, limit: TimeDelta, now: DateTime<Utc>) -> TimeDelta {
        let known = self.limits.get(pool).into_iter().flatten();
        let recent = known.filter(|(until, _)| now - *until <= GRACE).map(|(_, limit)| *limit);
        recent.chain([limit]).min().unwrap_or(limit)
    }
}
