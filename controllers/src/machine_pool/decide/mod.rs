//! Decide: a pure function from the desired state and the facts to a plan. No IO, no clock, no client.

mod adoption;
mod at_rest;
mod availability;
mod block_move;
mod capacity;
mod deletion;
mod disruption_budget;
mod finalizer;
mod group;
mod launch_template;
mod machines;
mod pending;
mod pool;
mod preview;
mod remediation;
mod rollout;
mod settings;
mod termination;
mod termination_order;
mod timing;

use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::decide::at_rest::is_at_rest;
use crate::machine_pool::decide::capacity::replica_handover;
use crate::machine_pool::decide::deletion::Waiting;
use crate::machine_pool::decide::machines::{creation, restoration};
use crate::machine_pool::decide::preview::Held;
use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::{Decision, Input, Observation, Part, Phase, Plan, PoolState};

/// How often a pool is observed whose bootstrap data is missing.
const MISSING_BOOTSTRAP: TimeDelta = TimeDelta::seconds(30);

/// How often a pool is observed that is limited below what it requests: other pools of its namespace may leave room.
const LIMITED: TimeDelta = TimeDelta::seconds(30);

/// Decides what to do for a pool in the state that was observed.
#[must_use]
pub fn decision(observation: &Observation, memory: &PoolMemory, now: DateTime<Utc>) -> Decision {
    let objects = &observation.objects;
    let input = |facts| Input::of(objects, facts, memory, now);
    match &observation.state {
        PoolState::Released => Decision::default(),
        // A pool without its owner ID terminates nothing.
        PoolState::Paused(None) => only(Phase::CleanUp, block_move::unblock_if_ours(objects)),
        PoolState::Paused(Some(facts)) => only(Phase::CleanUp, block_move::unblock_paused(&input(facts))),
        PoolState::Waiting(requeue_after) => {
            only(Phase::CleanUp, Part { requeue_after: *requeue_after, ..Part::default() })
        }
        PoolState::Unclaimed(owner_id) => only(Phase::Claim, finalizer::add(objects, owner_id)),
        PoolState::NeverCreated => only(Phase::Release, finalizer::remove(objects)),
        PoolState::Running(facts) => {
            let mut decision = running(&input(facts));
            if observation.bootstrap.is_none() {
                decision.plan.requeue_within(MISSING_BOOTSTRAP);
            }
            if facts.desired.ceiling.is_some_and(|most| facts.desired.replicas > most) {
                decision.plan.requeue_within(LIMITED);
            }
            decision
        }
        PoolState::Unreferenced(facts) => {
            let input = input(facts);
            let mut plan = pool::terminations(&input);
            plan.add(Phase::AsgMachines, restoration::restore(&input, plan.blocker.as_ref()));
            plan.add(Phase::AsgMachines, creation::create(&input, plan.blocker.as_ref()));
            Decision { desired: Some(facts.desired.clone()), plan: complete(&input, plan) }
        }
        PoolState::Deleting(facts) => {
            let decision = deleting(&input(facts));
            if !decision.plan.is_done() {
                return decision;
            }
            only(Phase::Release, finalizer::remove(objects))
        }
    }
}

/// Decides for a pool that is not being deleted.
fn running(input: &Input<'_>) -> Decision {
    let desired = replica_handover::settle(input);
    let held = preview::hold(&Input { desired: &desired, ..*input });
    let applied = Held { desired, pending: Some(Vec::new()), compared: None };
    let Held { desired, pending, compared } = held.unwrap_or(applied);
    let input = Input { desired: &desired, ..*input };
    let mut plan = pool::plan(&input);
    if let Some(compared) = compared {
        plan.preview(compared);
    }
    plan.pending = plan.pending.take().or(pending);
    let new = creation::create(&input, plan.blocker.as_ref());
    plan.add(Phase::AsgMachines, restoration::restore(&input, plan.blocker.as_ref()));
    plan.add(Phase::AsgMachines, new);
    let plan = complete(&input, plan);
    Decision { desired: Some(desired), plan }
}

/// Decides for a pool that is being deleted (E1).
fn deleting(input: &Input<'_>) -> Decision {
    let waiting = if input.objects.cluster.is_some() { Waiting::ForMachines } else { Waiting::ForNothing };
    let plan = complete(input, deletion::decide(input, waiting));
    Decision { desired: Some(input.desired.clone()), plan }
}

/// A plan of one part, for a pool that is not compared with AWS.
fn only(phase: Phase, part: Part) -> Decision {
    let mut plan = Plan::default();
    plan.add(phase, part);
    Decision { desired: None, plan }
}

/// Adds what follows from the plan as a whole.
fn complete(input: &Input<'_>, mut plan: Plan) -> Plan {
    let record = finalizer::record_creation(input.objects, &plan);
    plan.add(Phase::CreationRecord, record);
    let terminates = plan.terminates_instances();
    plan.add(Phase::BlockMove, block_move::block(input, terminates));
    plan.add(Phase::CleanUp, block_move::unblock(input, terminates));
    plan.in_transition &= !is_at_rest(input.observed, &plan);
    plan
}

#[cfg(test)]
mod deletion_tests;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
