//! Names that the Helm add-on provider and the Runtime Extension share: how a `HelmChartProxy` asks for phases of the life of
//! Clusters, and what both write about them.

use std::collections::BTreeSet;

/// On a `HelmReleaseProxy`: the name of its `HelmChartProxy`.
pub const CHART_PROXY_LABEL: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name";
/// On a `HelmChartProxy`: the phases of the life of Clusters that it asks for, separated by commas.
pub const PHASES: &str = "asg.addons.cluster.x-k8s.io/phases";
/// On a `HelmReleaseProxy` whose `HelmChartProxy` asks for a phase of an upgrade: the Kubernetes version that its spec is for.
/// It is written together with the spec.
pub const KUBERNETES_VERSION: &str = "asg.addons.cluster.x-k8s.io/kubernetes-version";
/// In the status of a `HelmReleaseProxy`: the Kubernetes version of the next step of the control plane, as the Runtime
/// Extension requests it.
pub const NEXT_KUBERNETES_VERSION: &str = "nextKubernetesVersion";
/// Of a `HelmChartProxy`: the specs of its `HelmReleaseProxies` are as requested.
pub const SPECS_UP_TO_DATE: &str = "HelmReleaseProxySpecsUpToDate";
/// Of a `HelmReleaseProxy`: the release is as requested.
pub const RELEASE_READY: &str = "HelmReleaseReady";
/// Reason of a release that is uninstalled while objects of its Cluster still have resources in the cloud. The message names
/// them.
pub const CLOUD_RESOURCES_REMAIN: &str = "CloudResourcesRemain";

/// A phase of the life of a Cluster, named after a Runtime Hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// After the control plane accepts requests, the release is installed before those that do not ask for this phase.
    AfterControlPlaneInitialized,
    /// Before each step of the control plane, the release is changed for the version of the step.
    BeforeControlPlaneUpgrade,
    /// After each step of the control plane, workers wait until the release is ready for the new version.
    AfterControlPlaneUpgrade,
    /// Before the objects of the Cluster are deleted, the release is uninstalled.
    BeforeClusterDelete,
}

/// What the annotation [`PHASES`] contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Phases {
    /// The phases that exist.
    pub known: BTreeSet<Phase>,
    /// The first value that is no phase.
    pub unknown: Option<String>,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 4] = [
        Self::AfterControlPlaneInitialized,
        Self::BeforeControlPlaneUpgrade,
        Self::AfterControlPlaneUpgrade,
        Self::BeforeClusterDelete,
    ];

    /// The value in the annotation.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AfterControlPlaneInitialized => "after-control-plane-initialized",
            Self::BeforeControlPlaneUpgrade => "before-control-plane-upgrade",
            Self::AfterControlPlaneUpgrade => "after-control-plane-upgrade",
            Self::BeforeClusterDelete => "before-cluster-delete",
        }
    }

    /// Whether it is a phase of an upgrade: the Kubernetes version of the release counts.
    #[must_use]
    pub const fn is_of_upgrade(self) -> bool {
        matches!(self, Self::BeforeControlPlaneUpgrade | Self::AfterControlPlaneUpgrade)
    }
}

impl Phases {
    /// Reads the value of the annotation; none without one.
    #[must_use]
    pub fn of(annotation: Option<&str>) -> Self {
        let mut phases = Self::default();
        let values = annotation.unwrap_or_default().split(',').map(str::trim);
        for value in values.filter(|value| !value.is_empty()) {
            match Phase::ALL.into_iter().find(|phase| phase.as_str() == value) {
                Some(phase) => {
                    phases.known.insert(phase);
                }
                None => phases.unknown = phases.unknown.or_else(|| Some(value.to_owned())),
            }
        }
        phases
    }

    /// Whether the phase is asked for.
    #[must_use]
    pub fn contain(&self, phase: Phase) -> bool {
        self.known.contains(&phase)
    }

    /// Whether a phase of an upgrade is asked for.
    #[must_use]
    pub fn concern_upgrades(&self) -> bool {
        self.known.iter().any(|phase| phase.is_of_upgrade())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_separated_by_commas_and_an_unknown_one_hides_no_other() {
        assert_eq!(Phases::of(None), Phases::default());
        let phases = Phases::of(Some(" before-cluster-delete,, after-control-plane-upgrade "));
        assert_eq!(phases.known, [Phase::AfterControlPlaneUpgrade, Phase::BeforeClusterDelete].into());
        assert!(phases.unknown.is_none() && phases.concern_upgrades());
        let phases = Phases::of(Some("after-cluster-delete,before-cluster-delete,x"));
        assert_eq!(phases.unknown.as_deref(), Some("after-cluster-delete"));
        assert!(phases.contain(Phase::BeforeClusterDelete) && !phases.concern_upgrades());
    }
}
