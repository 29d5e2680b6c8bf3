//! The record on an ASGMachine of the desired state of its instance, for instances whose launch template was deleted, or
//! is not that of the pool.

use std::fmt;

use crate::machine_pool::model::stamp::Stamp;

/// How the record of an instance begins that was launched from the launch template of the pool.
const LAUNCHED: &str = "launched ";
/// How the record of another instance begins.
const FOUND: &str = "found ";

/// What is recorded when the ASGMachine of an instance is created. It does not change later, and moves with the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchRecord {
    /// The stamp of the launch template version that the instance was launched from.
    Launched(Stamp),
    /// The instance was launched from no launch template of the pool: the stamp that was desired when the pool found it.
    Found(Stamp),
}

impl LaunchRecord {
    /// Parses the value of the annotation; `None` for a stamp of another scheme or any other text.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let launched = value.strip_prefix(LAUNCHED).and_then(Stamp::parse).map(Self::Launched);
        launched.or_else(|| value.strip_prefix(FOUND).and_then(Stamp::parse).map(Self::Found))
    }

    /// The recorded stamp.
    #[must_use]
    pub fn stamp(&self) -> &Stamp {
        match self {
            Self::Launched(stamp) | Self::Found(stamp) => stamp,
        }
    }
}

impl fmt::Display for LaunchRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Launched(stamp) => write!(f, "{LAUNCHED}{stamp}"),
            Self::Found(stamp) => write!(f, "{FOUND}{stamp}"),
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
        for record in [LaunchRecord::Launched(stamp.clone()), LaunchRecord::Found(stamp.clone())] {
            assert_eq!(LaunchRecord::parse(&record.to_string()), Some(record));
        }
        for text in ["", "launched", "found capasg/2 content=0", &stamp.to_string()] {
            assert_eq!(LaunchRecord::parse(text), None, "{text}");
        }
    }
}
