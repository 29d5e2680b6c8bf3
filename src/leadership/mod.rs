//! Which replica may write: one at a time, checked before each write to the cloud.

mod election;
mod seat;
mod store;
#[cfg(test)]
pub mod testing;

pub use self::{
    election::{Election, Timing},
    seat::Seat,
    store::{KubeLeases, LeaseStore},
};
