//! When the group last listed each instance. A view may be older than the previous one, and a cache older than our
//! writes.

use std::collections::BTreeMap;

use capasg_cloud::LifecycleState;
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::Observed;
use crate::machine_pool::model::read_lag::LIST_LAG;

/// A released instance is remembered for this long, well after any view that still shows it.
const RELEASED_FOR: TimeDelta = TimeDelta::minutes(10);

/// When instances were listed, when they were first observed as terminating or missing, and which are released.
#[derive(Debug, Clone, Default)]
pub struct Sightings {
    /// The zone of an instance and when the group last listed it.
    listed: BTreeMap<String, (String, DateTime<Utc>)>,
    /// When an instance was first observed as terminating or missing.
    terminating: BTreeMap<String, DateTime<Utc>>,
    /// When our finalizer was removed from an instance's ASGMachine.
    released: BTreeMap<String, DateTime<Utc>>,
}

impl Sightings {
    /// The instances that the group listed recently, and their zones.
    pub fn listed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.listed.iter().map(|(id, (zone, _))| (id.as_str(), zone.as_str()))
    }

    /// Whether the group listed an instance recently.
    #[must_use]
    pub fn was_listed(&self, id: &str) -> bool {
        self.listed.contains_key(id)
    }

    /// When an instance was first observed as terminating or missing.
    #[must_use]
    pub fn terminating_since(&self, id: &str) -> Option<DateTime<Utc>> {
        self.terminating.get(id).copied()
    }

    /// When our finalizer was removed from an instance's ASGMachine.
    #[must_use]
    pub fn released_at(&self, id: &str) -> Option<DateTime<Utc>> {
        self.released.get(id).copied()
    }

    /// Whether our finalizer was removed from an instance's ASGMachine.
    #[must_use]
    pub fn is_released(&self, id: &str) -> bool {
        self.released.contains_key(id)
    }

    /// Records the group as it is observed now.
    pub(super) fn observe(&mut self, observed: &Observed, now: DateTime<Utc>) {
        self.observe_listed(observed, now);
        if let Some(as_of) = observed.group.as_of() {
            for (id, instance) in &observed.instances {
                if instance.lifecycle().is_none_or(LifecycleState::is_terminating) {
                    self.terminating.entry(id.clone()).or_insert(as_of);
                } else {
                    self.terminating.remove(id);
                }
            }
        }
        self.terminating.retain(|id, _| observed.instances.contains_key(id));
        self.released.retain(|id, at| observed.instances.contains_key(id) || now - *at < RELEASED_FOR);
    }

    /// Forgets instances that a sufficiently later view does not list.
    fn observe_listed(&mut self, observed: &Observed, now: DateTime<Utc>) {
        for (id, instance) in &observed.instances {
            let Some(listed) = &instance.listed else { continue };
            // What has an ASGMachine is in the list of provider IDs, which a later cache may not show.
            let is_known = instance.asg_machine.is_some() || self.listed.contains_key(id);
            if is_known || !listed.lifecycle.is_terminating() {
                self.listed.insert(id.clone(), (listed.zone.clone(), now));
            }
        }
        let as_of = observed.group.as_of().unwrap_or(now);
        self.listed.retain(|_, (_, at)| as_of - *at < LIST_LAG);
    }

    /// Records that our finalizer was removed from an instance's ASGMachine.
    pub(super) fn release(&mut self, id: &str, now: DateTime<Utc>) {
        self.released.insert(id.to_owned(), now);
    }
}

#[cfg(test)]
impl Sightings {
    /// What was listed, for a test to set.
    pub fn listed_mut(&mut self) -> &mut BTreeMap<String, (String, DateTime<Utc>)> {
        &mut self.listed
    }

    /// What terminates or is missing, for a test to set.
    pub fn terminating_mut(&mut self) -> &mut BTreeMap<String, DateTime<Utc>> {
        &mut self.terminating
    }

    /// What is released, for a test to set.
    pub fn released_mut(&mut self) -> &mut BTreeMap<String, DateTime<Utc>> {
        &mut self.released
    }
}
