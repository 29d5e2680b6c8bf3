//! Policies as text, with their elements in the usual order.

use serde_json::Value;

/// The elements of policies and statements in the order in which the documentation of AWS has them.
const ORDER: [&str; 8] =
    ["Version", "Statement", "Sid", "Effect", "Principal", "Action", "Resource", "Condition"];

/// A value with an indentation of two spaces, and the end of its last line.
#[must_use]
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, 0);
    out.push('\n');
    out
}

fn write(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let mut all: Vec<_> = members.iter().collect();
            let place = |name: &str| ORDER.iter().position(|own| *own == name).unwrap_or(ORDER.len());
            all.sort_by_key(|(name, _)| place(name));
            let lines = all.into_iter().map(|(name, member)| (Some(name), member));
            lines_of(out, ['{', '}'], lines, depth);
        }
        Value::Array(items) if !items.is_empty() => {
            lines_of(out, ['[', ']'], items.iter().map(|item| (None, item)), depth);
        }
        other => out.push_str(&other.to_string()),
    }
}

fn lines_of<'a>(
    out: &mut String,
    [open, close]: [char; 2],
    lines: impl Iterator<Item = (Option<&'a String>, &'a Value)>,
    depth: usize,
) {
    out.push(open);
    for (index, (name, value)) in lines.enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(depth + 1));
        if let Some(name) = name {
            out.push_str(&Value::from(name.as_str()).to_string());
            out.push_str(": ");
        }
        write(out, value, depth + 1);
    }
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push(close);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_the_value_in_the_usual_order() {
        let value = json!({
            "Statement": [{"Resource": "*", "Effect": "Allow", "Sid": "A\"", "Action": [], "Condition": {"b": 1, "a": true}}],
            "Version": "2012-10-17",
        });
        let text = text(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        let names: Vec<&str> = text.split('"').filter(|part| ORDER.contains(part)).collect();
        assert_eq!(names, ["Version", "Statement", "Sid", "Effect", "Action", "Resource", "Condition"]);
    }
}
