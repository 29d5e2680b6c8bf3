//! The launch template versions that AWS reports and that are not among those that were read: another actor created them
//! since, or deleted them.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::read_lag::reads_behind;
use crate::machine_pool::model::template_versions::missing_versions;
use crate::machine_pool::model::{Known, Observed};

/// When each of them was first observed.
#[derive(Debug, Clone, Default)]
pub struct UnknownVersions(BTreeMap<i64, DateTime<Utc>>);

/// What is missing to know whether a version exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A read of the launch template.
    Read,
    /// This much time: reads may not show the version yet.
    Time(TimeDelta),
}

impl UnknownVersions {
    /// What is missing to know whether the versions in use exist; `None` once that is known. One that a read does not
    /// show, although it began long enough after the version was observed, was deleted.
    #[must_use]
    pub fn missing(&self, observed: &Observed, now: DateTime<Utc>) -> Option<Missing> {
        let Known::Present(template) = &observed.template else { return None };
        let missing = missing_versions(observed).into_iter().filter_map(|version| {
            // One that was not recorded is observed now.
            let since = self.0.get(&version).copied().unwrap_or(now);
            let wait = reads_behind(since, template.as_of)?;
            let elapsed = now - template.as_of;
            Some(if template.as_of < since || elapsed >= wait {
                Missing::Read
            } else {
                Missing::Time(wait - elapsed)
            })
        });
        missing.min_by_key(|missing| match missing {
            Missing::Read => TimeDelta::zero(),
            Missing::Time(wait) => *wait,
        })
    }

    /// Records the versions as they are observed now.
    pub(super) fn observe(&mut self, observed: &Observed, now: DateTime<Utc>) {
        let missing = missing_versions(observed);
        self.0.retain(|version, _| missing.contains(version));
        for version in missing {
            self.0.entry(version).or_insert(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_pool::decide::testing::{Stage, now};
    use crate::machine_pool::model::launch_record::LaunchRecord;

    /// Instance `i-1` has version 9, and the launch template was read this many seconds ago.
    fn unknown(seconds: i64) -> Observed {
        let mut stage = Stage::new(2);
        stage.add("i-9", 9);
        let mut observed = stage.observed;
        if let Known::Present(template) = &mut observed.template {
            template.as_of = now() - TimeDelta::seconds(seconds);
        }
        observed
    }

    #[test]
    fn an_unknown_version_is_read_and_once_more_after_the_lag_of_reads() {
        let mut versions = UnknownVersions::default();
        assert_eq!(versions.missing(&unknown(3600), now()), Some(Missing::Read), "an old read");
        versions.observe(&unknown(3600), now());
        assert_eq!(versions.missing(&unknown(1), now()), Some(Missing::Read), "from before it was observed");
        assert_eq!(versions.missing(&unknown(0), now()), Some(Missing::Time(TimeDelta::seconds(15))));
        let later = now() + TimeDelta::seconds(15);
        assert_eq!(versions.missing(&unknown(0), later), Some(Missing::Read));
        assert_eq!(versions.missing(&unknown(-15), later), None, "it was deleted");
        versions.observe(&Stage::new(2).observed, now());
        assert_eq!(versions.missing(&Stage::new(2).observed, now()), None);
    }

    /// What was desired when the pool found an instance is not what it was launched from.
    #[test]
    fn the_version_of_an_instance_whose_launch_is_not_recorded_is_read() {
        let stamp = "capasg/1 content=0123456789abcdef rollout=1123456789abcdef image=2123456789abcdef \
                     spec=3123456789abcdef data=4123456789abcdef";
        let missing = |record: &str| {
            let mut observed = unknown(60);
            let own = observed.instances.get_mut("i-9").and_then(|instance| instance.asg_machine.as_mut());
            own.unwrap().launch_record = LaunchRecord::parse(&format!("{record} {stamp}"));
            missing_versions(&observed)
        };
        assert_eq!(missing("launched"), [].into());
        assert_eq!(missing("found"), [9].into());
    }
}
