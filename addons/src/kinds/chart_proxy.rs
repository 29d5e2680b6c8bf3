//! `HelmChartProxy`: a chart, and the Clusters that it is installed on (X2).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Credentials, HelmOptions, ObjectReference, ReconcileStrategy, TlsConfig, shapes, strategy};
use crate::names;
use capasg_api::crd::label_selector;

/// The chart, and the Clusters that it is installed on.
#[expect(clippy::duplicated_attributes, reason = "each printcolumn has members of its own")]
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "addons.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "HelmChartProxy",
    plural = "helmchartproxies",
    singular = "helmchartproxy",
    shortname = "hcp",
    category = "cluster-api",
    namespaced,
    status = "HelmChartProxyStatus",
    derive = "PartialEq",
    doc = "HelmChartProxy is a Helm chart, and the Clusters of its namespace that it is installed on.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        priority = 1,
        json_path = ".status.conditions[?(@.type=='Ready')].message"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(strategy::IS_UNCHANGED)
        .message("reconcileStrategy: cannot be changed; create another HelmChartProxy")
)]
pub struct HelmChartProxySpec {
    /// Labels of the Clusters of the namespace that the chart is installed on. An empty selector selects all. The release is
    /// uninstalled from a Cluster that is no longer selected.
    #[schemars(schema_with = "label_selector")]
    pub cluster_selector: LabelSelector,

    /// Name of the chart in the repository. A change uninstalls the release and installs another one.
    #[schemars(schema_with = "shapes::chart_name")]
    pub chart_name: String,

    /// URL of the repository: `https://` for a chart repository, `oci://` for a registry, without the name of the chart.
    /// A change uninstalls the release and installs another one.
    #[serde(rename = "repoURL")]
    #[schemars(schema_with = "shapes::repo_url")]
    pub repo_url: String,

    /// Name of the release. Defaults to a generated one. A change uninstalls the release and installs another one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "shapes::release_name")]
    pub release_name: String,

    /// Namespace of the release in the workload cluster. Defaults to `default`. A change uninstalls the release and
    /// installs another one.
    #[serde(default, rename = "namespace", skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "shapes::namespace")]
    pub release_namespace: String,

    /// Version of the chart, or a constraint. Defaults to the newest version, which the release follows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "shapes::version")]
    pub version: String,

    /// Values of the chart as YAML, with Go templates over `.Cluster`, `.ControlPlane` and `.InfraCluster`, the objects of
    /// each Cluster. Defaults to none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1_048_576))]
    pub values_template: String,

    /// Whether the release follows this object. Immutable. Defaults to `Continuous`.
    #[serde(default, skip_serializing_if = "ReconcileStrategy::is_unset")]
    pub reconcile_strategy: ReconcileStrategy,

    /// Options of Helm's operations. Defaults to those of each option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<HelmOptions>,

    /// Credentials of the repository. Defaults to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,

    /// How the certificate of the repository is verified. Defaults to the authorities of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_config: Option<TlsConfig>,
}

/// What was observed of a chart and its releases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmChartProxyStatus {
    /// Conditions. `Ready` summarizes `HelmReleaseProxySpecsUpToDate` and `HelmReleaseProxiesReady`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "capasg_api::crd::conditions")]
    pub conditions: Vec<Condition>,

    /// The Clusters that are selected.
    #[schemars(length(max = 10_000))]
    pub matching_clusters: Vec<ObjectReference>,

    /// The generation that was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}

impl HelmChartProxySpec {
    /// The namespace of the release in the workload cluster.
    #[must_use]
    pub fn namespace(&self) -> &str {
        Some(self.release_namespace.as_str())
            .filter(|name| !name.is_empty())
            .unwrap_or(names::DEFAULT_NAMESPACE)
    }
}
