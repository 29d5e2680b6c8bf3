//! Corrections of the derived CRDs, over the whole schema.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use crate::names::labels;

/// Corrects the generated CRD:
/// * adds the contract label (A3); the derive's own `label` would also set it on every object that `new` creates;
/// * removes `title`, which repeats the kind;
/// * removes `nullable`: the API server then drops a null instead of storing it, so that an absent and a null field are the
///   same;
/// * removes `default`: a status needs none, and accessors apply those of the spec, so that an absent field and a field with
///   the default value are treated alike, and server-side apply of the same object changes nothing (J4);
/// * removes the line breaks of the source from descriptions;
/// * removes null from the values of an enum, which `nullable` adds;
/// * replaces the format `uint32`, which the API server does not know and warns of, by `int64` with the same range.
pub fn refine(crd: &mut CustomResourceDefinition) {
    // The value joins several versions with `_`.
    let label = (labels::CONTRACT.to_owned(), crate::VERSION.to_owned());
    crd.metadata.labels.get_or_insert_default().extend([label]);
    let schemas = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    for root in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
        schema(root);
    }
}

fn schema(props: &mut JSONSchemaProps) {
    props.title = None;
    props.nullable = None;
    props.default = None;
    if let Some(description) = &mut props.description {
        *description = description.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    }
    if props.format.as_deref() == Some("uint32") {
        props.format = Some("int64".to_owned());
        props.maximum.get_or_insert(f64::from(u32::MAX));
    }
    if let Some(values) = &mut props.enum_ {
        values.retain(|value| !value.0.is_null());
    }
    if let Some(properties) = &mut props.properties {
        properties.values_mut().for_each(schema);
    }
    match &mut props.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => schema(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(schema),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut props.additional_properties {
        schema(values);
    }
}
