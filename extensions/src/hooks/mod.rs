//! The handlers, one file each.

mod after_cluster_upgrade;
mod after_control_plane_initialized;
mod after_control_plane_upgrade;
mod after_workers_upgrade;
mod before_cluster_create;
mod before_cluster_delete;
mod before_cluster_upgrade;
mod before_control_plane_upgrade;
mod before_workers_upgrade;
mod discover_variables;
mod generate_patches;
mod generate_upgrade_plan;
mod validate_topology;

use std::sync::Arc;

use crate::handler::AnyHandler;

/// Every handler, in the order of discovery.
pub(crate) fn all() -> Vec<Arc<dyn AnyHandler>> {
    vec![
        Arc::new(discover_variables::DiscoverVariables),
        Arc::new(generate_patches::GeneratePatches),
        Arc::new(validate_topology::ValidateTopology),
        Arc::new(before_cluster_create::BeforeClusterCreate),
        Arc::new(after_control_plane_initialized::AfterControlPlaneInitialized),
        Arc::new(before_cluster_upgrade::BeforeClusterUpgrade),
        Arc::new(before_control_plane_upgrade::BeforeControlPlaneUpgrade),
        Arc::new(after_control_plane_upgrade::AfterControlPlaneUpgrade),
        Arc::new(before_workers_upgrade::BeforeWorkersUpgrade),
        Arc::new(after_workers_upgrade::AfterWorkersUpgrade),
        Arc::new(after_cluster_upgrade::AfterClusterUpgrade),
        Arc::new(before_cluster_delete::BeforeClusterDelete),
        Arc::new(generate_upgrade_plan::GenerateUpgradePlan),
    ]
}
