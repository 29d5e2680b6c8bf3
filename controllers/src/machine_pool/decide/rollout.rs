//! Tells which instances are outdated, and why: by the hashes of launch-template versions alone, so that a restart, a
//! failover or a move changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::reasons::up_to_date;
use capasg_cloud::LaunchTemplateVersion;
use chrono::{DateTime, Utc};

use super::super::{
    stamp::{Stamp, hash},
    state::{Desired, LaunchWish, Member, Memory, Observed, TemplateView},
};
use super::launch_template::{pinned_stamp, pinned_version, stamps};

/// Why an instance is outdated (reasons of the ASGMachine condition `UpToDate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutdatedReason {
    /// Its image is not the wished one; other things may have changed with it.
    ImageChanged,
    /// Machine settings, bootstrap or Kubernetes version changed.
    TemplateChanged,
    /// Its type is no longer in `spec.instanceTypes`.
    TypeRemoved,
}

impl OutdatedReason {
    /// The reason as conditions spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ImageChanged => up_to_date::IMAGE_CHANGED,
            Self::TemplateChanged => up_to_date::TEMPLATE_CHANGED,
            Self::TypeRemoved => up_to_date::TYPE_REMOVED,
        }
    }
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

    /// Every reason that makes one outdated.
    #[must_use]
    pub fn reasons(&self) -> BTreeSet<OutdatedReason> {
        self.0.values().copied().collect()
    }
}

/// The stamp that instances are measured by: the wish, or the pinned version while the wish is not known.
#[must_use]
pub fn wish(desired: &Desired, observed: &Observed) -> Option<Stamp> {
    let pinned = pinned_stamp(observed);
    match &desired.launch {
        LaunchWish::Known { stamp, .. } => Some(stamp.clone().following(pinned.as_ref())),
        LaunchWish::Unknown => pinned,
    }
}

/// What a rollout rolls out: while this stays the same, it is one rollout.
#[must_use]
pub fn identity(desired: &Desired, observed: &Observed) -> Option<String> {
    let wish = wish(desired, observed)?;
    Some(hash(&(wish.rollout, wish.bootstrap_spec, wish.bootstrap_data, &desired.instance_types)))
}

/// Notes since when the wish is what it is. While it is not known, it is not a new one.
pub fn note_wish(desired: &Desired, observed: &Observed, memory: &mut Memory, now: DateTime<Utc>) {
    if let (LaunchWish::Known { .. }, Some(identity)) = (&desired.launch, identity(desired, observed))
        && memory.wish.as_ref().is_none_or(|(known, _)| *known != identity)
    {
        memory.wish = Some((identity, now));
    }
}

/// Compares each instance's launch-template version with the wish (H3). A version of another scheme or template tells
/// nothing, so it never makes an instance outdated.
#[must_use]
pub fn outdated(desired: &Desired, observed: &Observed) -> Outdated {
    let TemplateView::Present { id: template, versions, .. } = &observed.template else {
        return Outdated::default();
    };
    let stamps = stamps(observed);
    let wish = wish(desired, observed);
    let image = match &desired.launch {
        LaunchWish::Known { data, .. } => Some(data.image_id.clone()),
        LaunchWish::Unknown => {
            pinned_version(observed).and_then(|version| versions.get(&version)?.image_id.clone())
        }
    };
    let reason = |member: &Member| {
        let instance = member.instance.as_ref().filter(|i| !i.lifecycle.is_terminating())?;
        let from = instance.template.as_ref().filter(|(id, _)| id == template).map(|(_, version)| version);
        let launched_from = from.and_then(|version| stamps.get(version)).zip(wish.as_ref());
        if launched_from.is_some_and(|(stamp, wish)| stamp.outdated_under(wish)) {
            let before = from.and_then(|version| versions.get(version));
            return Some(why(before, image.as_ref()));
        }
        let kind = instance.instance_type.as_ref()?;
        (!desired.instance_types.contains(kind)).then_some(OutdatedReason::TypeRemoved)
    };
    Outdated(observed.members.iter().filter_map(|(id, member)| Some((id.clone(), reason(member)?))).collect())
}

fn why(before: Option<&LaunchTemplateVersion>, image: Option<&String>) -> OutdatedReason {
    let had = before.and_then(|version| version.image_id.as_ref());
    match (had, image) {
        (Some(had), Some(image)) if had != image => OutdatedReason::ImageChanged,
        _ => OutdatedReason::TemplateChanged,
    }
}
