//! The schema of `ASGMachinePoolTemplate`, derived from that of the pool, so that the two cannot differ by mistake.

use schemars::{JsonSchema as _, Schema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::ASGMachinePoolSpec;

/// The paths of the fields that are specific to one pool: those that the controller writes, a name that two pools of one
/// template cannot share (J3), and the adoption of a group with that name.
const OF_ONE_POOL: [&[&str]; 4] =
    [&["providerID"], &["providerIDList"], &["group", "name"], &["adoptionPolicy"]];

/// The keyword of the API server's validation rules.
const RULES: &str = "x-kubernetes-validations";

/// The schema of `ASGMachinePool.spec` in a template: without the fields that are specific to one pool, and without the
/// rules on changes, since a template may be edited (J1, J2). All other rules and limits apply, so that an invalid template
/// is rejected when it is written and not when a pool is created from it.
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

/// Keeps the rules that a template can be validated by, with the path of the template in their messages.
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

/// Whether a rule is neither on a change nor on a field that templates do not have: otherwise the rule would not compile, and
/// the API server would reject the definition. Nor does a rule apply that compares with the region, which a `ClusterClass`
/// patches for each Cluster.
fn holds_for_template(rule: &str) -> bool {
    !rule.contains("oldSelf")
        && !["self.providerID", "self.group.name", "self.region"].iter().any(|field| rule.contains(field))
}

/// A message with the paths of a template: `spec.template.spec.minSize: ...`.
#[must_use]
pub fn message_of_template(message: &str) -> String {
    message.replace("spec.", "spec.template.spec.")
}

#[cfg(test)]
mod tests {
    use super::*;

    // Rules: J2
    #[test]
    fn rules_on_changes_and_on_missing_fields_are_removed() {
        for (rule, kept) in [
            ("self == oldSelf", false),
            ("!has(self.providerID) || self.region == self.providerID.split(':')[3]", false),
            ("self.kmsKeyID.contains(':kms:' + self.region + ':')", false),
            ("!has(self.minSize) || !has(self.maxSize) || self.minSize <= self.maxSize", true),
            ("has(self.id) != has(self.tags)", true),
        ] {
            assert_eq!(holds_for_template(rule), kept, "{rule}");
        }
    }

    #[test]
    fn messages_name_the_path_in_the_template() {
        assert_eq!(
            message_of_template("spec.minSize: must not be greater than spec.maxSize"),
            "spec.template.spec.minSize: must not be greater than spec.template.spec.maxSize"
        );
    }
}
