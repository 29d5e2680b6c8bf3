//! Schemas that the derive cannot express: maps of bounded strings (A9) and the standard condition list (I1).

use schemars::{Schema, SchemaGenerator, json_schema};

/// At most 20 tags that are looked for; a value may be `*`.
pub(crate) fn tag_filter(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 20,
        "additionalProperties": { "type": "string", "maxLength": 256 },
    })
}

/// At most 40 tags that are set: AWS allows 50, the rest is ours.
pub(crate) fn tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 40,
        "additionalProperties": { "type": "string", "maxLength": 256 },
    })
}

/// Labels that are put on objects; the API server's own limit on values.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": { "type": "string", "maxLength": 63 },
    })
}

/// Annotations that are put on objects; the API server allows 256 KiB for all of them together.
pub(crate) fn annotations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": { "type": "string", "maxLength": 262_144 },
    })
}

/// Kubernetes quantities by resource name. Text alone: the Cluster Autoscaler leaves out the whole map if one is a number.
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
pub(crate) fn some_or_percentage(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": 1,
        "maximum": 10000,
        "maxLength": 4,
        "pattern": "^(100|[1-9][0-9]?)%$",
    })
}

/// A point in time in RFC 3339. Not the API server's own format, which lets through offsets that no clock has, and even an
/// empty list, at which our own types stop.
pub(crate) fn instant(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 35,
        "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$",
    })
}

/// `[]metav1.Condition` with the limits and patterns of the type's own definition (I1).
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One aspect of the object's current state.",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "type": "string",
                    "description": "The condition's type in CamelCase.",
                    "maxLength": 316,
                    "pattern": CONDITION_TYPE,
                },
                "status": {
                    "type": "string",
                    "description": "Whether the condition holds: True, False or Unknown.",
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
                    "description": "When the status last changed.",
                },
                "reason": {
                    "type": "string",
                    "description": "Why the condition has its status, in one CamelCase word.",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "type": "string",
                    "description": "What is wrong and what to do next; may be empty.",
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
