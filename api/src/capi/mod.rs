//! The fields that are read of Cluster API's own kinds (`cluster.x-k8s.io/v1beta2`).
//!
//! Every field except the identity is optional, so that an unexpected object never stops a watch. These types are only
//! read: writes are patches of single fields, never whole objects.

mod cluster;
mod machine;
mod machine_pool;
mod node_state;
mod owners;
mod pause;
mod reference;

pub use cluster::{
    Cluster, ClusterInitialization, ClusterSpec, ClusterStatus, region_of_aws_cluster, vpc_of_aws_cluster,
};
pub use machine::{Machine, MachineSpec, MachineStatus, NodeRef};
pub use machine_pool::{
    Bootstrap, MachineDeletion, MachinePool, MachinePoolSpec, MachinePoolStatus, MachineTemplateResource,
    MachineTemplateSpec,
};
pub use node_state::{NodeReport, NodeState};
pub use owners::{
    belongs_to_pool, is_owned_by, machine_owner, owner_machine_pool, owner_reference_to_pool,
    pool_owner_of_machine, without_other_machine_pools,
};
pub use pause::{PauseState, pause_state};
pub use reference::{ContractReference, bootstrap_resource, contract_version, crd_name, spec_of};

/// Cluster API's own group.
pub const GROUP: &str = "cluster.x-k8s.io";
