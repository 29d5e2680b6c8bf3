//! Act: carries out a plan's steps in order, each safe to repeat, and stops where one fails so that a later step never
//! overtakes an earlier. What AWS refuses is skipped until its time has come.

use capasg_api::{capi::pause_state, names::events};
use capasg_cloud::{Capacity, CloudError, ErrorClass, Inventory, Write};
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::{
    ReconcileError,
    decide::adoption,
    memory::PoolMemory,
    news,
    observe::Scene,
    state::{Bounds, Desired, Memory, Observed, Plan, Step, TemplateView},
};
use crate::{
    Context, ObjectKey,
    kubernetes::{EventKind, KubeError, KubeWrite},
};

/// Where steps are carried out.
pub struct Site<'a> {
    /// The ports and memories.
    pub context: &'a Context,
    /// The pool's region.
    pub inventory: &'a Inventory,
    /// The pool.
    pub scene: &'a Scene,
    /// The wish.
    pub desired: &'a Desired,
    /// The facts that the plan was made from.
    pub observed: &'a Observed,
    /// Hash of what a person can change: a refused call is tried at once when it changes.
    pub retry_key: String,
}

/// How acting went.
#[derive(Debug, Default)]
pub struct Acted {
    /// A step's effect is known at once, so that deciding again makes sense.
    pub again: bool,
    /// A step waits: it is what was just done, as a view shows that lags.
    pub wait: Option<TimeDelta>,
}

/// Carries out the plan's steps.
///
/// # Errors
/// A step that failed in passing; refusals are remembered instead.
pub async fn act(site: &Site<'_>, plan: &Plan, memory: &mut PoolMemory) -> Result<Acted, ReconcileError> {
    let Site { context, inventory, scene, retry_key, .. } = site;
    let mut acted = Acted::default();
    if is_whole(site.observed, plan) {
        memory.refused.keep_planned(plan.steps.iter().filter_map(|step| match step {
            Step::Cloud(write) => Some(write),
            Step::Kubernetes(_) => None,
        }));
    }
    let mut failed = None;
    for step in &plan.steps {
        match step {
            // A deletion cannot be taken back, and a step before may have waited for its turn.
            Step::Kubernetes(write) if takes_away(write) && paused_meanwhile(context, scene) => break,
            Step::Kubernetes(write) => match kubernetes(context, scene, write, memory).await {
                Ok(()) => {}
                // One object that the API server refuses must not hold up the others, but no step may overtake its mark.
                Err(error) if !is_mark(write) => {
                    failed.get_or_insert(error);
                }
                Err(error) => return Err(error.into()),
            },
            Step::Cloud(write) => {
                if paused_meanwhile(context, scene) || paused_before_an_end(context, scene, write).await? {
                    break;
                }
                let now = context.clock.now();
                if memory.refused.holds(write, retry_key, now) {
                    if matches!(write, Write::CreateGroup(_)) {
                        break;
                    }
                    continue;
                }
                if let Some(wait) = memory.answered.wait(write, now) {
                    acted.wait = Some(acted.wait.map_or(wait, |other| other.min(wait)));
                    continue;
                }
                // From before the call on: the refresh may be over when the answer comes.
                if matches!(write, Write::StartInstanceRefresh(_)) {
                    memory.decide.refresh_asked = Some(now);
                }
                let answer = inventory.write(write).await;
                asked(write, &mut memory.decide, context.clock.now());
                match answer {
                    Ok(_) => {
                        memory.answered.note(write, context.clock.now());
                        acted.again |= is_template(write);
                        if let Some(instance) = gives_up_a_drain(site, write, memory) {
                            news::drain_timed_out(site, instance).await;
                        }
                        done(write, memory, context.clock.now());
                        if adoption::adopts(write, plan) {
                            memory.decide.adopted_at = Some(context.clock.now());
                        }
                        news::written(site, plan, write, memory).await;
                    }
                    Err(error) if is_done_already(write, &error) => done(write, memory, context.clock.now()),
                    Err(error) if is_refusal(write, &error) => {
                        refused(site, write, error, memory).await;
                        if matches!(write, Write::CreateGroup(_)) {
                            break;
                        }
                    }
                    Err(error) => return Err(ReconcileError::Cloud(error)),
                }
            }
        }
    }
    failed.map_or(Ok(acted), |error| Err(error.into()))
}

/// Writes may have waited for their turn while somebody paused the pool or its Cluster (F1).
fn paused_meanwhile(context: &Context, scene: &Scene) -> bool {
    let pool = context.kubernetes.pool(&scene.key);
    let name = scene.cluster_name.as_ref().map(|name| scene.key.sibling(name));
    let cluster = name.and_then(|name| context.kubernetes.cluster(&name));
    pool.is_some_and(|pool| pause_state(cluster.as_deref(), pool.annotations()).is_paused())
}

/// An end cannot be taken back, and a move that has begun does not wait for what it has not seen: before one, the API
/// server itself is asked whether the Cluster is paused, since a cache may lag (M8).
async fn paused_before_an_end(context: &Context, scene: &Scene, write: &Write) -> Result<bool, KubeError> {
    let Some(cluster) = &scene.cluster else { return Ok(false) };
    if !matches!(write, Write::TerminateInstances { .. }) {
        return Ok(false);
    }
    let live = context.kubernetes.get_cluster(&ObjectKey::of(cluster.as_ref())).await?;
    Ok(live.is_some_and(|cluster| cluster.is_paused()))
}

fn takes_away(write: &KubeWrite) -> bool {
    matches!(write, KubeWrite::DeleteMachine { .. } | KubeWrite::DeleteAsgMachine { .. })
}

fn is_mark(write: &KubeWrite) -> bool {
    matches!(
        write,
        KubeWrite::BlockMove { blocked: true, .. }
            | KubeWrite::MarkEndRequested { .. }
            | KubeWrite::MarkMachine { .. }
            | KubeWrite::RolloutStopped { .. }
    )
}

/// An answer that only a person or time changes. Something that is missing counts where the call would make or change
/// what names it.
fn is_refusal(write: &Write, error: &CloudError) -> bool {
    let ends = matches!(write, Write::TerminateInstances { .. });
    error.class.is_permanent() || (error.class == ErrorClass::NotFound && !ends)
}

/// Whether what is not planned is not wished: a plan made while something was not known leaves steps out.
fn is_whole(observed: &Observed, plan: &Plan) -> bool {
    observed.group.is_settled()
        && !matches!(observed.template, TemplateView::Unknown)
        && plan.needs.is_empty()
}

async fn kubernetes(
    context: &Context,
    scene: &Scene,
    write: &KubeWrite,
    memory: &mut PoolMemory,
) -> Result<(), KubeError> {
    match context.kubernetes.write(write).await {
        Ok(()) => {}
        // What is to go is gone.
        Err(KubeError::NotFound { .. }) if is_deletion(write) => return Ok(()),
        Err(error) => return Err(error),
    }
    let now = context.clock.now();
    let decide = &mut memory.decide;
    match write {
        KubeWrite::ReleaseAsgMachine { instance, .. } => {
            decide.released.insert(instance.clone(), now);
        }
        KubeWrite::MachinePoolReplicas { replicas, .. } => decide.replicas_written = Some((*replicas, now)),
        KubeWrite::RolloutStopped { revision, .. } => decide.stopped.clone_from(revision),
        KubeWrite::MarkEndRequested { instance, at, .. } => {
            decide.end_requested.insert(instance.clone(), *at);
        }
        _ => {}
    }
    news::recorded(context, scene, write).await;
    Ok(())
}

fn is_deletion(write: &KubeWrite) -> bool {
    matches!(
        write,
        KubeWrite::DeleteMachine { .. }
            | KubeWrite::DeleteAsgMachine { .. }
            | KubeWrite::ReleaseAsgMachine { .. }
            | KubeWrite::MarkMachine { .. }
            | KubeWrite::ExcludeDrain { .. }
            | KubeWrite::BlockMove { blocked: false, .. }
            | KubeWrite::MachineTimeouts { .. }
    )
}

/// Remembers what AWS was asked for: also if the answer is lost, reads may be behind it.
fn asked(write: &Write, decide: &mut Memory, now: DateTime<Utc>) {
    decide.capacity.asked(write, now);
    if matches!(write, Write::CancelInstanceRefresh { .. } | Write::RollbackInstanceRefresh { .. }) {
        decide.refresh_end_asked = Some(now);
    }
}

/// Remembers what only this process knows after a change.
fn done(write: &Write, memory: &mut PoolMemory, now: DateTime<Utc>) {
    memory.refused.clear(write);
    let decide = &mut memory.decide;
    decide.capacity.made(write, now);
    match write {
        Write::CreateGroup(create) => {
            let Capacity { min, max, .. } = create.capacity;
            decide.bounds = Some(Bounds { min, max });
        }
        Write::UpdateGroup { change, .. } => {
            if let (Some(min), Some(max)) = (change.min, change.max) {
                decide.bounds = Some(Bounds { min, max });
            }
            if change.launch.is_some() {
                decide.launch_refused = false;
            }
        }
        Write::TerminateInstances { instances, .. } => {
            decide.ends_refused = false;
            decide.ended.extend(instances.iter().map(|instance| (instance.clone(), now)));
        }
        Write::PutLifecycleHook { hook, .. } => decide.holds_for(hook.heartbeat_timeout),
        Write::StartInstanceRefresh(_) => decide.rollback_refused = false,
        Write::CompleteLifecycleAction { instance, .. } => {
            decide.completed.insert(instance.clone(), now);
        }
        Write::RecordLifecycleActionHeartbeat { instance, .. } => {
            decide.extended.insert(instance.clone(), now);
        }
        _ => {}
    }
}

/// An answer that says that nothing is left to do.
fn is_done_already(write: &Write, error: &CloudError) -> bool {
    error.class == ErrorClass::NotFound
        && matches!(
            write,
            Write::CompleteLifecycleAction { .. }
                | Write::RecordLifecycleActionHeartbeat { .. }
                | Write::DeleteLifecycleHook { .. }
                | Write::DeleteGroup { .. }
                | Write::CancelInstanceRefresh { .. }
                | Write::RollbackInstanceRefresh { .. }
                | Write::DeleteLaunchTemplate { .. }
                | Write::DeleteLaunchTemplateVersions { .. }
        )
}

fn is_template(write: &Write) -> bool {
    matches!(
        write,
        Write::CreateLaunchTemplate { .. }
            | Write::CreateLaunchTemplateVersion { .. }
            | Write::DeleteLaunchTemplate { .. }
    )
}

async fn refused(site: &Site<'_>, write: &Write, error: CloudError, memory: &mut PoolMemory) {
    let Site { context, scene, retry_key, .. } = site;
    tracing::warn!(api = error.api, code = %error.code, message = %error.message, "AWS refuses a call");
    let message = error.to_string();
    memory.decide.ends_refused |= matches!(write, Write::TerminateInstances { .. });
    memory.decide.launch_refused |=
        matches!(write, Write::UpdateGroup { change, .. } if change.launch.is_some());
    if matches!(write, Write::StartInstanceRefresh(_)) {
        memory.decide.refresh_asked = None;
    }
    memory.decide.rollback_refused |= matches!(write, Write::RollbackInstanceRefresh { .. });
    if memory.refused.add(write, error, retry_key, context.clock.now()) {
        news::event(context, scene, EventKind::Warning, events::CALL_REJECTED, message).await;
    }
}

/// The instance that the hook lets go although its Node is not drained, since that takes longer than it may.
fn gives_up_a_drain<'a>(site: &Site<'_>, write: &'a Write, memory: &PoolMemory) -> Option<&'a str> {
    let Write::CompleteLifecycleAction { instance, .. } = write else { return None };
    let first = !memory.decide.completed.contains_key(instance);
    let member = site.observed.members.get(instance)?;
    let since = memory.decide.first_seen.get(instance).copied();
    let gone = since.is_some_and(|since| member.is_gone_since(since) == Some(true));
    let undrained = member.asg_machine.is_some() && !member.is_drained() && !gone;
    (first && undrained).then_some(instance.as_str())
}
