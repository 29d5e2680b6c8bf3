//! The questions to AWS and their answers.

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::{Place, Selector, VcpuQuota};

/// Where the image of a pool comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImageSource {
    /// The ID of an image.
    Id(String),
    /// An SSM parameter that holds the ID of an image, without placeholders.
    Parameter(String),
}

/// One thing that is asked with an identity about a region.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Whether the region answers to the identity.
    Identity {
        /// Where.
        place: Place,
    },
    /// The subnets of a selector.
    Subnets {
        /// Where.
        place: Place,
        /// Which.
        selector: Selector,
    },
    /// Security groups by their IDs.
    SecurityGroups {
        /// Where.
        place: Place,
        /// The IDs.
        ids: BTreeSet<String>,
    },
    /// Whether an image exists.
    Image {
        /// Where.
        place: Place,
        /// Which.
        source: ImageSource,
    },
    /// The zones that offer instance types.
    Offerings {
        /// Where.
        place: Place,
        /// The names of the types.
        types: BTreeSet<String>,
    },
    /// The vCPUs of instance types.
    Vcpus {
        /// Where.
        place: Place,
        /// The names of the types.
        types: BTreeSet<String>,
    },
    /// A quota for vCPUs, and what is in use of it.
    Quota {
        /// Where.
        place: Place,
        /// Which.
        quota: VcpuQuota,
    },
}

/// What questions are about, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Region and identity.
    Identity,
    /// Images.
    Images,
    /// Instance types.
    InstanceTypes,
    /// Quotas.
    Quotas,
    /// Security groups.
    SecurityGroups,
    /// Subnets.
    Subnets,
}

impl Question {
    /// What the question is about.
    #[must_use]
    pub const fn subject(&self) -> Subject {
        match self {
            Self::Identity { .. } => Subject::Identity,
            Self::Subnets { .. } => Subject::Subnets,
            Self::SecurityGroups { .. } => Subject::SecurityGroups,
            Self::Image { .. } => Subject::Images,
            Self::Offerings { .. } => Subject::InstanceTypes,
            Self::Vcpus { .. } | Self::Quota { .. } => Subject::Quotas,
        }
    }

    /// Where it is asked.
    #[must_use]
    pub const fn place(&self) -> &Place {
        match self {
            Self::Identity { place }
            | Self::Subnets { place, .. }
            | Self::SecurityGroups { place, .. }
            | Self::Image { place, .. }
            | Self::Offerings { place, .. }
            | Self::Vcpus { place, .. }
            | Self::Quota { place, .. } => place,
        }
    }
}

impl Subject {
    /// The name in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Images => "images",
            Self::InstanceTypes => "instance types",
            Self::Quotas => "quotas",
            Self::SecurityGroups => "security groups",
            Self::Subnets => "subnets",
        }
    }
}

/// A subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubnetFacts {
    /// Its zone.
    pub zone: String,
    /// Its VPC.
    pub vpc: String,
    /// How many addresses it has left.
    pub free: i32,
}

/// An answer of AWS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The identity has access to the region.
    Identity,
    /// Subnets by ID.
    Subnets(BTreeMap<String, SubnetFacts>),
    /// The VPCs of security groups by ID.
    SecurityGroups(BTreeMap<String, String>),
    /// Whether the image exists.
    Image(bool),
    /// The zones of each type; a type that no zone offers is absent.
    Offerings(BTreeMap<String, BTreeSet<String>>),
    /// The vCPUs of each type; a type that the region does not offer is absent.
    Vcpus(BTreeMap<String, i32>),
    /// A quota for vCPUs.
    Quota {
        /// How many vCPUs may be in use.
        value: i64,
        /// How many are.
        used: i64,
    },
}
