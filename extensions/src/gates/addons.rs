//! The gate of Helm add-ons: those that ask for a phase are ready for the version of a step, or uninstalled. The add-on
//! provider acts; what it has to know of a step is requested, and its answer is on the `HelmReleaseProxies`.

use async_trait::async_trait;
use capasg_api::names::{addons::Phase, listed};

use super::{Blocker, Findings, Gate, Sources, Step};
use crate::{
    blocks::Cause,
    ports::{AddonFacts, ReadError, ReleaseFacts, ReleaseRequest},
    protocol::Hook,
    version::Version,
};

/// The `HelmChartProxies` that ask for a phase of a Cluster's life.
#[derive(Debug, Clone, Copy, Default)]
pub struct Addons;

#[async_trait]
impl Gate for Addons {
    async fn check(&self, step: &Step<'_>, sources: Sources<'_>) -> Result<Findings, ReadError> {
        let Some(phase) = phase_of(step.hook) else { return Ok(Findings::default()) };
        let addons = sources.kubernetes.addons(step.key, phase).await?;
        let mut findings = Findings { concerned: !addons.is_empty(), ..Findings::default() };
        if phase == Phase::BeforeClusterDelete {
            findings.blockers.extend(installed(&addons));
            return Ok(findings);
        }
        let version = step.control_plane_version();
        findings.blockers.extend(not_ready(&addons, version));
        if phase == Phase::BeforeControlPlaneUpgrade {
            let releases = addons.iter().filter_map(|addon| addon.release.as_ref());
            findings.requests = releases.filter_map(|release| request(step, release, version)).collect();
        }
        Ok(findings)
    }

    /// A deletion waits as well, within its deadline: what releases have in the cloud would remain there.
    fn unread(&self, step: &Step<'_>, why: String) -> Findings {
        let cause = match phase_of(step.hook) {
            None => return Findings::default(),
            Some(Phase::BeforeClusterDelete) => Cause::AddonsNotUninstalled,
            Some(_) => Cause::NotReadable,
        };
        let blockers = vec![Blocker { cause, message: why }];
        Findings { concerned: true, blockers, ..Findings::default() }
    }
}

/// The phase that begins or ends at a hook. Core up to v1.11 has no hook before each step: its upgrades have one step.
const fn phase_of(hook: Hook) -> Option<Phase> {
    match hook {
        Hook::BeforeClusterUpgrade | Hook::BeforeControlPlaneUpgrade => {
            Some(Phase::BeforeControlPlaneUpgrade)
        }
        Hook::AfterControlPlaneUpgrade => Some(Phase::AfterControlPlaneUpgrade),
        Hook::BeforeClusterDelete => Some(Phase::BeforeClusterDelete),
        _ => None,
    }
}

/// Add-ons whose release is not ready for a version, each with the reason of the condition that says why.
fn not_ready(addons: &[AddonFacts], version: &str) -> Option<Blocker> {
    let why = |addon: &AddonFacts| match &addon.release {
        Some(release) if !is_for(release, version) => Some(named(&addon.name, &addon.reason)),
        Some(release) if !release.is_ready => Some(named(&addon.name, &release.reason)),
        Some(_) => None,
        None => Some(named(&addon.name, &addon.reason)),
    };
    let names: Vec<String> = addons.iter().filter_map(why).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| Blocker {
        cause: Cause::AddonsNotReady,
        message: format!("HelmChartProxies whose releases are not ready for {version}: {}", listed(&names)),
    })
}

/// Add-ons whose release is not uninstalled, or has objects with resources in the cloud.
fn installed(addons: &[AddonFacts]) -> Option<Blocker> {
    let installed = addons.iter().filter_map(|addon| Some((addon, addon.release.as_ref()?)));
    let names: Vec<String> =
        installed.clone().map(|(addon, release)| named(&addon.name, &release.reason)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut remaining: Vec<&str> =
        installed.filter_map(|(_, release)| release.remaining.as_deref()).collect();
    remaining.sort_unstable();
    remaining.dedup();
    (!names.is_empty()).then(|| {
        let what = format!("HelmChartProxies whose releases are not uninstalled: {}", listed(&names));
        Blocker {
            cause: Cause::AddonsNotUninstalled,
            message: [vec![what.as_str()], remaining].concat().join("; "),
        }
    })
}

fn named(name: &str, reason: &str) -> String {
    if reason.is_empty() { name.to_owned() } else { format!("{name} ({reason})") }
}

/// Whether the spec of a release is for a version, or for a later one.
fn is_for(release: &ReleaseFacts, version: &str) -> bool {
    let Some(known) = release.kubernetes_version.as_deref() else { return false };
    match (known.parse::<Version>(), version.parse::<Version>()) {
        (Ok(known), Ok(version)) => known.compare(&version).is_ge(),
        _ => known == version,
    }
}

/// What the add-on provider does not know yet.
fn request(step: &Step<'_>, release: &ReleaseFacts, version: &str) -> Option<ReleaseRequest> {
    let is_known = is_for(release, version) || release.next.as_deref() == Some(version);
    (!is_known).then(|| ReleaseRequest {
        namespace: step.key.namespace.clone(),
        name: release.name.clone(),
        next: version.to_owned(),
    })
}

#[cfg(test)]
mod tests;
