//! Instance refreshes: the record of one, its preferences, and how a describe shows it.

use std::collections::BTreeSet;

use chrono::{DateTime, Duration, Utc};

use super::source::LaunchSource;
use crate::{ApiError, Tree, time::timestamp};

/// Where a refresh is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefreshStatus {
    Pending,
    InProgress,
    Baking,
    Cancelling,
    RollbackInProgress,
    Successful,
    Failed,
    Cancelled,
    RollbackSuccessful,
    RollbackFailed,
}

impl RefreshStatus {
    pub(crate) fn as_str(self) -> &'static str {
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
        }
    }

    pub(crate) fn is_over(self) -> bool {
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

/// What is done about instances that are protected, or in standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Odd {
    /// They are replaced (`Refresh`, `Terminate`).
    Replace,
    /// They are left out.
    Ignore,
    /// They are waited for, until the refresh has made no progress for too long.
    Wait,
}

/// `RefreshPreferences` with their defaults.
#[derive(Debug, Clone)]
pub(crate) struct Preferences {
    pub(crate) min: i64,
    pub(crate) max: Option<i64>,
    /// Seconds; else the group's warm-up, else its grace period.
    pub(crate) warmup: Option<i64>,
    pub(crate) checkpoints: Vec<i64>,
    pub(crate) checkpoint_delay: Duration,
    pub(crate) bake: Duration,
    pub(crate) skip_matching: bool,
    pub(crate) auto_rollback: bool,
    pub(crate) protected: Odd,
    pub(crate) standby: Odd,
    pub(crate) alarms: Vec<String>,
    /// As they were given.
    given: Tree,
}

impl Preferences {
    /// Reads what a request says.
    pub(crate) fn read(tree: Option<&Tree>) -> Result<Self, ApiError> {
        let given = tree.cloned().unwrap_or_else(Tree::new);
        let (min, max) = (given.number_of("MinHealthyPercentage"), given.number_of("MaxHealthyPercentage"));
        match (min, max) {
            (None, Some(_)) => {
                return Err(ApiError::validation(
                    "MinHealthyPercentage must be specified when MaxHealthyPercentage is specified.",
                ));
            }
            (Some(min), Some(max)) if max - min > 100 => {
                return Err(ApiError::validation(
                    "The difference between MaxHealthyPercentage and MinHealthyPercentage cannot be greater than 100.",
                ));
            }
            _ => {}
        }
        let checkpoints: Vec<i64> = given
            .texts_of("CheckpointPercentages")
            .iter()
            .filter_map(|percentage| percentage.parse().ok())
            .collect();
        if checkpoints.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(ApiError::validation("CheckpointPercentages must be unique and in ascending order."));
        }
        let delay = given.number_of("CheckpointDelay");
        if delay.is_some() && checkpoints.is_empty() {
            return Err(ApiError::validation(
                "CheckpointPercentages must be specified when CheckpointDelay is specified.",
            ));
        }
        let alarms = given.get("AlarmSpecification").map(|own| own.texts_of("Alarms")).unwrap_or_default();
        if alarms.len() > 10 {
            return Err(ApiError::validation("At most 10 alarms can be specified."));
        }
        let odd = |name: &str| match given.text_of(name) {
            Some("Refresh" | "Terminate") => Odd::Replace,
            Some("Ignore") => Odd::Ignore,
            _ => Odd::Wait,
        };
        Ok(Self {
            min: min.unwrap_or(90),
            max,
            warmup: given.number_of("InstanceWarmup").filter(|seconds| *seconds >= 0),
            checkpoints,
            checkpoint_delay: Duration::seconds(delay.unwrap_or(3600)),
            bake: Duration::seconds(given.number_of("BakeTime").unwrap_or(0)),
            skip_matching: given.flag_of("SkipMatching") == Some(true),
            auto_rollback: given.flag_of("AutoRollback") == Some(true),
            protected: odd("ScaleInProtectedInstances"),
            standby: odd("StandbyInstances"),
            alarms,
            given,
        })
    }
}

/// How a rollback began.
#[derive(Debug, Clone)]
pub(crate) struct Rollback {
    pub(crate) reason: String,
    pub(crate) started: DateTime<Utc>,
    pub(crate) percentage: usize,
    pub(crate) left: usize,
}

/// An instance refresh.
#[derive(Debug, Clone)]
pub(crate) struct Refresh {
    pub(crate) id: String,
    pub(crate) status: RefreshStatus,
    pub(crate) reason: Option<String>,
    /// When it was asked for.
    pub(crate) asked: DateTime<Utc>,
    pub(crate) started: Option<DateTime<Utc>>,
    pub(crate) ended: Option<DateTime<Utc>>,
    /// When its cancellation was requested.
    pub(crate) cancelled: Option<DateTime<Utc>>,
    /// The desired configuration, and as it was given.
    pub(crate) desired: Option<(LaunchSource, Tree)>,
    pub(crate) preferences: Preferences,
    /// What is to be replaced, those that went already included.
    pub(crate) old: BTreeSet<String>,
    /// Instances beyond desired capacity that were launched before others end.
    pub(crate) extra: usize,
    /// Percent complete, as last counted.
    pub(crate) percentage: usize,
    /// Instances left to update, as last counted.
    pub(crate) left: usize,
    /// When something last moved.
    pub(crate) progressed: DateTime<Utc>,
    /// Checkpoints that are behind.
    pub(crate) passed: usize,
    /// The end of the wait at a checkpoint, or of the bake time.
    pub(crate) until: Option<DateTime<Utc>>,
    pub(crate) rollback: Option<Rollback>,
}

impl Refresh {
    /// Whether replacements are launched from the desired configuration.
    pub(super) fn launches_desired(&self) -> bool {
        !self.status.is_over() && self.rollback.is_none()
    }

    pub(crate) fn render(&self, group: &str) -> Tree {
        let mut tree = Tree::new()
            .with("InstanceRefreshId", &self.id)
            .with("AutoScalingGroupName", group)
            .with("Status", self.status.as_str())
            .with_opt("StatusReason", self.reason.as_deref())
            .with_opt("StartTime", self.started.map(timestamp))
            .with_opt("EndTime", self.ended.map(timestamp))
            .with("Strategy", "Rolling")
            .with("Preferences", self.preferences.given.clone())
            .with_opt("DesiredConfiguration", self.desired.as_ref().map(|(_, given)| given.clone()));
        if self.started.is_some() {
            tree = tree.with("PercentageComplete", self.percentage).with("InstancesToUpdate", self.left);
        }
        if let Some(rollback) = &self.rollback {
            let details = Tree::new()
                .with("RollbackReason", &rollback.reason)
                .with("RollbackStartTime", timestamp(rollback.started))
                .with("PercentageCompleteOnRollback", rollback.percentage)
                .with("InstancesToUpdateOnRollback", rollback.left);
            tree.set("RollbackDetails", details);
        }
        tree
    }
}
