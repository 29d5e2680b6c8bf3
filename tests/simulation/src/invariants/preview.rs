//! A preview only shows: nothing is written to the cloud but sizes, ends and tokens. A pool that is orphaned leaves
//! everything there as it is.

use capasg_api::pool::{ChangePolicy, DeletionPolicy};
use capasg_cloud::{GroupChange, LaunchTemplateData, MixedInstances, Write};
use chrono::{DateTime, Utc};

use super::{Inner, Invariants};

/// What was written to the cloud before.
#[derive(Default)]
pub(super) struct Seen {
    /// Contents of versions, user data apart.
    contents: Vec<LaunchTemplateData>,
    /// How groups mix instances.
    mixed: Vec<Option<MixedInstances>>,
}

impl Seen {
    /// Keeps what a write wishes.
    pub(super) fn keep(&mut self, write: &Write) {
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

    fn mixes(&mut self, mixed: Option<&MixedInstances>) {
        if !self.mixed.iter().any(|known| known.as_ref() == mixed) {
            self.mixed.push(mixed.cloned());
        }
    }

    /// Whether a preview lets a write through: sizes with their bounds, ends, drains, and new tokens in what is there.
    fn lets_through(&self, write: &Write) -> bool {
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

fn masked(data: &LaunchTemplateData) -> LaunchTemplateData {
    LaunchTemplateData { user_data: capasg_cloud::UserData::default(), ..data.clone() }
}

impl Invariants {
    /// While changes are only shown, nothing of the cloud is changed but sizes, ends and tokens.
    ///
    /// Exempt: a pool that is being deleted.
    pub(super) fn a_preview_changes_nothing(inner: &mut Inner, now: DateTime<Utc>, write: &Write) {
        let previews =
            inner.begun.both().is_some_and(|(own, _)| own.spec.change_policy() == ChangePolicy::Preview);
        if previews && !inner.preview.lets_through(write) {
            inner.breaks(now, "a_preview_changes_nothing", format!("{write:?}"));
        }
        inner.preview.keep(write);
    }

    /// The deletion of a pool that is to be orphaned takes our hook off its group, and cancels a refresh of ours, which
    /// would go on without it; nothing else.
    pub(super) fn orphans_are_left_alone(inner: &mut Inner, now: DateTime<Utc>, write: &Write) {
        let orphans = inner.begun.object.as_ref().is_some_and(|own| {
            own.metadata.deletion_timestamp.is_some() && own.spec.deletion_policy() == DeletionPolicy::Orphan
        });
        let lets_go =
            matches!(write, Write::DeleteLifecycleHook { .. } | Write::CancelInstanceRefresh { .. });
        if orphans && !lets_go {
            inner.breaks(now, "orphans_are_left_alone", write.api().to_owned());
        }
    }
}
