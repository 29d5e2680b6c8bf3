//! The names of files and folders in the private folder.

/// The chart.
pub(super) const CHART: &str = "chart.tgz";
/// The folder that a chart is pulled into.
pub(super) const DOWNLOADS: &str = "downloads";
/// The kubeconfig of the workload cluster.
pub(super) const KUBECONFIG: &str = "kubeconfig";
/// The values.
pub(super) const VALUES: &str = "values.json";
/// The certificate authority of the repository.
pub(super) const AUTHORITY: &str = "ca.crt";
/// The credentials of registries.
pub(super) const REGISTRY_CONFIGURATION: &str = "registry.json";
/// The chart repository, with its credentials.
pub(super) const REPOSITORY_CONFIGURATION: &str = "repositories.json";
/// The name of the only chart repository in that file.
pub(super) const REPOSITORY: &str = "repository";
/// The folders.
pub(super) const FOLDERS: [&str; 7] = ["cache", "config", "data", "plugins", "temporary", "index", DOWNLOADS];
