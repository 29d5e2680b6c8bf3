//! Which templates of a request belong together: those of the same object of the topology.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{bootstrap::is_bootstrap_template, is_pool_template};
use crate::protocol::HolderReference;

/// The objects that use an `ASGMachinePoolTemplate`, each with its bootstrap template.
#[derive(Debug, Default)]
pub(crate) struct Holders<'a>(BTreeMap<Identity<'a>, Option<&'a Value>>);

/// Kind, namespace and name: what the references of both templates have in common.
type Identity<'a> = (&'a str, &'a str, &'a str);

impl<'a> Holders<'a> {
    /// The holders among the templates of a request.
    pub(crate) fn of(templates: impl Iterator<Item = (&'a HolderReference, &'a Value)> + Clone) -> Self {
        let pools = templates.clone().filter(|(_, template)| is_pool_template(template));
        let mut holders: BTreeMap<_, _> = pools.map(|(holder, _)| (identity(holder), None)).collect();
        for (holder, template) in templates.filter(|(_, template)| is_bootstrap_template(template)) {
            if let Some(found) = holders.get_mut(&identity(holder)) {
                *found = Some(template);
            }
        }
        Self(holders)
    }

    /// Whether the object uses an `ASGMachinePoolTemplate`. Bootstrap templates of others are not patched.
    pub(crate) fn has_pool(&self, holder: &HolderReference) -> bool {
        self.0.contains_key(&identity(holder))
    }

    /// The bootstrap template of the pool, if it is one that can be patched.
    pub(crate) fn bootstrap_of(&self, holder: &HolderReference) -> Option<&'a Value> {
        self.0.get(&identity(holder)).copied().flatten()
    }
}

fn identity(holder: &HolderReference) -> Identity<'_> {
    (&holder.kind, &holder.namespace, &holder.name)
}
