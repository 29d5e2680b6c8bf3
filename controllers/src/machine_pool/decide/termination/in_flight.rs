//! Decides whether an end is in flight: asked for, and not known yet to have been taken or refused (F5).

use capasg_cloud::LifecycleState;
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::decide::timing::TERMINATION_REPEAT;
use crate::machine_pool::model::{GroupView, Input, PoolInstance};

/// How much longer an end may be in flight at most; `None` if there is none.
///
/// An end is over once a view of the group that is younger than our call shows the instance ending or gone. One that
/// was refused or lost, or of which AWS does not tell, is over after a minute: by then a call is given up and its
/// effect is in sight, and the mark on the ASGMachine keeps whoever comes next from asking again sooner.
///
/// An instance that our hook holds is not in flight: whoever comes next sees it, and answers.
#[must_use]
pub fn longest(input: &Input<'_>) -> Option<TimeDelta> {
    let instances = input.observed.instances.iter();
    instances.filter_map(|(id, instance)| left(input, id, instance)).max()
}

/// Whether an end is about to be asked for, or asked for again: what was written for it stays.
#[must_use]
pub fn is_due(input: &Input<'_>) -> bool {
    let unknown = matches!(input.observed.group, GroupView::Unknown);
    let due = |instance: &PoolInstance| instance.is_drained() && !instance.is_paused();
    input.observed.instances.values().any(|instance| due(instance) && (unknown || stands(instance)))
}

fn left(input: &Input<'_>, id: &str, instance: &PoolInstance) -> Option<TimeDelta> {
    let requested = requested_at(input, id, instance)?;
    let left = requested + TERMINATION_REPEAT - input.now;
    (left > TimeDelta::zero() && !is_shown(input, instance, requested)).then_some(left)
}

/// When the end of an instance was last asked for. The mark is durable, but the cache that shows it may lag behind
/// this process; one from the future (another clock, another hand) holds no longer than one from now.
#[must_use]
pub fn requested_at(input: &Input<'_>, id: &str, instance: &PoolInstance) -> Option<DateTime<Utc>> {
    let marked = instance.asg_machine.as_ref().and_then(|machine| machine.termination_requested_at);
    marked.max(input.memory.terminations.requested_at(id)).map(|at| at.min(input.now))
}

/// Nothing takes an end back, so that one look is enough.
fn is_shown(input: &Input<'_>, instance: &PoolInstance, requested: DateTime<Utc>) -> bool {
    !stands(instance) && input.observed.group.as_of().is_some_and(|as_of| as_of >= requested)
}

fn stands(instance: &PoolInstance) -> bool {
    instance.lifecycle().is_some_and(|state| !state.is_terminating() && *state != LifecycleState::Terminated)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::machine_pool::decide::testing::{Stage, now};

    /// One of two instances was asked to end so many seconds ago, as the mark says.
    fn asked(seconds: i64) -> Stage {
        let mut stage = Stage::new(2);
        stage.drained("i-1");
        stage.instance("i-1").asg_machine.as_mut().unwrap().termination_requested_at =
            Some(now() - TimeDelta::seconds(seconds));
        stage
    }

    /// The view was asked for so many seconds ago.
    fn seen(mut stage: Stage, seconds: i64) -> Stage {
        if let GroupView::Present { group, settled, .. } = &stage.observed.group {
            let (group, settled) = (Arc::clone(group), *settled);
            stage.observed.group =
                GroupView::Present { group, as_of: now() - TimeDelta::seconds(seconds), settled };
        }
        stage
    }

    #[test]
    fn f5_nothing_is_in_flight_that_was_not_asked_for() {
        assert_eq!(longest(&Stage::new(2).input()), None);
        let mut stage = Stage::new(2);
        stage.drained("i-1").lifecycle("i-2", LifecycleState::TerminatingWait);
        assert_eq!(longest(&stage.input()), None);
    }

    #[test]
    fn f5_an_end_is_in_flight_until_a_younger_view_shows_it() {
        let mut stage = seen(asked(3), 4);
        assert_eq!(longest(&stage.input()), Some(TimeDelta::seconds(57)), "the view is older than the call");
        stage = seen(asked(3), 1);
        assert_eq!(longest(&stage.input()), Some(TimeDelta::seconds(57)), "it stands");
        for state in
            [LifecycleState::Terminating, LifecycleState::TerminatingWait, LifecycleState::Terminated]
        {
            stage = seen(asked(3), 1);
            stage.lifecycle("i-1", state);
            assert_eq!(longest(&stage.input()), None);
        }
        stage = seen(asked(3), 1);
        stage.instance("i-1").listed = None;
        assert_eq!(longest(&stage.input()), None, "it left the group");
        stage.unsettled();
        assert_eq!(longest(&stage.input()), None, "whatever else we asked for meanwhile");
    }

    #[test]
    fn f5_an_end_that_nobody_tells_of_is_over_after_a_minute() {
        let stage = |seconds| {
            let mut stage = asked(seconds);
            stage.observed.group = GroupView::Unknown;
            stage
        };
        assert_eq!(longest(&stage(59).input()), Some(TimeDelta::seconds(1)));
        assert_eq!(longest(&stage(60).input()), None);
        assert_eq!(longest(&seen(asked(60), 1).input()), None, "refused or lost");
        assert_eq!(longest(&stage(-3600).input()), Some(TERMINATION_REPEAT), "a mark from the future");
    }

    #[test]
    fn f5_what_is_drained_and_stands_is_about_to_be_ended() {
        let mut stage = Stage::new(2);
        assert!(!is_due(&stage.input()));
        stage.drained("i-1");
        assert!(is_due(&stage.input()));
        stage.lifecycle("i-1", LifecycleState::Terminating);
        assert!(!is_due(&stage.input()));
        stage.observed.group = GroupView::Unknown;
        assert!(is_due(&stage.input()), "a new process has not looked yet");
    }

    #[test]
    fn f5_a_call_counts_before_its_mark_is_in_the_cache() {
        let mut stage = seen(Stage::new(2), 5);
        stage.memory.terminations.requested_mut().insert("i-1".to_owned(), now());
        assert_eq!(longest(&stage.input()), Some(TERMINATION_REPEAT));
    }
}
