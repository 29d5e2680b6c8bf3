//! Who may act: one replica at a time, and each cloud mutation asks before it is sent.

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
