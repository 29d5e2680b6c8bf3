//! A call that AWS denies or fails for minutes is reported by a condition of the pool.

use capasg_api::{ASGMachine, ASGMachinePoolStatus, capi::pause_state, reasons::cloud_reachable};
use capasg_cloud::{Clock, CloudError, ErrorClass};
use capasg_controllers::kubernetes::KubeWrite;
use chrono::TimeDelta;
use kube::ResourceExt;

use crate::Pool;

use super::{
    seen::failing::Failing,
    state::{Inner, Invariants},
};

/// A failure that has lasted this long is reported.
const REPORTED_WITHIN: TimeDelta = TimeDelta::minutes(5);
/// A call that is needed is repeated after this long at the latest (docs/contributors/architecture.md, "From a change to a
/// call"): a later one is about something else.
const REPEATED_WITHIN: TimeDelta = TimeDelta::minutes(17);
/// The same for a call that AWS does not reject: it is retried with the backoff of its pool.
const RETRIED_WITHIN: TimeDelta = TimeDelta::minutes(2);
/// Reads of the event queue are reported for pools that depend on events alone (docs/users/events.md). Without instance
/// types a pool has no `status.capacity`, which an event reports. A pool keeps the image that a parameter named last
/// (docs/users/images.md).
const UNREPORTED: [&str; 5] =
    ["ReceiveMessage", "DeleteMessageBatch", "GetQueueUrl", "DescribeInstanceTypes", "GetParameter"];

/// While no launch is missing, it is read for the causes of terminations alone.
const ACTIVITIES: &str = "DescribeScalingActivities";

/// Reasons that hold for every call.
const UNREACHABLE: [&str; 2] = [cloud_reachable::ACCESS_DENIED, cloud_reachable::CLOUD_NOT_REACHABLE];

impl Invariants {
    /// Another process begins, and has seen nothing yet.
    pub(crate) fn begins(&self) {
        self.inner().failing.clear();
    }

    /// Whether as many instances are there as are desired, and every instance that AWS ends for an unknown cause says why the
    /// cause is not known.
    fn reads_causes_alone(&self, pool: &Pool) -> bool {
        let (scope, group) = (self.at(&pool.group), &pool.group);
        let counted = i64::try_from(self.simulator.counted(&scope, group).len()).unwrap_or(i64::MAX);
        let own = format!("{}-i-", pool.key.name);
        let says = |machine: &ASGMachine| {
            let conditions = machine.status.iter().flat_map(|status| &status.conditions);
            let mut unknown = conditions.filter(|one| one.message.contains("the cause is unknown"));
            unknown.all(|one| one.message.contains("could not be read"))
        };
        self.simulator.desired(&scope, group).is_some_and(|desired| counted >= desired)
            && self
                .api
                .state()
                .asg_machines
                .iter()
                .filter(|(key, _)| key.name.starts_with(&own))
                .all(|(_, own)| says(own))
    }

    /// A call that AWS denies or fails again after minutes, without a success in between, was in a condition that is not `True`
    /// in the meantime: its operation, AWS's code, or that AWS denies access or is not reachable. What is read for single
    /// instances is reported by these.
    ///
    /// Exempt: a paused pool, whose conditions stay as they are, and the first minutes of a process, which reports what it
    /// has seen.
    pub(super) fn a_lasting_failure_is_reported(
        &self,
        inner: &mut Inner,
        api: &'static str,
        failure: Option<&CloudError>,
    ) {
        let now = self.clock.now();
        let Some(error) = failure else {
            inner.failing.remove(api);
            return;
        };
        if UNREPORTED.contains(&api) {
            return;
        }
        let code = error.code.as_str();
        let repeated = if error.class == ErrorClass::Denied { REPEATED_WITHIN } else { RETRIED_WITHIN };
        // With several pools it is not known which one calls.
        let [pool] = &inner.pools[..] else { return };
        let (object, cluster) = {
            let state = self.api.state();
            (state.pools.get(&pool.key), state.clusters.get(&pool.cluster))
        };
        let Some(object) = object else { return };
        // AWS validates the security groups that the spec names by ID, when the launch template is pinned.
        if api == "DescribeSecurityGroups"
            && object.spec.machine.security_groups.iter().all(|one| one.id.is_some())
        {
            return;
        }
        let is_paused = pause_state(cluster.as_deref(), object.annotations()).is_paused();
        let is_reported = object.status.as_ref().is_some_and(|status| reports(status, api, code))
            || api == ACTIVITIES && self.reads_causes_alone(pool);
        let seen = inner.failing.entry(api).or_insert_with(|| Failing {
            code: code.to_owned(),
            denied: error.class == ErrorClass::Denied,
            repeated_by: now,
            unreported: None,
        });
        // AWS that fails to answer denies no more.
        let denied = error.class == ErrorClass::Denied;
        let is_over = std::mem::replace(&mut seen.denied, denied) && !denied;
        if now > seen.repeated_by || is_over || is_paused || is_reported {
            seen.unreported = None;
        }
        (seen.repeated_by, seen.code) = (now + repeated, code.to_owned());
        if is_paused || is_reported {
            return;
        }
        let lasts = now - *seen.unreported.get_or_insert(now);
        if lasts >= REPORTED_WITHIN {
            let what = format!("{api} fails ({code}) since {} s", lasts.num_seconds());
            inner.breaks(now, "a_lasting_failure_is_reported", what);
        }
    }

    /// What a status reports of failures.
    pub(super) fn note_reported_failures(inner: &mut Inner, write: &KubeWrite) {
        let KubeWrite::PatchPoolStatus { status, .. } = write else { return };
        for (api, seen) in &mut inner.failing {
            if reports(status, api, &seen.code) {
                seen.unreported = None;
            }
        }
    }
}

fn reports(status: &ASGMachinePoolStatus, api: &str, code: &str) -> bool {
    let says = |text: &str| text.contains(api) || text.contains(code);
    status
        .conditions
        .iter()
        .any(|one| one.status != "True" && (says(&one.message) || UNREACHABLE.contains(&one.reason.as_str())))
}
