//! The `MachinePool` controller.

use std::sync::Arc;

use capasg_api::{
    ASGMachine, ASGMachinePool,
    capi::{ContractReference, Machine, MachinePool, MachineSpec, owner_machine_pool, pause_state},
    names::{labels, must_format_value},
};
use capasg_controllers::ObjectKey;
use kube::{Resource, ResourceExt};

use super::{State, owners::set_owner};
use crate::api_server::{self, Expect, pool_of};

/// Core's finalizer on a `MachinePool`.
pub(crate) const FINALIZER: &str = "machinepool.cluster.x-k8s.io";

impl State {
    pub(super) fn machine_pools(&mut self, api: &mut api_server::State) {
        for (key, machine_pool) in api.machine_pools.all() {
            // Without its Cluster the controller fails on every look.
            let Some(cluster) = api.clusters.get(&key.sibling(&machine_pool.spec.cluster_name)) else {
                continue;
            };
            if pause_state(Some(&cluster), machine_pool.annotations()).is_paused() {
                continue;
            }
            if machine_pool.is_deleting() {
                delete(api, &key, &machine_pool);
            } else {
                self.machine_pool(api, &key, &machine_pool);
            }
        }
    }

    fn machine_pool(
        &mut self,
        api: &mut api_server::State,
        key: &ObjectKey,
        machine_pool: &Arc<MachinePool>,
    ) {
        bootstrap(api, key, machine_pool);
        let pool_key = pool_of(machine_pool);
        adopt_pool(api, &pool_key, machine_pool);
        let Some(pool) = api.pools.get(&pool_key) else { return };
        if pool.metadata.deletion_timestamp.is_some() {
            return;
        }
        let Some(status) = &pool.status else { return };
        self.check(&pool);
        if status.infrastructure_machine_kind.is_some() {
            create_machines(api, &pool_key, machine_pool);
        }
        let ready = count_ready(api, key, machine_pool);
        let list = &pool.spec.provider_id_list;
        let copies = status.ready && !(list.is_empty() && status.replicas != 0);
        let wanted = machine_pool.replicas();
        let phase = match (status.ready, ready.cmp(&wanted)) {
            (false, _) => "Provisioning",
            (true, std::cmp::Ordering::Equal) if status.replicas == wanted => "Running",
            (true, _) if status.replicas > wanted => "ScalingDown",
            (true, _) => "ScalingUp",
        };
        let told = machine_pool.status.as_ref();
        let same_list = !copies
            || machine_pool.spec.provider_id_list == *list
                && told.is_some_and(|told| told.replicas == Some(status.replicas));
        if same_list && told.is_some_and(|told| told.phase.as_deref() == Some(phase)) {
            return;
        }
        let api_server::State { ledger, machine_pools, .. } = api;
        let _ = machine_pools.update(ledger, key, Expect::default(), |own| {
            if copies {
                own.spec.provider_id_list.clone_from(list);
            }
            let own = own.status.get_or_insert_default();
            if copies {
                own.replicas = Some(status.replicas);
            }
            own.phase = Some(phase.to_owned());
        });
    }

    /// What core would stumble over.
    fn check(&mut self, pool: &ASGMachinePool) {
        let list = &pool.spec.provider_id_list;
        if !list.is_sorted() || list.windows(2).any(|pair| pair[0] == pair[1]) {
            self.breach(format!("B3: providerIDList is not sorted and unique: {list:?}"));
        }
        let Some(status) = &pool.status else { return };
        if status.ready != status.initialization.provisioned {
            self.breach("B5: ready differs from initialization.provisioned".to_owned());
        }
        if status.infrastructure_machine_kind.as_deref() == Some("") {
            self.breach("B11: infrastructureMachineKind is empty".to_owned());
        }
    }
}

/// A `MachinePool` that is being deleted deletes what it refers to, and waits.
fn delete(api: &mut api_server::State, key: &ObjectKey, machine_pool: &MachinePool) {
    let pool = pool_of(machine_pool);
    let config = machine_pool.bootstrap_config().map(|config| key.sibling(&config.name));
    let api_server::State { ledger, machine_pools, pools, configs, .. } = api;
    let _ = pools.delete(ledger, &pool, Expect::default());
    if let Some(config) = &config {
        let _ = configs.delete(ledger, config, Expect::default());
    }
    let waits = pools.get(&pool).is_some() || config.is_some_and(|config| configs.get(&config).is_some());
    if !waits {
        let _ = machine_pools.update(ledger, key, Expect::default(), |own| {
            own.finalizers_mut().retain(|finalizer| finalizer != FINALIZER);
        });
    }
}

/// The Secret's name is copied once the bootstrap config has made it.
fn bootstrap(api: &mut api_server::State, key: &ObjectKey, machine_pool: &MachinePool) {
    let Some(config) = machine_pool.bootstrap_config() else { return };
    let name = config.name.clone();
    if machine_pool.data_secret_name().is_some() || api.secrets.get(&key.sibling(&name)).is_none() {
        return;
    }
    let api_server::State { ledger, machine_pools, .. } = api;
    let _ = machine_pools.update(ledger, key, Expect::default(), |own| {
        own.spec.template.spec.bootstrap.data_secret_name = Some(name);
    });
}

/// Controller reference and label come before anything else is ready. A pool that another `MachinePool` controls is left
/// alone: `SetControllerReference` fails.
fn adopt_pool(api: &mut api_server::State, pool: &ObjectKey, machine_pool: &MachinePool) {
    let Some(owner) = machine_pool.controller_owner_ref(&()) else { return };
    let cluster = machine_pool.spec.cluster_name.clone();
    let api_server::State { ledger, pools, .. } = api;
    let adopted = |pool: &ASGMachinePool| {
        pool.labels().get(labels::CLUSTER_NAME) == Some(&cluster) && pool.owner_references().contains(&owner)
    };
    let is_of_another = |pool: &ASGMachinePool| {
        owner_machine_pool(pool).is_some_and(|controller| controller.name != owner.name)
    };
    if pools.get(pool).is_some_and(|pool| adopted(&pool) || is_of_another(&pool)) {
        return;
    }
    let _ = pools.update(ledger, pool, Expect::default(), |pool| {
        pool.labels_mut().insert(labels::CLUSTER_NAME.to_owned(), cluster);
        set_owner(pool.owner_references_mut(), owner);
    });
}

/// One Machine for every `ASGMachine` with the right labels, those being deleted included. It has the name of the `ASGMachine`,
/// and is applied with force: one of another `MachinePool` is taken over.
fn create_machines(api: &mut api_server::State, pool: &ObjectKey, machine_pool: &MachinePool) {
    let cluster = &machine_pool.spec.cluster_name;
    let label = must_format_value(&machine_pool.name_any());
    let belongs = |machine: &ASGMachine| {
        machine.labels().get(labels::CLUSTER_NAME) == Some(cluster)
            && machine.labels().get(labels::POOL_NAME) == Some(&label)
    };
    for (key, asg_machine) in api.asg_machines.all() {
        if key.namespace != pool.namespace || !belongs(&asg_machine) {
            continue;
        }
        if let Some(machine) = api.machines.get(&key) {
            if machine.labels().get(labels::POOL_NAME) != Some(&label) {
                take_over(api, &key, machine_pool, &label);
            }
            continue;
        }
        let reference = ContractReference {
            api_group: capasg_api::GROUP.to_owned(),
            kind: "ASGMachine".to_owned(),
            name: key.name.clone(),
        };
        let spec = MachineSpec {
            cluster_name: cluster.clone(),
            infrastructure_ref: reference,
            version: machine_pool.version().map(str::to_owned),
            ..MachineSpec::default()
        };
        let mut new = Machine::new(&key.name, spec);
        new.metadata.namespace = Some(key.namespace.clone());
        new.metadata.owner_references = machine_pool.controller_owner_ref(&()).map(|owner| vec![owner]);
        new.labels_mut().insert(labels::CLUSTER_NAME.to_owned(), cluster.clone());
        new.labels_mut().insert(labels::POOL_NAME.to_owned(), label.clone());
        let api_server::State { ledger, machines, .. } = api;
        let _ = machines.create(ledger, new);
    }
}

/// The Machine has the labels and the controller of this `MachinePool` from now on.
fn take_over(api: &mut api_server::State, key: &ObjectKey, machine_pool: &MachinePool, label: &str) {
    let api_server::State { ledger, machines, .. } = api;
    let _ = machines.update(ledger, key, Expect::default(), |machine| {
        machine.labels_mut().insert(labels::POOL_NAME.to_owned(), label.to_owned());
        machine.metadata.owner_references = machine_pool.controller_owner_ref(&()).map(|owner| vec![owner]);
    });
}

fn count_ready(api: &api_server::State, key: &ObjectKey, machine_pool: &MachinePool) -> i32 {
    let label = must_format_value(&machine_pool.name_any());
    let ready = api.machines.iter().filter(|(machine, object)| {
        machine.namespace == key.namespace
            && object.labels().get(labels::POOL_NAME) == Some(&label)
            && object.is_ready()
    });
    i32::try_from(ready.count()).unwrap_or(i32::MAX)
}
