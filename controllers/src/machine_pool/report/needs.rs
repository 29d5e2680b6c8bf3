//! The facts from AWS that only report requires.

use capasg_api::conditions;
use chrono::{DateTime, Utc};

use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::termination_cause::is_by_aws;
use crate::machine_pool::model::{Facts, Observation, PoolState, ReportNeeds};

/// The facts from AWS that report requires for an observation.
#[must_use]
pub fn needs(observation: &Observation, memory: &PoolMemory, now: DateTime<Utc>) -> ReportNeeds {
    let PoolState::Running(facts) = &observation.state else { return ReportNeeds::default() };
    ReportNeeds {
        launch_activities: memory.launches.is_due(now),
        instance_types: true,
        termination_causes: unknown_causes(observation, facts, memory),
    }
}

/// The instances that AWS terminates for a cause that is neither known nor reported.
fn unknown_causes(observation: &Observation, facts: &Facts, memory: &PoolMemory) -> Vec<String> {
    let is_reported = |id: &str| {
        let mut machines = observation.machines.asg_machines.iter();
        let machine = machines.find(|machine| machine.spec.instance_id == id);
        let status = machine.and_then(|machine| machine.status.as_ref());
        status.is_some_and(|status| conditions::is_true(&status.conditions, conditions::TERMINATION_PENDING))
    };
    let instances = facts.observed.instances.iter();
    instances
        .filter(|(id, instance)| is_by_aws(id, instance, memory) && instance.shown_cause().is_none())
        .map(|(id, _)| id)
        .filter(|id| memory.terminations.cause(id).is_none() && !is_reported(id))
        .cloned()
        .collect()
}
