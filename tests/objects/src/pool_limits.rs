//! `ASGMachinePool`s that limits, patterns and enums refuse.

use serde_json::{Value, json};

use super::case::{CelCase, refused};
use super::edit::{with, without};
use super::pool::{minimal_pool, numbered, rolling, window};

/// Wrong pools that limits, patterns and enums refuse.
pub(super) fn schema_cases_of_pools() -> Vec<CelCase> {
    [spec_cases(), instance_type_cases(), rollout_cases(), disruption_cases()].concat()
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
            "pool-without-security-groups",
            without(minimal_pool(), "spec/machine/securityGroups"),
            "spec.machine.securityGroups: Required value",
        ),
        refused(
            "pool-no-subnet",
            pool("spec/subnets", json!([])),
            "spec.subnets in body should have at least 1 items",
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

fn instance_type_cases() -> Vec<CelCase> {
    let types = |value: Value| with(minimal_pool(), "spec/instanceTypes", value);
    vec![
        refused(
            "pool-without-types",
            without(minimal_pool(), "spec/instanceTypes"),
            "spec.instanceTypes: Required value",
        ),
        refused("pool-no-type", types(json!([])), "spec.instanceTypes in body should have at least 1 items"),
        refused(
            "pool-type-as-text",
            types(json!(["m7i.large"])),
            "spec.instanceTypes[0] in body must be of type object",
        ),
        refused("pool-type-without-name", types(json!([{}])), "spec.instanceTypes[0].type: Required value"),
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
        refused(
            "pool-rollout-mode",
            with(minimal_pool(), "spec/rollout/mode", "Manual"),
            "Unsupported value",
        ),
        refused(
            "pool-node-startup-timeout-below-zero",
            with(minimal_pool(), "spec/nodeStartupTimeoutSeconds", -1),
            "spec.nodeStartupTimeoutSeconds in body should be greater than or equal to 0",
        ),
        refused(
            "pool-node-startup-timeout-over-a-day",
            with(minimal_pool(), "spec/nodeStartupTimeoutSeconds", 86_401),
            "spec.nodeStartupTimeoutSeconds in body should be less than or equal to 86400",
        ),
        refused(
            "pool-rollout-after-a-date",
            with(minimal_pool(), "spec/rollout/after", "2026-03-01"),
            "spec.rollout.after in body",
        ),
        refused(
            "pool-rollout-after-a-list",
            with(minimal_pool(), "spec/rollout/after", json!([])),
            "spec.rollout.after in body must be of type string",
        ),
        refused(
            "pool-lifetime-too-short",
            with(minimal_pool(), "spec/rollout/maxInstanceLifetimeSeconds", 3599),
            "spec.rollout.maxInstanceLifetimeSeconds in body should be greater than or equal to 3600",
        ),
        refused(
            "pool-deadline-too-short",
            with(minimal_pool(), "spec/rollout/progressDeadlineSeconds", 59),
            "spec.rollout.progressDeadlineSeconds in body should be greater than or equal to 60",
        ),
    ]
}

fn disruption_cases() -> Vec<CelCase> {
    let disruption =
        |path: &str, value: Value| with(minimal_pool(), &format!("spec/disruption/{path}"), value);
    let windows = |value: Value| disruption("windows", json!([value]));
    vec![
        refused(
            "pool-nothing-disrupted",
            disruption("maxDisrupted", json!(0)),
            "spec.disruption.maxDisrupted in body should be greater than or equal to 1",
        ),
        refused(
            "pool-nothing-disrupted-in-percent",
            disruption("maxDisrupted", json!("0%")),
            "spec.disruption.maxDisrupted in body should match",
        ),
        refused(
            "pool-window-without-duration",
            windows(json!({ "schedule": "0 0 * * *" })),
            "spec.disruption.windows[0].durationSeconds: Required value",
        ),
        refused(
            "pool-window-without-schedule",
            windows(json!({ "durationSeconds": 900 })),
            "spec.disruption.windows[0].schedule: Required value",
        ),
        refused(
            "pool-window-too-short",
            windows(json!({ "schedule": "0 0 * * *", "durationSeconds": 899 })),
            "spec.disruption.windows[0].durationSeconds in body should be greater than or equal to 900",
        ),
        refused(
            "pool-window-schedule-of-six",
            windows(json!({ "schedule": "0 0 0 * * *", "durationSeconds": 900 })),
            "spec.disruption.windows[0].schedule in body should match",
        ),
        refused(
            "pool-window-nobody-disrupted",
            windows(json!({ "schedule": "0 0 * * *", "durationSeconds": 900, "maxDisrupted": 0 })),
            "spec.disruption.windows[0].maxDisrupted in body should be greater than or equal to 1",
        ),
        refused(
            "pool-too-many-windows",
            disruption("windows", json!(vec![window(); 21])),
            "spec.disruption.windows: Too many: 21: must have at most 20 items",
        ),
    ]
}
