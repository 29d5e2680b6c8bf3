//! What the inventory knows of a group and of an EC2 instance.

use std::{collections::BTreeMap, sync::Arc};

use chrono::{DateTime, Utc};

use crate::{Group, InstanceFacts, LaunchTemplate, LaunchTemplateVersion};

/// What is known of a group. `as_of` is when the request of the view started; `settled` is the
/// read-your-writes fence: that request started after our last write to the group was answered (or, if no
/// answer arrived, after its timeout and in-flight allowance passed), so the view shows what we did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    /// Not read yet.
    Unknown,
    /// A complete listing, confirmed by others if the group existed, did not hold it.
    Absent {
        /// When the request started.
        as_of: DateTime<Utc>,
        /// Whether the view shows our last write.
        settled: bool,
    },
    /// The group as described.
    Present {
        /// The group; the same `Arc` as long as nothing changes.
        group: Arc<Group>,
        /// When the request started.
        as_of: DateTime<Utc>,
        /// Whether the view shows our last write.
        settled: bool,
    },
}

impl View {
    /// Whether the view shows our last write; an unknown one does not.
    #[must_use]
    pub fn settled(&self) -> bool {
        match self {
            Self::Unknown => false,
            Self::Absent { settled, .. } | Self::Present { settled, .. } => *settled,
        }
    }

    /// When the request of the view started.
    #[must_use]
    pub fn as_of(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Unknown => None,
            Self::Absent { as_of, .. } | Self::Present { as_of, .. } => Some(*as_of),
        }
    }

    /// The group, if it exists.
    #[must_use]
    pub fn group(&self) -> Option<&Arc<Group>> {
        match self {
            Self::Present { group, .. } => Some(group),
            Self::Unknown | Self::Absent { .. } => None,
        }
    }
}

/// An EC2 instance's facts and when they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The facts, without tags: those of 10 000 instances would take more memory than all else.
    pub facts: InstanceFacts,
    /// When the request started.
    pub as_of: DateTime<Utc>,
}

/// What is known of an EC2 instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactsView {
    /// Not read yet.
    Unknown,
    /// EC2 does not know the instance: it terminated an hour ago or more, or is too new.
    Absent {
        /// When the request started.
        as_of: DateTime<Utc>,
    },
    /// The instance as described.
    Present(Arc<Facts>),
}

impl FactsView {
    /// The facts, if EC2 knows the instance.
    #[must_use]
    pub fn facts(&self) -> Option<&InstanceFacts> {
        match self {
            Self::Present(facts) => Some(&facts.facts),
            Self::Unknown | Self::Absent { .. } => None,
        }
    }
}

/// A launch template with what is known of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The template.
    pub template: LaunchTemplate,
    /// Its versions by number.
    pub versions: BTreeMap<i64, LaunchTemplateVersion>,
    /// Whether `versions` are all that existed when they were read; else they are the latest one, and those that were
    /// known before.
    pub has_all_versions: bool,
    /// When the read began: versions that another actor created later may be missing.
    pub as_of: DateTime<Utc>,
}
