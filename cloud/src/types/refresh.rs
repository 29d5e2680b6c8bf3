//! Instance refreshes: what starts one, and what a describe says of it.

use chrono::{DateTime, Utc};

use crate::Launch;

/// What `StartInstanceRefresh` sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRefresh {
    /// The group's name.
    pub group: String,
    /// `DesiredConfiguration`: what the group launches once the refresh succeeded. None replaces from what the group
    /// launches anyway.
    pub desired: Option<Launch>,
    /// `Preferences`.
    pub preferences: RefreshPreferences,
}

/// `RefreshPreferences`; members that are `None` or empty are not sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefreshPreferences {
    /// `MinHealthyPercentage`, 0 to 100.
    pub min_healthy_percentage: i32,
    /// `MaxHealthyPercentage`, 100 to 200. Another thing than none even at 100: then new ones are launched before
    /// others end.
    pub max_healthy_percentage: Option<i32>,
    /// `InstanceWarmup`, in seconds; none is the group's.
    pub instance_warmup: Option<i32>,
    /// `CheckpointPercentages`, ascending.
    pub checkpoint_percentages: Vec<i32>,
    /// `CheckpointDelay`, in seconds; AWS takes it only beside percentages.
    pub checkpoint_delay: Option<i32>,
    /// `BakeTime`, in seconds.
    pub bake_time: Option<i32>,
    /// `AlarmSpecification.Alarms`.
    pub alarms: Vec<String>,
    /// `SkipMatching`.
    pub skip_matching: bool,
    /// `AutoRollback`; AWS takes it only beside a desired configuration.
    pub auto_rollback: bool,
    /// `ScaleInProtectedInstances`: `Refresh`, `Ignore` or `Wait`.
    pub protected_instances: String,
    /// `StandbyInstances`: `Terminate`, `Ignore` or `Wait`.
    pub standby_instances: String,
}

/// An instance refresh as `DescribeInstanceRefreshes` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceRefresh {
    /// `InstanceRefreshId`.
    pub id: String,
    /// `Status`.
    pub status: RefreshStatus,
    /// `StatusReason`: AWS's words.
    pub reason: Option<String>,
    /// `StartTime`; none while it is pending.
    pub started_at: Option<DateTime<Utc>>,
    /// `EndTime`.
    pub ended_at: Option<DateTime<Utc>>,
    /// `PercentageComplete`.
    pub percentage: Option<i32>,
    /// `InstancesToUpdate`.
    pub to_update: Option<i32>,
    /// `Preferences.MinHealthyPercentage`.
    pub min_healthy_percentage: Option<i32>,
    /// `DesiredConfiguration`; none without one.
    pub desired: Option<Launch>,
    /// `RollbackDetails.RollbackReason`, once it is rolled back.
    pub rollback_reason: Option<String>,
}

/// Where a refresh is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefreshStatus {
    /// Asked for.
    Pending,
    /// Instances are being replaced, or a checkpoint is waited at.
    InProgress,
    /// All are replaced; the bake time runs.
    Baking,
    /// Nothing more is replaced; what is on its way is waited for.
    Cancelling,
    /// What was replaced is being replaced back.
    RollbackInProgress,
    /// Done.
    Successful,
    /// It failed.
    Failed,
    /// Somebody ended it.
    Cancelled,
    /// All is as it was.
    RollbackSuccessful,
    /// The way back failed.
    RollbackFailed,
    /// A status that AWS came up with later: it counts as unfinished.
    Other(String),
}

impl RefreshStatus {
    /// The status that AWS calls so.
    #[must_use]
    pub fn parse(status: &str) -> Self {
        match status {
            "Pending" => Self::Pending,
            "InProgress" => Self::InProgress,
            "Baking" => Self::Baking,
            "Cancelling" => Self::Cancelling,
            "RollbackInProgress" => Self::RollbackInProgress,
            "Successful" => Self::Successful,
            "Failed" => Self::Failed,
            "Cancelled" => Self::Cancelled,
            "RollbackSuccessful" => Self::RollbackSuccessful,
            "RollbackFailed" => Self::RollbackFailed,
            other => Self::Other(other.to_owned()),
        }
    }

    /// As AWS calls it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pending => "Pending",
            Self::InProgress => "InProgress",
            Self::Baking => "Baking",
            Self::Cancelling => "Cancelling",
            Self::RollbackInProgress => "RollbackInProgress",
            Self::Successful => "Successful",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
            Self::RollbackSuccessful => "RollbackSuccessful",
            Self::RollbackFailed => "RollbackFailed",
            Self::Other(other) => other,
        }
    }

    /// Whether nothing more will happen by itself.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(
            self,
            Self::Successful
                | Self::Failed
                | Self::Cancelled
                | Self::RollbackSuccessful
                | Self::RollbackFailed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w9_only_the_five_known_ends_are_over() {
        let active =
            ["Pending", "InProgress", "Baking", "Cancelling", "RollbackInProgress", "Levitating", ""];
        let over = ["Successful", "Failed", "Cancelled", "RollbackSuccessful", "RollbackFailed"];
        for status in active.into_iter().chain(over) {
            let parsed = RefreshStatus::parse(status);
            assert_eq!(parsed.as_str(), status);
            assert_eq!(parsed.is_over(), over.contains(&status), "{status}");
        }
        assert_eq!(RefreshStatus::parse("Levitating"), RefreshStatus::Other("Levitating".to_owned()));
    }
}
