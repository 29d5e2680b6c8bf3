//! Why AWS terminates an instance, as far as the prose of a scaling activity says it. Pure.

use crate::ScalingActivity;

/// Why AWS terminates an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminationCause {
    /// The group finds it unhealthy.
    Unhealthy,
    /// The group balances its zones, or gives up capacity by itself.
    Rebalance,
    /// An instance refresh replaces it.
    Refresh,
    /// AWS takes the Spot instance back.
    Spot,
    /// Somebody requested it.
    Requested,
    /// No scaling activity says it.
    Unknown,
    /// The scaling activities cannot be read.
    Unread,
}

impl TerminationCause {
    /// Reads the `Cause` of the activity that terminates an instance. AWS changes this prose now and then, so only its
    /// few lasting phrases count. A termination that no user requested comes from a capacity that shrank by itself.
    #[must_use]
    pub fn of(activity: &ScalingActivity) -> Self {
        let cause = activity.cause.to_ascii_lowercase();
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| cause.contains(phrase));
        if says(&["instance refresh"]) {
            Self::Refresh
        } else if says(&["rebalanc", "to balance instances in zones"]) {
            Self::Rebalance
        } else if says(&["spot interruption", "spot instance interruption"]) {
            Self::Spot
        } else if says(&["health check", "health-check"]) {
            Self::Unhealthy
        } else if says(&["user request", "alarm", "scheduled action"]) {
            Self::Requested
        } else if says(&["difference between desired and actual capacity"]) {
            Self::Rebalance
        } else {
            Self::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::ActivityStatus;

    fn cause(text: &str) -> TerminationCause {
        TerminationCause::of(&ScalingActivity {
            id: "1".to_owned(),
            status: ActivityStatus::Other("InProgress".to_owned()),
            status_message: None,
            description: Some("Terminating EC2 instance: i-1".to_owned()),
            cause: text.to_owned(),
            zone: None,
            subnet: None,
            started_at: DateTime::UNIX_EPOCH,
            ended_at: None,
        })
    }

    // Pains: P48, P51
    #[test]
    fn the_words_of_a_scaling_activity_tell_why_an_instance_ends() {
        let at = "At 2026-05-01T10:00:00Z";
        for (text, expected) in [
            (
                format!(
                    "{at} an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped."
                ),
                TerminationCause::Unhealthy,
            ),
            (
                format!("{at} an instance was taken out of service in response to a user health-check."),
                TerminationCause::Unhealthy,
            ),
            (
                format!(
                    "{at} an instance was taken out of service in response to a difference between desired and actual capacity, shrinking the capacity from 4 to 3."
                ),
                TerminationCause::Rebalance,
            ),
            (
                format!(
                    "{at} instances were launched to balance instances in zones a with other zones resulting in more than desired number of instances in the group."
                ),
                TerminationCause::Rebalance,
            ),
            (
                format!(
                    "{at} an instance was taken out of service in response to an EC2 Spot instance rebalance recommendation."
                ),
                TerminationCause::Rebalance,
            ),
            (
                format!(
                    "{at} an instance was taken out of service in response to an EC2 Spot interruption notice."
                ),
                TerminationCause::Spot,
            ),
            (
                format!("{at} an instance was taken out of service in response to an instance refresh."),
                TerminationCause::Refresh,
            ),
            (
                format!("{at} instance was taken out of service in response to a user request."),
                TerminationCause::Requested,
            ),
            (
                format!(
                    "{at} a user request explicitly set group desired capacity changing the desired capacity from 4 to 3. {at} an instance was taken out of service in response to a difference between desired and actual capacity, shrinking the capacity from 4 to 3."
                ),
                TerminationCause::Requested,
            ),
            (format!("{at} a reason of tomorrow."), TerminationCause::Unknown),
            (String::new(), TerminationCause::Unknown),
        ] {
            assert_eq!(cause(&text), expected, "{text}");
        }
    }
}
