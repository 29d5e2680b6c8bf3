//! Schemas that bound what users write. A name that begins with `-` would be a flag of Helm, and one with a `/` or `..` a
//! path.

use schemars::{Schema, SchemaGenerator, json_schema};

/// The name of a chart in its repository.
pub(super) fn chart_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 253,
        "pattern": "^[A-Za-z0-9]+([._-]+[A-Za-z0-9]+)*$",
        "x-kubernetes-validations": [{
            "rule": "!self.contains('..')",
            "message": "chartName: must not contain ..",
        }],
    })
}

/// The URL of a repository: neither user information, which would be shown in statuses, nor a query.
pub(super) fn repo_url(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 2048,
        "pattern": r"^(https?|oci)://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~%+-]*)*$",
        "x-kubernetes-validations": [{
            "rule": "!self.contains('/..')",
            "message": "repoURL: must not contain ..",
        }],
    })
}

/// The name of a release, within Helm's limit; an empty one is generated.
pub(super) fn release_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 53,
        "pattern": r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*)?$",
    })
}

/// A namespace of the workload cluster; an empty one is `default`.
pub(super) fn namespace(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 63,
        "pattern": "^([a-z0-9]([a-z0-9-]*[a-z0-9])?)?$",
    })
}

/// A version of a chart, or a constraint as Helm takes it; an empty one is the newest.
pub(super) fn version(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 256,
        "pattern": "^([A-Za-z0-9*^~<>=!][A-Za-z0-9 .,|*^~<>=!+_-]*)?$",
    })
}

/// Go's notation of a duration, such as `10m0s`.
pub(super) fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 32,
        "pattern": "^([0-9]+([.][0-9]+)?(h|m|s|ms))+$",
    })
}
