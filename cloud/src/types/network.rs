//! Resources that a spec names: subnets and security groups.

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
