//! The Go tool modules: what is pinned, what is built from them, and with which version stamps.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// One folder of `tests/tools`, compiled in, so that a build reads no path of the clone.
pub(super) struct Module {
    pub name: &'static str,
    pub go_mod: &'static str,
    pub go_sum: &'static str,
    /// A program of our own, which uses the module as a library.
    pub main: Option<&'static str>,
    /// The module whose version is stamped into the programs and names the release.
    pub release: &'static str,
    /// Where the programs look for their version: packages with `gitVersion`, `gitMajor`, `gitMinor` variables.
    pub stamps: &'static [&'static str],
    pub programs: &'static [Source],
}

/// One program: the name of its file, and its Go package.
pub(super) struct Source {
    pub name: &'static str,
    pub package: &'static str,
}

pub(super) const ETCD: Module = Module {
    name: "etcd",
    go_mod: include_str!("../../../tools/etcd/go.mod"),
    go_sum: include_str!("../../../tools/etcd/go.sum"),
    main: None,
    release: "go.etcd.io/etcd/server/v3",
    stamps: &[],
    programs: &[Source { name: "etcd", package: "go.etcd.io/etcd/server/v3" }],
};

/// Unstamped, core Cluster API refuses the server as too old, and kubectl warns at each call.
pub(super) const KUBERNETES: Module = Module {
    name: "kubernetes",
    go_mod: include_str!("../../../tools/kubernetes/go.mod"),
    go_sum: include_str!("../../../tools/kubernetes/go.sum"),
    main: None,
    release: "k8s.io/kubernetes",
    stamps: &["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"],
    programs: &[
        Source { name: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
        Source { name: "kube-controller-manager", package: "k8s.io/kubernetes/cmd/kube-controller-manager" },
        Source { name: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl" },
    ],
};

pub(super) const CERT_MANAGER: Module = Module {
    name: "certmanager",
    go_mod: include_str!("../../../tools/certmanager/go.mod"),
    go_sum: include_str!("../../../tools/certmanager/go.sum"),
    main: None,
    release: "github.com/cert-manager/cert-manager",
    stamps: &[],
    programs: &[],
};

/// Helm, and the program for values of the add-on provider.
pub(super) const ADD_ONS: Module = Module {
    name: "add-ons",
    go_mod: include_str!("../../../../addons/go/go.mod"),
    go_sum: include_str!("../../../../addons/go/go.sum"),
    main: Some(include_str!("../../../../addons/go/main.go")),
    release: "helm.sh/helm/v3",
    stamps: &[],
    programs: &[
        Source { name: "helm", package: "helm.sh/helm/v3/cmd/helm" },
        Source { name: "capasg-values", package: "." },
    ],
};

/// Cluster API Add-on Provider for Helm, for tests of the hand-over from and to it.
pub(super) const CAAPH: Module = Module {
    name: "caaph",
    go_mod: include_str!("../../../tools/caaph/go.mod"),
    go_sum: include_str!("../../../tools/caaph/go.sum"),
    main: None,
    release: "sigs.k8s.io/cluster-api-addon-provider-helm",
    stamps: &[],
    programs: &[Source { name: "caaph", package: "sigs.k8s.io/cluster-api-addon-provider-helm" }],
};

/// Cluster API Provider AWS, for the installation that README describes. Unstamped, it reports no version.
pub(super) const CAPA: Module = Module {
    name: "capa",
    go_mod: include_str!("../../../tools/capa/go.mod"),
    go_sum: include_str!("../../../tools/capa/go.sum"),
    main: None,
    release: "sigs.k8s.io/cluster-api-provider-aws/v2",
    stamps: &["sigs.k8s.io/cluster-api-provider-aws/v2/version"],
    programs: &[
        Source { name: "capa", package: "sigs.k8s.io/cluster-api-provider-aws/v2" },
        Source {
            name: "clusterawsadm",
            package: "sigs.k8s.io/cluster-api-provider-aws/v2/cmd/clusterawsadm",
        },
    ],
};

/// The same without its program, for its definitions.
pub(super) const CAPA_DEFINITIONS: Module = Module { name: "capa-definitions", programs: &[], ..CAPA };

/// The charts of the add-on set for AWS, whose files are in Go modules.
pub(super) const CHARTS: Module = Module {
    name: "charts",
    go_mod: include_str!("../../../tools/charts/go.mod"),
    go_sum: include_str!("../../../tools/charts/go.sum"),
    main: None,
    release: "github.com/cilium/cilium",
    stamps: &[],
    programs: &[],
};

/// Core's library for conditions, as a filter.
pub(super) const CONDITIONS: Module = Module {
    name: "conditions",
    go_mod: include_str!("../../../tools/conditions/go.mod"),
    go_sum: include_str!("../../../tools/conditions/go.sum"),
    main: Some(include_str!("../../../tools/conditions/main.go")),
    release: "sigs.k8s.io/cluster-api",
    stamps: &[],
    programs: &[Source { name: "core-conditions", package: "." }],
};

/// The interpreter of Argo CD for its health scripts, as a filter.
pub(super) const ARGO_CD: Module = Module {
    name: "argocd",
    go_mod: include_str!("../../../tools/argocd/go.mod"),
    go_sum: include_str!("../../../tools/argocd/go.sum"),
    main: Some(include_str!("../../../tools/argocd/main.go")),
    release: "github.com/yuin/gopher-lua",
    stamps: &[],
    programs: &[Source { name: "argocd-health", package: "." }],
};

/// What Flux and other tools that wait for objects make of their conditions, as a filter.
pub(super) const KSTATUS: Module = Module {
    name: "kstatus",
    go_mod: include_str!("../../../tools/kstatus/go.mod"),
    go_sum: include_str!("../../../tools/kstatus/go.sum"),
    main: Some(include_str!("../../../tools/kstatus/main.go")),
    release: "github.com/fluxcd/cli-utils",
    stamps: &[],
    programs: &[Source { name: "kstatus", package: "." }],
};

impl Module {
    /// The version of `path` that go.mod requires, for example `v1.36.3`.
    pub fn version_of(&self, path: &str) -> Result<&'static str> {
        self.go_mod
            .lines()
            .map(|line| line.trim().trim_start_matches("require "))
            .filter(|line| !line.contains("=>"))
            .find_map(|line| line.strip_prefix(path)?.strip_prefix(' '))
            .and_then(|rest| rest.split_whitespace().next())
            .with_context(|| format!("the go.mod of {} does not require {path}", self.name))
    }

    /// The linker's flags: no debug information, and the version that the programs report.
    pub fn ldflags(&self) -> Result<String> {
        let version = self.version_of(self.release)?;
        let mut numbers = version.trim_start_matches('v').split('.');
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        let mut flags = String::from("-s -w");
        for package in self.stamps {
            for (variable, value) in
                [("gitVersion", version), ("gitMajor", major), ("gitMinor", minor), ("gitTreeState", "clean")]
            {
                flags.extend([" -X ", package, ".", variable, "=", value]);
            }
        }
        Ok(flags)
    }

    /// Names what a build yields: it changes with the pins, the stamps, the list of programs and the platform.
    pub fn key(&self) -> Result<String> {
        let mut hash = Sha256::new();
        let ldflags = self.ldflags()?;
        for part in [self.go_mod, self.go_sum, &ldflags, std::env::consts::OS, std::env::consts::ARCH] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        if let Some(main) = self.main {
            hash.update(main);
        }
        for program in self.programs {
            hash.update(format!("{}={};", program.name, program.package));
        }
        Ok(hex(&hash.finalize()))
    }
}

/// The first 16 hexadecimal digits: enough to tell builds apart, short enough to read.
pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().take(8).fold(String::new(), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::core::{CORES, DEFAULT};

    #[test]
    fn programs_are_stamped_with_the_pinned_version() {
        assert_eq!(DEFAULT.module.version_of("sigs.k8s.io/cluster-api").unwrap(), "v1.14.2");
        assert_eq!(DEFAULT.module.version_of("sigs.k8s.io/cluster-api/test").unwrap(), "v1.14.0");
        assert_eq!(
            KUBERNETES.ldflags().unwrap(),
            "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1 \
             -X k8s.io/component-base/version.gitMinor=36 -X k8s.io/component-base/version.gitTreeState=clean \
             -X k8s.io/client-go/pkg/version.gitVersion=v1.36.3 -X k8s.io/client-go/pkg/version.gitMajor=1 \
             -X k8s.io/client-go/pkg/version.gitMinor=36 -X k8s.io/client-go/pkg/version.gitTreeState=clean"
        );
    }

    #[test]
    fn modules_have_keys_of_their_own() {
        let mut modules = vec![
            &ETCD,
            &KUBERNETES,
            &CERT_MANAGER,
            &CONDITIONS,
            &ADD_ONS,
            &CAAPH,
            &CAPA,
            &CAPA_DEFINITIONS,
            &CHARTS,
            &ARGO_CD,
            &KSTATUS,
        ];
        modules.extend(CORES.iter().map(|core| core.module));
        let keys: std::collections::BTreeSet<String> =
            modules.iter().map(|module| module.key().unwrap()).collect();
        assert_eq!(keys.len(), modules.len());
        let changed = Module { go_sum: "", ..ETCD };
        assert_ne!(changed.key().unwrap(), ETCD.key().unwrap());
    }
}
