//! The record of what blocks a Cluster. One event of the Cluster holds it, so that all replicas know it, also after a restart.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::{Cause, event_name};
use crate::protocol::{ClusterKey, Hook};

/// A block that core did not repeat for this long has ended: core repeats a call at the latest after its retry time, at most
/// 5 minutes here, or after its longest backoff, 17 minutes.
pub const FORGOTTEN: TimeDelta = TimeDelta::minutes(30);
/// A cause that no longer blocks, although it was not seen to end, is remembered for as long as the API server keeps an event
/// after its last write. An upgrade calls no hook while machines are replaced.
const REMEMBERED: TimeDelta = TimeDelta::hours(1);
/// A record that stays the same is written again after this time, so that the API server keeps it.
const REPEAT: TimeDelta = TimeDelta::minutes(10);

/// What follows the name of the Cluster in the name of the event that holds its record.
const RECORD: &str = ".hook-";

/// What the last call of a hook found, and since when. Core calls one hook of a Cluster at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The hook that was called last.
    pub hook: Hook,
    /// The version that the Cluster requested then. Deadlines are those of one upgrade.
    pub version: String,
    /// When the hook was called.
    pub last: DateTime<Utc>,
    /// What was found and was not seen to end.
    pub causes: BTreeMap<Cause, Block>,
}

/// One cause in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// When a hook found it first.
    pub since: DateTime<Utc>,
    /// Whether the last call blocks for it. Otherwise its deadline has passed, or the last call did not check it.
    pub blocks: bool,
    /// What blocks, in words.
    pub message: String,
}

/// The JSON in the annotation. Causes and hooks of other versions of the extension are texts that are not known.
#[derive(Serialize, Deserialize)]
struct Stored {
    hook: String,
    version: String,
    last: DateTime<Utc>,
    causes: BTreeMap<String, Block>,
}

impl Record {
    /// The record after a call that found these causes, each with a message. `blocks` decides from a cause and the time since
    /// it began whether the hook blocks for it.
    ///
    /// * A cause continues if it was found in this upgrade, and not longer ago than it is remembered.
    /// * A cause ends if the hook checks it and does not find it. Where something could not be read, nothing is known to end.
    #[must_use]
    pub fn after(
        previous: Option<&Self>,
        hook: Hook,
        version: &str,
        now: DateTime<Utc>,
        found: BTreeMap<Cause, String>,
        blocks: impl Fn(Cause, TimeDelta) -> bool,
    ) -> Self {
        let previous = previous.filter(|previous| previous.version == version);
        let is_read = !found.contains_key(&Cause::NotReadable);
        let mut causes = BTreeMap::new();
        for (cause, known) in previous.into_iter().flat_map(|previous| previous.remembered(now)) {
            if !(is_read && Cause::of(hook).contains(cause)) {
                causes.insert(*cause, Block { blocks: false, ..known.clone() });
            }
        }
        for (cause, message) in found {
            let known = previous.and_then(|previous| {
                previous.remembered(now).find(|(known, _)| **known == cause).map(|(_, known)| known.since)
            });
            let since = known.map_or(now, |since| since.min(now));
            causes.insert(cause, Block { since, blocks: blocks(cause, now - since), message });
        }
        Self { hook, version: version.to_owned(), last: now, causes }
    }

    /// The record after a user skipped a hook: nothing blocks, and nothing was seen to end.
    #[must_use]
    pub fn skipped(mut self, hook: Hook, now: DateTime<Utc>) -> Self {
        for known in self.causes.values_mut() {
            known.blocks = false;
        }
        Self { hook, last: now, ..self }
    }

    /// What may continue.
    fn remembered(&self, now: DateTime<Utc>) -> impl Iterator<Item = (&Cause, &Block)> {
        let ago = now - self.last;
        self.causes.iter().filter(move |(_, known)| ago < if known.blocks { FORGOTTEN } else { REMEMBERED })
    }

    /// Whether the record matters for a call at this time.
    pub(super) fn is_remembered(&self, now: DateTime<Utc>) -> bool {
        now - self.last < FORGOTTEN || self.remembered(now).next().is_some()
    }

    /// What the hook blocks for, as the record has it.
    pub fn blocks_of(&self, hook: Hook) -> impl Iterator<Item = (Cause, &Block)> {
        let of_hook = self.causes.iter().filter(move |(_, known)| self.hook == hook && known.blocks);
        of_hook.map(|(cause, known)| (*cause, known))
    }

    /// Whether the hook blocks, as the record has it.
    #[must_use]
    pub fn is_blocking(&self, hook: Hook) -> bool {
        self.blocks_of(hook).next().is_some()
    }

    /// Whether the event has to be written that holds `stored`.
    #[must_use]
    pub fn is_due(&self, stored: Option<&Self>) -> bool {
        stored.is_none_or(|stored| {
            let same = Self { last: self.last, ..stored.clone() } == *self;
            !same || self.last - stored.last >= REPEAT
        })
    }

    /// The name of the event that holds the record of a Cluster, unique in its namespace.
    #[must_use]
    pub fn event_name(cluster: &ClusterKey) -> String {
        event_name(&cluster.name, RECORD, &[&cluster.name, &cluster.uid])
    }

    /// The text of the annotation.
    #[must_use]
    pub fn to_json(&self) -> String {
        let causes = self.causes.iter().map(|(cause, known)| (cause.as_str().to_owned(), known.clone()));
        let stored = Stored {
            hook: self.hook.name().to_owned(),
            version: self.version.clone(),
            last: self.last,
            causes: causes.collect(),
        };
        serde_json::to_string(&stored).unwrap_or_default()
    }

    /// Reads the annotation; `None` if this version of the extension cannot.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        let Stored { hook, version, last, causes } = serde_json::from_str(text).ok()?;
        let known = |name: &str| Cause::ALL.into_iter().find(|cause| cause.as_str() == name);
        let causes = causes.into_iter().filter_map(|(name, block)| Some((known(&name)?, block))).collect();
        Some(Self { hook: hook.parse().ok()?, version, last, causes })
    }
}
