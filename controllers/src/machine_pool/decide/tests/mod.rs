//! The rules of decide by example; the names tell the rule (contract.md section 8, design section 4).

mod adoption;
mod capacity;
mod choosing;
mod deadline;
mod differences;
mod endings;
mod group;
mod machines;
mod notices;
mod preview;
mod refresh;
mod remediation;
mod rolling;
mod rolling_properties;
mod template;
mod windows;
