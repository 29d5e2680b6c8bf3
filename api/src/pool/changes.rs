//! `spec.changePolicy`, `spec.adoptionPolicy` and `status.pendingChanges`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::string_enum;

string_enum! {
    /// What happens to a difference between the spec and AWS.
    pub enum ChangePolicy {
        /// The controller corrects it.
        Apply = "Apply",
        /// The controller reports it.
        Preview = "Preview",
    }
}

string_enum! {
    /// What happens to an existing group with the pool's name that the pool did not create.
    pub enum AdoptionPolicy {
        /// It stays unchanged.
        Ignore = "Ignore",
        /// The pool adopts it with its instances.
        Adopt = "Adopt",
    }
}

/// The maximum number of entries of `status.pendingChanges`.
pub const MAX_PENDING_CHANGES: usize = 64;

/// A change that the controller would make with `changePolicy: Apply`, or that it is about to make when it adopts a
/// group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingChange {
    /// Path of the field of the pool that the change is about, or a description where there is no path.
    #[schemars(length(min = 1, max = 512))]
    pub path: String,
    /// Current value in AWS; `none` if there is none. Bootstrap data is never shown.
    #[serde(default)]
    #[schemars(length(max = 512))]
    pub from: String,
    /// Desired value; `none` if there is none.
    #[serde(default)]
    #[schemars(length(max = 512))]
    pub to: String,
    /// Effect of the change: `InPlace`, `Creates`, `Adopts N instances` or `Makes N instances outdated`.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub effect: String,
}
