//! The resources of two manifests, and how they differ. Data of Secrets is not shown.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};

use super::differences::{Difference, differences};

/// The longest value that is printed.
const LONGEST: usize = 120;

/// A resource that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceDifference {
    /// Kind, namespace and name.
    pub resource: String,
    /// How it differs.
    pub change: ResourceChange,
}

/// How a resource differs.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceChange {
    /// It is new.
    Added,
    /// It is removed.
    Removed,
    /// Parts of it differ. Values of Secrets are masked.
    Changed(Vec<Difference>),
}

/// The documents of a manifest, each as YAML.
#[must_use]
pub fn documents(manifest: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in manifest.lines() {
        if line.starts_with("---") {
            all.push(String::new());
        } else if let Some(last) = all.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    let is_empty = |text: &String| text.lines().all(|line| line.trim().is_empty() || line.starts_with('#'));
    all.retain(|text| !is_empty(text));
    all
}

/// How the resources of two manifests differ, in the order of kinds and names.
#[must_use]
pub fn resources(before: &[Map<String, Value>], after: &[Map<String, Value>]) -> Vec<ResourceDifference> {
    let (before, after) = (by_name(before), by_name(after));
    let mut all = Vec::new();
    for (resource, known) in &before {
        let change = match after.get(resource) {
            None => ResourceChange::Removed,
            Some(new) => {
                let mut parts = differences(known, new);
                if parts.is_empty() {
                    continue;
                }
                if known.get("kind").is_some_and(|kind| kind == "Secret") {
                    parts.iter_mut().for_each(mask);
                }
                ResourceChange::Changed(parts)
            }
        };
        all.push(ResourceDifference { resource: resource.clone(), change });
    }
    let added = after.keys().filter(|resource| !before.contains_key(*resource));
    all.extend(
        added
            .map(|resource| ResourceDifference { resource: resource.clone(), change: ResourceChange::Added }),
    );
    all.sort_by(|a, b| a.resource.cmp(&b.resource));
    all
}

fn by_name(all: &[Map<String, Value>]) -> BTreeMap<String, &Map<String, Value>> {
    all.iter().map(|object| (resource_name(object), object)).collect()
}

/// Kind, namespace and name.
pub(crate) fn resource_name(object: &Map<String, Value>) -> String {
    let of = |part: &str| object.get("metadata").and_then(|metadata| metadata.get(part)?.as_str());
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let name = of("name").unwrap_or_default();
    of("namespace").map_or_else(|| format!("{kind} {name}"), |namespace| format!("{kind} {namespace}/{name}"))
}

fn mask(difference: &mut Difference) {
    for value in [&mut difference.before, &mut difference.after].into_iter().flatten() {
        *value = Value::from("(masked)");
    }
}

impl fmt::Display for ResourceDifference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = match &self.change {
            ResourceChange::Added => return writeln!(formatter, "+ {}", self.resource),
            ResourceChange::Removed => return writeln!(formatter, "- {}", self.resource),
            ResourceChange::Changed(parts) => parts,
        };
        writeln!(formatter, "~ {}", self.resource)?;
        for part in parts {
            write!(formatter, "    {part}")?;
            match (&part.before, &part.after) {
                (Some(before), Some(after)) => {
                    writeln!(formatter, ": {} -> {}", short(before), short(after))?;
                }
                (Some(value), None) | (None, Some(value)) => writeln!(formatter, ": {}", short(value))?,
                (None, None) => writeln!(formatter)?,
            }
        }
        Ok(())
    }
}

fn short(value: &Value) -> String {
    let mut text = value.to_string();
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push_str(" …");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_manifest_has_documents() {
        let manifest = "---\n# Source: a\nkind: A\ntext: |\n  a --- b\n---\n# nothing\n\n--- \nkind: B\n";
        assert_eq!(documents(manifest), ["# Source: a\nkind: A\ntext: |\n  a --- b\n", "kind: B\n"]);
        assert_eq!(documents(""), [""; 0]);
    }

    #[test]
    fn resources_are_compared_and_secrets_are_masked() {
        let object = |kind: &str, name: &str, data: Value| {
            map(json!({"kind": kind, "metadata": {"name": name, "namespace": "kube-system"}, "data": data}))
        };
        let before = [
            object("Secret", "login", json!({"password": "b2xk", "same": "YQ=="})),
            object("ConfigMap", "same", json!({"a": "1"})),
            object("ConfigMap", "old", json!({"a": "1"})),
            object("ConfigMap", "settings", json!({"a": "1", "text": "x".repeat(200)})),
        ];
        let after = [
            object("Secret", "login", json!({"password": "bmV3", "same": "YQ=="})),
            object("ConfigMap", "same", json!({"a": "1"})),
            object("ConfigMap", "settings", json!({"a": "2", "b": "3"})),
            map(json!({"kind": "ClusterRole", "metadata": {"name": "cni"}})),
        ];
        let printed: String = resources(&before, &after).iter().map(ToString::to_string).collect();
        let expected = format!(
            "+ ClusterRole cni\n- ConfigMap kube-system/old\n~ ConfigMap kube-system/settings\n    ~ data.a: \"1\" -> \"2\"\n    \
             + data.b: \"3\"\n    - data.text: \"{} …\n~ Secret kube-system/login\n    \
             ~ data.password: \"(masked)\" -> \"(masked)\"\n",
            "x".repeat(119)
        );
        assert_eq!(printed, expected);
    }
}
