//! The JSON protocol of Service Quotas, Systems Manager and SQS.

use serde_json::{Value, json};

use crate::{
    ApiError, Service, Tree,
    facts::{ServiceFacts, Shape},
};

/// Reads a JSON body into a tree.
///
/// # Errors
/// A body that is no JSON object.
pub fn parse(body: &str) -> Result<Tree, ApiError> {
    let malformed = |_| ApiError::refused("SerializationException", "The body is not valid JSON.");
    let value: Value = serde_json::from_str(if body.is_empty() { "{}" } else { body }).map_err(malformed)?;
    Ok(tree(&value).unwrap_or_default())
}

fn tree(value: &Value) -> Option<Tree> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.into()),
        Value::Array(items) => Some(Tree::List(items.iter().filter_map(tree).collect())),
        Value::Object(members) => Some(Tree::Map(
            members
                .iter()
                .filter_map(|(name, value)| tree(value).map(|value| (name.clone(), value)))
                .collect(),
        )),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string().into()),
    }
}

/// Writes a reply.
///
/// # Errors
/// A member that the service model does not have: a bug of the simulator, told instead of dropped.
pub fn reply(service: Service, action: &str, reply: &Tree) -> Result<String, ApiError> {
    let facts = ServiceFacts::of(service);
    let output = facts.operations.get(action).and_then(|operation| operation.output.as_deref());
    let value = match output {
        Some(output) => value(facts, Shape::Structure(output), reply)?,
        None => json!({}),
    };
    Ok(value.to_string())
}

fn value(facts: &ServiceFacts, shape: Shape<'_>, tree: &Tree) -> Result<Value, ApiError> {
    let bug =
        |what: &str| ApiError::new(500, "SimulatorBug", format!("The reply has a wrong member {what}."));
    match (shape, tree) {
        (Shape::Structure(structure), Tree::Map(members)) => members
            .iter()
            .map(|(name, own)| {
                let member = facts.member(structure, name).ok_or_else(|| bug(name))?;
                Ok((name.clone(), value(facts, member.shape, own)?))
            })
            .collect(),
        (Shape::List { item, .. }, Tree::List(items)) => {
            items.iter().map(|own| value(facts, facts.shape(item), own)).collect()
        }
        (Shape::Map(of), Tree::Map(members)) => members
            .iter()
            .map(|(name, own)| Ok((name.clone(), value(facts, facts.shape(of), own)?)))
            .collect(),
        (Shape::Scalar(kind, _), Tree::Text(text)) => match kind {
            "boolean" => text.parse().map(Value::Bool).map_err(|_| bug(text)),
            "integer" | "long" => text.parse::<i64>().map(Value::from).map_err(|_| bug(text)),
            "float" | "double" => text.parse::<f64>().map(Value::from).map_err(|_| bug(text)),
            // Times are seconds since 1970.
            "timestamp" => chrono::DateTime::parse_from_rfc3339(text)
                .map(|time| Value::from(time.timestamp()))
                .map_err(|_| bug(text)),
            _ => Ok(Value::String(text.clone())),
        },
        _ => Err(bug("of another kind")),
    }
}

/// Writes an error.
#[must_use]
pub fn error(error: &ApiError) -> String {
    json!({"__type": error.code, "message": error.message}).to_string()
}
