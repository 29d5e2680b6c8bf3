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

/// `Reasons` of both kinds, after the condition that has them.
pub mod reasons {
    pub use capasg_api::names::addons::CLOUD_RESOURCES_REMAIN;

    /// `ClusterAvailable`: the API server of the Cluster responds.
    pub const CLUSTER_AVAILABLE: &str = "Available";
    /// `ClusterAvailable`: the API server of the Cluster does not respond.
    ///
    /// Remedy: check the endpoint of the control plane and the network of the manager; it is tried again within a minute, and
    /// after a long time without a response within ten minutes.
    pub const CLUSTER_UNREACHABLE: &str = "ClusterUnreachable";
    /// `ClusterAvailable`: the Cluster does not exist, or cannot be read.
    pub const GET_CLUSTER_FAILED: &str = "GetClusterFailed";
    /// `ClusterAvailable`: the control plane is not initialized yet.
    ///
    /// Remedy: read the conditions of the Cluster.
    pub const CONTROL_PLANE_NOT_AVAILABLE: &str = "NotAvailable";
    /// `ClusterAvailable`: there is no kubeconfig, or it is rejected.
    ///
    /// Remedy: the Secret `<cluster>-kubeconfig` must exist, and must not run programs, name files or use a proxy.
    pub const GET_KUBECONFIG_FAILED: &str = "GetKubeconfigFailed";
    /// `ClusterAvailable`: there are no credentials of the repository, or they are rejected.
    ///
    /// Remedy: create the Secret with the keys that docs/users/addons.md lists.
    pub const GET_CREDENTIALS_FAILED: &str = "GetCredentialsFailed";
    /// `ClusterAvailable`: there is no certificate authority of the repository, or it is rejected.
    ///
    /// Remedy: create the Secret with the key `ca.crt`.
    pub const GET_CA_CERTIFICATE_FAILED: &str = "GetCACertificateFailed";
    /// `HelmReleaseReady`: the release is as requested.
    pub const RELEASE_READY: &str = "Ready";
    /// Of a summary: nothing is wrong.
    pub const INFO_REPORTED: &str = "InfoReported";
    /// Of a summary: something is not known.
    pub const UNKNOWN_REPORTED: &str = "UnknownReported";
    /// Of a summary: something is wrong.
    pub const ISSUES_REPORTED: &str = "IssuesReported";
    /// `HelmReleaseProxySpecsUpToDate`: the labels of Clusters cannot be compared with the selector.
    ///
    /// Remedy: correct `spec.clusterSelector`.
    pub const CLUSTER_SELECTION_FAILED: &str = "ClusterSelectionFailed";
    /// `HelmReleaseProxySpecsUpToDate`: a `HelmReleaseProxy` could not be created, changed or deleted.
    ///
    /// Remedy: read the error in the message; the controller retries.
    pub const RELEASE_PROXY_CREATION_FAILED: &str = "HelmReleaseProxyCreationFailed";
    /// `HelmReleaseProxySpecsUpToDate`: the template of the values cannot be rendered for a Cluster.
    ///
    /// Remedy: correct `spec.valuesTemplate`; the message has the Cluster and the error of the template.
    pub const VALUE_PARSING_FAILED: &str = "ValueParsingFailed";
    /// `HelmReleaseProxySpecsUpToDate`: no version of the chart is available for a Cluster.
    ///
    /// Remedy: add an entry for its Kubernetes version to the annotation `asg.addons.cluster.x-k8s.io/versions`; an archive must
    /// have the requested version. See docs/users/addons-lifecycle.md.
    pub const VERSION_NOT_AVAILABLE: &str = "VersionNotAvailable";
    /// `HelmReleaseProxySpecsUpToDate`: the archive of the chart is not available.
    ///
    /// Remedy: correct the object that the annotation `asg.addons.cluster.x-k8s.io/chart-archive` names.
    pub const GET_CHART_ARCHIVE_FAILED: &str = "GetChartArchiveFailed";
    /// `HelmReleaseReady`: an installation is about to begin.
    pub const PREPARING: &str = "PreparingToHelmInstall";
    /// `HelmReleaseReady`: an operation is in progress.
    pub const RELEASE_PENDING: &str = "HelmReleasePending";
    /// `HelmReleaseReady`: an installation or an upgrade failed.
    ///
    /// Remedy: correct what the message names; the operation is repeated with increasing delays, and at once after a change of the
    /// spec or of values in objects.
    pub const INSTALL_OR_UPGRADE_FAILED: &str = "HelmInstallOrUpgradeFailed";
    /// `HelmReleaseReady`: an uninstallation failed.
    ///
    /// Remedy: correct what the message names. After an hour without a response of the API server, the release is left in the
    /// Cluster.
    pub const DELETION_FAILED: &str = "HelmReleaseDeletionFailed";
    /// `HelmReleaseReady`: the release was uninstalled.
    pub const RELEASE_DELETED: &str = "HelmReleaseDeleted";
    /// `Drifted`: the resources are as the release has them.
    pub const NO_DRIFT: &str = "NoDrift";
    /// `Drifted`: another actor changed or deleted resources.
    ///
    /// Remedy: revert the change, set the annotation `asg.addons.cluster.x-k8s.io/drift` to `Correct`, or write the change into the
    /// values. See docs/users/addons-operation.md.
    pub const RESOURCES_CHANGED: &str = "ResourcesChanged";
    /// `Drifted`: resources could not be compared.
    ///
    /// Remedy: read the cause in the message; they are compared again later.
    pub const DRIFT_NOT_CHECKED: &str = "DriftNotChecked";
    /// `HelmReleaseProxySpecsUpToDate` and `Drifted`: an annotation is not valid.
    ///
    /// Remedy: correct the annotation that the message names.
    pub const ANNOTATION_NOT_VALID: &str = "AnnotationNotValid";
    /// `HelmReleaseReady`: the release cannot be read.
    ///
    /// Remedy: read the error in the message; the controller retries.
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
