//! Holds `clusterctl move` back while a termination is in flight, and lets it go on as soon as that is over, also while
//! paused (F5).

use chrono::TimeDelta;
use kube::ResourceExt;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::decide::termination::in_flight;
use crate::machine_pool::model::{Input, Part, PoolObjects};

/// How often a paused pool is read until its termination is over.
const POLL: TimeDelta = TimeDelta::seconds(5);

/// The annotation, before instances are terminated: one write when it changes. What others put there is left alone, and
/// holds a move back as well.
#[must_use]
pub fn hold(input: &Input<'_>, terminates: bool) -> Part {
    let is_missing = input.objects.block_move().is_none();
    Part::of_all((terminates && is_missing).then(|| write(input.objects, true)))
}

/// Takes the annotation off once no termination is in flight any more.
#[must_use]
pub fn release(input: &Input<'_>, terminates: bool) -> Part {
    if terminates || !input.objects.blocks_move() || in_flight::is_due(input) {
        return Part::default();
    }
    match in_flight::longest(input) {
        Some(left) => Part::requeue(left),
        None => release_if_ours(input.objects),
    }
}

/// The only thing that a paused pool waits for, and the only write alongside its conditions: clusterctl pauses the Cluster
/// first and then waits for the annotation to be removed.
#[must_use]
pub fn release_paused(input: &Input<'_>) -> Part {
    if !input.objects.blocks_move() {
        return Part::default();
    }
    match in_flight::longest(input) {
        Some(left) => Part { requeue_after: Some(left.min(POLL)), ..Part::needing_group() },
        None => release_if_ours(input.objects),
    }
}

/// Takes our annotation off, whatever is in flight.
#[must_use]
pub fn release_if_ours(objects: &PoolObjects) -> Part {
    Part::of_all(objects.blocks_move().then(|| write(objects, false)))
}

fn write(objects: &PoolObjects, blocked: bool) -> KubeWrite {
    KubeWrite::AnnotateBlockMove {
        pool: objects.key.clone(),
        uid: objects.pool.uid().unwrap_or_default(),
        blocked,
    }
}
