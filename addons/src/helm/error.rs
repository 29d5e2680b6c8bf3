//! Errors of calls of Helm, one for each step that can fail.

use std::io;

use super::{failure::Failure, names::InvalidName};
use crate::process::RunError;

/// Why a call of Helm did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum HelmError {
    /// The private folder could not be created.
    #[error("cannot create a private folder: {0}; check the volume of the manager")]
    Folder(#[source] io::Error),
    /// A file for Helm could not be written.
    #[error("cannot write {file}: {source}; check the free space of the manager's volume")]
    Write {
        /// The name of the file.
        file: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A field of the spec is no valid argument.
    #[error(transparent)]
    Invalid(#[from] InvalidName),
    /// Helm was not started, or did not end by itself.
    #[error("{call}: {source}")]
    Run {
        /// The call.
        call: &'static str,
        /// The cause.
        source: RunError,
    },
    /// Helm failed.
    #[error("{call}: {failure}")]
    Failed {
        /// The call.
        call: &'static str,
        /// The cause.
        failure: Failure,
    },
    /// What chartName names is another chart.
    #[error("{call}: the name in the chart is not chartName; change one of them")]
    OtherChart {
        /// The call.
        call: &'static str,
    },
    /// What the repository has as a version is another one.
    #[error(
        "{call}: the version in the chart is {found}, and not {requested}; correct the repository, or change version"
    )]
    OtherVersion {
        /// The call.
        call: &'static str,
        /// The version in the chart.
        found: String,
        /// The requested one.
        requested: String,
    },
    /// Helm succeeded, but what it printed or wrote is not as expected.
    #[error(
        "{call}: the output of Helm is not as expected; check that the versions of CAPASG and Helm belong together"
    )]
    Unreadable {
        /// The call.
        call: &'static str,
    },
}

impl HelmError {
    /// The reason, for conditions, events and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Folder(_) => "PrivateFolderFailed",
            Self::Write { .. } => "FileWriteFailed",
            Self::Invalid(_) => "InvalidSpec",
            Self::Run { source: RunError::TimedOut { .. }, .. } => "HelmTimedOut",
            Self::Run { source: RunError::Signal { .. }, .. } => "HelmKilled",
            Self::Run { .. } => "HelmNotRun",
            Self::Failed { failure, .. } => failure.reason(),
            Self::OtherChart { .. } => "ChartNameDiffers",
            Self::OtherVersion { .. } => "ChartVersionDiffers",
            Self::Unreadable { .. } => "HelmOutputUnreadable",
        }
    }

    /// What Helm reported, if it ran and failed.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed { failure, .. } => Some(failure),
            _ => None,
        }
    }
}
