//! What the guards of the namespace do not allow a pool: found before anything is read from AWS, or once AWS resolved it.

use std::sync::Arc;

use capasg_api::{
    ASGMachinePool,
    admission::FieldError,
    capi::owner_machine_pool,
    conditions::{CLOUD_REACHABLE, Finding, GROUP_READY, LAUNCH_TEMPLATE_READY},
    guard::SizeLimit,
    reasons::{cloud_reachable, group_ready, launch_template_ready},
};
use kube::ResourceExt as _;

use crate::kubernetes::Kubernetes;
use crate::machine_pool::model::{PoolObjects, References, replicas};

/// The Region, if it is not allowed: no call is made.
#[must_use]
pub fn region(objects: &PoolObjects) -> Option<Finding> {
    let why = objects.access.guards.region(&objects.pool.spec.region)?;
    let message = format!("{why}. The controller makes no calls to AWS for this pool.");
    Some(Finding::new(CLOUD_REACHABLE, false, cloud_reachable::NOT_ALLOWED, message))
}

/// What is reported of a limit of size that is less than what the pool requests.
pub fn too_large(limit: SizeLimit) -> Finding {
    let SizeLimit { replicas, why, excludes } = limit;
    let effect = if excludes {
        "The controller creates nothing for this pool.".to_owned()
    } else {
        format!("The controller launches no more than {replicas} replicas.")
    };
    Finding::new(GROUP_READY, false, group_ready::NOT_ALLOWED, format!("{why}. {effect}"))
}

/// How large the pool may become. Older pools of a namespace come first: what they request is not available to younger ones.
/// What any pool has is not available to another one.
#[must_use]
pub fn limit(kubernetes: &dyn Kubernetes, objects: &PoolObjects) -> Option<SizeLimit> {
    let guards = &objects.access.guards;
    let of_pool = guards.of_each_pool();
    if !guards.limits_namespaces() {
        return of_pool;
    }
    let age = |pool: &ASGMachinePool| {
        (pool.metadata.creation_timestamp.as_ref().map(|time| time.0), pool.name_any())
    };
    let own = age(&objects.pool);
    let all = kubernetes.pools_of(&objects.key.namespace);
    let others = all.iter().filter(|pool| pool.name_any() != objects.key.name);
    let (older, younger): (Vec<&Arc<ASGMachinePool>>, Vec<_>) = others.partition(|pool| age(pool) < own);
    let most = of_pool.as_ref().map_or(i32::MAX, |limit| limit.replicas);
    let requested =
        older.iter().map(|pool| requested_by(kubernetes, objects, pool).min(most).max(size_of(pool)));
    let replicas = requested.chain(younger.iter().map(|pool| size_of(pool))).map(i64::from).sum();
    let of_namespace = guards.of_namespace_with(older.len(), replicas);
    of_pool.into_iter().chain(of_namespace).min_by_key(|limit| (limit.replicas, !limit.excludes))
}

fn requested_by(kubernetes: &dyn Kubernetes, objects: &PoolObjects, pool: &ASGMachinePool) -> i32 {
    let owner = owner_machine_pool(pool).map(|owner| objects.key.sibling(&owner.name));
    owner.and_then(|owner| kubernetes.machine_pool(&owner)).map_or(0, |owner| replicas(&pool.spec, &owner).0)
}

/// The instances of a pool, also while it is paused or without its MachinePool: no user writes the list of them, and the
/// status shows sooner what is launched.
fn size_of(pool: &ASGMachinePool) -> i32 {
    let listed = i32::try_from(pool.spec.provider_id_list.len()).unwrap_or(i32::MAX);
    let group = pool.status.as_ref().and_then(|status| status.group.as_ref());
    listed.max(group.map_or(0, |group| group.desired_capacity))
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
