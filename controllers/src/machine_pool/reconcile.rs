//! One reconcile of one pool: observe, decide, act, report.

use std::sync::Arc;

use capasg_cloud::Inventory;

use crate::machine_pool::act::act;
use crate::machine_pool::decide::decision;
use crate::machine_pool::model::memory::record::Entry;
use crate::machine_pool::model::memory::{PoolMemory, Registration};
use crate::machine_pool::model::{Acted, Decision, Observation, PoolObjects};
use crate::machine_pool::observe::{Fetched, objects, observe, read_for_report, unregister};
use crate::machine_pool::report::{needs, nodes::next_timeout, report};
use crate::machine_pool::{ReconcileError, Requeue};
use crate::{Context, ObjectKey};

/// If the effect of a step is known at once, the pool is observed again in the same reconcile, in at most this many
/// rounds.
const ROUNDS: usize = 4;

/// Observes, decides, acts and reports for one pool. What failed without holding up the rest is in the answer.
///
/// # Errors
/// A call failed that everything else depends on. The caller retries with backoff.
pub async fn reconcile(context: &Context, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
    let Some(pool) = context.kubernetes.pool(key) else {
        forget(context, key).await;
        return Ok(Requeue::default());
    };
    let memory = context.memory(key);
    let memory = &mut *memory.lock().await;
    let notices = Notices::received(context, memory);
    let objects = objects(context, pool).await?;
    let mut rounds = 1;
    let (requeue, is_acted_on) = loop {
        let (observation, decision) = observe_and_decide(context, &objects, memory).await?;
        let acted = act(context, &observation, &decision, memory).await;
        if acted.again && rounds < ROUNDS {
            rounds += 1;
            continue;
        }
        // What passes while the report is written is due as well.
        let nodes = next_timeout(&observation, &decision.plan, memory, context.clock.now());
        if !observation.is_paused() {
            report(context, &observation, &decision, &acted, memory).await?;
        }
        let is_acted_on = !acted.notices_wait;
        let requeue = Requeue::of(&observation, &decision.plan, acted, memory, context.clock.now());
        break (requeue.within(nodes), is_acted_on);
    };
    if is_acted_on {
        notices.acknowledge();
    }
    Ok(requeue)
}

/// Observes and decides, and reads what decide requires, until nothing is missing.
async fn observe_and_decide(
    context: &Context,
    objects: &PoolObjects,
    memory: &mut PoolMemory,
) -> Result<(Observation, Decision), ReconcileError> {
    let (mut fetched, mut reported) = (Fetched::default(), false);
    loop {
        let mut observation = observe(context, objects, &mut fetched, memory).await?;
        memory.record(Entry::Observed(&observation), context.clock.now());
        let decision = decision(&observation, memory, context.clock.now());
        // The status of a paused pool is written with the resource version just read, before act writes to the object.
        if observation.is_paused() && !std::mem::replace(&mut reported, true) {
            report(context, &observation, &decision, &Acted::default(), memory).await?;
        }
        if fetched.fetch(context, &observation, &decision.plan.needs).await {
            continue;
        }
        observation.failed_fetches = fetched.failed;
        observation.unlisted = fetched.unlisted;
        let now = context.clock.now();
        memory.record(Entry::Decided { observation: &observation, plan: &decision.plan }, now);
        let needs = needs(&observation, memory, now);
        observation.reads = read_for_report(context, &observation, &needs).await;
        memory.record(Entry::Read(&observation), context.clock.now());
        return Ok((observation, decision));
    }
}

/// Drops the memory of a deleted pool. This waits for a reconcile of the pool in progress.
pub async fn forget(context: &Context, key: &ObjectKey) {
    let Some(memory) = context.known_memory(key) else {
        // A reconcile that read the pool before its deletion may have reported it after the memory was dropped.
        if context.kubernetes.pool(key).is_none() {
            context.observer.forgotten(key);
        }
        return;
    };
    let mut memory = memory.lock().await;
    if context.kubernetes.pool(key).is_some() {
        // A pool of that name was created meanwhile, and may be registered for the same group.
        return;
    }
    context.forget(key);
    context.observer.forgotten(key);
    // A reconcile that waits for this memory must register the group again.
    let forgotten = std::mem::take(&mut *memory);
    if let Some(registration) = forgotten.sources.registered() {
        unregister(context, key, registration);
    }
}

/// The AWS events about a pool's instances that were received before a reconcile began: later ones were not observed.
struct Notices(Option<(Arc<Inventory>, String, u64)>);

impl Notices {
    fn received(context: &Context, memory: &PoolMemory) -> Self {
        Self(memory.sources.registered().map(|Registration { place, group, .. }| {
            let inventory = context.inventories.inventory(place);
            let revision = inventory.notice_revision(group);
            (inventory, group.clone(), revision)
        }))
    }

    /// The reconcile observed them and failed at no step, so that their messages may be deleted from the queue.
    fn acknowledge(self) {
        if let Some((inventory, group, revision)) = self.0 {
            inventory.acknowledge_notices(&group, revision);
        }
    }
}
