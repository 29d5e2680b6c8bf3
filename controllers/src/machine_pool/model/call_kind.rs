//! The kinds of call to AWS. A failure concerns all calls of a kind, or those about one instance; one condition reports
//! it.

use capasg_cloud::{CloudError, Write};

/// A kind of call, named as in AWS's API. Changes of capacity, of what is launched and of other settings are the same
/// call of AWS, but three kinds, so that a failed one does not delay the others. The order is that in which failures are
/// reported.
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
    /// `UpdateAutoScalingGroup`, if it changes what is launched: launch template version, types, purchase options.
    UpdateLaunch,
    /// `UpdateAutoScalingGroup`, if it changes other settings alone.
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
                } else if change.launch.is_some() {
                    Self::UpdateLaunch
                } else {
                    Self::UpdateSettings
                }
            }
        }
    }

    /// Whether calls of this kind bring the content of the launch template to a group that exists.
    #[must_use]
    pub fn is_of_launch_content(self) -> bool {
        matches!(self, Self::CreateLaunchTemplateVersion | Self::UpdateLaunch)
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
            | Self::UpdateLaunch
            | Self::UpdateSettings => CallTopic::Group,
        }
    }

    /// The consequence while calls of this kind fail, as a sentence for users.
    #[must_use]
    pub fn waits(self) -> &'static str {
        match self {
            Self::CancelInstanceRefresh | Self::RollbackInstanceRefresh => "The instance refresh continues",
            Self::CompleteLifecycleAction => {
                "The termination of the instance waits for the timeout of the lifecycle hook"
            }
            Self::CreateGroup => "No instances are launched",
            Self::CreateLaunchTemplate => "No instances are launched until the launch template exists",
            Self::CreateLaunchTemplateVersion | Self::UpdateLaunch => {
                "New instances use the previous configuration, and the rollout waits"
            }
            Self::TagGroup | Self::UntagGroup => "The tags of the group differ from the spec",
            Self::DeleteGroup | Self::DeleteLaunchTemplate => "The deletion of the pool waits",
            Self::DeleteLaunchTemplateVersions => "Unused launch template versions are kept",
            Self::DeleteLifecycleHook => "The lifecycle hook is kept",
            Self::PutLifecycleHook => "The lifecycle hook differs from the spec",
            Self::RecordLifecycleActionHeartbeat => {
                "AWS terminates the instance at the timeout of the lifecycle hook, even if its Node is not \
                 drained"
            }
            Self::ResumeProcesses | Self::SuspendProcesses => "The suspended processes differ from the spec",
            Self::SetInstanceProtection => "Some instances are not protected from scale-in",
            Self::StartInstanceRefresh => "Outdated instances are kept",
            Self::TerminateInstances => "The instance keeps running, although its Machine is being deleted",
            Self::UpdateSettings => "The settings of the group differ from the spec",
            Self::UpdateCapacity => "The number of instances does not change",
        }
    }
}

/// What a failure concerns: the calls of a kind, or those of them about one instance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallSubject {
    /// The kind of call.
    pub kind: CallKind,
    /// The instance, if calls of this kind are about one.
    pub instance: Option<String>,
    /// Whether the call is about the previous content of the launch template, since AWS rejects that of the spec.
    pub is_previous: bool,
}

impl CallSubject {
    /// What a call is about: each instance that it terminates, the instance whose lifecycle action it answers, or the
    /// group.
    #[must_use]
    pub fn of(write: &Write) -> Vec<Self> {
        let kind = CallKind::of(write);
        let about = |instance: &String| Self { kind, instance: Some(instance.clone()), is_previous: false };
        match write {
            Write::TerminateInstances { instances, .. } => instances.iter().map(about).collect(),
            Write::CompleteLifecycleAction { instance, .. }
            | Write::RecordLifecycleActionHeartbeat { instance, .. } => vec![about(instance)],
            _ => vec![Self { kind, instance: None, is_previous: false }],
        }
    }

    /// What a condition and an event say when such a call has failed for some time.
    #[must_use]
    pub fn failure(&self, error: &CloudError) -> String {
        let message = error.to_string();
        let what = match &self.instance {
            Some(id) => {
                format!("calls to AWS have failed for 2 minutes or longer, for example for instance {id}")
            }
            None => "a call to AWS has failed for 2 minutes or longer".to_owned(),
        };
        format!("{what}: {}. {}. The controller retries.", message.trim_end_matches('.'), self.kind.waits())
    }
}
