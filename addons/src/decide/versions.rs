//! The version of a chart by the Kubernetes version of a Cluster.

use kube::ResourceExt as _;
use semver::Version;
use serde::Deserialize;

use super::{
    archive::{ArchivedChart, Chart},
    constraint::constraint,
    kubernetes::parse,
    release::{is_exact, is_same_version},
};
use crate::{HelmChartProxy, kinds::conditions::reasons, names};

/// One entry of the annotation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// A constraint such as `>=1.35 <1.37`.
    kubernetes: String,
    /// The version of the chart, or a constraint.
    version: String,
}

/// The version of the chart for a Cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChartVersion {
    /// This one; empty for the newest.
    Is(String),
    /// It is not known yet, because the control plane reports no version.
    NotYet,
    /// There is none: the reason of a condition, and why.
    Fails(&'static str, String),
}

/// The version for a Cluster whose control plane runs `kubernetes`. An archive has one version, which has to be a requested
/// one.
pub(super) fn chart_version(proxy: &HelmChartProxy, chart: &Chart, kubernetes: Option<&str>) -> ChartVersion {
    let requested = match requested_version(proxy, kubernetes) {
        ChartVersion::Is(version) => version,
        other => return other,
    };
    match chart {
        Chart::InRepository => ChartVersion::Is(requested),
        Chart::NotAvailable(why) => ChartVersion::Fails(reasons::GET_CHART_ARCHIVE_FAILED, why.clone()),
        Chart::Archived(archived) => in_archive(archived, &requested),
    }
}

fn in_archive(archived: &ArchivedChart, requested: &str) -> ChartVersion {
    let is_requested = if requested.is_empty() {
        true
    } else if is_exact(requested) {
        is_same_version(requested, &archived.version)
    } else if let (Ok(constraint), Ok(version)) =
        (constraint(requested), Version::parse(archived.version.trim_start_matches('v')))
    {
        constraint.matches(&version)
    } else {
        let why = format!(
            "the version {requested:?} cannot be compared with {} of the archive; use an exact one",
            archived.version
        );
        return ChartVersion::Fails(reasons::VERSION_NOT_AVAILABLE, why);
    };
    if is_requested {
        return ChartVersion::Is(archived.version_in_spec());
    }
    let why = format!(
        "the archive has version {}, and {requested:?} is requested; change one of them",
        archived.version
    );
    ChartVersion::Fails(reasons::VERSION_NOT_AVAILABLE, why)
}

/// The requested version. Without the annotation it is that of the spec. Of several entries that match, the first one counts.
/// A pre-release of Kubernetes counts as its release.
fn requested_version(proxy: &HelmChartProxy, kubernetes: Option<&str>) -> ChartVersion {
    let Some(annotation) = proxy.annotations().get(names::VERSIONS) else {
        return ChartVersion::Is(proxy.spec.version.clone());
    };
    let fails = |why: String| ChartVersion::Fails(reasons::VERSION_NOT_AVAILABLE, why);
    let invalid = |why: String| fails(format!("annotation {} {why}", names::VERSIONS));
    let entries: Vec<Entry> = match serde_json::from_str(annotation) {
        Ok(entries) => entries,
        Err(error) => {
            return invalid(format!("is not a JSON list of objects with kubernetes and version: {error}"));
        }
    };
    let mut constraints = Vec::new();
    for entry in entries {
        match constraint(&entry.kubernetes) {
            Ok(constraint) => constraints.push((constraint, entry.version)),
            Err(error) => return invalid(format!("has the constraint {:?}: {error}", entry.kubernetes)),
        }
    }
    let Some(reported) = kubernetes else { return ChartVersion::NotYet };
    let Some(version) = parse(reported) else {
        return fails(format!("the control plane reports the version {reported:?}"));
    };
    let release = Version::new(version.major, version.minor, version.patch);
    match constraints.into_iter().find(|(constraint, _)| constraint.matches(&release)) {
        Some((_, version)) => ChartVersion::Is(version),
        None => invalid(format!("has no version for Kubernetes {reported}; add an entry")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HelmChartProxySpec;

    fn proxy(annotation: Option<&str>) -> HelmChartProxy {
        let spec = HelmChartProxySpec { version: "1.0.0".to_owned(), ..HelmChartProxySpec::default() };
        let mut proxy = HelmChartProxy::new("csi", spec);
        let annotations = annotation.map(|value| (names::VERSIONS.to_owned(), value.to_owned()));
        proxy.annotations_mut().extend(annotations);
        proxy
    }

    fn is(version: &str) -> ChartVersion {
        ChartVersion::Is(version.to_owned())
    }

    #[test]
    fn the_first_entry_for_the_version_of_the_control_plane_counts() {
        let entries = r#"[
            {"kubernetes": ">=1.35 <1.37", "version": "2.1.0"},
            {"kubernetes": ">= 1.33, < 1.36", "version": "~2.0"},
            {"kubernetes": "1.38", "version": ""},
            {"kubernetes": "1.40.x", "version": "4"}
        ]"#;
        let of = |version| requested_version(&proxy(Some(entries)), Some(version));
        for (kubernetes, chart) in [
            ("v1.36.9", "2.1.0"),
            ("v1.35.0-rc.1", "2.1.0"),
            ("v1.35.0+vendor.2", "2.1.0"),
            ("v1.34.9", "~2.0"),
            ("1.38.2", ""),
            ("v1.40.7", "4"),
            ("v1.35", "2.1.0"),
        ] {
            assert_eq!(of(kubernetes), is(chart), "{kubernetes}");
        }
        let none = "annotation asg.addons.cluster.x-k8s.io/versions has no version for Kubernetes v1.37.0; add an entry";
        assert_eq!(of("v1.37.0"), ChartVersion::Fails(reasons::VERSION_NOT_AVAILABLE, none.to_owned()));
        assert!(matches!(of("v1.39.0"), ChartVersion::Fails(..)), "1.38 is no minimum");
        assert_eq!(requested_version(&proxy(Some(entries)), None), ChartVersion::NotYet);
        assert_eq!(requested_version(&proxy(None), None), is("1.0.0"), "without the annotation");
    }

    #[test]
    fn an_annotation_that_is_not_valid_is_explained() {
        for (annotation, why) in [
            ("1.2.3", "is not a JSON list"),
            (r#"[{"kubernetes": "1.35"}]"#, "missing field `version`"),
            (r#"[{"kubernetes": "new", "version": "1"}]"#, "has the constraint \"new\""),
            (r#"[{"kubernetes": "1.35", "version": "1", "chart": "a"}]"#, "unknown field `chart`"),
        ] {
            let ChartVersion::Fails(_, message) =
                requested_version(&proxy(Some(annotation)), Some("v1.36.0"))
            else {
                panic!("{annotation} is accepted");
            };
            assert!(message.contains(why), "{message}");
        }
    }

    #[test]
    fn an_archive_has_to_have_a_requested_version() {
        let archived = |version: &str| {
            Chart::Archived(ArchivedChart { version: version.to_owned(), digest: "0a1b".to_owned() })
        };
        let of = |requested: &str, chart: &Chart| {
            let mut proxy = proxy(None);
            requested.clone_into(&mut proxy.spec.version);
            chart_version(&proxy, chart, None)
        };
        for requested in ["", "1.2.3", "v1.2.3", "~1.2", ">=1.0 <2", "1.x", "*"] {
            assert_eq!(of(requested, &archived("1.2.3")), is("1.2.3+archive.0a1b"), "{requested}");
        }
        let fails = |requested: &str| match of(requested, &archived("1.2.3")) {
            ChartVersion::Fails("VersionNotAvailable", why) => why,
            other => panic!("{other:?}"),
        };
        let differs = "the archive has version 1.2.3, and \"^2\" is requested; change one of them";
        assert_eq!(fails("^2"), differs);
        assert!(fails("1.2.4").starts_with("the archive has version 1.2.3"));
        assert!(fails("1.x || 2.x").contains("use an exact one"));
        let missing = Chart::NotAvailable("ConfigMap a does not exist".to_owned());
        let expected = ChartVersion::Fails("GetChartArchiveFailed", "ConfigMap a does not exist".to_owned());
        assert_eq!(of("1.2.3", &missing), expected);
        assert_eq!(of("1.2.3", &Chart::InRepository), is("1.2.3"));
    }
}
