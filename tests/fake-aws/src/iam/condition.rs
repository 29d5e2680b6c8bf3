//! The condition operators of policies ("IAM JSON policy elements: Condition operators").

use std::collections::BTreeMap;

use serde_json::Value;

use super::{matching, values::texts};

/// One key of one operator, with the values of which one must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    operator: Operator,
    negated: bool,
    set: Option<Set>,
    if_exists: bool,
    /// In lower case: names of condition keys are not case sensitive.
    key: String,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    StringEquals,
    StringEqualsIgnoreCase,
    StringLike,
    /// `ArnEquals` and `ArnLike` behave identically.
    ArnLike,
    Bool,
    Null,
}

/// How a key with several values is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    ForAllValues,
    ForAnyValue,
}

impl Condition {
    /// Reads the element `Condition`.
    pub(super) fn parse_all(value: &Value) -> Result<Vec<Self>, String> {
        let operators = value.as_object().ok_or("Condition is an object")?;
        let mut all = Vec::new();
        for (name, keys) in operators {
            let (operator, negated, set, if_exists) = operator(name)?;
            for (key, values) in keys.as_object().ok_or("an operator has an object")? {
                let (key, values) = (key.to_lowercase(), texts(values)?);
                all.push(Self { operator, negated, set, if_exists, key, values });
            }
        }
        Ok(all)
    }

    pub(super) fn holds(&self, context: &BTreeMap<String, Vec<String>>) -> bool {
        let given = context.get(&self.key).filter(|values| !values.is_empty());
        if self.operator == Operator::Null {
            return self.values.iter().any(|value| (value == "true") == given.is_none());
        }
        let Some(given) = given else {
            return match self.set {
                // "It also returns true if there are no context keys in the request."
                Some(Set::ForAllValues) => true,
                Some(Set::ForAnyValue) => self.if_exists,
                // "Negated matching: if the key is not present, the condition evaluates to true."
                None => self.if_exists || self.negated,
            };
        };
        let hit =
            |value: &String| self.values.iter().any(|wanted| self.matches(wanted, value)) != self.negated;
        match self.set {
            Some(Set::ForAllValues) => given.iter().all(hit),
            Some(Set::ForAnyValue) => given.iter().any(hit),
            // A key with several values and an operator for one value: AWS warns of such policies, and nothing matches.
            None => given.len() == 1 && given.iter().all(hit),
        }
    }

    fn matches(&self, wanted: &str, value: &str) -> bool {
        match self.operator {
            Operator::StringEquals => wanted == value,
            Operator::StringEqualsIgnoreCase | Operator::Bool => wanted.eq_ignore_ascii_case(value),
            Operator::StringLike => matching::like(wanted, value),
            Operator::ArnLike => matching::arn_like(wanted, value),
            Operator::Null => false,
        }
    }
}

/// An operator by its name: whether it is negated, its set operator, and whether it has `IfExists`.
fn operator(name: &str) -> Result<(Operator, bool, Option<Set>, bool), String> {
    let (set, rest) = match name.split_once(':') {
        Some(("ForAllValues", rest)) => (Some(Set::ForAllValues), rest),
        Some(("ForAnyValue", rest)) => (Some(Set::ForAnyValue), rest),
        Some(_) => return Err(format!("the operator {name} is not known")),
        None => (None, name),
    };
    let (base, if_exists) = match rest.strip_suffix("IfExists") {
        Some(base) => (base, true),
        None => (rest, false),
    };
    let (operator, negated) = match base {
        "StringEquals" => (Operator::StringEquals, false),
        "StringNotEquals" => (Operator::StringEquals, true),
        "StringEqualsIgnoreCase" => (Operator::StringEqualsIgnoreCase, false),
        "StringNotEqualsIgnoreCase" => (Operator::StringEqualsIgnoreCase, true),
        "StringLike" => (Operator::StringLike, false),
        "StringNotLike" => (Operator::StringLike, true),
        "ArnEquals" | "ArnLike" => (Operator::ArnLike, false),
        "ArnNotEquals" | "ArnNotLike" => (Operator::ArnLike, true),
        "Bool" => (Operator::Bool, false),
        // "You can add IfExists to the end of any condition operator name except the Null condition."
        "Null" if !if_exists => (Operator::Null, false),
        _ => return Err(format!("the operator {name} is not known")),
    };
    Ok((operator, negated, set, if_exists))
}
