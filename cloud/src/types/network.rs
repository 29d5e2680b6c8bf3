//! Resources that a spec names: subnets, security groups, images.

use std::collections::{BTreeMap, BTreeSet};

/// Which resources a spec names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Selector {
    /// By id, sent as a filter so that an unknown one is absent instead of failing the call.
    Ids(BTreeSet<String>),
    /// All tags must match (`tag:<key>` filters); an empty value or `*` matches any.
    Tags(BTreeMap<String, String>),
    /// By group name (`group-name` filter; security groups only).
    Name(String),
}

/// A subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subnet {
    /// `SubnetId`.
    pub id: String,
    /// `AvailabilityZone`.
    pub zone: String,
    /// `VpcId`.
    pub vpc: String,
}

/// A security group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityGroup {
    /// `GroupId`.
    pub id: String,
    /// `GroupName`.
    pub name: String,
    /// `VpcId`.
    pub vpc: String,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `ImageId`.
    pub id: String,
    /// `RootDeviceName`, for example `/dev/xvda`.
    pub root_device_name: Option<String>,
    /// `Architecture`, for example `x86_64`.
    pub architecture: Option<String>,
    /// Whether `Platform` is `windows`; AWS names no other.
    pub is_windows: bool,
    /// `BlockDeviceMappings.Ebs.VolumeSize` of the root device, in GiB.
    pub root_volume_gib: Option<i32>,
}
