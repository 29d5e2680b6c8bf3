//! A call that AWS denies for minutes is reported by a condition of the pool.

use capasg_api::capi::pause_state;
use capasg_cloud::Clock;
use chrono::TimeDelta;
use kube::ResourceExt;

use super::state::{Inner, Invariants};

/// A denial that has lasted this long is reported.
const REPORTED_WITHIN: TimeDelta = TimeDelta::minutes(5);
/// A call that is needed is repeated after this long at the latest (docs/contributors/architecture.md, "From a change to a
/// call"): a later one is about something else.
const REPEATED_WITHIN: TimeDelta = TimeDelta::minutes(17);
/// Reads of the event queue are reported for pools that depend on events alone (docs/users/events.md). Without instance
/// types a pool has no `status.capacity`, which an event reports.
const UNREPORTED: [&str; 4] =
    ["ReceiveMessage", "DeleteMessageBatch", "GetQueueUrl", "DescribeInstanceTypes"];

impl Invariants {
    /// Another process begins, and has seen nothing yet.
    pub(crate) fn begins(&self) {
        self.inner().denied.clear();
    }

    /// A call that is denied again after minutes, without a success in between, is in a condition that is not `True`: its
    /// operation, or AWS's code.
    ///
    /// Exempt: a paused pool, whose conditions stay as they are, and the first minutes of a process, which reports what it
    /// has seen.
    pub(super) fn a_lasting_denial_is_reported(
        &self,
        inner: &mut Inner,
        api: &'static str,
        denied: Option<&str>,
    ) {
        let now = self.clock.now();
        let Some(code) = denied else {
            inner.denied.remove(api);
            return;
        };
        let (since, last) = inner.denied.entry(api).or_insert((now, now));
        if now - *last > REPEATED_WITHIN {
            *since = now;
        }
        *last = now;
        let since = *since;
        // With several pools it is not known which one calls.
        let [pool] = &inner.pools[..] else { return };
        if now - since < REPORTED_WITHIN || UNREPORTED.contains(&api) {
            return;
        }
        let (object, cluster) = {
            let state = self.api.state();
            (state.pools.get(&pool.key), state.clusters.iter().next().map(|(_, cluster)| cluster.clone()))
        };
        let Some(object) = object else { return };
        let is_paused = pause_state(cluster.as_deref(), object.annotations()).is_paused();
        let conditions = object.status.iter().flat_map(|status| &status.conditions);
        let says = |text: &str| text.contains(api) || text.contains(code);
        let is_reported = conditions
            .into_iter()
            .any(|one| one.status != "True" && (says(&one.message) || says(&one.reason)));
        if !is_paused && !is_reported {
            let what = format!("{api} is denied ({code}) since {} s", (now - since).num_seconds());
            inner.breaks(now, "a_lasting_denial_is_reported", what);
        }
    }
}
