//! Act: carries out the phases of a plan in order; each step is safe to repeat. A call to AWS or an annotation that
//! fails stops the phases that depend on its phase ([`Phase::depends_on`]), and no others. A call that AWS rejects is
//! skipped until its retry is due.

mod cloud;
mod events;
mod execution;
mod kubernetes;

use std::{collections::BTreeSet, sync::OnceLock};

use capasg_cloud::ErrorClass;
use tracing::Instrument as _;

use crate::Context;
use crate::kubernetes::KubeWrite;
use crate::machine_pool::ReconcileError;
use crate::machine_pool::act::cloud::Outcome;
use crate::machine_pool::act::execution::Execution;
use crate::machine_pool::model::call_kind::CallTopic;
use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::{Acted, Decision, Observation, Phase, ReplicaOwner, Step, retry_key};

/// Carries out a plan. A failure is part of the result: it is reported, and retried with backoff.
pub async fn act(
    context: &Context,
    observation: &Observation,
    decision: &Decision,
    memory: &mut PoolMemory,
) -> Acted {
    let (objects, plan) = (&observation.objects, &decision.plan);
    let (Some(desired), Some(facts), Some(place)) = (&decision.desired, observation.facts(), objects.place())
    else {
        return kubernetes_only(context, observation, decision, memory).await;
    };
    let inventory = context.inventories.inventory(&place);
    inventory.set_transition(&desired.group, plan.in_transition);
    // If another actor lowers desired capacity, AWS terminates nothing, so that no AWS event follows.
    inventory.set_externally_scaled(&desired.group, desired.owner != ReplicaOwner::MachinePool);
    let retry_key = retry_key::retry_key(objects, memory, plan);
    let observed = &facts.observed;
    let execution = Execution {
        context,
        inventory: &inventory,
        objects,
        desired,
        observed,
        plan,
        retry_key,
        staying: OnceLock::new(),
    };
    let mut acted = Acted::default();
    acted.failed = carry_out(&execution, memory, &mut acted).await.err();
    acted.again &= acted.failed.is_none();
    // A call that fails by itself, while reads succeed, has its own condition: this one would change with each attempt.
    acted.unreachable = match &acted.failed {
        Some(ReconcileError::Cloud(error)) if error.class == ErrorClass::Denied => Some(error.clone()),
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
            (acted.failed, acted.notices_wait) = (Some(error.into()), true);
            break;
        }
    }
    acted
}

/// Carries out the phases in order. Returns the first error.
async fn carry_out(
    execution: &Execution<'_>,
    memory: &mut PoolMemory,
    acted: &mut Acted,
) -> Result<(), ReconcileError> {
    let mut halted: Vec<Phase> = Vec::new();
    let mut failed = None;
    for phase in Phase::ORDER {
        let no_new_version = memory.failed_calls.about(CallTopic::LaunchTemplate).is_some();
        if halted.iter().any(|before| phase.waits_for(*before, no_new_version)) {
            acted.notices_wait |= phase.acts_on_notices() && execution.plan.of(phase).next().is_some();
            halted.push(phase);
            continue;
        }
        let end = carry_out_phase(execution, phase, memory, acted).await;
        acted.notices_wait |= phase.acts_on_notices() && end.failed.is_some() || end.then == Then::Stop;
        failed = failed.or(end.failed);
        match end.then {
            Then::Continue => {}
            Then::HaltDependents => halted.push(phase),
            Then::Stop => break,
        }
    }
    failed.map_or(Ok(()), Err)
}

/// How a phase ended.
struct PhaseEnd {
    /// The first error.
    failed: Option<ReconcileError>,
    then: Then,
}

/// What follows a phase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// The next phase.
    Continue,
    /// The next phase that does not depend on this one.
    HaltDependents,
    /// Nothing: the pool is paused, or this process has lost the Lease.
    Stop,
}

/// Carries out the steps of one phase.
async fn carry_out_phase(
    execution: &Execution<'_>,
    phase: Phase,
    memory: &mut PoolMemory,
    acted: &mut Acted,
) -> PhaseEnd {
    let Execution { context, objects, plan, .. } = *execution;
    let mut end = PhaseEnd { failed: None, then: Then::Continue };
    // Instances whose termination could not be recorded.
    let mut unrecorded: BTreeSet<&String> = BTreeSet::new();
    for step in plan.of(phase) {
        match step {
            // A deletion cannot be undone, and a step before it may have waited for the rate limit.
            Step::Kubernetes(write) if kubernetes::is_deletion(write) && execution.is_paused() => {
                end.then = Then::Stop;
                break;
            }
            // The garbage collector would delete Machines of a MachinePool that is gone.
            Step::Kubernetes(KubeWrite::PatchMachineOwners { .. })
                if execution.is_paused() || execution.has_another_owner() => {}
            Step::Kubernetes(write)
                if kubernetes::is_deletion(write) && execution.is_superseded()
                    || kubernetes::is_disruption(write) && execution.has_deletions_of_others() =>
            {
                end.then = Then::HaltDependents;
                break;
            }
            Step::Kubernetes(write) => {
                let Err(error) = kubernetes::write(context, objects, write, memory).await else { continue };
                let is_rejected = error.is_rejection();
                end.failed.get_or_insert_with(|| error.into());
                if let KubeWrite::AnnotateTerminationRequested { instance, .. } = write
                    && is_rejected
                {
                    unrecorded.insert(instance);
                    continue;
                }
                // A rejected write of one object must not delay the others, but no step may be carried out before the
                // annotation that it depends on.
                if kubernetes::is_annotation(write) {
                    end.then = Then::HaltDependents;
                    break;
                }
            }
            Step::Cloud(write) => {
                let Some(write) = cloud::without(write, &unrecorded) else { continue };
                // The log line of each call tells what it was made for.
                let span = tracing::info_span!("act", phase = ?phase);
                match cloud::write(execution, &write, memory).instrument(span).await {
                    Ok(Outcome::Made) => acted.again |= cloud::is_launch_template(&write),
                    Ok(Outcome::Skipped) => {}
                    Ok(Outcome::RejectsContent) => acted.again = true,
                    Ok(Outcome::Waits(wait)) => acted.wait_for(wait),
                    Ok(Outcome::Paced(wait)) => {
                        acted.wait_for(wait);
                        end.then = Then::HaltDependents;
                        break;
                    }
                    Ok(Outcome::SkipsPhase) => break,
                    Ok(Outcome::Stop) => {
                        end.then = Then::Stop;
                        break;
                    }
                    Err(error) => {
                        end.then = if error.is_not_leading() { Then::Stop } else { Then::HaltDependents };
                        let is_last = phase.is_sequence() || error.concerns_all_calls();
                        end.failed.get_or_insert(error);
                        if is_last {
                            break;
                        }
                    }
                }
            }
        }
    }
    end
}
