//! Small edits of JSON objects by path, such as `spec/subnets/0/id`.

use serde_json::Value;

/// The object with a value at a path; members on the way are made.
#[must_use]
pub fn with(mut object: Value, path: &str, value: impl Into<Value>) -> Value {
    *at(&mut object, path) = value.into();
    object
}

/// The object without the member at a path.
#[must_use]
pub fn without(mut object: Value, path: &str) -> Value {
    let (parent, member) = path.rsplit_once('/').unwrap_or(("", path));
    if let Value::Object(members) = at(&mut object, parent) {
        members.remove(member);
    }
    object
}

fn at<'a>(object: &'a mut Value, path: &str) -> &'a mut Value {
    path.split('/').filter(|step| !step.is_empty()).fold(object, |value, step| match step.parse::<usize>() {
        Ok(index) if value.is_array() => &mut value[index],
        _ => &mut value[step],
    })
}
