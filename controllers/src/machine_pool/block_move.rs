//! Holds `clusterctl move` back while an end is in flight, and lets it go on as soon as it is over, also while paused.

use capasg_api::names::annotations;
use chrono::TimeDelta;
use kube::ResourceExt;

use super::{
    Next, ReconcileError,
    decide::in_flight,
    desired,
    memory::PoolMemory,
    observe::{self, Scene, Wanted, cached_machines},
    reconcile::{case, watch},
    state::{Case, Plan, Step, TemplateView},
};
use crate::{Context, kubernetes::KubeWrite, names::BLOCK_MOVE_MARK};

/// How often a paused pool looks whether its end is over.
const LOOK: TimeDelta = TimeDelta::seconds(5);

/// Adds the annotation before ends are asked for, and takes it off once none is in flight any more (F5): one write
/// when it changes. What others put there is left alone, and holds a move back as well.
pub fn add(scene: &Scene, case: &Case<'_>, plan: &mut Plan) {
    if plan.ends_instances() {
        let set = mark(scene).is_none().then(|| write(scene, true));
        plan.steps.splice(0..0, set.map(Step::Kubernetes));
    } else if is_ours(scene) && !in_flight::is_about_to_be(case) {
        match in_flight::longest(case) {
            Some(left) => plan.look_again_within(left),
            None => plan.kubernetes(write(scene, false)),
        }
    }
}

/// The only thing that a paused pool waits for (F5), and the only write beside its conditions: clusterctl pauses the Cluster
/// first and then waits for the annotation to go. AWS is asked, and never told anything.
///
/// # Errors
/// A write that the API server refused.
pub async fn lift(context: &Context, scene: &Scene, memory: &mut PoolMemory) -> Result<Next, ReconcileError> {
    if !is_ours(scene) {
        return Ok(Next::default());
    }
    let mut left = look(context, scene, memory).await;
    if let (Some(_), Some((group, _))) = (left, desired::cloud_names(scene)) {
        // An answer that stays away changes nothing: then only time tells.
        if let Err(error) = watch(context, scene, memory).read_group(&group).await {
            tracing::info!(%error, pool = %scene.key, "whether an end is over could not be read");
        }
        left = look(context, scene, memory).await;
    }
    if let Some(left) = left {
        return Ok(Next { after: Some(left.min(LOOK)) });
    }
    context.kubernetes.write(&write(scene, false)).await?;
    Ok(Next::default())
}

/// How much longer an end of a paused pool may be in flight.
async fn look(context: &Context, scene: &Scene, memory: &mut PoolMemory) -> Option<TimeDelta> {
    // A pool that lost what says whose it is ends nothing.
    let desired = desired::identity(scene, None)?;
    let inventory = watch(context, scene, memory);
    let machines = cached_machines(context, scene);
    let (template, want) = (TemplateView::Unknown, Wanted::default());
    let (observed, _) =
        observe::observe(context, &inventory, &desired, template, &machines, &want, memory).await;
    in_flight::longest(&case(scene, &desired, &observed, memory, context.clock.now()))
}

fn mark(scene: &Scene) -> Option<&str> {
    scene.pool.annotations().get(annotations::BLOCK_MOVE).map(String::as_str)
}

fn is_ours(scene: &Scene) -> bool {
    mark(scene) == Some(BLOCK_MOVE_MARK)
}

fn write(scene: &Scene, blocked: bool) -> KubeWrite {
    KubeWrite::BlockMove { pool: scene.key.clone(), uid: scene.pool.uid().unwrap_or_default(), blocked }
}
