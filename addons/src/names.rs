//! Names. Most of them are those of Cluster API's add-on provider for Helm, so that objects of one are understood by the
//! other (X1).

pub use capasg_api::names::addons::{CHART_PROXY_LABEL, KUBERNETES_VERSION, PHASES};

/// The finalizer of a `HelmChartProxy`.
pub const CHART_FINALIZER: &str = "helmchartproxy.addons.cluster.x-k8s.io";
/// The finalizer of a `HelmReleaseProxy`.
pub const RELEASE_FINALIZER: &str = "helmreleaseproxy.addons.cluster.x-k8s.io";
/// On a `HelmReleaseProxy`: `true` if the name of its release is generated.
pub const RELEASE_NAME_GENERATED: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/is-release-name-generated";
/// On a `HelmReleaseProxy`: `true` once its release was installed.
pub const RELEASE_INSTALLED: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/release-successfully-installed";
/// The namespace of a release without one.
pub const DEFAULT_NAMESPACE: &str = "default";
/// The key of a Secret with credentials of an OCI registry, unless the spec names another.
pub const DEFAULT_CREDENTIALS_KEY: &str = "config.json";

/// On a `HelmReleaseProxy`: the ID of its release, recorded before the first installation. The release has it as a label, so
/// that the release of another actor with the same name is recognized.
pub const RELEASE_ID: &str = "asg.addons.cluster.x-k8s.io/release-id";
/// On a release: the revision that the operation was to create. A manual upgrade inherits the label, and has another revision.
pub const RELEASE_REVISION: &str = "asg.addons.cluster.x-k8s.io/revision";
/// On a release: a hash of the options that it was installed or upgraded with.
pub const RELEASE_OPTIONS: &str = "asg.addons.cluster.x-k8s.io/options";
/// On a `HelmChartProxy`: the names of others in its namespace, separated by commas. On each Cluster, its release is created or
/// changed once theirs are ready.
pub const DEPENDS_ON: &str = "asg.addons.cluster.x-k8s.io/depends-on";
/// On a `HelmChartProxy`: the version of the chart by the Kubernetes version of the control plane, as a JSON list of objects
/// with `kubernetes` and `version`. The version of the spec has no effect then.
pub const VERSIONS: &str = "asg.addons.cluster.x-k8s.io/versions";
/// On a `HelmChartProxy`: the archive of the chart, `configmap/<name>` or `secret/<name>`, in place of the repository. Its
/// `HelmReleaseProxies` have the same annotation.
pub const CHART_ARCHIVE: &str = "asg.addons.cluster.x-k8s.io/chart-archive";
/// On a `HelmChartProxy` and its `HelmReleaseProxies`: `Report` or `Correct` resources that another actor changed. By default
/// they are not compared.
pub const DRIFT: &str = "asg.addons.cluster.x-k8s.io/drift";
/// On both as well: what is not compared, as `<kind>:<path>`, separated by commas.
pub const DRIFT_IGNORED: &str = "asg.addons.cluster.x-k8s.io/drift-ignored";
/// The key of the archive: in `binaryData` of a `ConfigMap`, or in `data` of a Secret.
pub const ARCHIVE_KEY: &str = "chart.tgz";
/// On a release: the digest of the archive that its chart was in; empty if the chart was in a repository.
pub const RELEASE_ARCHIVE: &str = "asg.addons.cluster.x-k8s.io/archive-digest";
/// On a `HelmChartProxy` and its `HelmReleaseProxies`: `ConfigMaps` and Secrets with values, as a JSON or YAML list of objects
/// with `kind`, `name`, `key` and `optional`. Later ones override earlier ones, and the values of the spec override all.
pub const VALUES_FROM: &str = "asg.addons.cluster.x-k8s.io/values-from";
/// The key with values, unless the annotation names another.
pub const DEFAULT_VALUES_KEY: &str = "values.yaml";
/// On a `HelmChartProxy`: on how many Clusters its release may change at the same time, a number or a percentage. One whose
/// change fails counts until it is corrected.
pub const MAX_CHANGING: &str = "asg.addons.cluster.x-k8s.io/max-changing";
/// On a `HelmReleaseProxy`: the version of the application in the chart of its release, as the chart says it.
pub const APP_VERSION: &str = "asg.addons.cluster.x-k8s.io/app-version";
/// On a `HelmChartProxy`: `Orphan` leaves releases in Clusters when the `HelmChartProxy` is deleted, or no longer selects them.
pub const DELETION_POLICY: &str = "asg.addons.cluster.x-k8s.io/deletion-policy";
/// On a `HelmChartProxy` that is uninstalled before Clusters are deleted: `true` if their volumes are waited for as well.
pub const WAIT_FOR_VOLUMES: &str = "asg.addons.cluster.x-k8s.io/wait-for-volumes";

/// Reasons of events about a `HelmReleaseProxy`.
pub mod events {
    /// A release was installed.
    pub const INSTALLED: &str = "HelmReleaseInstalled";
    /// A release was upgraded; the message has the reason.
    pub const UPGRADED: &str = "HelmReleaseUpgraded";
    /// A release was uninstalled.
    pub const UNINSTALLED: &str = "HelmReleaseUninstalled";
    /// Warning: an installation failed. Published once for each cause.
    pub const INSTALL_FAILED: &str = "HelmInstallFailed";
    /// Warning: an upgrade failed. Published once for each cause.
    pub const UPGRADE_FAILED: &str = "HelmUpgradeFailed";
    /// Warning: an uninstallation failed. Published once for each cause.
    pub const UNINSTALL_FAILED: &str = "HelmUninstallFailed";
    /// Warning: another actor changed resources of a release. Published once for each difference.
    pub const DRIFTED: &str = "HelmReleaseDrifted";
    /// Warning: the object was deleted although something of its release remains in the Cluster.
    pub const LEFT: &str = "HelmReleaseLeft";
}
