//! The call that changes bounds and desired capacity, and what it waits for.

use capasg_cloud::{Capacity, GroupChange, Write};
use chrono::TimeDelta;

use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Desired, Input, Observed, Part, reads_behind};

/// Which reads may not show the last increase of desired capacity.
pub(super) enum Stale {
    /// Every read, for this long.
    AnyRead(TimeDelta),
    /// The current view alone: a read now shows it.
    CurrentView,
}

/// Whether the view may not show our last increase of desired capacity, or what that launched: a lower desired capacity
/// would be less than what runs by now. The previous leader may have increased it as well.
pub(super) fn reads_behind_raise(input: &Input<'_>, have: Capacity, wanted: i32) -> Option<Stale> {
    let requested = input.memory.capacity.last_requested();
    let ours = requested.filter(|(requested, _)| have.desired <= *requested && wanted < *requested);
    let before = input.memory.began().filter(|_| wanted < have.desired);
    let at = ours.map(|(_, at)| at).max(before)?;
    if let Some(wait) = reads_behind(at, input.now) {
        return Some(Stale::AnyRead(wait));
    }
    input.observed.group.as_of().and_then(|seen| reads_behind(at, seen)).map(|_| Stale::CurrentView)
}

/// How long a lower desired capacity waits, which would cancel pending launches: AWS launches a missing instance within
/// seconds, and reads may not show it yet.
pub(super) fn launches_may_be_hidden(input: &Input<'_>, have: Capacity, wanted: i32) -> Option<TimeDelta> {
    let since = input.memory.shortfall.since().unwrap_or(input.now);
    (wanted < have.desired).then(|| reads_behind(since, input.now)).flatten()
}

/// Increases desired capacity on a view that is not settled. Does nothing if this process may already have set at least
/// the target; otherwise the call would lower desired capacity, and the group would choose instances to terminate.
pub(super) fn increase_unsettled(input: &Input<'_>, have: Capacity) -> Part {
    let target = input.desired.replicas;
    let mut part = Part { in_transition: true, ..Part::default() };
    if target > have.desired && !input.memory.capacity.may_be_at_least(target, input.now) {
        let to = bounds(input.observed, have, Goal { target, wanted: target, refresh_active: true });
        part.merge(Part::of_all(write(input.desired, have, to)));
    }
    part
}

/// The capacity to set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal {
    /// The target, once the change is complete.
    pub target: i32,
    /// The desired capacity to set now.
    pub wanted: i32,
    /// Whether an instance refresh is in progress.
    pub refresh_active: bool,
}

/// `MinSize` is 0 and `MaxSize` as small as possible, so that no write of another actor can enlarge the group, or keep
/// it from being scaled in.
pub(super) fn bounds(observed: &Observed, have: Capacity, goal: Goal) -> Capacity {
    let Goal { target, wanted, .. } = goal;
    // Instances must be able to leave standby, which AWS rejects beyond MaxSize: an instance refresh may wait for that.
    let standby = instances::standby_count(observed);
    let least = target.max(wanted) + standby;
    // Bounds do not follow each launch and termination of an instance refresh.
    let max = if goal.refresh_active {
        least.max(have.max)
    } else {
        least.max(instances::live_count(observed) + standby)
    };
    Capacity { min: 0, max, desired: wanted }
}

/// One call for bounds and desired capacity. Narrower bounds are never sent without desired capacity, which AWS would
/// move into them (`UpdateAutoScalingGroup`). Wider bounds are: with the desired capacity of an older view they would
/// revert the change of another actor that ends a standby.
pub(super) fn write(desired: &Desired, have: Capacity, to: Capacity) -> Option<Write> {
    if to == have {
        return None;
    }
    let group = desired.group.clone();
    if (to.min, to.max) == (have.min, have.max) {
        return Some(Write::SetDesiredCapacity { group, desired: to.desired });
    }
    let widens = to.min <= have.min && to.max >= have.max && to.desired == have.desired;
    let change = GroupChange {
        min: Some(to.min),
        max: Some(to.max),
        desired: (!widens).then_some(to.desired),
        ..GroupChange::default()
    };
    Some(Write::UpdateGroup { group, change: Box::new(change) })
}
