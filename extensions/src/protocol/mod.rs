//! The wire protocol of the Runtime Hooks (`hooks.runtime.cluster.x-k8s.io/v1alpha1`): hooks, requests and responses.
//!
//! Requests are read leniently: unknown fields are ignored, and the Cluster is read in `v1beta1` and `v1beta2` (R8).

mod cluster;
mod common;
mod discovery;
mod hook;
mod kept;
mod lifecycle;
mod template;
mod topology;
mod upgrade_plan;
mod variables;

pub(crate) use cluster::is_short;
pub use cluster::{Cluster, ClusterKey};
pub use common::{CommonResponse, FailurePolicy, Request, Response, RetryResponse, Settings, Status};
pub use discovery::{DiscoveryResponse, ExtensionHandler, RequestHook};
pub use hook::{Hook, UnknownHook};
pub use lifecycle::{ClusterRequest, UpgradeRequest, UpgradeStep, UpgradeSteps, UpgradedRequest};
pub use template::Template;
pub use topology::{
    GeneratePatchesRequest, GeneratePatchesRequestItem, GeneratePatchesResponse, GeneratePatchesResponseItem,
    HolderReference, PatchType, ValidateTopologyRequest, ValidateTopologyRequestItem, Variable,
};
pub use upgrade_plan::{GenerateUpgradePlanRequest, GenerateUpgradePlanResponse};
pub use variables::{ClusterClassVariable, DiscoverVariablesRequest, DiscoverVariablesResponse};

/// Group and version of all hooks.
pub const API_VERSION: &str = "hooks.runtime.cluster.x-k8s.io/v1alpha1";
