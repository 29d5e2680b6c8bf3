//! JSON merge patches (RFC 7386).

use serde_json::{Map, Value};

/// The patch that turns one value into another; `None` if they are equal. Members of the result cannot be null, which
/// removes a member in such a patch: `to` must have none.
pub(super) fn difference(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (from, to) else { return Some(to.clone()) };
    let mut patch = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        let changed = match before.get(name) {
            Some(before) => difference(before, value),
            None => Some(value.clone()),
        };
        if let Some(changed) = changed {
            patch.insert(name.clone(), changed);
        }
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_has_only_what_changes() {
        let from = json!({"a": 1, "b": {"c": [1, 2], "d": "x"}, "e": {}});
        let to = json!({"a": 1, "b": {"c": [2], "f": 3}, "e": {}});
        assert_eq!(difference(&from, &to), Some(json!({"b": {"c": [2], "d": null, "f": 3}})));
        assert_eq!(difference(&to, &to), None);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            (0..3_i64).prop_map(Value::from),
            "[ab]".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_patch_that_is_applied_gives_the_result(from in any_value(), to in any_value()) {
            let mut applied = from.clone();
            if let Some(patch) = difference(&from, &to) {
                json_patch::merge(&mut applied, &patch);
            }
            prop_assert_eq!(applied, to);
        }
    }
}
