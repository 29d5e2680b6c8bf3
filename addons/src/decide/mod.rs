//! What follows from the kinds, as pure functions: no IO, no clock, no client.

mod fan_out;
mod release_spec;

pub use fan_out::{Deletion, FanOut, Selected, Step, Values, fan_out};
