//! The console of a machine, and its user data.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{Ec2State, Instance, dry_run, instances};
use crate::{ApiError, Tree, region::View, time::timestamp};

/// What a machine wrote: that it booted, and each line of its user data, as a script that traces itself does.
pub(crate) fn output(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    let instance = one(view, params)?;
    let reply = Tree::new().with("InstanceId", &instance.id).with("Timestamp", timestamp(instance.launched));
    if matches!(instance.state, Ec2State::Pending) {
        return Ok(reply);
    }
    let user_data = instance.user_data.as_deref().and_then(|data| STANDARD.decode(data).ok());
    let user_data = String::from_utf8_lossy(&user_data.unwrap_or_default()).into_owned();
    let lines: Vec<String> =
        user_data.lines().map(|line| format!("[   12.000000] cloud-init[1]: + {line}\r\n")).collect();
    let name = instance.dns_name(&view.scope.region);
    let text = format!("[    0.000000] Linux version 6.12\r\n{}{name} login: ", lines.concat());
    Ok(reply.with("Output", STANDARD.encode(text)))
}

/// One attribute, of which only the user data are known.
pub(crate) fn attribute(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    let instance = one(view, params)?;
    match params.text_of("Attribute") {
        Some("userData") => {}
        other => {
            let message =
                format!("Value ({}) for parameter attribute is invalid.", other.unwrap_or_default());
            return Err(ApiError::refused("InvalidParameterValue", message));
        }
    }
    let value = Tree::new().with_opt("Value", instance.user_data.as_deref());
    Ok(Tree::new().with("InstanceId", &instance.id).with("UserData", value))
}

fn one<'a>(view: &'a View<'_>, params: &Tree) -> Result<&'a Instance, ApiError> {
    dry_run(params)?;
    let id = params.text_of("InstanceId").unwrap_or_default().to_owned();
    instances::all_known(&view.state.instances, std::slice::from_ref(&id))?;
    view.state.instances.get(&id).ok_or_else(|| {
        ApiError::refused("InvalidInstanceID.NotFound", format!("The instance ID '{id}' does not exist"))
    })
}
