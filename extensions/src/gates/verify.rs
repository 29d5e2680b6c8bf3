//! What is verified after a step of an upgrade: nodes report the version, and pools have the version and image that were
//! requested. Pure.

use capasg_api::{ASGMachinePool, names::listed};
use kube::ResourceExt as _;

use super::{Blocker, Findings};
use crate::{blocks::Cause, ports::MachineFacts};

/// Whether the nodes of the control plane report the version. A managed control plane has no Machines: nothing is verified.
pub(super) fn control_plane(machines: &[MachineFacts], version: &str, findings: &mut Findings) {
    let machines: Vec<&MachineFacts> =
        machines.iter().filter(|machine| machine.control_plane && !machine.deleting).collect();
    let outdated = outdated(&machines, version);
    if let Some(names) = outdated {
        let message = format!("control plane Machines whose nodes do not report {version}: {names}");
        findings.blockers.push(Blocker { cause: Cause::ControlPlaneNotUpgraded, message });
    } else if !machines.is_empty() {
        findings.verified.push("the control plane");
    }
}

/// Whether the pools have the version and their image, each instance has a Machine, and the nodes report the version.
pub(super) fn workers(
    pools: &[&ASGMachinePool],
    machines: &[MachineFacts],
    version: &str,
    findings: &mut Findings,
) {
    let of_pools: Vec<&MachineFacts> =
        machines.iter().filter(|machine| machine.of_pool && !machine.control_plane).collect();
    let current: Vec<&MachineFacts> = of_pools.iter().copied().filter(|machine| !machine.deleting).collect();
    let named = |is_other: fn(&ASGMachinePool, &str) -> bool| {
        let names: Vec<String> =
            pools.iter().filter(|pool| is_other(pool, version)).map(|pool| pool.name_any()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| listed(&names))
    };
    let instances =
        pools.iter().filter_map(|pool| pool.status.as_ref()).map(|status| i64::from(status.replicas));
    let without_machine = instances.sum::<i64>() > i64::try_from(of_pools.len()).unwrap_or(i64::MAX);
    let messages = [
        named(has_other_version)
            .map(|names| format!("ASGMachinePools that do not have the version {version}: {names}")),
        named(has_other_image)
            .map(|names| format!("ASGMachinePools that do not use the image of their spec: {names}")),
        without_machine.then(|| "not each instance of the ASGMachinePools has a Machine".to_owned()),
        outdated(&current, version)
            .map(|names| format!("Machines of ASGMachinePools whose nodes do not report {version}: {names}")),
    ];
    let before = findings.blockers.len();
    let blockers = messages.into_iter().flatten();
    findings.blockers.extend(blockers.map(|message| Blocker { cause: Cause::WorkersNotUpgraded, message }));
    if findings.blockers.len() == before && !current.is_empty() {
        findings.verified.push("ASGMachinePools");
    }
}

/// The version is that of the MachinePool; one without a version has no other.
fn has_other_version(pool: &ASGMachinePool, version: &str) -> bool {
    let reported = pool.status.as_ref().and_then(|status| status.version.as_deref());
    reported.is_some_and(|reported| reported != version)
}

/// An image by its ID is compared with the one of the launch template. Of an SSM parameter the controller uses the image, or
/// keeps an older one as the spec requests; it rolls out until all instances have it.
fn has_other_image(pool: &ASGMachinePool, _: &str) -> bool {
    let used = pool.status.as_ref().and_then(|status| status.image.as_ref());
    used.zip(pool.spec.machine.image.id.as_ref()).is_some_and(|(used, id)| used.id != *id)
}

/// The names of the Machines whose nodes do not report the version.
fn outdated(machines: &[&MachineFacts], version: &str) -> Option<String> {
    let outdated: Vec<&str> = machines
        .iter()
        .filter(|machine| machine.kubelet_version.as_deref() != Some(version))
        .map(|machine| machine.name.as_str())
        .collect();
    (!outdated.is_empty()).then(|| listed(&outdated))
}
