//! The identities of Cluster API Provider AWS, with its own rules: `allowedNamespaces` that are absent allow no namespace,
//! and empty ones allow all (as of version 2.13).

use std::{collections::BTreeMap, time::Duration};

use capasg_api::identity::{IdentityReference, NamespaceSelection};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;

/// `spec.allowedNamespaces`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct AllowedNamespaces {
    list: Option<Vec<String>>,
    selector: Option<LabelSelector>,
}

/// What is read of the spec of any of its identities.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ProviderIdentity {
    allowed_namespaces: Option<AllowedNamespaces>,
    /// Of a role.
    #[serde(rename = "roleARN")]
    pub(super) role_arn: Option<String>,
    pub(super) session_name: Option<String>,
    duration_seconds: Option<u64>,
    pub(super) inline_policy: Option<String>,
    #[serde(rename = "policyARNs")]
    pub(super) policy_arns: Vec<String>,
    #[serde(rename = "externalID")]
    pub(super) external_id: Option<String>,
    pub(super) source_identity_ref: Option<IdentityReference>,
    /// Of an access key: the name of a Secret in the namespace of that provider.
    pub(super) secret_ref: Option<String>,
}

impl ProviderIdentity {
    /// Whether a namespace may use the identity.
    pub(super) fn allows(&self, namespace: &str, labels: Option<&BTreeMap<String, String>>) -> bool {
        let Some(AllowedNamespaces { list, selector }) = &self.allowed_namespaces else { return false };
        let is_empty = list.as_ref().is_none_or(Vec::is_empty)
            && selector.as_ref().is_none_or(|selector| *selector == LabelSelector::default());
        let names = list.clone().unwrap_or_default();
        is_empty || NamespaceSelection { names, selector: selector.clone() }.contains(namespace, labels)
    }

    /// `durationSeconds`; the provider's default of 0 leaves it to STS.
    pub(super) fn duration(&self) -> Option<Duration> {
        self.duration_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn allows(spec: Value) -> bool {
        let labels = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
        serde_json::from_value::<ProviderIdentity>(spec).unwrap().allows("x", Some(&labels))
    }

    #[test]
    fn absent_namespaces_allow_none_and_empty_ones_all() {
        assert!(!allows(json!({})));
        assert!(!allows(json!({"allowedNamespaces": null})));
        assert!(allows(json!({"allowedNamespaces": {}})));
        assert!(allows(json!({"allowedNamespaces": {"list": null, "selector": {}}})));
        assert!(allows(json!({"allowedNamespaces": {"list": ["x"]}})));
        assert!(!allows(json!({"allowedNamespaces": {"list": ["y"], "selector": {}}})));
        assert!(allows(json!({"allowedNamespaces": {"selector": {"matchLabels": {"team": "a"}}}})));
        assert!(!allows(json!({"allowedNamespaces": {"selector": {"matchLabels": {"team": "b"}}}})));
    }
}
