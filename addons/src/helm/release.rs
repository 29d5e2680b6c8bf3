//! A release as Helm prints and stores it. Descriptions, notes and manifests are not read: they contain values.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most bytes of the version of an application that are shown.
const MOST_APP_VERSION: usize = 63;

/// The state of a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseState {
    /// Helm does not know.
    Unknown,
    /// The resources were applied.
    Deployed,
    /// The release was uninstalled, and its history is kept.
    Uninstalled,
    /// A newer revision is deployed.
    Superseded,
    /// The operation failed.
    Failed,
    /// The release is being uninstalled, or was when Helm ended.
    Uninstalling,
    /// The release is being installed, or was when Helm ended.
    PendingInstall,
    /// The release is being upgraded, or was when Helm ended.
    PendingUpgrade,
    /// The release is being rolled back, or was when Helm ended.
    PendingRollback,
}

/// The current revision of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The revision.
    pub revision: i64,
    /// Its state.
    pub state: ReleaseState,
    /// The chart.
    pub chart: ChartMetadata,
    /// The values that users supplied.
    pub values: Map<String, Value>,
}

/// What a chart says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartMetadata {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The version of the application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// Whether its authors advise against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<bool>,
}

/// A revision in the history of a release.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Revision {
    /// The number.
    pub revision: i64,
    /// Its state.
    pub status: ReleaseState,
    /// Name and version of the chart.
    pub chart: String,
}

#[derive(Deserialize)]
struct Stored {
    version: i64,
    info: Info,
    #[serde(default)]
    chart: Option<Chart>,
    #[serde(default)]
    config: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Info {
    status: ReleaseState,
}

#[derive(Deserialize)]
struct Chart {
    #[serde(default)]
    metadata: Option<ChartMetadata>,
}

impl ChartMetadata {
    /// The beginning of the version of the application; empty without one.
    #[must_use]
    pub fn shown_app_version(&self) -> &str {
        let version = self.app_version.as_deref().unwrap_or_default();
        &version[..version.floor_char_boundary(MOST_APP_VERSION)]
    }
}

impl ReleaseState {
    /// Whether an operation is in progress, or was when Helm ended.
    #[must_use]
    pub fn is_pending(self) -> bool {
        matches!(self, Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback)
    }

    /// The state that Helm names so.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        serde_json::from_value(Value::String(name.to_owned())).ok()
    }

    /// Helm's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Deployed => "deployed",
            Self::Uninstalled => "uninstalled",
            Self::Superseded => "superseded",
            Self::Failed => "failed",
            Self::Uninstalling => "uninstalling",
            Self::PendingInstall => "pending-install",
            Self::PendingUpgrade => "pending-upgrade",
            Self::PendingRollback => "pending-rollback",
        }
    }
}

impl Release {
    /// Reads the JSON of a release: of `helm status`, of an operation, or of the storage.
    ///
    /// # Errors
    /// If it is not the JSON of a release.
    pub fn parse(json: &[u8]) -> serde_json::Result<Self> {
        let stored: Stored = serde_json::from_slice(json)?;
        Ok(Self {
            revision: stored.version,
            state: stored.info.status,
            chart: stored.chart.and_then(|chart| chart.metadata).unwrap_or_default(),
            values: stored.config.unwrap_or_default(),
        })
    }
}

/// Reads the JSON of `helm history`.
pub(super) fn parse_history(json: &[u8]) -> serde_json::Result<Vec<Revision>> {
    serde_json::from_slice(json)
}

/// Reads the manifest in the JSON of a release: YAML, which may contain values.
pub(super) fn parse_manifest(json: &[u8]) -> serde_json::Result<String> {
    #[derive(Deserialize)]
    struct Rendered {
        manifest: String,
    }
    serde_json::from_slice::<Rendered>(json).map(|rendered| rendered.manifest)
}

/// Reads the JSON of `helm get values`: `null` without values.
pub(super) fn parse_values(json: &[u8]) -> serde_json::Result<Map<String, Value>> {
    serde_json::from_slice::<Option<_>>(json).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_release_is_read_without_what_contains_values() {
        let printed = json!({
            "name": "cni", "namespace": "kube-system", "version": 3,
            "info": {
                "first_deployed": "2026-01-01T00:00:00Z", "deleted": "", "status": "pending-upgrade",
                "description": "Upgrade \"cni\" failed: s3cret", "notes": "password s3cret",
            },
            "chart": {
                "metadata": {"name": "cilium", "version": "1.17.0", "appVersion": "1.17", "apiVersion": "v2"},
                "lock": null, "templates": [], "values": {"replicas": 1}, "schema": null, "files": null,
            },
            "config": {"replicas": 2}, "manifest": "s3cret",
        });
        let release = Release::parse(&serde_json::to_vec(&printed).unwrap()).unwrap();
        assert_eq!((release.revision, release.state), (3, ReleaseState::PendingUpgrade));
        assert_eq!((release.chart.name.as_str(), release.chart.version.as_str()), ("cilium", "1.17.0"));
        assert_eq!(release.values["replicas"], 2);
        assert!(!format!("{release:?}").contains("s3cret"));
    }

    #[test]
    fn parts_that_helm_leaves_out_are_empty() {
        let release = Release::parse(br#"{"version": 1, "info": {"status": "deployed"}}"#).unwrap();
        assert_eq!((release.chart, release.values), (ChartMetadata::default(), Map::new()));
        assert!(Release::parse(b"{}").is_err());
    }

    #[test]
    fn history_and_values_are_read() {
        let printed = br#"[{"revision":1,"updated":"2026-01-01T00:00:00Z","status":"superseded","chart":"cni-1.0.0","app_version":"1","description":"Install complete"}]"#;
        let expected =
            Revision { revision: 1, status: ReleaseState::Superseded, chart: "cni-1.0.0".to_owned() };
        assert_eq!(parse_history(printed).unwrap(), [expected]);
        assert_eq!(parse_values(b"null\n").unwrap(), Map::new());
        assert_eq!(parse_values(br#"{"a":1}"#).unwrap()["a"], 1);
    }

    #[test]
    fn states_have_the_words_of_helm() {
        use ReleaseState::*;
        for state in [
            Unknown,
            Deployed,
            Uninstalled,
            Superseded,
            Failed,
            Uninstalling,
            PendingInstall,
            PendingUpgrade,
            PendingRollback,
        ] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
            assert_eq!(state.is_pending(), state.as_str().starts_with("pending-"));
        }
    }
}
