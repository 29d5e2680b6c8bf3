//! What people and others do: edits, deletions, pauses, mishaps.

use capasg_api::{
    ASGMachine, ASGMachinePool,
    capi::{Cluster, ContractReference, Machine, MachinePool},
    conditions::{self, Finding},
    names::annotations,
};
use std::sync::Arc;

use capasg_controllers::ObjectKey;
use capasg_fake_aws::{Fault, Service, Tree};
use chrono::TimeDelta;
use kube::{
    ResourceExt,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use super::{
    Pool, World,
    pool::{CLUSTER, NAMESPACE},
};
use crate::{
    Invariants, Kind, Lag,
    api_server::{Expect, State},
    invariants::Exemptions,
};

/// How long a leader's lease lasts after its last renewal.
pub(super) const LEASE: TimeDelta = TimeDelta::seconds(15);

impl World {
    /// Edits a pool.
    pub fn edit_pool(&self, pool: &Pool, edit: impl FnOnce(&mut ASGMachinePool)) {
        let before = self.pool(pool);
        {
            let State { ledger, pools, .. } = &mut *self.api.state();
            let _ = pools.update(ledger, &pool.key, Expect::default(), edit);
        }
        if let (Some(invariants), Some(before), Some(after)) = (&self.invariants, before, self.pool(pool)) {
            let is_stopped =
                |own: &ASGMachinePool| own.annotations().contains_key(annotations::ROLLOUT_STOPPED);
            let is_retried = before.spec.retry_token != after.spec.retry_token;
            let strategy = |own: &ASGMachinePool| own.spec.rollout(1).type_;
            let is_retried = is_retried || strategy(&before) != strategy(&after);
            if is_retried || is_stopped(&before) && !is_stopped(&after) {
                invariants.goes_on(&pool.key);
            }
        }
    }

    /// Edits a pool's `MachinePool`.
    pub fn edit_machine_pool(&self, pool: &Pool, edit: impl FnOnce(&mut MachinePool)) {
        let State { ledger, machine_pools, .. } = &mut *self.api.state();
        let _ = machine_pools.update(ledger, &pool.machine_pool, Expect::default(), edit);
    }

    /// Edits the Cluster.
    pub fn edit_cluster(&self, edit: impl FnOnce(&mut Cluster)) {
        self.edit_any_cluster(&ObjectKey::new(NAMESPACE, CLUSTER), edit);
    }

    /// Edits a Cluster.
    pub fn edit_any_cluster(&self, cluster: &ObjectKey, edit: impl FnOnce(&mut Cluster)) {
        let State { ledger, clusters, .. } = &mut *self.api.state();
        let _ = clusters.update(ledger, cluster, Expect::default(), edit);
    }

    /// The infrastructure of the Cluster is an `AWSCluster` in this VPC.
    pub fn add_aws_cluster(&self, vpc: &str) {
        self.add_aws_cluster_with(&json!({ "network": { "vpc": { "id": vpc } } }));
    }

    /// The same with any spec.
    pub fn add_aws_cluster_with(&self, spec: &Value) {
        let group = "infrastructure.cluster.x-k8s.io";
        let kind = GroupVersionKind::gvk(group, "v1beta2", "AWSCluster");
        let mut object = DynamicObject::new(CLUSTER, &ApiResource::from_gvk(&kind)).within(NAMESPACE);
        object.data = json!({ "spec": spec });
        {
            let State { ledger, configs, .. } = &mut *self.api.state();
            let _ = configs.create(ledger, object);
        }
        self.edit_cluster(|cluster| {
            let (api_group, kind, name) = (group.to_owned(), "AWSCluster".to_owned(), CLUSTER.to_owned());
            cluster.spec.infrastructure_ref = Some(ContractReference { api_group, kind, name });
        });
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

    /// A person takes the mark of a stopped rollout off.
    pub fn let_go_on(&self, pool: &Pool) {
        self.edit_pool(pool, |pool| drop(pool.annotations_mut().remove(annotations::ROLLOUT_STOPPED)));
    }

    /// EC2 announces that it interrupts a Spot instance.
    pub fn interrupt(&self, instance: &str) {
        self.exempt(|exempt| exempt.interrupted(instance));
        self.simulator.interrupt(&self.scope(), instance);
    }

    /// EC2 recommends to replace a Spot instance, which is at risk.
    pub fn recommend(&self, instance: &str) {
        self.exempt(|exempt| exempt.recommended(instance));
        self.simulator.recommend(&self.scope(), instance);
    }

    /// AWS announces the retirement of an instance.
    pub fn retire(&self, instance: &str) {
        self.exempt(|exempt| exempt.retired(instance));
        self.simulator.retire(&self.scope(), instance);
    }

    fn exempt(&self, note: impl FnOnce(&mut Exemptions)) {
        if let Some(invariants) = &self.invariants {
            invariants.exempt(|exempt, _| note(exempt));
        }
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

    /// Removes a pool at once, although our finalizer holds it: a user took the finalizer off by hand.
    pub fn vanish_pool(&self, pool: &Pool) {
        self.edit_pool(pool, |own| own.metadata.finalizers = None);
        self.delete_pool(pool);
    }

    /// `kubectl delete cluster`.
    pub fn delete_cluster(&self) {
        self.delete_any_cluster(&ObjectKey::new(NAMESPACE, CLUSTER));
    }

    /// `kubectl delete cluster` of any Cluster.
    pub fn delete_any_cluster(&self, cluster: &ObjectKey) {
        let State { ledger, clusters, .. } = &mut *self.api.state();
        let _ = clusters.delete(ledger, cluster, Expect::default());
    }

    /// Removes the Cluster at once, finalizers or not.
    pub fn vanish_cluster(&self) {
        self.edit_cluster(|cluster| cluster.metadata.finalizers = None);
        self.delete_cluster();
    }

    /// `kubectl delete namespace`: also every ASGMachine is deleted directly.
    pub fn delete_namespace(&mut self) {
        let machines: Vec<String> =
            self.api.state().asg_machines.keys().map(|machine| machine.name.clone()).collect();
        for machine in &machines {
            self.watchdog.undrained(machine);
            self.exempt(|exempt| exempt.deleted_by_hand(machine));
        }
        self.api.delete_namespace(NAMESPACE);
    }

    /// `kubectl delete machine`.
    pub fn delete_machine(&self, name: &str) {
        let State { ledger, machines, .. } = &mut *self.api.state();
        let _ = machines.delete(ledger, &ObjectKey::new(NAMESPACE, name), Expect::default());
    }

    /// `kubectl delete asgmachine`.
    pub fn delete_asg_machine(&mut self, name: &str) {
        self.watchdog.undrained(name);
        self.exempt(|exempt| exempt.deleted_by_hand(name));
        let State { ledger, asg_machines, .. } = &mut *self.api.state();
        let _ = asg_machines.delete(ledger, &ObjectKey::new(NAMESPACE, name), Expect::default());
    }

    /// Writes a new bootstrap token.
    pub fn rotate_token(&self, pool: &Pool) {
        self.core.rotate_token(&pool.config);
    }

    /// Puts an annotation without a value on an `ASGMachine`.
    pub fn annotate_asg_machine(&self, name: &str, annotation: &str) {
        let State { ledger, asg_machines, .. } = &mut *self.api.state();
        let key = ObjectKey::new(NAMESPACE, name);
        let _ = asg_machines.update(ledger, &key, Expect::default(), |machine| {
            machine.metadata.annotations.get_or_insert_default().insert(annotation.to_owned(), String::new());
        });
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
            core.look_again(self.now());
        }
    }

    /// Nothing blocks drains any more.
    pub fn unblock_drains(&self) {
        let mut core = self.core.state();
        core.blocked.clear();
        // Core tries a drain again and again; here it is told.
        core.look_again(self.now());
    }

    /// What was to fail or hang does so no more.
    pub fn forgive(&self) {
        self.factory.shared.empty_lists(0);
        self.factory.shared.hang(0);
        self.api.forgive();
        self.journal.spare();
    }

    /// An instance's Node (`*` for all) never joins, or does after all.
    pub fn mute(&self, instance: &str, muted: bool) {
        let mut core = self.core.state();
        if muted {
            core.mute.insert(instance.to_owned());
        } else {
            core.mute.remove(instance);
            core.look_again(self.now());
        }
    }

    /// Core goes down, or comes back.
    pub fn stop_core(&self, stopped: bool) {
        let mut core = self.core.state();
        core.stopped = stopped;
        if !stopped {
            // A new process looks at everything: what changed meanwhile told nobody.
            core.look_again(self.now());
        }
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

    /// The process dies before its `count`th call from now on, reads included.
    pub fn crash_before_call(&self, count: usize) {
        self.journal.crash_before_call(self.journal.calls() + count);
    }

    /// The process dies with its first write after `count` calls from now on, whose effect comes so much later.
    pub fn land_late(&self, count: usize, millis: u64) {
        self.journal.land_late(self.journal.calls() + count, millis);
    }

    /// The leader cannot renew its lease any more: it may write for a while, and another takes over when the lease ends.
    pub fn lose_lease(&mut self) {
        if self.takeover.is_none() {
            self.lease.ends(self.now() + LEASE * 9 / 10);
            self.takeover = Some(self.now() + LEASE);
        }
    }

    /// `kubectl delete node`: the kubelet does not register again.
    pub fn delete_node(&self, instance: &str) {
        self.core.state().lose_node(instance);
        self.core.step();
    }

    /// The kubelet of an instance goes down, or is up again.
    pub fn kubelet_down(&self, instance: &str, down: bool) {
        self.core.state().set_down(instance, down);
        self.core.step();
    }

    /// The API server of the workload cluster does not answer, or does again.
    pub fn workload_unreachable(&self, unreachable: bool) {
        self.core.state().unreachable = unreachable;
        self.core.step();
    }

    /// Every Node that is missing or not ready is back.
    pub fn heal_nodes(&self) {
        self.core.state().heal_nodes();
        self.core.step();
    }

    /// A person wants no drain of a Machine.
    pub fn exclude_drain(&self, name: &str) {
        self.exempt(|exempt| exempt.drain_excluded(name));
        self.edit_machine(name, |machine| {
            machine.annotations_mut().insert(annotations::EXCLUDE_NODE_DRAINING.to_owned(), String::new());
        });
    }

    /// How far the caches may be behind.
    #[must_use]
    pub fn cache_lag(&self) -> chrono::TimeDelta {
        chrono::TimeDelta::milliseconds(self.setup.lag_millis.cast_signed())
    }

    /// A cache learns nothing for a while, or again.
    pub fn freeze(&self, kind: Kind, frozen: bool) {
        self.api.set_lag(kind, Lag { millis: self.setup.lag_millis, frozen });
    }

    /// The rules that are checked at every step, if they are.
    #[must_use]
    pub fn invariants(&self) -> Option<&Arc<Invariants>> {
        self.invariants.as_ref()
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
