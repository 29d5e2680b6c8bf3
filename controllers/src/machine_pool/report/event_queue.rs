//! The condition `EventQueueReady` of a pool: whether the AWS events that the pool depends on are received. Pure.

use capasg_api::{
    ASGMachinePoolSpec,
    conditions::{EVENT_QUEUE_READY, Finding},
    pool::RebalanceRecommendationPolicy,
    reasons::event_queue_ready,
};
use capasg_cloud::{PurchaseOption, QueueState};

use crate::machine_pool::model::{Observed, PoolInstance};
use crate::machine_pool::report::input::Input;

/// Whether a spec has no effect without an event queue.
pub(super) fn depends_on_events(spec: &ASGMachinePoolSpec) -> bool {
    spec.rebalance_recommendation_policy() == RebalanceRecommendationPolicy::Replace
}

/// The condition. Until the queue was read, it stays as it is.
pub(super) fn event_queue(input: &Input<'_>) -> Finding {
    of(&input.objects.pool.spec, input.observed.is_some_and(has_spot_instances), input.queue)
}

/// Whether EC2 describes an instance as a Spot instance: it may be older than the spec.
fn has_spot_instances(observed: &Observed) -> bool {
    let is_spot = |instance: &PoolInstance| {
        let facts = instance.ec2.as_ref().and_then(|answer| answer.facts.as_ref());
        instance.is_live() && facts.is_some_and(|facts| facts.purchase == PurchaseOption::Spot)
    };
    observed.instances.values().any(is_spot)
}

fn of(spec: &ASGMachinePoolSpec, runs_spot: bool, queue: Option<QueueState>) -> Finding {
    let depends = depends_on_events(spec);
    // A queue that is configured also announces the interruptions of Spot instances.
    let uses = depends || runs_spot || spec.may_launch_spot();
    let missing = |reason, cause: &str, remedy: &str| {
        let effect = if depends {
            "spec.rebalanceRecommendationPolicy Replace may have no effect"
        } else {
            "Nodes may not be drained before EC2 interrupts their Spot instances"
        };
        let message = format!("{cause} in region {}, so {effect}. {remedy}", spec.region);
        Finding::new(EVENT_QUEUE_READY, false, reason, message)
    };
    match queue {
        None | Some(QueueState::Unread) if uses => Finding::not_yet_reported(EVENT_QUEUE_READY),
        Some(QueueState::Available) if uses => {
            Finding::plain(EVENT_QUEUE_READY, true, event_queue_ready::EVENT_QUEUE_READY)
        }
        Some(QueueState::Unavailable) if uses => missing(
            event_queue_ready::EVENT_QUEUE_UNAVAILABLE,
            "messages of the event queue cannot be received or deleted",
            "Check the queue and the permissions of the manager; the log of the manager has the error.",
        ),
        Some(QueueState::Absent) if depends => missing(
            event_queue_ready::NO_EVENT_QUEUE,
            "the manager has no event queue",
            "Start the manager with --event-queue, or set the policy to Ignore.",
        ),
        _ => Finding::plain(EVENT_QUEUE_READY, true, event_queue_ready::NOT_REQUIRED),
    }
}

#[cfg(test)]
mod tests {
    use capasg_api::{conditions::Status, pool::InstancesDistribution};

    use super::*;

    #[test]
    fn the_condition_is_false_only_if_the_pool_depends_on_events_that_do_not_arrive() {
        use QueueState::{Absent, Available, Unavailable, Unread};
        use capasg_api::reasons::NOT_YET_REPORTED;
        use event_queue_ready::{EVENT_QUEUE_READY, EVENT_QUEUE_UNAVAILABLE, NO_EVENT_QUEUE, NOT_REQUIRED};
        let replace = Some(RebalanceRecommendationPolicy::Replace);
        let ignore = Some(RebalanceRecommendationPolicy::Ignore);
        for (policy, spot, queue, status, reason) in [
            (None, false, None, Status::True, NOT_REQUIRED),
            (None, false, Some(Absent), Status::True, NOT_REQUIRED),
            (ignore, false, Some(Unavailable), Status::True, NOT_REQUIRED),
            (replace, false, None, Status::Unknown, NOT_YET_REPORTED),
            (replace, false, Some(Unread), Status::Unknown, NOT_YET_REPORTED),
            (replace, false, Some(Available), Status::True, EVENT_QUEUE_READY),
            (replace, false, Some(Absent), Status::False, NO_EVENT_QUEUE),
            (replace, true, Some(Unavailable), Status::False, EVENT_QUEUE_UNAVAILABLE),
            (ignore, true, Some(Absent), Status::True, NOT_REQUIRED),
            (ignore, true, Some(Unread), Status::Unknown, NOT_YET_REPORTED),
            (ignore, true, Some(Available), Status::True, EVENT_QUEUE_READY),
            (None, true, Some(Unavailable), Status::False, EVENT_QUEUE_UNAVAILABLE),
        ] {
            let spot_spec = InstancesDistribution {
                on_demand_percentage_above_base_capacity: Some(0),
                ..InstancesDistribution::default()
            };
            // The instances that run count like those that the spec may launch.
            for (distribution, runs_spot) in [(spot.then_some(spot_spec), false), (None, spot)] {
                let spec = ASGMachinePoolSpec {
                    region: "eu-west-1".to_owned(),
                    rebalance_recommendation_policy: policy,
                    instances_distribution: distribution,
                    ..ASGMachinePoolSpec::default()
                };
                let finding = of(&spec, runs_spot, queue);
                assert_eq!((finding.status, finding.reason), (status, reason), "{policy:?} {spot} {queue:?}");
                assert_eq!(finding.message.contains("so "), status == Status::False, "{}", finding.message);
                assert_eq!(
                    finding.message.contains("Replace may have no effect"),
                    status == Status::False && policy == replace,
                    "{}",
                    finding.message
                );
            }
        }
    }
}
