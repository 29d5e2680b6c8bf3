//! Each behaviour that the simulator promises has a test here, by the area it belongs to.

mod ends;
mod faults;
mod groups;
mod health;
mod hooks;
mod isolation;
mod kit;
mod launches;
mod network;
mod pages;
mod processes;
mod properties;
mod scale_in;
mod service_model;
mod staleness;
mod standby;
mod strictness;
mod tags;
mod templates;
