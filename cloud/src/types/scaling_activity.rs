//! Scaling activities: what an Auto Scaling group does by itself, and how that ended.

use chrono::{DateTime, Utc};

/// One activity as `DescribeScalingActivities` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalingActivity {
    /// `ActivityId`.
    pub id: String,
    /// `StatusCode`.
    pub status: ActivityStatus,
    /// `StatusMessage`: AWS's message on a failure.
    pub status_message: Option<String>,
    /// `Description`, for example "Launching a new EC2 instance".
    pub description: Option<String>,
    /// `Cause`.
    pub cause: String,
    /// `Details`, member `Availability Zone`.
    pub zone: Option<String>,
    /// `Details`, member `Subnet ID`.
    pub subnet: Option<String>,
    /// `StartTime`.
    pub started_at: DateTime<Utc>,
    /// `EndTime`; none while it is in progress.
    pub ended_at: Option<DateTime<Utc>>,
}

impl ScalingActivity {
    /// Whether it launches an instance.
    #[must_use]
    pub fn is_launch(&self) -> bool {
        self.description.as_deref().is_some_and(|text| text.starts_with("Launching"))
    }

    /// Whether it launched an instance, or failed to.
    #[must_use]
    pub fn is_finished_launch(&self) -> bool {
        self.is_launch() && self.status.is_finished()
    }

    /// When it ended; when it started, if AWS reports no end.
    #[must_use]
    pub fn ended_or_started_at(&self) -> DateTime<Utc> {
        self.ended_at.unwrap_or(self.started_at)
    }

    /// Whether it terminates `instance`.
    #[must_use]
    pub fn is_termination_of(&self, instance: &str) -> bool {
        let description = self.description.as_deref();
        description.is_some_and(|text| text.starts_with("Terminating") && text.contains(instance))
    }
}

/// `StatusCode` of an activity. Other values are kept, since AWS adds some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActivityStatus {
    /// `Successful`.
    Successful,
    /// `Failed`.
    Failed,
    /// `Cancelled`.
    Cancelled,
    /// Any other, for example `InProgress`: the activity is not finished.
    Other(String),
}

impl ActivityStatus {
    /// Reads AWS's value.
    #[must_use]
    pub fn parse(value: &str) -> Self {
        match value {
            "Successful" => Self::Successful,
            "Failed" => Self::Failed,
            "Cancelled" => Self::Cancelled,
            other => Self::Other(other.to_owned()),
        }
    }

    /// AWS's value.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Successful => "Successful",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
            Self::Other(value) => value,
        }
    }

    /// Whether nothing more happens.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        !matches!(self, Self::Other(_))
    }
}

/// The zone and the subnet in `Details` of a scaling activity, which is JSON in a string. An empty string names neither.
#[must_use]
pub fn zone_and_subnet(details: &str) -> (Option<String>, Option<String>) {
    let details: serde_json::Value = serde_json::from_str(details).unwrap_or_default();
    let value = |key: &str| details.get(key).and_then(serde_json::Value::as_str);
    let text = |key: &str| value(key).filter(|text| !text.is_empty()).map(str::to_owned);
    (text("Availability Zone"), text("Subnet ID"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_zone_is_none() {
        let details = r#"{"Subnet ID":"subnet-1","Availability Zone":""}"#;
        assert_eq!(zone_and_subnet(details), (None, Some("subnet-1".to_owned())));
        let details = r#"{"Subnet ID":"","Availability Zone":"eu-west-1a"}"#;
        assert_eq!(zone_and_subnet(details), (Some("eu-west-1a".to_owned()), None));
        assert_eq!(zone_and_subnet("{}"), (None, None));
        assert_eq!(zone_and_subnet(""), (None, None));
    }
}
