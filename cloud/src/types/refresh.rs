//! Instance refreshes: what starts one, and what a describe returns.

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
    /// `MaxHealthyPercentage`, 100 to 200. Not the same as none even at 100: AWS then launches new instances before it
    /// terminates others.
    pub max_healthy_percentage: Option<i32>,
    /// `InstanceWarmup`, in seconds; none is the group's.
    pub instance_warmup: Option<i32>,
    /// `CheckpointPercentages`, ascending.
    pub checkpoint_percentages: Vec<i32>,
    /// `CheckpointDelay`, in seconds; AWS accepts it only together with percentages.
    pub checkpoint_delay: Option<i32>,
    /// `BakeTime`, in seconds.
    pub bake_time: Option<i32>,
    /// `AlarmSpecification.Alarms`.
    pub alarms: Vec<String>,
    /// `SkipMatching`.
    pub skip_matching: bool,
    /// `AutoRollback`; AWS accepts it only together with a desired configuration.
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
    /// `StatusReason`: AWS's message.
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

/// What AWS puts before an instance that it names for many.
const EXAMPLE: &str = "For example";

impl InstanceRefresh {
    /// AWS's reason, or else that of the rollback, without the instance that AWS takes for an example: each read names
    /// another one, and a status that changes with each read would wake everything that watches it.
    #[must_use]
    pub fn stable_reason(&self) -> Option<String> {
        let reason = self.reason.as_ref().or(self.rollback_reason.as_ref())?;
        let stable = reason.split(EXAMPLE).next().unwrap_or_default().trim();
        (!stable.is_empty()).then(|| stable.to_owned())
    }
}

/// `Status` of a refresh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefreshStatus {
    /// Requested.
    Pending,
    /// Instances are being replaced, or it waits at a checkpoint.
    InProgress,
    /// All are replaced; the bake time runs.
    Baking,
    /// Nothing more is replaced; it waits for instances in transition.
    Cancelling,
    /// Replaced instances are being replaced again by what ran before.
    RollbackInProgress,
    /// Done.
    Successful,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// The rollback succeeded.
    RollbackSuccessful,
    /// The rollback failed.
    RollbackFailed,
    /// A status that AWS added later: it counts as unfinished.
    Other(String),
}

impl RefreshStatus {
    /// Reads AWS's value.
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

    /// AWS's value.
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
    pub fn is_finished(&self) -> bool {
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

    fn stable(reason: &str) -> Option<String> {
        let refresh = InstanceRefresh {
            id: "r-1".to_owned(),
            status: RefreshStatus::InProgress,
            reason: Some(reason.to_owned()),
            started_at: None,
            ended_at: None,
            percentage: None,
            to_update: None,
            min_healthy_percentage: None,
            desired: None,
            rollback_reason: None,
        };
        let rolled_back =
            InstanceRefresh { reason: None, rollback_reason: refresh.reason.clone(), ..refresh.clone() };
        assert_eq!(refresh.stable_reason(), rolled_back.stable_reason());
        refresh.stable_reason()
    }

    // Rules: I4
    #[test]
    fn words_do_not_change_with_the_instance_that_aws_takes_for_an_example() {
        let of = |id: &str| {
            stable(&format!(
                "Waiting for instances to warm up before continuing. For example: {id} is warming up."
            ))
        };
        assert_eq!(of("i-0645704820a8e83ff"), of("0e69cc3f05f825f4f"));
        assert_eq!(of("i-1").unwrap(), "Waiting for instances to warm up before continuing.");
        assert_eq!(stable("Cancelled due to user request.").unwrap(), "Cancelled due to user request.");
        assert_eq!(stable("For example: i-1 is not InService."), None);
    }

    // Pains: W9
    #[test]
    fn only_the_five_known_ends_are_over() {
        let active =
            ["Pending", "InProgress", "Baking", "Cancelling", "RollbackInProgress", "Levitating", ""];
        let over = ["Successful", "Failed", "Cancelled", "RollbackSuccessful", "RollbackFailed"];
        for status in active.into_iter().chain(over) {
            let parsed = RefreshStatus::parse(status);
            assert_eq!(parsed.as_str(), status);
            assert_eq!(parsed.is_finished(), over.contains(&status), "{status}");
        }
        assert_eq!(RefreshStatus::parse("Levitating"), RefreshStatus::Other("Levitating".to_owned()));
    }
}
