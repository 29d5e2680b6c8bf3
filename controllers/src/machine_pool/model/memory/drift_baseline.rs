//! The attribute values at the time when the desired state and the group were last equal. If an attribute differs now
//! and its desired value is unchanged, another actor changed it.

use std::collections::BTreeMap;

use capasg_api::{
    ASGMachinePool,
    conditions::{self, GROUP_READY},
};

use crate::machine_pool::model::{Bounds, Observed, Plan};

/// The attribute values at the time when the desired state and the group were last equal.
#[derive(Debug, Clone, Default)]
pub struct DriftBaseline {
    /// The desired value of each attribute of the group when desired state and group last agreed on it, by path.
    agreed: BTreeMap<String, String>,
    /// The group's bounds that this process wrote last, or found to be right.
    bounds: Option<Bounds>,
    /// The generation of the spec for which the previous leader's last report found the group in sync; 0 for none.
    in_sync: Option<i64>,
    /// The generation of the spec as it was last read.
    generation: Option<i64>,
}

impl DriftBaseline {
    /// The value at the time when the desired state and the group were last equal.
    #[must_use]
    pub fn agreed(&self, path: &str) -> Option<&String> {
        self.agreed.get(path)
    }

    /// Whether an attribute that differs from `desired` was changed by another actor: it was as desired before. A new
    /// leader relies on the previous leader's report, if that was for the same generation of the spec.
    #[must_use]
    pub fn is_drift(&self, path: &str, desired: &str) -> bool {
        match self.agreed.get(path) {
            Some(before) => before == desired,
            None => self.agreed.is_empty() && self.was_in_sync(),
        }
    }

    /// Whether the previous leader reported the group to be in sync with the spec as it is now.
    #[must_use]
    pub fn was_in_sync(&self) -> bool {
        self.generation.is_some() && self.in_sync == self.generation
    }

    /// The generation of the previous leader's report and that of the spec, for a test to set.
    #[cfg(test)]
    pub fn set_in_sync(&mut self, reported: i64, generation: i64) {
        (self.in_sync, self.generation) = (Some(reported), Some(generation));
    }

    /// The group's bounds that this process wrote last, or found to be right.
    #[must_use]
    pub fn bounds(&self) -> Option<Bounds> {
        self.bounds
    }

    /// Records the pool as it was read. The first report that is read is the previous leader's.
    pub(super) fn read(&mut self, pool: &ASGMachinePool) {
        self.generation = pool.metadata.generation;
        self.in_sync.get_or_insert_with(|| {
            let ready = |conditions| conditions::is_true(conditions, GROUP_READY);
            let status = pool.status.as_ref().filter(|status| ready(&status.conditions));
            status.map_or(0, |status| status.observed_generation)
        });
    }

    /// Records the attributes in which the desired state and the group are equal, as a settled view shows it.
    pub(super) fn agree(&mut self, observed: &Observed, plan: &Plan) {
        let Some(group) = observed.group.present().filter(|_| observed.group.is_settled()) else { return };
        let known = |path: &String| plan.agreed.contains_key(path);
        let differs = |path: &String| {
            plan.differences.iter().chain(&plan.previewed).any(|difference| difference.path == *path)
        };
        self.agreed.retain(|path, _| known(path) || differs(path));
        for (path, desired) in &plan.agreed {
            if self.agreed.get(path) != Some(desired) {
                self.agreed.insert(path.clone(), desired.clone());
            }
        }
        if !plan.sets_bounds() {
            self.set_bounds(group.capacity.min, group.capacity.max);
        }
    }

    /// Records that the group has these bounds.
    pub(super) fn set_bounds(&mut self, min: i32, max: i32) {
        self.bounds = Some(Bounds { min, max });
    }
}
