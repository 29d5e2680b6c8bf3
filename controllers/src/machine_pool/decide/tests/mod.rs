//! The rules of decide by example. Rules are named by their IDs in docs/contributors/contract.md.

mod adoption;
mod aws_events;
mod capacity;
mod disruption_windows;
mod group;
mod instance_refresh;
mod launch_template;
mod machines;
mod preview;
mod progress_deadline;
mod remediation;
mod rolling_update;
mod rolling_update_properties;
mod settings;
mod termination_order;
mod terminations;
