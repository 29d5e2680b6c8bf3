//! The context in which a plan is carried out.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use capasg_api::{
    ASGMachinePool,
    capi::{MachinePool, owner_machine_pool, pause_state},
};
use capasg_cloud::Inventory;
use kube::ResourceExt;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::model::{Desired, MachineRef, Observed, Plan, PoolObjects, Step};
use crate::{Context, ObjectKey};

/// A plan, the facts that it was made from, and the ports.
pub struct Execution<'a> {
    /// The ports.
    pub context: &'a Context,
    /// The pool's region.
    pub inventory: &'a Inventory,
    /// The pool.
    pub objects: &'a PoolObjects,
    /// The desired state.
    pub desired: &'a Desired,
    /// The facts.
    pub observed: &'a Observed,
    /// The plan.
    pub plan: &'a Plan,
    /// Hash of all inputs that a user can edit (spec, MachinePool, ...). If it changes, rejected calls are
    /// retried at once.
    pub retry_key: String,
    /// The Machines that stay according to the plan. Empty until [`Execution::has_deletions_of_others`] needs them.
    pub staying: OnceLock<BTreeSet<&'a str>>,
}

impl Execution<'_> {
    /// Whether the pool or its Cluster is paused now: writes may have waited for the rate limit (F1).
    pub fn is_paused(&self) -> bool {
        let Self { context, objects, .. } = self;
        let pool = context.kubernetes.pool(&objects.key);
        let name = objects.cluster_name.as_ref().map(|name| objects.key.sibling(name));
        let cluster = name.and_then(|name| context.kubernetes.cluster(&name));
        pool.is_some_and(|pool| pause_state(cluster.as_deref(), pool.annotations()).is_paused())
    }

    /// Whether a user has changed the pool or its MachinePool since the plan was made: calls before may have taken minutes. The
    /// change has woken the pool.
    pub fn is_superseded(&self) -> bool {
        let Self { context, objects, .. } = self;
        let is_edited = context.kubernetes.pool(&objects.key).is_some_and(|pool| {
            let (before, mut now) = (&objects.pool.spec, pool.spec.clone());
            // These are ours.
            now.provider_id.clone_from(&before.provider_id);
            now.provider_id_list.clone_from(&before.provider_id_list);
            now != *before
        });
        let owner = objects.machine_pool.as_ref();
        let now = owner.and_then(|owner| context.kubernetes.machine_pool(&ObjectKey::of(owner.as_ref())));
        let other = |(before, now): (&Arc<MachinePool>, Arc<MachinePool>)| {
            before.spec.replicas != now.spec.replicas || before.spec.template != now.spec.template
        };
        is_edited || owner.zip(now).is_some_and(other)
    }

    /// Whether another MachinePool owns the pool since the plan was made.
    pub fn has_another_owner(&self) -> bool {
        let owner = |pool: &ASGMachinePool| owner_machine_pool(pool).map(|owner| owner.uid.clone());
        let now = self.context.kubernetes.pool(&self.objects.key);
        now.is_none_or(|now| owner(&now) != owner(&self.objects.pool))
    }

    /// Whether another actor has begun to delete a Machine of the pool since the plan was made: it counts like one that the
    /// plan deletes. The deletion has woken the pool.
    pub fn has_deletions_of_others(&self) -> bool {
        let Self { context, objects, observed, plan, staying, .. } = self;
        let staying = staying.get_or_init(|| staying_machines(observed, plan));
        let now = |name: &&str| context.kubernetes.machine(&objects.key.sibling(*name));
        staying.iter().filter_map(now).any(|machine| machine.is_deleting())
    }
}

/// The names of the Machines that neither are being deleted nor that the plan deletes.
fn staying_machines<'a>(observed: &'a Observed, plan: &Plan) -> BTreeSet<&'a str> {
    let planned: BTreeSet<&str> = plan.steps().filter_map(deleted_machine).collect();
    let machines = observed.instances.values().filter_map(|instance| instance.machine.as_ref());
    let stays =
        |machine: &&MachineRef| machine.deleting_since.is_none() && !planned.contains(machine.name.as_str());
    machines.filter(stays).map(|machine| machine.name.as_str()).collect()
}

/// The name of the Machine that a step deletes.
fn deleted_machine(step: &Step) -> Option<&str> {
    match step.kubernetes()? {
        KubeWrite::DeleteMachine { machine, .. } => Some(&machine.name),
        _ => None,
    }
}
