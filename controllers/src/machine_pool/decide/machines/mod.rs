//! Decides about ASGMachines and Machines: one of each for each live instance, deleted and released with it.

pub mod creation;
pub mod deletion;
pub mod departures;
pub mod facts;
pub mod restoration;
pub mod time_limits;
