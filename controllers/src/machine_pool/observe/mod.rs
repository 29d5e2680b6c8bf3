//! Observe: reads the facts about one pool from the caches, the inventory and, if a decision requires it, from the API
//! server and AWS. It changes nothing.

mod bootstrap;
pub mod desired;
mod fetched;
mod for_report;
mod gather;
mod guards;
mod instance_notices;
mod instances;
mod machines;
mod objects;
mod prerequisites;
mod references;
mod tokens;
pub mod user_data;

use std::{sync::Arc, time::Duration};

use capasg_api::{
    capi::{Cluster, MachinePool},
    conditions::{self, Finding},
};
use capasg_cloud::{Inventory, Place};
use chrono::TimeDelta;

use bootstrap::Bootstrap;
pub use fetched::Fetched;
pub use for_report::read_for_report;
pub use objects::objects;

use crate::machine_pool::ReconcileError;
use crate::machine_pool::model::memory::{PoolMemory, Registration};
use crate::machine_pool::model::ownership::is_owned;
use crate::machine_pool::model::{Desired, Facts, Known, Observation, PoolObjects, PoolState, References};
use crate::{Context, ObjectKey};
use references::InUse;

/// How often a pool is observed that waits for something that neither a watch nor a poll reports, such as a bootstrap
/// config that appears.
pub const REQUEUE: TimeDelta = TimeDelta::seconds(30);
/// How often images and the launch template are read while launches fail.
const WHILE_LAUNCHES_FAIL: Duration = Duration::from_mins(2);

/// Observes a pool, with the facts that decide required in this reconcile.
///
/// # Errors
/// A live list of Machines that failed.
pub async fn observe(
    context: &Context,
    objects: &PoolObjects,
    fetched: &mut Fetched,
    memory: &PoolMemory,
) -> Result<Observation, ReconcileError> {
    if objects.pause.is_paused() {
        Ok(paused(context, objects, fetched, memory).await)
    } else if objects.is_deleting() {
        deleting(context, objects, fetched, memory).await
    } else {
        running(context, objects, fetched, memory).await
    }
}

/// A paused pool. AWS is observed only while `clusterctl move` waits for a termination that is in flight (F5).
async fn paused(
    context: &Context,
    objects: &PoolObjects,
    fetched: &Fetched,
    memory: &PoolMemory,
) -> Observation {
    let mut observation = Observation::of(objects, PoolState::Paused(None));
    // Whoever changes the group meanwhile, nothing that is decided later follows from what was looked up before.
    let Some(place) = objects.place() else { return observation };
    if let Some((group, template)) = objects.cloud_names() {
        let inventory = context.inventories.inventory(&place);
        inventory.forget_lookups(&group, &template);
        let owner = objects.machine_pool.as_deref();
        let version = owner.and_then(MachinePool::version);
        References::forget(&inventory, &objects.pool, version, memory.sources.named_image());
    }
    observation.machines = machines::cached_machines(context, objects);
    // A pool that lost its owner id terminates nothing.
    if let Some(desired) = desired::identity(objects, None).filter(|_| objects.blocks_move()) {
        let (inventory, registered) = register(context, objects, &place, memory);
        observation.registered = registered;
        let machines = &observation.machines;
        let template = Known::Unread(None);
        let observed = gather::observed(context, &inventory, &desired, template, machines, fetched).await;
        observation.state = PoolState::Paused(Some(Box::new(Facts { desired, observed })));
    }
    observation
}

/// A pool that is not being deleted.
async fn running(
    context: &Context,
    objects: &PoolObjects,
    fetched: &mut Fetched,
    memory: &PoolMemory,
) -> Result<Observation, ReconcileError> {
    if objects.machine_pool.is_none()
        && let Some(desired) = unreferenced(objects)
    {
        // Boxed: it is rare, and would enlarge the future of every reconcile.
        return Ok(Box::pin(without_machine_pool(context, objects, fetched, memory, desired)).await);
    }
    let owner = match owner(objects) {
        Ok(owner) => owner,
        Err(finding) => return Ok(Observation::waiting(objects, finding, None)),
    };
    // Before the finalizer: a pool that could never use AWS can be deleted.
    let Some(place) = objects.place() else { return Ok(refused(context, objects, memory)) };
    if !objects.has_finalizer() || objects.owner_id().is_none() {
        let owner_id = objects.owner_id().map_or_else(|| context.random.owner_id(), str::to_owned);
        return Ok(Observation::of(objects, PoolState::Unclaimed(owner_id)));
    }
    if let Some(finding) = guards::region(objects) {
        return Ok(without_calls(context, objects, memory, finding));
    }
    let limit = guards::limit(context.kubernetes.as_ref(), objects);
    if let Some(limit) =
        limit.clone().filter(|limit| limit.excludes && objects.pool.spec.provider_id.is_none())
    {
        return Ok(Observation::waiting(objects, guards::too_large(limit), Some(REQUEUE)));
    }
    let (inventory, registered) = register(context, objects, &place, memory);
    fetched.begin(&inventory);
    read_again(&inventory, objects, &owner, memory);
    let mut observation = Observation::of(objects, PoolState::Waiting(None));
    observation.registered = registered;
    observation.unreachable = fetched.unreachable;
    let known = memory.sources.bootstrap();
    let namespace = &objects.key.namespace;
    let bootstrap =
        Bootstrap::observe(context.kubernetes.as_ref(), &owner, namespace, known, fetched.user_data).await;
    let mut bootstrap = match bootstrap {
        Ok(bootstrap) => Some(bootstrap),
        // Nothing runs yet and nothing can be created: AWS need not be read at all.
        Err(problem) if objects.pool.spec.provider_id.is_none() => {
            observation.findings = vec![prerequisites::for_bootstrap(&problem)];
            observation.state = PoolState::Waiting(Some(REQUEUE));
            return Ok(observation);
        }
        Err(problem) => {
            observation.findings.push(prerequisites::for_bootstrap(&problem));
            None
        }
    };
    observation.machines = fetched.machines(context, objects);
    let template = gather::template(&inventory, objects).await;
    let pinned_image =
        gather::pinned_image(&inventory, objects, &observation.machines, &template, owner.version());
    let used_groups = gather::pinned_security_groups(&inventory, objects, &template);
    observation.named_image = memory.sources.named_image().cloned();
    observation.references = References::observe(
        context.kubernetes.as_ref(),
        &inventory,
        objects,
        &owner,
        InUse { image: pinned_image.as_deref(), security_groups: used_groups.as_ref() },
        &mut observation.named_image,
    )
    .await?;
    if pinned_image.is_some() && observation.references.available_image.is_none() {
        // Shown until this process has read it, and never launched: a user may write the status.
        observation.references.available_image = references::reported_image(&objects.pool, owner.version());
    }
    // Only the image shows the platform.
    let is_windows = observation.references.image.as_ref().is_some_and(|image| image.is_windows);
    if let Some(problem) = bootstrap.as_ref().and_then(|read| read.problem(is_windows)) {
        observation.findings.push(prerequisites::for_bootstrap(problem));
        observation.references.holds_launch = true;
        // The group continues to launch, with tokens that are valid, unless what it launches cannot use the data either.
        if gather::pins_windows(&inventory, objects, &template).await {
            bootstrap = None;
        }
    }
    observation.bootstrap = bootstrap.as_ref().map(|read| read.digest.clone());
    observation.findings.extend(observation.references.findings.iter().cloned());
    let references = &observation.references;
    let Some(mut desired) = desired::desired(objects, references, bootstrap.as_ref(), used_groups.as_ref())
    else {
        let message = "waiting for Cluster API to set label cluster.x-k8s.io/cluster-name";
        observation.findings = vec![prerequisites::waiting(message)];
        return Ok(observation);
    };
    desired.ceiling = if references.denied { Some(0) } else { limit.as_ref().map(|limit| limit.replicas) };
    let exceeded = limit.filter(|limit| desired.replicas > limit.replicas);
    observation.findings.extend(exceeded.map(guards::too_large));
    let observed =
        gather::observed(context, &inventory, &desired, template, &observation.machines, fetched).await;
    observation.failed_reads =
        observed.failed_reads().chain(&observation.references.failed).cloned().collect();
    observation.state = PoolState::Running(Box::new(Facts { desired, observed }));
    Ok(observation)
}

/// What was read of the spec's references is read again after another `spec.retryToken`. While launches fail, or AWS rejects
/// the image for the group, images and the launch template are: another actor may have deregistered or deleted them.
fn read_again(inventory: &Inventory, objects: &PoolObjects, owner: &MachinePool, memory: &PoolMemory) {
    let (pool, named) = (&objects.pool, memory.sources.named_image());
    let Some((group, template)) = objects.cloud_names() else { return };
    if memory.began().is_some() && memory.recent_writes.retry() != pool.spec.retry_token.as_ref() {
        inventory.forget_lookups(&group, &template);
        References::forget(inventory, pool, owner.version(), named);
    }
    if memory.launches.are_failing() || memory.failed_calls.names_image() {
        References::forget_older_images(inventory, pool, named, WHILE_LAUNCHES_FAIL);
        inventory.forget_older_template(&template, WHILE_LAUNCHES_FAIL);
    }
}

/// What is desired of a pool that no MachinePool refers to, and that may have a group; `None` if it has none.
fn unreferenced(objects: &PoolObjects) -> Option<Desired> {
    let may_have_group = objects.has_finalizer() && !objects.has_created_nothing();
    may_have_group.then(|| desired::identity(objects, None)).flatten()
}

/// A pool that no MachinePool refers to, and that may have a group. The group keeps its size.
async fn without_machine_pool(
    context: &Context,
    objects: &PoolObjects,
    fetched: &mut Fetched,
    memory: &PoolMemory,
    mut desired: Desired,
) -> Observation {
    let Some(place) = objects.place() else { return refused(context, objects, memory) };
    if let Some(finding) = guards::region(objects) {
        return without_calls(context, objects, memory, finding);
    }
    let (inventory, registered) = register(context, objects, &place, memory);
    fetched.begin(&inventory);
    let machines = fetched.machines(context, objects);
    let template = gather::template(&inventory, objects).await;
    let observed = gather::observed(context, &inventory, &desired, template, &machines, fetched).await;
    if let Some(group) = observed.group.present() {
        desired.replicas = group.capacity.desired;
    }
    let shown = observed.group.present();
    let has_group = objects.records_group() || shown.is_some_and(|group| is_owned(&desired, group));
    let finding = if has_group {
        let other = objects::referring_machine_pool(context.kubernetes.as_ref(), objects);
        prerequisites::unreferenced(objects, other.as_deref(), &desired, &observed)
    } else {
        prerequisites::for_machine_pool()
    };
    let findings = vec![finding];
    let failed_reads = observed.failed_reads().cloned().collect();
    // Without its Cluster, core drains nothing, and the pool may be about to be deleted: it is only reported.
    let state = if has_group && objects.cluster.is_some() {
        PoolState::Unreferenced(Box::new(Facts { desired, observed }))
    } else {
        PoolState::Waiting(Some(REQUEUE))
    };
    let unreachable = fetched.unreachable;
    Observation {
        machines,
        findings,
        registered,
        failed_reads,
        unreachable,
        ..Observation::of(objects, state)
    }
}

/// A pool that is being deleted.
async fn deleting(
    context: &Context,
    objects: &PoolObjects,
    fetched: &Fetched,
    memory: &PoolMemory,
) -> Result<Observation, ReconcileError> {
    if !objects.has_finalizer() {
        return Ok(Observation::of(objects, PoolState::Released));
    }
    // AWS need not answer: its Region or its credentials may be what is wrong with the pool (E3).
    if objects.has_created_nothing() {
        return Ok(Observation::of(objects, PoolState::NeverCreated));
    }
    let core_timeout = objects.machine_pool.as_ref().and_then(|owner| owner.node_drain_timeout_seconds());
    // Something may have been created for an identity that another actor removed.
    let Some(desired) = desired::identity(objects, core_timeout) else {
        let finding = prerequisites::identity_lost(conditions::DELETING, true);
        return Ok(Observation::waiting(objects, finding, None));
    };
    let Some(place) = objects.place() else { return Ok(refused(context, objects, memory)) };
    let (inventory, registered) = register(context, objects, &place, memory);
    let machines = fetched.machines(context, objects);
    let template = gather::template(&inventory, objects).await;
    let observed = gather::observed(context, &inventory, &desired, template, &machines, fetched).await;
    let failed_reads = observed.failed_reads().cloned().collect();
    let state = PoolState::Deleting(Box::new(Facts { desired, observed }));
    Ok(Observation { machines, registered, failed_reads, ..Observation::of(objects, state) })
}

/// The MachinePool of a pool whose prerequisites are met; else what is missing.
fn owner(objects: &PoolObjects) -> Result<Arc<MachinePool>, Finding> {
    // C1: nothing is done before core sets the owner reference.
    let owner = objects.machine_pool.clone().ok_or_else(prerequisites::for_machine_pool)?;
    // A restored Cluster has no status until its provider reports again: nodes of a group that exists are drained meanwhile.
    let may_begin = |cluster: &Cluster| Cluster::is_infrastructure_ready(cluster) || objects.records_group();
    if !objects.cluster.as_deref().is_some_and(may_begin) {
        return Err(prerequisites::for_infrastructure());
    }
    if objects.pool.spec.provider_id.is_some() && objects.owner_id().is_none() {
        // With a new id, the pool would no longer own the group that it runs.
        return Err(prerequisites::identity_lost(conditions::GROUP_READY, false));
    }
    Ok(owner)
}

/// A pool that may not use its identity: nothing is read or written with it, and nothing of what it has counts as absent.
fn refused(context: &Context, objects: &PoolObjects, memory: &PoolMemory) -> Observation {
    without_calls(context, objects, memory, prerequisites::for_identity(&objects.access))
}

fn without_calls(
    context: &Context,
    objects: &PoolObjects,
    memory: &PoolMemory,
    finding: Finding,
) -> Observation {
    if let Some(registration) = memory.sources.registered() {
        unregister(context, &objects.key, registration);
    }
    Observation { unregistered: true, ..Observation::waiting(objects, finding, Some(REQUEUE)) }
}

/// Ends the registration of a pool; nothing that was looked up for it is kept.
pub fn unregister(context: &Context, pool: &ObjectKey, registration: &Registration) {
    let Registration { place, group, template } = registration;
    let inventory = context.inventories.inventory(place);
    inventory.forget_lookups(group, template);
    if context.unwatch(pool, place, group) {
        inventory.forget(group);
    }
}

/// Registers the pool's group with the inventory, so that polls read it.
fn register(
    context: &Context,
    objects: &PoolObjects,
    place: &Place,
    memory: &PoolMemory,
) -> (Arc<Inventory>, Option<Registration>) {
    let inventory = context.inventories.inventory(place);
    let registered =
        objects.cloud_names().map(|(group, template)| Registration { place: place.clone(), group, template });
    let before = memory.sources.registered();
    if let Some(Registration { place, group, .. }) = registered.as_ref().filter(|now| before != Some(now)) {
        inventory.register(group);
        context.watch(&objects.key, place, group);
        // What is left with another identity is not polled any more.
        if let Some(before) = before.filter(|before| (&before.place, &before.group) != (place, group)) {
            unregister(context, &objects.key, before);
        }
    }
    (inventory, registered)
}
