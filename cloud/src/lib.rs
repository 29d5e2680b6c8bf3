//! The cloud as the provider sees it: plain types, the port, error classes, and the shared inventory that serves every pool
//! of one identity and region. Knows nothing of Kubernetes and names no SDK.

mod aws_events;
mod clock;
mod error;
mod feed;
mod gateway;
mod identity;
mod inventories;
mod inventory;
mod known;
mod launch_failure;
mod port;
mod queue;
mod supervisor;
mod termination_cause;
#[cfg(test)]
mod testing;
mod throttle;
mod types;
mod write;

pub use aws_events::{CloudEvent, EventKind, EventOutcome, Notice, NoticeKind};
pub use clock::{Clock, SystemClock};
pub use error::{CloudError, ErrorClass, ErrorSubject, Result};
pub use gateway::{AlwaysLeading, CallObserver, Gateway, NoObserver, WriteGuard};
pub use identity::{CredentialSource, Identity, Place, Role, SecretText};
pub use inventories::{CloudFactory, Connection, Inventories, InventoryParts};
pub use inventory::{
    Cadence, Facts, FactsView, InstanceTypes, Inventory, QueueState, RefreshesView, Template, View,
};
pub use known::Known;
pub use launch_failure::{LaunchBlocker, LaunchFailure};
pub use port::{Cloud, Page, WriteReply};
pub use queue::{Queue, QueueMessage, QueueName};
pub use supervisor::Supervisor;
pub use termination_cause::TerminationCause;
pub use throttle::{Limits, Rate, Throttle};
pub use types::{
    ActivityStatus, BlockDevice, Capacity, CreateGroup, Gpu, Group, GroupChange, GroupSettings, GroupTag,
    HealthStatus, Image, ImageBlockDevice, ImageVolume, Instance, InstanceFacts, InstanceRefresh,
    InstanceState, InstanceType, InstancesDistribution, Launch, LaunchTemplate, LaunchTemplateData,
    LaunchTemplateVersion, LifecycleHook, LifecycleState, MaintenancePolicy, MetadataOptions, MixedInstances,
    PurchaseOption, RefreshPreferences, RefreshStatus, RunningInstance, ScalingActivity, SecurityGroup,
    Selector, StartRefresh, Subnet, SubnetAddresses, TemplateRef, TypeOffering, UserData, VcpuQuota,
    health_check_type, health_checks, is_same_device, zone_and_subnet,
};
pub use write::{Priority, Write, Written};
