//! The API reference: the schemas of the CRDs as Markdown, so that the description of a field is written once.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
};

/// The folder of the pages with fields, from that of the page `index`.
const FOLDER: &str = "api";
const GENERATED: &str = "Generated from the custom resource definitions by `make generate`; do not edit.";
/// What descriptions say about a change of a field, and the word for it in the column `change`.
const EFFECTS: [(&str, &str); 3] = [
    ("Changes apply in place.", "in place"),
    ("A change makes running instances outdated.", "**outdated**"),
    ("Immutable.", "immutable"),
];

/// The pages of all CRDs by their paths: the page `index`, and one page each for the spec and the status of a kind.
#[must_use]
pub fn pages(definitions: &[CustomResourceDefinition], index: &str) -> Vec<(String, String)> {
    let mut pages = Vec::new();
    let mut text = format!(
        "# API reference\n\n{GENERATED} `kubectl explain` prints the same descriptions in a cluster.\n\n\
         | kind | short name | fields | |\n| --- | --- | --- | --- |\n"
    );
    for definition in definitions {
        let names = &definition.spec.names;
        let made = names.kind.strip_suffix("Template");
        let of = made.and_then(|kind| definitions.iter().find(|other| other.spec.names.kind == kind));
        for version in &definition.spec.versions {
            let Some(schema) = schema_of(version) else { continue };
            let mut links = Vec::new();
            for part in ["spec", "status"] {
                let Some(schema_of_part) = at(schema, &[part]) else { continue };
                let path = format!("{FOLDER}/{}-{part}.md", names.kind.to_lowercase());
                links.push(format!("[{part}]({path})"));
                pages.push((path, page(definition, &version.name, schema, (part, schema_of_part), of)));
            }
            let short = names.short_names.iter().flatten().map(|name| format!("`{name}`"));
            let row = format!(
                "| `{}` of `{}/{}` | {} | {} | {} |",
                names.kind,
                definition.spec.group,
                version.name,
                short.collect::<Vec<_>>().join(", "),
                links.join(", "),
                prose(schema.description.as_deref())
            );
            line(&mut text, &row);
        }
    }
    text.push_str("\nPaths begin below `spec` or `status`; `[]` stands for each item of a list.");
    if pages.iter().any(|(_, page)| page.contains("| change |")) {
        text.push_str(
            " The column *change* says what a change of the field does to an object that exists: *in place* changes \
             nothing about running instances, *outdated* has a rollout replace them, and *immutable* is rejected. \
             Where it is empty, see the meaning.",
        );
    }
    text.push('\n');
    pages.insert(0, (index.to_owned(), text));
    pages
}

fn schema_of(version: &CustomResourceDefinitionVersion) -> Option<&JSONSchemaProps> {
    version.schema.as_ref()?.open_api_v3_schema.as_ref()
}

/// The page of the spec or the status of one kind. The spec that a template has in common with the kind `of` which it
/// creates is described there.
fn page(
    definition: &CustomResourceDefinition,
    version: &str,
    schema: &JSONSchemaProps,
    (part, schema_of_part): (&str, &JSONSchemaProps),
    of: Option<&CustomResourceDefinition>,
) -> String {
    let kind = &definition.spec.names.kind;
    let mut text = format!("# {kind}: {part}\n\n{GENERATED}\n\n");
    line(
        &mut text,
        &format!("`apiVersion: {}/{version}`. {}\n", definition.spec.group, {
            prose(schema_of_part.description.as_deref())
        }),
    );
    let with_change = part == "spec" && names_an_effect(schema_of_part);
    let mut rows = Rows { text, with_change, last: of.map(|_| "template.spec") };
    rows.head();
    rows.fields(schema_of_part, "");
    let mut text = rows.text;
    if part != "spec" {
        return text;
    }
    if let Some(of) = of {
        template_spec(&mut text, schema, of);
        return text;
    }
    let mut rules = Vec::new();
    collect_rules(schema, &mut rules);
    if !rules.is_empty() {
        line(&mut text, "\n## Validation rules\n");
        for rule in rules {
            line(&mut text, &format!("* {rule}"));
        }
    }
    text
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

/// Whether a description below a schema says what a change does.
fn names_an_effect(schema: &JSONSchemaProps) -> bool {
    let description = prose(schema.description.as_deref());
    EFFECTS.iter().any(|(sentence, _)| description.contains(sentence))
        || schema.properties.iter().flat_map(|fields| fields.values()).any(names_an_effect)
        || item_of(schema).is_some_and(names_an_effect)
}

/// The rows of a table of fields.
struct Rows {
    text: String,
    /// Whether there is a column for what a change does.
    with_change: bool,
    /// The path below which fields are described elsewhere.
    last: Option<&'static str>,
}

impl Rows {
    fn head(&mut self) {
        let change = if self.with_change { (" change |", " --- |") } else { ("", "") };
        line(&mut self.text, &format!("| field | type | limits |{} meaning |", change.0));
        line(&mut self.text, &format!("| --- | --- | --- |{} --- |", change.1));
    }

    /// One row for each field, with the path from spec or status; lists show as `[]`.
    fn fields(&mut self, schema: &JSONSchemaProps, path: &str) {
        for (name, field) in schema.properties.iter().flatten() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let required = schema.required.iter().flatten().any(|required| required == name);
            self.row(&path, field, required);
            // A condition is a condition everywhere.
            if name == "conditions" || self.last == Some(path.as_str()) {
                continue;
            }
            self.fields(field, &path);
            if let Some(item) = item_of(field) {
                self.fields(item, &format!("{path}[]"));
            }
        }
    }

    fn row(&mut self, path: &str, field: &JSONSchemaProps, required: bool) {
        let mut meaning = prose(field.description.as_deref());
        let mut change = String::new();
        if self.with_change {
            if let Some((sentence, word)) = EFFECTS.iter().find(|(sentence, _)| meaning.contains(sentence)) {
                let others = meaning.replace(sentence, "");
                meaning = others.split_whitespace().collect::<Vec<_>>().join(" ");
                (*word).clone_into(&mut change);
            }
            change += " | ";
        }
        let required = if required { " (required)" } else { "" };
        let row =
            format!("| `{path}`{required} | {} | {} | {change}{meaning} |", type_of(field), limits(field));
        line(&mut self.text, &row);
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
        // In Markdown, `<name>` would be an HTML tag.
        let message = rule.message.as_ref().map(|message| message.replace('<', "\\<"));
        rules.push(message.unwrap_or_else(|| format!("`{}`", rule.rule)));
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
        let pages = pages(&capasg_api::crd::crds(), "api.md");
        let page = |path: &str| {
            let found = pages.iter().find(|(known, _)| known == path);
            found.map(|(_, text)| text.as_str()).unwrap_or_default()
        };
        for (path, expected) in [
            ("api.md", "[spec](api/asgmachinepool-spec.md), [status](api/asgmachinepool-status.md)"),
            ("api/asgmachine-status.md", "# ASGMachine: status"),
            ("api/asgmachinepool-spec.md", "| `machine.image.id` | string |"),
            ("api/asgmachinepool-spec.md", "| `subnets[].tags` | map of strings |"),
            ("api/asgmachinepool-spec.md", "| `providerIDList` | list of string | at most 10000 items; "),
            ("api/asgmachinepool-spec.md", "| `instanceTypes[].type` (required) | string |"),
            ("api/asgmachinepool-spec.md", "* spec.instanceTypes: must not contain a type twice"),
            ("api/asgmachinepool-spec.md", "* spec.subnets[]: set exactly one of id and tags"),
            ("api/asgmachinepool-spec.md", "| **outdated** | "),
            ("api/asgmachinepooltemplate-spec.md", "| `template.metadata.labels` | map of strings |"),
            (
                "api/asgmachinepooltemplate-spec.md",
                "except `adoptionPolicy`, `group.name`, `providerID`, `providerIDList`. All of its validation rules apply",
            ),
        ] {
            assert!(page(path).contains(expected), "{path} does not contain {expected}:\n{}", page(path));
        }
        assert!(!page("api/asgmachinepooltemplate-spec.md").contains("`template.spec.region`"));
        for (path, text) in &pages {
            let columns = if text.contains("| change |") { 6 } else { 5 };
            for row in text.lines().filter(|line| line.starts_with("| `")) {
                assert_eq!(row.replace("\\|", "").matches('|').count(), columns, "{path}: {row}");
            }
        }
    }
}
