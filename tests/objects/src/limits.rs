//! Whether a value fits its schema, as the API server checks it.

use std::fmt;

use serde_json::Value;

/// The limits of a schema that a value exceeds, by path: more characters, items or members than it allows. The API server
/// rejects such a value as a whole.
#[must_use]
pub fn exceeded_limits(schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    compare(schema, value, &Path { parent: None, name: path }, &mut found);
    found
}

/// Where a value is. Only what exceeds a limit has its path written.
struct Path<'a> {
    parent: Option<&'a Self>,
    name: &'a str,
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}.")?;
        }
        f.write_str(self.name)
    }
}

fn compare(schema: &Value, value: &Value, path: &Path<'_>, found: &mut Vec<String>) {
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
                compare(property, value, &Path { parent: Some(path), name: key }, found);
            }
        }
        _ => {}
    }
}
