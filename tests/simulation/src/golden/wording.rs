//! What of an object is no wording, and how two such objects differ.

use serde::Serialize;
use serde_json::{Map, Value};

/// An object as JSON without what is only wording or bookkeeping.
pub(super) fn stripped<T: Serialize>(object: &T) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = member(&mut value, "metadata") {
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
    }
    if let Some(status) = value.get_mut("status") {
        strip(status);
    }
    value
}

fn member<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    value.get_mut(name).and_then(Value::as_object_mut)
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("message");
            members.remove("reason");
            for (name, member) in members {
                if name == "pendingChanges" {
                    phrases(member);
                } else {
                    strip(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Phrases come down to their digits; paths, ids and values stay.
fn phrases(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(' ') => text.retain(|letter| letter.is_ascii_digit()),
        Value::Array(items) => items.iter_mut().for_each(phrases),
        Value::Object(members) => members.values_mut().for_each(phrases),
        _ => {}
    }
}

/// The leaves that differ, as `path=value after`.
pub(super) fn differences(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(old), Value::Object(new)) => {
            let gone = old.keys().filter(|name| !new.contains_key(*name));
            for name in new.keys().chain(gone) {
                let [old, new] = [old, new].map(|members| members.get(name).unwrap_or(&Value::Null));
                differences(&format!("{path}.{name}"), old, new, found);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                let index = new.get("type").and_then(Value::as_str).map_or(index.to_string(), str::to_owned);
                differences(&format!("{path}[{index}]"), old, new, found);
            }
        }
        _ => found.push(format!("{path}={after}")),
    }
}
