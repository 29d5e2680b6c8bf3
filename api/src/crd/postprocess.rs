//! What the derive leaves to be desired, put right over the whole schema.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use crate::names::labels;

/// Puts the generated CRD right:
/// * the contract label (A3); the derive's own `label` would also put it on every object that is made by `new`;
/// * no `title`, which repeats the kind;
/// * no `nullable`: the API server then drops a null instead of storing it, so that an absent and a null field are one;
/// * no `default`: none belongs in a status, and those of the spec are applied by accessors, so that an absent field and
///   one that names its default are told apart by nobody, and server-side apply of the same object changes nothing (J4);
/// * descriptions without the line breaks of the source;
/// * no null among the values of an enum, which `nullable` had brought along.
pub(super) fn refine(crd: &mut CustomResourceDefinition) {
    // Several versions would be joined with `_`.
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
