//! Parameters of Systems Manager.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

/// A parameter of type `String`.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    pub(crate) value: String,
    pub(crate) version: u64,
    pub(crate) modified: DateTime<Utc>,
}

/// Parameters that every region starts with.
pub(crate) fn defaults(now: DateTime<Utc>) -> BTreeMap<String, Parameter> {
    [
        ("/images/node/v1.37.0", "ami-0b1c2d3e"),
        ("/images/node/v1.36.3", "ami-0a1b2c3d"),
        ("/images/node/v1.35.4", "ami-0d1e2f3a"),
        ("/images/node/arm64/v1.36.3", "ami-0c1d2e3f"),
        ("/images/node/v1.37", "ami-0b1c2d3e"),
        ("/images/node/v1.36", "ami-0a1b2c3d"),
        ("/images/node/v1.35", "ami-0d1e2f3a"),
    ]
    .map(|(name, value)| (name.to_owned(), Parameter { value: value.to_owned(), version: 1, modified: now }))
    .into()
}
