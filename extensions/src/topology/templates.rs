//! The patch of any template of a topology, by its kind.

use serde_json::Value;

use super::{
    API_VERSION, KIND, PatchError, Variables,
    bootstrap::{is_bootstrap_template, is_of_kind, patch as patch_of_bootstrap},
    is_pool_template,
    patch::patch as patch_of_pool,
    variables::PoolVariables,
};
use crate::{protocol::Template, settings::Settings};

/// The patch of a template of a pool; `None` if nothing changes, or if the template is not one of those that are patched.
///
/// # Errors
/// If a variable is invalid, or the template has no spec.
pub(crate) fn patch(
    template: &Value,
    variables: &Variables<'_>,
    settings: &Settings,
) -> Result<Option<Value>, PatchError> {
    if is_pool_template(template) {
        patch_of_pool(template, &PoolVariables::read(variables)?, settings)
    } else if is_bootstrap_template(template) {
        patch_of_bootstrap(template, &PoolVariables::read(variables)?)
    } else {
        Ok(None)
    }
}

/// The template, if it is one of our pools or one of their bootstrap data.
pub(crate) fn read(template: &Template) -> Option<Value> {
    template.of_kind(|api_version, kind| {
        (api_version == API_VERSION && kind == KIND) || is_of_kind(api_version, kind)
    })
}
