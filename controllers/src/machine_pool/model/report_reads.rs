//! Facts from AWS that only report requires.

use std::collections::BTreeMap;

use capasg_cloud::{CloudError, InstanceTypes, QueueState, ScalingActivity, TerminationCause};

/// The facts from AWS that report requires.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportNeeds {
    /// The group's scaling activities, which show why launches fail.
    pub launch_activities: bool,
    /// The instance types of the spec.
    pub instance_types: bool,
    /// Why AWS terminates these instances.
    pub termination_causes: Vec<String>,
}

/// The answers of AWS, and what the inventory knows.
#[derive(Debug, Default)]
pub struct ReportReads {
    /// Whether AWS events of the region are received; `None` while AWS was not read for the pool.
    pub queue: Option<QueueState>,
    /// The group's scaling activities, newest first.
    pub launch_activities: Option<Result<Vec<ScalingActivity>, CloudError>>,
    /// The instance types of the spec.
    pub instance_types: Option<Result<InstanceTypes, CloudError>>,
    /// Why AWS terminates instances, by instance ID.
    pub termination_causes: BTreeMap<String, TerminationCause>,
}
