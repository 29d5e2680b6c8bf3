//! The objects that the controllers write, as they are held: what a comparison with a real API server begins and ends with.

use capasg_api::{
    ASGMachine, ASGMachinePool,
    capi::{Machine, MachinePool},
};
use capasg_controllers::ObjectKey;

use super::{ApiServer, State};

/// One object of each kind that the controllers write; all have the same name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Objects {
    /// The pool.
    pub pool: Option<ASGMachinePool>,
    /// Its `MachinePool`.
    pub machine_pool: Option<MachinePool>,
    /// Our part of a Machine.
    pub asg_machine: Option<ASGMachine>,
    /// A Machine.
    pub machine: Option<Machine>,
}

impl ApiServer {
    /// Puts objects in as another API server holds them; their resourceVersions are new.
    pub fn restore(&self, objects: Objects) {
        let mut state = self.state();
        let State { ledger, pools, machine_pools, asg_machines, machines, .. } = &mut *state;
        let Objects { pool, machine_pool, asg_machine, machine } = objects;
        if let Some(one) = pool {
            pools.restore(ledger, one);
        }
        if let Some(one) = machine_pool {
            machine_pools.restore(ledger, one);
        }
        if let Some(one) = asg_machine {
            asg_machines.restore(ledger, one);
        }
        if let Some(one) = machine {
            machines.restore(ledger, one);
        }
    }

    /// The objects of a name.
    #[must_use]
    pub fn objects(&self, key: &ObjectKey) -> Objects {
        let state = self.state();
        Objects {
            pool: state.pools.get(key).map(|one| one.as_ref().clone()),
            machine_pool: state.machine_pools.get(key).map(|one| one.as_ref().clone()),
            asg_machine: state.asg_machines.get(key).map(|one| one.as_ref().clone()),
            machine: state.machines.get(key).map(|one| one.as_ref().clone()),
        }
    }
}
