//! `ASGMachinePool`: one pool of nodes on one Auto Scaling group and one launch template.

mod changes;
mod disruption;
mod effective;
mod group;
mod instance_refresh;
mod instances;
mod lifecycle;
mod machine;
mod opening;
mod resolve;
mod resolve_effective;
mod rollout;
mod rollout_status;
mod selectors;
mod spec;
mod status;
mod volume;
mod window;

pub use changes::{AdoptionPolicy, ChangePolicy, MAX_PENDING_CHANGES, PendingChange};
pub use disruption::{Disruption, DisruptionWindow};
pub use effective::{
    EffectiveDisruption, EffectiveGroup, EffectiveImage, EffectiveInstanceRefresh, EffectiveMachine,
    EffectiveRollingUpdate, EffectiveRollout, EffectiveSettings, EffectiveStrategy, EffectiveVolume,
};
pub use group::{Group, HealthCheckType, ScalingProcess};
pub use instance_refresh::{InstanceRefresh, OnRefreshFailure, ResolvedInstanceRefresh, StandbyInstances};
pub use instances::{
    InstanceTypeEntry, InstancesDistribution, OnDemandAllocationStrategy, ResolvedInstancesDistribution,
    ScaleInOrder, SpotAllocationStrategy,
};
pub use lifecycle::{
    DeletionPolicy, Drain, OnCloudTermination, OnPoolDeletion, RebalanceRecommendationPolicy, ResolvedDrain,
    ZoneRebalancePolicy,
};
pub use machine::{
    HttpTokens, Image, ImageUpdatePolicy, MachineTemplate, MetadataOptions, MetadataSwitch, PlaceholderError,
    ResolvedMetadataOptions,
};
pub use opening::{Opening, ResolvedDisruption};
pub use rollout::{
    RemediationPolicy, ResolvedRollout, RollingUpdate, Rollout, RolloutMode, RolloutStrategy, RolloutType,
    instant as rollout_instant,
};
pub use rollout_status::{RolloutStatus, RolloutWait};
pub use selectors::{SecurityGroupSelector, SubnetSelector};
pub use spec::{ASGMachinePool, ASGMachinePoolSpec, MAX_REPLICAS, ReplicaLimits};
pub use status::{
    ASGMachinePoolStatus, GroupStatus, ImageStatus, InitializationStatus, LaunchFailureStatus,
    LaunchTemplateStatus, NodeInfo, Phase, SubnetStatus,
};
pub use volume::{
    DataVolume, ResolvedVolume, RootVolume, VolumeEncryption, VolumeOnTermination, VolumeSettings, VolumeType,
};
pub use window::{Window, WindowError};
