//! The caches that the watches keep: what reconciles read without a call.

use std::{collections::BTreeMap, sync::Arc};

use capasg_api::{
    ASGGuard, ASGIdentity, ASGMachine, ASGMachinePool,
    capi::{Cluster, Machine, MachinePool, pool_owner_of_machine},
    names::labels,
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{
    ResourceExt,
    core::PartialObjectMeta,
    runtime::reflector::{ObjectRef, Store},
};

use super::Index;
use crate::{
    ObjectKey,
    kubernetes::{PoolScope, belongs_to},
};

/// One store for each kind that is watched.
#[derive(Clone)]
pub struct Caches {
    /// The value of the watch filter's label on our pools, if there is a filter.
    pub watch_filter: Option<String>,
    /// Our pools.
    pub pools: Store<ASGMachinePool>,
    /// Our machines.
    pub asg_machines: Store<ASGMachine>,
    /// Our machines by [`indexed_pool`].
    pub asg_machines_of: Index,
    /// Core's MachinePools.
    pub machine_pools: Store<MachinePool>,
    /// Core's Machines.
    pub machines: Store<Machine>,
    /// Core's Machines by namespace and pool-name label.
    pub machines_of: Index,
    /// Core's Clusters.
    pub clusters: Store<Cluster>,
    /// The identities.
    pub identities: Store<ASGIdentity>,
    /// The guards.
    pub guards: Store<ASGGuard>,
    /// Namespaces, by name and labels only.
    pub namespaces: Store<PartialObjectMeta<Namespace>>,
    /// Secrets, by name and version only: the content of one that a MachinePool names is read when it changed, and
    /// never kept.
    pub secrets: Store<PartialObjectMeta<Secret>>,
}

impl Caches {
    /// A pool.
    #[must_use]
    pub fn pool(&self, key: &ObjectKey) -> Option<Arc<ASGMachinePool>> {
        self.pools.get(&ObjectRef::new(&key.name).within(&key.namespace))
    }

    /// A MachinePool.
    #[must_use]
    pub fn machine_pool(&self, key: &ObjectKey) -> Option<Arc<MachinePool>> {
        self.machine_pools.get(&ObjectRef::new(&key.name).within(&key.namespace))
    }

    /// The MachinePools of a namespace.
    #[must_use]
    pub fn machine_pools_of(&self, namespace: &str) -> Vec<Arc<MachinePool>> {
        self.machine_pools.state_filter(|owner| owner.metadata.namespace.as_deref() == Some(namespace))
    }

    /// A Machine.
    #[must_use]
    pub fn machine(&self, key: &ObjectKey) -> Option<Arc<Machine>> {
        self.machines.get(&ObjectRef::new(&key.name).within(&key.namespace))
    }

    /// A Cluster.
    #[must_use]
    pub fn cluster(&self, key: &ObjectKey) -> Option<Arc<Cluster>> {
        self.clusters.get(&ObjectRef::new(&key.name).within(&key.namespace))
    }

    /// The ASGMachines of a pool.
    #[must_use]
    pub fn asg_machines(&self, pool: &ObjectKey) -> Vec<Arc<ASGMachine>> {
        let machines = |group: &ObjectKey| {
            self.asg_machines_of.objects_of(group).into_iter().filter_map(|key| self.asg_machine(&key))
        };
        // The index keeps what an object belonged to before.
        let without_owner = machines(&pool.sibling(WITHOUT_OWNER));
        let without_owner = without_owner.filter(|machine| pool_owner_of_machine(machine).is_none());
        machines(pool).chain(without_owner).filter(|machine| self.belongs_to(machine, pool)).collect()
    }

    /// Whether an ASGMachine belongs to a pool.
    #[must_use]
    pub fn belongs_to(&self, machine: &ASGMachine, pool: &ObjectKey) -> bool {
        belongs_to(machine, pool, self.pool(pool).as_deref())
    }

    /// The ASGMachines that are being deleted, except those of pools that are selected by another watch filter.
    #[must_use]
    pub fn deleting_asg_machines(&self) -> Vec<Arc<ASGMachine>> {
        self.asg_machines.state_filter(|machine| {
            machine.metadata.deletion_timestamp.is_some() && self.may_select(machine.labels())
        })
    }

    /// Whether a pool of these labels may be ours. An ASGMachine without the label may be older than the label of its
    /// pool.
    fn may_select(&self, found: &BTreeMap<String, String>) -> bool {
        let label = found.get(labels::WATCH_FILTER);
        self.watch_filter.is_none() || label.is_none() || label == self.watch_filter.as_ref()
    }

    /// The Machines of a pool, by the labels that core sets.
    #[must_use]
    pub fn machines(&self, scope: &PoolScope) -> Vec<Arc<Machine>> {
        let labelled = |name: &String| {
            let group = ObjectKey::new(&scope.pool.namespace, name);
            // The index keeps what an object belonged to before.
            let belongs = |machine: &Arc<Machine>| {
                let label = |key: &str| machine.labels().get(key);
                label(labels::POOL_NAME) == Some(name) && label(labels::CLUSTER_NAME) == Some(&scope.cluster)
            };
            let found = self.machines_of.objects_of(&group).into_iter().filter_map(|key| self.machine(&key));
            found.filter(belongs).collect::<Vec<_>>()
        };
        scope.pool_names.iter().flat_map(labelled).collect()
    }

    /// The resourceVersion of a bootstrap Secret.
    #[must_use]
    pub fn secret_version(&self, key: &ObjectKey) -> Option<String> {
        self.secrets.get(&ObjectRef::new(&key.name).within(&key.namespace))?.resource_version()
    }

    /// The labels of a namespace.
    #[must_use]
    pub fn namespace_labels(&self, namespace: &str) -> Option<BTreeMap<String, String>> {
        Some(self.namespaces.get(&ObjectRef::new(namespace))?.labels().clone())
    }

    /// The pools of a namespace.
    #[must_use]
    pub fn pools_of(&self, namespace: &str) -> Vec<Arc<ASGMachinePool>> {
        self.pools.state_filter(|pool| pool.metadata.namespace.as_deref() == Some(namespace))
    }

    /// The ASGMachine of a name.
    #[must_use]
    pub fn asg_machine(&self, key: &ObjectKey) -> Option<Arc<ASGMachine>> {
        self.asg_machines.get(&ObjectRef::new(&key.name).within(&key.namespace))
    }
}

/// In place of the name of a pool: no object has it.
const WITHOUT_OWNER: &str = "";

/// Under what an ASGMachine is found: the pool that it references, or its namespace if it references none.
pub(super) fn indexed_pool(machine: &ASGMachine) -> Option<ObjectKey> {
    let owner = pool_owner_of_machine(machine).map_or(WITHOUT_OWNER, |owner| &owner.name);
    Some(ObjectKey::new(machine.namespace()?, owner))
}
