//! What a region offers to instances that are not launched yet.

/// An instance type that a zone offers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeOffering {
    /// `InstanceType`, for example `m7i.large`.
    pub instance_type: String,
    /// `Location`, the zone.
    pub zone: String,
}

/// How many addresses a subnet has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubnetAddresses {
    /// `SubnetId`.
    pub subnet: String,
    /// `AvailableIpAddressCount`.
    pub free: i32,
}
