//! Types and reasons of conditions, as in Cluster API's add-on provider for Helm (X1). `ClusterUnreachable`,
//! `CloudResourcesRemain` and those of drift are our own.

pub use capasg_api::names::addons::{RELEASE_READY, SPECS_UP_TO_DATE};

/// Of a `HelmReleaseProxy`: the Cluster exists and its API server responds.
pub const CLUSTER_AVAILABLE: &str = "ClusterAvailable";
/// Of a `HelmChartProxy`: all its `HelmReleaseProxies` are ready.
pub const RELEASES_READY: &str = "HelmReleaseProxiesReady";

/// Reasons.
pub mod reasons {
    pub use capasg_api::names::addons::CLOUD_RESOURCES_REMAIN;

    /// The API server of the Cluster responds.
    pub const CLUSTER_AVAILABLE: &str = "Available";
    /// The API server of the Cluster does not respond.
    pub const CLUSTER_UNREACHABLE: &str = "ClusterUnreachable";
    /// The Cluster does not exist, or cannot be read.
    pub const GET_CLUSTER_FAILED: &str = "GetClusterFailed";
    /// The control plane is not initialized yet.
    pub const CONTROL_PLANE_NOT_AVAILABLE: &str = "NotAvailable";
    /// There is no kubeconfig, or it is rejected.
    pub const GET_KUBECONFIG_FAILED: &str = "GetKubeconfigFailed";
    /// There are no credentials of the repository, or they are rejected.
    pub const GET_CREDENTIALS_FAILED: &str = "GetCredentialsFailed";
    /// There is no certificate authority of the repository, or it is rejected.
    pub const GET_CA_CERTIFICATE_FAILED: &str = "GetCACertificateFailed";
    /// The release is as requested.
    pub const RELEASE_READY: &str = "Ready";
    /// A release is not as requested.
    pub const RELEASES_NOT_READY: &str = "NotReady";
    /// The labels of Clusters cannot be compared with the selector.
    pub const CLUSTER_SELECTION_FAILED: &str = "ClusterSelectionFailed";
    /// An installation is about to begin.
    pub const PREPARING: &str = "PreparingToHelmInstall";
    /// An operation is in progress.
    pub const RELEASE_PENDING: &str = "HelmReleasePending";
    /// An installation or an upgrade failed.
    pub const INSTALL_OR_UPGRADE_FAILED: &str = "HelmInstallOrUpgradeFailed";
    /// An uninstallation failed.
    pub const DELETION_FAILED: &str = "HelmReleaseDeletionFailed";
    /// The release was uninstalled.
    pub const RELEASE_DELETED: &str = "HelmReleaseDeleted";
    /// The resources are as the release has them.
    pub const NO_DRIFT: &str = "NoDrift";
    /// Another actor changed or deleted resources.
    pub const RESOURCES_CHANGED: &str = "ResourcesChanged";
    /// Resources could not be compared.
    pub const DRIFT_NOT_CHECKED: &str = "DriftNotChecked";
    /// An annotation is not valid.
    pub const ANNOTATION_NOT_VALID: &str = "AnnotationNotValid";
    /// The release cannot be read.
    pub const RELEASE_GET_FAILED: &str = "HelmReleaseGetFailed";
}
