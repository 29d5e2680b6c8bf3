//! Each behaviour that the simulator promises has a test here, by the area it belongs to.
//!
//! The modules are marked as tests for the lints that allow shorter words there.

#[cfg(test)]
mod ends;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod groups;
#[cfg(test)]
mod health;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod identities;
#[cfg(test)]
mod isolation;
#[cfg(test)]
mod kit;
#[cfg(test)]
mod launches;
#[cfg(test)]
mod network;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod rebalance;
mod refresh;
#[cfg(test)]
mod refresh_ends;
#[cfg(test)]
mod replacements;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod scale_in;
#[cfg(test)]
mod service_model;
#[cfg(test)]
mod staleness;
#[cfg(test)]
mod standby;
#[cfg(test)]
mod strictness;
#[cfg(test)]
mod tags;
#[cfg(test)]
mod templates;
#[cfg(test)]
mod throttle;
#[cfg(test)]
mod volumes;
