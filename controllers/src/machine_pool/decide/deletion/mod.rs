//! Decides about a pool that is being deleted, phase by phase, without blocking a worker. Resources that are deleted
//! already are not waited for (E2).

mod absent;
mod orphan;
mod present;
mod remaining;
mod unconfirmed;

use crate::machine_pool::model::ownership::not_owned;
use crate::machine_pool::model::{Blocker, DeletionPhase, GroupView, Input, Plan};

pub use remaining::Waiting;

/// Decides the next steps of a deletion: drain, delete the group, delete the template, done (E1).
#[must_use]
pub fn decide(input: &Input<'_>, waiting: Waiting) -> Plan {
    let Input { desired, observed, .. } = *input;
    let mut plan = match &observed.group {
        // What the deletion waits for is unknown yet, and so are hooks and refreshes of a group that is left behind.
        GroupView::Unknown => Plan::default(),
        GroupView::Absent { settled: false, .. } => Plan::of_deletion(DeletionPhase::DeletingGroup),
        _ if desired.orphan_on_deletion => orphan::decide(input),
        GroupView::Absent { settled: true, .. } => absent::decide(input, waiting),
        GroupView::Present { group, .. } => match not_owned(desired, group) {
            Some(blocker) => {
                unconfirmed::decide(input, &blocker).unwrap_or_else(|| not_owned_group(input, blocker))
            }
            None => present::decide(input, group, waiting),
        },
    };
    plan.in_transition = true;
    plan
}

/// A group of the pool's name that the pool does not own is not changed; a pool that never owned one is deleted with
/// its launch template. A group with the pool's owner ID from which another actor removed tags blocks the deletion: it
/// would be left behind.
fn not_owned_group(input: &Input<'_>, blocker: Blocker) -> Plan {
    let never_owned = matches!(&blocker, Blocker::GroupNotOwned { tags } if !tags.is_incomplete())
        && input.observed.instances.values().all(|m| m.asg_machine.is_none());
    if never_owned {
        absent::delete_template(input)
    } else {
        let mut plan = Plan::of_deletion(remaining::draining(input.observed));
        plan.blocker = Some(blocker);
        plan
    }
}
