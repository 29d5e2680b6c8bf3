//! Schemas that the derive cannot express: maps of bounded strings (A9) and the standard list of conditions (I1).

use schemars::{
    JsonSchema, Schema, SchemaGenerator, json_schema,
    transform::{RecursiveTransform, Transform as _},
};

/// At most 20 tags of a selector; a value may be `*`.
pub(crate) fn tag_filter(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 20,
        "additionalProperties": { "type": "string", "maxLength": 256 },
    })
}

/// At most 40 tags of a user: AWS allows 50, and the controller needs the rest.
pub(crate) fn tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 40,
        "additionalProperties": { "type": "string", "maxLength": 256 },
    })
}

/// Labels of objects, with the API server's limit on values.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": { "type": "string", "maxLength": 63 },
    })
}

/// Annotations of objects; the API server allows 256 KiB for all of them together.
pub(crate) fn annotations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": { "type": "string", "maxLength": 262_144 },
    })
}

/// Kubernetes quantities by resource name. Strings only: the Cluster Autoscaler ignores the whole map if one is a number.
pub(crate) fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": {
            "type": "string",
            "maxLength": 64,
            "pattern": "^[0-9]+([EPTGMk]i?|m)?$",
        },
    })
}

/// Numbers by the name of what is counted.
pub(crate) fn counts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": { "type": "integer", "format": "int32", "minimum": 0 },
    })
}

/// A count, or a percentage from `0%` to `100%`.
pub(crate) fn count_or_percentage(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": 0,
        "maximum": 10000,
        "maxLength": 4,
        "pattern": "^(100|[1-9]?[0-9])%$",
    })
}

/// A count of one or more, or a percentage from `1%` to `100%`.
pub(crate) fn positive_or_percentage(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": 1,
        "maximum": 10000,
        "maxLength": 4,
        "pattern": "^(100|[1-9][0-9]?)%$",
    })
}

/// A time in RFC 3339. Not the API server's `date-time` format, which accepts offsets that do not exist, and even an empty
/// list, which our types cannot deserialize.
pub(crate) fn instant(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 35,
        "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$",
    })
}

/// A `metav1.LabelSelector`.
#[must_use]
pub fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object",
                "description": "Labels with these values. Defaults to none. Changes apply in place.",
                "x-kubernetes-map-type": "atomic",
                "maxProperties": 64,
                "additionalProperties": { "type": "string", "maxLength": 63 },
            },
            "matchExpressions": {
                "type": "array",
                "description": "Requirements, all of which apply. Defaults to none. Changes apply in place.",
                "maxItems": 64,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "description": "A requirement for one label.",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "type": "string", "description": "Key of the label. Changes apply in place.", "maxLength": 317 },
                        "operator": {
                            "type": "string",
                            "description": "How the label is compared. Changes apply in place.",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "type": "array",
                            "description": "Values of In and NotIn. Defaults to none. Changes apply in place.",
                            "maxItems": 256,
                            "x-kubernetes-list-type": "atomic",
                            "items": { "type": "string", "maxLength": 63 },
                        },
                    },
                },
            },
        },
    })
}

/// `[]metav1.Condition` with the limits and patterns of its Go type (I1).
#[must_use]
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "Condition is one aspect of the current state of the object.",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "type": "string",
                    "description": "Type of the condition in CamelCase.",
                    "maxLength": 316,
                    "pattern": CONDITION_TYPE,
                },
                "status": {
                    "type": "string",
                    "description": "Status of the condition: True, False or Unknown.",
                    "enum": ["True", "False", "Unknown"],
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "description": "The metadata.generation that the condition was set for.",
                    "minimum": 0,
                },
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "Time at which the status last changed.",
                },
                "reason": {
                    "type": "string",
                    "description": "Reason for the status, as one CamelCase word.",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "type": "string",
                    "description": "Details of the status and what to do next. May be empty.",
                    "maxLength": 32768,
                },
            },
        },
    })
}

/// A `metav1.Time`.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// The pattern of `metav1.Condition.type`: an optional DNS prefix and a qualified name.
const CONDITION_TYPE: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                              (([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

/// A type of which no member is required: a stored object that lacks the member of a later version stays valid, so that it
/// can be written at all.
pub(crate) fn partial<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = T::json_schema(generator);
    RecursiveTransform(|schema: &mut Schema| drop(schema.remove("required"))).transform(&mut schema);
    schema
}

/// Session tags of a role ("Session tags" of the IAM user guide).
pub(crate) fn session_tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 50,
        "x-kubernetes-map-type": "granular",
        "additionalProperties": { "type": "string", "maxLength": 256 },
    })
}
