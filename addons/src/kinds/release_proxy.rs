//! `HelmReleaseProxy`: one release on one Cluster (X4). The add-on provider creates and changes it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Credentials, HelmOptions, ObjectReference, ReconcileStrategy, TlsConfig, shapes, strategy};
use crate::names;

impl HelmReleaseProxy {
    /// Whether the object says that its release was installed.
    #[must_use]
    pub fn is_installed(&self) -> bool {
        self.annotations().get(names::RELEASE_INSTALLED).is_some_and(|value| value == "true")
    }

    /// The Kubernetes version that the spec is for, if the `HelmChartProxy` asks for a phase of upgrades.
    #[must_use]
    pub fn kubernetes_version(&self) -> Option<&str> {
        self.annotations().get(names::KUBERNETES_VERSION).map(String::as_str)
    }

    /// Records the Kubernetes version that the spec is for, if there is one.
    pub fn set_kubernetes_version(&mut self, version: Option<String>) {
        if let Some(version) = version {
            self.annotations_mut().insert(names::KUBERNETES_VERSION.to_owned(), version);
        }
    }
}

/// The release on one Cluster. Written by the add-on provider.
#[expect(clippy::duplicated_attributes, reason = "each printcolumn has members of its own")]
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "addons.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "HelmReleaseProxy",
    plural = "helmreleaseproxies",
    singular = "helmreleaseproxy",
    shortname = "hrp",
    category = "cluster-api",
    namespaced,
    status = "HelmReleaseProxyStatus",
    derive = "PartialEq",
    doc = "HelmReleaseProxy is the release of a Helm chart on one Cluster. A HelmChartProxy creates and changes it.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".spec.clusterRef.name",
        description = "Cluster that the release is on."
    ),
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
    ),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.status"),
    printcolumn(name = "Revision", type_ = "string", json_path = ".status.revision"),
    printcolumn(
        name = "App Version",
        type_ = "string",
        priority = 1,
        json_path = ".metadata.annotations.asg\\.addons\\.cluster\\.x-k8s\\.io/app-version",
        description = "Version of the application in the chart."
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(strategy::IS_UNCHANGED)
        .message("reconcileStrategy: cannot be changed"),
    validation = Rule::new("self.chartName == oldSelf.chartName").message("chartName: cannot be changed"),
    validation = Rule::new("self.repoURL == oldSelf.repoURL").message("repoURL: cannot be changed"),
    validation = Rule::new("self.__namespace__ == oldSelf.__namespace__").message("namespace: cannot be changed")
)]
pub struct HelmReleaseProxySpec {
    /// The Cluster.
    pub cluster_ref: ObjectReference,

    /// Name of the chart in the repository. Immutable.
    #[schemars(schema_with = "shapes::chart_name")]
    pub chart_name: String,

    /// URL of the repository. Immutable.
    #[serde(rename = "repoURL")]
    #[schemars(schema_with = "shapes::repo_url")]
    pub repo_url: String,

    /// Name of the release. A generated one is recorded before the first installation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "shapes::release_name")]
    pub release_name: String,

    /// Namespace of the release in the workload cluster. Immutable.
    #[serde(rename = "namespace")]
    #[schemars(schema_with = "shapes::namespace")]
    pub release_namespace: String,

    /// Version of the chart, or a constraint. Defaults to the newest version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "shapes::version")]
    pub version: String,

    /// Values of the chart as YAML. Defaults to none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1_048_576))]
    pub values: String,

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

/// What was observed of a release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmReleaseProxyStatus {
    /// Conditions. `Ready` summarizes `HelmReleaseReady` and `ClusterAvailable`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "capasg_api::crd::conditions")]
    pub conditions: Vec<Condition>,

    /// Status of the release as Helm reports it, such as `deployed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub status: Option<String>,

    /// Revision of the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub revision: Option<i64>,

    /// Kubernetes version of the next step of the control plane, for which the release is changed before the step. Written by
    /// the Runtime Extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub next_kubernetes_version: Option<String>,

    /// The generation that was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}
