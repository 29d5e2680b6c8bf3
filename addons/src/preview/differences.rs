//! Where two values differ, by paths.

use std::{collections::BTreeSet, fmt};

use serde_json::{Map, Value};

use crate::decide::release::is_equal;

/// A part that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The path, such as `spec.ports[0].port`.
    pub path: String,
    /// The part before; none if it is new.
    pub before: Option<Value>,
    /// The part after; none if it is removed.
    pub after: Option<Value>,
}

/// Prints whether the part is new, removed or changed, and its path: no value.
impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match (&self.before, &self.after) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        write!(formatter, "{sign} {}", self.path)
    }
}

/// The parts that differ, in the order of their paths. A map or a list that is new or removed is one part.
#[must_use]
pub fn differences(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<Difference> {
    let mut all = Vec::new();
    of_maps("", before, after, &mut all);
    all
}

fn of_maps(path: &str, before: &Map<String, Value>, after: &Map<String, Value>, all: &mut Vec<Difference>) {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in keys {
        of_parts(&member(path, key), before.get(key), after.get(key), all);
    }
}

fn of_parts(path: &str, before: Option<&Value>, after: Option<&Value>, all: &mut Vec<Difference>) {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => of_maps(path, before, after, all),
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for index in 0..before.len().max(after.len()) {
                of_parts(&format!("{path}[{index}]"), before.get(index), after.get(index), all);
            }
        }
        (Some(before), Some(after)) if is_equal(before, after) => {}
        (before, after) => {
            let path = path.to_owned();
            all.push(Difference { path, before: before.cloned(), after: after.cloned() });
        }
    }
}

/// The path of a member of a map; a key with other characters than letters, digits, `-` and `_` is quoted.
fn member(path: &str, key: &str) -> String {
    let is_plain =
        !key.is_empty() && key.chars().all(|one| one.is_ascii_alphanumeric() || one == '-' || one == '_');
    match (is_plain, path.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{key:?}]"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn printed(before: Value, after: Value) -> Vec<String> {
        let map = |value: Value| serde_json::from_value::<Map<String, Value>>(value).unwrap();
        differences(&map(before), &map(after)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn paths_of_what_differs_are_printed_in_order_and_without_values() {
        let before = json!({
            "b": {"same": 1, "old": "s3cret", "list": [1, {"x": 1}, 3]}, "a": true, "n": 1, "labels": {"a.example/b": "1"},
        });
        let after = json!({
            "b": {"same": 1.0, "new": {"deep": "s3cret"}, "list": [1, {"x": 2}]}, "a": "true", "n": null,
            "labels": {"a.example/b": "2"},
        });
        let expected =
            ["~ a", "~ b.list[1].x", "- b.list[2]", "+ b.new", "- b.old", "~ labels[\"a.example/b\"]", "~ n"];
        assert_eq!(printed(before.clone(), after), expected);
        assert_eq!(printed(before.clone(), before), [""; 0]);
    }
}
