//! Variables, patches and validation of the templates of pools in a topology: of the `ASGMachinePoolTemplate`, and of the
//! bootstrap template next to it. Pure.

mod bootstrap;
mod holders;
mod instances;
mod merge;
mod patch;
mod planned;
mod templates;
#[cfg(test)]
mod tests;
mod validate;
pub(crate) mod variables;
mod volumes;

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

pub(crate) use self::{
    holders::Holders,
    planned::{
        IdentityHolder, PlannedPool, PlannedReference, identity_holder, planned_identity_ref, planned_pools,
        templates_of,
    },
    templates::{patch, read},
    validate::problems,
};
use crate::protocol::{HolderReference, Variable};

/// Where the spec of pools is in a template. No patch leaves it.
const SPEC: &str = "/spec/template/spec";
/// The version of our template.
const API_VERSION: &str = "infrastructure.cluster.x-k8s.io/v1alpha1";
/// The kind of our template.
const KIND: &str = "ASGMachinePoolTemplate";

/// Why a template cannot be patched. Depends on the request alone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum PatchError {
    /// The value of a variable is invalid.
    #[error("variable {name}: {why}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The template has no spec that is an object.
    #[error("the {0} has no spec.template.spec")]
    NoSpec(&'static str),
}

/// Whether an object is a template of our pools.
pub(crate) fn is_pool_template(object: &Value) -> bool {
    let (api_version, kind) = kind_of(object);
    api_version == API_VERSION && kind == KIND
}

/// The version and the kind of an object; empty where it has none.
fn kind_of(object: &Value) -> (&str, &str) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    (text("apiVersion"), text("kind"))
}

/// The variables of a template: those of all, overridden by its own; `builtin` is merged.
#[derive(Debug, Default)]
pub(crate) struct Variables<'a> {
    values: BTreeMap<&'a str, &'a Value>,
    builtins: [Option<&'a Value>; 2],
}

impl<'a> Variables<'a> {
    pub(crate) fn of(all: &'a [Variable], own: &'a [Variable]) -> Self {
        let mut variables = Self::default();
        for (place, list) in [all, own].into_iter().enumerate() {
            for variable in list {
                if variable.name == "builtin" {
                    variables.builtins[place] = Some(&variable.value);
                } else {
                    variables.values.insert(&variable.name, &variable.value);
                }
            }
        }
        variables
    }

    /// The value of a variable; null counts as absent.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.values.get(name).copied().filter(|value| !value.is_null())
    }

    /// A text of the builtin variable; that of the template comes first.
    fn builtin(&self, pointer: &str) -> Option<&'a str> {
        let [all, own] = self.builtins;
        [own, all].into_iter().flatten().find_map(|builtin| builtin.pointer(pointer)?.as_str())
    }
}

/// What messages call a pool: its name in the topology.
pub(crate) fn pool_name<'a>(variables: &Variables<'a>, holder: &'a HolderReference) -> &'a str {
    variables.builtin("/machinePool/topologyName").unwrap_or(&holder.name)
}
