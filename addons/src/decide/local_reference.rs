//! References to a `ConfigMap` or a Secret, as annotations name them.

use std::fmt;

use serde::Deserialize;

use crate::helm::ObjectName;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum LocalKind {
    /// A `ConfigMap`.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// An object in the namespace of the one that refers to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalReference {
    /// Its kind.
    pub kind: LocalKind,
    /// Its name.
    pub name: ObjectName,
}

impl fmt::Display for LocalReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            LocalKind::ConfigMap => "ConfigMap",
            LocalKind::Secret => "Secret",
        };
        write!(formatter, "{kind} {}", self.name)
    }
}
