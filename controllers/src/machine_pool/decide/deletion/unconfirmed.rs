//! A deletion in the middle of an adoption: whether the group is ours may not show yet.

use chrono::TimeDelta;

use crate::machine_pool::decide::adoption;
use crate::machine_pool::decide::timing::LISTING_LAG;
use crate::machine_pool::model::{Blocker, DeletionPhase, Input, Plan};

/// What is done while a group that was about to be adopted may carry our tags although this view does not show them.
pub(super) fn decide(input: &Input<'_>, blocker: &Blocker) -> Option<Plan> {
    if !adoption::is_requested(input.desired, blocker)
        || !matches!(blocker, Blocker::GroupNotOwned { found: None })
    {
        return None;
    }
    let seen = input.observed.group.as_of().zip(input.memory.ownership.unowned_since());
    let unowned_for = seen.map_or(TimeDelta::zero(), |(as_of, since)| as_of - since);
    let is_fresh = input.fresh_group();
    if input.observed.group.is_settled() && is_fresh && unowned_for >= LISTING_LAG {
        return None;
    }
    let mut plan = Plan::of_deletion(DeletionPhase::DeletingGroup);
    plan.blocker = Some(Blocker::Adopting);
    plan.needs.fresh_group = !is_fresh;
    plan.requeue_within(LISTING_LAG);
    Some(plan)
}
