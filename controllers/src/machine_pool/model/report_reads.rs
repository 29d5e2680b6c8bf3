//! What only report needs of AWS, and what AWS answered.

use std::collections::BTreeMap;

use capasg_cloud::{CloudError, InstanceTypes, ScalingActivity, TerminationCause};

/// What report needs of AWS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportNeeds {
    /// The group's scaling activities, for why launches fail.
    pub launch_activities: bool,
    /// The instance types of the spec.
    pub instance_types: bool,
    /// Why AWS terminates these instances.
    pub termination_causes: Vec<String>,
}

/// What AWS answered.
#[derive(Debug, Default)]
pub struct ReportReads {
    /// The group's scaling activities, newest first.
    pub launch_activities: Option<Result<Vec<ScalingActivity>, CloudError>>,
    /// The instance types of the spec.
    pub instance_types: Option<Result<InstanceTypes, CloudError>>,
    /// Why AWS terminates instances, by instance id.
    pub termination_causes: BTreeMap<String, TerminationCause>,
}
