//! The patch of any template of a topology, by its kind.

use serde_json::Value;

use super::{
    PatchError, Variables,
    bootstrap::{is_bootstrap_template, patch as patch_of_bootstrap},
    is_pool_template,
    patch::patch as patch_of_pool,
    variables::PoolVariables,
};
use crate::settings::Settings;

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
