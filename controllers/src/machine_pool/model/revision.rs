//! Hashes of what is rolled out: of the desired launch template, and of what else makes instances outdated.

use crate::machine_pool::model::stamp::{Stamp, hash};
use crate::machine_pool::model::template_versions::pinned_stamp;
use crate::machine_pool::model::{Desired, DesiredLaunch, Observed};

/// The stamp that instances are compared with: the desired one, or that of the pinned version while the desired is
/// unknown.
#[must_use]
pub fn desired_stamp(desired: &Desired, observed: &Observed) -> Option<Stamp> {
    let pinned = pinned_stamp(observed);
    match &desired.launch {
        DesiredLaunch::Known { stamp, .. } => Some(stamp.clone().following(pinned.as_ref())),
        DesiredLaunch::Unknown => pinned,
    }
}

/// The hash of what is rolled out, tokens included: while it is the same, the desired state is.
#[must_use]
pub fn identity(desired: &Desired, observed: &Observed) -> Option<String> {
    let stamp = desired_stamp(desired, observed)?;
    Some(hash(&(stamp.rollout, stamp.bootstrap_spec, stamp.bootstrap_data, &desired.instance_types)))
}

/// The hash of what is rolled out, as `status.rollout` and the annotation of a stopped rollout name it. It does not
/// change when tokens rotate, so that a stopped rollout stays stopped.
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
