//! How far a rolling update may go now.

use capasg_api::pool::{Opening, RolloutMode};
use capasg_cloud::Group;
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::decide::launch_template::Pin;
use crate::machine_pool::decide::rollout::outdated::desired_age;
use crate::machine_pool::decide::rollout::stopped::is_stopped;
use crate::machine_pool::decide::timing::{HOLD, STABLE};
use crate::machine_pool::model::revision::desired_stamp;
use crate::machine_pool::model::template_versions::pinned_stamp;
use crate::machine_pool::model::{DesiredLaunch, Input};

/// How far a rollout may go now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The spec pauses rollouts: what drains goes on, of the surge what has joined is kept.
    Paused,
    /// New instances did not become available in time: what drains goes on, the surge is given back.
    Stopped,
    /// No window is open: as when paused, until the next one opens.
    Closed(Option<(DateTime<Utc>, &'static str)>),
    /// The desired state is too new; it may start after this long.
    Settling(TimeDelta),
    /// The group does not launch what is desired yet: what runs is kept, surge included.
    Held,
    /// Held for long, or what is desired is not known: of the surge only what is up to date is kept.
    Stalled,
    /// What is desired has had no version for long: AWS rejects it. The surge is given back.
    Rejected,
    /// AWS replaces outdated instances, or is to: we add or terminate none for a rollout.
    Refreshing,
    /// The group launches what is desired.
    Open,
}

/// How far a rollout by us may go.
#[must_use]
pub fn progress(input: &Input<'_>, group: &Group, pin: &Pin) -> Progress {
    let Input { desired, observed, now, .. } = *input;
    if desired.rollout.mode == RolloutMode::Paused {
        return Progress::Paused;
    }
    if is_stopped(input) {
        return Progress::Stopped;
    }
    if let Opening::Closed { next } = desired.disruption.opening(now) {
        return Progress::Closed(next);
    }
    if matches!(desired.launch, DesiredLaunch::Unknown) {
        return Progress::Stalled;
    }
    let Some(wanted) = desired_stamp(desired, observed) else { return Progress::Held };
    let age = desired_age(input);
    let has_version = pinned_stamp(observed).is_some_and(|pinned| !pinned.outdated_under(&wanted));
    if age < STABLE {
        Progress::Settling(STABLE - age)
    } else if has_version && launches_what_is_desired(input, group, pin) {
        Progress::Open
    } else if age < HOLD {
        Progress::Held
    } else if has_version {
        Progress::Stalled
    } else {
        Progress::Rejected
    }
}

/// Whether what the group launches now is what is desired, types and bootstrap data included: anything else would have to
/// be replaced again.
fn launches_what_is_desired(input: &Input<'_>, group: &Group, pin: &Pin) -> bool {
    let Pin::Version(version) = pin else { return false };
    group.settings.launch == input.desired.settings.with_template(version.clone()).launch
}
