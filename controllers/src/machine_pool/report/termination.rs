//! How a cause of termination is reported in `TerminationPending`. Pure.

use capasg_api::reasons::termination_pending;
use capasg_cloud::TerminationCause;

/// The causes that a report keeps. An unknown cause may become known.
const CAUSES: [TerminationCause; 5] = [
    TerminationCause::Unhealthy,
    TerminationCause::Rebalance,
    TerminationCause::Refresh,
    TerminationCause::Spot,
    TerminationCause::Requested,
];

/// The reason of a cause in `TerminationPending`.
#[must_use]
pub fn reason(cause: TerminationCause) -> &'static str {
    match cause {
        TerminationCause::Unhealthy => termination_pending::HEALTH_REPLACEMENT,
        TerminationCause::Rebalance => termination_pending::REBALANCE,
        TerminationCause::Refresh => termination_pending::INSTANCE_REFRESH,
        TerminationCause::Spot => termination_pending::SPOT_INTERRUPTION,
        TerminationCause::Requested => termination_pending::REQUESTED_IN_AWS,
        TerminationCause::Unknown | TerminationCause::Unread => termination_pending::TERMINATION_PENDING,
    }
}

/// The cause that a reason in `TerminationPending` stands for.
#[must_use]
pub fn cause_of(reported: &str) -> Option<TerminationCause> {
    CAUSES.into_iter().find(|cause| reason(*cause) == reported)
}

/// The message of a cause.
#[must_use]
pub fn message(cause: TerminationCause) -> &'static str {
    match cause {
        TerminationCause::Unhealthy => "AWS replaces the instance because it is unhealthy",
        TerminationCause::Rebalance => "the Auto Scaling group rebalances Availability Zones or scales in",
        TerminationCause::Refresh => "an instance refresh replaces the instance",
        TerminationCause::Spot => "EC2 reclaims the Spot instance",
        TerminationCause::Requested => "another actor requested the termination of the instance in AWS",
        TerminationCause::Unknown => "AWS is terminating the instance; the cause is unknown",
        TerminationCause::Unread => {
            "AWS is terminating the instance; the cause is unknown because the scaling activities could not be read"
        }
    }
}
