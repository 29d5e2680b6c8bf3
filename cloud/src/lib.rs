//! The cloud as the provider sees it: plain types, the port, error classes, and the shared inventory that
//! serves every pool of one identity and region. Knows nothing of Kubernetes and names no SDK.

mod clock;
mod error;
mod port;
mod types;
mod write;

pub use clock::{Clock, SystemClock};
pub use error::{CloudError, ErrorClass, Result};
pub use port::{Cloud, Page};
pub use types::{
    BlockDevice, Capacity, CreateGroup, Group, GroupChange, GroupSettings, GroupTag, HealthStatus, Image,
    Instance, InstanceFacts, InstanceState, InstancesDistribution, Launch, LaunchTemplate,
    LaunchTemplateData, LaunchTemplateVersion, LifecycleHook, LifecycleState, MetadataOptions,
    MixedInstances, PurchaseOption, ScalingActivity, SecurityGroup, Selector, Subnet, TemplateRef, UserData,
};
pub use write::{Priority, Write, Written};
