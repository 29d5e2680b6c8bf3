//! The second half of a reconcile: acts on what one look at a pool came to, and reports it.

use capasg_api::{conditions::Finding, names::events};
use capasg_cloud::{CloudError, ErrorClass, InstanceTypes, Inventory};
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::{
    Next, ReconcileError,
    act::{Acted, Site, act},
    block_move,
    decide::{
        external, in_flight,
        rollout::{self, Outdated},
    },
    launches,
    memory::PoolMemory,
    news,
    observe::{self, Machines, References, Scene},
    reconcile::case,
    report::{Told, report},
    retry,
    state::{Desired, Observed, Plan, ReplicaOwner, TemplateView},
};
use crate::{Context, kubernetes::EventKind};

/// What nothing tells of (a bootstrap config that appears, an answer that stays away) is looked for this often.
pub(super) const LOOK_AGAIN: TimeDelta = TimeDelta::seconds(30);
/// What neither a watch nor a poll tells (hooks, templates, parameters of images, tags of subnets) is looked at this
/// often; how long an answer is believed decides what is read.
const LOOK_AROUND: TimeDelta = TimeDelta::minutes(30);
/// What AWS refuses to tell is asked for again after this.
const ASK_AGAIN: TimeDelta = TimeDelta::minutes(10);

/// What one look at a pool came to.
pub(super) struct Look {
    pub desired: Desired,
    pub observed: Observed,
    pub plan: Plan,
    pub machines: Machines,
    pub references: References,
    pub findings: Vec<Finding>,
    /// A read that failed, so that something is not known.
    pub unread: Option<CloudError>,
}

/// Acts on a look and reports it. `None` if a step's effect is known at once, so that looking again makes sense.
pub(super) async fn finish(
    context: &Context,
    inventory: &Inventory,
    scene: &Scene,
    look: Look,
    satisfied: Result<bool, ReconcileError>,
    may_repeat: bool,
    memory: &mut PoolMemory,
) -> Result<Option<Next>, ReconcileError> {
    let Look { desired, observed, mut plan, machines, references, findings, unread } = look;
    let before = memory.decide.rollout.clone();
    let now = context.clock.now();
    block_move::add(scene, &case(scene, &desired, &observed, memory, now), &mut plan);
    inventory.set_transition(&desired.group, plan.in_transition && !in_flight::is_at_rest(&observed, &plan));
    // A desired capacity that somebody else lowers ends nothing in AWS, and so gives no event.
    inventory.set_restless(&desired.group, desired.owner != ReplicaOwner::MachinePool);
    memory.decide.note_agreed(&observed, &plan);
    let site = Site {
        context,
        inventory,
        scene,
        desired: &desired,
        observed: &observed,
        retry_key: retry::retry_key(scene, memory, &plan),
    };
    // A read that failed is told like a step that failed; steps that did not need it are taken.
    let acted = act(&site, &plan, memory).await.and_then(|acted| satisfied.map(|_| acted));
    news::obstacle(context, scene, &plan, memory).await;
    if may_repeat && acted.as_ref().is_ok_and(|acted| acted.again) {
        return Ok(None);
    }
    let followed = plan.follows_rollout || scene.is_deleting();
    if acted.is_err() || !followed || matches!(observed.template, TemplateView::Unknown) {
        // What was not carried out is not told: a mark that is missing must be missed.
        // But for the refresh that is to be ended: that is said before anything is done.
        let ended = plan.rollout_status.take().and_then(|status| status.ended_refresh_id);
        plan.rollout_status = before;
        if let Some(status) = plan.rollout_status.as_mut().filter(|_| ended.is_some()) {
            status.ended_refresh_id = ended;
        }
    }
    let outdated =
        if scene.is_deleting() { Outdated::default() } else { rollout::outdated(&desired, &observed, now) };
    let look = launches::Look { observed: &observed, plan: &plan, references: &references };
    launches::look(context, inventory, scene, &look, memory).await;
    // Nothing but status waits for this, so it is read last.
    let types = instance_types(context, inventory, scene, memory).await;
    let told = Told {
        scene,
        types: types.as_ref().and_then(|types| types.as_ref().ok()),
        desired: Some(&desired),
        observed: Some(&observed),
        plan: &plan,
        outdated: &outdated,
        references: &references,
        findings,
        unreachable: unread.clone().or_else(|| unreachable(inventory, &acted)),
    };
    if !scene.is_deleting() {
        let PoolMemory { decide, ends, .. } = &mut *memory;
        observe::causes(inventory, &desired.group, &observed, &machines, decide, ends).await;
        news::adoption(context, &told, memory).await;
    }
    report(context, &told, &machines, memory).await?;
    if observed.group.present().is_some() && !told.is_foreign() {
        memory.provisioned = scene.pool.uid();
    }
    news::rollout(context, &told, memory).await;
    memory.decide.rollout.clone_from(&told.plan.rollout_status);
    let before = memory.decide.told_external;
    memory.decide.told_external = external::was_told(&desired, plan.handed_back, before);
    let mut next = next(&plan, &acted?, memory, now);
    if let Some(Err(error)) = types {
        let again = if error.class.is_permanent() { ASK_AGAIN } else { LOOK_AGAIN };
        next.after = Some(next.after.map_or(again, |after| after.min(again)));
    }
    looked_at(unread, next).map(Some)
}

/// What AWS says of the spec's instance types. A failure stops nothing: one that only a person can mend is told once.
async fn instance_types(
    context: &Context,
    inventory: &Inventory,
    scene: &Scene,
    memory: &mut PoolMemory,
) -> Option<Result<InstanceTypes, CloudError>> {
    if scene.is_deleting() {
        return None;
    }
    let found = inventory.instance_types(&scene.pool.spec.instance_types).await;
    let refused = found.as_ref().err().filter(|error| error.class.is_permanent()).map(ToString::to_string);
    if let Some(words) = refused.as_ref().filter(|_| memory.types_refused != refused) {
        let message = format!("status.capacity is not known: {words}");
        news::event(context, scene, EventKind::Warning, events::CALL_REJECTED, message).await;
    }
    memory.types_refused = refused;
    Some(found)
}

fn unreachable(inventory: &Inventory, acted: &Result<Acted, ReconcileError>) -> Option<CloudError> {
    match acted {
        Err(ReconcileError::Cloud(error))
            if matches!(error.class, ErrorClass::Throttled | ErrorClass::Transient | ErrorClass::Denied) =>
        {
            Some(error.clone())
        }
        _ => inventory.reachable().err(),
    }
}

fn next(plan: &Plan, acted: &Acted, memory: &PoolMemory, now: DateTime<Utc>) -> Next {
    let unmet = (!plan.needs.is_empty()).then_some(LOOK_AGAIN);
    let launches = memory.launches.wait(now).map(|wait| wait.max(TimeDelta::seconds(1)));
    let others = memory.refused.next_try(now).into_iter().chain(unmet).chain(acted.wait).chain(launches);
    let after = plan.look_again.into_iter().chain(others).fold(LOOK_AROUND, TimeDelta::min);
    Next { after: Some(after) }
}

/// A look-up that failed is tried again with backoff: nothing else would wake the pool.
fn looked_at(failed: Option<CloudError>, next: Next) -> Result<Next, ReconcileError> {
    failed.map_or(Ok(next), |error| Err(ReconcileError::Cloud(error)))
}
