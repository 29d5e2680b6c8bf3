//! The names and the smallest spec of a pool.

use capasg_api::{
    ASGMachinePoolSpec,
    pool::{Image, InstanceTypeEntry, MachineTemplate, SecurityGroupSelector, SubnetSelector},
};
use capasg_controllers::ObjectKey;

/// The region of every pool.
pub(super) const REGION: &str = "eu-west-1";
/// The namespace of everything.
pub(super) const NAMESPACE: &str = "default";
/// The Cluster of every pool that is not added to another one.
pub(super) const CLUSTER: &str = "prod";

/// The names of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// The `ASGMachinePool`.
    pub key: ObjectKey,
    /// The Cluster.
    pub cluster: ObjectKey,
    /// The `MachinePool`.
    pub machine_pool: ObjectKey,
    /// The `KubeadmConfig`, and its Secret.
    pub config: ObjectKey,
    /// The Auto Scaling group, and the launch template.
    pub group: String,
}

/// The smallest spec that works.
#[must_use]
pub fn pool_spec() -> ASGMachinePoolSpec {
    let subnet = |id: &str| SubnetSelector { id: Some(id.to_owned()), ..SubnetSelector::default() };
    ASGMachinePoolSpec {
        region: REGION.to_owned(),
        subnets: vec![subnet("subnet-0a1b2c3d"), subnet("subnet-0b1c2d3e"), subnet("subnet-0c1d2e3f")],
        instance_types: vec![InstanceTypeEntry::new("m7i.large")],
        machine: MachineTemplate {
            image: Image { id: Some("ami-0a1b2c3d".to_owned()), ..Image::default() },
            security_groups: vec![SecurityGroupSelector::by_id("sg-0b1c2d3e")],
            ..MachineTemplate::default()
        },
        ..ASGMachinePoolSpec::default()
    }
}
