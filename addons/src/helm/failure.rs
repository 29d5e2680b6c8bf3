//! Why Helm failed, without what it printed: its errors contain values, rendered manifests and URLs. A table classifies them,
//! and each class has a reason and a message of its own. Of the error itself only the HTTP status, the kind that the cluster
//! does not know and the place in a template are kept, if they have the expected form.

use std::fmt;

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each class has a reason and a message below")]
pub enum FailureClass {
    ClusterUnreachable,
    ClusterRejectsCredentials,
    Forbidden,
    NameInUse,
    OperationInProgress,
    ResourceOwned,
    NoDeployedRevision,
    ReleaseNotFound,
    ChartNotFound,
    ArchiveInvalid,
    RepositoryRejectsCredentials,
    CertificateNotTrusted,
    RepositoryUnreachable,
    ValuesInvalid,
    KubernetesVersion,
    DependenciesMissing,
    KindMissing,
    NamespaceMissing,
    HookFailed,
    TemplateFailed,
    Admission,
    ManifestInvalid,
    NotReadyInTime,
    Stopped,
    ImmutableField,
    Other,
}

/// How a call of Helm failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The class.
    pub class: FailureClass,
    /// What is known in addition, of a bounded form.
    pub detail: Option<String>,
}

use FailureClass as Class;

/// What is searched in the errors, in lowercase, and the class. The first entry that occurs determines the class, so that
/// specific ones come before general ones.
const TABLE: [(&str, Class); 76] = [
    ("the server has asked for the client to provide credentials", Class::ClusterRejectsCredentials),
    ("kubernetes cluster unreachable", Class::ClusterUnreachable),
    ("cannot re-use a name that is still in use", Class::NameInUse),
    ("another operation (install/upgrade/rollback) is in progress", Class::OperationInProgress),
    ("release: already exists", Class::OperationInProgress),
    ("cannot be imported into the current release", Class::ResourceOwned),
    ("invalid ownership metadata", Class::ResourceOwned),
    ("has no deployed releases", Class::NoDeployedRevision),
    ("release: not found", Class::ReleaseNotFound),
    ("values don't meet the specifications of the schema", Class::ValuesInvalid),
    ("failed to parse values.json", Class::ValuesInvalid),
    ("unable to validate schema", Class::ValuesInvalid),
    ("chart requires kubeversion", Class::KubernetesVersion),
    ("missing in charts/ directory", Class::DependenciesMissing),
    ("no matches for kind", Class::KindMissing),
    ("ensure crds are installed first", Class::KindMissing),
    ("failed pre-install", Class::HookFailed),
    ("failed post-install", Class::HookFailed),
    ("pre-upgrade hooks failed", Class::HookFailed),
    ("post-upgrade hooks failed", Class::HookFailed),
    ("hook pre-delete", Class::HookFailed),
    ("job failed", Class::HookFailed),
    ("execution error at (", Class::TemplateFailed),
    ("parse error at (", Class::TemplateFailed),
    ("error calling ", Class::TemplateFailed),
    ("yaml parse error on", Class::TemplateFailed),
    ("error converting yaml to json", Class::TemplateFailed),
    ("template: ", Class::TemplateFailed),
    ("does not appear to be a gzipped archive", Class::ArchiveInvalid),
    ("chart.yaml file is missing", Class::ArchiveInvalid),
    ("matching versions not found", Class::ChartNotFound),
    ("not found in repository index", Class::ChartNotFound),
    ("no chart version found for", Class::ChartNotFound),
    ("no chart name found", Class::ChartNotFound),
    ("unable to locate any tags", Class::ChartNotFound),
    ("could not locate a version matching", Class::ChartNotFound),
    ("name_unknown", Class::ChartNotFound),
    ("manifest_unknown", Class::ChartNotFound),
    ("manifest unknown", Class::ChartNotFound),
    ("improper constraint", Class::ChartNotFound),
    ("invalid_reference", Class::ChartNotFound),
    ("401 unauthorized", Class::RepositoryRejectsCredentials),
    ("status code 401", Class::RepositoryRejectsCredentials),
    ("status code 403", Class::RepositoryRejectsCredentials),
    ("403 forbidden", Class::RepositoryRejectsCredentials),
    ("basic credential not found", Class::RepositoryRejectsCredentials),
    ("authentication required", Class::RepositoryRejectsCredentials),
    ("denied: ", Class::RepositoryRejectsCredentials),
    ("admission webhook", Class::Admission),
    ("validatingadmissionpolicy", Class::Admission),
    ("violates podsecurity", Class::Admission),
    ("x509: ", Class::CertificateNotTrusted),
    ("tls: ", Class::CertificateNotTrusted),
    ("server gave http response to https client", Class::CertificateNotTrusted),
    ("failed to update the following repositories", Class::RepositoryUnreachable),
    ("cannot be reached", Class::RepositoryUnreachable),
    ("failed to fetch", Class::RepositoryUnreachable),
    ("unable to retrieve blob", Class::RepositoryUnreachable),
    ("dial tcp", Class::RepositoryUnreachable),
    ("no such host", Class::RepositoryUnreachable),
    ("server misbehaving", Class::RepositoryUnreachable),
    ("connection refused", Class::RepositoryUnreachable),
    ("i/o timeout", Class::RepositoryUnreachable),
    ("client.timeout exceeded", Class::RepositoryUnreachable),
    ("is forbidden: ", Class::Forbidden),
    ("namespaces \"", Class::NamespaceMissing),
    ("field is immutable", Class::ImmutableField),
    ("updates to statefulset spec for fields other than", Class::ImmutableField),
    ("unable to build kubernetes objects", Class::ManifestInvalid),
    ("error validating data", Class::ManifestInvalid),
    ("is invalid: ", Class::ManifestInvalid),
    ("cannot patch", Class::ManifestInvalid),
    ("context deadline exceeded", Class::NotReadyInTime),
    ("timed out waiting for the condition", Class::NotReadyInTime),
    ("context canceled", Class::Stopped),
    // A registry answers a HEAD request for a version that it does not have, without a body.
    (": not found", Class::ChartNotFound),
];

impl Failure {
    /// Classifies what Helm printed.
    #[must_use]
    pub fn of(printed: &str) -> Self {
        let lower = printed.to_lowercase();
        let class =
            TABLE.iter().find(|(text, _)| lower.contains(text)).map_or(Class::Other, |(_, class)| *class);
        let detail = match class {
            Class::TemplateFailed => place(printed).map(|place| format!("at {place}")),
            Class::KindMissing => kind(printed).map(|kind| format!("kind {kind}")),
            Class::RepositoryUnreachable => status(printed).map(|status| format!("HTTP status {status}")),
            _ => None,
        };
        Self { class, detail }
    }

    /// The reason, for conditions, events and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.class.text().0
    }

    /// Whether the same call may succeed later without a change by a user.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        use Class::{
            ClusterRejectsCredentials, ClusterUnreachable, KindMissing, NotReadyInTime, OperationInProgress,
            RepositoryUnreachable, Stopped,
        };
        matches!(
            self.class,
            ClusterUnreachable
                | ClusterRejectsCredentials
                | KindMissing
                | NotReadyInTime
                | OperationInProgress
                | RepositoryUnreachable
                | Stopped
        )
    }
}

impl FailureClass {
    /// The reason and the message.
    const fn text(self) -> (&'static str, &'static str) {
        match self {
            Self::ClusterUnreachable => (
                "ClusterUnreachable",
                "the API server of the workload cluster cannot be reached with its kubeconfig; it is tried again",
            ),
            Self::ClusterRejectsCredentials => (
                "ClusterRejectsCredentials",
                "the workload cluster rejects the credentials of the kubeconfig; check the Secret <cluster>-kubeconfig",
            ),
            Self::Forbidden => (
                "Forbidden",
                "the user of the kubeconfig may not create or change a resource of the chart; extend its permissions",
            ),
            Self::NameInUse => (
                "ReleaseNameInUse",
                "a release with this name exists that was not installed here; uninstall it, or choose another releaseName",
            ),
            Self::OperationInProgress => {
                ("OperationInProgress", "another operation on the release is in progress; it is tried again")
            }
            Self::ResourceOwned => (
                "ResourceNotOwned",
                "a resource of the chart exists and is not part of the release; delete it, or set options.takeOwnership",
            ),
            Self::NoDeployedRevision => {
                ("NoDeployedRevision", "no revision of the release was ever deployed; it is installed again")
            }
            Self::ReleaseNotFound => ("ReleaseNotFound", "the release does not exist"),
            Self::ChartNotFound => (
                "ChartNotFound",
                "the repository has no such chart or version; check chartName, repoURL and version",
            ),
            Self::ArchiveInvalid => {
                ("ChartArchiveInvalid", "the archive is not a packaged chart; create it by helm package")
            }
            Self::RepositoryRejectsCredentials => (
                "RepositoryRejectsCredentials",
                "the repository rejects the request; check spec.credentials and the permissions of that user",
            ),
            Self::CertificateNotTrusted => (
                "CertificateNotTrusted",
                "the certificate of the repository cannot be verified; set tlsConfig.caSecret",
            ),
            Self::RepositoryUnreachable => {
                ("RepositoryUnreachable", "the repository does not respond as expected; it is tried again")
            }
            Self::ValuesInvalid => (
                "ValuesInvalid",
                "the values do not match the schema of the chart; compare them by helm lint --values",
            ),
            Self::KubernetesVersion => (
                "KubernetesVersionNotSupported",
                "the chart does not support the Kubernetes version of the cluster; choose another version of the chart",
            ),
            Self::DependenciesMissing => (
                "DependenciesMissing",
                "the chart was packaged without its dependencies; package it after helm dependency update",
            ),
            Self::KindMissing => (
                "KindMissing",
                "the cluster does not serve a kind that the chart uses; install its CRDs first. It is tried again",
            ),
            Self::NamespaceMissing => (
                "NamespaceMissing",
                "a namespace does not exist; create it, or set options.install.createNamespace",
            ),
            Self::HookFailed => (
                "HookFailed",
                "a hook of the chart failed; read the logs of its Job or Pod in the workload cluster",
            ),
            Self::TemplateFailed => (
                "TemplateFailed",
                "a template of the chart cannot be rendered with these values; check them by helm template --values",
            ),
            Self::Admission => (
                "AdmissionDenied",
                "an admission policy or webhook of the workload cluster rejects a resource of the chart",
            ),
            Self::ManifestInvalid => (
                "ManifestInvalid",
                "the API server rejects a resource of the chart; check values and version by helm template --values",
            ),
            Self::NotReadyInTime => (
                "NotReadyInTime",
                "the resources were not ready within options.timeout; check the Pods of the release. It is tried again",
            ),
            Self::Stopped => ("Stopped", "the operation was stopped; it is tried again"),
            Self::ImmutableField => (
                "ImmutableField",
                "an upgrade changes an immutable field of a resource; delete the resource, or set options.upgrade.force",
            ),
            Self::Other => (
                "HelmFailed",
                "Helm failed for a reason that is not known; run the same chart and values by helm upgrade --dry-run=server",
            ),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.class.text().1)?;
        self.detail.as_ref().map_or(Ok(()), |detail| write!(formatter, " ({detail})"))
    }
}

/// The first place in a template: `chart/templates/file.yaml:12:34`. It is a path of the chart, not of values.
fn place(printed: &str) -> Option<String> {
    let is_part = |one: char| one.is_ascii_alphanumeric() || "/._-:".contains(one);
    let words = printed.split(|one: char| !is_part(one));
    let word = words.map(|word| word.trim_end_matches(':')).find(|word| {
        let mut parts = word.split(':');
        let path = parts.next().unwrap_or_default();
        let numbers: Vec<&str> = parts.collect();
        path.contains("/templates/")
            && (1..=2).contains(&numbers.len())
            && numbers
                .iter()
                .all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    })?;
    (word.len() <= 253).then(|| word.to_owned())
}

/// The kind that the cluster does not serve.
fn kind(printed: &str) -> Option<String> {
    let (_, rest) = printed.split_once("no matches for kind \"")?;
    let (kind, _) = rest.split_once('"')?;
    let is_kind = (1..=63).contains(&kind.len()) && kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_kind.then(|| kind.to_owned())
}

/// An HTTP status of a failed download: `failed to fetch <url> : 503 Service Unavailable`.
fn status(printed: &str) -> Option<String> {
    let (_, rest) = printed.split_once("failed to fetch ")?;
    let (_, rest) = rest.split_once(" : ")?;
    let status = rest.get(..3)?;
    status.bytes().all(|byte| byte.is_ascii_digit()).then(|| status.to_owned())
}

#[cfg(test)]
mod tests;
