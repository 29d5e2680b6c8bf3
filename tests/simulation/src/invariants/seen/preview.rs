//! What was seen of launch template versions and of how groups mix instances.

use std::collections::BTreeMap;

use capasg_cloud::{GroupChange, Launch, LaunchTemplateData, MixedInstances, Write};
use chrono::{DateTime, TimeDelta, Utc};

/// What somebody else had the group launch from is seen by a poll: with events they are 5 min apart, since AWS tells of
/// no change of a group by an API call (docs/contributors/architecture.md, "The inventory").
pub(crate) const POLLED: TimeDelta = TimeDelta::minutes(5);

/// A launch template version: the template's id and the version's number.
pub(crate) type Version = (String, u64);

/// What was written to the cloud before.
#[derive(Default)]
pub(crate) struct Seen {
    /// Contents of our versions, user data apart.
    pub(crate) contents: BTreeMap<Version, LaunchTemplateData>,
    /// The versions that each group launched from, with the moment from which on it did.
    pub(crate) pins: BTreeMap<String, Vec<(DateTime<Utc>, Version)>>,
    /// How groups mix instances.
    pub(crate) mixed: Vec<Option<MixedInstances>>,
}

impl Seen {
    /// Keeps what a write wishes.
    pub(crate) fn keep(&mut self, write: &Write) {
        match write {
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

    /// Keeps the content of a version, unless it is known.
    pub(crate) fn made(&mut self, version: Version, data: &LaunchTemplateData) {
        self.contents.entry(version).or_insert_with(|| masked(data));
    }

    /// Keeps the version that a group launches from.
    pub(crate) fn pins(&mut self, group: &str, version: Version, at: DateTime<Utc>) {
        self.pins.entry(group.to_owned()).or_default().push((at, version));
    }

    /// The version that a group launched from at the last look.
    pub(crate) fn pinned(&self, group: &str) -> Option<&Version> {
        self.pins.get(group).and_then(|pins| pins.last()).map(|(_, version)| version)
    }

    /// Whether a content is the one of what a group launched from until a moment ago, apart from user data. Of a version
    /// of somebody else's it is not known.
    fn is_launched(
        &self,
        data: &LaunchTemplateData,
        pins: &[(DateTime<Utc>, Version)],
        now: DateTime<Utc>,
    ) -> bool {
        let ends = pins.iter().skip(1).map(|(at, _)| *at).chain([now]);
        let recent = pins.iter().zip(ends).filter(|(_, end)| now - *end <= POLLED);
        let mut contents = recent.map(|((_, version), _)| self.contents.get(version));
        contents.any(|known| known.is_none_or(|known| known == data))
    }

    pub(crate) fn mixes(&mut self, mixed: Option<&MixedInstances>) {
        if !self.mixed.iter().any(|known| known.as_ref() == mixed) {
            self.mixed.push(mixed.cloned());
        }
    }

    /// Whether a preview lets a write through: sizes with their bounds, ends, drains, and new tokens in what the group
    /// launches.
    pub(crate) fn lets_through(&self, write: &Write, now: DateTime<Utc>) -> bool {
        match write {
            Write::SetDesiredCapacity { .. }
            | Write::TerminateInstances { .. }
            | Write::CompleteLifecycleAction { .. }
            | Write::RecordLifecycleActionHeartbeat { .. }
            | Write::DeleteLaunchTemplateVersions { .. } => true,
            Write::CreateLaunchTemplateVersion { data, .. } => {
                self.pins.values().any(|pins| self.is_launched(&masked(data), pins, now))
            }
            Write::UpdateGroup { group, change } => {
                let GroupChange { launch, min, max, desired, .. } = change.as_ref();
                let sizes = GroupChange {
                    launch: launch.clone(),
                    min: *min,
                    max: *max,
                    desired: *desired,
                    ..GroupChange::default()
                };
                let known = |mixed: &Option<MixedInstances>| self.mixed.contains(mixed);
                // The effect may be seen already.
                let pins = self.pins.get(group).map_or(&[][..], Vec::as_slice);
                let same = |launch: &Launch| {
                    let number = launch.template.version.and_then(|number| u64::try_from(number).ok());
                    let version = (launch.template.id.clone(), number.unwrap_or_default());
                    let before = pins.iter().rposition(|(_, one)| *one != version).map_or(0, |at| at + 1);
                    let before = pins.get(..before).unwrap_or_default();
                    let content = self.contents.get(&version);
                    before.is_empty() || content.is_none_or(|data| self.is_launched(data, before, now))
                };
                let is_let = |launch: &Launch| known(&launch.mixed) && same(launch);
                sizes == **change && launch.as_ref().is_none_or(is_let)
            }
            _ => false,
        }
    }
}

pub(crate) fn masked(data: &LaunchTemplateData) -> LaunchTemplateData {
    LaunchTemplateData { user_data: capasg_cloud::UserData::default(), ..data.clone() }
}
