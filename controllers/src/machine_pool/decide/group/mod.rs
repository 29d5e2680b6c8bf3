//! Decides whether there is a group of ours to work on, and creates it or adopts one if there should be (bounds and
//! settings apart: those belong to `capacity` and `settings`).

mod creation;

use capasg_cloud::Group;

use crate::machine_pool::decide::adoption;
use crate::machine_pool::decide::launch_template::Pin;
use crate::machine_pool::model::ownership::not_owned;
use crate::machine_pool::model::{GroupView, Input, Part};

pub use creation::confirm_absence;

/// What the group's view allows.
#[derive(Debug)]
pub enum Readiness<'a> {
    /// It is there and ours: go on.
    Ready(&'a Group),
    /// Nothing can be done about instances now.
    Wait(Wait),
}

/// What is done while there is no group to work on.
#[derive(Debug, Default)]
pub struct Wait {
    /// Creates the group, or adopts one.
    pub group: Part,
    /// What an adoption would change; `None` if there is none, or it is not known.
    pub pending: Option<Vec<capasg_api::pool::PendingChange>>,
}

/// Decides whether there is a group of ours to work on.
#[must_use]
pub fn decide<'a>(input: &Input<'a>, pin: &Pin) -> Readiness<'a> {
    let Input { desired, observed, .. } = *input;
    let wait = |group: Part| Readiness::Wait(Wait { group, pending: None });
    match &observed.group {
        GroupView::Unknown => wait(Part { in_transition: true, ..Part::default() }),
        GroupView::Absent { settled, .. } => {
            let mut part = if *settled { creation::create(input, pin) } else { Part::default() };
            // A preview creates none, so that nothing is about to change.
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
