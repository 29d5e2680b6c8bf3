//! The Runtime Hooks that this extension can serve, by name.

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::FailurePolicy;

/// A Runtime Hook. The in-place update hooks are absent: core calls them for `MachineDeployments` and control planes only,
/// and accepts one extension for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    /// Returns the variables that patches read.
    DiscoverVariables,
    /// Returns patches for the templates of a topology.
    GeneratePatches,
    /// Validates the patched templates of a topology.
    ValidateTopology,
    /// Before the objects of a topology are created.
    BeforeClusterCreate,
    /// After the control plane is available for the first time.
    AfterControlPlaneInitialized,
    /// Before any step of an upgrade.
    BeforeClusterUpgrade,
    /// Before each step of the control plane.
    BeforeControlPlaneUpgrade,
    /// After each step of the control plane.
    AfterControlPlaneUpgrade,
    /// Before each step of the workers.
    BeforeWorkersUpgrade,
    /// After each step of the workers.
    AfterWorkersUpgrade,
    /// After the last step of an upgrade.
    AfterClusterUpgrade,
    /// Before the objects of a topology are deleted.
    BeforeClusterDelete,
    /// Returns the versions of an upgrade over several minor versions.
    GenerateUpgradePlan,
}

/// A name that is none of [`Hook::ALL`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a Runtime Hook such as BeforeClusterUpgrade")]
pub struct UnknownHook(pub String);

impl Hook {
    /// Every hook.
    pub const ALL: [Self; 13] = [
        Self::DiscoverVariables,
        Self::GeneratePatches,
        Self::ValidateTopology,
        Self::BeforeClusterCreate,
        Self::AfterControlPlaneInitialized,
        Self::BeforeClusterUpgrade,
        Self::BeforeControlPlaneUpgrade,
        Self::AfterControlPlaneUpgrade,
        Self::BeforeWorkersUpgrade,
        Self::AfterWorkersUpgrade,
        Self::AfterClusterUpgrade,
        Self::BeforeClusterDelete,
        Self::GenerateUpgradePlan,
    ];

    /// The name as Cluster API writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DiscoverVariables => "DiscoverVariables",
            Self::GeneratePatches => "GeneratePatches",
            Self::ValidateTopology => "ValidateTopology",
            Self::BeforeClusterCreate => "BeforeClusterCreate",
            Self::AfterControlPlaneInitialized => "AfterControlPlaneInitialized",
            Self::BeforeClusterUpgrade => "BeforeClusterUpgrade",
            Self::BeforeControlPlaneUpgrade => "BeforeControlPlaneUpgrade",
            Self::AfterControlPlaneUpgrade => "AfterControlPlaneUpgrade",
            Self::BeforeWorkersUpgrade => "BeforeWorkersUpgrade",
            Self::AfterWorkersUpgrade => "AfterWorkersUpgrade",
            Self::AfterClusterUpgrade => "AfterClusterUpgrade",
            Self::BeforeClusterDelete => "BeforeClusterDelete",
            Self::GenerateUpgradePlan => "GenerateUpgradePlan",
        }
    }

    /// The segment of the URL that names the hook: its name in lower case (R1).
    #[must_use]
    pub fn path(self) -> String {
        self.name().to_ascii_lowercase()
    }

    /// The name of the handler, a DNS label (R3): `before-cluster-upgrade`.
    #[must_use]
    pub fn handler(self) -> String {
        let mut name = String::new();
        for c in self.name().chars() {
            if c.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(c.to_ascii_lowercase());
        }
        name
    }

    /// The minor version of Cluster API 1 that first has the hook. An older core rejects the whole discovery (R12).
    #[must_use]
    pub const fn since(self) -> u64 {
        match self {
            Self::BeforeControlPlaneUpgrade
            | Self::BeforeWorkersUpgrade
            | Self::AfterWorkersUpgrade
            | Self::GenerateUpgradePlan => 12,
            _ => 10,
        }
    }

    /// What core does if it cannot call the handler. `Ignore` is used only where a block is technical and would end by its
    /// deadline in any case: approvals, windows and deletion protection are never passed because the extension is down.
    #[must_use]
    pub const fn failure_policy(self) -> FailurePolicy {
        match self {
            Self::BeforeClusterCreate
            | Self::AfterControlPlaneInitialized
            | Self::AfterControlPlaneUpgrade
            | Self::AfterWorkersUpgrade
            | Self::AfterClusterUpgrade => FailurePolicy::Ignore,
            _ => FailurePolicy::Fail,
        }
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Hook {
    type Err = UnknownHook;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|hook| hook.name().eq_ignore_ascii_case(name.trim()));
        found.ok_or_else(|| UnknownHook(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    // Rules: R1, R3
    #[test]
    fn handlers_are_unique_dns_labels_and_paths_are_in_lower_case() {
        let names: BTreeSet<String> = Hook::ALL.into_iter().map(Hook::handler).collect();
        assert_eq!(names.len(), Hook::ALL.len());
        for name in &names {
            let valid = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(name.len() <= 63 && name.chars().all(valid) && !name.contains("--"), "{name}");
            assert!(!name.starts_with('-') && !name.ends_with('-'), "{name}");
        }
        assert_eq!(Hook::BeforeClusterUpgrade.handler(), "before-cluster-upgrade");
        assert_eq!(Hook::AfterControlPlaneInitialized.path(), "aftercontrolplaneinitialized");
    }

    #[test]
    fn names_are_read_in_any_case() {
        assert_eq!("beforeclusterdelete".parse(), Ok(Hook::BeforeClusterDelete));
        assert_eq!(" GeneratePatches".parse(), Ok(Hook::GeneratePatches));
        assert_eq!("UpdateMachine".parse::<Hook>(), Err(UnknownHook("UpdateMachine".to_owned())));
    }

    #[test]
    fn hooks_that_protect_are_never_passed_because_the_extension_is_down() {
        for hook in [
            Hook::BeforeClusterUpgrade,
            Hook::BeforeControlPlaneUpgrade,
            Hook::BeforeWorkersUpgrade,
            Hook::BeforeClusterDelete,
        ] {
            assert_eq!(hook.failure_policy(), FailurePolicy::Fail, "{hook}");
        }
    }
}
