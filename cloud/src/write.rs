//! The changes that the provider makes in the cloud, one variant per AWS call. A plan is a list of these, so
//! that what will be done can be read, compared and tested before anything is sent.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use crate::{CreateGroup, GroupChange, GroupTag, LaunchTemplateData, LifecycleHook, StartRefresh};

/// One mutating AWS call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// `CreateLaunchTemplate`: the template and its version 1.
    CreateLaunchTemplate {
        /// The template's name.
        name: String,
        /// What version 1 holds.
        data: Box<LaunchTemplateData>,
        /// The description of version 1, at most 255 characters.
        description: String,
        /// Tags of the template itself.
        tags: BTreeMap<String, String>,
        /// Makes a repeated call one template (`ClientToken`).
        client_token: String,
    },
    /// `CreateLaunchTemplateVersion`, always with full data (no source version).
    CreateLaunchTemplateVersion {
        /// The template's id.
        id: String,
        /// What the version holds.
        data: Box<LaunchTemplateData>,
        /// The version's description, at most 255 characters.
        description: String,
        /// Makes a repeated call one version (`ClientToken`).
        client_token: String,
    },
    /// `DeleteLaunchTemplateVersions`, at most 200.
    DeleteLaunchTemplateVersions {
        /// The template's id.
        id: String,
        /// The versions to delete.
        versions: BTreeSet<i64>,
    },
    /// `DeleteLaunchTemplate` with all its versions.
    DeleteLaunchTemplate {
        /// The template's id.
        id: String,
    },
    /// `CreateAutoScalingGroup`.
    CreateGroup(Box<CreateGroup>),
    /// `UpdateAutoScalingGroup` with only the members that change.
    UpdateGroup {
        /// The group's name.
        group: String,
        /// The members that change.
        change: Box<GroupChange>,
    },
    /// `SetDesiredCapacity` without honouring the cooldown.
    SetDesiredCapacity {
        /// The group's name.
        group: String,
        /// The new desired capacity, in instances.
        desired: i32,
    },
    /// `TerminateInstanceInAutoScalingGroup` for 1 to 100 instances (`InstanceIds`).
    TerminateInstances {
        /// The group's name.
        group: String,
        /// The instances to terminate.
        instances: BTreeSet<String>,
        /// Whether desired capacity is decremented by as many (`ShouldDecrementDesiredCapacity`).
        decrement: bool,
    },
    /// `SetInstanceProtection` for at most 50 instances.
    SetInstanceProtection {
        /// The group's name.
        group: String,
        /// The instances concerned.
        instances: BTreeSet<String>,
        /// Whether they are protected from scale-in.
        protected: bool,
    },
    /// `SuspendProcesses`.
    SuspendProcesses {
        /// The group's name.
        group: String,
        /// The processes to suspend.
        processes: BTreeSet<String>,
    },
    /// `ResumeProcesses`.
    ResumeProcesses {
        /// The group's name.
        group: String,
        /// The processes to resume.
        processes: BTreeSet<String>,
    },
    /// `StartInstanceRefresh`, strategy `Rolling`.
    StartInstanceRefresh(Box<StartRefresh>),
    /// `CancelInstanceRefresh`; AWS waits for instances in transition (`WaitForTransitioningInstances`).
    CancelInstanceRefresh {
        /// The group's name.
        group: String,
    },
    /// `RollbackInstanceRefresh` to what the group launched before.
    RollbackInstanceRefresh {
        /// The group's name.
        group: String,
    },
    /// `PutLifecycleHook`: create or update.
    PutLifecycleHook {
        /// The group's name.
        group: String,
        /// The desired hook.
        hook: LifecycleHook,
    },
    /// `DeleteLifecycleHook`: completes what it holds (CONTINUE for terminations).
    DeleteLifecycleHook {
        /// The group's name.
        group: String,
        /// The hook's name.
        hook: String,
    },
    /// `CompleteLifecycleAction` with result CONTINUE.
    CompleteLifecycleAction {
        /// The group's name.
        group: String,
        /// The hook's name.
        hook: String,
        /// The instance that the hook holds.
        instance: String,
    },
    /// `RecordLifecycleActionHeartbeat`.
    RecordLifecycleActionHeartbeat {
        /// The group's name.
        group: String,
        /// The hook's name.
        hook: String,
        /// The instance that the hook holds.
        instance: String,
    },
    /// `CreateOrUpdateTags` of a group.
    TagGroup {
        /// The group's name.
        group: String,
        /// Tags by key.
        tags: BTreeMap<String, GroupTag>,
    },
    /// `DeleteTags` of a group.
    UntagGroup {
        /// The group's name.
        group: String,
        /// The keys to remove.
        keys: BTreeSet<String>,
    },
    /// `DeleteAutoScalingGroup`.
    DeleteGroup {
        /// The group's name.
        group: String,
        /// Terminates what still runs, without hooks (`ForceDelete`).
        force: bool,
    },
}

/// What a change answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// Done, without a result.
    Done,
    /// The launch-template version that the call created.
    Version {
        /// The template's id.
        id: String,
        /// The version's number.
        number: i64,
        /// `CreateTime` by AWS's clock, as a read shows it.
        created_at: DateTime<Utc>,
    },
}

/// Which calls go first when the rate limit makes them wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Terminations and lifecycle actions: a drained instance costs money and delays others.
    Terminate,
    /// More capacity: workloads wait for it.
    ScaleOut,
    /// Settings and pins.
    Settings,
    /// Reads.
    Read,
}

impl Write {
    /// The desired capacity that it sets, in instances; `None` if it sets none.
    #[must_use]
    pub fn desired_capacity(&self) -> Option<i32> {
        match self {
            Self::CreateGroup(create) => Some(create.capacity.desired),
            Self::SetDesiredCapacity { desired, .. } => Some(*desired),
            Self::UpdateGroup { change, .. } => change.desired,
            _ => None,
        }
    }

    /// The AWS operation's name.
    #[must_use]
    pub fn api(&self) -> &'static str {
        match self {
            Self::CreateLaunchTemplate { .. } => "CreateLaunchTemplate",
            Self::CreateLaunchTemplateVersion { .. } => "CreateLaunchTemplateVersion",
            Self::DeleteLaunchTemplateVersions { .. } => "DeleteLaunchTemplateVersions",
            Self::DeleteLaunchTemplate { .. } => "DeleteLaunchTemplate",
            Self::CreateGroup(_) => "CreateAutoScalingGroup",
            Self::UpdateGroup { .. } => "UpdateAutoScalingGroup",
            Self::SetDesiredCapacity { .. } => "SetDesiredCapacity",
            Self::TerminateInstances { .. } => "TerminateInstanceInAutoScalingGroup",
            Self::SetInstanceProtection { .. } => "SetInstanceProtection",
            Self::SuspendProcesses { .. } => "SuspendProcesses",
            Self::ResumeProcesses { .. } => "ResumeProcesses",
            Self::StartInstanceRefresh(_) => "StartInstanceRefresh",
            Self::CancelInstanceRefresh { .. } => "CancelInstanceRefresh",
            Self::RollbackInstanceRefresh { .. } => "RollbackInstanceRefresh",
            Self::PutLifecycleHook { .. } => "PutLifecycleHook",
            Self::DeleteLifecycleHook { .. } => "DeleteLifecycleHook",
            Self::CompleteLifecycleAction { .. } => "CompleteLifecycleAction",
            Self::RecordLifecycleActionHeartbeat { .. } => "RecordLifecycleActionHeartbeat",
            Self::TagGroup { .. } => "CreateOrUpdateTags",
            Self::UntagGroup { .. } => "DeleteTags",
            Self::DeleteGroup { .. } => "DeleteAutoScalingGroup",
        }
    }

    /// The group whose view this change makes stale; `None` for launch templates.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        match self {
            Self::CreateLaunchTemplate { .. }
            | Self::CreateLaunchTemplateVersion { .. }
            | Self::DeleteLaunchTemplateVersions { .. }
            | Self::DeleteLaunchTemplate { .. } => None,
            Self::CreateGroup(create) => Some(&create.name),
            Self::StartInstanceRefresh(start) => Some(&start.group),
            Self::UpdateGroup { group, .. }
            | Self::SetDesiredCapacity { group, .. }
            | Self::TerminateInstances { group, .. }
            | Self::SetInstanceProtection { group, .. }
            | Self::SuspendProcesses { group, .. }
            | Self::ResumeProcesses { group, .. }
            | Self::CancelInstanceRefresh { group }
            | Self::RollbackInstanceRefresh { group }
            | Self::PutLifecycleHook { group, .. }
            | Self::DeleteLifecycleHook { group, .. }
            | Self::CompleteLifecycleAction { group, .. }
            | Self::RecordLifecycleActionHeartbeat { group, .. }
            | Self::TagGroup { group, .. }
            | Self::UntagGroup { group, .. }
            | Self::DeleteGroup { group, .. } => Some(group),
        }
    }

    /// The name or ID of the launch template that it concerns.
    #[must_use]
    pub fn launch_template(&self) -> Option<&str> {
        match self {
            Self::CreateLaunchTemplate { name: template, .. }
            | Self::CreateLaunchTemplateVersion { id: template, .. }
            | Self::DeleteLaunchTemplateVersions { id: template, .. }
            | Self::DeleteLaunchTemplate { id: template } => Some(template),
            _ => None,
        }
    }

    /// The instances that it names.
    #[must_use]
    pub fn instances(&self) -> Vec<&str> {
        match self {
            Self::TerminateInstances { instances, .. } | Self::SetInstanceProtection { instances, .. } => {
                instances.iter().map(String::as_str).collect()
            }
            Self::CompleteLifecycleAction { instance, .. }
            | Self::RecordLifecycleActionHeartbeat { instance, .. } => vec![instance],
            _ => Vec::new(),
        }
    }

    /// Its priority when the rate limit makes calls wait.
    #[must_use]
    pub fn priority(&self) -> Priority {
        match self {
            Self::TerminateInstances { .. }
            | Self::CompleteLifecycleAction { .. }
            | Self::RecordLifecycleActionHeartbeat { .. }
            | Self::DeleteLifecycleHook { .. }
            | Self::DeleteGroup { .. } => Priority::Terminate,
            Self::UpdateGroup { change, .. } if change.desired.is_some() => Priority::ScaleOut,
            Self::CreateGroup(_)
            | Self::SetDesiredCapacity { .. }
            | Self::CreateLaunchTemplate { .. }
            | Self::CreateLaunchTemplateVersion { .. } => Priority::ScaleOut,
            _ => Priority::Settings,
        }
    }
}
