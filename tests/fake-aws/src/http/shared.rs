//! What the handlers of all requests share.

use super::pace::Pacer;
use crate::Simulator;

/// What every request needs.
pub(super) struct Shared {
    pub(super) simulator: Simulator,
    pub(super) pacer: Pacer,
}
