//! Versions of the API are additive: what the definitions of the previous release accept, today's accept
//! (docs/contributors/decisions-api.md, "API versions are additive, with conversion strategy `None`").

#![cfg(test)]

use capasg_api::crd;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

/// What users of the previous release installed.
const BEFORE: &str =
    include_str!("../../tests/fixtures/infrastructure-asg/v0.3.0/infrastructure-components.yaml");

/// Keywords of which a lower value accepts more.
const LEAST: [&str; 4] = ["minimum", "minItems", "minLength", "minProperties"];
/// Keywords of which a higher value accepts more.
const MOST: [&str; 4] = ["maximum", "maxItems", "maxLength", "maxProperties"];
/// Keywords that decide how objects are stored and merged, or what a text must look like.
const FIXED: [&str; 7] = [
    "type",
    "format",
    "pattern",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

/// Why `new` does not accept everything that `old` accepts, or stores it in another way.
fn narrowed(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    for keyword in FIXED.into_iter().filter(|keyword| old[*keyword] != new[*keyword]) {
        found.push(format!("{path}: {keyword} is {} instead of {}", new[keyword], old[keyword]));
    }
    let tightens = |keyword: &str, is_tighter: fn(f64, f64) -> bool| match new[keyword].as_f64() {
        None => false,
        Some(now) => old[keyword].as_f64().is_none_or(|before| is_tighter(now, before)),
    };
    for keyword in LEAST.into_iter().filter(|keyword| tightens(keyword, |now, before| now > before)) {
        found.push(format!("{path}: {keyword} rises to {}", new[keyword]));
    }
    for keyword in MOST.into_iter().filter(|keyword| tightens(keyword, |now, before| now < before)) {
        found.push(format!("{path}: {keyword} falls to {}", new[keyword]));
    }
    let list = |schema: &Value, keyword: &str| schema[keyword].as_array().cloned().unwrap_or_default();
    if new["enum"].is_array() {
        let (before, now) = (list(old, "enum"), list(new, "enum"));
        let gone = before.iter().filter(|value| !now.contains(value));
        found.extend(gone.map(|value| format!("{path}: {value} is no value any more")));
        if before.is_empty() {
            found.push(format!("{path}: only some values are accepted"));
        }
    }
    let required = list(old, "required");
    let more = list(new, "required").into_iter().filter(|name| !required.contains(name));
    found.extend(more.map(|name| format!("{path}: {name} is required")));
    let texts = |schema: &Value| -> Vec<Value> {
        list(schema, "x-kubernetes-validations").into_iter().map(|rule| rule["rule"].clone()).collect()
    };
    let rules = texts(old);
    found.extend(
        texts(new)
            .into_iter()
            .filter(|rule| !rules.contains(rule))
            .map(|rule| format!("{path}: rule {rule}")),
    );
    for (name, before) in old["properties"].as_object().into_iter().flatten() {
        if texts(old).iter().any(|rule| *rule == format!("!has(self.{name})")) {
            // Any value was rejected.
            continue;
        }
        match new["properties"].get(name) {
            Some(now) => narrowed(&format!("{path}.{name}"), before, now, found),
            None => found.push(format!("{path}.{name} is gone")),
        }
    }
    for (below, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if old[below].is_object() {
            narrowed(&format!("{path}{suffix}"), &old[below], &new[below], found);
        }
    }
}

fn definitions_before() -> Vec<CustomResourceDefinition> {
    BEFORE
        .split("\n---\n")
        .filter(|document| document.contains("\nkind: CustomResourceDefinition\n"))
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .collect()
}

#[test]
fn the_definitions_accept_what_those_of_the_previous_release_accept() {
    let today = crd::crds();
    let before = definitions_before();
    let kinds: Vec<&str> = before.iter().map(|crd| crd.spec.names.kind.as_str()).collect();
    assert_eq!(kinds, ["ASGMachinePool", "ASGMachinePoolTemplate", "ASGMachine"]);
    let mut found = Vec::new();
    for old in before {
        let new = today.iter().find(|new| new.metadata.name == old.metadata.name).unwrap();
        for version in &old.spec.versions {
            let now = new.spec.versions.iter().find(|now| now.name == version.name);
            let now = now.unwrap_or_else(|| panic!("{} is not served any more", version.name));
            let schema = |of: &Value| of["schema"]["openAPIV3Schema"].clone();
            let (old_schema, new_schema) = (
                schema(&serde_json::to_value(version).unwrap()),
                schema(&serde_json::to_value(now).unwrap()),
            );
            assert!(old_schema["properties"]["spec"].is_object());
            narrowed(&old.spec.names.kind, &old_schema, &new_schema, &mut found);
        }
    }
    assert_eq!(found, [""; 0]);
}

#[test]
fn no_definition_has_a_conversion_webhook() {
    for crd in crd::crds() {
        let strategy =
            crd.spec.conversion.map_or_else(|| "None".to_owned(), |conversion| conversion.strategy);
        assert_eq!(strategy, "None", "{:?}", crd.metadata.name);
    }
}

#[test]
fn every_way_to_accept_less_is_found() {
    let old = json!({
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": { "type": "string", "maxLength": 8, "enum": ["One", "Two"] },
            "b": { "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set" },
            "c": { "type": "integer", "minimum": 1 },
        },
    });
    let edits: [(&str, Value, &str); 9] = [
        ("/properties/a/type", json!("integer"), "x.a: type is"),
        ("/properties/a/maxLength", json!(7), "x.a: maxLength falls to 7"),
        ("/properties/a/enum", json!(["One"]), "x.a: \"Two\" is no value any more"),
        ("/properties/b/items", json!({ "type": "object" }), "x.b[]: type is"),
        ("/properties/b/items", json!({ "type": "string", "minLength": 1 }), "x.b[]: minLength rises to 1"),
        ("/properties/b/x-kubernetes-list-type", json!("atomic"), "x.b: x-kubernetes-list-type is"),
        ("/properties/c/minimum", json!(2), "x.c: minimum rises to 2"),
        ("/required", json!(["a", "b"]), "x: \"b\" is required"),
        ("/properties", json!({}), "x.a is gone"),
    ];
    for (place, value, expected) in edits {
        let mut new = old.clone();
        *new.pointer_mut(place).unwrap() = value;
        let mut found = Vec::new();
        narrowed("x", &old, &new, &mut found);
        assert!(found.iter().any(|one| one.starts_with(expected)), "{place}: {found:?}");
    }
    let mut ruled = old.clone();
    ruled["x-kubernetes-validations"] = json!([{ "rule": "has(self.b)", "message": "b" }]);
    let mut wider = old.clone();
    wider["properties"]["a"] = json!({ "type": "string", "maxLength": 9, "enum": ["One", "Two", "Three"] });
    wider["properties"]["d"] = json!({ "type": "string" });
    for (new, count) in [(ruled, 1), (wider, 0), (old.clone(), 0)] {
        let mut found = Vec::new();
        narrowed("x", &old, &new, &mut found);
        assert_eq!(found.len(), count, "{found:?}");
    }
}
