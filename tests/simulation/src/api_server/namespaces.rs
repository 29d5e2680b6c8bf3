//! The namespace controller's part in a deletion: everything in the namespace is deleted, kind by kind in no particular
//! order, and nothing is created in it any more.

use super::{ApiServer, Expect, Kind, Ledger, Object, State, Store};

impl ApiServer {
    /// Deletes a namespace with all that is in it.
    pub(crate) fn delete_namespace(&self, namespace: &str) {
        let mut state = self.state();
        state.ledger.terminating.insert(namespace.to_owned());
        let mut kinds = Kind::ALL.to_vec();
        while !kinds.is_empty() {
            let at = state.ledger.random.index(kinds.len());
            state.delete_all(kinds.swap_remove(at), namespace);
        }
        let State { ledger, configs, .. } = &mut *state;
        delete(configs, ledger, namespace);
    }
}

impl State {
    fn delete_all(&mut self, kind: Kind, namespace: &str) {
        let Self { ledger, clusters, machine_pools, machines, pools, asg_machines, secrets, .. } = self;
        match kind {
            Kind::Cluster => delete(clusters, ledger, namespace),
            Kind::MachinePool => delete(machine_pools, ledger, namespace),
            Kind::Machine => delete(machines, ledger, namespace),
            Kind::Pool => delete(pools, ledger, namespace),
            Kind::AsgMachine => delete(asg_machines, ledger, namespace),
            Kind::Secret => delete(secrets, ledger, namespace),
        }
    }
}

fn delete<T: Object>(store: &mut Store<T>, ledger: &mut Ledger, namespace: &str) {
    for (key, _) in store.all().into_iter().filter(|(key, _)| key.namespace == namespace) {
        // What is gone meanwhile is as good.
        let _ = store.delete(ledger, &key, Expect::default());
    }
}
