//! `ASGMachinePool`s, right and wrong.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::case::{ValidCase, taken, taken_change};
use super::edit::with;

pub(super) const ARN: &str = "arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:0b1c2d3e-0000-4000-8000-000000000001:\
     autoScalingGroupName/default-prod-workers-0a1b2c3d";

/// The smallest pool: safe by default.
#[must_use]
pub fn minimal_pool() -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "ASGMachinePool",
        "metadata": { "name": "workers" },
        "spec": {
            "region": "eu-west-1",
            "subnets": [{ "id": "subnet-0a1b2c3d" }],
            "instanceTypes": [{ "type": "m7i.large" }],
            "machine": {
                "image": { "id": "ami-0a1b2c3d" },
                "securityGroups": [{ "id": "sg-0b1c2d3e" }],
            },
        },
    })
}

/// A pool with every field set and every list as long as it may be.
#[must_use]
pub fn maximal_pool() -> Value {
    let filter = numbered(20, 128, &"*".repeat(256));
    let ids: Vec<String> = (0..10_000).map(|n| format!("aws:///ap-southeast-4a/i-{n:017x}")).collect();
    let types: Vec<Value> =
        (0..40).map(|n| json!({ "type": format!("{}{n:02}.metal", "x".repeat(50)) })).collect();
    let volumes: Vec<Value> = (0_u8..27).map(data_volume).collect();
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "ASGMachinePool",
        "metadata": { "name": "workers" },
        "spec": {
            "providerID": ARN,
            "providerIDList": ids,
            "region": "eu-west-1",
            "subnets": vec![json!({ "tags": filter }); 32],
            "minSize": 10000,
            "maxSize": 10000,
            "scaleInOrder": "Newest",
            "instanceTypes": types,
            "instancesDistribution": {
                "onDemandBaseCapacity": 10000,
                "onDemandPercentageAboveBaseCapacity": 100,
                "onDemandAllocationStrategy": "lowest-price",
                "spotAllocationStrategy": "capacity-optimized-prioritized",
                "spotMaxPrice": "0.0512",
            },
            "tags": numbered(40, 128, &"v".repeat(256)),
            "machine": {
                "image": { "ssmParameter": format!("/images/{{version}}/{{minor}}/{}", "p".repeat(980)) },
                "iamInstanceProfile": "arn:aws:iam::123456789012:instance-profile/prod-nodes",
                "sshKeyName": "night shift (2026)",
                "securityGroups": vec![json!({ "tags": filter }); 16],
                "rootVolume": {
                    "sizeGiB": 65536,
                    "type": "gp3",
                    "iops": 80000,
                    "throughputMiBps": 2000,
                    "encryption": "Encrypted",
                    "kmsKeyID": "arn:aws:kms:eu-west-1:123456789012:key/0b1c2d3e-0000-4000-8000-000000000001",
                    "onTermination": "Retain",
                },
                "dataVolumes": volumes,
                "ephemeralStorageDeviceName": "/dev/xvdb",
                "metadataOptions": {
                    "httpTokens": "optional",
                    "httpPutResponseHopLimit": 64,
                    "httpEndpoint": "enabled",
                    "httpProtocolIPv6": "enabled",
                },
            },
            "rollout": {
                "mode": "Automatic",
                "after": "2026-03-01T00:00:00.123456789+14:00",
                "maxInstanceLifetimeSeconds": 63_072_000,
                "progressDeadlineSeconds": 86400,
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": { "maxSurge": "100%", "maxUnavailable": 10000 },
                },
            },
            "disruption": {
                "maxDisrupted": 10000,
                "windows": vec![window(); 20],
            },
            "nodeStartupTimeoutSeconds": 900,
            "remediationPolicy": "Ignore",
            "rebalanceRecommendationPolicy": "Replace",
            "zoneRebalancePolicy": "Replace",
            "changePolicy": "Preview",
            "drain": { "onCloudTermination": "Ignore", "onPoolDeletion": "Terminate", "timeoutSeconds": 172_800 },
            "group": {
                "name": "n".repeat(255),
                "healthCheckTypes": ["EC2", "ELB", "EBS", "VPC_LATTICE"],
                "healthCheckGracePeriodSeconds": 7200,
                "suspendedProcesses": [
                    "Launch", "Terminate", "AddToLoadBalancer", "AlarmNotification", "AZRebalance", "HealthCheck",
                    "InstanceRefresh", "ReplaceUnhealthy", "ScheduledActions",
                ],
                "defaultCooldownSeconds": 86400,
                "defaultInstanceWarmupSeconds": 86400,
            },
            "adoptionPolicy": "Adopt",
            "deletionPolicy": "Orphan",
            "retryToken": "r".repeat(256),
        },
    })
}

/// Objects and changes that must be taken.
#[must_use]
pub fn valid_pools() -> Vec<ValidCase> {
    let provisioned = with(minimal_pool(), "spec/providerID", ARN);
    vec![
        taken("pool-minimal", minimal_pool()),
        taken("pool-maximal", maximal_pool()),
        taken(
            "pool-without-suspended-processes",
            with(minimal_pool(), "spec/group/suspendedProcesses", json!([])),
        ),
        taken("pool-equal-bounds", with(with(minimal_pool(), "spec/minSize", 3), "spec/maxSize", 3)),
        taken(
            "pool-refresh-by-default",
            with(minimal_pool(), "spec/rollout/strategy/type", "InstanceRefresh"),
        ),
        taken("pool-refresh-with-nothing-said", refreshing(&json!({}))),
        taken(
            "pool-refresh-with-everything-said",
            refreshing(&json!({
                "minHealthyPercentage": 100,
                "maxHealthyPercentage": 200,
                "instanceWarmupSeconds": 0,
                "checkpointPercentages": (81..=100).collect::<Vec<_>>(),
                "checkpointDelaySeconds": 172_800,
                "bakeTimeSeconds": 172_800,
                "alarms": (0..10).map(|n| format!("{n}{}", "a".repeat(254))).collect::<Vec<_>>(),
                "standbyInstances": "Terminate",
                "onFailure": "RollBack",
            })),
        ),
        taken("pool-refresh-one-checkpoint", refreshing(&json!({ "checkpointPercentages": [100] }))),
        taken("pool-rollout-on-delete", with(minimal_pool(), "spec/rollout/strategy/type", "OnDelete")),
        taken("pool-rollout-paused", with(minimal_pool(), "spec/rollout/mode", "Paused")),
        taken("pool-rollout-after", with(minimal_pool(), "spec/rollout/after", "2026-03-01T00:00:00Z")),
        taken("pool-one-disrupted", with(minimal_pool(), "spec/disruption/maxDisrupted", 1)),
        taken(
            "pool-window-in-utc",
            with(
                minimal_pool(),
                "spec/disruption",
                json!({
                    "maxDisrupted": "1%",
                    "windows": [{ "schedule": "*/15 4-6 1,15 * MON#1", "durationSeconds": 900 }],
                }),
            ),
        ),
        taken("pool-rollout-without-surge", rolling(&json!({ "maxSurge": 0, "maxUnavailable": "10%" }))),
        taken("pool-rollout-of-surge-alone", rolling(&json!({ "maxSurge": "1%", "maxUnavailable": "0%" }))),
        taken(
            "pool-data-volume-of-a-snapshot",
            with(
                minimal_pool(),
                "spec/machine/dataVolumes",
                json!([volume(&json!({ "snapshotID": "snap-0a1b2c3d" }))]),
            ),
        ),
        taken(
            "pool-security-groups-by-name",
            with(
                minimal_pool(),
                "spec/machine/securityGroups",
                json!([{ "name": "nodes" }, { "id": "sg-0a1b2c3d" }]),
            ),
        ),
        taken(
            "pool-null-fields",
            with(with(minimal_pool(), "spec/minSize", Value::Null), "spec/drain", Value::Null),
        ),
        taken_change("pool-provider-id-written", minimal_pool(), provisioned.clone()),
        taken_change(
            "pool-group-created-anew",
            provisioned.clone(),
            with(provisioned.clone(), "spec/providerID", ARN.replace("0b1c2d3e", "ffffffff")),
        ),
        taken_change(
            "pool-list-emptied",
            with(provisioned.clone(), "spec/providerIDList", json!([])),
            provisioned,
        ),
        taken_change(
            "pool-edited-in-place",
            minimal_pool(),
            with(
                with(minimal_pool(), "spec/subnets", json!([{ "tags": { "tier": "private" } }])),
                "spec/group/defaultCooldownSeconds",
                0,
            ),
        ),
        taken_change(
            "pool-ephemeral-storage-edited",
            with(minimal_pool(), "spec/machine/ephemeralStorageDeviceName", "xvdf"),
            with(minimal_pool(), "spec/machine/ephemeralStorageDeviceName", "/dev/xvdb"),
        ),
        taken_change(
            "pool-image-edited",
            minimal_pool(),
            with(minimal_pool(), "spec/machine/image", json!({ "ssmParameter": "/images/node/{version}" })),
        ),
    ]
}

/// The smallest pool that AWS refreshes with these preferences.
pub(super) fn refreshing(preferences: &Value) -> Value {
    let strategy = json!({ "type": "InstanceRefresh", "instanceRefresh": preferences });
    with(minimal_pool(), "spec/rollout/strategy", strategy)
}

/// The smallest pool with this budget of a rolling update.
pub(super) fn rolling(budget: &Value) -> Value {
    with(minimal_pool(), "spec/rollout/strategy/rollingUpdate", budget.clone())
}

/// The longest window.
pub(super) fn window() -> Value {
    json!({
        "schedule": "0,5,10,15,20,25,30,35,40,45,50,55 0,2,4,6,8,10,12,14,16,18,20,22 1-31 JAN-DEC MON,TUE,WED,THU,FRI,SAT,SUN",
        "durationSeconds": 604_800,
        "timeZone": "America/Argentina/ComodRivadavia",
        "maxDisrupted": "100%",
    })
}

pub(super) fn numbered(count: usize, key_length: usize, value: &str) -> BTreeMap<String, String> {
    (0..count).map(|n| (format!("{n:0>key_length$}"), value.to_owned())).collect()
}

pub(super) fn volume(rest: &Value) -> Value {
    with(rest.clone(), "deviceName", "/dev/xvdb")
}

fn data_volume(n: u8) -> Value {
    let device = match n {
        0..25 => format!("/dev/xvd{}", char::from(b'b' + n)),
        _ => format!("/dev/xvdb{}", char::from(b'a' + n - 25)),
    };
    json!({
        "deviceName": device,
        "snapshotID": "snap-0a1b2c3d4e5f60718",
        "sizeGiB": 65536,
        "type": "io2",
        "iops": 256_000,
        "encryption": "Encrypted",
        "kmsKeyID": "alias/nodes",
        "onTermination": "Retain",
    })
}
