//! What people and others do: edits, deletions, pauses, mishaps.

use capasg_api::{
    ASGMachine, ASGMachinePool,
    capi::{Cluster, Machine, MachinePool},
    conditions::{self, Finding},
};
use capasg_controllers::ObjectKey;
use capasg_simulator::{Fault, Service, Tree};

use super::{
    Pool, World,
    setup::{CLUSTER, NAMESPACE},
};
use crate::api_server::{Expect, State};

impl World {
    /// Edits a pool.
    pub fn edit_pool(&self, pool: &Pool, edit: impl FnOnce(&mut ASGMachinePool)) {
        let State { ledger, pools, .. } = &mut *self.api.state();
        let _ = pools.update(ledger, &pool.key, Expect::default(), edit);
    }

    /// Edits a pool's `MachinePool`.
    pub fn edit_machine_pool(&self, pool: &Pool, edit: impl FnOnce(&mut MachinePool)) {
        let State { ledger, machine_pools, .. } = &mut *self.api.state();
        let _ = machine_pools.update(ledger, &pool.machine_pool, Expect::default(), edit);
    }

    /// Edits the Cluster.
    pub fn edit_cluster(&self, edit: impl FnOnce(&mut Cluster)) {
        let State { ledger, clusters, .. } = &mut *self.api.state();
        let _ = clusters.update(ledger, &ObjectKey::new(NAMESPACE, CLUSTER), Expect::default(), edit);
    }

    /// Edits a Machine.
    pub fn edit_machine(&self, name: &str, edit: impl FnOnce(&mut Machine)) {
        let State { ledger, machines, .. } = &mut *self.api.state();
        let _ = machines.update(ledger, &ObjectKey::new(NAMESPACE, name), Expect::default(), edit);
    }

    /// Edits an ASGMachine.
    pub fn edit_asg_machine(&self, name: &str, edit: impl FnOnce(&mut ASGMachine)) {
        let State { ledger, asg_machines, .. } = &mut *self.api.state();
        let _ = asg_machines.update(ledger, &ObjectKey::new(NAMESPACE, name), Expect::default(), edit);
    }

    /// A `MachineHealthCheck` marks a Machine to be replaced.
    pub fn mark_unhealthy(&self, name: &str) {
        let now = self.now();
        self.edit_machine(name, |machine| {
            let generation = machine.metadata.generation.unwrap_or(1);
            let told = &mut machine.status.get_or_insert_default().conditions;
            for mark in [
                Finding::plain("HealthCheckSucceeded", false, "UnhealthyNode"),
                Finding::plain("OwnerRemediated", false, "WaitingForRemediation"),
            ] {
                conditions::set(told, mark, generation, now);
            }
        });
    }

    /// It recovers: the mark stays, since a `MachineHealthCheck` leaves taking it off to the owner.
    pub fn recover(&self, name: &str) {
        let now = self.now();
        self.edit_machine(name, |machine| {
            let generation = machine.metadata.generation.unwrap_or(1);
            let told = &mut machine.status.get_or_insert_default().conditions;
            let well = Finding::plain("HealthCheckSucceeded", true, "HealthCheckSucceeded");
            conditions::set(told, well, generation, now);
        });
    }

    /// `kubectl scale machinepool`.
    pub fn scale(&mut self, pool: &Pool, replicas: i32) {
        self.watchdog.asked(self.now(), pool, self.machine_pool(pool).map_or(0, |own| own.replicas()));
        self.edit_machine_pool(pool, |own| own.spec.replicas = Some(replicas));
        self.watchdog.asked(self.now(), pool, replicas);
    }

    /// `kubectl delete machinepool`.
    pub fn delete_machine_pool(&self, pool: &Pool) {
        let State { ledger, machine_pools, .. } = &mut *self.api.state();
        let _ = machine_pools.delete(ledger, &pool.machine_pool, Expect::default());
    }

    /// Removes a `MachinePool` at once, finalizers or not, as `kubectl replace --raw` or a broken move would.
    pub fn vanish_machine_pool(&self, pool: &Pool) {
        let State { ledger, machine_pools, .. } = &mut *self.api.state();
        let _ = machine_pools.update(ledger, &pool.machine_pool, Expect::default(), |own| {
            own.metadata.finalizers = None;
        });
        let _ = machine_pools.delete(ledger, &pool.machine_pool, Expect::default());
    }

    /// `kubectl delete asgmachinepool`.
    pub fn delete_pool(&self, pool: &Pool) {
        let State { ledger, pools, .. } = &mut *self.api.state();
        let _ = pools.delete(ledger, &pool.key, Expect::default());
    }

    /// `kubectl delete cluster`.
    pub fn delete_cluster(&self) {
        let State { ledger, clusters, .. } = &mut *self.api.state();
        let _ = clusters.delete(ledger, &ObjectKey::new(NAMESPACE, CLUSTER), Expect::default());
    }

    /// Removes the Cluster at once, finalizers or not.
    pub fn vanish_cluster(&self) {
        self.edit_cluster(|cluster| cluster.metadata.finalizers = None);
        self.delete_cluster();
    }

    /// `kubectl delete machine`.
    pub fn delete_machine(&self, name: &str) {
        let State { ledger, machines, .. } = &mut *self.api.state();
        let _ = machines.delete(ledger, &ObjectKey::new(NAMESPACE, name), Expect::default());
    }

    /// `kubectl delete asgmachine`.
    pub fn delete_asg_machine(&mut self, name: &str) {
        self.watchdog.undrained(name);
        let State { ledger, asg_machines, .. } = &mut *self.api.state();
        let _ = asg_machines.delete(ledger, &ObjectKey::new(NAMESPACE, name), Expect::default());
    }

    /// Writes a new bootstrap token.
    pub fn rotate_token(&self, pool: &Pool) {
        self.core.rotate_token(&pool.config);
    }

    /// Sets how long drains take, in seconds.
    pub fn set_drain_seconds(&self, seconds: i64) {
        self.core.state().drain_time = chrono::TimeDelta::seconds(seconds);
    }

    /// A `PodDisruptionBudget` blocks the drain of a Machine (`*` for all), or does so no more.
    pub fn block_drain(&self, machine: &str, blocked: bool) {
        let mut core = self.core.state();
        if blocked {
            core.blocked.insert(machine.to_owned());
        } else {
            core.blocked.remove(machine);
        }
    }

    /// An instance's Node (`*` for all) never joins, or does after all.
    pub fn mute(&self, instance: &str, muted: bool) {
        let mut core = self.core.state();
        if muted {
            core.mute.insert(instance.to_owned());
        } else {
            core.mute.remove(instance);
        }
    }

    /// Core goes down, or comes back.
    pub fn stop_core(&self, stopped: bool) {
        self.core.state().stopped = stopped;
    }

    /// Adds a fault of AWS.
    pub fn fault(&self, fault: Fault) {
        self.simulator.add_fault(fault);
    }

    /// The credentials belong to another account from now on.
    pub fn use_account(&self, account: &str) {
        self.factory.shared.set_account(account);
    }

    /// The next listings of groups are empty by error.
    pub fn empty_lists(&self, count: u32) {
        self.factory.shared.empty_lists(count);
    }

    /// The next calls are never answered.
    pub fn hang(&self, count: u32) {
        self.factory.shared.hang(count);
    }

    /// The process dies right after the `count`th write from now on.
    pub fn crash_after(&self, count: usize) {
        self.journal.crash_after(self.journal.len() + count);
    }

    /// Somebody pauses the Cluster right after the `count`th write from now on, in the middle of a reconcile.
    pub fn pause_after(&self, count: usize) {
        let api = std::sync::Arc::clone(&self.api);
        self.journal.after(self.journal.len() + count, move || {
            let State { ledger, clusters, .. } = &mut *api.state();
            let _ =
                clusters.update(ledger, &ObjectKey::new(NAMESPACE, CLUSTER), Expect::default(), |cluster| {
                    cluster.spec.paused = Some(true);
                });
        });
    }

    /// Every process dies right after its `count`th write.
    pub fn crash_every(&self, count: usize) {
        self.journal.crash_every(count);
    }

    /// The process is killed between two reconciles, and another follows.
    pub fn kill_process(&mut self) {
        self.restart();
    }

    /// Somebody else calls AWS.
    ///
    /// # Errors
    /// What AWS answers.
    pub fn aws(&self, service: Service, action: &str, params: Tree) -> anyhow::Result<Tree> {
        self.simulator.set_time(self.now());
        Ok(self.simulator.call(&self.scope(), service, action, params)?)
    }
}
