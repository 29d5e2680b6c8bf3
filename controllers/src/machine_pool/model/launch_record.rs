//! The record on an ASGMachine of the desired state of its instance, for instances whose launch template was deleted, or
//! is not that of the pool.

use std::{collections::BTreeSet, fmt};

use crate::machine_pool::model::stamp::{Stamp, hash};

/// How the record of an instance begins that was launched from the launch template of the pool.
const LAUNCHED: &str = "launched ";
/// How the record of another instance begins.
const FOUND: &str = "found ";
/// The same for an instance of a type that the spec did not name.
const FOUND_OF_OTHER_TYPE: &str = "found-of-other-type ";
/// What precedes the hash of the types of the spec, after the stamp.
const TYPES: &str = " types=";

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
        /// [`types_hash`] of the types of the spec then, if its type was not among them; `None` in records of earlier
        /// releases.
        types: Option<String>,
    },
}

/// A hash of instance types, in any order.
#[must_use]
pub fn types_hash(types: &[String]) -> String {
    hash(&types.iter().collect::<BTreeSet<_>>())
}

impl LaunchRecord {
    /// Parses the value of the annotation; `None` for a stamp of another scheme or any other text.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        if let Some(stamp) = value.strip_prefix(LAUNCHED) {
            return Stamp::parse(stamp).map(Self::Launched);
        }
        if let Some(stamp) = value.strip_prefix(FOUND) {
            return Some(Self::Found { stamp: Stamp::parse(stamp)?, other_type: false, types: None });
        }
        let found = value.strip_prefix(FOUND_OF_OTHER_TYPE)?;
        let (stamp, types) =
            found.split_once(TYPES).map_or((found, None), |(stamp, types)| (stamp, Some(types.to_owned())));
        Some(Self::Found { stamp: Stamp::parse(stamp)?, other_type: true, types })
    }

    /// Whether the instance had a type that the spec did not name when the pool found it, and the spec names the same types
    /// now, as far as the record tells.
    #[must_use]
    pub fn has_other_type(&self, desired: &[String]) -> bool {
        match self {
            Self::Found { other_type: true, types, .. } => {
                types.as_ref().is_none_or(|types| *types == types_hash(desired))
            }
            Self::Launched(_) | Self::Found { .. } => false,
        }
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
            Self::Found { stamp, other_type: false, .. } => write!(f, "{FOUND}{stamp}"),
            Self::Found { stamp, types: None, .. } => write!(f, "{FOUND_OF_OTHER_TYPE}{stamp}"),
            Self::Found { stamp, types: Some(types), .. } => {
                write!(f, "{FOUND_OF_OTHER_TYPE}{stamp}{TYPES}{types}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_pool::model::stamp::SpecSeen;

    #[test]
    fn a_record_survives_the_annotation() {
        let stamp = Stamp::parse(
            "capasg/1 content=0123456789abcdef rollout=1123456789abcdef image=2123456789abcdef \
             spec=3123456789abcdef data=4123456789abcdef",
        )
        .unwrap();
        let types = Some(types_hash(&["m7i.large".to_owned()]));
        let seen = Stamp {
            spec_seen: Some(SpecSeen { spec: "5123456789abcdef".to_owned(), rendering: None }),
            ..stamp.clone()
        };
        for stamp in [&stamp, &seen] {
            let found = |other_type, types| LaunchRecord::Found { stamp: stamp.clone(), other_type, types };
            let all = [found(false, None), found(true, None), found(true, types.clone())];
            for record in all.into_iter().chain([LaunchRecord::Launched(stamp.clone())]) {
                assert_eq!(LaunchRecord::parse(&record.to_string()), Some(record));
            }
        }
        for text in ["", "launched", "found capasg/2 content=0", &stamp.to_string()] {
            assert_eq!(LaunchRecord::parse(text), None, "{text}");
        }
    }
}
