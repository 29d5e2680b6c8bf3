//! The API reference: the schemas of the CRDs as Markdown, so that the description of a field is written once.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};

/// The reference of all CRDs, one section each.
#[must_use]
pub fn markdown(definitions: &[CustomResourceDefinition]) -> String {
    let mut text = String::from(
        "# API reference\n\n\
         Generated from the custom resource definitions by `make generate`; do not edit. `kubectl explain` prints \
         the same descriptions in a cluster.\n",
    );
    for definition in definitions {
        let made = definition.spec.names.kind.strip_suffix("Template");
        let of = made.and_then(|kind| definitions.iter().find(|other| other.spec.names.kind == kind));
        section(&mut text, definition, of);
    }
    text
}

/// One kind. The spec that a template has in common with the kind `of` which it creates is described there.
fn section(text: &mut String, definition: &CustomResourceDefinition, of: Option<&CustomResourceDefinition>) {
    let names = &definition.spec.names;
    for version in &definition.spec.versions {
        let Some(schema) = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref())
        else {
            continue;
        };
        line(text, &format!("\n## {}\n", names.kind));
        let short: Vec<&str> = names.short_names.iter().flatten().map(String::as_str).collect();
        let (group, version) = (&definition.spec.group, &version.name);
        line(text, &format!("`apiVersion: {group}/{version}`, short name `{}`\n", short.join("`, `")));
        line(text, &prose(schema.description.as_deref()));
        for part in ["spec", "status"] {
            if let Some(schema) = schema.properties.as_ref().and_then(|properties| properties.get(part)) {
                line(text, &format!("\n### {}: {part}\n", names.kind));
                line(text, &prose(schema.description.as_deref()));
                line(text, "\n| field | type | limits | meaning |\n| --- | --- | --- | --- |");
                fields(text, schema, "", if of.is_some() { "template.spec" } else { "" });
            }
        }
        if let Some(of) = of {
            template_spec(text, schema, of);
            continue;
        }
        let mut rules = Vec::new();
        collect_rules(schema, &mut rules);
        if !rules.is_empty() {
            line(text, &format!("\n### {}: validation rules\n", names.kind));
            for rule in rules {
                line(text, &format!("* {rule}"));
            }
        }
    }
}

/// The difference between the spec of a template and that of the kind that it creates.
fn template_spec(text: &mut String, template: &JSONSchemaProps, of: &CustomResourceDefinition) {
    let made = &of.spec.names.kind;
    let spec = |schema: &JSONSchemaProps, path: &[&str]| {
        let mut paths = Vec::new();
        if let Some(schema) = at(schema, path) {
            paths_below(schema, "", &mut paths);
        }
        paths
    };
    let schema =
        of.spec.versions.first().and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
    let own = spec(template, &["spec", "template", "spec"]);
    let whole = schema.map(|schema| spec(schema, &["spec"])).unwrap_or_default();
    let missing: Vec<String> =
        whole.into_iter().filter(|path| !own.contains(path)).map(|path| format!("`{path}`")).collect();
    line(
        text,
        &format!(
            "\n`template.spec` has the fields of the spec of {made} except {}. All of its validation rules apply, \
             except those on changes: a template may be edited.",
            missing.join(", ")
        ),
    );
}

fn at<'a>(schema: &'a JSONSchemaProps, path: &[&str]) -> Option<&'a JSONSchemaProps> {
    path.iter().try_fold(schema, |schema, name| schema.properties.as_ref()?.get(*name))
}

fn paths_below(schema: &JSONSchemaProps, path: &str, paths: &mut Vec<String>) {
    for (name, field) in schema.properties.iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        paths_below(field, &path, paths);
        if let Some(item) = item_of(field) {
            paths_below(item, &format!("{path}[]"), paths);
        }
        paths.push(path);
    }
}

/// One row for each field, with the path from spec or status; lists show as `[]`, maps as `{}`. Fields below `last` are
/// described elsewhere.
fn fields(text: &mut String, schema: &JSONSchemaProps, path: &str, last: &str) {
    for (name, field) in schema.properties.iter().flatten() {
        // A condition is a condition everywhere.
        let known = name == "conditions";
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let required = schema.required.iter().flatten().any(|required| required == name);
        let row = format!(
            "| `{path}`{} | {} | {} | {} |",
            if required { " (required)" } else { "" },
            type_of(field),
            limits(field),
            prose(field.description.as_deref()),
        );
        line(text, &row);
        if known || path == last {
            continue;
        }
        fields(text, field, &path, last);
        if let Some(item) = item_of(field) {
            fields(text, item, &format!("{path}[]"), last);
        }
    }
}

fn type_of(field: &JSONSchemaProps) -> String {
    match (field.type_.as_deref(), item_of(field)) {
        (Some("array"), Some(item)) => format!("list of {}", type_of(item)),
        (Some("object"), _) if field.additional_properties.is_some() => "map of strings".to_owned(),
        (Some("string"), _) if field.format.as_deref() == Some("date-time") => "time".to_owned(),
        (Some(name), _) => name.to_owned(),
        (None, _) if field.x_kubernetes_int_or_string == Some(true) => "integer or string".to_owned(),
        (None, _) => "any".to_owned(),
    }
}

fn limits(field: &JSONSchemaProps) -> String {
    let mut limits = Vec::new();
    let mut range = |unit: &str, low: Option<String>, high: Option<String>| match (low, high) {
        (Some(low), Some(high)) => limits.push(format!("{low} to {high}{unit}")),
        (Some(low), None) => limits.push(format!("at least {low}{unit}")),
        (None, Some(high)) => limits.push(format!("at most {high}{unit}")),
        (None, None) => {}
    };
    let whole = |bound: Option<i64>| bound.map(|bound| bound.to_string());
    range("", field.minimum.map(|bound| bound.to_string()), field.maximum.map(|bound| bound.to_string()));
    range(" characters", whole(field.min_length), whole(field.max_length));
    range(" items", whole(field.min_items), whole(field.max_items));
    range(" entries", whole(field.min_properties), whole(field.max_properties));
    if let Some(values) = field.enum_.as_ref().or_else(|| item_of(field)?.enum_.as_ref()) {
        let values: Vec<String> =
            values.iter().map(|value| format!("`{}`", value.0.as_str().unwrap_or_default())).collect();
        limits.push(values.join(", "));
    }
    if let Some(pattern) = field.pattern.as_ref().or_else(|| item_of(field)?.pattern.as_ref()) {
        limits.push(format!("`{}`", pattern.replace('|', "\\|")));
    }
    limits.join("; ")
}

fn item_of(field: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match field.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(item) => Some(item),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

/// The messages of all validation rules below a schema, in the order of the fields.
fn collect_rules(schema: &JSONSchemaProps, rules: &mut Vec<String>) {
    for rule in schema.x_kubernetes_validations.iter().flatten() {
        rules.push(rule.message.clone().unwrap_or_else(|| format!("`{}`", rule.rule)));
    }
    for field in schema.properties.iter().flat_map(|properties| properties.values()) {
        collect_rules(field, rules);
    }
    if let Some(item) = item_of(schema) {
        collect_rules(item, rules);
    }
}

/// A description as one line that a table can hold.
fn prose(description: Option<&str>) -> String {
    description.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn line(text: &mut String, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_row_and_every_rule_a_line() {
        let text = markdown(&capasg_api::crd::crds());
        for expected in [
            "## ASGMachinePool",
            "### ASGMachine: status",
            "| `machine.image.id` | string |",
            "| `subnets[].tags` | map of strings |",
            "| `providerIDList` | list of string | at most 10000 items; ",
            "| `instanceTypes[].type` (required) | string |",
            "* spec.instanceTypes: must not contain a type twice",
            "* spec.subnets[]: set exactly one of id and tags",
            "| `template.metadata.labels` | map of strings |",
            "except `adoptionPolicy`, `group.name`, `providerID`, `providerIDList`. All of its validation rules apply",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
        for row in text.lines().filter(|line| line.starts_with("| `")) {
            assert_eq!(row.replace("\\|", "").matches('|').count(), 5, "{row}");
        }
    }
}
