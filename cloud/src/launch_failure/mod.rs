//! Why launches fail. A launch that fails inside AWS shows nowhere but in a scaling activity: `SetDesiredCapacity` itself
//! never fails for it. Pure.

mod blocker;
mod state_reason;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};

pub use blocker::LaunchBlocker;

use crate::{ActivityStatus, ScalingActivity};

/// The end of every message, which says nothing.
const TAIL: &str = "Launching EC2 instance failed.";
/// What stands for the message of a launch that failed without one.
const SILENT: &str = "no reason is given";

/// A launch that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchFailure {
    /// `ActivityId`.
    pub activity: String,
    /// What blocks the launch.
    pub blocker: LaunchBlocker,
    /// AWS's message, without the end that all have.
    pub message: String,
    /// The type, if AWS names it.
    pub instance_type: Option<String>,
    /// The zone, if AWS names it.
    pub zone: Option<String>,
    /// The subnet, if AWS names it.
    pub subnet: Option<String>,
    /// When the launch was attempted.
    pub started_at: DateTime<Utc>,
    /// When it failed: a lifecycle hook that is not completed ends a launch an hour after its start, by default.
    pub at: DateTime<Utc>,
}

impl LaunchFailure {
    /// The failure that an activity reports; `None` if it reports none. A cancelled launch is one if its instance died: the
    /// message has the reason of the termination, which is not a call of a user or of this controller, or the table knows
    /// it, or it says that the launch failed. Otherwise a scale-in called the launch off.
    #[must_use]
    pub fn of(activity: &ScalingActivity) -> Option<Self> {
        let failed = matches!(activity.status, ActivityStatus::Failed | ActivityStatus::Cancelled);
        if !activity.is_launch() || !failed {
            return None;
        }
        let status = activity.status_message.as_deref().unwrap_or_default().trim();
        let message = status.strip_suffix(TAIL).unwrap_or(status).trim_end();
        let blocker = LaunchBlocker::of(message);
        let is_failure = activity.status != ActivityStatus::Cancelled
            || state_reason::died(message).unwrap_or(blocker != LaunchBlocker::Unknown || says_so(status));
        if !is_failure {
            return None;
        }
        // `StatusMessage` is optional in the API reference.
        let message = if message.is_empty() { SILENT } else { message }.to_owned();
        Some(Self {
            activity: activity.id.clone(),
            blocker,
            instance_type: type_in(&message),
            zone: activity.zone.clone().or_else(|| zone_in(&message)),
            subnet: activity.subnet.clone().or_else(|| word_with(&message, "subnet-")),
            message,
            started_at: activity.started_at,
            at: activity.ended_or_started_at(),
        })
    }
}

/// Whether a message says that a launch failed.
fn says_so(status: &str) -> bool {
    status.ends_with(TAIL) || blocker::MIXED.iter().any(|introduction| status.starts_with(introduction))
}

/// `sufficient <type> capacity`, `requested instance type (<type>)`.
fn type_in(message: &str) -> Option<String> {
    let after = |start: &str| message.split_once(start).map(|(_, rest)| rest);
    let found = after("sufficient ")
        .and_then(|rest| rest.split_once(" capacity"))
        .or_else(|| after("instance type (").and_then(|rest| rest.split_once(')')))
        .map(|(name, _)| name)?;
    found.contains('.').then(|| found.to_owned()).filter(|name| !name.contains(' '))
}

/// `Availability Zone you requested (<zone>)`.
fn zone_in(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("Availability Zone")?;
    let (_, rest) = rest.split_once('(')?;
    let (zone, _) = rest.split_once(')')?;
    (zone.contains('-') && !zone.contains(' ')).then(|| zone.to_owned())
}

fn word_with(message: &str, prefix: &str) -> Option<String> {
    let start = message.find(prefix)?;
    let rest = message.get(start..)?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
    rest.get(..end).map(str::to_owned)
}
