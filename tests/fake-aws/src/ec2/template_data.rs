//! What a launch template holds: the checks EC2 makes when it is written, and Auto Scaling's when a group uses it.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{ApiError, Tree, region::State, settings::Settings};

/// Bytes of user data before base64 that EC2 accepts.
pub(crate) const USER_DATA_LIMIT: usize = 16_384;

/// Checks the data that a version is made of.
pub(crate) fn check(data: &Tree) -> Result<(), ApiError> {
    if data.members().next().is_none() {
        return Err(ApiError::refused(
            "MissingParameter",
            "The request must contain the parameter LaunchTemplateData",
        ));
    }
    if let Some(user_data) = data.text_of("UserData") {
        let bytes = STANDARD.decode(user_data).map_err(|_| {
            ApiError::refused("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
        })?;
        if bytes.len() > USER_DATA_LIMIT {
            return Err(ApiError::refused(
                "InvalidParameterValue",
                format!("User data is limited to {USER_DATA_LIMIT} bytes"),
            ));
        }
    }
    Ok(())
}

/// The image a version launches, an SSM alias (`resolve:ssm:<name>`) resolved as of now.
pub(crate) fn image(state: &State, data: &Tree) -> Option<String> {
    let image = data.text_of("ImageId")?;
    match image.strip_prefix("resolve:ssm:") {
        Some(name) => state.parameters.get(name).map(|parameter| parameter.value.clone()),
        None => Some(image.to_owned()),
    }
}

/// The instance profile's name, given by name or ARN.
pub(crate) fn profile(data: &Tree) -> Option<String> {
    let profile = data.get("IamInstanceProfile")?;
    let by_arn = || profile.text_of("Arn").and_then(|arn| arn.rsplit('/').next());
    profile.text_of("Name").or_else(by_arn).map(str::to_owned)
}

/// The ids of the security groups, from either place that may name them.
pub(crate) fn security_groups(data: &Tree) -> Vec<String> {
    let interfaces =
        data.items_of("NetworkInterfaces").iter().flat_map(|interface| interface.texts_of("Groups"));
    data.texts_of("SecurityGroupIds").into_iter().chain(interfaces).collect()
}

/// Why a group cannot launch from this data, in the words that follow Auto Scaling's "You must use a valid
/// fully-formed launch template."; `None` if it can. `types` are those of a mixed instances policy.
pub(crate) fn refusal(state: &State, settings: &Settings, data: &Tree, types: &[String]) -> Option<String> {
    let network = &state.network;
    let any = settings.accept_any_id;
    let Some(image) = image(state, data) else {
        return Some("The request must contain the parameter ImageId".to_owned());
    };
    let known = network.images.contains_key(&image) || any && plausible(&image, "ami-");
    if !known {
        return Some(format!("The image id '[{image}]' does not exist"));
    }
    let own = data.text_of("InstanceType").map(str::to_owned);
    if own.is_none() && types.is_empty() {
        return Some("The request must contain the parameter InstanceType".to_owned());
    }
    if let Some(unknown) = own.iter().chain(types).find(|name| !network.instance_types.contains_key(*name)) {
        return Some(format!("Invalid value '{unknown}' for InstanceType."));
    }
    if let Some(words) = other_architecture(state, &image, own.as_ref(), types) {
        return Some(words);
    }
    if let Some(name) = profile(data).filter(|name| !any && !network.instance_profiles.contains(name)) {
        return Some(format!(
            "Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
        ));
    }
    if let Some(name) = data.text_of("KeyName").filter(|name| !any && !network.key_pairs.contains(*name)) {
        return Some(format!("The key pair '{name}' does not exist"));
    }
    security_groups(data)
        .into_iter()
        .find(|id| {
            let known = network.security_groups.contains_key(id) || any && plausible(id, "sg-");
            !known
        })
        .map(|id| format!("The security group '{id}' does not exist"))
}

/// What EC2 says of an instance type that cannot boot the image; a policy's types replace that of the template.
fn other_architecture(state: &State, image: &str, own: Option<&String>, types: &[String]) -> Option<String> {
    let network = &state.network;
    let image = &network.images.get(image)?.architecture;
    let launched: Vec<&String> =
        if types.is_empty() { own.into_iter().collect() } else { types.iter().collect() };
    let kinds = launched.into_iter().filter_map(|name| network.instance_types.get(name));
    let other = kinds.map(|kind| &kind.architecture).find(|architecture| *architecture != image)?;
    Some(format!(
        "The architecture '{other}' of the specified instance type does not match the architecture '{image}' of the \
         specified AMI. Specify an instance type and an AMI that have matching architectures, and try again."
    ))
}

/// Whether an id has the form of AWS's: the prefix and 8 or 17 hex digits.
pub(crate) fn plausible(id: &str, prefix: &str) -> bool {
    id.strip_prefix(prefix).is_some_and(|digits| {
        matches!(digits.len(), 8 | 17) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
