//! `spec.machine.rootVolume` and `dataVolumes`, with the rules on type, size, performance and encryption.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::values::string_enum;

/// Operations per second of a gp3 volume by default.
const GP3_IOPS: i32 = 3000;
/// Throughput of a gp3 volume by default, in MiB per second.
const GP3_THROUGHPUT: i32 = 125;

string_enum! {
    /// AWS's volume types.
    pub enum VolumeType {
        /// General purpose SSD, third generation.
        Gp3 = "gp3",
        /// General purpose SSD, second generation.
        Gp2 = "gp2",
        /// Provisioned IOPS SSD.
        Io1 = "io1",
        /// Provisioned IOPS SSD, durable.
        Io2 = "io2",
        /// Throughput optimised HDD.
        St1 = "st1",
        /// Cold HDD.
        Sc1 = "sc1",
        /// Magnetic, previous generation.
        Standard = "standard",
    }
}

string_enum! {
    /// Whether a volume is encrypted.
    pub enum VolumeEncryption {
        /// It is always encrypted.
        Encrypted = "Encrypted",
        /// The settings of the account and of the snapshot apply.
        AccountDefault = "AccountDefault",
    }
}

string_enum! {
    /// What happens to a volume when its instance terminates.
    pub enum VolumeOnTermination {
        /// The volume is deleted.
        Delete = "Delete",
        /// The volume is kept, and charged for.
        Retain = "Retain",
    }
}

/// Root volume of each instance. The rules on types are those of AWS. AWS checks the upper limits of each type itself
/// because it raises them from time to time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.type) || !(self.type in ['st1', 'sc1'])")
        .message("spec.machine.rootVolume.type: st1 and sc1 cannot be boot volumes")
        .field_path(".type"),
    validation = Rule::new("!has(self.iops) || !has(self.type) || self.type in ['gp3', 'io1', 'io2']")
        .message("spec.machine.rootVolume.iops: only gp3, io1 and io2 support iops; remove it or change type")
        .field_path(".iops"),
    validation = Rule::new("!has(self.iops) || (has(self.type) && self.type != 'gp3') || self.iops >= 3000")
        .message("spec.machine.rootVolume.iops: must be at least 3000 for gp3")
        .field_path(".iops"),
    validation = Rule::new("has(self.iops) || !has(self.type) || !(self.type in ['io1', 'io2'])")
        .message("spec.machine.rootVolume.iops: is required for io1 and io2")
        .field_path(".iops"),
    validation = Rule::new("!has(self.throughputMiBps) || !has(self.type) || self.type == 'gp3'")
        .message("spec.machine.rootVolume.throughputMiBps: only gp3 supports a throughput; remove it or change type")
        .field_path(".throughputMiBps"),
    validation = Rule::new("!has(self.kmsKeyID) || !has(self.encryption) || self.encryption == 'Encrypted'")
        .message("spec.machine.rootVolume.kmsKeyID: requires encryption Encrypted")
        .field_path(".kmsKeyID"),
)]
pub struct RootVolume {
    /// Size in GiB, at least that of the snapshot of the image. Defaults to the size of the image. A change makes running
    /// instances outdated.
    #[serde(rename = "sizeGiB", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub size_gib: Option<i32>,

    /// Type of the EBS volume: `gp3`, `gp2`, `io1`, `io2` or `standard`. Defaults to `gp3`. A change makes running
    /// instances outdated.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<VolumeType>,

    /// Provisioned I/O operations per second of a gp3, io1 or io2 volume. Defaults to 3000 for gp3; required for io1
    /// and io2. A change makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 256_000))]
    pub iops: Option<i32>,

    /// Throughput of a gp3 volume in MiB per second. Defaults to 125. A change makes running instances outdated.
    #[serde(rename = "throughputMiBps", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 125, max = 2000))]
    pub throughput_mibps: Option<i32>,

    /// Encryption of the volume, and of each other volume of the image that `dataVolumes` does not contain: `Encrypted`, or
    /// `AccountDefault` for the settings of the account and the image. Defaults to `Encrypted`. A change makes running
    /// instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<VolumeEncryption>,

    /// ID, alias or ARN of the KMS key, also for each other volume of the image that `dataVolumes` does not contain.
    /// Defaults to the account's default key for EBS. A change makes running instances outdated.
    #[serde(rename = "kmsKeyID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[A-Za-z0-9:/_-]+$"))]
    pub kms_key_id: Option<String>,

    /// What happens to the volume when its instance terminates: `Delete` or `Retain`. Defaults to `Delete`. A change
    /// makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_termination: Option<VolumeOnTermination>,
}

/// Additional volume of each instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.sizeGiB) || has(self.snapshotID)")
        .message("spec.machine.dataVolumes[]: set sizeGiB, snapshotID or both"),
    validation = Rule::new("!has(self.sizeGiB) || !has(self.type) || !(self.type in ['st1', 'sc1']) || self.sizeGiB >= 125")
        .message("spec.machine.dataVolumes[].sizeGiB: must be at least 125 for st1 and sc1")
        .field_path(".sizeGiB"),
    validation = Rule::new("!has(self.iops) || !has(self.type) || self.type in ['gp3', 'io1', 'io2']")
        .message("spec.machine.dataVolumes[].iops: only gp3, io1 and io2 support iops; remove it or change type")
        .field_path(".iops"),
    validation = Rule::new("!has(self.iops) || (has(self.type) && self.type != 'gp3') || self.iops >= 3000")
        .message("spec.machine.dataVolumes[].iops: must be at least 3000 for gp3")
        .field_path(".iops"),
    validation = Rule::new("has(self.iops) || !has(self.type) || !(self.type in ['io1', 'io2'])")
        .message("spec.machine.dataVolumes[].iops: is required for io1 and io2")
        .field_path(".iops"),
    validation = Rule::new("!has(self.throughputMiBps) || !has(self.type) || self.type == 'gp3'")
        .message("spec.machine.dataVolumes[].throughputMiBps: only gp3 supports a throughput; remove it or change type")
        .field_path(".throughputMiBps"),
    validation = Rule::new("!has(self.kmsKeyID) || !has(self.encryption) || self.encryption == 'Encrypted'")
        .message("spec.machine.dataVolumes[].kmsKeyID: requires encryption Encrypted")
        .field_path(".kmsKeyID"),
)]
pub struct DataVolume {
    /// Device name of the volume, such as `/dev/xvdb`. It identifies the entry. With the device name of a volume of the
    /// image, the entry overrides that volume. A change makes running instances outdated.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^/dev/(sd|xvd)[a-z]{1,2}[0-9]{0,2}$"))]
    pub device_name: String,

    /// ID of the snapshot that the volume is created from. Defaults to the snapshot of the volume of the image with the same
    /// device name; without one, the volume is empty. A change makes running instances outdated.
    #[serde(rename = "snapshotID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^snap-[0-9a-f]{8,17}$"))]
    pub snapshot_id: Option<String>,

    /// Size in GiB, at least that of the snapshot. Defaults to the size of the snapshot. A change makes running instances
    /// outdated.
    #[serde(rename = "sizeGiB", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub size_gib: Option<i32>,

    /// Type of the EBS volume: `gp3`, `gp2`, `io1`, `io2`, `st1`, `sc1` or `standard`. Defaults to `gp3`. A change
    /// makes running instances outdated.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<VolumeType>,

    /// Provisioned I/O operations per second of a gp3, io1 or io2 volume. Defaults to 3000 for gp3; required for io1
    /// and io2. A change makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 256_000))]
    pub iops: Option<i32>,

    /// Throughput of a gp3 volume in MiB per second. Defaults to 125. A change makes running instances outdated.
    #[serde(rename = "throughputMiBps", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 125, max = 2000))]
    pub throughput_mibps: Option<i32>,

    /// Encryption of the volume: `Encrypted`, or `AccountDefault` for the settings of the account and the snapshot.
    /// Defaults to `Encrypted`. A change makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<VolumeEncryption>,

    /// ID, alias or ARN of the KMS key. Defaults to the account's default key for EBS. A change makes running instances
    /// outdated.
    #[serde(rename = "kmsKeyID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[A-Za-z0-9:/_-]+$"))]
    pub kms_key_id: Option<String>,

    /// What happens to the volume when its instance terminates: `Delete` or `Retain`. Defaults to `Delete`. A change
    /// makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_termination: Option<VolumeOnTermination>,
}

/// The fields that root and data volumes have in common, with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSettings {
    /// Size in GiB; `None` is the size of the image or the snapshot.
    pub size_gib: Option<i32>,
    /// The volume type.
    pub volume_type: VolumeType,
    /// Operations per second; `None` is AWS's default for the type.
    pub iops: Option<i32>,
    /// Throughput in MiB/s; `None` is AWS's default for the type.
    pub throughput_mibps: Option<i32>,
    /// `Some(true)` requests encryption; `None` omits the field, so that the account's setting applies.
    pub encrypted: Option<bool>,
    /// The KMS key; `None` is the account's default key.
    pub kms_key_id: Option<String>,
    /// Whether the volume is deleted with its instance.
    pub delete_on_termination: bool,
}

/// A block device mapping of the launch template, with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedVolume {
    /// The device name; `None` is the image's root device, which only AWS can name.
    pub device_name: Option<String>,
    /// The snapshot that the volume is created from.
    pub snapshot_id: Option<String>,
    /// The other fields.
    pub settings: VolumeSettings,
}

impl RootVolume {
    /// Fills in the defaults: gp3, encrypted, deleted with its instance. They are here and not in the schema, so that a
    /// pool that sets a default value and one that omits it hash alike.
    #[must_use]
    pub fn resolve(&self) -> ResolvedVolume {
        ResolvedVolume {
            device_name: None,
            snapshot_id: None,
            settings: VolumeSettings {
                size_gib: self.size_gib,
                volume_type: self.volume_type.unwrap_or(VolumeType::Gp3),
                iops: not_default(self.iops, self.volume_type, GP3_IOPS),
                throughput_mibps: not_default(self.throughput_mibps, self.volume_type, GP3_THROUGHPUT),
                encrypted: encrypted(self.encryption),
                kms_key_id: self.kms_key_id.clone(),
                delete_on_termination: deleted(self.on_termination),
            },
        }
    }
}

impl DataVolume {
    /// Fills in the defaults: gp3, encrypted, deleted with its instance.
    #[must_use]
    pub fn resolve(&self) -> ResolvedVolume {
        ResolvedVolume {
            device_name: Some(self.device_name.clone()),
            snapshot_id: self.snapshot_id.clone(),
            settings: VolumeSettings {
                size_gib: self.size_gib,
                volume_type: self.volume_type.unwrap_or(VolumeType::Gp3),
                iops: not_default(self.iops, self.volume_type, GP3_IOPS),
                throughput_mibps: not_default(self.throughput_mibps, self.volume_type, GP3_THROUGHPUT),
                encrypted: encrypted(self.encryption),
                kms_key_id: self.kms_key_id.clone(),
                delete_on_termination: deleted(self.on_termination),
            },
        }
    }
}

/// Omits what gp3 has by default, so that setting it and omitting it hash alike.
fn not_default(value: Option<i32>, volume_type: Option<VolumeType>, default: i32) -> Option<i32> {
    value.filter(|value| volume_type.unwrap_or(VolumeType::Gp3) != VolumeType::Gp3 || *value != default)
}

fn encrypted(encryption: Option<VolumeEncryption>) -> Option<bool> {
    match encryption {
        None | Some(VolumeEncryption::Encrypted) => Some(true),
        Some(VolumeEncryption::AccountDefault) => None,
    }
}

fn deleted(on_termination: Option<VolumeOnTermination>) -> bool {
    on_termination != Some(VolumeOnTermination::Retain)
}
