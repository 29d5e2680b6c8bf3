//! Tells which instances are outdated, and why: by the hashes of launch-template versions alone, so that a restart, a
//! failover or a move changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::{pool::RolloutType, reasons::up_to_date};
use capasg_cloud::{LaunchTemplateVersion, NoticeKind};
use chrono::{DateTime, TimeDelta, Utc};

use super::super::{
    stamp::{Stamp, hash},
    state::{Case, Desired, LaunchWish, Member, Memory, Observed, TemplateView},
};
use super::{
    adoption,
    launch_template::{pinned_stamp, pinned_version, stamps},
    members,
};

/// Why an instance is outdated (reasons of the ASGMachine condition `UpToDate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutdatedReason {
    /// Its image is not the wished one; other things may have changed with it.
    ImageChanged,
    /// Machine settings, bootstrap or Kubernetes version changed.
    TemplateChanged,
    /// It ran when its group was adopted.
    Adopted,
    /// Its type is no longer in `spec.instanceTypes`.
    TypeRemoved,
    /// Somebody asks for it, by an annotation of the ASGMachine.
    ReplaceRequested,
    /// AWS will retire or stop the machine.
    RetirementScheduled,
    /// EC2 recommends to replace the Spot instance, and the pool wants that.
    RebalanceRecommended,
    /// It was launched before `spec.rollout.after`.
    LaunchedBefore,
    /// It is older than `spec.rollout.maxInstanceLifetimeSeconds`.
    LifetimeExceeded,
}

impl OutdatedReason {
    /// The reason as conditions spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ImageChanged => up_to_date::IMAGE_CHANGED,
            Self::TemplateChanged => up_to_date::TEMPLATE_CHANGED,
            Self::Adopted => up_to_date::ADOPTED,
            Self::TypeRemoved => up_to_date::TYPE_REMOVED,
            Self::ReplaceRequested => up_to_date::REPLACE_REQUESTED,
            Self::RetirementScheduled => up_to_date::RETIREMENT_SCHEDULED,
            Self::RebalanceRecommended => up_to_date::REBALANCE_RECOMMENDED,
            Self::LaunchedBefore => up_to_date::LAUNCHED_BEFORE,
            Self::LifetimeExceeded => up_to_date::LIFETIME_EXCEEDED,
        }
    }

    /// Whether the instance is not what the group launches or is to launch. What launched adopted ones is nothing that a
    /// refresh could go back to, so that they are replaced one by one.
    #[must_use]
    pub fn is_of_the_template(self) -> bool {
        matches!(self, Self::ImageChanged | Self::TemplateChanged | Self::TypeRemoved)
    }

    /// Whether the rolling update replaces it. With `OnDelete` a person does, by deleting the Machine or by asking for
    /// it.
    #[must_use]
    pub fn rolls(self, desired: &Desired) -> bool {
        match desired.rollout.type_ {
            RolloutType::RollingUpdate => true,
            // AWS skips what is made from the wished version: those are replaced one by one, between refreshes.
            RolloutType::InstanceRefresh => !self.is_of_the_template(),
            RolloutType::OnDelete => {
                matches!(
                    self,
                    Self::ReplaceRequested | Self::RetirementScheduled | Self::RebalanceRecommended
                )
            }
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

    /// How many are outdated for a reason.
    #[must_use]
    pub fn with(&self, reason: OutdatedReason) -> usize {
        self.0.values().filter(|why| **why == reason).count()
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

/// For how long the wish has been the same. A new process waits anew: it cannot know what was there before.
#[must_use]
pub fn wish_age(case: &Case<'_>) -> TimeDelta {
    let identity = identity(case.desired, case.observed);
    let since = case.memory.wish.as_ref().filter(|(known, _)| Some(known) == identity.as_ref());
    since.map_or(TimeDelta::zero(), |(_, since)| case.now - *since)
}

/// What is rolled out, as `status.rollout` and the mark of a stopped rollout name it: the same while tokens rotate, so
/// that a stopped rollout stays stopped.
#[must_use]
pub fn revision(desired: &Desired, observed: &Observed) -> Option<String> {
    Some(revision_of(&wish(desired, observed)?, desired))
}

fn revision_of(stamp: &Stamp, desired: &Desired) -> String {
    let after = desired.rollout.after.map(|after| after.timestamp());
    hash(&(&stamp.rollout, &stamp.bootstrap_spec, &desired.instance_types, after, &desired.retry))
}

/// What most of the outdated instances were made from.
#[must_use]
pub fn most_common_revision(desired: &Desired, observed: &Observed, outdated: &Outdated) -> Option<String> {
    let TemplateView::Present { id: template, .. } = &observed.template else { return None };
    let stamps = stamps(observed);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, member) in observed.members.iter().filter(|(id, _)| outdated.is_outdated(id)) {
        let version = member.instance.as_ref().and_then(|instance| instance.template.as_ref());
        let version = version.filter(|(id, _)| id == template);
        if let Some(stamp) = version.and_then(|(_, version)| stamps.get(version)) {
            *counts.entry(revision_of(stamp, desired)).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(revision, _)| revision)
}

/// How long until time alone makes another instance outdated.
#[must_use]
pub fn until_next(case: &Case<'_>) -> Option<TimeDelta> {
    let Case { desired, observed, now, .. } = *case;
    let expiries = members::live(observed).filter_map(|(id, member)| expires_at(desired, id, member));
    let next = expiries.chain(desired.rollout.after).filter(|at| *at > now).min()?;
    Some(next - now)
}

/// When an instance exceeds its lifetime: up to a tenth before the limit, by its id, so that instances which were
/// launched together do not expire together.
fn expires_at(desired: &Desired, id: &str, member: &Member) -> Option<DateTime<Utc>> {
    let lifetime = desired.rollout.max_instance_lifetime?;
    let spread = u64::from_str_radix(&hash(&id), 16).unwrap_or(0) % 1000;
    let earlier = lifetime.num_seconds() * i64::try_from(spread).unwrap_or(0) / 10_000;
    Some(member.launched_at()? + lifetime - TimeDelta::seconds(earlier))
}

/// Notes since when the wish is what it is. While it is not known, it is not a new one.
pub fn note_wish(desired: &Desired, observed: &Observed, memory: &mut Memory, now: DateTime<Utc>) {
    if let (LaunchWish::Known { .. }, Some(identity)) = (&desired.launch, identity(desired, observed))
        && memory.wish.as_ref().is_none_or(|(known, _)| *known != identity)
    {
        memory.wish = Some((identity, now));
    }
}

/// Compares each instance's launch-template version with the wish (H3), then its type, what people ask for, and its age: the
/// first of these that the strategy replaces counts, or the first. A version of another scheme or template tells nothing, so
/// it never makes an instance outdated, unless the group was adopted with it.
#[must_use]
pub fn outdated(desired: &Desired, observed: &Observed, now: DateTime<Utc>) -> Outdated {
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
    let adopted = adoption::adopted_from(observed.group.present());
    let made = |member: &Member| {
        let instance = member.instance.as_ref()?;
        if wish.is_some() && adopted.contains(adoption::origin(instance)) {
            return Some(OutdatedReason::Adopted);
        }
        let from = instance.template.as_ref().filter(|(id, _)| id == template).map(|(_, version)| version);
        let launched_from = from.and_then(|version| stamps.get(version)).zip(wish.as_ref());
        if launched_from.is_some_and(|(stamp, wish)| stamp.outdated_under(wish)) {
            let before = from.and_then(|version| versions.get(version));
            return Some(why(before, image.as_ref()));
        }
        let removed = instance.instance_type.as_ref().filter(|kind| !desired.instance_types.contains(kind));
        removed.map(|_| OutdatedReason::TypeRemoved)
    };
    let reason = |id: &str, member: &Member| {
        member.instance.as_ref().filter(|i| !i.lifecycle.is_terminating())?;
        match made(member) {
            Some(why) if why.rolls(desired) => Some(why),
            // People replace what is made from another spec, but asked us for this one.
            made => asked_or_aged(desired, id, member, now)
                .filter(|why| made.is_none() || why.rolls(desired))
                .or(made),
        }
    };
    Outdated(
        observed.members.iter().filter_map(|(id, member)| Some((id.clone(), reason(id, member)?))).collect(),
    )
}

/// Why an instance is outdated, whatever it is made from.
fn asked_or_aged(desired: &Desired, id: &str, member: &Member, now: DateTime<Utc>) -> Option<OutdatedReason> {
    if member.asg_machine.as_ref().is_some_and(|machine| machine.replace_requested) {
        return Some(OutdatedReason::ReplaceRequested);
    }
    match member.notice {
        Some(NoticeKind::Retirement) => return Some(OutdatedReason::RetirementScheduled),
        Some(NoticeKind::Rebalance) if desired.rebalance => {
            return Some(OutdatedReason::RebalanceRecommended);
        }
        _ => {}
    }
    // Before that time nothing is outdated by it: what replaced it would have been launched too early as well.
    let after = desired.rollout.after.filter(|after| *after <= now);
    if after.is_some_and(|after| member.launched_at().is_some_and(|launched| launched < after)) {
        return Some(OutdatedReason::LaunchedBefore);
    }
    expires_at(desired, id, member).filter(|at| *at <= now).map(|_| OutdatedReason::LifetimeExceeded)
}

fn why(before: Option<&LaunchTemplateVersion>, image: Option<&String>) -> OutdatedReason {
    let had = before.and_then(|version| version.image_id.as_ref());
    match (had, image) {
        (Some(had), Some(image)) if had != image => OutdatedReason::ImageChanged,
        _ => OutdatedReason::TemplateChanged,
    }
}
