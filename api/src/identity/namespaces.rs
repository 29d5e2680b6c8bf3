//! Which namespaces an object of an operator applies to. An empty selection selects none.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{
    KubeSchema,
    core::{Selector, SelectorExt as _},
};
use serde::{Deserialize, Serialize};

use crate::crd::shapes;

/// Namespaces, by name or by label. A namespace is selected if it is listed or if its labels match; a selection without both
/// selects none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelection {
    /// Names of namespaces. Defaults to none. Changes apply in place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1024),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub names: Vec<String>,

    /// Labels of namespaces. An empty selector selects none; to select every namespace, require that the label
    /// `kubernetes.io/metadata.name` exists. Defaults to none. Changes apply in place. Let no tenant change the labels of its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::label_selector")]
    pub selector: Option<LabelSelector>,
}

impl NamespaceSelection {
    /// Whether the selection contains a namespace, of which the labels are known or not.
    #[must_use]
    pub fn contains(&self, namespace: &str, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.names.iter().any(|name| name == namespace)
            || self.selector.as_ref().zip(labels).is_some_and(|(selector, labels)| {
                !is_empty(selector)
                    && Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(labels))
            })
    }
}

/// Why the pools of a namespace may not use an identity, which is named by its kind and name.
#[must_use]
pub fn not_allowed(identity: &str, namespace: &str) -> String {
    format!(
        "{identity} does not allow namespace {namespace}: an operator must add it to spec.allowedNamespaces, or the pool \
         must use another identity"
    )
}

fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selection(value: serde_json::Value) -> NamespaceSelection {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_empty_selection_selects_no_namespace() {
        let labels = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
        for value in
            [json!({}), json!({"selector": {}}), json!({"names": [], "selector": {"matchLabels": {}}})]
        {
            assert!(!selection(value.clone()).contains("a", Some(&labels)), "{value}");
        }
    }

    #[test]
    fn a_namespace_is_selected_by_name_or_by_label() {
        let labels = BTreeMap::from([
            ("team".to_owned(), "a".to_owned()),
            ("kubernetes.io/metadata.name".to_owned(), "x".to_owned()),
        ]);
        let contains = |value| selection(value).contains("x", Some(&labels));
        assert!(contains(json!({"names": ["x"]})));
        assert!(contains(json!({"names": ["y"], "selector": {"matchLabels": {"team": "a"}}})));
        assert!(!contains(json!({"names": ["y"], "selector": {"matchLabels": {"team": "b"}}})));
        let any = json!({"selector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "Exists"}]}});
        assert!(contains(any.clone()));
        assert!(!selection(any).contains("x", None), "labels that are not known match nothing");
        let invalid = json!({"selector": {"matchExpressions": [{"key": "team", "operator": "Near"}]}});
        assert!(!contains(invalid));
    }
}
