//! Tells which instances are outdated, and why. The engine for now is `OnDelete`: they are reported, and replaced when
//! their Machine is deleted.

use std::collections::BTreeMap;

use super::super::{
    stamp::Stamp,
    state::{Desired, LaunchWish, Observed, TemplateView},
};
use super::launch_template::{pinned_stamp, stamps};

/// Why an instance is outdated (reasons of the ASGMachine condition `UpToDate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutdatedReason {
    /// Machine settings, bootstrap or Kubernetes version changed.
    TemplateChanged,
    /// Its type is no longer in `spec.instanceTypes`.
    TypeRemoved,
}

/// The outdated instances by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outdated(BTreeMap<String, OutdatedReason>);

impl Outdated {
    /// Whether the instance is outdated.
    #[must_use]
    pub fn is_outdated(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// Why the instance is outdated.
    #[must_use]
    pub fn reason(&self, id: &str) -> Option<OutdatedReason> {
        self.0.get(id).copied()
    }

    /// How many are outdated.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Compares each instance's launch-template version with the wish, or with the pinned version while the wish is not
/// known. A version of another scheme or template tells nothing, so it never makes an instance outdated.
#[must_use]
pub fn outdated(desired: &Desired, observed: &Observed) -> Outdated {
    let stamps = stamps(observed);
    let pinned = pinned_stamp(observed);
    let wish: Option<Stamp> = match &desired.launch {
        LaunchWish::Known { stamp, .. } => Some(stamp.clone().following(pinned.as_ref())),
        LaunchWish::Unknown => pinned,
    };
    let TemplateView::Present { id: template, .. } = &observed.template else { return Outdated::default() };
    let reason = |member: &super::super::state::Member| {
        let instance = member.instance.as_ref().filter(|i| !i.lifecycle.is_terminating())?;
        let from = instance.template.as_ref().filter(|(id, _)| id == template);
        let launched_from = from.and_then(|(_, version)| stamps.get(version)).zip(wish.as_ref());
        if launched_from.is_some_and(|(stamp, wish)| stamp.outdated_under(wish)) {
            return Some(OutdatedReason::TemplateChanged);
        }
        let kind = instance.instance_type.as_ref()?;
        (!desired.instance_types.contains(kind)).then_some(OutdatedReason::TypeRemoved)
    };
    Outdated(observed.members.iter().filter_map(|(id, member)| Some((id.clone(), reason(member)?))).collect())
}
