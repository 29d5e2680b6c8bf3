//! The volumes of an instance, with the rules that tie type, size, speed and encryption together.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::values::string_enum;

/// Operations per second of every gp3 volume.
const GP3_IOPS: i32 = 3000;
/// Throughput of every gp3 volume in MiB per second.
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
        /// Always encrypted.
        Encrypted = "Encrypted",
        /// As the account's and the snapshot's own settings say.
        AccountDefault = "AccountDefault",
    }
}

string_enum! {
    /// What becomes of a volume when its instance ends.
    pub enum VolumeOnTermination {
        /// The volume is deleted.
        Delete = "Delete",
        /// The volume is kept, and paid for.
        Retain = "Retain",
    }
}

/// The root volume of each instance. The rules on types are AWS's; upper limits per type are left to AWS, which raises
/// them now and then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.type) || !(self.type in ['st1', 'sc1'])")
        .message("spec.machine.rootVolume.type: st1 and sc1 cannot be booted from")
        .field_path(".type"),
    validation = Rule::new("!has(self.iops) || !has(self.type) || self.type in ['gp3', 'io1', 'io2']")
        .message("spec.machine.rootVolume.iops: only gp3, io1 and io2 take iops; remove it or change type")
        .field_path(".iops"),
    validation = Rule::new("!has(self.iops) || (has(self.type) && self.type != 'gp3') || self.iops >= 3000")
        .message("spec.machine.rootVolume.iops: gp3 has at least 3000")
        .field_path(".iops"),
    validation = Rule::new("has(self.iops) || !has(self.type) || !(self.type in ['io1', 'io2'])")
        .message("spec.machine.rootVolume.iops: required by io1 and io2")
        .field_path(".iops"),
    validation = Rule::new("!has(self.throughputMiBps) || !has(self.type) || self.type == 'gp3'")
        .message("spec.machine.rootVolume.throughputMiBps: only gp3 takes a throughput; remove it or change type")
        .field_path(".throughputMiBps"),
    validation = Rule::new("!has(self.kmsKeyID) || !has(self.encryption) || self.encryption == 'Encrypted'")
        .message("spec.machine.rootVolume.kmsKeyID: needs encryption Encrypted")
        .field_path(".kmsKeyID"),
)]
pub struct RootVolume {
    /// Size in GiB. Default: the image's. A change makes running instances outdated.
    #[serde(rename = "sizeGiB", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub size_gib: Option<i32>,

    /// AWS's volume type: gp3, gp2, io1, io2 or standard. Default gp3. A change makes running instances outdated.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<VolumeType>,

    /// Operations per second that gp3, io1 or io2 is provisioned with. Default for gp3: 3000. A change makes running
    /// instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 256_000))]
    pub iops: Option<i32>,

    /// Throughput of a gp3 volume in MiB per second. Default 125. A change makes running instances outdated.
    #[serde(rename = "throughputMiBps", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 125, max = 2000))]
    pub throughput_mibps: Option<i32>,

    /// `Encrypted`, or `AccountDefault` for what the account and the image say. Default `Encrypted`. A change makes
    /// running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<VolumeEncryption>,

    /// The KMS key to encrypt with: its ID, alias or ARN. Default: the account's key for EBS. A change makes running
    /// instances outdated.
    #[serde(rename = "kmsKeyID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[A-Za-z0-9:/_-]+$"))]
    pub kms_key_id: Option<String>,

    /// What becomes of the volume when its instance ends: `Delete` or `Retain`. Default `Delete`. A change makes
    /// running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_termination: Option<VolumeOnTermination>,
}

/// A further volume of each instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.sizeGiB) || has(self.snapshotID)")
        .message("spec.machine.dataVolumes[]: set sizeGiB, snapshotID or both"),
    validation = Rule::new("!has(self.sizeGiB) || !has(self.type) || !(self.type in ['st1', 'sc1']) || self.sizeGiB >= 125")
        .message("spec.machine.dataVolumes[].sizeGiB: st1 and sc1 have at least 125 GiB")
        .field_path(".sizeGiB"),
    validation = Rule::new("!has(self.iops) || !has(self.type) || self.type in ['gp3', 'io1', 'io2']")
        .message("spec.machine.dataVolumes[].iops: only gp3, io1 and io2 take iops; remove it or change type")
        .field_path(".iops"),
    validation = Rule::new("!has(self.iops) || (has(self.type) && self.type != 'gp3') || self.iops >= 3000")
        .message("spec.machine.dataVolumes[].iops: gp3 has at least 3000")
        .field_path(".iops"),
    validation = Rule::new("has(self.iops) || !has(self.type) || !(self.type in ['io1', 'io2'])")
        .message("spec.machine.dataVolumes[].iops: required by io1 and io2")
        .field_path(".iops"),
    validation = Rule::new("!has(self.throughputMiBps) || !has(self.type) || self.type == 'gp3'")
        .message("spec.machine.dataVolumes[].throughputMiBps: only gp3 takes a throughput; remove it or change type")
        .field_path(".throughputMiBps"),
    validation = Rule::new("!has(self.kmsKeyID) || !has(self.encryption) || self.encryption == 'Encrypted'")
        .message("spec.machine.dataVolumes[].kmsKeyID: needs encryption Encrypted")
        .field_path(".kmsKeyID"),
)]
pub struct DataVolume {
    /// The device that the volume is attached as, such as `/dev/xvdb`; it names the entry. A change makes running
    /// instances outdated.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^/dev/(sd|xvd)[a-z]{1,2}[0-9]{0,2}$"))]
    pub device_name: String,

    /// The snapshot that the volume starts from. Default: none, an empty volume. A change makes running instances
    /// outdated.
    #[serde(rename = "snapshotID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^snap-[0-9a-f]{8,17}$"))]
    pub snapshot_id: Option<String>,

    /// Size in GiB. Default: the snapshot's. A change makes running instances outdated.
    #[serde(rename = "sizeGiB", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub size_gib: Option<i32>,

    /// AWS's volume type: gp3, gp2, io1, io2, st1, sc1 or standard. Default gp3. A change makes running instances
    /// outdated.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<VolumeType>,

    /// Operations per second that gp3, io1 or io2 is provisioned with. Default for gp3: 3000. A change makes running
    /// instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 256_000))]
    pub iops: Option<i32>,

    /// Throughput of a gp3 volume in MiB per second. Default 125. A change makes running instances outdated.
    #[serde(rename = "throughputMiBps", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 125, max = 2000))]
    pub throughput_mibps: Option<i32>,

    /// `Encrypted`, or `AccountDefault` for what the account and the snapshot say. Default `Encrypted`. A change makes
    /// running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<VolumeEncryption>,

    /// The KMS key to encrypt with: its ID, alias or ARN. Default: the account's key for EBS. A change makes running
    /// instances outdated.
    #[serde(rename = "kmsKeyID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[A-Za-z0-9:/_-]+$"))]
    pub kms_key_id: Option<String>,

    /// What becomes of the volume when its instance ends: `Delete` or `Retain`. Default `Delete`. A change makes
    /// running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_termination: Option<VolumeOnTermination>,
}

/// The members that root and data volumes share, every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSettings {
    /// Size in GiB; `None` is the image's or the snapshot's.
    pub size_gib: Option<i32>,
    /// The volume type.
    pub volume_type: VolumeType,
    /// Operations per second; `None` is AWS's default for the type.
    pub iops: Option<i32>,
    /// Throughput in MiB/s; `None` is AWS's default for the type.
    pub throughput_mibps: Option<i32>,
    /// `Some(true)` asks for encryption; `None` leaves the member out, so that the account's setting counts.
    pub encrypted: Option<bool>,
    /// The KMS key; `None` is the account's.
    pub kms_key_id: Option<String>,
    /// Whether the volume goes with its instance.
    pub delete_on_termination: bool,
}

/// One entry of the instance's block devices, every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedVolume {
    /// The device; `None` is the image's root device, which only AWS can name.
    pub device_name: Option<String>,
    /// The snapshot to start from.
    pub snapshot_id: Option<String>,
    /// The rest.
    pub settings: VolumeSettings,
}

impl RootVolume {
    /// Fills in the defaults: gp3, encrypted, deleted with its instance. They live here and not in the schema, so that
    /// a pool that names a default and one that leaves it out hash alike.
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

/// What gp3 has anyway is left out, so that naming it and leaving it out hash alike.
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
