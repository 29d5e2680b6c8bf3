//! Blocks `clusterctl move` while a termination is in flight, and unblocks it as soon as the termination is complete,
//! also while paused (F5).

use chrono::TimeDelta;
use kube::ResourceExt;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::decide::termination::in_flight;
use crate::machine_pool::model::{Input, Part, PoolObjects};

/// How often a paused pool is observed until its termination is complete.
const POLL: TimeDelta = TimeDelta::seconds(5);

/// Sets the annotation before instances are terminated, if it is not set. A value of another actor is not changed, and
/// blocks a move as well.
#[must_use]
pub fn block(input: &Input<'_>, terminates: bool) -> Part {
    let is_missing = input.objects.block_move().is_none();
    Part::of_all((terminates && is_missing).then(|| write(input.objects, true)))
}

/// Removes the annotation once no termination is in flight.
#[must_use]
pub fn unblock(input: &Input<'_>, terminates: bool) -> Part {
    if terminates || !input.objects.blocks_move() || in_flight::is_due(input) {
        return Part::default();
    }
    match in_flight::longest(input) {
        Some(left) => Part::requeue(left),
        None => unblock_if_ours(input.objects),
    }
}

/// Removes the annotation from a paused pool, its only write except for conditions: clusterctl pauses the Cluster
/// first, and then waits for the annotation to be removed.
#[must_use]
pub fn unblock_paused(input: &Input<'_>) -> Part {
    if !input.objects.blocks_move() {
        return Part::default();
    }
    match in_flight::longest(input) {
        Some(left) => Part { requeue_after: Some(left.min(POLL)), ..Part::needing_group() },
        None => unblock_if_ours(input.objects),
    }
}

/// Removes our annotation, whatever is in flight.
#[must_use]
pub fn unblock_if_ours(objects: &PoolObjects) -> Part {
    Part::of_all(objects.blocks_move().then(|| write(objects, false)))
}

fn write(objects: &PoolObjects, blocked: bool) -> KubeWrite {
    KubeWrite::AnnotateBlockMove {
        pool: objects.key.clone(),
        uid: objects.pool.uid().unwrap_or_default(),
        blocked,
    }
}
