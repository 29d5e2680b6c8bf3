//! What happens to a release after its first installation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CEL: the strategy of an object does not change; an absent one is an empty one.
pub(super) const IS_UNCHANGED: &str = "(has(self.reconcileStrategy) ? self.reconcileStrategy : '') == (has(oldSelf.reconcileStrategy) ? oldSelf.reconcileStrategy : '')";

/// What happens to a release after its first installation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReconcileStrategy {
    /// As `Continuous`.
    #[default]
    #[serde(rename = "")]
    Unset,
    /// The release follows the spec, and is uninstalled with the `HelmChartProxy` or once the Cluster is not selected.
    Continuous,
    /// The release is installed, and neither changed nor uninstalled afterwards.
    InstallOnce,
}

impl ReconcileStrategy {
    /// Whether this is [`Self::InstallOnce`].
    #[must_use]
    pub fn is_install_once(self) -> bool {
        self == Self::InstallOnce
    }

    /// For `skip_serializing_if`.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn is_unset(&self) -> bool {
        *self == Self::Unset
    }
}
