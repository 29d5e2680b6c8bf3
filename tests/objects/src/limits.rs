//! Whether a value fits its schema, as the API server checks it.

use serde_json::Value;

/// The limits of a schema that a value exceeds, by path: more characters, items or members than it allows. The API server
/// rejects such a value as a whole.
#[must_use]
pub fn exceeded_limits(schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    compare(schema, value, path, &mut found);
    found
}

fn compare(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    let mut check = |keyword: &str, length: usize| {
        if schema[keyword].as_u64().is_some_and(|limit| length as u64 > limit) {
            found.push(format!("{path}: {keyword} with {length}"));
        }
    };
    match value {
        Value::String(text) => check("maxLength", text.chars().count()),
        Value::Array(items) => {
            check("maxItems", items.len());
            for item in items {
                compare(&schema["items"], item, path, found);
            }
        }
        Value::Object(members) => {
            check("maxProperties", members.len());
            for (key, value) in members {
                let property = schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]);
                compare(property, value, &format!("{path}.{key}"), found);
            }
        }
        _ => {}
    }
}
