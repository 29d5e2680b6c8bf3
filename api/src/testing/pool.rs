//! `ASGMachinePool`s, right and wrong.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{CelCase, ValidCase, refused, refused_change, taken, taken_change, with, without};

const ARN: &str = "arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:0b1c2d3e-0000-4000-8000-000000000001:\
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
            "instanceTypes": ["m7i.large"],
            "machine": { "image": { "id": "ami-0a1b2c3d" } },
        },
    })
}

/// A pool with every field set and every list as long as it may be.
#[must_use]
pub fn maximal_pool() -> Value {
    let filter = numbered(20, 128, &"*".repeat(256));
    let ids: Vec<String> = (0..10_000).map(|n| format!("aws:///ap-southeast-4a/i-{n:017x}")).collect();
    let types: Vec<String> = (0..40).map(|n| format!("{}{n:02}.metal", "x".repeat(50))).collect();
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
                "metadataOptions": {
                    "httpTokens": "optional",
                    "httpPutResponseHopLimit": 64,
                    "httpEndpoint": "enabled",
                    "httpProtocolIPv6": "enabled",
                },
            },
            "drain": { "onCloudTermination": "Ignore", "onPoolDeletion": "Skip", "timeoutSeconds": 172_800 },
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
            "deletionPolicy": "Orphan",
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
            "pool-image-edited",
            minimal_pool(),
            with(minimal_pool(), "spec/machine/image", json!({ "ssmParameter": "/images/node/{version}" })),
        ),
    ]
}

/// At least one wrong object for every rule of `ASGMachinePool`.
#[must_use]
pub fn pool_cases() -> Vec<CelCase> {
    [identity_cases(), capacity_cases(), tag_cases(), machine_cases(), volume_cases()].concat()
}

fn identity_cases() -> Vec<CelCase> {
    let provisioned = with(minimal_pool(), "spec/providerID", ARN);
    let named = with(minimal_pool(), "spec/group/name", "nodes");
    let fixed_id = "spec.providerID: account, region and group name cannot be changed; create another pool";
    let fixed_name = "spec.group.name: cannot be set or removed once the pool exists; create another pool";
    vec![
        refused(
            "pool-region-of-another-group",
            with(provisioned.clone(), "spec/region", "us-east-1"),
            "spec.region: must be the region of spec.providerID, the Auto Scaling group in use",
        ),
        refused_change(
            "pool-region-changed",
            minimal_pool(),
            with(minimal_pool(), "spec/region", "us-east-1"),
            "spec.region: cannot be changed; create another pool",
        ),
        refused_change(
            "pool-provider-id-removed",
            provisioned.clone(),
            minimal_pool(),
            "spec.providerID: cannot be removed, it names the Auto Scaling group in use",
        ),
        refused_change(
            "pool-account-changed",
            provisioned.clone(),
            with(minimal_pool(), "spec/providerID", ARN.replace("123456789012", "210987654321")),
            fixed_id,
        ),
        refused_change(
            "pool-provider-id-of-another-name",
            provisioned.clone(),
            with(minimal_pool(), "spec/providerID", format!("{ARN}2")),
            fixed_id,
        ),
        refused_change(
            "pool-provider-id-of-another-region",
            provisioned,
            with(minimal_pool(), "spec/providerID", ARN.replace("eu-west-1", "us-east-1")),
            fixed_id,
        ),
        refused_change(
            "pool-group-name-changed",
            named.clone(),
            with(named.clone(), "spec/group/name", "x"),
            "spec.group.name: cannot be changed; create another pool",
        ),
        refused_change("pool-group-name-set", minimal_pool(), named.clone(), fixed_name),
        refused_change(
            "pool-group-name-removed",
            named.clone(),
            with(named.clone(), "spec/group", json!({})),
            fixed_name,
        ),
        refused_change("pool-group-removed", named, minimal_pool(), fixed_name),
        refused(
            "pool-identity",
            with(minimal_pool(), "spec/identityRef", json!({ "kind": "ASGIdentity", "name": "team-a" })),
            "spec.identityRef: reserved, identities do not exist yet; remove it to use the controller's own AWS \
             credentials",
        ),
    ]
}

fn capacity_cases() -> Vec<CelCase> {
    let subnet = "spec.subnets[]: set exactly one of id and tags";
    vec![
        refused(
            "pool-bounds-crossed",
            with(with(minimal_pool(), "spec/minSize", 4), "spec/maxSize", 3),
            "spec.minSize: must not be above spec.maxSize",
        ),
        refused(
            "pool-type-twice",
            with(minimal_pool(), "spec/instanceTypes", json!(["m7i.large", "m6i.large", "m7i.large"])),
            "spec.instanceTypes: name each type once",
        ),
        refused("pool-subnet-empty", with(minimal_pool(), "spec/subnets/0", json!({})), subnet),
        refused(
            "pool-subnet-by-both",
            with(minimal_pool(), "spec/subnets/0/tags", json!({ "tier": "private" })),
            subnet,
        ),
        refused(
            "pool-subnet-tag-key-empty",
            with(minimal_pool(), "spec/subnets/0", json!({ "tags": { "": "private" } })),
            "spec.subnets[].tags: a tag key has 1 to 128 characters",
        ),
    ]
}

fn tag_cases() -> Vec<CelCase> {
    let tagged = |key: &str| with(minimal_pool(), "spec/tags", json!({ key: "x" }));
    let aws = "spec.tags: keys that begin with aws: are reserved by AWS";
    let own = "spec.tags: keys that begin with asg.infrastructure.cluster.x-k8s.io/ or kubernetes.io/cluster/ are set \
               by the controller";
    let length = "spec.tags: a tag key has 1 to 128 characters";
    vec![
        refused("pool-tag-of-aws", tagged("aws:autoscaling:groupName"), aws),
        refused("pool-tag-of-aws-in-capitals", tagged("AWS:x"), aws),
        refused("pool-tag-of-ours", tagged("asg.infrastructure.cluster.x-k8s.io/owner-id"), own),
        refused("pool-tag-of-the-cloud-provider", tagged("kubernetes.io/cluster/prod"), own),
        refused("pool-tag-key-empty", tagged(""), length),
        refused("pool-tag-key-too-long", tagged(&"k".repeat(129)), length),
    ]
}

fn machine_cases() -> Vec<CelCase> {
    let image = "spec.machine.image: set exactly one of id and ssmParameter";
    let placeholder = "spec.machine.image.ssmParameter: only {version} and {minor} can be filled in";
    let group = "spec.machine.securityGroups[]: set exactly one of id, tags and name";
    let parameter = |name: &str| with(minimal_pool(), "spec/machine/image", json!({ "ssmParameter": name }));
    let groups = |value: Value| with(minimal_pool(), "spec/machine/securityGroups", json!([value]));
    vec![
        refused("pool-image-empty", with(minimal_pool(), "spec/machine/image", json!({})), image),
        refused("pool-image-by-both", with(minimal_pool(), "spec/machine/image/ssmParameter", "/x"), image),
        refused("pool-image-unknown-placeholder", parameter("/images/{distro}/{version}"), placeholder),
        refused("pool-image-half-placeholder", parameter("/images/{version"), placeholder),
        refused("pool-security-group-empty", groups(json!({})), group),
        refused("pool-security-group-by-two", groups(json!({ "id": "sg-0a1b2c3d", "name": "nodes" })), group),
        refused(
            "pool-security-group-by-all",
            groups(json!({ "id": "sg-0a1b2c3d", "name": "nodes", "tags": { "a": "b" } })),
            group,
        ),
        refused(
            "pool-security-group-tag-key-too-long",
            groups(json!({ "tags": { "k".repeat(129): "x" } })),
            "spec.machine.securityGroups[].tags: a tag key has 1 to 128 characters",
        ),
    ]
}

fn volume_cases() -> Vec<CelCase> {
    let root = |volume: Value| with(minimal_pool(), "spec/machine/rootVolume", volume);
    let data = |rest: Value| with(minimal_pool(), "spec/machine/dataVolumes", json!([volume(&rest)]));
    vec![
        refused(
            "pool-root-volume-not-bootable",
            root(json!({ "type": "st1" })),
            "spec.machine.rootVolume.type: st1 and sc1 cannot be booted from",
        ),
        refused(
            "pool-root-volume-iops-of-gp2",
            root(json!({ "type": "gp2", "iops": 3000 })),
            "spec.machine.rootVolume.iops: only gp3, io1 and io2 take iops; remove it or change type",
        ),
        refused(
            "pool-root-volume-too-few-iops",
            root(json!({ "iops": 2999 })),
            "spec.machine.rootVolume.iops: gp3 has at least 3000",
        ),
        refused(
            "pool-root-volume-without-iops",
            root(json!({ "type": "io2" })),
            "spec.machine.rootVolume.iops: required by io1 and io2",
        ),
        refused(
            "pool-root-volume-throughput-of-io1",
            root(json!({ "type": "io1", "iops": 100, "throughputMiBps": 125 })),
            "spec.machine.rootVolume.throughputMiBps: only gp3 takes a throughput; remove it or change type",
        ),
        refused(
            "pool-root-volume-key-without-encryption",
            root(json!({ "kmsKeyID": "alias/nodes", "encryption": "AccountDefault" })),
            "spec.machine.rootVolume.kmsKeyID: needs encryption Encrypted",
        ),
        refused(
            "pool-data-volume-of-nothing",
            data(json!({})),
            "spec.machine.dataVolumes[]: set sizeGiB, snapshotID or both",
        ),
        refused(
            "pool-data-volume-too-small",
            data(json!({ "type": "sc1", "sizeGiB": 124 })),
            "spec.machine.dataVolumes[].sizeGiB: st1 and sc1 have at least 125 GiB",
        ),
        refused(
            "pool-data-volume-iops-of-sc1",
            data(json!({ "type": "sc1", "sizeGiB": 125, "iops": 3000 })),
            "spec.machine.dataVolumes[].iops: only gp3, io1 and io2 take iops; remove it or change type",
        ),
        refused(
            "pool-data-volume-too-few-iops",
            data(json!({ "type": "gp3", "sizeGiB": 8, "iops": 100 })),
            "spec.machine.dataVolumes[].iops: gp3 has at least 3000",
        ),
        refused(
            "pool-data-volume-without-iops",
            data(json!({ "type": "io1", "sizeGiB": 8 })),
            "spec.machine.dataVolumes[].iops: required by io1 and io2",
        ),
        refused(
            "pool-data-volume-throughput-of-gp2",
            data(json!({ "type": "gp2", "sizeGiB": 8, "throughputMiBps": 125 })),
            "spec.machine.dataVolumes[].throughputMiBps: only gp3 takes a throughput; remove it or change type",
        ),
        refused(
            "pool-data-volume-key-without-encryption",
            data(json!({ "sizeGiB": 8, "kmsKeyID": "alias/nodes", "encryption": "AccountDefault" })),
            "spec.machine.dataVolumes[].kmsKeyID: needs encryption Encrypted",
        ),
    ]
}

/// Wrong objects that limits, patterns and enums refuse, with a part of the API server's own words.
#[must_use]
pub fn schema_cases() -> Vec<CelCase> {
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

fn numbered(count: usize, key_length: usize, value: &str) -> BTreeMap<String, String> {
    (0..count).map(|n| (format!("{n:0>key_length$}"), value.to_owned())).collect()
}

fn volume(rest: &Value) -> Value {
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
