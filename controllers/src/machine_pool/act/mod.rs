//! Act: carries out the steps of a plan in order, each safe to repeat. It stops at the first call to AWS or annotation
//! that fails, since later steps may depend on it. Other writes to Kubernetes that fail do not delay later steps. A
//! call that AWS rejects is skipped until its retry is due; nothing follows a rejected `CreateGroup`.

mod cloud;
mod events;
mod execution;
mod kubernetes;

use capasg_cloud::ErrorClass;

use crate::Context;
use crate::machine_pool::ReconcileError;
use crate::machine_pool::act::cloud::Outcome;
use crate::machine_pool::act::execution::Execution;
use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::{Acted, Decision, Observation, ReplicaOwner, Step, retry_key};

/// Carries out a plan. A failure is part of the result: it is reported, and retried with backoff.
pub async fn act(
    context: &Context,
    observation: &Observation,
    decision: &Decision,
    memory: &mut PoolMemory,
) -> Acted {
    let (objects, plan) = (&observation.objects, &decision.plan);
    let (Some(desired), Some(facts)) = (&decision.desired, observation.facts()) else {
        return kubernetes_only(context, observation, decision, memory).await;
    };
    let inventory = context.regions.inventory(&objects.pool.spec.region);
    inventory.set_transition(&desired.group, plan.in_transition);
    // If another actor lowers desired capacity, AWS terminates nothing, so that no AWS event follows.
    inventory.set_externally_scaled(&desired.group, desired.owner != ReplicaOwner::MachinePool);
    let retry_key = retry_key::retry_key(objects, memory, plan);
    let observed = &facts.observed;
    let execution = Execution { context, inventory: &inventory, objects, desired, observed, plan, retry_key };
    let mut acted = Acted::default();
    // A read that failed is reported like a step that failed; steps that did not need it are carried out.
    acted.failed = match carry_out(&execution, memory, &mut acted).await {
        Err(error) => Some(error),
        Ok(()) => observation.failed_fetch.clone().map(ReconcileError::Cloud),
    };
    acted.again &= acted.failed.is_none();
    acted.unreachable = match &acted.failed {
        Some(ReconcileError::Cloud(error))
            if matches!(error.class, ErrorClass::Throttled | ErrorClass::Transient | ErrorClass::Denied) =>
        {
            Some(error.clone())
        }
        _ => inventory.reachable().err(),
    };
    acted
}

/// Carries out the plan of a pool that is not compared with AWS.
async fn kubernetes_only(
    context: &Context,
    observation: &Observation,
    decision: &Decision,
    memory: &mut PoolMemory,
) -> Acted {
    let mut acted = Acted::default();
    for step in decision.plan.steps() {
        if let Step::Kubernetes(write) = step
            && let Err(error) = kubernetes::write(context, &observation.objects, write, memory).await
        {
            acted.failed = Some(error.into());
            break;
        }
    }
    acted
}

async fn carry_out(
    execution: &Execution<'_>,
    memory: &mut PoolMemory,
    acted: &mut Acted,
) -> Result<(), ReconcileError> {
    let Execution { context, objects, plan, .. } = *execution;
    let mut failed = None;
    for step in plan.steps() {
        match step {
            // A deletion cannot be undone, and a step before it may have waited for the rate limit.
            Step::Kubernetes(write) if kubernetes::is_deletion(write) && execution.is_paused() => break,
            Step::Kubernetes(write) => match kubernetes::write(context, objects, write, memory).await {
                Ok(()) => {}
                // A rejected write of one object must not delay the others, but no step may be carried out before the
                // annotation that it depends on.
                Err(error) if !kubernetes::is_annotation(write) => {
                    failed.get_or_insert(error);
                }
                Err(error) => return Err(error.into()),
            },
            Step::Cloud(write) => match cloud::write(execution, write, memory).await? {
                Outcome::Made => acted.again |= cloud::is_launch_template(write),
                Outcome::Skipped => {}
                Outcome::Waits(wait) => acted.wait = Some(acted.wait.map_or(wait, |other| other.min(wait))),
                Outcome::Stop => break,
            },
        }
    }
    failed.map_or(Ok(()), |error| Err(error.into()))
}
