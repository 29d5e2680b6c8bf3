//! The call that changes bounds and desired capacity, and what it has to wait for.

use capasg_cloud::{Capacity, GroupChange, Write};
use chrono::TimeDelta;

use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Desired, Input, Observed, Part, reads_behind};

/// What is behind the last raise of desired capacity.
pub(super) enum Behind {
    /// Every read, for so long.
    Still(TimeDelta),
    /// This view; a read of now is not.
    TheView,
}

/// Whether a view may be behind our last raise, or behind what that launched: less than the raise would lower desired
/// capacity past what runs by now. The previous leader may have raised it as well.
pub(super) fn reads_behind_raise(input: &Input<'_>, have: Capacity, wanted: i32) -> Option<Behind> {
    let requested = input.memory.capacity.last_requested();
    let ours = requested.filter(|(requested, _)| have.desired <= *requested && wanted < *requested);
    let before = input.memory.began().filter(|_| wanted < have.desired);
    let at = ours.map(|(_, at)| at).max(before)?;
    if let Some(wait) = reads_behind(at, input.now) {
        return Some(Behind::Still(wait));
    }
    input.observed.group.as_of().and_then(|seen| reads_behind(at, seen)).map(|_| Behind::TheView)
}

/// An absolute write upwards needs no settled view, unless we ourselves wrote more since that view: lowering desired
/// below what runs would let the group pick.
pub(super) fn grow_unsettled(input: &Input<'_>, have: Capacity) -> Part {
    let target = input.desired.replicas;
    let mut part = Part { in_transition: true, ..Part::default() };
    if target > have.desired && !input.memory.capacity.may_be_at_least(target) {
        let to = bounds(input.observed, have, Aim { target, wanted: target, refreshed: true });
        part.merge(Part::of_all(write(input.desired, have, to)));
    }
    part
}

/// What capacity is to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim {
    /// In the end.
    pub target: i32,
    /// Now.
    pub wanted: i32,
    /// Whether an instance refresh is under way.
    pub refreshed: bool,
}

/// `MinSize` is 0 and `MaxSize` as small as the pool allows, so that no other actor's write can grow or hold the group.
pub(super) fn bounds(observed: &Observed, have: Capacity, aim: Aim) -> Capacity {
    let Aim { target, wanted, .. } = aim;
    // What is in standby must be able to come back, which is rejected beyond MaxSize.
    let standby = instances::standby_count(observed);
    let needed = target.max(wanted).max(instances::live_count(observed)) + standby;
    // While a refresh launches and terminates by turns, bounds do not follow each.
    let max = if aim.refreshed { target.max(wanted).max(have.max) } else { needed };
    Capacity { min: 0, max, desired: wanted }
}

/// One call for bounds and desired capacity. Bounds that leave less room never travel alone: AWS would move desired
/// capacity into them (`UpdateAutoScalingGroup`). Those that only leave more room do: a desired capacity that was read a
/// moment ago would take back what another actor has just brought back from standby.
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
