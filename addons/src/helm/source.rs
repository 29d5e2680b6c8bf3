//! Where the chart of an operation is.

use super::{
    access::Access,
    archive::Archive,
    names::{ChartName, Version},
    repository::Repository,
};

/// Where a chart is in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The repository.
    pub repository: Repository,
    /// The name of the chart.
    pub chart: ChartName,
    /// The version or a constraint. Defaults to the newest version.
    pub version: Option<Version>,
    /// How the repository is accessed.
    pub access: Access,
}

/// Where the chart of an operation is.
#[derive(Debug, Clone)]
pub enum ChartSource {
    /// In a repository.
    Repository(Source),
    /// In an archive.
    Archive {
        /// The expected name of the chart.
        chart: ChartName,
        /// The archive.
        archive: Archive,
    },
}
