//! The archive that a `HelmChartProxy` has its chart from, in place of a repository.

use std::collections::BTreeMap;

use super::local_reference::{LocalKind, LocalReference};
use crate::{
    helm::{InvalidName, ObjectName},
    names,
};

/// What separates the version of a chart from the digest of its archive, in the build metadata of the version.
const DIGEST: &str = "archive.";

/// Where the chart of a `HelmChartProxy` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chart {
    /// In the repository of the spec.
    InRepository,
    /// In an archive.
    Archived(ArchivedChart),
    /// The archive is missing or is not valid: why.
    NotAvailable(String),
}

/// A chart in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedChart {
    /// Its version.
    pub version: String,
    /// The digest of the archive.
    pub digest: String,
}

/// The object that the annotation names; none without it.
///
/// # Errors
/// If it does not name an object.
#[must_use]
pub fn archive_reference(
    annotations: &BTreeMap<String, String>,
) -> Option<Result<LocalReference, InvalidName>> {
    let text = annotations.get(names::CHART_ARCHIVE)?;
    let (kind, name) = match text.split_once('/') {
        Some(("configmap", name)) => (LocalKind::ConfigMap, name),
        Some(("secret", name)) => (LocalKind::Secret, name),
        // An empty name is rejected.
        _ => (LocalKind::Secret, ""),
    };
    Some(ObjectName::parse(name).map(|name| LocalReference { kind, name }))
}

impl ArchivedChart {
    /// The version in the spec of a `HelmReleaseProxy`: that of the chart, with the digest as build metadata. A change of the
    /// content is a change of the spec, which applies in order and in waves.
    #[must_use]
    pub fn version_in_spec(&self) -> String {
        let separator = if self.version.contains('+') { '.' } else { '+' };
        format!("{}{separator}{DIGEST}{}", self.version, self.digest)
    }
}

/// The digest in the version of a spec.
#[must_use]
pub fn archive_digest(version: &str) -> Option<&str> {
    let (_, build) = version.split_once('+')?;
    let digest =
        build.strip_prefix(DIGEST).or_else(|| build.rsplit_once(&format!(".{DIGEST}")).map(|it| it.1));
    digest.filter(|digest| !digest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(text: &str) -> Option<Result<String, String>> {
        let annotations = [(names::CHART_ARCHIVE.to_owned(), text.to_owned())].into();
        let read = archive_reference(&annotations)?;
        Some(read.map(|it| it.to_string()).map_err(|error| error.to_string()))
    }

    #[test]
    fn an_archive_is_in_an_object_of_the_same_namespace() {
        assert_eq!(reference("configmap/cilium-1.18"), Some(Ok("ConfigMap cilium-1.18".to_owned())));
        assert_eq!(reference("secret/cilium"), Some(Ok("Secret cilium".to_owned())));
        assert_eq!(archive_reference(&BTreeMap::new()), None);
        for text in [
            "",
            "cilium",
            "secret/",
            "secret/a/b",
            "secret/../a",
            "Secret/a",
            "pod/a",
            "configmap/A",
            "secret/a?b",
        ] {
            let Some(Err(message)) = reference(text) else { panic!("{text} is accepted") };
            assert!(message.ends_with("it must be configmap/<name> or secret/<name>, with the name of an object in the same namespace"), "{message}");
        }
    }

    #[test]
    fn the_digest_is_build_metadata_of_the_version() {
        for (version, in_spec) in [
            ("1.2.3", "1.2.3+archive.0a1b"),
            ("v1.2.3-rc.1", "v1.2.3-rc.1+archive.0a1b"),
            ("1.2.3+build.7", "1.2.3+build.7.archive.0a1b"),
        ] {
            let chart = ArchivedChart { version: version.to_owned(), digest: "0a1b".to_owned() };
            assert_eq!(chart.version_in_spec(), in_spec);
            assert_eq!(archive_digest(in_spec), Some("0a1b"));
            assert_eq!(archive_digest(version), None);
        }
    }
}
