//! Hashes of what is rolled out: of the desired launch template, and of what else makes instances outdated.

use crate::machine_pool::model::stamp::{Stamp, hash};
use crate::machine_pool::model::template_versions::{pinned_stamp, previous_stamp};
use crate::machine_pool::model::{Desired, DesiredLaunch, Observed};

/// The stamp that instances are compared with: the desired one, or that of the pinned version while the desired is
/// unknown.
#[must_use]
pub fn desired_stamp(desired: &Desired, observed: &Observed) -> Option<Stamp> {
    match &desired.launch {
        DesiredLaunch::Known { stamp, .. } => {
            Some(stamp.clone().following(previous_stamp(observed).as_ref()))
        }
        DesiredLaunch::Unknown => pinned_stamp(observed),
    }
}

/// Hash of everything that makes instances outdated, including the bootstrap data with known tokens masked. Used to
/// detect that the desired state changed.
#[must_use]
pub fn identity(desired: &Desired, observed: &Observed) -> Option<String> {
    let stamp = desired_stamp(desired, observed)?;
    Some(hash(&(stamp.rollout, stamp.bootstrap_spec, stamp.bootstrap_data, &desired.instance_types)))
}

/// Hash of the desired state without the bootstrap data, so that it survives token rotation and a stopped rollout stays
/// stopped. `status.rollout` and the annotation `rollout-stopped` contain it.
#[must_use]
pub fn revision(desired: &Desired, observed: &Observed) -> Option<String> {
    Some(revision_of(&desired_stamp(desired, observed)?, desired))
}

/// The revision of an instance with this stamp.
#[must_use]
pub fn revision_of(stamp: &Stamp, desired: &Desired) -> String {
    let after = desired.rollout.after.map(|after| after.timestamp());
    hash(&(&stamp.rollout, &stamp.bootstrap_spec, &desired.instance_types, after, &desired.retry))
}
