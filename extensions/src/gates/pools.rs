//! The gate of our pools: they are ready and do not roll out before a step, and their nodes run the version after it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use capasg_api::{
    ASGMachinePool,
    conditions::{self, READY},
    names::{is_object_name, listed},
    pool::DeletionPolicy,
};
use kube::ResourceExt as _;

use super::{
    Blocker, Findings, Gate, Sources, Step,
    aws::{Asked, Needs, compare},
    identity::{identity_of, planned_identity},
    verify,
};
use crate::{
    blocks::Cause,
    lookups::Lookups,
    names::events,
    ports::{Kind, Kubernetes, PoolList, ReadError},
    protocol::Hook,
    topology::{planned_pools, templates_of},
};

/// The `ASGMachinePool`s of a Cluster.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pools;

#[async_trait]
impl Gate for Pools {
    async fn check(&self, step: &Step<'_>, sources: Sources<'_>) -> Result<Findings, ReadError> {
        let Sources { kubernetes, lookups } = sources;
        if step.hook == Hook::BeforeClusterCreate {
            return match lookups {
                Some(lookups) => planned(step, kubernetes, lookups).await,
                None => Ok(Findings::default()),
            };
        }
        let PoolList { pools, undecoded } = kubernetes.pools(step.key).await?;
        let pools: Vec<&ASGMachinePool> =
            pools.iter().filter(|pool| pool.metadata.deletion_timestamp.is_none()).collect();
        let mut findings =
            Findings { concerned: !pools.is_empty() || !undecoded.is_empty(), ..Findings::default() };
        if !findings.concerned {
            return Ok(findings);
        }
        findings.blockers.extend(not_decoded(&undecoded));
        match step.hook {
            Hook::BeforeClusterUpgrade | Hook::BeforeControlPlaneUpgrade => {
                findings.blockers.extend(settled(&pools));
            }
            Hook::BeforeWorkersUpgrade => {
                findings.blockers.extend(settled(&pools));
                findings.blockers.extend(windows(&pools, step));
            }
            Hook::AfterControlPlaneUpgrade | Hook::AfterWorkersUpgrade | Hook::AfterClusterUpgrade => {
                // A pool that cannot be read leaves the Machines as they are, and theirs count.
                let machines = kubernetes.machines(step.key).await?;
                if step.hook != Hook::AfterWorkersUpgrade {
                    verify::control_plane(&machines, step.version, &mut findings);
                }
                if step.hook != Hook::AfterControlPlaneUpgrade {
                    findings.blockers.extend(upgraded(&pools));
                    verify::workers(&pools, &machines, step.version, &mut findings);
                }
            }
            Hook::BeforeClusterDelete => findings.notes = kept(&pools),
            _ => {}
        }
        if let Some(lookups) = lookups {
            let identity = identity_of(step.cluster, step.is_confirmed);
            let needs = needs(&pools, step);
            let asked = pools.iter().zip(needs).map(|(pool, needs)| Asked::of(pool, needs, &identity));
            compare(lookups, asked.collect(), &mut findings).await;
        }
        Ok(findings)
    }

    fn unread(&self, step: &Step<'_>, why: String) -> Findings {
        // An approval must not be passed because a read failed.
        let concerned = step.cluster.has_machine_pools();
        let blockers = vec![Blocker { cause: Cause::NotReadable, message: why }];
        Findings { concerned, blockers, ..Findings::default() }
    }
}

/// What the pools of a Cluster require in AWS before it is created.
async fn planned(
    step: &Step<'_>,
    kubernetes: &dyn Kubernetes,
    lookups: &Lookups,
) -> Result<Findings, ReadError> {
    let mut findings = Findings::default();
    let Some((namespace, name)) = step.cluster.class() else { return Ok(findings) };
    let Some(class) = kubernetes.object(Kind::ClusterClass, namespace, name).await? else {
        return Ok(findings);
    };
    let mut templates = BTreeMap::new();
    for (of_class, name) in templates_of(&class).into_iter().filter(|(_, name)| is_object_name(name)) {
        if let Some(template) = kubernetes.object(Kind::PoolTemplate, namespace, name).await? {
            templates.insert(of_class.to_owned(), template);
        }
    }
    let pools = planned_pools(step.cluster, &class, &templates, step.settings);
    findings.concerned = !pools.is_empty();
    if pools.is_empty() {
        return Ok(findings);
    }
    let identity = planned_identity(step, &class, namespace, kubernetes).await?;
    let asked = pools.iter().map(|pool| {
        let needs = Needs::to_create(pool, step.cluster.version());
        Asked { needs, request: identity.request(pool, step.key) }
    });
    compare(lookups, asked.collect(), &mut findings).await;
    Ok(findings)
}

/// What each pool requires in AWS before a step of an upgrade.
fn needs(pools: &[&ASGMachinePool], step: &Step<'_>) -> Vec<Needs> {
    // Workers may skip versions of the control plane.
    let workers = || step.following.workers.iter().map(|step| step.version.as_str());
    let versions = || workers().chain(step.following.workers.is_empty().then_some(step.version));
    match step.hook {
        Hook::BeforeClusterUpgrade | Hook::BeforeControlPlaneUpgrade => {
            pools.iter().map(|pool| Needs::images_of(pool, versions())).collect()
        }
        Hook::BeforeWorkersUpgrade => {
            pools.iter().map(|pool| Needs::to_roll_out(pool, step.version)).collect()
        }
        _ => Vec::new(),
    }
}

/// Pools that another version of CAPASG wrote: neither their state nor their windows are known.
fn not_decoded(names: &[String]) -> Option<Blocker> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| Blocker {
        cause: Cause::NotReadable,
        message: format!(
            "ASGMachinePools that this version of the extension cannot read: {}",
            listed(&names)
        ),
    })
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
    (!pools.is_empty() && pools.iter().all(closed)).then(|| Blocker {
        cause: Cause::PoolWindowsClosed,
        message: "no ASGMachinePool has an open window (spec.disruption.windows)".to_owned(),
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
