//! The plan: steps by phase, facts that are missing, and what prevents changes.

mod blocker;
mod deletion_phase;
mod difference;
mod needs;
mod part;
mod phase;
#[expect(clippy::module_inception, reason = "the plan and its parts")]
mod plan;
mod rollout_phase;
mod step;

pub use blocker::Blocker;
pub use deletion_phase::DeletionPhase;
pub use difference::{Comparison, Difference};
pub use needs::Needs;
pub use part::Part;
pub use phase::Phase;
pub use plan::Plan;
pub use rollout_phase::{RolloutPhase, StopCause};
pub use step::Step;
