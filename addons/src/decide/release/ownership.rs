//! Whose release it is. A release is ours if it has the ID that was recorded before the installation, or if a
//! `HelmReleaseProxy` shows it as installed, as Cluster API's add-on provider for Helm leaves it.

use std::{collections::BTreeMap, fmt};

use super::{
    change::options_hash,
    input::{Desired, Found},
};
use crate::names;

/// The beginning of the ID of a release that was installed by another actor and taken over. The release has the label only
/// after the next upgrade.
const TAKEN_OVER: &str = "taken-over-";

/// Why a release is left unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conflict {
    /// Another `HelmReleaseProxy` has it.
    Claimed(String),
    /// It has the ID of another `HelmReleaseProxy`, perhaps of another management cluster.
    OtherId,
    /// It was not installed for a `HelmReleaseProxy`.
    NotOwned,
}

/// Whose release was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ownership {
    /// Ours.
    Ours,
    /// It becomes ours, by recording this ID and an upgrade. `is_requested` if a user requested it.
    TakenOver {
        /// The ID.
        id: String,
        /// Whether a user requested it.
        is_requested: bool,
    },
    /// Another actor's.
    Conflicts(Conflict),
}

/// The labels of a release that an operation creates as `revision`.
#[must_use]
pub fn labels(desired: &Desired<'_>, revision: i64) -> BTreeMap<String, String> {
    let options = desired.spec.options.clone().unwrap_or_default();
    let all = [
        (names::RELEASE_ID, desired.id.unwrap_or(&desired.fresh.id).to_owned()),
        (names::RELEASE_REVISION, revision.to_string()),
        (names::RELEASE_OPTIONS, options_hash(&options)),
        // An upgrade inherits labels that it does not set.
        (names::RELEASE_ARCHIVE, desired.archive.unwrap_or_default().to_owned()),
    ];
    all.map(|(key, value)| (key.to_owned(), value)).into()
}

/// Whose the release is.
pub(super) fn of(desired: &Desired<'_>, found: &Found) -> Ownership {
    let label = found.labels.get(names::RELEASE_ID).map(String::as_str);
    // Of two objects that claimed it at the same time, the one whose installation was first has it.
    if label.is_some() && desired.id == label {
        return Ownership::Ours;
    }
    if let Some(other) = desired.claimed_by {
        return Ownership::Conflicts(Conflict::Claimed(other.to_owned()));
    }
    let taken_over =
        |is_requested| Ownership::TakenOver { id: format!("{TAKEN_OVER}{}", desired.fresh.id), is_requested };
    let is_requested = desired.spec.options.as_ref().is_some_and(|it| it.take_ownership == Some(true));
    match (desired.id, label) {
        (Some(own), None) if own.starts_with(TAKEN_OVER) => Ownership::Ours,
        (Some(own), Some(_)) if own.starts_with(TAKEN_OVER) && is_requested => Ownership::Ours,
        (None, None) if desired.is_installed => taken_over(false),
        _ if is_requested => taken_over(true),
        (_, Some(_)) => Ownership::Conflicts(Conflict::OtherId),
        (_, None) => Ownership::Conflicts(Conflict::NotOwned),
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claimed(other) => {
                write!(formatter, "HelmReleaseProxy {other} has the release of this name; change one releaseName")
            }
            Self::OtherId => formatter.write_str(
                "the release of this name belongs to another HelmReleaseProxy, perhaps of another management cluster; \
                 change releaseName, or set options.takeOwnership once no other one exists",
            ),
            Self::NotOwned => formatter.write_str(
                "another actor installed a release of this name; uninstall it, change releaseName, or set \
                 options.takeOwnership to take it over",
            ),
        }
    }
}
