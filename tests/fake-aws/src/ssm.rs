//! Systems Manager parameters: by name, with the ids of images.

use crate::{
    ApiError, Tree,
    parameters::Parameter,
    region::{View, arn},
    time::timestamp,
};

fn render(view: &View<'_>, name: &str, parameter: &Parameter) -> Tree {
    let path = name.trim_start_matches('/');
    Tree::new()
        .with("Name", name)
        .with("Type", "String")
        .with("Value", &parameter.value)
        .with("Version", parameter.version)
        .with("LastModifiedDate", timestamp(parameter.modified))
        .with("ARN", arn(view.scope, "ssm", &format!("parameter/{path}")))
        .with("DataType", "text")
}

pub(crate) fn get_parameter(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("Name").unwrap_or_default();
    let parameter = view
        .state
        .parameters
        .get(name)
        .ok_or_else(|| ApiError::refused("ParameterNotFound", format!("Parameter {name} not found.")))?;
    Ok(Tree::new().with("Parameter", render(view, name, parameter)))
}

#[expect(clippy::unnecessary_wraps, reason = "every operation has this signature")]
pub(crate) fn get_parameters(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for name in params.texts_of("Names") {
        match view.state.parameters.get(&name) {
            Some(parameter) => found.push(render(view, &name, parameter)),
            None => missing.push(name),
        }
    }
    Ok(Tree::new().with("Parameters", found).with("InvalidParameters", missing))
}
