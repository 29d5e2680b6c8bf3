//! What metrics say about a pool: the same as its status, and what its instances show.

use capasg_api::{
    ASGMachinePoolStatus,
    conditions::ConditionState,
    pool::{Phase, RolloutWait},
};
use chrono::{DateTime, Utc};

use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::memory::record::{Entry, Report};
use crate::machine_pool::model::{Observed, PoolInstance, PoolObjects};
use crate::observer::{DrainGauges, PoolGauges, Replicas, RolloutGauges};
use crate::{Context, ObjectKey};

/// The gauges of a pool with this status. Pure; `observed` is `None` while nothing is known of single instances.
#[must_use]
pub fn gauges(
    objects: &PoolObjects,
    status: &ASGMachinePoolStatus,
    observed: Option<&Observed>,
    memory: &PoolMemory,
) -> PoolGauges {
    let rollout = status.rollout.as_ref();
    PoolGauges {
        cluster: objects.cluster_name.clone().unwrap_or_default(),
        region: objects.pool.spec.region.clone(),
        group: status.group.as_ref().map_or_else(String::new, |group| group.name.clone()),
        phase: status.phase.map_or("", Phase::as_str),
        replicas: Replicas {
            desired: status.desired_replicas,
            current: status.replicas,
            ready: status.ready_replicas,
            up_to_date: status.up_to_date_replicas,
            outdated: rollout.map_or(0, |rollout| rollout.outdated),
        },
        conditions: status.conditions.iter().map(ConditionState::from).collect(),
        rollout: rollout.map(|rollout| RolloutGauges {
            started_at: rollout.started_at,
            waiting: rollout.waiting_for.map(RolloutWait::as_str).zip(rollout.waiting_since),
        }),
        drains: observed.map(drains).unwrap_or_default(),
        token_since: observed.and_then(|observed| memory.token_age.since(observed)),
    }
}

/// The drains in progress.
fn drains(observed: &Observed) -> DrainGauges {
    let all: Vec<DateTime<Utc>> = observed.instances.values().filter_map(drain).collect();
    DrainGauges { count: all.len(), since: all.into_iter().min() }
}

/// Since when an instance is drained, if it is: its Machine is being deleted, and core has not deleted its ASGMachine.
fn drain(instance: &PoolInstance) -> Option<DateTime<Utc>> {
    let machine = instance.machine.as_ref().filter(|machine| machine.has_node && !machine.drain_excluded)?;
    machine.deleting_since.filter(|_| !instance.is_drained())
}

/// Passes on what happened to instances since the last report.
pub fn milestones(context: &Context, pool: &ObjectKey, memory: &mut PoolMemory) {
    if memory.milestones.unreported().is_empty() {
        return;
    }
    for event in memory.milestones.unreported() {
        context.observer.happened(pool, *event);
    }
    memory.record(Entry::Reported(Report::Milestones), context.clock.now());
}

#[cfg(test)]
mod tests {
    use capasg_api::{
        conditions::{self, Finding, READY},
        pool::{RolloutStatus, RolloutType, RolloutWait},
    };
    use chrono::TimeDelta;

    use super::*;
    use crate::machine_pool::decide::testing::{Stage, now};

    #[test]
    fn gauges_are_those_of_the_status_and_of_the_drains() {
        let mut stage = Stage::new(3);
        stage.objects.cluster_name = Some("prod".to_owned());
        stage.draining("i-1").drained("i-2");
        let mut status = ASGMachinePoolStatus {
            desired_replicas: 4,
            replicas: 3,
            ready_replicas: 2,
            up_to_date_replicas: 1,
            phase: Some(Phase::RollingOut),
            ..ASGMachinePoolStatus::default()
        };
        conditions::set(&mut status.conditions, Finding::plain(READY, true, "Ready"), 1, now());
        let waiting_since = now() - TimeDelta::minutes(5);
        status.rollout = Some(RolloutStatus {
            type_: RolloutType::RollingUpdate,
            from_hash: None,
            to_hash: None,
            total: 3,
            updated: 1,
            outdated: 2,
            percentage: None,
            started_at: Some(now() - TimeDelta::hours(1)),
            waiting_for: Some(RolloutWait::Drains),
            waiting_since: Some(waiting_since),
            ended_refresh_id: None,
            next_window: None,
        });
        let found = gauges(&stage.objects, &status, Some(&stage.observed), &stage.memory);
        assert_eq!((found.cluster.as_str(), found.phase), ("prod", "RollingOut"));
        let replicas = Replicas { desired: 4, current: 3, ready: 2, up_to_date: 1, outdated: 2 };
        assert_eq!(found.replicas, replicas);
        let ready = ConditionState {
            type_: "Ready".to_owned(),
            status: "True".to_owned(),
            reason: "Ready".to_owned(),
        };
        assert_eq!(found.conditions, [ready]);
        assert_eq!(found.rollout.unwrap().waiting, Some(("Drains", waiting_since)));
        let drains = DrainGauges { count: 1, since: Some(now() - TimeDelta::seconds(30)) };
        assert_eq!(found.drains, drains);
        let paused = gauges(&stage.objects, &status, None, &stage.memory);
        assert_eq!((paused.drains, paused.token_since), (DrainGauges::default(), None));
        assert_eq!(paused.replicas, replicas);
    }
}
