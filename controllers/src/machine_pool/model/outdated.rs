//! The outdated instances, and why they are. `decide` finds them.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::{pool::RolloutType, reasons::up_to_date};

use crate::machine_pool::model::Desired;

/// Why an instance is outdated (reasons of the ASGMachine condition `UpToDate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutdatedReason {
    /// Its image is not the desired one. Other settings may have changed, too.
    ImageChanged,
    /// Machine settings, bootstrap or Kubernetes version changed.
    TemplateChanged,
    /// It was launched before its group was adopted.
    Adopted,
    /// Its type is no longer in `spec.instanceTypes`.
    TypeRemoved,
    /// An annotation of the ASGMachine requests its replacement.
    ReplaceRequested,
    /// AWS has scheduled its retirement.
    RetirementScheduled,
    /// EC2 recommends to replace the Spot instance, and the spec follows such recommendations.
    RebalanceRecommended,
    /// Its zone has more instances than others, and the spec balances zones.
    ZoneImbalance,
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
            Self::TypeRemoved => up_to_date::INSTANCE_TYPE_REMOVED,
            Self::ReplaceRequested => up_to_date::REPLACE_REQUESTED,
            Self::RetirementScheduled => up_to_date::RETIREMENT_SCHEDULED,
            Self::RebalanceRecommended => up_to_date::REBALANCE_RECOMMENDED,
            Self::ZoneImbalance => up_to_date::ZONE_IMBALANCE,
            Self::LaunchedBefore => up_to_date::LAUNCHED_BEFORE,
            Self::LifetimeExceeded => up_to_date::LIFETIME_EXCEEDED,
        }
    }

    /// Whether its launch template version or its type is not the desired one. The launch template of adopted instances
    /// is nothing that an instance refresh could roll back to, so that they are replaced one by one.
    #[must_use]
    pub fn is_of_launch_template(self) -> bool {
        matches!(self, Self::ImageChanged | Self::TemplateChanged | Self::TypeRemoved)
    }

    /// Whether the rolling update replaces it. With `OnDelete` a user does, by deleting the Machine or by an
    /// annotation.
    #[must_use]
    pub fn is_replaced_one_by_one(self, desired: &Desired) -> bool {
        match desired.rollout.type_ {
            RolloutType::RollingUpdate => true,
            // AWS skips instances with the desired version: those are replaced one by one, between refreshes.
            RolloutType::InstanceRefresh => !self.is_of_launch_template(),
            RolloutType::OnDelete => {
                matches!(
                    self,
                    Self::ReplaceRequested
                        | Self::RetirementScheduled
                        | Self::RebalanceRecommended
                        | Self::ZoneImbalance
                )
            }
        }
    }
}

/// The outdated instances by ID, and the instances whose launch template version is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outdated {
    reasons: BTreeMap<String, OutdatedReason>,
    unknown: BTreeSet<String>,
    of_another_template: BTreeSet<String>,
}

impl Outdated {
    /// Whether the instance is outdated.
    #[must_use]
    pub fn is_outdated(&self, id: &str) -> bool {
        self.reasons.contains_key(id)
    }

    /// Whether the instance is up to date: it is not outdated, and it is known what it was launched from.
    #[must_use]
    pub fn is_up_to_date(&self, id: &str) -> bool {
        !self.is_outdated(id) && !self.is_unknown(id) && !self.of_another_template.contains(id)
    }

    /// Whether it is unknown whether the instance is outdated: its launch template version was not read.
    #[must_use]
    pub fn is_unknown(&self, id: &str) -> bool {
        self.unknown.contains(id)
    }

    /// The instances of which it is unknown.
    #[must_use]
    pub fn unknown(&self) -> &BTreeSet<String> {
        &self.unknown
    }

    /// The instances that were launched from no launch template of the pool, and that no change of the desired state has
    /// made outdated yet.
    #[must_use]
    pub fn of_another_template(&self) -> &BTreeSet<String> {
        &self.of_another_template
    }

    /// Why the instance is outdated.
    #[must_use]
    pub fn reason(&self, id: &str) -> Option<OutdatedReason> {
        self.reasons.get(id).copied()
    }

    /// The same, with an instance that is outdated for another reason than its launch template.
    #[must_use]
    pub fn with_reason(mut self, id: &str, reason: OutdatedReason) -> Self {
        self.unknown.remove(id);
        self.of_another_template.remove(id);
        self.reasons.entry(id.to_owned()).or_insert(reason);
        self
    }

    /// Whether every instance is up to date.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.reasons.is_empty() && self.unknown.is_empty() && self.of_another_template.is_empty()
    }

    /// How many are outdated.
    #[must_use]
    pub fn count(&self) -> usize {
        self.reasons.len()
    }

    /// How many are outdated for this reason.
    #[must_use]
    pub fn with(&self, reason: OutdatedReason) -> usize {
        self.reasons.values().filter(|why| **why == reason).count()
    }

    /// The reasons why instances are outdated.
    #[must_use]
    pub fn reasons(&self) -> BTreeSet<OutdatedReason> {
        self.reasons.values().copied().collect()
    }
}

impl Outdated {
    /// The outdated instances, and those of an unknown version; an instance that is outdated for another reason is known
    /// to be.
    #[must_use]
    pub fn new(reasons: BTreeMap<String, OutdatedReason>, mut unknown: BTreeSet<String>) -> Self {
        unknown.retain(|id| !reasons.contains_key(id));
        Self { reasons, unknown, of_another_template: BTreeSet::new() }
    }

    /// The same, with the instances that were launched from no launch template of the pool. One that is outdated is not
    /// among them.
    #[must_use]
    pub fn with_another_template(mut self, instances: impl Iterator<Item = String>) -> Self {
        self.of_another_template = instances.filter(|id| !self.reasons.contains_key(id)).collect();
        self
    }
}
