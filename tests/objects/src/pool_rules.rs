//! `ASGMachinePool`s that CEL rules refuse.

use serde_json::{Value, json};

use super::case::{CelCase, refused, refused_change};
use super::edit::with;
use super::pool::{ARN, minimal_pool, refreshing, rolling, volume};

/// At least one wrong object for every rule of `ASGMachinePool`.
#[must_use]
pub fn pool_cases() -> Vec<CelCase> {
    [
        identity_cases(),
        value_cases(),
        capacity_cases(),
        rollout_cases(),
        tag_cases(),
        machine_cases(),
        volume_cases(),
    ]
    .concat()
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
            "spec.providerID: cannot be removed; it names the Auto Scaling group in use",
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
            with(minimal_pool(), "spec/identityRef", json!({ "kind": "Secret", "name": "team-a" })),
            "spec.identityRef.kind: must be ASGIdentity, AWSClusterControllerIdentity, AWSClusterRoleIdentity or \
             AWSClusterStaticIdentity",
        ),
        refused(
            "pool-adoption-of-no-name",
            with(minimal_pool(), "spec/adoptionPolicy", "Adopt"),
            "spec.adoptionPolicy: Adopt requires spec.group.name, the Auto Scaling group to adopt",
        ),
        refused(
            "pool-refresh-undrained",
            with(
                with(minimal_pool(), "spec/drain", json!({ "onCloudTermination": "Ignore" })),
                "spec/rollout",
                json!({ "strategy": { "type": "InstanceRefresh" } }),
            ),
            "spec.drain.onCloudTermination: must be Drain with rollout.strategy.type InstanceRefresh: \
             Ignore terminates instances without draining their nodes; use Drain, or type RollingUpdate",
        ),
    ]
}

/// Empty and misspelt values, as a template renders them whose variables have no value, and ARNs of other regions.
fn value_cases() -> Vec<CelCase> {
    let pool = |path: &str, value: &str| with(minimal_pool(), path, value);
    let rendered = "if it is empty, a variable of the template has no value";
    let region = format!("spec.region: must be an AWS region, such as eu-west-1; {rendered}");
    let subnet =
        format!("spec.subnets[].id: must be the ID of a subnet, such as subnet-0a1b2c3d; {rendered}");
    let image =
        format!("spec.machine.image.id: must be the ID of an image, such as ami-0a1b2c3d; {rendered}");
    let parameter = format!(
        "spec.machine.image.ssmParameter: must be the name or ARN of an SSM parameter, such as \
         /images/node/v{{version}}; {rendered}"
    );
    let group = format!(
        "spec.machine.securityGroups[].id: must be the ID of a security group, such as sg-0a1b2c3d; {rendered}"
    );
    let kind = format!(
        "spec.instanceTypes[].type: must be the name of an instance type, such as m7i.large; {rendered}"
    );
    let key = "must be a KMS key of spec.region; use a key of that region, or the replica there of a multi-Region key";
    let key_elsewhere = "arn:aws:kms:us-east-1:123456789012:key/0b1c2d3e-0000-4000-8000-000000000001";
    let volumes = json!([volume(&json!({ "sizeGiB": 8, "kmsKeyID": key_elsewhere }))]);
    let by_parameter =
        |name: &str| with(minimal_pool(), "spec/machine/image", json!({ "ssmParameter": name }));
    vec![
        refused("pool-region-empty", pool("spec/region", ""), &region),
        refused("pool-region-misspelt", pool("spec/region", "Ireland"), &region),
        refused("pool-subnet-id-empty", pool("spec/subnets/0/id", ""), &subnet),
        refused("pool-subnet-id-misspelt", pool("spec/subnets/0/id", "sn-0a1b2c3d"), &subnet),
        refused("pool-image-id-empty", pool("spec/machine/image/id", ""), &image),
        refused("pool-image-id-misspelt", pool("spec/machine/image/id", "ami-OA1B2C3D"), &image),
        refused("pool-image-parameter-empty", by_parameter(""), &parameter),
        refused("pool-image-parameter-with-a-blank", by_parameter("/images/ node"), &parameter),
        refused(
            "pool-image-parameter-of-another-region",
            by_parameter("arn:aws:ssm:us-east-1:123456789012:parameter/images/node"),
            "spec.machine.image.ssmParameter: must be an SSM parameter of spec.region; use the name of a parameter, or \
             an ARN of that region",
        ),
        refused("pool-security-group-id-empty", pool("spec/machine/securityGroups/0/id", ""), &group),
        refused("pool-security-group-id-misspelt", pool("spec/machine/securityGroups/0/id", "nodes"), &group),
        refused("pool-type-empty", pool("spec/instanceTypes/0/type", ""), &kind),
        refused("pool-type-misspelt", pool("spec/instanceTypes/0/type", "large"), &kind),
        refused(
            "pool-root-volume-key-of-another-region",
            pool("spec/machine/rootVolume/kmsKeyID", key_elsewhere),
            &format!("spec.machine.rootVolume.kmsKeyID: {key}"),
        ),
        refused(
            "pool-data-volume-key-of-another-region",
            with(minimal_pool(), "spec/machine/dataVolumes", volumes),
            &format!("spec.machine.dataVolumes[].kmsKeyID: {key}"),
        ),
    ]
}

fn capacity_cases() -> Vec<CelCase> {
    let subnet = "spec.subnets[]: set exactly one of id and tags";
    vec![
        refused(
            "pool-bounds-crossed",
            with(with(minimal_pool(), "spec/minSize", 4), "spec/maxSize", 3),
            "spec.minSize: must not be greater than spec.maxSize",
        ),
        refused(
            "pool-type-twice",
            with(
                minimal_pool(),
                "spec/instanceTypes",
                json!([{ "type": "m7i.large" }, { "type": "m6i.large" }, { "type": "m7i.large" }]),
            ),
            "spec.instanceTypes: must not contain a type twice",
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
            "spec.subnets[].tags: a tag key must have 1 to 128 characters",
        ),
    ]
}

fn rollout_cases() -> Vec<CelCase> {
    let both = "spec.rollout.strategy.rollingUpdate: maxSurge and maxUnavailable must not both be 0";
    vec![
        refused("pool-rollout-by-nothing", rolling(&json!({ "maxSurge": 0, "maxUnavailable": "0%" })), both),
        refused("pool-rollout-by-nothing-by-default", rolling(&json!({ "maxSurge": "0%" })), both),
        refused(
            "pool-refresh-of-a-rolling-update",
            with(refreshing(&json!({})), "spec/rollout/strategy/type", "RollingUpdate"),
            "spec.rollout.strategy.instanceRefresh: may only be set with type InstanceRefresh; remove it \
             or change type",
        ),
        refused(
            "pool-refresh-without-type",
            with(minimal_pool(), "spec/rollout/strategy/instanceRefresh", json!({})),
            "spec.rollout.strategy.instanceRefresh: may only be set with type InstanceRefresh; remove it \
             or change type",
        ),
        refused(
            "pool-rolling-update-of-a-refresh",
            with(refreshing(&json!({})), "spec/rollout/strategy/rollingUpdate", json!({})),
            "spec.rollout.strategy.rollingUpdate: may only be set with type RollingUpdate; remove it or \
             change type",
        ),
        refused(
            "pool-refresh-too-wide",
            refreshing(&json!({ "minHealthyPercentage": 50, "maxHealthyPercentage": 151 })),
            "spec.rollout.strategy.instanceRefresh: maxHealthyPercentage must not exceed \
             minHealthyPercentage (default 90) by more than 100",
        ),
        refused(
            "pool-refresh-too-wide-by-default",
            refreshing(&json!({ "maxHealthyPercentage": 191 })),
            "spec.rollout.strategy.instanceRefresh: maxHealthyPercentage must not exceed \
             minHealthyPercentage (default 90) by more than 100",
        ),
        refused(
            "pool-refresh-checkpoints-descend",
            refreshing(&json!({ "checkpointPercentages": [50, 20, 100] })),
            "spec.rollout.strategy.instanceRefresh.checkpointPercentages: must be in ascending order \
             without duplicates",
        ),
        refused(
            "pool-refresh-checkpoints-repeat",
            refreshing(&json!({ "checkpointPercentages": [20, 20, 100] })),
            "spec.rollout.strategy.instanceRefresh.checkpointPercentages: must be in ascending order \
             without duplicates",
        ),
        refused(
            "pool-refresh-checkpoints-end-early",
            refreshing(&json!({ "checkpointPercentages": [20, 50] })),
            "spec.rollout.strategy.instanceRefresh.checkpointPercentages: the last percentage must be 100, \
             so that all instances are replaced",
        ),
        refused(
            "pool-refresh-delay-without-checkpoints",
            refreshing(&json!({ "checkpointDelaySeconds": 60 })),
            "spec.rollout.strategy.instanceRefresh.checkpointDelaySeconds: requires checkpointPercentages; \
             set them or remove it",
        ),
        refused(
            "pool-rollout-budget-on-delete",
            with(rolling(&json!({ "maxSurge": 1 })), "spec/rollout/strategy/type", "OnDelete"),
            "spec.rollout.strategy.rollingUpdate: may only be set with type RollingUpdate; remove it or \
             change type",
        ),
    ]
}

fn tag_cases() -> Vec<CelCase> {
    let tagged = |key: &str| with(minimal_pool(), "spec/tags", json!({ key: "x" }));
    let aws = "spec.tags: keys that begin with aws: are reserved by AWS";
    let own = "spec.tags: keys that begin with asg.infrastructure.cluster.x-k8s.io/ are reserved for the controller; \
        remove the tag";
    let of_cluster = "spec.tags: keys that begin with kubernetes.io/cluster/ are reserved: the controller sets \
        kubernetes.io/cluster/<name of the Cluster>; remove the tag, and give an EKS cluster the name of its Cluster \
        object (field eksClusterName of its AWSManagedControlPlane)";
    let length = "spec.tags: a tag key must have 1 to 128 characters";
    vec![
        refused("pool-tag-of-aws", tagged("aws:autoscaling:groupName"), aws),
        refused("pool-tag-of-aws-in-capitals", tagged("AWS:x"), aws),
        refused("pool-tag-of-ours", tagged("asg.infrastructure.cluster.x-k8s.io/owner-id"), own),
        refused("pool-tag-of-the-cloud-provider", tagged("kubernetes.io/cluster/prod"), of_cluster),
        refused("pool-tag-key-empty", tagged(""), length),
        refused("pool-tag-key-too-long", tagged(&"k".repeat(129)), length),
    ]
}

fn machine_cases() -> Vec<CelCase> {
    let image = "spec.machine.image: set exactly one of id and ssmParameter";
    let placeholder =
        "spec.machine.image.ssmParameter: only the placeholders {version} and {minor} are allowed";
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
            "spec.machine.securityGroups[].tags: a tag key must have 1 to 128 characters",
        ),
    ]
}

fn volume_cases() -> Vec<CelCase> {
    let root = |volume: Value| with(minimal_pool(), "spec/machine/rootVolume", volume);
    let data = |rest: Value| with(minimal_pool(), "spec/machine/dataVolumes", json!([volume(&rest)]));
    let stored = |name: &str| with(minimal_pool(), "spec/machine/ephemeralStorageDeviceName", name);
    let device = "spec.machine.ephemeralStorageDeviceName: must be the device name of a volume, such as /dev/xvdb; if it \
                  is empty, a variable of the template has no value";
    vec![
        refused("pool-ephemeral-storage-empty", stored(""), device),
        refused("pool-ephemeral-storage-by-path", stored("/var/lib/kubelet"), device),
        refused("pool-ephemeral-storage-of-nitro", stored("/dev/nvme1n1"), device),
        refused(
            "pool-root-volume-not-bootable",
            root(json!({ "type": "st1" })),
            "spec.machine.rootVolume.type: st1 and sc1 cannot be boot volumes",
        ),
        refused(
            "pool-root-volume-iops-of-gp2",
            root(json!({ "type": "gp2", "iops": 3000 })),
            "spec.machine.rootVolume.iops: only gp3, io1 and io2 support iops; remove it or change type",
        ),
        refused(
            "pool-root-volume-too-few-iops",
            root(json!({ "iops": 2999 })),
            "spec.machine.rootVolume.iops: must be at least 3000 for gp3",
        ),
        refused(
            "pool-root-volume-without-iops",
            root(json!({ "type": "io2" })),
            "spec.machine.rootVolume.iops: is required for io1 and io2",
        ),
        refused(
            "pool-root-volume-throughput-of-io1",
            root(json!({ "type": "io1", "iops": 100, "throughputMiBps": 125 })),
            "spec.machine.rootVolume.throughputMiBps: only gp3 supports a throughput; remove it or change \
             type",
        ),
        refused(
            "pool-root-volume-key-without-encryption",
            root(json!({ "kmsKeyID": "alias/nodes", "encryption": "AccountDefault" })),
            "spec.machine.rootVolume.kmsKeyID: requires encryption Encrypted",
        ),
        refused(
            "pool-data-volume-of-nothing",
            data(json!({})),
            "spec.machine.dataVolumes[]: set sizeGiB, snapshotID or both",
        ),
        refused(
            "pool-data-volume-too-small",
            data(json!({ "type": "sc1", "sizeGiB": 124 })),
            "spec.machine.dataVolumes[].sizeGiB: must be at least 125 for st1 and sc1",
        ),
        refused(
            "pool-data-volume-iops-of-sc1",
            data(json!({ "type": "sc1", "sizeGiB": 125, "iops": 3000 })),
            "spec.machine.dataVolumes[].iops: only gp3, io1 and io2 support iops; remove it or change type",
        ),
        refused(
            "pool-data-volume-too-few-iops",
            data(json!({ "type": "gp3", "sizeGiB": 8, "iops": 100 })),
            "spec.machine.dataVolumes[].iops: must be at least 3000 for gp3",
        ),
        refused(
            "pool-data-volume-without-iops",
            data(json!({ "type": "io1", "sizeGiB": 8 })),
            "spec.machine.dataVolumes[].iops: is required for io1 and io2",
        ),
        refused(
            "pool-data-volume-throughput-of-gp2",
            data(json!({ "type": "gp2", "sizeGiB": 8, "throughputMiBps": 125 })),
            "spec.machine.dataVolumes[].throughputMiBps: only gp3 supports a throughput; remove it or \
             change type",
        ),
        refused(
            "pool-data-volume-key-without-encryption",
            data(json!({ "sizeGiB": 8, "kmsKeyID": "alias/nodes", "encryption": "AccountDefault" })),
            "spec.machine.dataVolumes[].kmsKeyID: requires encryption Encrypted",
        ),
    ]
}
