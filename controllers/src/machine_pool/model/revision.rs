//! What is to be rolled out, as hashes: from the desired launch template and what else makes instances outdated.

use crate::machine_pool::model::stamp::{Stamp, hash};
use crate::machine_pool::model::template_versions::pinned_stamp;
use crate::machine_pool::model::{Desired, DesiredLaunch, Observed};

/// The stamp that instances are measured by: the desired one, or the pinned version's while that is not known.
#[must_use]
pub fn desired_stamp(desired: &Desired, observed: &Observed) -> Option<Stamp> {
    let pinned = pinned_stamp(observed);
    match &desired.launch {
        DesiredLaunch::Known { stamp, .. } => Some(stamp.clone().following(pinned.as_ref())),
        DesiredLaunch::Unknown => pinned,
    }
}

/// What a rollout rolls out: while this stays the same, it is one rollout.
#[must_use]
pub fn identity(desired: &Desired, observed: &Observed) -> Option<String> {
    let stamp = desired_stamp(desired, observed)?;
    Some(hash(&(stamp.rollout, stamp.bootstrap_spec, stamp.bootstrap_data, &desired.instance_types)))
}

/// What is rolled out, as `status.rollout` and the annotation of a stopped rollout name it: the same while tokens rotate,
/// so that a stopped rollout stays stopped.
#[must_use]
pub fn revision(desired: &Desired, observed: &Observed) -> Option<String> {
    Some(revision_of(&desired_stamp(desired, observed)?, desired))
}

/// The revision that an instance with this stamp is of.
#[must_use]
pub fn revision_of(stamp: &Stamp, desired: &Desired) -> String {
    let after = desired.rollout.after.map(|after| after.timestamp());
    hash(&(&stamp.rollout, &stamp.bootstrap_spec, &desired.instance_types, after, &desired.retry))
}
