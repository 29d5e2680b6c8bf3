//! The record on an ASGMachine of the desired state of its instance, for instances whose launch template was deleted, or
//! is not that of the pool.

use std::fmt;

use crate::machine_pool::model::stamp::Stamp;

/// How the record of an instance begins that was launched from the launch template of the pool.
const LAUNCHED: &str = "launched ";
/// How the record of another instance begins.
const FOUND: &str = "found ";
/// The same for an instance of a type that the spec did not name.
const FOUND_OF_OTHER_TYPE: &str = "found-of-other-type ";

/// What is recorded when the ASGMachine of an instance is created. It does not change later, and moves with the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchRecord {
    /// The stamp of the launch template version that the instance was launched from.
    Launched(Stamp),
    /// The instance was launched from no launch template of the pool.
    Found {
        /// The stamp that was desired when the pool found it.
        stamp: Stamp,
        /// Whether its type was not among the types of the spec then: no user removed it from there.
        other_type: bool,
    },
}

impl LaunchRecord {
    /// Parses the value of the annotation; `None` for a stamp of another scheme or any other text.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let stamp = |prefix| value.strip_prefix(prefix).and_then(Stamp::parse);
        let found = |other_type| move |stamp| Self::Found { stamp, other_type };
        let launched = stamp(LAUNCHED).map(Self::Launched);
        launched
            .or_else(|| stamp(FOUND).map(found(false)))
            .or_else(|| stamp(FOUND_OF_OTHER_TYPE).map(found(true)))
    }

    /// Whether the instance had a type that the spec did not name when the pool found it.
    #[must_use]
    pub fn has_other_type(&self) -> bool {
        matches!(self, Self::Found { other_type: true, .. })
    }

    /// The recorded stamp.
    #[must_use]
    pub fn stamp(&self) -> &Stamp {
        match self {
            Self::Launched(stamp) | Self::Found { stamp, .. } => stamp,
        }
    }
}

impl fmt::Display for LaunchRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Launched(stamp) => write!(f, "{LAUNCHED}{stamp}"),
            Self::Found { stamp, other_type: false } => write!(f, "{FOUND}{stamp}"),
            Self::Found { stamp, other_type: true } => write!(f, "{FOUND_OF_OTHER_TYPE}{stamp}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_annotation() {
        let stamp = Stamp::parse(
            "capasg/1 content=0123456789abcdef rollout=1123456789abcdef image=2123456789abcdef \
             spec=3123456789abcdef data=4123456789abcdef",
        )
        .unwrap();
        let found = |other_type| LaunchRecord::Found { stamp: stamp.clone(), other_type };
        for record in [LaunchRecord::Launched(stamp.clone()), found(false), found(true)] {
            assert_eq!(LaunchRecord::parse(&record.to_string()), Some(record));
        }
        for text in ["", "launched", "found capasg/2 content=0", &stamp.to_string()] {
            assert_eq!(LaunchRecord::parse(text), None, "{text}");
        }
    }
}
