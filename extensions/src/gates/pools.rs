//! The gate of our pools: they are ready and do not roll out before a step, and their nodes run the version after it.

use async_trait::async_trait;
use capasg_api::{
    ASGMachinePool,
    conditions::{self, READY},
    names::listed,
    pool::DeletionPolicy,
};
use kube::ResourceExt as _;

use super::{Blocker, Findings, Gate, Step};
use crate::{
    blocks::Cause,
    names::events,
    ports::{Kubernetes, MachineFacts, ReadError},
    protocol::Hook,
};

/// The `ASGMachinePool`s of a Cluster.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pools;

#[async_trait]
impl Gate for Pools {
    async fn check(&self, step: &Step<'_>, kubernetes: &dyn Kubernetes) -> Result<Findings, ReadError> {
        let pools = kubernetes.pools(step.key).await?;
        let pools: Vec<&ASGMachinePool> =
            pools.iter().filter(|pool| pool.metadata.deletion_timestamp.is_none()).collect();
        let mut findings = Findings { concerned: !pools.is_empty(), ..Findings::default() };
        if pools.is_empty() {
            return Ok(findings);
        }
        match step.hook {
            Hook::BeforeClusterUpgrade | Hook::BeforeControlPlaneUpgrade => {
                findings.blockers = settled(&pools);
            }
            Hook::BeforeWorkersUpgrade => {
                findings.blockers = settled(&pools);
                findings.blockers.extend(windows(&pools, step));
            }
            Hook::AfterControlPlaneUpgrade => {
                let machines = kubernetes.machines(step.key).await?;
                findings.blockers.extend(control_plane(&machines, step.version));
            }
            Hook::AfterWorkersUpgrade => {
                let machines = kubernetes.machines(step.key).await?;
                findings.blockers = upgraded(&pools);
                findings.blockers.extend(workers(&machines, step.version));
            }
            Hook::AfterClusterUpgrade => {
                let machines = kubernetes.machines(step.key).await?;
                findings.blockers = upgraded(&pools);
                findings.blockers.extend(control_plane(&machines, step.version));
                findings.blockers.extend(workers(&machines, step.version));
            }
            Hook::BeforeClusterDelete => findings.notes = kept(&pools),
            _ => {}
        }
        Ok(findings)
    }
}

/// What blocks before a step. A pool is named once: if it is not ready, its rollout may be what fails.
fn settled(pools: &[&ASGMachinePool]) -> Vec<Blocker> {
    blockers(pools, state_of)
}

/// What blocks after the workers were upgraded: a pool that is not ready does not, since its repair is the next step.
fn upgraded(pools: &[&ASGMachinePool]) -> Vec<Blocker> {
    blockers(pools, |pool| state_of(pool).filter(|cause| *cause != Cause::PoolNotReady))
}

fn blockers(pools: &[&ASGMachinePool], cause_of: impl Fn(&ASGMachinePool) -> Option<Cause>) -> Vec<Blocker> {
    let named = |cause: Cause, what: &str| {
        let names: Vec<String> =
            pools.iter().filter(|pool| cause_of(pool) == Some(cause)).map(|pool| pool.name_any()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let message = || format!("ASGMachinePools {what}: {}", listed(&names));
        (!names.is_empty()).then(|| Blocker { cause, message: message() })
    };
    [
        named(Cause::PoolNotObserved, "whose current spec has not been observed"),
        named(Cause::PoolNotReady, "that are not ready"),
        named(Cause::PoolRollingOut, "that are rolling out"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn state_of(pool: &ASGMachinePool) -> Option<Cause> {
    let Some(status) = &pool.status else { return Some(Cause::PoolNotObserved) };
    if pool.metadata.generation.is_some_and(|generation| generation > status.observed_generation) {
        return Some(Cause::PoolNotObserved);
    }
    if conditions::get(&status.conditions, READY).is_none_or(|ready| ready.status == "False") {
        return Some(Cause::PoolNotReady);
    }
    status.rollout.as_ref().map(|_| Cause::PoolRollingOut)
}

/// Workers wait while no pool may replace instances: each has windows, and all are closed.
fn windows(pools: &[&ASGMachinePool], step: &Step<'_>) -> Option<Blocker> {
    // Windows do not depend on the number of replicas.
    let closed = |pool: &&ASGMachinePool| !pool.spec.disruption(1).opening(step.now).is_open();
    pools.iter().all(closed).then(|| Blocker {
        cause: Cause::PoolWindowsClosed,
        message: "no ASGMachinePool has an open window (spec.disruption.windows)".to_owned(),
    })
}

fn control_plane(machines: &[MachineFacts], version: &str) -> Option<Blocker> {
    let machines = machines.iter().filter(|machine| machine.control_plane);
    outdated(machines, version, Cause::ControlPlaneNotUpgraded, "control plane Machines")
}

fn workers(machines: &[MachineFacts], version: &str) -> Option<Blocker> {
    let machines = machines.iter().filter(|machine| machine.of_pool && !machine.control_plane);
    outdated(machines, version, Cause::WorkersNotUpgraded, "Machines of ASGMachinePools")
}

/// The Machines whose nodes do not report the version. One that is being deleted does not count.
fn outdated<'a>(
    machines: impl Iterator<Item = &'a MachineFacts>,
    version: &str,
    cause: Cause,
    what: &str,
) -> Option<Blocker> {
    let outdated: Vec<&str> = machines
        .filter(|machine| !machine.deleting && machine.kubelet_version.as_deref() != Some(version))
        .map(|machine| machine.name.as_str())
        .collect();
    (!outdated.is_empty()).then(|| Blocker {
        cause,
        message: format!("{what} whose nodes do not report {version}: {}", listed(&outdated)),
    })
}

fn kept(pools: &[&ASGMachinePool]) -> Vec<(&'static str, String)> {
    let kept: Vec<String> = pools
        .iter()
        .filter(|pool| pool.spec.deletion_policy == Some(DeletionPolicy::Orphan))
        .map(|pool| pool.name_any())
        .collect();
    let names: Vec<&str> = kept.iter().map(String::as_str).collect();
    let text = || {
        format!(
            "the Auto Scaling groups of these ASGMachinePools are kept in AWS, with their instances (deletionPolicy Orphan): {}",
            listed(&names)
        )
    };
    (!names.is_empty()).then(|| (events::GROUPS_KEPT, text())).into_iter().collect()
}
