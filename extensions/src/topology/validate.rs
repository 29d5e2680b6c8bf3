//! What is wrong with a patched template, in words: what the API server would reject, and what it cannot check.

use std::collections::BTreeSet;

use capasg_api::{ASGMachinePoolSpec, admission::validate_times};
use serde::Deserialize as _;
use serde_json::Value;

use super::{
    KIND, PatchError, SPEC, Variables, bootstrap, instances::Architecture, variables::PoolVariables,
};

/// The problems of an `ASGMachinePoolTemplate` and of the bootstrap template next to it, in a fixed order.
pub(crate) fn problems(
    template: &Value,
    bootstrap: Option<&Value>,
    variables: &Variables<'_>,
) -> Vec<String> {
    let Some(spec) = template.pointer(SPEC) else {
        return vec![PatchError::NoSpec(KIND).to_string()];
    };
    let spec = match ASGMachinePoolSpec::deserialize(spec) {
        Ok(spec) => spec,
        Err(error) => return vec![format!("spec.template.spec: {error}")],
    };
    let mut problems = Vec::new();
    match PoolVariables::read(variables) {
        Ok(variables) => problems.extend(bootstrap::problem(bootstrap, &variables)),
        Err(error) => problems.push(error.to_string()),
    }
    if spec.region.is_empty() {
        problems
            .push("region: must be set; set the variable asgRegion or the region of the template".to_owned());
    }
    problems.extend(types(&spec));
    problems.extend(subnets(&spec));
    if !(1..=16).contains(&spec.machine.security_groups.len()) {
        problems.push("machine.securityGroups: must have 1 to 16 selectors".to_owned());
    }
    problems.extend(image(&spec, variables.builtin("/machinePool/version")));
    if let (Some(min), Some(max)) = (spec.min_size, spec.max_size)
        && min > max
    {
        problems.push("minSize: must not be greater than maxSize".to_owned());
    }
    let times = validate_times(&spec, None).into_iter();
    problems.extend(times.map(|error| format!("{}: {}", error.field, error.message)));
    problems
}

fn types(spec: &ASGMachinePoolSpec) -> Vec<String> {
    let types = &spec.instance_types;
    let mut problems = Vec::new();
    if types.is_empty() || types.len() > 40 {
        problems.push("instanceTypes: must have 1 to 40 instance types".to_owned());
    }
    let names = || types.iter().map(|entry| entry.type_.as_str());
    if names().collect::<BTreeSet<_>>().len() < types.len() {
        problems.push("instanceTypes: must not contain a type twice".to_owned());
    }
    let architectures: BTreeSet<&str> =
        names().filter_map(Architecture::of_type).map(Architecture::as_str).collect();
    if architectures.len() > 1 {
        problems.push("instanceTypes: all instance types must have the architecture of the image".to_owned());
    }
    problems
}

fn subnets(spec: &ASGMachinePoolSpec) -> Option<String> {
    if spec.subnets.is_empty() || spec.subnets.len() > 32 {
        return Some("subnets: must have 1 to 32 selectors; set the variable asgSubnets or the subnets of the template".to_owned());
    }
    let both = spec.subnets.iter().any(|subnet| subnet.id.is_some() == subnet.tags.is_some());
    both.then(|| "subnets: set exactly one of id and tags in each".to_owned())
}

fn image(spec: &ASGMachinePoolSpec, version: Option<&str>) -> Option<String> {
    let image = &spec.machine.image;
    if image.id.is_some() == image.ssm_parameter.is_some() {
        return Some("machine.image: set exactly one of id and ssmParameter".to_owned());
    }
    let parameter = image.ssm_parameter.as_deref()?;
    let rest = parameter.replace("{version}", "").replace("{minor}", "");
    if rest.contains(['{', '}']) {
        return Some(
            "machine.image.ssmParameter: only the placeholders {version} and {minor} are allowed".to_owned(),
        );
    }
    // Without a version there is nothing to check: core sends it with each template of a pool.
    let error = image.ssm_parameter_for(Some(version?)).err()?;
    Some(format!("machine.image.ssmParameter: {error}"))
}
