//! The cloud as the provider sees it: plain types, the port, error classes, and the shared inventory that
//! serves every pool of one identity and region. Knows nothing of Kubernetes and names no SDK.

mod clock;
mod error;
mod events;
mod gateway;
mod inventory;
mod launch_failure;
mod port;
mod regions;
#[cfg(test)]
mod testing;
mod throttle;
mod types;
mod write;

pub use clock::{Clock, SystemClock};
pub use error::{CloudError, ErrorClass, Result};
pub use events::{CloudEvent, EventKind, EventOutcome, Notice, NoticeKind, Queue, QueueMessage, QueueName};
pub use gateway::{AlwaysLeading, CallObserver, Gateway, NoObserver, WriteGuard};
pub use inventory::{Cadence, Facts, FactsView, InstanceTypes, Inventory, RefreshesView, Template, View};
pub use launch_failure::{LaunchFailure, LaunchObstacle, is_launch};
pub use port::{Cloud, Page};
pub use regions::{CloudFactory, RegionParts, Regions};
pub use throttle::{Limits, Rate, Throttle};
pub use types::{
    BlockDevice, Capacity, CreateGroup, Gpu, Group, GroupChange, GroupSettings, GroupTag, HealthStatus,
    Image, Instance, InstanceFacts, InstanceRefresh, InstanceState, InstanceType, InstancesDistribution,
    Launch, LaunchTemplate, LaunchTemplateData, LaunchTemplateVersion, LifecycleHook, LifecycleState,
    MetadataOptions, MixedInstances, PurchaseOption, RefreshPreferences, RefreshStatus, ScalingActivity,
    SecurityGroup, Selector, StartRefresh, Subnet, TemplateRef, UserData, place_in,
};
pub use write::{Priority, Write, Written};
