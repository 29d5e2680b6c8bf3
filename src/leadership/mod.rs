//! Which replica may write: one at a time, checked before each write to the cloud.

mod election;
mod join;
mod seat;
mod store;
#[cfg(test)]
pub mod testing;

pub use self::{
    election::{Election, Timing},
    join::{join, own_namespace},
    seat::Seat,
    store::{ADDONS_LEASE, KubeLeases, LeaseStore, MANAGER_LEASE},
};
