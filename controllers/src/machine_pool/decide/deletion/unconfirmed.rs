//! A deletion during an adoption: the view may not show yet whether the pool owns the group.

use chrono::TimeDelta;

use crate::machine_pool::decide::adoption;
use crate::machine_pool::decide::timing::LISTING_LAG;
use crate::machine_pool::model::{Blocker, DeletionPhase, Input, Plan};

/// Waits while a group that was being adopted may have our tags although this view does not show them.
pub(super) fn decide(input: &Input<'_>, blocker: &Blocker) -> Option<Plan> {
    if !adoption::is_requested(input.desired, blocker)
        || !matches!(blocker, Blocker::GroupNotOwned { tags } if tags.is_untagged())
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
