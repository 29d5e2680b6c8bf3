//! Plain types of the cloud, shaped after the members of AWS's API that the provider reads or writes.

mod group;
mod instance;
mod instance_type;
mod launch_template;
mod network;
mod refresh;

pub use group::{
    Capacity, CreateGroup, Group, GroupChange, GroupSettings, GroupTag, InstancesDistribution, Launch,
    LifecycleHook, MixedInstances, ScalingActivity, TemplateRef, place_in,
};
pub use instance::{HealthStatus, Instance, InstanceFacts, InstanceState, LifecycleState, PurchaseOption};
pub use instance_type::{Gpu, InstanceType};
pub use launch_template::{
    BlockDevice, LaunchTemplate, LaunchTemplateData, LaunchTemplateVersion, MetadataOptions, UserData,
};
pub use network::{Image, SecurityGroup, Selector, Subnet};
pub use refresh::{InstanceRefresh, RefreshPreferences, RefreshStatus, StartRefresh};
