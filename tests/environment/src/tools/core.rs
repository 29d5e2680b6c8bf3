//! The versions of core Cluster API that everything is tested against: one table, chosen from by `CAPASG_CORE`.

use anyhow::{Context as _, Result};

use super::module::{Module, Source};

/// One version of Cluster API: its programs, and where their manifests are.
pub(super) struct Core {
    pub module: &'static Module,
    /// The kustomizations that become component manifests: the provider's label, the module and the folder in it.
    pub components: [(&'static str, &'static str, &'static str); 4],
}

/// Unstamped, clusterctl misjudges which versions and contracts it may work with.
const STAMPS: &[&str] = &["sigs.k8s.io/cluster-api/version"];

/// What is tested where nothing else is asked for.
pub(super) const DEFAULT: &Core = &Core {
    module: &Module {
        name: "capi",
        go_mod: include_str!("../../../tools/capi/go.mod"),
        go_sum: include_str!("../../../tools/capi/go.sum"),
        main: None,
        release: "sigs.k8s.io/cluster-api",
        stamps: STAMPS,
        programs: &programs("sigs.k8s.io/cluster-api/core"),
    },
    components: components("core/config/default"),
};

/// Before v1.14 the core manager was the root of its module.
const V1_13: &Core = &Core {
    module: &Module {
        name: "capi-1.13",
        go_mod: include_str!("../../../tools/capi-1.13/go.mod"),
        go_sum: include_str!("../../../tools/capi-1.13/go.sum"),
        main: None,
        release: "sigs.k8s.io/cluster-api",
        stamps: STAMPS,
        programs: &programs("sigs.k8s.io/cluster-api"),
    },
    components: components("config/default"),
};

/// All of them.
pub(super) const CORES: [&Core; 2] = [DEFAULT, V1_13];

const fn programs(core: &'static str) -> [Source; 5] {
    [
        Source { name: "clusterctl", package: "sigs.k8s.io/cluster-api/cmd/clusterctl" },
        Source { name: "capi-core", package: core },
        Source { name: "capi-bootstrap-kubeadm", package: "sigs.k8s.io/cluster-api/bootstrap/kubeadm" },
        Source {
            name: "capi-control-plane-kubeadm",
            package: "sigs.k8s.io/cluster-api/controlplane/kubeadm",
        },
        Source { name: "capd", package: "sigs.k8s.io/cluster-api/test/infrastructure/docker" },
    ]
}

const fn components(core: &'static str) -> [(&'static str, &'static str, &'static str); 4] {
    let module = "sigs.k8s.io/cluster-api";
    [
        ("cluster-api", module, core),
        ("bootstrap-kubeadm", module, "bootstrap/kubeadm/config/default"),
        ("control-plane-kubeadm", module, "controlplane/kubeadm/config/default"),
        ("infrastructure-docker", "sigs.k8s.io/cluster-api/test", "infrastructure/docker/config/default"),
    ]
}

impl Core {
    /// The version, for example `v1.14.2`.
    pub fn version(&self) -> Result<&'static str> {
        self.module.version_of(self.module.release)
    }

    /// The one that `CAPASG_CORE` names; unset or empty means the default.
    pub fn chosen() -> Result<&'static Self> {
        Self::named(&std::env::var("CAPASG_CORE").unwrap_or_default())
    }

    fn named(version: &str) -> Result<&'static Self> {
        if version.is_empty() {
            return Ok(DEFAULT);
        }
        let versions: Vec<_> = CORES.iter().map(|core| core.version()).collect::<Result<_>>()?;
        let place = versions.iter().position(|known| *known == version);
        let place = place
            .with_context(|| format!("CAPASG_CORE={version}: the versions are {}", versions.join(", ")))?;
        Ok(CORES[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_chosen_by_its_full_name() {
        assert_eq!(Core::named("").unwrap().version().unwrap(), "v1.14.2");
        assert_eq!(Core::named("v1.14.2").unwrap().version().unwrap(), "v1.14.2");
        assert_eq!(Core::named("v1.13.6").unwrap().version().unwrap(), "v1.13.6");
        let Err(refusal) = Core::named("v1.13") else { panic!("it is no version of ours") };
        assert_eq!(refusal.to_string(), "CAPASG_CORE=v1.13: the versions are v1.14.2, v1.13.6");
    }
}
