//! Decides whether a termination is in flight: requested, and not known yet to be accepted or rejected (F5).

use capasg_cloud::LifecycleState;
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::decide::timing::TERMINATION_REPEAT;
use crate::machine_pool::model::{GroupView, Input, PoolInstance};

/// How much longer a termination may be in flight at most; `None` if there is none.
///
/// A termination is no longer in flight once a view of the group that is newer than our call shows the instance
/// terminating or does not list it. A call that was rejected or lost is no longer in flight after a minute: by then its
/// effect is observed, and the annotation on the ASGMachine prevents the next leader from repeating it sooner.
///
/// An instance that our hook holds is not in flight: the next leader observes it, and completes the lifecycle action.
#[must_use]
pub fn longest(input: &Input<'_>) -> Option<TimeDelta> {
    let instances = input.observed.instances.iter();
    instances.filter_map(|(id, instance)| remaining(input, id, instance)).max()
}

/// Whether a termination is about to be requested, or requested again, so that the annotation stays.
#[must_use]
pub fn is_due(input: &Input<'_>) -> bool {
    let unknown = matches!(input.observed.group, GroupView::Unknown);
    let due = |instance: &PoolInstance| instance.is_drained() && !instance.is_paused();
    input.observed.instances.values().any(|instance| due(instance) && (unknown || is_kept(instance)))
}

fn remaining(input: &Input<'_>, id: &str, instance: &PoolInstance) -> Option<TimeDelta> {
    let requested = requested_at(input, id, instance)?;
    let wait = requested + TERMINATION_REPEAT - input.now;
    (wait > TimeDelta::zero() && !is_shown(input, instance, requested)).then_some(wait)
}

/// When the termination of an instance was last requested. The annotation is durable, but a cache may not show it yet.
/// A time in the future (another clock, another actor) counts as when this process began: the host of the previous leader
/// may have a clock that is hours ahead.
#[must_use]
pub fn requested_at(input: &Input<'_>, id: &str, instance: &PoolInstance) -> Option<DateTime<Utc>> {
    let annotated = instance.asg_machine.as_ref().and_then(|machine| machine.termination_requested_at);
    let in_past = |at: &DateTime<Utc>| *at <= input.now;
    let began = input.memory.began().unwrap_or(input.now);
    let annotated = annotated.map(|at| if in_past(&at) { at } else { began });
    annotated.max(input.memory.terminations.requested_at(id).filter(in_past))
}

/// Whether a view shows that the termination was accepted. It cannot be undone, so that one view is enough.
fn is_shown(input: &Input<'_>, instance: &PoolInstance, requested: DateTime<Utc>) -> bool {
    !is_kept(instance) && input.observed.group.as_of().is_some_and(|as_of| as_of >= requested)
}

/// Whether the group lists it, and does not terminate it.
fn is_kept(instance: &PoolInstance) -> bool {
    instance.lifecycle().is_some_and(|state| !state.is_terminating() && *state != LifecycleState::Terminated)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::machine_pool::decide::testing::{Stage, now};

    /// The termination of one of two instances was requested this many seconds ago, by the annotation.
    fn requested(seconds: i64) -> Stage {
        let mut stage = Stage::new(2);
        stage.drained("i-1");
        stage.instance("i-1").asg_machine.as_mut().unwrap().termination_requested_at =
            Some(now() - TimeDelta::seconds(seconds));
        stage
    }

    /// The view is this many seconds old.
    fn seen(mut stage: Stage, seconds: i64) -> Stage {
        if let GroupView::Present { group, settled, .. } = &stage.observed.group {
            let (group, settled) = (Arc::clone(group), *settled);
            stage.observed.group =
                GroupView::Present { group, as_of: now() - TimeDelta::seconds(seconds), settled };
        }
        stage
    }

    #[test]
    fn f5_nothing_is_in_flight_without_a_request() {
        assert_eq!(longest(&Stage::new(2).input()), None);
        let mut stage = Stage::new(2);
        stage.drained("i-1").lifecycle("i-2", LifecycleState::TerminatingWait);
        assert_eq!(longest(&stage.input()), None);
    }

    #[test]
    fn f5_a_termination_is_in_flight_until_a_newer_view_shows_it() {
        let mut stage = seen(requested(3), 4);
        assert_eq!(longest(&stage.input()), Some(TimeDelta::seconds(57)), "the view is older than the call");
        stage = seen(requested(3), 1);
        assert_eq!(longest(&stage.input()), Some(TimeDelta::seconds(57)), "it is not terminating");
        for state in
            [LifecycleState::Terminating, LifecycleState::TerminatingWait, LifecycleState::Terminated]
        {
            stage = seen(requested(3), 1);
            stage.lifecycle("i-1", state);
            assert_eq!(longest(&stage.input()), None);
        }
        stage = seen(requested(3), 1);
        stage.instance("i-1").listed = None;
        assert_eq!(longest(&stage.input()), None, "it left the group");
        stage.unsettled();
        assert_eq!(longest(&stage.input()), None, "whatever else was requested since");
    }

    #[test]
    fn f5_an_unconfirmed_termination_is_in_flight_for_a_minute() {
        let stage = |seconds| {
            let mut stage = requested(seconds);
            stage.observed.group = GroupView::Unknown;
            stage
        };
        assert_eq!(longest(&stage(59).input()), Some(TimeDelta::seconds(1)));
        assert_eq!(longest(&stage(60).input()), None);
        assert_eq!(longest(&seen(requested(60), 1).input()), None, "rejected or lost");
        let mut ahead = stage(-3600);
        assert_eq!(longest(&ahead.input()), Some(TERMINATION_REPEAT), "an annotation from the future");
        *ahead.memory.began_mut() = Some(now() - TimeDelta::seconds(20));
        assert_eq!(longest(&ahead.input()), Some(TimeDelta::seconds(40)), "by a host whose clock is ahead");
    }

    #[test]
    fn f5_a_drained_instance_is_about_to_be_terminated() {
        let mut stage = Stage::new(2);
        assert!(!is_due(&stage.input()));
        stage.drained("i-1");
        assert!(is_due(&stage.input()));
        stage.lifecycle("i-1", LifecycleState::Terminating);
        assert!(!is_due(&stage.input()));
        stage.observed.group = GroupView::Unknown;
        assert!(is_due(&stage.input()), "a new leader has observed nothing yet");
    }

    #[test]
    fn f5_a_call_counts_before_its_annotation_is_in_the_cache() {
        let mut stage = seen(Stage::new(2), 5);
        stage.memory.terminations.requested_mut().insert("i-1".to_owned(), now());
        assert_eq!(longest(&stage.input()), Some(TERMINATION_REPEAT));
    }
}
