//! When a pool is requeued.

use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::ReconcileError;
use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::{Acted, Observation, Plan, PoolState};

/// Missing facts, and reads that failed, are requested again after this.
const MISSING_FACTS: TimeDelta = TimeDelta::seconds(30);
/// References that are missing in AWS, such as an image or a subnet, are looked up again after this.
const MISSING_REFERENCES: TimeDelta = TimeDelta::minutes(2);
/// What neither a watch nor a poll reports (lifecycle hooks, launch templates, parameters of images, tags of subnets)
/// is observed this often; how long each answer is cached decides what is read.
const RESYNC: TimeDelta = TimeDelta::minutes(30);
/// A pool is not requeued sooner than this, whatever is due: what a reconcile left undone, the next one would as well.
const SHORTEST: TimeDelta = TimeDelta::seconds(1);
/// The same while a read or a step fails, which is repeated each time. A heartbeat is due every 15 s at the most often.
const SHORTEST_WHILE_ONE_FAILS: TimeDelta = TimeDelta::seconds(15);

/// When to requeue a pool.
#[derive(Debug, Default)]
pub struct Requeue {
    /// After this long at the latest; `None` leaves it to events and the periodic resync.
    pub after: Option<TimeDelta>,
    /// The reads and steps that failed, which are retried with backoff. Everything that does not need them was done, and
    /// is done again when it is due.
    pub failed: Vec<ReconcileError>,
}

impl Requeue {
    /// The earliest of everything that a reconcile waits for.
    #[must_use]
    pub fn of(
        observation: &Observation,
        plan: &Plan,
        acted: Acted,
        memory: &PoolMemory,
        now: DateTime<Utc>,
    ) -> Self {
        let reads = observation.failed().cloned().map(ReconcileError::Cloud);
        let unlisted = observation.unlisted.clone().map(ReconcileError::Kubernetes);
        let failed: Vec<_> = reads.chain(unlisted).chain(acted.failed).collect();
        let is_observed = matches!(
            observation.state,
            PoolState::Running(_) | PoolState::Unreferenced(_) | PoolState::Deleting(_)
        );
        if !is_observed || plan.changes_finalizer() {
            let after = plan.requeue_after.map(|after| after.max(SHORTEST));
            return Self { after, failed };
        }
        let shortest = if failed.is_empty() { SHORTEST } else { SHORTEST_WHILE_ONE_FAILS };
        let missing = (!plan.needs.is_empty()).then_some(MISSING_FACTS);
        let references = &observation.references;
        let is_unresolved = !references.findings.is_empty() || references.update_problem.is_some();
        let unresolved = is_unresolved.then_some(MISSING_REFERENCES);
        let launches = memory.launches.wait(now);
        let types = memory.instance_types.wait(now);
        let rejected = memory.failed_calls.next_try(now);
        let waits = [plan.requeue_after, rejected, missing, unresolved, acted.wait, launches, types];
        let after = waits.into_iter().flatten().fold(RESYNC, TimeDelta::min);
        Self { after: Some(after.max(shortest)), failed }
    }

    /// After `delay` at the latest, if there is one.
    #[must_use]
    pub fn within(self, delay: Option<TimeDelta>) -> Self {
        let delay = delay.map(|delay| delay.max(SHORTEST));
        Self { after: [self.after, delay].into_iter().flatten().min(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use capasg_cloud::{CloudError, InstanceTypes};

    use super::*;
    use crate::machine_pool::decide::testing::{Stage, now};
    use crate::machine_pool::model::Facts;
    use crate::machine_pool::model::memory::record::Entry;

    /// The observation of a pool that runs.
    fn running() -> Observation {
        let Stage { objects, desired, observed, .. } = Stage::new(1);
        Observation::of(&objects, PoolState::Running(Box::new(Facts { desired, observed })))
    }

    #[test]
    fn what_is_due_already_does_not_requeue_a_pool_at_once() {
        let observation = Observation::of(&Stage::new(1).objects, PoolState::Waiting(None));
        for due in [TimeDelta::minutes(-10), TimeDelta::zero()] {
            let mut plan = Plan::default();
            plan.requeue_within(due);
            let memory = PoolMemory::default();
            let requeue = Requeue::of(&observation, &plan, Acted::default(), &memory, now());
            assert_eq!(requeue.after, Some(SHORTEST));
        }
    }

    #[test]
    fn a_read_that_fails_does_not_delay_what_is_due() {
        let mut observation = running();
        let error = CloudError::unanswered("DescribeInstanceRefreshes", "timeout", "no answer");
        for (due, after, for_decision) in [(90, 90, false), (5, 15, false), (90, 90, true), (5, 15, true)] {
            observation.failed_reads = Vec::from_iter(Some(error.clone()).filter(|_| !for_decision));
            observation.failed_fetches = Vec::from_iter(Some(error.clone()).filter(|_| for_decision));
            let mut plan = Plan::default();
            plan.requeue_within(TimeDelta::seconds(due));
            let memory = PoolMemory::default();
            let requeue = Requeue::of(&observation, &plan, Acted::default(), &memory, now());
            assert_eq!(requeue.after, Some(TimeDelta::seconds(after)));
            assert_eq!(requeue.failed.len(), 1);
        }
    }

    #[test]
    fn a_step_that_fails_does_not_delay_what_is_due() {
        let observation = running();
        for (due, after) in [(90, 90), (5, 15)] {
            let error = CloudError::unanswered("CreateOrUpdateTags", "timeout", "no answer");
            let acted = Acted { failed: Some(ReconcileError::Cloud(error)), ..Acted::default() };
            let mut plan = Plan::default();
            plan.requeue_within(TimeDelta::seconds(due));
            let requeue = Requeue::of(&observation, &plan, acted, &PoolMemory::default(), now());
            assert_eq!(requeue.after, Some(TimeDelta::seconds(after)));
            assert_eq!(requeue.failed.len(), 1);
        }
    }

    #[test]
    fn g5_a_read_of_the_instance_types_is_retried_with_backoff() {
        let mut observation = running();
        let denied =
            CloudError::answered("DescribeInstanceTypes", 403, "UnauthorizedOperation", "not authorized");
        observation.reads.instance_types = Some(Err(denied));
        let (mut memory, mut now) = (PoolMemory::default(), now());
        let mut requeue = |observation: &Observation, now| {
            memory.record(Entry::Read(observation), now);
            Requeue::of(observation, &Plan::default(), Acted::default(), &memory, now)
        };
        for seconds in [30, 60, 120] {
            let Requeue { after, failed } = requeue(&observation, now);
            assert_eq!(after, Some(TimeDelta::seconds(seconds)));
            assert!(failed.is_empty(), "nothing else is delayed");
            now += TimeDelta::seconds(seconds);
        }
        observation.reads.instance_types = Some(Ok(InstanceTypes::default()));
        assert_eq!(requeue(&observation, now).after, Some(RESYNC));
    }
}
