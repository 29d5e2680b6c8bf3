//! Report: writes statuses and provider IDs, and only what changed: the ASGMachines, then `spec.providerIDList`, then
//! the status of the pool.

mod deletion;
mod event_queue;
mod events;
mod input;
mod machine;
mod metrics;
mod needs;
mod node_capacity;
pub(in crate::machine_pool) mod nodes;
mod pool_conditions;
pub(in crate::machine_pool) mod replica_owner;
mod rollout_conditions;
mod scaling_healthy;
mod status;
mod termination;
#[cfg(test)]
mod tests;
mod text;

use capasg_api::{
    ASGMachine, ASGMachinePool, ASGMachinePoolStatus,
    conditions::{self, paused},
    fit,
};
use kube::ResourceExt;

pub use needs::needs;

use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::memory::record::{Entry, Report};
use crate::machine_pool::model::provider_ids::certain_list;
use crate::machine_pool::model::{
    Acted, Decision, GroupView, Machines, Observation, Observed, Plan, PoolObjects, PoolState,
};
use crate::machine_pool::report::input::Input;
use crate::{
    Context, ObjectKey,
    kubernetes::{KubeWrite, Result},
};

/// Reports what was observed, decided and done: events, the statuses of the ASGMachines, the pool's provider IDs and
/// its status, as far as they changed.
///
/// # Errors
/// A write that the API server rejected.
pub async fn report(
    context: &Context,
    observation: &Observation,
    decision: &Decision,
    acted: &Acted,
    memory: &mut PoolMemory,
) -> Result<()> {
    let Decision { desired, plan } = decision;
    // The write wakes the pool again, or the pool is about to be deleted.
    if plan.changes_finalizer() || matches!(observation.state, PoolState::Released) {
        return Ok(());
    }
    if let PoolState::Paused(_) = observation.state {
        return report_paused(context, observation, memory).await;
    }
    let is_deleting = observation.objects.is_deleting();
    let types = observation.reads.instance_types.as_ref();
    let input = Input {
        objects: &observation.objects,
        desired: desired.as_ref(),
        observed: observation.facts().map(|facts| &facts.observed),
        plan,
        rollout_status: rollout_conditions::status(observation, plan, acted, memory),
        references: &observation.references,
        types: types.and_then(|read| read.as_ref().ok()),
        queue: observation.reads.queue,
        findings: observation.findings.clone(),
        now: context.clock.now(),
        unreachable: observation.reported_failure().cloned().or_else(|| acted.unreachable.clone()),
    };
    metrics::milestones(context, &observation.objects.key, memory);
    let Some(observed) = input.observed else {
        return write(context, &input, &observation.machines, memory).await;
    };
    events::blocker(context, &input, memory).await;
    events::launch_failures(context, &input, observation, memory).await;
    if !is_deleting {
        events::instance_types(context, &input, types, memory).await;
        events::adoption(context, &input, memory).await;
    }
    let external =
        desired.as_ref().is_some_and(|desired| desired.owner.is_reported_external(plan.handed_back));
    if let Err(error) = write(context, &input, &observation.machines, memory).await {
        memory.record(Entry::Reported(Report::Unanswered { external }), context.clock.now());
        return Err(error);
    }
    events::rollout(context, &input, memory).await;
    let nodes = input.nodes(memory).map(|nodes| nodes.finding(input.objects));
    events::nodes(context, &input, nodes.as_ref(), memory).await;
    let is_provisioned = observed.group.present().is_some() && !input.is_not_owned();
    let uid = input.objects.pool.uid().filter(|_| is_provisioned);
    let report = Report::Status {
        provisioned: uid.as_ref(),
        rollout: input.rollout_status.as_ref(),
        rolling_out: rollout_conditions::is_rolling_out(&input),
        nodes: nodes.map(|nodes| nodes.reason),
        external,
    };
    memory.record(Entry::Reported(report), context.clock.now());
    Ok(())
}

/// Writes the ASGMachines' statuses, the pool's list and its status, as far as they changed. What the API server rejects delays
/// nothing else, and the status of the pool reports it.
async fn write(
    context: &Context,
    input: &Input<'_>,
    machines: &Machines,
    memory: &mut PoolMemory,
) -> Result<()> {
    let now = context.clock.now();
    let (mut failed, mut rejected) = (Ok(()), Vec::new());
    if let Some(observed) = input.observed.filter(|observed| shows_instances(observed, input.plan)) {
        for machine in &machines.asg_machines {
            let status = machine::status(machine, observed, input, memory, now);
            if let Some(status) = fit::changed::<ASGMachine>(status, machine.status.as_ref()) {
                let write = KubeWrite::PatchAsgMachineStatus {
                    machine: ObjectKey::of(machine.as_ref()),
                    resource_version: None,
                    status: Box::new(status),
                };
                match ignore_not_found(context.kubernetes.write(&write).await.map(drop)) {
                    Ok(()) => {}
                    Err(error) if error.is_rejection() => rejected.push((write, error)),
                    Err(error) => {
                        // The status of the pool does not wait for those of instances.
                        failed = Err(error);
                        break;
                    }
                }
            }
        }
    }
    let before = &input.objects.pool.spec.provider_id_list;
    let mut list = input
        .observed
        .filter(|observed| observed.group.present().is_some())
        .map(|observed| certain_list(observed, before, memory).unwrap_or_else(|| before.clone()));
    let is_new = memory.behind_previous_leader(now).is_some();
    if let Some(write) = provider_ids(input, list.as_ref(), is_new) {
        match context.kubernetes.write(&write).await {
            Ok(_) => {}
            Err(error) if error.is_rejection() => {
                // A pool is not reported as provisioned before its list is written.
                list = None;
                rejected.push((write, error));
            }
            Err(error) => return Err(error),
        }
    }
    memory.record(Entry::Reported(Report::Rejected(&rejected)), now);
    let status = status::status(input, list.as_ref(), memory, now);
    let gauges = metrics::gauges(input.objects, &status, input.observed, memory);
    context.observer.reported(&input.objects.key, gauges);
    write_status(context, input.objects, status, is_new || input.observed.is_none()).await?;
    failed.and(rejected.into_iter().next().map_or(Ok(()), |(_, error)| Err(error)))
}

/// Whether the facts show single instances: a group that was not read, or whose absence is not confirmed, does not show
/// that its instances are terminated.
fn shows_instances(observed: &Observed, plan: &Plan) -> bool {
    match &observed.group {
        GroupView::Unknown => false,
        GroupView::Present { .. } => true,
        GroupView::Absent { settled, .. } => *settled && plan.blocker.is_none() && plan.needs.is_empty(),
    }
}

/// Reports that a pool is paused: condition `Paused`, and that nothing is in progress (F1, F2, M2).
///
/// # Errors
/// A write that the API server rejected.
async fn report_paused(context: &Context, observation: &Observation, memory: &PoolMemory) -> Result<()> {
    let Observation { objects, machines, .. } = observation;
    let now = context.clock.now();
    let generation = objects.pool.metadata.generation.unwrap_or_default();
    let mut status = objects.pool.status.clone().unwrap_or_default();
    conditions::set(&mut status.conditions, paused(objects.pause, "ASGMachinePool"), generation, now);
    conditions::complete(&mut status.conditions, conditions::POOL, generation, now);
    conditions::set_progress(&mut status.conditions, generation, now);
    status.phase = Some(capasg_api::pool::Phase::Paused);
    context.observer.reported(&objects.key, metrics::gauges(objects, &status, None, memory));
    write_status(context, objects, status, true).await?;
    for machine in &machines.asg_machines {
        let status = machine::paused_status(machine, objects, now);
        if let Some(status) = fit::changed::<ASGMachine>(status, machine.status.as_ref()) {
            let write = KubeWrite::PatchAsgMachineStatus {
                machine: ObjectKey::of(machine.as_ref()),
                resource_version: machine.resource_version(),
                status: Box::new(status),
            };
            ignore_not_found(context.kubernetes.write(&write).await.map(drop))?;
        }
    }
    Ok(())
}

/// The ARN of the group once (B9), and the list of instances whenever it changes (B1, B3); `None` if neither changes. A new
/// leader may know neither the last list nor all ASGMachines: it must not overwrite what it has not read.
fn provider_ids(input: &Input<'_>, list: Option<&Vec<String>>, is_new: bool) -> Option<KubeWrite> {
    let spec = &input.objects.pool.spec;
    let arn = input.observed.and_then(|o| o.group.present()).map(|group| &group.arn);
    let owned = !input.is_not_owned();
    let provider_id = arn.filter(|arn| owned && spec.provider_id.as_ref() != Some(arn)).cloned();
    let list = list.filter(|list| owned && spec.provider_id_list != **list).cloned();
    (provider_id.is_some() || list.is_some()).then(|| KubeWrite::PatchPoolProviderIds {
        pool: input.objects.key.clone(),
        resource_version: input.objects.pool.resource_version().filter(|_| is_new),
        provider_id,
        list,
    })
}

/// Writes the status if it differs. It must not overwrite a newer one if most of it is as it was read (`repeats`), if the
/// caches of a new leader may not show yet what the previous one recorded in it, or if it does not report the pool as
/// provisioned: a write of an earlier process that arrives late must not take that back (B5).
async fn write_status(
    context: &Context,
    objects: &PoolObjects,
    status: ASGMachinePoolStatus,
    repeats: bool,
) -> Result<()> {
    let Some(status) = fit::changed::<ASGMachinePool>(status, objects.pool.status.as_ref()) else {
        return Ok(());
    };
    let must_be_latest = repeats || !status.initialization.provisioned;
    let write = KubeWrite::PatchPoolStatus {
        pool: objects.key.clone(),
        resource_version: objects.pool.resource_version().filter(|_| must_be_latest),
        status: Box::new(status),
    };
    context.kubernetes.write(&write).await.map(drop)
}

fn ignore_not_found(result: Result<()>) -> Result<()> {
    match result {
        Err(crate::kubernetes::KubeError::NotFound { .. }) => Ok(()),
        other => other,
    }
}
