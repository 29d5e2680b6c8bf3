//! The road that README describes, walked: its commands in order, with Cluster API Provider AWS and CAPASG on a second
//! implementation of AWS. Nothing but endpoint, credentials, inputs and programs comes from elsewhere.

mod around;
pub mod aws;
pub mod control_plane;
pub mod readme;
mod stand_ins;
pub mod steps;
mod table;
mod walk;

pub use walk::walk;
