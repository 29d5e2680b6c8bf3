//! What was seen of launch template versions and of how groups mix instances.

use capasg_cloud::{GroupChange, LaunchTemplateData, MixedInstances, Write};

/// What was written to the cloud before.
#[derive(Default)]
pub(crate) struct Seen {
    /// Contents of versions, user data apart.
    pub(crate) contents: Vec<LaunchTemplateData>,
    /// How groups mix instances.
    pub(crate) mixed: Vec<Option<MixedInstances>>,
}

impl Seen {
    /// Keeps what a write wishes.
    pub(crate) fn keep(&mut self, write: &Write) {
        match write {
            Write::CreateLaunchTemplate { data, .. } | Write::CreateLaunchTemplateVersion { data, .. } => {
                let content = masked(data);
                if !self.contents.contains(&content) {
                    self.contents.push(content);
                }
            }
            Write::CreateGroup(create) => self.mixes(create.settings.launch.mixed.as_ref()),
            Write::UpdateGroup { change, .. } => {
                if let Some(launch) = &change.launch {
                    self.mixes(launch.mixed.as_ref());
                }
            }
            // What it names is the group's own once it succeeded.
            Write::StartInstanceRefresh(start) => {
                if let Some(launch) = &start.desired {
                    self.mixes(launch.mixed.as_ref());
                }
            }
            _ => {}
        }
    }

    pub(crate) fn mixes(&mut self, mixed: Option<&MixedInstances>) {
        if !self.mixed.iter().any(|known| known.as_ref() == mixed) {
            self.mixed.push(mixed.cloned());
        }
    }

    /// Whether a preview lets a write through: sizes with their bounds, ends, drains, and new tokens in what is there.
    pub(crate) fn lets_through(&self, write: &Write) -> bool {
        match write {
            Write::SetDesiredCapacity { .. }
            | Write::TerminateInstances { .. }
            | Write::CompleteLifecycleAction { .. }
            | Write::RecordLifecycleActionHeartbeat { .. }
            | Write::DeleteLaunchTemplateVersions { .. } => true,
            Write::CreateLaunchTemplateVersion { data, .. } => self.contents.contains(&masked(data)),
            Write::UpdateGroup { change, .. } => {
                let GroupChange { launch, min, max, desired, .. } = change.as_ref();
                let sizes = GroupChange {
                    launch: launch.clone(),
                    min: *min,
                    max: *max,
                    desired: *desired,
                    ..GroupChange::default()
                };
                let known = |mixed: &Option<MixedInstances>| self.mixed.contains(mixed);
                sizes == **change && launch.as_ref().is_none_or(|launch| known(&launch.mixed))
            }
            _ => false,
        }
    }
}

pub(crate) fn masked(data: &LaunchTemplateData) -> LaunchTemplateData {
    LaunchTemplateData { user_data: capasg_cloud::UserData::default(), ..data.clone() }
}
