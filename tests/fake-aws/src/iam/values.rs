//! Texts in policies, alone or in lists.

use serde_json::Value;

/// A text, or a list of them, which is not empty.
pub(super) fn texts(value: &Value) -> Result<Vec<String>, String> {
    let text = |value: &Value| match value {
        Value::String(text) if text.contains("${") => Err(format!("policy variables are not known: {text}")),
        Value::String(text) => Ok(text.clone()),
        Value::Bool(flag) => Ok(flag.to_string()),
        other => Err(format!("not a text: {other}")),
    };
    match value {
        Value::Array(all) if all.is_empty() => Err("a list is empty".to_owned()),
        Value::Array(all) => all.iter().map(text).collect(),
        one => Ok(vec![text(one)?]),
    }
}
