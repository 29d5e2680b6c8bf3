//! What each instance is made from: the part of a pool whose change makes running instances outdated.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{DataVolume, ResolvedVolume, RootVolume, SecurityGroupSelector};
use crate::values::string_enum;

string_enum! {
    /// Whether instance metadata asks for a session token (`IMDSv2`).
    pub enum HttpTokens {
        /// Only `IMDSv2`.
        Required = "required",
        /// `IMDSv1` too.
        Optional = "optional",
    }
}

string_enum! {
    /// A switch in AWS's own words.
    pub enum MetadataSwitch {
        /// On.
        Enabled = "enabled",
        /// Off.
        Disabled = "disabled",
    }
}

string_enum! {
    /// What becomes of a parameter that names another image than the one in use.
    pub enum ImageUpdatePolicy {
        /// It is shown and waits.
        Hold = "Hold",
        /// It is rolled out.
        RollOut = "RollOut",
    }
}

/// The machine that each instance is. Every change here makes running instances outdated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTemplate {
    /// The image that instances start from. A change makes running instances outdated.
    pub image: Image,

    /// Name or ARN of the IAM instance profile. Default: none. A change makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[A-Za-z0-9+=,.@_:/-]+$"))]
    pub iam_instance_profile: Option<String>,

    /// Name of the EC2 key pair for SSH. Default: none. A change makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^[ -~]+$"))]
    pub ssh_key_name: Option<String>,

    /// Security groups of the instances, each by ID, name or tags. Default: the VPC's default group. A change makes
    /// running instances outdated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub security_groups: Vec<SecurityGroupSelector>,

    /// The root volume. Default: the image's size on an encrypted gp3 volume that goes with its instance. A change
    /// makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<RootVolume>,

    /// Further volumes, each under its device name. Default: none. A change makes running instances outdated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 27))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["deviceName".into()]))]
    pub data_volumes: Vec<DataVolume>,

    /// The instance metadata service. Default: session tokens required, one hop. A change makes running instances
    /// outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_options: Option<MetadataOptions>,
}

/// The image that instances start from: an ID, or a parameter that is looked up once and then pinned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.id) != has(self.ssmParameter)")
        .message("spec.machine.image: set exactly one of id and ssmParameter"),
)]
pub struct Image {
    /// The image's ID, such as `ami-0a1b2c3d`. Either this or ssmParameter. A change makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^ami-[0-9a-f]{8,17}$"))]
    pub id: Option<String>,

    /// Name or ARN of an SSM parameter that holds an image ID. Either this or id. `{version}` stands for the MachinePool's version without
    /// its v (1.33.2), `{minor}` for its first two numbers (1.33). It is read when this field or the version changes and
    /// then pinned: for a parameter that moves on later see updatePolicy. A change of the image found makes running
    /// instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1011), regex(pattern = r"^[A-Za-z0-9_.:/{}-]+$"))]
    #[x_kube(validation = Rule::new("!self.replace('{version}', '').replace('{minor}', '').matches('[{}]')")
        .message("spec.machine.image.ssmParameter: only {version} and {minor} can be filled in"))]
    pub ssm_parameter: Option<String>,

    /// What becomes of a parameter that names another image than before, which is seen within the hour. `Hold` shows it as
    /// status.image.availableID, and takes it with the next change of the version or of ssmParameter; `RollOut` makes running
    /// instances outdated at once, to be replaced as rollout and disruption say. Default `Hold`. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_policy: Option<ImageUpdatePolicy>,
}

/// The instance metadata service, in AWS's own members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// `required` for session tokens only, `optional` to accept calls without one. Default `required`. A change makes
    /// running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_tokens: Option<HttpTokens>,

    /// How many network hops a token may travel; 1 keeps pods without the host's network away. Default 1. A change makes
    /// running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub http_put_response_hop_limit: Option<i32>,

    /// Whether the service answers at all: `enabled` or `disabled`. Default `enabled`. A change makes running instances
    /// outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_endpoint: Option<MetadataSwitch>,

    /// Whether the service answers on IPv6: `enabled` or `disabled`. Default `disabled`. A change makes running
    /// instances outdated.
    #[serde(rename = "httpProtocolIPv6", default, skip_serializing_if = "Option::is_none")]
    pub http_protocol_ipv6: Option<MetadataSwitch>,
}

/// [`MetadataOptions`] with every default filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedMetadataOptions {
    /// Whether a session token is required.
    pub http_tokens: HttpTokens,
    /// Hops that a token may travel.
    pub http_put_response_hop_limit: i32,
    /// Whether the service answers.
    pub http_endpoint: MetadataSwitch,
    /// Whether it answers on IPv6.
    pub http_protocol_ipv6: MetadataSwitch,
}

/// An SSM parameter name asks for a version that the `MachinePool` does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{parameter} needs spec.template.spec.version of the MachinePool, which is {found}")]
pub struct PlaceholderError {
    /// The name as the user wrote it.
    pub parameter: String,
    /// What the `MachinePool` has instead of a version: `not set`, or the text in quotes.
    pub found: String,
}

impl MachineTemplate {
    /// The metadata options with every default filled in. The defaults live here and not in the schema, so that a pool
    /// that names a default and one that leaves it out hash alike.
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

    /// The root volume with every default filled in; it is set even where the user says nothing, so that it is
    /// encrypted.
    #[must_use]
    pub fn root_volume(&self) -> ResolvedVolume {
        self.root_volume.clone().unwrap_or_default().resolve()
    }

    /// The further volumes with every default filled in, by device name.
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

    /// What becomes of a parameter that names another image; `Hold` unless set.
    #[must_use]
    pub fn update_policy(&self) -> ImageUpdatePolicy {
        self.update_policy.unwrap_or(ImageUpdatePolicy::Hold)
    }

    /// The parameter to read, `{version}` and `{minor}` filled in from the `MachinePool`'s version (such as `v1.33.2`);
    /// `None` where the image is given by ID.
    ///
    /// # Errors
    ///
    /// A placeholder stands in the name and `version` is absent or has fewer than two numbers.
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
            "/images/{version} needs spec.template.spec.version of the MachinePool, which is not set"
        );
        assert_eq!(
            image.ssm_parameter_for(Some("latest")).unwrap_err().to_string(),
            "/images/{version} needs spec.template.spec.version of the MachinePool, which is \"latest\""
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
