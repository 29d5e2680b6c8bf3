//! The variables of a `ClusterClass` that uses the extension: their schemas, and their values with types.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::pool::{Disruption, InstancesDistribution, Rollout, RootVolume};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    PatchError, Variables,
    instances::Instances,
    volumes::{self, VolumeVariable},
};
use crate::protocol::ClusterClassVariable;

/// The region.
const REGION: &str = "asgRegion";
/// Instance types, or class, size and architecture.
const INSTANCES: &str = "asgInstances";
/// The image.
const IMAGE: &str = "asgImage";
/// On-Demand and Spot.
const PURCHASE: &str = "asgPurchaseOptions";
/// The root volume.
const ROOT_VOLUME: &str = "asgRootVolume";
/// Additional volumes, and the file systems on them.
const DATA_VOLUMES: &str = "asgDataVolumes";
/// Tags in AWS.
const TAGS: &str = "asgTags";
/// Subnets by zone.
const SUBNETS: &str = "asgSubnets";
/// How instances are replaced.
const ROLLOUT: &str = "asgRollout";
/// When and how many.
const DISRUPTION: &str = "asgDisruption";

/// The values of the variables of a pool; each is absent unless it is set.
#[derive(Debug, Default)]
pub(crate) struct PoolVariables {
    pub(super) region: Option<String>,
    pub(super) instances: Option<Instances>,
    pub(super) image: Option<ImageVariable>,
    pub(super) purchase: Option<InstancesDistribution>,
    pub(super) root_volume: Option<RootVolume>,
    pub(super) data_volumes: Option<Vec<VolumeVariable>>,
    pub(super) tags: Option<BTreeMap<String, String>>,
    pub(super) subnets: Option<BTreeMap<String, BTreeSet<String>>>,
    pub(super) rollout: Option<Rollout>,
    pub(super) disruption: Option<Disruption>,
}

/// The variable `asgImage`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ImageVariable {
    pub(super) id: Option<String>,
    pub(super) ssm_parameter: Option<String>,
}

impl PoolVariables {
    /// Reads the variables of a template.
    ///
    /// # Errors
    /// If the value of one has another form.
    pub(crate) fn read(variables: &Variables<'_>) -> Result<Self, PatchError> {
        let data_volumes: Option<Vec<VolumeVariable>> = read(variables, DATA_VOLUMES)?;
        if let Some(why) = data_volumes.as_deref().and_then(volumes::problem) {
            return Err(PatchError::Variable { name: DATA_VOLUMES, why });
        }
        Ok(Self {
            region: read(variables, REGION)?,
            instances: read(variables, INSTANCES)?,
            image: read(variables, IMAGE)?,
            purchase: read(variables, PURCHASE)?,
            root_volume: read(variables, ROOT_VOLUME)?,
            data_volumes,
            tags: read(variables, TAGS)?,
            subnets: read(variables, SUBNETS)?,
            rollout: read(variables, ROLLOUT)?,
            disruption: read(variables, DISRUPTION)?,
        })
    }
}

fn read<T: DeserializeOwned>(variables: &Variables<'_>, name: &'static str) -> Result<Option<T>, PatchError> {
    let Some(value) = variables.get(name) else { return Ok(None) };
    let read = T::deserialize(value);
    read.map(Some).map_err(|error| PatchError::Variable { name, why: error.to_string() })
}

/// Every variable with its schema. None is required, and none has a default: a variable that is not set changes nothing.
pub(crate) fn all() -> Vec<ClusterClassVariable> {
    let schemas = [
        (REGION, text("AWS region of the pools. Immutable once a pool exists.", 32)),
        (INSTANCES, instances()),
        (IMAGE, image()),
        (PURCHASE, purchase()),
        (ROOT_VOLUME, root_volume()),
        (DATA_VOLUMES, data_volumes()),
        (TAGS, tags()),
        (SUBNETS, subnets()),
        (ROLLOUT, rollout()),
        (DISRUPTION, disruption()),
    ];
    let variable = |(name, schema): (&str, Value)| ClusterClassVariable {
        name: name.to_owned(),
        required: Some(false),
        deprecated_v1beta1_metadata: None,
        schema: json!({"openAPIV3Schema": schema}),
    };
    schemas.into_iter().map(variable).collect()
}

fn text(description: &str, longest: u32) -> Value {
    json!({"description": description, "type": "string", "minLength": 1, "maxLength": longest})
}

fn number(description: &str, minimum: i32, maximum: i32) -> Value {
    json!({"description": description, "type": "integer", "minimum": minimum, "maximum": maximum})
}

fn one_of(description: &str, values: &[&str]) -> Value {
    json!({"description": description, "type": "string", "enum": values})
}

fn object(description: &str, properties: &Value) -> Value {
    json!({"description": description, "type": "object", "properties": properties})
}

fn number_or_percentage(description: &str) -> Value {
    json!({"description": description, "x-kubernetes-int-or-string": true})
}

fn instances() -> Value {
    let mut entry = object("An instance type.", &json!({"type": text("Name of the instance type.", 64)}));
    entry["required"] = json!(["type"]);
    object(
        "Instance types of the nodes: types, or class and size. Removing a type makes its nodes outdated.",
        &json!({
            "types": {
                "description": "Instance types in order of preference. Overrides class and size.",
                "type": "array", "minItems": 1, "maxItems": 40, "items": entry,
                "x-kubernetes-validations": [{
                    "rule": "self.all(entry, self.exists_one(other, other.type == entry.type))",
                    "message": "must not contain a type twice",
                }],
            },
            "class": one_of(
                "Class of the instance types: general, compute, memory or gpu.",
                &["general", "compute", "memory", "gpu"],
            ),
            "size": text("Size of the instances, such as large or 2xlarge.", 32),
            "architecture": one_of("Architecture of the nodes and of their image. Defaults to amd64.", &["amd64", "arm64"]),
        }),
    )
}

fn image() -> Value {
    let mut schema = object(
        "Image of the nodes. Overrides the setting imageParameter. A change makes the nodes outdated.",
        &json!({
            "id": text("ID of the image. The image must contain the Kubernetes version of the cluster.", 64),
            "ssmParameter": text(
                "Name of the SSM parameter that holds an image ID. It may contain the placeholders {version}, {minor} and {architecture}.",
                1011,
            ),
        }),
    );
    schema["x-kubernetes-validations"] = json!([{"rule": "has(self.id) != has(self.ssmParameter)", "message": "set exactly one of id and ssmParameter"}]);
    schema
}

fn purchase() -> Value {
    object(
        "Purchase options. Changes apply in place, to later launches.",
        &json!({
            "onDemandBaseCapacity": number("Number of On-Demand instances before the percentage applies.", 0, 10_000),
            "onDemandPercentageAboveBaseCapacity": number("Percentage of On-Demand instances above the base; the others are Spot instances.", 0, 100),
            "onDemandAllocationStrategy": one_of("How AWS chooses On-Demand types.", &["prioritized", "lowest-price"]),
            "spotAllocationStrategy": one_of(
                "How AWS chooses Spot types.",
                &["price-capacity-optimized", "capacity-optimized", "capacity-optimized-prioritized", "lowest-price"],
            ),
        }),
    )
}

fn root_volume() -> Value {
    object(
        "Root volume of the nodes. Fields that are not set keep the values of the template. A change makes the nodes outdated.",
        &json!({
            "sizeGiB": number("Size in GiB.", 1, 65_536),
            "type": one_of("Type of the EBS volume.", &["gp3", "gp2", "io1", "io2", "standard"]),
            "iops": number("Provisioned I/O operations per second.", 100, 256_000),
            "throughputMiBps": number("Throughput of a gp3 volume in MiB per second.", 125, 2000),
        }),
    )
}

fn data_volumes() -> Value {
    let path = |description: &str| {
        let mut schema = text(description, 256);
        schema["pattern"] = json!("^/[A-Za-z0-9._/-]+$");
        schema
    };
    let mut file_system = object(
        "File system on the volume, created and mounted by cloud-init. Requires a KubeadmConfigTemplate. An existing file system of a snapshot is only mounted.",
        &json!({
            "mountPath": path("Where the file system is mounted, such as /var/lib/containerd."),
            "type": one_of("Type of the file system. Defaults to ext4.", &["ext4", "xfs"]),
            "device": path(
                "Path of the device in the instance. Defaults to deviceName, which requires an image with udev rules that create this name for NVMe devices.",
            ),
        }),
    );
    file_system["required"] = json!(["mountPath"]);
    let mut device = text("Device name of the volume, such as /dev/xvdb.", 32);
    device["pattern"] = json!("^/dev/(sd|xvd)[a-z]{1,2}[0-9]{0,2}$");
    let mut snapshot = text("ID of the snapshot that the volume is created from.", 64);
    snapshot["pattern"] = json!("^snap-[0-9a-f]{8,17}$");
    let mut entry = object(
        "A data volume.",
        &json!({
            "deviceName": device,
            "snapshotID": snapshot,
            "sizeGiB": number("Size in GiB. Defaults to the size of the snapshot.", 1, 65_536),
            "type": one_of("Type of the EBS volume. Defaults to gp3.", &["gp3", "gp2", "io1", "io2", "st1", "sc1", "standard"]),
            "iops": number("Provisioned I/O operations per second.", 100, 256_000),
            "throughputMiBps": number("Throughput of a gp3 volume in MiB per second.", 125, 2000),
            "encryption": one_of("Encryption of the volume. Defaults to Encrypted.", &["Encrypted", "AccountDefault"]),
            "kmsKeyID": text("ID, alias or ARN of the KMS key.", 512),
            "onTermination": one_of("What happens to the volume when its instance terminates. Defaults to Delete.", &["Delete", "Retain"]),
            "fileSystem": file_system,
        }),
    );
    entry["required"] = json!(["deviceName"]);
    entry["x-kubernetes-validations"] = json!([{"rule": "has(self.sizeGiB) || has(self.snapshotID)", "message": "set sizeGiB, snapshotID or both"}]);
    json!({
        "description": "Data volumes of the nodes. Replaces those of the template. A change makes the nodes outdated.",
        "type": "array", "maxItems": volumes::MOST, "items": entry,
    })
}

fn tags() -> Value {
    json!({
        "description": "AWS tags of Auto Scaling groups and instances, in addition to those of the template. A change applies to the groups and to new instances.",
        "type": "object", "maxProperties": 40, "additionalProperties": {"type": "string", "maxLength": 256},
    })
}

fn subnets() -> Value {
    json!({
        "description": "IDs of subnets by Availability Zone. A pool uses those in its failure domains, or all.",
        "type": "object", "minProperties": 1, "maxProperties": 16,
        "additionalProperties": {"type": "array", "minItems": 1, "maxItems": 8, "items": {"type": "string", "minLength": 1, "maxLength": 64}},
    })
}

fn rollout() -> Value {
    let rolling_update = object(
        "Limits of a rolling update.",
        &json!({
            "maxSurge": number_or_percentage("Instances above the replicas: a number or a percentage."),
            "maxUnavailable": number_or_percentage("Unavailable instances: a number or a percentage."),
        }),
    );
    let strategy = object(
        "Strategy.",
        &json!({
            "type": one_of("Type of the strategy.", &["RollingUpdate", "OnDelete"]),
            "rollingUpdate": rolling_update,
        }),
    );
    object(
        "How outdated nodes are replaced. Changes apply in place.",
        &json!({
            "mode": one_of("Automatic replaces outdated nodes; Paused does not.", &["Automatic", "Paused"]),
            "strategy": strategy,
            "progressDeadlineSeconds": number("Maximum time without progress in seconds.", 60, 86_400),
            "maxInstanceLifetimeSeconds": number("Maximum age of an instance in seconds.", 3600, 63_072_000),
        }),
    )
}

fn disruption() -> Value {
    let mut window = object(
        "A window.",
        &json!({
            "schedule": text("Start in cron format with five fields.", 128),
            "durationSeconds": number("Duration in seconds.", 900, 604_800),
            "timeZone": text("Time zone, such as Europe/Dublin. Defaults to Etc/UTC.", 64),
            "maxDisrupted": number_or_percentage("Maximum number of nodes that rollouts may disrupt at the same time in this window: a number or a percentage."),
        }),
    );
    window["required"] = json!(["schedule", "durationSeconds"]);
    object(
        "When nodes may be disrupted, and how many at the same time. Changes apply in place.",
        &json!({
            "maxDisrupted": number_or_percentage("Maximum number of disrupted nodes: a number or a percentage."),
            "windows": {"description": "Windows in which outdated nodes may be replaced.", "type": "array", "maxItems": 20, "items": window},
        }),
    )
}
