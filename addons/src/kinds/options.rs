//! Options of Helm's operations. An option that is absent has Helm's default, unless its description states another one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shapes;

/// The time limit of an operation without one, in Go's notation.
const DEFAULT_TIMEOUT: &str = "10m0s";
/// How many revisions Helm keeps of a release without a limit.
const DEFAULT_MAX_HISTORY: u32 = 10;

/// Options of all operations, and of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmOptions {
    /// Whether hooks of the chart are skipped. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_hooks: Option<bool>,

    /// Whether an operation waits until the resources are ready. Defaults to false, or to true with `atomic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,

    /// Whether an operation waits until Jobs are complete. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for_jobs: Option<bool>,

    /// Whether missing dependencies of the chart are downloaded. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependency_update: Option<bool>,

    /// Time limit of each operation in Kubernetes, such as `5m`. Defaults to `10m0s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::duration")]
    pub timeout: Option<String>,

    /// Whether the `crds` folder of the chart is left out. Defaults to false.
    #[serde(rename = "skipCRDs", skip_serializing_if = "Option::is_none")]
    pub skip_crds: Option<bool>,

    /// Whether notes of subcharts are rendered. Defaults to false.
    #[serde(rename = "options", skip_serializing_if = "Option::is_none")]
    pub sub_notes: Option<bool>,

    /// Whether templates are not validated with the schema of the cluster. Defaults to false.
    #[serde(rename = "disableOpenAPIValidation", skip_serializing_if = "Option::is_none")]
    pub disable_open_api_validation: Option<bool>,

    /// Whether a failed installation is uninstalled, and a failed upgrade is rolled back. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atomic: Option<bool>,

    /// Options of installations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<HelmInstallOptions>,

    /// Options of upgrades.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<HelmUpgradeOptions>,

    /// Options of uninstallations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uninstall: Option<HelmUninstallOptions>,

    /// Accepted for compatibility, without effect: Helm runs as a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_client_cache: Option<bool>,

    /// Whether resources that exist without being part of a release become part of it. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take_ownership: Option<bool>,
}

/// Options of installations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmInstallOptions {
    /// Whether the namespace of the release is created if it does not exist. It is not deleted with the release. Defaults
    /// to true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_namespace: Option<bool>,

    /// Whether CRDs are included in the rendered templates. Defaults to false.
    #[serde(rename = "includeCRDs", skip_serializing_if = "Option::is_none")]
    pub include_crds: Option<bool>,
}

/// Options of upgrades.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmUpgradeOptions {
    /// Whether resources that cannot be patched are replaced. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,

    /// Whether values of the release before are ignored. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_values: Option<bool>,

    /// Whether values of the release before are kept. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reuse_values: Option<bool>,

    /// Whether the values of the chart apply first, and then those of the release before. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_then_reuse_values: Option<bool>,

    /// Whether Pods are deleted after a rollback, so that they are created again. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recreate: Option<bool>,

    /// How many revisions of the release are kept; 0 keeps all. Defaults to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10_000))]
    pub max_history: Option<u32>,

    /// Whether resources that a failed upgrade created are deleted. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup_on_fail: Option<bool>,
}

/// Options of uninstallations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmUninstallOptions {
    /// Whether the revisions of the release are kept. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_history: Option<bool>,

    /// Text that Helm records with the uninstallation. Defaults to Helm's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub description: Option<String>,
}

impl HelmOptions {
    /// Whether operations wait for resources: `atomic` requires it.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.wait.unwrap_or_default() || self.atomic.unwrap_or_default()
    }

    /// The time limit, in Go's notation.
    #[must_use]
    pub fn timeout(&self) -> &str {
        self.timeout.as_deref().unwrap_or(DEFAULT_TIMEOUT)
    }

    /// Whether an installation creates the namespace.
    #[must_use]
    pub fn creates_namespace(&self) -> bool {
        self.install.as_ref().and_then(|install| install.create_namespace).unwrap_or(true)
    }

    /// How many revisions are kept; 0 keeps all.
    #[must_use]
    pub fn max_history(&self) -> u32 {
        self.upgrade.as_ref().and_then(|upgrade| upgrade.max_history).unwrap_or(DEFAULT_MAX_HISTORY)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_options_have_the_documented_defaults() {
        let options = HelmOptions::default();
        assert_eq!((options.waits(), options.timeout(), options.max_history()), (false, "10m0s", 10));
        assert!(options.creates_namespace());
        let set = json!({
            "atomic": true, "timeout": "90s", "options": true, "skipCRDs": true, "disableOpenAPIValidation": true,
            "install": {"createNamespace": false, "includeCRDs": true}, "upgrade": {"maxHistory": 0},
        });
        let options: HelmOptions = serde_json::from_value(set.clone()).unwrap();
        assert_eq!((options.waits(), options.timeout(), options.max_history()), (true, "90s", 0));
        assert!(!options.creates_namespace() && options.sub_notes == Some(true));
        assert_eq!(serde_json::to_value(&options).unwrap(), set, "what users wrote is kept");
    }
}
