//! The phases of the life of Clusters that a `HelmChartProxy` asks for.

use capasg_api::names::addons::{Phase, Phases};
use kube::ResourceExt as _;

use crate::{HelmChartProxy, names};

/// What a `HelmChartProxy` asks for.
///
/// # Errors
/// If the annotation contains a value that is no phase: the text says which.
pub fn phases(proxy: &HelmChartProxy) -> Result<Phases, String> {
    let phases = Phases::of(proxy.annotations().get(names::PHASES).map(String::as_str));
    match &phases.unknown {
        None => Ok(phases),
        Some(unknown) => {
            let known = Phase::ALL.map(Phase::as_str).join(", ");
            Err(format!("annotation {} contains {unknown:?}, and not only {known}", names::PHASES))
        }
    }
}

/// Whether a `HelmChartProxy` asks for a phase, with an annotation that is valid.
#[must_use]
pub fn asks_for(proxy: &HelmChartProxy, phase: Phase) -> bool {
    phases(proxy).is_ok_and(|phases| phases.contain(phase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HelmChartProxySpec;

    #[test]
    fn a_value_that_is_no_phase_is_explained() {
        let mut proxy = HelmChartProxy::new("a", HelmChartProxySpec::default());
        assert_eq!(phases(&proxy), Ok(Phases::default()));
        proxy.annotations_mut().insert(names::PHASES.to_owned(), "before-cluster-delete, later".to_owned());
        assert_eq!(
            phases(&proxy),
            Err("annotation asg.addons.cluster.x-k8s.io/phases contains \"later\", and not only \
                 after-control-plane-initialized, before-control-plane-upgrade, after-control-plane-upgrade, before-cluster-delete"
                .to_owned())
        );
    }
}
