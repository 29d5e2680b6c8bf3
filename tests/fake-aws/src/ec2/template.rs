//! A launch template.

use std::{collections::BTreeMap, sync::Arc};

use chrono::{DateTime, Utc};

use crate::Tree;

/// A launch template.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) created: DateTime<Utc>,
    pub(crate) default_version: u64,
    /// The last number given; one that was deleted is not given again.
    pub(crate) last_number: u64,
    pub(crate) versions: BTreeMap<u64, Arc<Version>>,
    pub(crate) tags: BTreeMap<String, String>,
}

/// A version; immutable.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) created: DateTime<Utc>,
    pub(crate) description: Option<String>,
    pub(crate) data: Tree,
}
