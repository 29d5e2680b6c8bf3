//! Plain types of the cloud, shaped after the members of AWS's API that the provider reads or writes.

mod group;
mod image;
mod instance;
mod instance_type;
mod launch_template;
mod network;
mod offering;
mod quota;
mod refresh;
mod scaling_activity;

pub use group::{
    Capacity, CreateGroup, Group, GroupChange, GroupSettings, GroupTag, InstancesDistribution, Launch,
    LifecycleHook, MaintenancePolicy, MixedInstances, TemplateRef, health_check_type, health_checks,
};
pub use image::{Image, ImageBlockDevice, ImageVolume, is_same_device};
pub use instance::{HealthStatus, Instance, InstanceFacts, InstanceState, LifecycleState, PurchaseOption};
pub use instance_type::{Gpu, InstanceType};
pub use launch_template::{
    BlockDevice, LaunchTemplate, LaunchTemplateData, LaunchTemplateVersion, MetadataOptions, UserData,
};
pub use network::{SecurityGroup, Selector, Subnet};
pub use offering::{SubnetAddresses, TypeOffering};
pub(crate) use quota::vcpus_by_quota;
pub use quota::{RunningInstance, VcpuQuota};
pub use refresh::{InstanceRefresh, RefreshPreferences, RefreshStatus, StartRefresh};
pub use scaling_activity::{ActivityStatus, ScalingActivity, zone_and_subnet};
