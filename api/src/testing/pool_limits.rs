//! `ASGMachinePool`s that limits, patterns and enums refuse.

use serde_json::{Value, json};

use super::{
    CelCase,
    pool::{minimal_pool, numbered, rolling},
    refused, with, without,
};

/// Wrong pools that limits, patterns and enums refuse.
pub(super) fn schema_cases_of_pools() -> Vec<CelCase> {
    [spec_cases(), rollout_cases()].concat()
}

fn spec_cases() -> Vec<CelCase> {
    let pool = |path, value: Value| with(minimal_pool(), path, value);
    let list = |length: usize| json!(vec!["aws:///eu-west-1a/i-0a1b2c3d"; length]);
    vec![
        refused("pool-without-region", without(minimal_pool(), "spec/region"), "spec.region: Required value"),
        refused(
            "pool-without-subnets",
            without(minimal_pool(), "spec/subnets"),
            "spec.subnets: Required value",
        ),
        refused(
            "pool-without-types",
            without(minimal_pool(), "spec/instanceTypes"),
            "spec.instanceTypes: Required value",
        ),
        refused(
            "pool-without-machine",
            without(minimal_pool(), "spec/machine"),
            "spec.machine: Required value",
        ),
        refused(
            "pool-without-image",
            without(minimal_pool(), "spec/machine/image"),
            "spec.machine.image: Required value",
        ),
        refused(
            "pool-no-subnet",
            pool("spec/subnets", json!([])),
            "spec.subnets in body should have at least 1 items",
        ),
        refused("pool-no-region", pool("spec/region", json!("Ireland")), "spec.region in body should match"),
        refused(
            "pool-wrong-subnet-id",
            pool("spec/subnets/0/id", json!("sn-0a1b2c3d")),
            "spec.subnets[0].id in body should match",
        ),
        refused(
            "pool-wrong-image-id",
            pool("spec/machine/image/id", json!("ami-OA1B2C3D")),
            "spec.machine.image.id in body should match",
        ),
        refused(
            "pool-wrong-group-id",
            pool("spec/machine/securityGroups", json!([{ "id": "nodes" }])),
            "spec.machine.securityGroups[0].id in body should match",
        ),
        refused(
            "pool-no-security-group",
            pool("spec/machine/securityGroups", json!([])),
            "spec.machine.securityGroups in body should have at least 1 items",
        ),
        refused(
            "pool-group-name-with-colon",
            pool("spec/group/name", json!("a:b")),
            "spec.group.name in body should",
        ),
        refused(
            "pool-unknown-process",
            pool("spec/group/suspendedProcesses", json!(["Lunch"])),
            "Unsupported value",
        ),
        refused(
            "pool-same-process-twice",
            pool("spec/group/suspendedProcesses", json!(["Launch", "Launch"])),
            "Duplicate value",
        ),
        refused(
            "pool-same-device-twice",
            pool(
                "spec/machine/dataVolumes",
                json!([{ "deviceName": "/dev/sdf", "sizeGiB": 1 }, { "deviceName": "/dev/sdf", "sizeGiB": 2 }]),
            ),
            "Duplicate value",
        ),
        refused("pool-unknown-policy", pool("spec/deletionPolicy", json!("Keep")), "Unsupported value"),
        refused(
            "pool-list-too-long",
            pool("spec/providerIDList", list(10_001)),
            "must have at most 10000 items",
        ),
        refused(
            "pool-list-entry-empty",
            pool("spec/providerIDList", json!([""])),
            "spec.providerIDList[0] in body",
        ),
        refused(
            "pool-too-many-tags",
            pool("spec/tags", json!(numbered(41, 8, ""))),
            "must have at most 40 items",
        ),
        refused(
            "pool-drain-too-short",
            pool("spec/drain/timeoutSeconds", json!(59)),
            "spec.drain.timeoutSeconds",
        ),
        refused(
            "pool-hop-limit",
            pool("spec/machine/metadataOptions/httpPutResponseHopLimit", json!(65)),
            "spec.machine.metadataOptions.httpPutResponseHopLimit",
        ),
    ]
}

fn rollout_cases() -> Vec<CelCase> {
    vec![
        refused(
            "pool-rollout-surge-below-zero",
            rolling(&json!({ "maxSurge": -1 })),
            "spec.rollout.strategy.rollingUpdate.maxSurge in body should be greater than or equal to 0",
        ),
        refused(
            "pool-rollout-more-than-all-unavailable",
            rolling(&json!({ "maxUnavailable": "101%" })),
            "spec.rollout.strategy.rollingUpdate.maxUnavailable in body should match",
        ),
        refused(
            "pool-rollout-count-as-text",
            rolling(&json!({ "maxSurge": "2" })),
            "spec.rollout.strategy.rollingUpdate.maxSurge in body should match",
        ),
    ]
}
