//! What the guards of the namespace do not allow a pool: found before anything is read from AWS, or once AWS resolved it.

use std::sync::Arc;

use capasg_api::{
    ASGMachinePool,
    admission::FieldError,
    capi::owner_machine_pool,
    conditions::{CLOUD_REACHABLE, Finding, GROUP_READY, LAUNCH_TEMPLATE_READY},
    reasons::{cloud_reachable, group_ready, launch_template_ready},
};
use kube::ResourceExt as _;

use crate::kubernetes::Kubernetes;
use crate::machine_pool::model::{PoolObjects, References};

/// The Region, if it is not allowed: no call is made.
#[must_use]
pub fn region(objects: &PoolObjects) -> Option<Finding> {
    let why = objects.access.guards.region(&objects.pool.spec.region)?;
    let message = format!("{why}. The controller makes no calls to AWS for this pool.");
    Some(Finding::new(CLOUD_REACHABLE, false, cloud_reachable::NOT_ALLOWED, message))
}

/// How large the pool may become, and why, if the guards limit it below what it requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The number of replicas that it may have. A pool that has more keeps them.
    pub replicas: i32,
    /// Why.
    pub why: String,
}

impl Limit {
    /// What is reported.
    pub fn finding(self) -> Finding {
        let message =
            format!("{}. The controller launches no more than {} replicas.", self.why, self.replicas);
        Finding::new(GROUP_READY, false, group_ready::NOT_ALLOWED, message)
    }
}

/// The limits of size. Older pools of a namespace come first: what they request is not available to younger ones.
#[must_use]
pub fn limit(kubernetes: &dyn Kubernetes, objects: &PoolObjects, requested: i32) -> Option<Limit> {
    let guards = &objects.access.guards;
    let of_pool = guards.replicas(requested).map(|(replicas, why)| Limit { replicas, why });
    if !guards.limits_namespaces() {
        return of_pool;
    }
    let age = |pool: &ASGMachinePool| {
        (pool.metadata.creation_timestamp.as_ref().map(|time| time.0), pool.name_any())
    };
    let own = age(&objects.pool);
    let all = kubernetes.pools_of(&objects.key.namespace);
    let older: Vec<&Arc<ASGMachinePool>> = all.iter().filter(|pool| age(pool) < own).collect();
    let replicas: i64 = older.iter().map(|pool| i64::from(requested_by(kubernetes, objects, pool))).sum();
    let of_namespace = guards.namespace(older.len(), replicas, requested);
    let of_namespace = of_namespace.map(|(replicas, why)| Limit { replicas, why });
    of_pool.into_iter().chain(of_namespace).min_by_key(|limit| limit.replicas)
}

fn requested_by(kubernetes: &dyn Kubernetes, objects: &PoolObjects, pool: &ASGMachinePool) -> i32 {
    let owner = owner_machine_pool(pool).map(|owner| objects.key.sibling(&owner.name));
    let requested =
        owner.and_then(|owner| kubernetes.machine_pool(&owner)).map_or(0, |owner| owner.replicas());
    // What a pool may not have is available to others.
    objects.access.guards.replicas(requested).map_or(requested, |(most, _)| most)
}

impl References {
    /// Reports what the spec names and a guard does not allow. Nothing is launched from it.
    pub(super) fn check_guards(&mut self, objects: &PoolObjects) {
        let is_created = objects.pool.spec.provider_id.is_some();
        for FieldError { field, message } in objects.access.guards.check_spec(&objects.pool.spec) {
            let (condition, reason) = match field.as_ref() {
                // The name was allowed when the group was created or adopted.
                "spec.group.name" if is_created => continue,
                // Adoption says itself why it does not happen.
                "spec.adoptionPolicy" | "spec.region" => continue,
                "spec.group.name" => (GROUP_READY, group_ready::NOT_ALLOWED),
                _ => (LAUNCH_TEMPLATE_READY, launch_template_ready::NOT_ALLOWED),
            };
            self.deny(condition, reason, &format!("{field}: {message}"));
        }
    }

    /// Reports what is not allowed.
    pub(super) fn deny(&mut self, condition: &'static str, reason: &'static str, why: &str) {
        self.denied = true;
        self.miss(condition, reason, format!("{why}. Nothing is launched until it is allowed."));
    }
}
