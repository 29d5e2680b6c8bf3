//! `ASGMachine`: one instance of a pool. Core Cluster API creates a Machine for each (D1, D2).

mod spec;
mod status;

pub use spec::{ASGMachine, ASGMachineSpec};
pub use status::{ASGMachineStatus, AddressType, MachineAddress, PurchaseOption};
