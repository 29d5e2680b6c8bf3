//! Systems Manager parameters: by name, with the ids of images.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::{
    ApiError, Tree,
    region::{View, arn},
    time::timestamp,
};

/// A parameter of type `String`.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    pub(crate) value: String,
    pub(crate) version: u64,
    pub(crate) modified: DateTime<Utc>,
}

/// Parameters that every region starts with.
pub(crate) fn defaults(now: DateTime<Utc>) -> BTreeMap<String, Parameter> {
    [
        ("/images/node/v1.37.0", "ami-0b1c2d3e"),
        ("/images/node/v1.36.3", "ami-0a1b2c3d"),
        ("/images/node/v1.35.4", "ami-0d1e2f3a"),
        ("/images/node/arm64/v1.36.3", "ami-0c1d2e3f"),
        ("/images/node/v1.37", "ami-0b1c2d3e"),
        ("/images/node/v1.36", "ami-0a1b2c3d"),
        ("/images/node/v1.35", "ami-0d1e2f3a"),
    ]
    .map(|(name, value)| (name.to_owned(), Parameter { value: value.to_owned(), version: 1, modified: now }))
    .into()
}

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
