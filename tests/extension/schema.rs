//! Whether an object has the form that the structural schema of its definition requires. Patterns and CEL rules are not
//! evaluated: the API server is what does, and `tests/e2e` uses it.

use serde_json::{Value, json};

/// What the schema of the definition rejects about an object, each with its path.
pub fn rejections(kind: &str, object: &Value) -> Vec<String> {
    let definition = capasg_api::crd::crds().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    let definition = serde_json::to_value(definition).unwrap();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut found = Vec::new();
    // What every object has is not in the schema of its definition.
    for (name, value) in object.as_object().unwrap() {
        if !["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            check(name, &schema["properties"][name], value, &mut found);
        }
    }
    found
}

/// The same for the fields of a `KubeadmConfigTemplate` that patches of the extension change, with the limits of v1beta2. The
/// definition of kubeadm's bootstrap provider is not here.
pub fn rejections_of_bootstrap(object: &Value) -> Vec<String> {
    let text = |longest: u32| json!({"type": "string", "minLength": 1, "maxLength": longest});
    let file_system = json!({
        "type": "object", "required": ["device", "filesystem"],
        "properties": {
            "device": text(256), "filesystem": text(128), "label": text(512), "partition": text(128),
            "overwrite": {"type": "boolean"},
        },
    });
    let schemas = json!({
        "diskSetup": {
            "type": "object", "properties": {"filesystems": {"type": "array", "maxItems": 100, "items": file_system}},
        },
        "mounts": {
            "type": "array", "minItems": 1, "maxItems": 100,
            "items": {"type": "array", "minItems": 1, "maxItems": 100, "items": text(512)},
        },
    });
    let mut found = Vec::new();
    for (name, schema) in schemas.as_object().unwrap() {
        check(name, schema, &object["spec"]["template"]["spec"][name], &mut found);
    }
    found
}

fn check(path: &str, schema: &Value, value: &Value, found: &mut Vec<String>) {
    if schema.is_null() {
        return found.push(format!("{path}: is no field"));
    }
    let is_of_type = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64(),
        Some("boolean") => value.is_boolean(),
        _ => schema["x-kubernetes-int-or-string"] == true && (value.is_i64() || value.is_string()),
    };
    if !is_of_type {
        return found.push(format!("{path}: has another type: {value}"));
    }
    if schema["enum"].as_array().is_some_and(|values| !values.contains(value)) {
        found.push(format!("{path}: is none of the values: {value}"));
    }
    for (limit, size, is_beyond) in [
        ("minimum", value.as_f64(), f64::lt as fn(&f64, &f64) -> bool),
        ("maximum", value.as_f64(), f64::gt),
        ("minLength", size_of(value.as_str().map(str::len)), f64::lt),
        ("maxLength", size_of(value.as_str().map(str::len)), f64::gt),
        ("minItems", size_of(value.as_array().map(Vec::len)), f64::lt),
        ("maxItems", size_of(value.as_array().map(Vec::len)), f64::gt),
        ("maxProperties", size_of(value.as_object().map(serde_json::Map::len)), f64::gt),
    ] {
        if let (Some(bound), Some(size)) = (schema[limit].as_f64(), size)
            && is_beyond(&size, &bound)
        {
            found.push(format!("{path}: {limit} is {bound}: {value}"));
        }
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            found.push(format!("{path}.{name}: is required"));
        }
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let of_all = &schema["additionalProperties"];
        let schema = schema["properties"].get(name).unwrap_or(of_all);
        check(&format!("{path}.{name}"), schema, member, found);
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(&format!("{path}[{index}]"), &schema["items"], item, found);
    }
}

fn size_of(length: Option<usize>) -> Option<f64> {
    length.and_then(|length| u32::try_from(length).ok()).map(f64::from)
}

#[test]
fn what_has_another_form_is_rejected() {
    let template = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let valid = json!({
        "region": "eu-west-1", "subnets": [{"id": "subnet-1"}], "instanceTypes": [{"type": "m7i.large"}],
        "machine": {"image": {"id": "ami-1"}, "securityGroups": [{"id": "sg-1"}]},
    });
    assert_eq!(rejections("ASGMachinePoolTemplate", &template(valid.clone())), Vec::<String>::new());
    for (field, value, expected) in [
        ("region", json!(7), "spec.template.spec.region: has another type: 7"),
        (
            "instancesDistribution",
            json!({"spotMaxPrice": ""}),
            "spec.template.spec.instancesDistribution.spotMaxPrice: minLength is 1: \"\"",
        ),
        ("subnets", json!([]), "spec.template.spec.subnets: minItems is 1: []"),
        ("other", json!({}), "spec.template.spec.other: is no field"),
        ("machine", json!({"image": {}}), "spec.template.spec.machine.securityGroups: is required"),
        (
            "deletionPolicy",
            json!("Keep"),
            "spec.template.spec.deletionPolicy: is none of the values: \"Keep\"",
        ),
    ] {
        let mut spec = valid.clone();
        spec[field] = value;
        assert_eq!(rejections("ASGMachinePoolTemplate", &template(spec)), [expected]);
    }
}
