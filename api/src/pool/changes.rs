//! Whether changes are made or only shown, and what would change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ASGMachinePoolSpec;
use crate::values::string_enum;

string_enum! {
    /// What becomes of a difference between the spec and AWS.
    pub enum ChangePolicy {
        /// It is put right.
        Apply = "Apply",
        /// It is shown.
        Preview = "Preview",
    }
}

string_enum! {
    /// What becomes of a group of the pool's name that the pool did not make.
    pub enum AdoptionPolicy {
        /// It is left alone.
        Never = "Never",
        /// It becomes the pool's, with its instances.
        Adopt = "Adopt",
    }
}

/// The most entries of `status.pendingChanges`.
pub const MOST_PENDING_CHANGES: usize = 64;

/// Something that would change with `changePolicy: Apply`, or is about to when a group is adopted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingChange {
    /// Where it is wished, as a path of the spec where there is one.
    #[schemars(length(min = 1, max = 512))]
    pub path: String,
    /// What AWS has; `none` for nothing. Bootstrap data are never shown.
    #[serde(default)]
    #[schemars(length(max = 512))]
    pub from: String,
    /// What it would become; `none` for nothing.
    #[serde(default)]
    #[schemars(length(max = 512))]
    pub to: String,
    /// What that does: `InPlace`, `Creates`, `Adopts N instances`, or `Outdates N instances`.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub effect: String,
}

impl ASGMachinePoolSpec {
    /// Whether changes are made or only shown; `Apply` unless set.
    #[must_use]
    pub fn change_policy(&self) -> ChangePolicy {
        self.change_policy.unwrap_or(ChangePolicy::Apply)
    }

    /// Whether a group that the pool did not make becomes the pool's; `Never` unless set.
    #[must_use]
    pub fn adoption_policy(&self) -> AdoptionPolicy {
        self.adoption_policy.unwrap_or(AdoptionPolicy::Never)
    }
}
