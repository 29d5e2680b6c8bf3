//! Whether a rolling update may replace instances now, and why not.

use capasg_api::pool::{Opening, RolloutMode};
use capasg_cloud::Group;
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::decide::launch_template::Pin;
use crate::machine_pool::decide::rollout::instance_refresh::may_be_missing;
use crate::machine_pool::decide::rollout::outdated::desired_age;
use crate::machine_pool::decide::timing::{HOLD, STABLE};
use crate::machine_pool::model::revision::desired_stamp;
use crate::machine_pool::model::template_versions::pinned_stamp;
use crate::machine_pool::model::{DesiredLaunch, Input};

/// Whether a rolling update may replace instances now, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// The spec pauses rollouts: drains continue, and joined instances of the surge are kept.
    Paused,
    /// New instances did not become available in time: drains continue, and the surge is removed.
    Stopped,
    /// No window is open: as while paused, until the next one opens.
    Closed(Option<(DateTime<Utc>, &'static str)>),
    /// The desired state changed too recently; the rollout may start after this long.
    Settling(TimeDelta),
    /// The group does not launch what is desired yet, or an instance refresh may be in progress: instances are kept, surge
    /// included.
    Held,
    /// Held for a long time, or the desired state is unknown: only instances of the surge that are up to date are kept.
    Stalled,
    /// The desired state has had no version for a long time, since AWS rejects it: the surge is removed.
    Rejected,
    /// AWS replaces outdated instances, or is about to: there is no rolling update.
    Refreshing,
    /// The group launches the desired configuration.
    Open,
}

impl Permission {
    /// How long until it may be another one although nothing else changes.
    #[must_use]
    pub fn until_next(self, input: &Input<'_>) -> Option<TimeDelta> {
        match self {
            Self::Settling(wait) => Some(wait),
            Self::Held | Self::Stalled => Some(HOLD),
            Self::Closed(next) => next.map(|(at, _)| at - input.now),
            Self::Open => match input.desired.disruption.opening(input.now) {
                Opening::Open { until, .. } => Some(until - input.now),
                Opening::Always | Opening::Closed { .. } => None,
            },
            Self::Paused | Self::Stopped | Self::Rejected | Self::Refreshing => None,
        }
    }
}

/// Whether a rolling update may replace instances now, and why not.
#[must_use]
pub fn permission(input: &Input<'_>, group: &Group, pin: &Pin) -> Permission {
    let Input { desired, observed, now, .. } = *input;
    if desired.rollout.mode == RolloutMode::Paused {
        return Permission::Paused;
    }
    if input.is_rollout_stopped() {
        return Permission::Stopped;
    }
    if let Opening::Closed { next } = desired.disruption.opening(now) {
        return Permission::Closed(next);
    }
    // Whether instances are outdated is unknown, and what the group launches.
    if input.memory.unknown_versions.missing(observed, now).is_some() {
        return Permission::Held;
    }
    if matches!(desired.launch, DesiredLaunch::Unknown) {
        return Permission::Stalled;
    }
    let Some(wanted) = desired_stamp(desired, observed) else { return Permission::Held };
    let age = desired_age(input);
    let has_version = pinned_stamp(observed).is_some_and(|pinned| !pinned.outdated_under(&wanted));
    if age < STABLE {
        Permission::Settling(STABLE - age)
    } else if has_version && launches_what_is_desired(input, group, pin) {
        // Nothing is replaced while an instance refresh may be in progress.
        if may_be_missing(input) { Permission::Held } else { Permission::Open }
    } else if age < HOLD {
        Permission::Held
    } else if has_version {
        Permission::Stalled
    } else {
        Permission::Rejected
    }
}

/// Whether the group launches what is desired, types and bootstrap data included: other instances would have to be
/// replaced again.
fn launches_what_is_desired(input: &Input<'_>, group: &Group, pin: &Pin) -> bool {
    let Pin::Version(version) = pin else { return false };
    group.settings.launch == input.desired.settings.with_template(version.clone()).launch
}
