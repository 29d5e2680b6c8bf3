//! Why AWS ends instances whose end we did not ask for: what the group shows, else its scaling activities, read once for
//! each time that it begins to end some. For people's eyes: no decision waits for it.

use std::collections::BTreeMap;

use capasg_api::{conditions, reasons::termination_pending};
use capasg_cloud::{HealthStatus, Inventory, LifecycleState, ScalingActivity};

use super::Machines;
use crate::machine_pool::state::{Member, Memory, Observed};

/// Why AWS ends an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCause {
    /// The group finds it unhealthy.
    Unhealthy,
    /// The group balances its zones, or gives up capacity by itself.
    Rebalance,
    /// An instance refresh replaces it.
    Refresh,
    /// AWS takes the Spot instance back.
    Spot,
    /// Somebody asked for it.
    Requested,
}

impl EndCause {
    /// The reason in `TerminationPending`.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Unhealthy => termination_pending::HEALTH_REPLACEMENT,
            Self::Rebalance => termination_pending::REBALANCE,
            Self::Refresh => termination_pending::INSTANCE_REFRESH,
            Self::Spot => termination_pending::SPOT_INTERRUPTION,
            Self::Requested => termination_pending::REQUESTED_IN_AWS,
        }
    }

    /// The cause that a reason in `TerminationPending` stands for.
    #[must_use]
    pub fn parse(reason: &str) -> Option<Self> {
        [Self::Unhealthy, Self::Rebalance, Self::Refresh, Self::Spot, Self::Requested]
            .into_iter()
            .find(|cause| cause.reason() == reason)
    }

    /// The message beside it.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::Unhealthy => "AWS replaces the instance because it is unhealthy",
            Self::Rebalance => "the Auto Scaling group moves or gives up capacity",
            Self::Refresh => "an instance refresh replaces the instance",
            Self::Spot => "AWS takes the Spot instance back",
            Self::Requested => "the end of the instance was asked for in AWS",
        }
    }

    /// Reads the `Cause` of the activity that ends an instance: prose that AWS changes now and then, so that its few
    /// lasting words are looked for. Ends that are for nobody's wish come from a capacity that shrank by itself.
    fn of(activity: &ScalingActivity) -> Self {
        let cause = activity.cause.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|words| cause.contains(words));
        if says(&["instance refresh"]) {
            Self::Refresh
        } else if says(&["rebalanc", "to balance instances in zones"]) {
            Self::Rebalance
        } else if says(&["spot interruption", "spot instance interruption"]) {
            Self::Spot
        } else if says(&["health check", "health-check"]) {
            Self::Unhealthy
        } else if says(&["difference between desired and actual capacity"])
            && !says(&["user request", "alarm", "scheduled action"])
        {
            Self::Rebalance
        } else {
            Self::Requested
        }
    }
}

/// Why a member ends that we did not end, as far as the group itself shows it; `None` if it does not end, or by our call.
#[must_use]
pub fn shown(id: &str, member: &Member, memory: &Memory) -> Option<Option<EndCause>> {
    let ending = member.lifecycle().is_some_and(LifecycleState::is_terminating);
    let machine = member.asg_machine.as_ref()?;
    let by_us = machine.end_requested_at.is_some() || memory.end_requested.contains_key(id);
    if !ending || by_us {
        return None;
    }
    let unhealthy = member.instance.as_ref().is_some_and(|one| one.health == HealthStatus::Unhealthy);
    Some(unhealthy.then_some(EndCause::Unhealthy))
}

/// Brings what is known of causes up to date. A read that fails is not repeated: the end itself is told all the same.
pub async fn causes(
    inventory: &Inventory,
    group: &str,
    observed: &Observed,
    machines: &Machines,
    memory: &Memory,
    known: &mut BTreeMap<String, EndCause>,
) {
    known.retain(|id, _| observed.members.contains_key(id));
    let told = |id: &str| {
        let machine = machines.asg_machines.iter().find(|machine| machine.spec.instance_id == id);
        let status = machine.and_then(|machine| machine.status.as_ref());
        status.is_some_and(|status| conditions::is_true(&status.conditions, conditions::TERMINATION_PENDING))
    };
    let unknown: Vec<&String> = observed
        .members
        .iter()
        .filter(|(id, member)| shown(id, member, memory) == Some(None))
        .map(|(id, _)| id)
        .filter(|id| !known.contains_key(*id) && !told(id))
        .collect();
    if unknown.is_empty() {
        return;
    }
    let activities = inventory.scaling_activities(group).await.unwrap_or_default();
    for id in unknown {
        let ends = |activity: &&ScalingActivity| {
            activity
                .description
                .as_deref()
                .is_some_and(|text| text.starts_with("Terminating") && text.contains(id.as_str()))
        };
        let cause = activities.iter().find(ends).map_or(EndCause::Requested, EndCause::of);
        known.insert(id.clone(), cause);
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn cause(text: &str) -> EndCause {
        EndCause::of(&ScalingActivity {
            id: "1".to_owned(),
            status_code: "InProgress".to_owned(),
            status_message: None,
            description: Some("Terminating EC2 instance: i-1".to_owned()),
            cause: text.to_owned(),
            zone: None,
            subnet: None,
            started_at: DateTime::UNIX_EPOCH,
        })
    }

    #[test]
    fn p48_p51_the_words_of_a_scaling_activity_tell_why_an_instance_ends() {
        let at = "At 2026-05-01T10:00:00Z";
        for (words, expected) in [
            (
                format!(
                    "{at} an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped."
                ),
                EndCause::Unhealthy,
            ),
            (
                format!("{at} an instance was taken out of service in response to a user health-check."),
                EndCause::Unhealthy,
            ),
            (
                format!(
                    "{at} an instance was taken out of service in response to a difference between desired and actual capacity, shrinking the capacity from 4 to 3."
                ),
                EndCause::Rebalance,
            ),
            (
                format!(
                    "{at} instances were launched to balance instances in zones a with other zones resulting in more than desired number of instances in the group."
                ),
                EndCause::Rebalance,
            ),
            (
                format!(
                    "{at} an instance was taken out of service in response to an EC2 Spot instance rebalance recommendation."
                ),
                EndCause::Rebalance,
            ),
            (
                format!(
                    "{at} an instance was taken out of service in response to an EC2 Spot interruption notice."
                ),
                EndCause::Spot,
            ),
            (
                format!("{at} an instance was taken out of service in response to an instance refresh."),
                EndCause::Refresh,
            ),
            (
                format!("{at} instance was taken out of service in response to a user request."),
                EndCause::Requested,
            ),
            (
                format!(
                    "{at} a user request explicitly set group desired capacity changing the desired capacity from 4 to 3. {at} an instance was taken out of service in response to a difference between desired and actual capacity, shrinking the capacity from 4 to 3."
                ),
                EndCause::Requested,
            ),
            (String::new(), EndCause::Requested),
        ] {
            assert_eq!(cause(&words), expected, "{words}");
        }
    }
}
