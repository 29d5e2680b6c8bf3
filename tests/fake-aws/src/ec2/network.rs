//! What exists in a region before any call: networks, images, instance types, profiles, keys, and spare capacity.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Image, Snapshot};
use crate::Scope;

/// Default subnets, security group, images; every region has the same ids.
const VPC: &str = "vpc-0a1b2c3d";
const SUBNETS: [(&str, &str, &str); 3] = [
    ("subnet-0a1b2c3d", "a", "10.0.0.0/20"),
    ("subnet-0b1c2d3e", "b", "10.0.16.0/20"),
    ("subnet-0c1d2e3f", "c", "10.0.32.0/20"),
];
const SECURITY_GROUPS: [(&str, &str); 2] = [("sg-0a1b2c3d", "default"), ("sg-0b1c2d3e", "nodes")];
const IMAGES: [(&str, &str, &str); 4] = [
    ("ami-0a1b2c3d", "node-v1.36.3", "x86_64"),
    ("ami-0b1c2d3e", "node-v1.37.0", "x86_64"),
    ("ami-0c1d2e3f", "node-v1.36.3-arm64", "arm64"),
    ("ami-0d1e2f3a", "node-v1.35.4", "x86_64"),
];
const FAMILIES: [(&str, &str, u32); 8] = [
    ("m7i", "x86_64", 4096),
    ("m7a", "x86_64", 4096),
    ("m6i", "x86_64", 4096),
    ("m6a", "x86_64", 4096),
    ("m5", "x86_64", 4096),
    ("c7i", "x86_64", 2048),
    ("t3", "x86_64", 4096),
    ("m7g", "arm64", 4096),
];
/// Types with more than processors and memory: vCPUs and memory, then their devices.
const ACCELERATED: [(&str, u32, u32, Devices); 7] = [
    ("g5.xlarge", 4, 16 * 1024, Devices::Gpus("NVIDIA", "A10G", 1, 24 * 1024)),
    ("g5.12xlarge", 48, 192 * 1024, Devices::Gpus("NVIDIA", "A10G", 4, 24 * 1024)),
    ("g4ad.xlarge", 4, 16 * 1024, Devices::Gpus("AMD", "Radeon Pro V520", 1, 8 * 1024)),
    ("dl1.24xlarge", 96, 768 * 1024, Devices::Gpus("Habana", "Gaudi HL-205", 8, 32 * 1024)),
    ("p5.48xlarge", 192, 2048 * 1024, Devices::Gpus("NVIDIA", "H100", 8, 80 * 1024)),
    ("inf2.24xlarge", 96, 384 * 1024, Devices::Neuron("Inferentia2", 6, 2)),
    ("trn1.32xlarge", 128, 512 * 1024, Devices::Neuron("Trainium", 16, 2)),
];
const EFA_INTERFACES: [(&str, u32); 3] = [("dl1.24xlarge", 4), ("p5.48xlarge", 32), ("trn1.32xlarge", 8)];
const SIZES: [(&str, u32); 4] = [("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16)];

/// What a region has besides groups, templates and instances.
///
/// By default: VPC `vpc-0a1b2c3d`; subnets `subnet-0a1b2c3d`, `subnet-0b1c2d3e`, `subnet-0c1d2e3f` in zones a, b and
/// c, tagged `kubernetes.io/role/internal-elb: "1"`; security groups `sg-0a1b2c3d` (`default`) and `sg-0b1c2d3e`
/// (`nodes`, tagged `Name: nodes`); images `ami-0a1b2c3d` (v1.36.3), `ami-0b1c2d3e` (v1.37.0), `ami-0c1d2e3f`
/// (v1.36.3, arm64) and `ami-0d1e2f3a` (v1.35.4); the families m7i, m7a, m6i, m6a, m5, c7i, t3 and m7g in sizes
/// large to 4xlarge, and the accelerated g5.xlarge, g5.12xlarge, g4ad.xlarge, dl1.24xlarge, p5.48xlarge, inf2.24xlarge
/// and trn1.32xlarge; instance profiles `nodes` and `prod-nodes`; key pair `ops`.
#[derive(Debug, Clone, Default)]
pub struct Network {
    /// VPCs by id, with their CIDR block.
    pub vpcs: BTreeMap<String, String>,
    /// Subnets by id.
    pub subnets: BTreeMap<String, Subnet>,
    /// Security groups by id.
    pub security_groups: BTreeMap<String, SecurityGroup>,
    /// Images by id.
    pub images: BTreeMap<String, Image>,
    /// Snapshots by id, besides those of images.
    pub snapshots: BTreeMap<String, Snapshot>,
    /// Instance types by name.
    pub instance_types: BTreeMap<String, InstanceType>,
    /// Names of instance profiles.
    pub instance_profiles: BTreeSet<String>,
    /// Names of key pairs.
    pub key_pairs: BTreeSet<String>,
}

/// A subnet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subnet {
    /// For example `subnet-0a1b2c3d`.
    pub id: String,
    /// Its VPC.
    pub vpc: String,
    /// Its zone, for example `eu-west-1a`.
    pub zone: String,
    /// Its CIDR block.
    pub cidr: String,
    /// Addresses that instances can take.
    pub addresses: usize,
    /// Tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// A security group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecurityGroup {
    /// For example `sg-0a1b2c3d`.
    pub id: String,
    /// Its VPC.
    pub vpc: String,
    /// Other VPCs that it is associated with.
    #[serde(default)]
    pub associated_vpcs: BTreeSet<String>,
    /// Its name.
    pub name: String,
    /// Tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

impl SecurityGroup {
    /// A security group of a VPC without tags.
    #[must_use]
    pub fn new(id: &str, vpc: &str, name: &str) -> Self {
        Self {
            id: id.to_owned(),
            vpc: vpc.to_owned(),
            associated_vpcs: BTreeSet::new(),
            name: name.to_owned(),
            tags: BTreeMap::new(),
        }
    }

    /// Whether instances in a VPC can have it.
    #[must_use]
    pub fn is_usable_in(&self, vpc: &str) -> bool {
        self.vpc == vpc || self.associated_vpcs.contains(vpc)
    }
}

/// An instance type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceType {
    /// For example `m7i.large`.
    pub name: String,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// Accelerators.
    #[serde(default)]
    pub devices: Option<Accelerators>,
    /// How many Elastic Fabric Adapter interfaces it can have.
    #[serde(default)]
    pub efa_interfaces: u32,
}

/// The accelerators of an instance type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Accelerators {
    /// `NVIDIA`, `AMD`, `Habana`; AWS's own (`NeuronInfo`) without one.
    #[serde(default)]
    pub manufacturer: Option<String>,
    /// For example `A10G`.
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// Memory of each GPU in MiB; cores of each Neuron device.
    pub size: u32,
}

#[derive(Clone, Copy)]
enum Devices {
    /// Manufacturer, name, count, memory in MiB of each.
    Gpus(&'static str, &'static str, u32, u32),
    /// Name, count, cores of each.
    Neuron(&'static str, u32, u32),
}

impl From<Devices> for Accelerators {
    fn from(devices: Devices) -> Self {
        let (manufacturer, name, count, size) = match devices {
            Devices::Gpus(manufacturer, name, count, memory) => (Some(manufacturer), name, count, memory),
            Devices::Neuron(name, count, cores) => (None, name, count, cores),
        };
        Self { manufacturer: manufacturer.map(str::to_owned), name: name.to_owned(), count, size }
    }
}

impl InstanceType {
    /// A type without accelerators.
    #[must_use]
    pub fn new(name: &str, vcpus: u32, memory_mib: u32, architecture: &str) -> Self {
        Self {
            name: name.to_owned(),
            vcpus,
            memory_mib,
            architecture: architecture.to_owned(),
            devices: None,
            efa_interfaces: 0,
        }
    }
}

impl Network {
    /// The default world of a region.
    #[must_use]
    pub fn of(scope: &Scope) -> Self {
        let mut network = Self::default();
        network.vpcs.insert(VPC.to_owned(), "10.0.0.0/16".to_owned());
        for (id, zone, cidr) in SUBNETS {
            let tags = BTreeMap::from([("kubernetes.io/role/internal-elb".to_owned(), "1".to_owned())]);
            let zone = format!("{}{zone}", scope.region);
            let subnet = Subnet {
                id: id.to_owned(),
                vpc: VPC.to_owned(),
                zone,
                cidr: cidr.to_owned(),
                addresses: 4091,
                tags,
            };
            network.subnets.insert(id.to_owned(), subnet);
        }
        for (id, name) in SECURITY_GROUPS {
            let tags = BTreeMap::from([("Name".to_owned(), name.to_owned())]);
            let group = SecurityGroup { tags, ..SecurityGroup::new(id, VPC, name) };
            network.security_groups.insert(id.to_owned(), group);
        }
        for (id, name, architecture) in IMAGES {
            network.images.insert(id.to_owned(), Image::new(id, name, architecture));
        }
        for (family, architecture, memory_per_vcpu) in FAMILIES {
            for (size, vcpus) in SIZES {
                let name = format!("{family}.{size}");
                let kind = InstanceType::new(&name, vcpus, vcpus * memory_per_vcpu, architecture);
                network.instance_types.insert(name, kind);
            }
        }
        for (name, vcpus, memory_mib, devices) in ACCELERATED {
            let efa = EFA_INTERFACES.iter().find(|(known, _)| *known == name);
            let kind = InstanceType {
                devices: Some(devices.into()),
                efa_interfaces: efa.map_or(0, |(_, count)| *count),
                ..InstanceType::new(name, vcpus, memory_mib, "x86_64")
            };
            network.instance_types.insert(name.to_owned(), kind);
        }
        network.instance_profiles.extend(["nodes", "prod-nodes"].map(str::to_owned));
        network.key_pairs.insert("ops".to_owned());
        network
    }
}

/// How many instances of a type a zone still gives; `*` stands for any type or zone. Unlimited where nothing is set.
#[derive(Debug, Clone, Default)]
pub struct Capacity(BTreeMap<(String, String), usize>);

impl Capacity {
    /// Sets, or with `None` lifts, the limit on instances that exist at once.
    pub fn set(&mut self, instance_type: &str, zone: &str, limit: Option<usize>) {
        let key = (instance_type.to_owned(), zone.to_owned());
        match limit {
            Some(limit) => self.0.insert(key, limit),
            None => self.0.remove(&key),
        };
    }

    /// Whether one more fits, given how many exist by type and zone.
    #[must_use]
    pub fn allows(&self, instance_type: &str, zone: &str, existing: impl Fn(&str, &str) -> usize) -> bool {
        [(instance_type, zone), (instance_type, "*"), ("*", zone), ("*", "*")].into_iter().all(
            |(kind, place)| {
                self.0
                    .get(&(kind.to_owned(), place.to_owned()))
                    .is_none_or(|limit| existing(kind, place) < *limit)
            },
        )
    }
}
