//! Types and reasons of conditions, as in Cluster API's add-on provider for Helm (X1). `ClusterUnreachable`,
//! `CloudResourcesRemain` and those of drift are our own.

use capasg_api::conditions::{Finding, READY, Status, set, summarize};
pub use capasg_api::names::addons::{RELEASE_READY, SPECS_UP_TO_DATE};
use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Of a `HelmReleaseProxy`: the Cluster exists and its API server responds.
pub const CLUSTER_AVAILABLE: &str = "ClusterAvailable";
/// Of a `HelmChartProxy`: all its `HelmReleaseProxies` are ready.
pub const RELEASES_READY: &str = "HelmReleaseProxiesReady";

/// Sets `Ready`, the summary of these types. Its reasons are those of Cluster API's library for a summary without reasons of its
/// own, since they are what users of the other add-on provider know.
pub fn set_ready(conditions: &mut Vec<Condition>, of: &[&str], generation: i64, now: DateTime<Utc>) {
    let summary = summarize(conditions, of);
    let reason = match summary.status {
        Status::True => reasons::INFO_REPORTED,
        Status::Unknown => reasons::UNKNOWN_REPORTED,
        Status::False => reasons::ISSUES_REPORTED,
    };
    set(conditions, Finding::new(READY, summary.status, reason, summary.message), generation, now);
}

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
    /// Of a summary: nothing is wrong.
    pub const INFO_REPORTED: &str = "InfoReported";
    /// Of a summary: something is not known.
    pub const UNKNOWN_REPORTED: &str = "UnknownReported";
    /// Of a summary: something is wrong.
    pub const ISSUES_REPORTED: &str = "IssuesReported";
    /// The labels of Clusters cannot be compared with the selector.
    pub const CLUSTER_SELECTION_FAILED: &str = "ClusterSelectionFailed";
    /// A `HelmReleaseProxy` could not be created, changed or deleted.
    pub const RELEASE_PROXY_CREATION_FAILED: &str = "HelmReleaseProxyCreationFailed";
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

#[cfg(test)]
mod tests {
    use super::*;

    // Rules: X1
    #[test]
    fn a_summary_has_the_generic_reasons() {
        let reason = |ready: Status| {
            let mut all = Vec::new();
            set(
                &mut all,
                Finding::plain(CLUSTER_AVAILABLE, true, reasons::CLUSTER_AVAILABLE),
                1,
                DateTime::UNIX_EPOCH,
            );
            set(&mut all, Finding::new(RELEASE_READY, ready, "A", "why"), 1, DateTime::UNIX_EPOCH);
            set_ready(&mut all, &[CLUSTER_AVAILABLE, RELEASE_READY], 1, DateTime::UNIX_EPOCH);
            all.iter().find(|condition| condition.type_ == READY).map(|ready| ready.reason.clone())
        };
        assert_eq!(reason(Status::True).as_deref(), Some("InfoReported"));
        assert_eq!(reason(Status::Unknown).as_deref(), Some("UnknownReported"));
        assert_eq!(reason(Status::False).as_deref(), Some("IssuesReported"));
    }
}
