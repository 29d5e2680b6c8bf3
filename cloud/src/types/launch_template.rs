//! Launch templates: what a version holds and what the provider reads back.

use std::{collections::BTreeMap, fmt, sync::Arc};

use chrono::{DateTime, Utc};

use super::ImageVolume;

/// A launch template as `DescribeLaunchTemplates` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchTemplate {
    /// `LaunchTemplateId`.
    pub id: String,
    /// `LaunchTemplateName`.
    pub name: String,
    /// `LatestVersionNumber`.
    pub latest_version: i64,
    /// `DefaultVersionNumber`.
    pub default_version: i64,
    /// Tags by key.
    pub tags: BTreeMap<String, String>,
}

/// A version as read back: the description holds the hashes, the image is the pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchTemplateVersion {
    /// `VersionNumber`.
    pub number: i64,
    /// `VersionDescription`.
    pub description: Option<String>,
    /// `LaunchTemplateData.ImageId`.
    pub image_id: Option<String>,
    /// What it holds, apart from its user data, which is never read back; `None` if AWS did not return it.
    pub content: Option<Arc<LaunchTemplateData>>,
    /// `CreateTime`.
    pub created_at: DateTime<Utc>,
}

/// What a version holds (`RequestLaunchTemplateData`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchTemplateData {
    /// `ImageId`.
    pub image_id: String,
    /// `InstanceType`: the first of the list; a policy's overrides come on top.
    pub instance_type: String,
    /// `IamInstanceProfile`: a name, or an ARN if it begins with `arn:`.
    pub iam_instance_profile: Option<String>,
    /// `KeyName`.
    pub key_name: Option<String>,
    /// `SecurityGroupIds`; empty means the VPC's default group.
    pub security_group_ids: Vec<String>,
    /// `BlockDeviceMappings`.
    pub block_devices: Vec<BlockDevice>,
    /// `MetadataOptions`.
    pub metadata_options: MetadataOptions,
    /// `UserData`.
    pub user_data: UserData,
    /// `TagSpecifications` of instances, their volumes and network interfaces.
    pub tags: BTreeMap<String, String>,
    /// Whether groups launch nothing but Spot Instances from it, so that `TagSpecifications` contain Spot Instance requests:
    /// EC2 rejects these for other launches.
    pub spot: bool,
}

impl LaunchTemplateData {
    /// The same without the user data: what may be kept and shown.
    #[must_use]
    pub fn without_user_data(&self) -> Self {
        Self { user_data: UserData::default(), ..self.clone() }
    }

    /// Whether it encrypts each volume of the image that another one encrypts ([`BlockDevice::encrypting`]).
    #[must_use]
    pub fn encrypts_as(&self, other: &Self) -> bool {
        let mut needed = other.block_devices.iter().filter(|device| device.only_encrypts());
        needed.all(|device| self.block_devices.iter().any(|own| own.device_name == device.device_name))
    }
}

/// One `BlockDeviceMapping` with an EBS volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDevice {
    /// `DeviceName`.
    pub device_name: String,
    /// `VolumeSize` in GiB; none means the image's or snapshot's.
    pub size_gib: Option<i32>,
    /// `VolumeType`; empty means that of the image.
    pub volume_type: String,
    /// `Iops`.
    pub iops: Option<i32>,
    /// `Throughput` in MiB per second.
    pub throughput_mibps: Option<i32>,
    /// `Encrypted`; none leaves it to the account's default.
    pub encrypted: Option<bool>,
    /// `KmsKeyId`.
    pub kms_key_id: Option<String>,
    /// `SnapshotId`.
    pub snapshot_id: Option<String>,
    /// `DeleteOnTermination`.
    pub delete_on_termination: bool,
}

impl BlockDevice {
    /// The mapping that encrypts a volume of an image and changes nothing else of it. EC2 takes what a mapping does not set
    /// from that of the image with the same device name, and accepts no mapping with neither a size nor a snapshot: that
    /// of the image may belong to another account, and cannot be named.
    #[must_use]
    pub fn encrypting(device_name: &str, volume: &ImageVolume, kms_key_id: Option<String>) -> Self {
        Self {
            device_name: device_name.to_owned(),
            size_gib: volume.size_gib,
            volume_type: String::new(),
            iops: None,
            throughput_mibps: None,
            encrypted: Some(true),
            kms_key_id,
            snapshot_id: None,
            delete_on_termination: volume.delete_on_termination,
        }
    }

    /// Whether it encrypts a volume of the image ([`Self::encrypting`]): a volume that a spec sets has a type.
    #[must_use]
    pub fn only_encrypts(&self) -> bool {
        let is_plain = self.iops.is_none() && self.throughput_mibps.is_none() && self.snapshot_id.is_none();
        self.volume_type.is_empty() && self.encrypted == Some(true) && is_plain
    }
}

/// `MetadataOptions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataOptions {
    /// `HttpTokens`.
    pub http_tokens: String,
    /// `HttpPutResponseHopLimit`, in hops.
    pub http_put_response_hop_limit: i32,
    /// `HttpEndpoint`.
    pub http_endpoint: String,
    /// `HttpProtocolIpv6`.
    pub http_protocol_ipv6: String,
    /// `InstanceMetadataTags`.
    pub instance_metadata_tags: String,
}

/// Bootstrap data before base64. It is a secret: `Debug` shows its length only.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct UserData(Vec<u8>);

impl UserData {
    /// Wraps bootstrap data.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes, for the one place that sends them.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for UserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserData({} bytes)", self.0.len())
    }
}
