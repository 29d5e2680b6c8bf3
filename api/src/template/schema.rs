//! The schema of a template's pool, made from that of the pool itself, so that the two never differ by accident.

use schemars::{JsonSchema as _, Schema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::ASGMachinePoolSpec;

/// Fields that belong to one pool alone, by the members on the way: what the controller writes, a name that two pools of
/// one template cannot share (J3), and what is done with a group of that name.
const OF_ONE_POOL: [&[&str]; 4] =
    [&["providerID"], &["providerIDList"], &["group", "name"], &["adoptionPolicy"]];

/// The keyword of the API server's validation rules.
const RULES: &str = "x-kubernetes-validations";

/// The schema of `ASGMachinePool.spec` as it stands in a template: without the fields of one pool alone, and without the
/// rules on changes, since a template may be edited (J1, J2). All other rules and limits hold, so that a wrong template
/// is refused when it is written and not when a pool is made from it.
pub(super) fn of_template(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = ASGMachinePoolSpec::json_schema(generator);
    let root = schema.ensure_object();
    for path in OF_ONE_POOL {
        remove(root, path);
    }
    rules_of_template(root);
    schema
}

fn remove(schema: &mut Map<String, Value>, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else { return };
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    if rest.is_empty() {
        properties.remove(*first);
    } else if let Some(member) = properties.get_mut(*first).and_then(Value::as_object_mut) {
        remove(member, rest);
    }
}

/// Keeps the rules that judge a template by itself, their messages with the path that the field has there.
fn rules_of_template(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(rules)) = schema.get_mut(RULES) {
        rules.retain(|rule| rule["rule"].as_str().is_some_and(holds_for_template));
        for rule in rules {
            if let Some(Value::String(message)) = rule.get_mut("message") {
                *message = message_of_template(message);
            }
        }
    }
    if schema.get(RULES).is_some_and(|rules| rules.as_array().is_some_and(Vec::is_empty)) {
        schema.remove(RULES);
    }
    for value in schema.values_mut() {
        match value {
            Value::Object(members) => rules_of_template(members),
            Value::Array(items) => {
                items.iter_mut().filter_map(Value::as_object_mut).for_each(rules_of_template);
            }
            _ => {}
        }
    }
}

/// Whether a rule is neither on a change nor on a field that templates lack. A rule that names such a field in other
/// words would not compile, and the API server would refuse the definition.
fn holds_for_template(rule: &str) -> bool {
    !rule.contains("oldSelf")
        && !["self.providerID", "self.group.name"].iter().any(|field| rule.contains(field))
}

/// `spec.minSize: must not be above spec.maxSize`, in the words of a template.
pub(crate) fn message_of_template(message: &str) -> String {
    message.replace("spec.", "spec.template.spec.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j2_rules_on_changes_and_on_what_templates_lack_go() {
        for (rule, kept) in [
            ("self == oldSelf", false),
            ("!has(self.providerID) || self.region == self.providerID.split(':')[3]", false),
            ("!has(self.minSize) || !has(self.maxSize) || self.minSize <= self.maxSize", true),
            ("has(self.id) != has(self.tags)", true),
        ] {
            assert_eq!(holds_for_template(rule), kept, "{rule}");
        }
    }

    #[test]
    fn messages_name_the_field_where_it_stands() {
        assert_eq!(
            message_of_template("spec.minSize: must not be above spec.maxSize"),
            "spec.template.spec.minSize: must not be above spec.template.spec.maxSize"
        );
    }
}
