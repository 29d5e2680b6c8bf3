//! The road that README describes: Cluster API Provider AWS and CAPASG on a second implementation of AWS.

pub mod aws;
pub mod control_plane;
