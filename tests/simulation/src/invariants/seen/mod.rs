//! What the rules remember of a run, by topic.

pub(super) mod begun;
pub(super) mod budget;
pub(super) mod capacity;
pub(super) mod current;
pub(super) mod drained;
pub(super) mod ended;
pub(super) mod exempt;
pub(super) mod failing;
pub(super) mod failures;
pub(super) mod launches;
pub(super) mod limits;
pub(super) mod lists;
pub(super) mod paused;
pub(super) mod preview;
pub(super) mod refreshes;
pub(super) mod stopped;
pub(super) mod token;
pub(super) mod turns;
