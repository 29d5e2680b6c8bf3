//! The patch of an `ASGMachinePoolTemplate`: what its variables and the settings change below `spec.template.spec`.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    KIND, PatchError, SPEC,
    instances::Architecture,
    merge::difference,
    variables::{ImageVariable, PoolVariables},
};
use crate::settings::{Settings, is_image_parameter};

/// A JSON merge patch; `None` if nothing changes.
///
/// # Errors
/// If a variable is invalid, or the template has no spec.
pub(super) fn patch(
    template: &Value,
    variables: &PoolVariables,
    settings: &Settings,
) -> Result<Option<Value>, PatchError> {
    let spec = template.pointer(SPEC).filter(|spec| spec.is_object()).ok_or(PatchError::NoSpec(KIND))?;
    let mut desired = spec.as_object().cloned().unwrap_or_default();
    set(&mut desired, "region", variables.region.as_ref());
    if let Some(instances) = &variables.instances {
        let types = instances.types().map_err(|why| PatchError::Variable { name: "asgInstances", why })?;
        set(&mut desired, "instanceTypes", Some(&types));
    }
    set(&mut desired, "instancesDistribution", variables.purchase.as_ref());
    set(&mut desired, "rollout", variables.rollout.as_ref());
    set(&mut desired, "disruption", variables.disruption.as_ref());
    if let Some(zones) = &variables.subnets {
        let subnets: Vec<Value> = zones.values().flatten().map(|id| json!({"id": id})).collect();
        set(&mut desired, "subnets", Some(&subnets));
    }
    if let Some(tags) = variables.tags.as_ref().filter(|tags| !tags.is_empty()) {
        merge(&mut desired, "tags", tags);
    }
    let architecture = architecture(variables, &desired);
    let image = image(variables, settings, architecture)?;
    if image.is_some() || variables.root_volume.is_some() || variables.data_volumes.is_some() {
        let machine = member(&mut desired, "machine");
        if let Some(image) = image {
            set_image(machine, &image);
        }
        if let Some(volume) = &variables.root_volume {
            merge(machine, "rootVolume", volume);
        }
        let volumes = variables.data_volumes.as_ref();
        let volumes = volumes.map(|all| all.iter().map(|entry| &entry.volume).collect::<Vec<_>>());
        set(machine, "dataVolumes", volumes.as_ref());
    }
    let patch = difference(spec, &Value::Object(desired));
    Ok(patch.map(|patch| json!({"spec": {"template": {"spec": patch}}})))
}

/// The architecture of the image: that of the variable, or of the first instance type.
fn architecture(variables: &PoolVariables, spec: &Map<String, Value>) -> Architecture {
    if let Some(instances) = variables.instances.as_ref().filter(|instances| instances.types.is_none()) {
        return instances.architecture;
    }
    let first = spec.get("instanceTypes").and_then(|types| types.pointer("/0/type")?.as_str());
    first.and_then(Architecture::of_type).unwrap_or_default()
}

/// The image of the variable, or of the setting. The version stays a placeholder: the controller fills it in when the pool
/// is upgraded.
fn image(
    variables: &PoolVariables,
    settings: &Settings,
    architecture: Architecture,
) -> Result<Option<ImageVariable>, PatchError> {
    let of_settings = || {
        let ssm_parameter = settings.image_parameter.clone()?;
        Some(ImageVariable { id: None, ssm_parameter: Some(ssm_parameter) })
    };
    let Some(mut image) = variables.image.clone().or_else(of_settings) else { return Ok(None) };
    let invalid = |why: &str| PatchError::Variable { name: "asgImage", why: why.to_owned() };
    if image.id.is_some() == image.ssm_parameter.is_some() {
        return Err(invalid("set exactly one of id and ssmParameter"));
    }
    if let Some(parameter) = &mut image.ssm_parameter {
        if !is_image_parameter(parameter) {
            return Err(invalid("only the placeholders {version}, {minor} and {architecture} are allowed"));
        }
        *parameter = parameter.replace("{architecture}", architecture.as_str());
    }
    Ok(Some(image))
}

/// Replaces the source of the image, and keeps the update policy.
fn set_image(machine: &mut Map<String, Value>, image: &ImageVariable) {
    let current = member(machine, "image");
    for (name, value) in [("id", &image.id), ("ssmParameter", &image.ssm_parameter)] {
        match value {
            Some(value) => current.insert(name.to_owned(), json!(value)),
            None => current.remove(name),
        };
    }
}

fn set(spec: &mut Map<String, Value>, name: &str, value: Option<&impl Serialize>) {
    // The types of the variables have no content that JSON cannot have.
    if let Some(value) = value.and_then(|value| serde_json::to_value(value).ok()) {
        spec.insert(name.to_owned(), value);
    }
}

/// Sets the members of an object, and keeps its others.
fn merge(spec: &mut Map<String, Value>, name: &str, members: &impl Serialize) {
    if let Ok(Value::Object(members)) = serde_json::to_value(members) {
        member(spec, name).extend(members);
    }
}

/// A member that is an object; created if it is absent, or is no object.
fn member<'a>(spec: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let member = spec.entry(name).or_insert_with(|| json!({}));
    if !member.is_object() {
        *member = json!({});
    }
    match member {
        Value::Object(object) => object,
        // It was made an object above.
        _ => unreachable!("the member is an object"),
    }
}
