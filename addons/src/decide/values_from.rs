//! Values from `ConfigMaps` and Secrets: the annotation that names them, and how values are merged.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::local_reference::{LocalKind, LocalReference};
use crate::{helm::ObjectName, names};

/// The most entries of the annotation: each one is a read in every reconcile, and a watch.
const MOST_ENTRIES: usize = 32;
/// The longest key of an object.
const LONGEST_KEY: usize = 253;

/// One entry of the annotation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kind: LocalKind,
    name: String,
    #[serde(default = "default_key")]
    key: String,
    #[serde(default)]
    optional: bool,
}

fn default_key() -> String {
    names::DEFAULT_VALUES_KEY.to_owned()
}

/// A key of an object with values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuesSource {
    /// The object.
    pub object: LocalReference,
    /// The key.
    pub key: String,
    /// Whether the object or the key may be missing.
    pub is_optional: bool,
}

impl fmt::Display for ValuesSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "key {} of {}", self.key, self.object)
    }
}

/// Reads the annotation: the sources in its order, and none without it.
///
/// # Errors
/// What is wrong with the annotation. The message repeats nothing of it: a user may have written values there.
pub fn values_from(annotations: &BTreeMap<String, String>) -> Result<Vec<ValuesSource>, String> {
    let Some(text) = annotations.get(names::VALUES_FROM) else { return Ok(Vec::new()) };
    let invalid = |why: &str| format!("annotation {} {why}", names::VALUES_FROM);
    let entries: Vec<Entry> = serde_saphyr::from_str(text).map_err(|_| {
        invalid("is not a list of objects with kind (ConfigMap or Secret), name, key and optional")
    })?;
    if entries.len() > MOST_ENTRIES {
        return Err(invalid(&format!("has more than {MOST_ENTRIES} entries")));
    }
    let source = |(index, entry): (usize, Entry)| {
        let at = |why: &str| invalid(&format!("has an invalid {why} in entry {}", index + 1));
        let name = ObjectName::parse(&entry.name).map_err(|_| at("name"))?;
        if !is_key(&entry.key) {
            return Err(at("key"));
        }
        let object = LocalReference { kind: entry.kind, name };
        Ok(ValuesSource { object, key: entry.key, is_optional: entry.optional })
    };
    entries.into_iter().enumerate().map(source).collect()
}

/// Whether a text may be a key of a `ConfigMap` or a Secret.
fn is_key(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=LONGEST_KEY).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Merges values as Helm merges several files: maps by their keys, and anything else is replaced. A null stays, so that Helm
/// removes the key from the defaults of the chart as well.
pub fn merge(values: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        match (values.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(value)) => merge(known, value),
            (_, value) => drop(values.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Vec<ValuesSource>, String> {
        values_from(&[(names::VALUES_FROM.to_owned(), text.to_owned())].into())
    }

    #[test]
    fn sources_are_a_list_in_json_or_yaml_with_defaults() {
        let both = ["ConfigMap base false values.yaml", "Secret db true prod.yaml"];
        for text in [
            r#"[{"kind": "ConfigMap", "name": "base"},
                {"kind": "Secret", "name": "db", "key": "prod.yaml", "optional": true}]"#,
            "- kind: ConfigMap\n  name: base\n- {kind: Secret, name: db, key: prod.yaml, optional: true}\n",
        ] {
            let sources = read(text).unwrap();
            let printed: Vec<String> =
                sources.iter().map(|it| format!("{} {} {}", it.object, it.is_optional, it.key)).collect();
            assert_eq!(printed, both);
        }
        assert_eq!((values_from(&BTreeMap::new()), read("[]")), (Ok(Vec::new()), Ok(Vec::new())));
        assert_eq!(read(""), Ok(Vec::new()), "YAML without content");
    }

    #[test]
    fn an_invalid_annotation_is_rejected_without_its_text() {
        for text in [
            "s3cret",
            "s3cret: [",
            r#"{"kind": "Secret", "name": "s3cret"}"#,
            r#"[{"kind": "Pod", "name": "s3cret"}]"#,
            r#"[{"kind": "Secret"}]"#,
            r#"[{"kind": "Secret", "name": "s3cret", "namespace": "other"}]"#,
            r#"[{"kind": "Secret", "name": "../s3cret"}]"#,
            r#"[{"kind": "Secret", "name": "db", "key": "a/s3cret"}]"#,
            r#"[{"kind": "Secret", "name": "db", "key": ""}]"#,
            &format!("[{}]", ["{kind: Secret, name: s3cret}"; MOST_ENTRIES + 1].join(", ")),
        ] {
            let Err(message) = read(text) else { panic!("{text} is accepted") };
            assert!(message.starts_with("annotation asg.addons.cluster.x-k8s.io/values-from "), "{message}");
            assert!(!message.contains("s3cret"), "{message}");
        }
        let second = r#"[{"kind": "Secret", "name": "db"}, {"kind": "Secret", "name": "A"}]"#;
        assert!(read(second).is_err_and(|message| message.ends_with("has an invalid name in entry 2")));
    }

    #[test]
    fn maps_are_merged_and_anything_else_is_replaced() {
        let map = |value: Value| serde_json::from_value::<Map<String, Value>>(value).unwrap();
        let mut values =
            map(json!({"a": {"x": 1, "y": {"z": 1}}, "list": [1, 2], "b": {"c": 1}, "d": 1, "n": null}));
        let over =
            json!({"a": {"y": {"w": 2}, "x": 3}, "list": [3], "b": null, "d": {"e": 1}, "n": {"m": 1}});
        merge(&mut values, map(over));
        let merged = json!({
            "a": {"x": 3, "y": {"z": 1, "w": 2}}, "list": [3], "b": null, "d": {"e": 1}, "n": {"m": 1},
        });
        assert_eq!(Value::Object(values), merged);
    }
}
