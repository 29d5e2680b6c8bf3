//! The condition `EventQueueReady` of a pool: whether the AWS events that the spec depends on are received. Pure.

use capasg_api::{
    ASGMachinePoolSpec,
    conditions::{EVENT_QUEUE_READY, Finding},
    pool::RebalanceRecommendationPolicy,
    reasons::event_queue_ready,
};
use capasg_cloud::QueueState;

/// The condition for a spec and the state of the region's queue. Until the queue was read, the condition stays as it is.
pub(super) fn event_queue(spec: &ASGMachinePoolSpec, queue: Option<QueueState>) -> Finding {
    if spec.rebalance_recommendation_policy() == RebalanceRecommendationPolicy::Ignore {
        return Finding::plain(EVENT_QUEUE_READY, true, event_queue_ready::NOT_REQUIRED);
    }
    let idle = |reason, cause: &str, remedy: &str| {
        let message = format!(
            "{cause} in region {}, so spec.rebalanceRecommendationPolicy Replace may have no effect. {remedy}",
            spec.region
        );
        Finding::new(EVENT_QUEUE_READY, false, reason, message)
    };
    match queue {
        None | Some(QueueState::Unread) => Finding::not_yet_reported(EVENT_QUEUE_READY),
        Some(QueueState::Available) => {
            Finding::plain(EVENT_QUEUE_READY, true, event_queue_ready::EVENT_QUEUE_READY)
        }
        Some(QueueState::Absent) => idle(
            event_queue_ready::NO_EVENT_QUEUE,
            "the manager has no event queue",
            "Start the manager with --event-queue, or set the policy to Ignore.",
        ),
        Some(QueueState::Unavailable) => idle(
            event_queue_ready::EVENT_QUEUE_UNAVAILABLE,
            "messages of the event queue cannot be received or deleted",
            "Check the queue and the permissions of the manager; the log of the manager has the error.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use capasg_api::conditions::Status;

    use super::*;

    #[test]
    fn the_condition_is_false_only_if_the_spec_depends_on_events_that_do_not_arrive() {
        use QueueState::{Absent, Available, Unavailable, Unread};
        use event_queue_ready::{EVENT_QUEUE_READY, EVENT_QUEUE_UNAVAILABLE, NO_EVENT_QUEUE, NOT_REQUIRED};
        let replace = Some(RebalanceRecommendationPolicy::Replace);
        for (policy, queue, status, reason) in [
            (None, None, Status::True, NOT_REQUIRED),
            (None, Some(Absent), Status::True, NOT_REQUIRED),
            (Some(RebalanceRecommendationPolicy::Ignore), Some(Unavailable), Status::True, NOT_REQUIRED),
            (replace, None, Status::Unknown, capasg_api::reasons::NOT_YET_REPORTED),
            (replace, Some(Unread), Status::Unknown, capasg_api::reasons::NOT_YET_REPORTED),
            (replace, Some(Available), Status::True, EVENT_QUEUE_READY),
            (replace, Some(Absent), Status::False, NO_EVENT_QUEUE),
            (replace, Some(Unavailable), Status::False, EVENT_QUEUE_UNAVAILABLE),
        ] {
            let spec = ASGMachinePoolSpec {
                region: "eu-west-1".to_owned(),
                rebalance_recommendation_policy: policy,
                ..ASGMachinePoolSpec::default()
            };
            let finding = event_queue(&spec, queue);
            assert_eq!((finding.status, finding.reason), (status, reason), "{policy:?} {queue:?}");
            assert_eq!(
                finding.message.contains("may have no effect"),
                status == Status::False,
                "{}",
                finding.message
            );
        }
    }
}
