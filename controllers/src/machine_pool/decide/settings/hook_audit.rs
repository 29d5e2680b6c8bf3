//! When our lifecycle hook is read. No list of groups contains hooks, so that each pool costs a call of its own.

use capasg_cloud::LifecycleState;
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::stamp::hash;
use crate::machine_pool::model::{Input, Needs, Part};

/// After a start of the controller, the hooks of all pools are read within this time, and not all at once: the calls
/// share their rate limit with those that change something.
const SPREAD: TimeDelta = TimeDelta::minutes(5);

/// Requires our hook if it is not known: at once if a decision depends on it, or if no report says that the group has what
/// the spec requests, else when it is the turn of this pool. Nothing else reconciles a pool when its hook is no longer known.
#[must_use]
pub fn read(input: &Input<'_>, is_required: bool) -> Part {
    if input.observed.hook.is_read() {
        return input.observed.hook_known_for.map_or_else(Part::default, Part::requeue);
    }
    let wait = turn(input).map_or(TimeDelta::zero(), |turn| turn - input.now);
    let cannot_wait =
        is_required || input.desired.previews || holds_instances(input) || !input.memory.drift.was_in_sync();
    if cannot_wait || wait <= TimeDelta::zero() {
        return Part::needing(Needs { hook: true, ..Needs::default() });
    }
    Part::requeue(wait)
}

/// Whether the hook may hold an instance: its timeout determines the heartbeats.
fn holds_instances(input: &Input<'_>) -> bool {
    let mut instances = input.observed.instances.values();
    instances.any(|instance| instance.lifecycle().is_some_and(LifecycleState::is_terminating))
}

/// When the hook of the pool is read after a start of the controller; it depends on the name of the group.
fn turn(input: &Input<'_>) -> Option<DateTime<Utc>> {
    let part = i32::try_from(u64::from_str_radix(&hash(&input.desired.group), 16).ok()? % 1_000).ok()?;
    Some(input.memory.began()? + SPREAD * part / 1_000)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::machine_pool::decide::testing::{Stage, now};
    use crate::machine_pool::model::Known;

    fn unread() -> Stage {
        let mut stage = Stage::new(3);
        stage.observed.hook = Known::Unread(None);
        *stage.memory.began_mut() = Some(now());
        stage.memory.drift.set_in_sync(2, 2);
        stage
    }

    #[test]
    fn the_hooks_of_many_pools_are_read_one_after_another() {
        let mut stage = unread();
        let mut turns = BTreeSet::new();
        for number in 0..100 {
            stage.desired.group = format!("group-{number}");
            stage.clock = now();
            let part = read(&stage.input(), false);
            let wait = part.requeue_after.unwrap_or(TimeDelta::zero());
            assert!(part.needs.hook == (wait == TimeDelta::zero()) && wait < SPREAD);
            turns.insert(wait.num_seconds() / 60);
            stage.clock = now() + wait;
            assert!(read(&stage.input(), false).needs.hook, "it is its turn");
        }
        assert_eq!(turns.len(), 5, "in each of five minutes");
    }

    #[test]
    fn a_pool_at_rest_is_reconciled_when_its_hook_is_no_longer_known() {
        let mut stage = Stage::new(3);
        stage.observed.hook_known_for = Some(TimeDelta::minutes(61));
        assert_eq!(read(&stage.input(), false).requeue_after, Some(TimeDelta::minutes(61)));
    }

    #[test]
    fn a_hook_that_a_decision_depends_on_is_read_at_once() {
        let mut stage = unread();
        assert!(!stage.plan().needs.hook, "it is not its turn");
        assert!(read(&stage.input(), true).needs.hook, "an instance refresh");
        stage.desired.previews = true;
        assert!(read(&stage.input(), false).needs.hook, "a preview shows it");
        stage.desired.previews = false;
        stage.memory.drift.set_in_sync(1, 2);
        assert!(read(&stage.input(), false).needs.hook, "no report is for this generation");
        stage.memory.drift.set_in_sync(2, 2);
        stage.lifecycle("i-1", LifecycleState::TerminatingWait);
        assert!(stage.plan().needs.hook, "it holds an instance");
    }
}
