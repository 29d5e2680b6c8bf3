//! `spec.machine`: the template of each instance. A change of it makes running instances outdated.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{DataVolume, ResolvedVolume, RootVolume, SecurityGroupSelector};
use crate::values::string_enum;

string_enum! {
    /// Whether the instance metadata service requires a session token (`IMDSv2`).
    pub enum HttpTokens {
        /// `IMDSv2` only.
        Required = "required",
        /// `IMDSv1` and `IMDSv2`.
        Optional = "optional",
    }
}

string_enum! {
    /// A switch with AWS's own values.
    pub enum MetadataSwitch {
        /// On.
        Enabled = "enabled",
        /// Off.
        Disabled = "disabled",
    }
}

string_enum! {
    /// What happens when an SSM parameter holds another image than the one in use.
    pub enum ImageUpdatePolicy {
        /// The controller reports the image and keeps the one in use until the name of the parameter changes.
        WithVersion = "WithVersion",
        /// The controller rolls the image out.
        RollOut = "RollOut",
    }
}

/// Template of each instance. Every change makes running instances outdated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTemplate {
    /// Image that instances are launched from. A change makes running instances outdated.
    pub image: Image,

    /// Name or ARN of the IAM instance profile. Defaults to none. A change makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[A-Za-z0-9+=,.@_:/-]+$"))]
    pub iam_instance_profile: Option<String>,

    /// Name of the EC2 key pair for SSH. Defaults to none. A change makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^[ -~]+$"))]
    pub ssh_key_name: Option<String>,

    /// Security groups of the instances, each selected by ID, name or tags; at least one. The default security group of
    /// the VPC applies only if it is selected. A change makes running instances outdated.
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub security_groups: Vec<SecurityGroupSelector>,

    /// Root volume. Defaults to an encrypted gp3 volume of the image's size that is deleted with its instance. A change
    /// makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<RootVolume>,

    /// Additional volumes, identified by their device names. A volume with the device name of a volume of the image
    /// overrides its settings; other volumes of the image are kept, encrypted as the root volume. Defaults to none. A
    /// change makes running instances outdated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 27))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["deviceName".into()]))]
    pub data_volumes: Vec<DataVolume>,

    /// Device name of the volume on which the kubelet and the container runtime store the data of pods: a data volume, a
    /// volume of the image such as `/dev/xvdb` of Bottlerocket, or the root volume. status.capacity reports its size as
    /// ephemeral-storage, from which an autoscaler scales the pool from zero; nodes are not configured. Defaults to the
    /// root volume. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self.matches('^(/dev/)?(sd|xvd)[a-z]{1,2}[0-9]{0,2}$')")
        .message("spec.machine.ephemeralStorageDeviceName: must be the device name of a volume, such as /dev/xvdb; if it is empty, a variable of the template has no value"))]
    pub ephemeral_storage_device_name: Option<String>,

    /// Options of the instance metadata service. Defaults to required session tokens and a hop limit of 1. A change
    /// makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_options: Option<MetadataOptions>,
}

/// Image that instances are launched from: an ID, or an SSM parameter that is read once and then pinned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.id) != has(self.ssmParameter)")
        .message("spec.machine.image: set exactly one of id and ssmParameter"),
)]
pub struct Image {
    /// ID of the image, such as `ami-0a1b2c3d`. Either this field or ssmParameter is required. A change makes running
    /// instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^ami-[0-9a-f]{8,17}$')")
        .message("spec.machine.image.id: must be the ID of an image, such as ami-0a1b2c3d; if it is empty, a variable of the template has no value"))]
    pub id: Option<String>,

    /// Name or ARN of an SSM parameter that holds the ID of an image. Either this field or id is required. `{version}`
    /// is replaced with the Kubernetes version of the MachinePool without the leading `v` (1.33.2), `{minor}` with its
    /// major and minor version (1.33). The controller pins the image, and reads another one when the name of the
    /// parameter changes after the placeholders are replaced: without a placeholder, a change of the version does not
    /// change the image. updatePolicy determines what happens when the value of the parameter changes. Another image
    /// makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1011))]
    #[x_kube(
        validation = Rule::new("self.matches('^[A-Za-z0-9_.:/{}-]+$')")
            .message("spec.machine.image.ssmParameter: must be the name or ARN of an SSM parameter, such as /images/node/v{version}; if it is empty, a variable of the template has no value"),
        validation = Rule::new("!self.replace('{version}', '').replace('{minor}', '').matches('[{}]')")
            .message("spec.machine.image.ssmParameter: only the placeholders {version} and {minor} are allowed"),
    )]
    pub ssm_parameter: Option<String>,

    /// What happens when the parameter holds another image than before, which the controller observes within one hour.
    /// `WithVersion` reports the image as status.image.availableID, and applies it when the name of the parameter changes,
    /// including by its placeholders. `RollOut` makes running instances outdated at once; they are replaced according
    /// to `rollout` and `disruption`. Defaults to `WithVersion`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_policy: Option<ImageUpdatePolicy>,
}

/// Options of the instance metadata service, with AWS's own fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// `required` accepts only requests with a session token, `optional` accepts requests without one too. Defaults to
    /// `required`. A change makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_tokens: Option<HttpTokens>,

    /// Maximum number of network hops of the response that contains a session token. With 1, pods that do not use the
    /// host network cannot get a token. Defaults to 1. A change makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub http_put_response_hop_limit: Option<i32>,

    /// Whether the service is available: `enabled` or `disabled`. Defaults to `enabled`. A change makes running
    /// instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_endpoint: Option<MetadataSwitch>,

    /// Whether the service has an IPv6 endpoint: `enabled` or `disabled`. Defaults to `disabled`. A change makes
    /// running instances outdated.
    #[serde(rename = "httpProtocolIPv6", default, skip_serializing_if = "Option::is_none")]
    pub http_protocol_ipv6: Option<MetadataSwitch>,
}

/// Options of the instance metadata service, with every default filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedMetadataOptions {
    /// Whether a session token is required.
    pub http_tokens: HttpTokens,
    /// The maximum number of network hops of a session token.
    pub http_put_response_hop_limit: i32,
    /// Whether the service is available.
    pub http_endpoint: MetadataSwitch,
    /// Whether the service has an IPv6 endpoint.
    #[serde(rename = "httpProtocolIPv6")]
    pub http_protocol_ipv6: MetadataSwitch,
}

/// The name of an SSM parameter requires a version that the `MachinePool` does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{parameter} requires spec.template.spec.version of the MachinePool, which is {found}")]
pub struct PlaceholderError {
    /// The name as the spec has it.
    pub parameter: String,
    /// What the `MachinePool` has instead of a version: `not set`, or the text in quotes.
    pub found: String,
}

impl MachineTemplate {
    /// The metadata options with every default filled in. The defaults are here and not in the schema, so that a pool
    /// that sets a default value and one that omits it hash alike.
    #[must_use]
    pub fn metadata_options(&self) -> ResolvedMetadataOptions {
        let options = self.metadata_options.clone().unwrap_or_default();
        ResolvedMetadataOptions {
            http_tokens: options.http_tokens.unwrap_or(HttpTokens::Required),
            http_put_response_hop_limit: options.http_put_response_hop_limit.unwrap_or(1),
            http_endpoint: options.http_endpoint.unwrap_or(MetadataSwitch::Enabled),
            http_protocol_ipv6: options.http_protocol_ipv6.unwrap_or(MetadataSwitch::Disabled),
        }
    }

    /// The root volume with every default filled in. It is set even if the spec omits it, so that it is encrypted.
    #[must_use]
    pub fn root_volume(&self) -> ResolvedVolume {
        self.root_volume.clone().unwrap_or_default().resolve()
    }

    /// The additional volumes with every default filled in, sorted by device name.
    #[must_use]
    pub fn data_volumes(&self) -> Vec<ResolvedVolume> {
        let mut volumes: Vec<_> = self.data_volumes.iter().map(DataVolume::resolve).collect();
        volumes.sort_by(|a, b| a.device_name.cmp(&b.device_name));
        volumes
    }
}

impl Image {
    /// An image by its ID.
    #[must_use]
    pub fn by_id(id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..Self::default() }
    }

    /// An image by the SSM parameter that holds its ID.
    #[must_use]
    pub fn by_ssm_parameter(name: impl Into<String>) -> Self {
        Self { ssm_parameter: Some(name.into()), ..Self::default() }
    }

    /// What happens when the parameter holds another image; `WithVersion` unless set.
    #[must_use]
    pub fn update_policy(&self) -> ImageUpdatePolicy {
        self.update_policy.unwrap_or(ImageUpdatePolicy::WithVersion)
    }

    /// The parameter to read, with `{version}` and `{minor}` replaced by the `MachinePool`'s version (such as `v1.33.2`);
    /// `None` if the spec has the ID of an image.
    ///
    /// # Errors
    ///
    /// The name has a placeholder, and `version` is absent or has fewer than two numbers.
    pub fn ssm_parameter_for(&self, version: Option<&str>) -> Result<Option<String>, PlaceholderError> {
        let Some(parameter) = self.ssm_parameter.as_deref() else { return Ok(None) };
        if !parameter.contains('{') {
            return Ok(Some(parameter.to_owned()));
        }
        let error = || PlaceholderError {
            parameter: parameter.to_owned(),
            found: version.map_or_else(|| "not set".to_owned(), |version| format!("{version:?}")),
        };
        let plain = version.map(|version| version.strip_prefix('v').unwrap_or(version)).ok_or_else(error)?;
        let minor = minor(plain).ok_or_else(error)?;
        Ok(Some(parameter.replace("{version}", plain).replace("{minor}", &minor)))
    }
}

/// `1.33` of `1.33.2`.
fn minor(version: &str) -> Option<String> {
    let mut numbers = version.split(['.', '-', '+']);
    let (major, minor) = (numbers.next()?, numbers.next()?);
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (number(major) && number(minor)).then(|| format!("{major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_in_from_the_version() {
        let image = Image::by_ssm_parameter("/images/{minor}/node-v{version}");
        let name = image.ssm_parameter_for(Some("v1.33.2"));
        assert_eq!(name, Ok(Some("/images/1.33/node-v1.33.2".to_owned())));
        let name = Image::by_ssm_parameter("/images/{minor}").ssm_parameter_for(Some("1.34.0-rc.1+x"));
        assert_eq!(name, Ok(Some("/images/1.34".to_owned())));
    }

    #[test]
    fn without_placeholders_no_version_is_needed() {
        assert_eq!(
            Image::by_ssm_parameter("/images/node").ssm_parameter_for(None),
            Ok(Some("/images/node".to_owned()))
        );
        assert_eq!(Image::by_id("ami-0a1b2c3d").ssm_parameter_for(None), Ok(None));
    }

    #[test]
    fn a_placeholder_without_a_version_says_what_is_missing() {
        let image = Image::by_ssm_parameter("/images/{version}");
        assert_eq!(
            image.ssm_parameter_for(None).unwrap_err().to_string(),
            "/images/{version} requires spec.template.spec.version of the MachinePool, which is not set"
        );
        assert_eq!(
            image.ssm_parameter_for(Some("latest")).unwrap_err().to_string(),
            "/images/{version} requires spec.template.spec.version of the MachinePool, which is \"latest\""
        );
    }

    #[test]
    fn volumes_are_encrypted_unless_the_account_decides() {
        let machine = MachineTemplate::default();
        assert_eq!(machine.root_volume().settings.encrypted, Some(true));
        let root = RootVolume {
            encryption: Some(super::super::VolumeEncryption::AccountDefault),
            ..RootVolume::default()
        };
        assert_eq!(root.resolve().settings.encrypted, None);
    }
}
