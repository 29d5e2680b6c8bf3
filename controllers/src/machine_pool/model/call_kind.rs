//! The kinds of call to AWS. A rejection concerns all calls of a kind, and one condition reports it.

use capasg_cloud::Write;

/// A kind of call, named as in AWS's API. Changes of capacity and changes of settings are the same call of AWS, but two
/// kinds, so that a rejected one does not delay the other. The order is that in which rejections are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// `CancelInstanceRefresh`
    CancelInstanceRefresh,
    /// `CompleteLifecycleAction`
    CompleteLifecycleAction,
    /// `CreateAutoScalingGroup`
    CreateGroup,
    /// `CreateLaunchTemplate`
    CreateLaunchTemplate,
    /// `CreateLaunchTemplateVersion`
    CreateLaunchTemplateVersion,
    /// `CreateOrUpdateTags`
    TagGroup,
    /// `DeleteAutoScalingGroup`
    DeleteGroup,
    /// `DeleteLaunchTemplate`
    DeleteLaunchTemplate,
    /// `DeleteLaunchTemplateVersions`
    DeleteLaunchTemplateVersions,
    /// `DeleteLifecycleHook`
    DeleteLifecycleHook,
    /// `DeleteTags`
    UntagGroup,
    /// `PutLifecycleHook`
    PutLifecycleHook,
    /// `RecordLifecycleActionHeartbeat`
    RecordLifecycleActionHeartbeat,
    /// `ResumeProcesses`
    ResumeProcesses,
    /// `RollbackInstanceRefresh`
    RollbackInstanceRefresh,
    /// `SetInstanceProtection`
    SetInstanceProtection,
    /// `StartInstanceRefresh`
    StartInstanceRefresh,
    /// `SuspendProcesses`
    SuspendProcesses,
    /// `TerminateInstanceInAutoScalingGroup`
    TerminateInstances,
    /// `UpdateAutoScalingGroup`, if it changes settings alone.
    UpdateSettings,
    /// `SetDesiredCapacity`, and `UpdateAutoScalingGroup` if it changes desired capacity or the bounds.
    UpdateCapacity,
}

/// What a call is about, which decides the condition that reports its rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallTopic {
    /// What is launched: `LaunchTemplateReady`.
    LaunchTemplate,
    /// How many instances there are: `ScalingHealthy`.
    Scaling,
    /// All else about the group: `GroupReady`.
    Group,
}

impl CallKind {
    /// The kind of a call.
    #[must_use]
    pub fn of(write: &Write) -> Self {
        match write {
            Write::CancelInstanceRefresh { .. } => Self::CancelInstanceRefresh,
            Write::CompleteLifecycleAction { .. } => Self::CompleteLifecycleAction,
            Write::CreateGroup(_) => Self::CreateGroup,
            Write::CreateLaunchTemplate { .. } => Self::CreateLaunchTemplate,
            Write::CreateLaunchTemplateVersion { .. } => Self::CreateLaunchTemplateVersion,
            Write::TagGroup { .. } => Self::TagGroup,
            Write::DeleteGroup { .. } => Self::DeleteGroup,
            Write::DeleteLaunchTemplate { .. } => Self::DeleteLaunchTemplate,
            Write::DeleteLaunchTemplateVersions { .. } => Self::DeleteLaunchTemplateVersions,
            Write::DeleteLifecycleHook { .. } => Self::DeleteLifecycleHook,
            Write::UntagGroup { .. } => Self::UntagGroup,
            Write::PutLifecycleHook { .. } => Self::PutLifecycleHook,
            Write::RecordLifecycleActionHeartbeat { .. } => Self::RecordLifecycleActionHeartbeat,
            Write::ResumeProcesses { .. } => Self::ResumeProcesses,
            Write::RollbackInstanceRefresh { .. } => Self::RollbackInstanceRefresh,
            Write::SetInstanceProtection { .. } => Self::SetInstanceProtection,
            Write::StartInstanceRefresh(_) => Self::StartInstanceRefresh,
            Write::SuspendProcesses { .. } => Self::SuspendProcesses,
            Write::TerminateInstances { .. } => Self::TerminateInstances,
            Write::SetDesiredCapacity { .. } => Self::UpdateCapacity,
            Write::UpdateGroup { change, .. } => {
                if change.desired.is_some() || change.min.is_some() || change.max.is_some() {
                    Self::UpdateCapacity
                } else {
                    Self::UpdateSettings
                }
            }
        }
    }

    /// What calls of this kind are about.
    #[must_use]
    pub fn topic(self) -> CallTopic {
        match self {
            Self::CreateLaunchTemplate | Self::CreateLaunchTemplateVersion | Self::DeleteLaunchTemplate => {
                CallTopic::LaunchTemplate
            }
            Self::UpdateCapacity | Self::TerminateInstances => CallTopic::Scaling,
            Self::CancelInstanceRefresh
            | Self::CompleteLifecycleAction
            | Self::CreateGroup
            | Self::TagGroup
            | Self::DeleteGroup
            | Self::DeleteLaunchTemplateVersions
            | Self::DeleteLifecycleHook
            | Self::UntagGroup
            | Self::PutLifecycleHook
            | Self::RecordLifecycleActionHeartbeat
            | Self::ResumeProcesses
            | Self::RollbackInstanceRefresh
            | Self::SetInstanceProtection
            | Self::StartInstanceRefresh
            | Self::SuspendProcesses
            | Self::UpdateSettings => CallTopic::Group,
        }
    }
}
