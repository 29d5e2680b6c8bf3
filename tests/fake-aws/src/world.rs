//! Everything behind a simulator.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::{Scope, Settings, faults::Faults, iam::Iam, log::Log, region::Region};

/// Everything behind a [`Simulator`].
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) now: DateTime<Utc>,
    pub(crate) stopped: bool,
    pub(crate) settings: Settings,
    pub(crate) regions: BTreeMap<Scope, Region>,
    pub(crate) faults: Faults,
    pub(crate) iam: Iam,
    pub(crate) log: Log,
}

impl World {
    /// The scope's world, made on first use.
    pub(crate) fn region(&mut self, scope: &Scope) -> &mut Region {
        let (seed, now) = (self.seed, self.now);
        let settings = &self.settings;
        self.regions.entry(scope.clone()).or_insert_with(|| Region::new(seed, scope, now, settings.clone()))
    }

    pub(crate) fn set_time(&mut self, to: DateTime<Utc>) {
        if to > self.now {
            self.now = to;
            for region in self.regions.values_mut() {
                region.advance(to);
            }
        }
    }
}
