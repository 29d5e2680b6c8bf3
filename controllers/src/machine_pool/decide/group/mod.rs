//! Decides whether the pool owns a group that can be changed, and creates or adopts it if not. Bounds and settings
//! belong to `capacity` and `settings`.

mod creation;

use capasg_cloud::Group;

use crate::machine_pool::decide::adoption;
use crate::machine_pool::decide::launch_template::Pin;
use crate::machine_pool::model::ownership::not_owned;
use crate::machine_pool::model::{GroupView, Input, Part};

pub use creation::confirm_absence;

/// Whether the group can be changed.
#[derive(Debug)]
pub enum Readiness<'a> {
    /// It exists, and the pool owns it.
    Ready(&'a Group),
    /// It cannot be changed now.
    Wait(Wait),
}

/// What is done while the group cannot be changed.
#[derive(Debug, Default)]
pub struct Wait {
    /// Creates the group, or adopts one.
    pub group: Part,
    /// The changes of an adoption; `None` if there is none, or they are unknown.
    pub pending: Option<Vec<capasg_api::pool::PendingChange>>,
}

/// Decides whether the pool owns a group that can be changed.
#[must_use]
pub fn decide<'a>(input: &Input<'a>, pin: &Pin) -> Readiness<'a> {
    let Input { desired, observed, .. } = *input;
    let wait = |group: Part| Readiness::Wait(Wait { group, pending: None });
    match &observed.group {
        GroupView::Unknown => wait(Part { in_transition: true, ..Part::default() }),
        GroupView::Absent { settled, .. } => {
            let mut part = if *settled { creation::create(input, pin) } else { Part::default() };
            // A preview creates no group, so that no change is in progress.
            part.in_transition |= !(desired.previews && *settled);
            wait(part)
        }
        GroupView::Present { group, .. } => {
            if let Some(blocker) = not_owned(desired, group) {
                if adoption::is_requested(desired, &blocker) {
                    let (group, pending) = adoption::decide(input, group);
                    return Readiness::Wait(Wait { group, pending: Some(pending) });
                }
                return wait(Part { blocker: Some(blocker), ..Part::default() });
            }
            if let Some(part) = adoption::contended(input) {
                return Readiness::Wait(Wait { group: part, pending: Some(desired.shown.clone()) });
            }
            if group.is_deleting() {
                return wait(Part { in_transition: true, ..Part::default() });
            }
            Readiness::Ready(group)
        }
    }
}
